"""What models of relative performance learn from: runs with counters, and the vectors that go with them.

The direction is fixed here: an entry of a vector is the time on a device over the time on the slowest device,
in (0, 1], and less is better. Speed-up is its inverse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.artefact import Part
from crosscast.predict.time.data import ProfileBatch
from crosscast.profile import METRICS

NO_SOURCE = "none"
"""Source of counters that no device has a part in, such as an architecture-independent profile."""

Work = tuple[str, str, str, str]
"""Application, kernel, size and scale: runs that agree in them did the same."""


@dataclass(frozen=True)
class Observations:
    """Runs (or profiles) with what was counted in them: ``r`` rows."""

    application: tuple[str, ...]  # Names, of length `r`: splits and tables look at them, models do not
    kernel: tuple[str, ...]
    size: tuple[str, ...]
    # What amount of a machine, or of a problem, each was run at, for `leave-scale-out`, of length `r`
    scale: tuple[str, ...]
    source: tuple[str, ...]  # Device that each was counted on, or `NO_SOURCE`, of length `r`
    names: tuple[str, ...]  # Names of the counters, `f` of them: as the tool that counted them calls them
    counters: Reals  # Their values, of shape `(r, f)`; not a number where a run has no such counter
    # Names of what the runs were set to, such as `nodes`, `cores` and `uses_gpu`: `c` of them
    configuration: tuple[str, ...]
    settings: Reals  # Their values, of shape `(r, c)`; not a number where a run does not say
    # How long each ran on its source in seconds, of shape `(r,)`; not a number where there is none
    time_s: Reals

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.application)

    @property
    def works(self) -> list[Work]:
        """What each row did, of length ``r``."""
        return list(zip(self.application, self.kernel, self.size, self.scale, strict=True))

    @property
    def counts(self) -> dict[str, int]:
        """How many applications, kernels, and kernels at a size there are."""
        names = list(zip(self.application, self.kernel, self.size, strict=True))
        return {
            "applications": len(set(self.application)),
            "kernels": len({name[:2] for name in names}),
            "kernels_at_a_size": len(set(names)),
        }

    def rows(self, places: Integers | npt.NDArray[np.bool_]) -> Observations:
        """Some of the rows."""
        chosen = np.arange(len(self))[places]
        return replace(
            self,
            **{name: tuple(getattr(self, name)[row] for row in chosen) for name in _TEXTS},
            counters=self.counters[chosen],
            settings=self.settings[chosen],
            time_s=self.time_s[chosen],
        )


_TEXTS = ("application", "kernel", "size", "scale", "source")


@dataclass(frozen=True)
class Vectors:
    """Observations with the times of the same work on each of ``d`` devices."""

    observations: Observations  # The runs, `r` rows
    devices: tuple[str, ...]  # Keys of the devices
    # Time on each device in seconds, of shape `(r, d)`: on its source that of the run itself, elsewhere the
    # median of the runs of the same application, kernel, size and scale
    times_s: Reals
    described: tuple[Device, ...] = ()  # What is known of the devices, in their order; nothing by default

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.observations)

    @property
    def vector(self) -> Reals:
        """Relative vectors, of shape ``(r, d)``."""
        return relative_to_slowest(self.times_s)

    def rows(self, places: Integers | npt.NDArray[np.bool_]) -> Vectors:
        """Some of the rows."""
        return replace(self, observations=self.observations.rows(places), times_s=self.times_s[places])

    def on(self, devices: Sequence[str]) -> Vectors:
        """The same with some of the devices."""
        unknown = [device for device in devices if device not in self.devices]
        if unknown or len(devices) < 2:
            found = unknown[0] if unknown else ", ".join(devices)
            raise InputError(f"devices: expected two or more of {', '.join(self.devices)}, found {found}")
        columns = [self.devices.index(device) for device in devices]
        described = tuple(self.described[column] for column in columns) if self.described else ()
        return Vectors(self.observations, tuple(devices), self.times_s[:, columns], described)


def check_runs(name: str, vectors: Vectors) -> None:
    """Check that there is something to learn from."""
    if not len(vectors):
        raise InputError(f"{name}: expected a run to learn from, found none")


def relative_to_slowest(times_s: Reals) -> Reals:
    """Times over the longest time of their row.

    >>> relative_to_slowest(np.array([[10.0, 8.0, 20.0]])).tolist()
    [[0.5, 0.4, 1.0]]
    """
    relative: Reals = times_s / times_s.max(axis=1, keepdims=True)
    return relative


class RelativePredictor(Part, Protocol):
    """A fitted model."""

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors. Of shape ``(r, d)``, all greater than 0. As a model predicts them:
        the largest entry of a row may be other than 1.
        """
        ...


class RelativeModel(Protocol):
    """A kind of model, with its settings."""

    @property
    def name(self) -> str:
        """Name on the command line, and in tables."""
        ...

    def fit(self, vectors: Vectors, seed: int) -> RelativePredictor:
        """Fit it: scales, tunes and selects with these rows alone."""
        ...


def kernel_weights(observations: Observations) -> Reals:
    """Weight of each row, of shape ``(r,)``; those of each kernel add up to 1."""
    kernels = list(zip(observations.application, observations.kernel, strict=True))
    rows = Counter(kernels)
    return np.array([1.0 / rows[kernel] for kernel in kernels])


INVOCATIONS = "invocations"
"""How often a kernel is launched in a run, by its name among the configuration."""


def profiles_seen(profiles: ProfileBatch) -> Observations:
    """A row for each kernel at a size; metrics that none of them has are left out."""
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
