"""Architecture-independent profiles as observations: their metrics are counters of no device."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Flags
from crosscast.predict.grid import Profiles
from crosscast.predict.relative.observations import NO_SOURCE, Observations
from crosscast.profile import METRICS

__all__ = ["INVOCATIONS", "profiles_seen"]

INVOCATIONS = "invocations"
"""How often a kernel is launched in a run, by its name among the configuration."""


def profiles_seen(profiles: Profiles) -> Observations:
    """A row for each kernel at a size; metrics that none of them has are left out.

    Parameters
    ----------
    profiles
        As `crosscast.predict.observed.grid_of` has them of a dataset, or `crosscast.predict.asked.kernels_of`
        of single profiles. What the metrics sum up is of one invocation, so that the number of invocations
        is in the configuration.
    """
    there: Flags = np.asarray(~np.isnan(profiles.metrics).all(axis=0))
    return Observations(
        application=profiles.application,
        kernel=profiles.kernel,
        size=profiles.size,
        scale=profiles.size,
        source=(NO_SOURCE,) * len(profiles),
        names=tuple(metric.name for metric, has in zip(METRICS, there, strict=True) if has),
        counters=profiles.metrics[:, there],
        configuration=(INVOCATIONS,),
        settings=profiles.invocations[:, np.newaxis].astype(np.float64),
        time_s=np.full(len(profiles), np.nan),
    )
