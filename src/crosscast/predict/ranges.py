"""Which metrics a fitted model looks at, and what values they had in training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.card import MetricRange
from crosscast.predict.grid import Profiles
from crosscast.predict.model import PointPredictor
from crosscast.profile import METRICS

__all__ = ["metric_ranges"]

_ENOUGH = 64


def metric_ranges(point: PointPredictor, profiles: Profiles) -> tuple[MetricRange, ...]:
    """Find the metrics on which predictions depend, by taking each away.

    Parameters
    ----------
    point
        The fitted model.
    profiles
        The kernels that it was fitted to.
    """
    step = max(1, len(profiles) // _ENOUGH)
    some = profiles.take(np.arange(0, len(profiles), step))
    with np.errstate(all="ignore"):
        before = point.log_time(some)
        return tuple(
            found
            for place in range(len(METRICS))
            if (found := _range(point, profiles, some, before, place)) is not None
        )


def _range(
    point: PointPredictor, profiles: Profiles, some: Profiles, before: Reals, place: int
) -> MetricRange | None:
    values = profiles.metrics[np.isfinite(profiles.metrics[:, place]), place]
    if values.size == 0:
        return None
    metrics = some.metrics.copy()
    metrics[:, place] = np.nan
    try:
        required, same = False, np.array_equal(point.log_time(replace(some, metrics=metrics)), before)
    except InputError:
        required, same = True, False
    if same:
        return None
    return MetricRange(METRICS[place].name, required, float(values.min()), float(values.max()))
