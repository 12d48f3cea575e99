"""Training data of models of relative performance: runs with counters, vectors of relative times, residuals.

An entry of a vector is the time on a device over the time on the slowest device, in (0, 1]: less is better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.intervals import CONFORMAL, Residuals, check_numbers, most_level
from crosscast.prediction.serialization import Array
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.trained import UnsuitedError, format_names
from crosscast.profile import METRICS
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.results import Column

NO_SOURCE = "none"  # Source of counters of no device, such as an architecture-independent profile
INVOCATIONS = "invocations"  # Setting of a profile: launches of its kernel
Work = tuple[str, str, str, str]  # Application, kernel, size and scale, equal for runs of the same work
MOST_NAMED = 5  # Most counters that a message names


@dataclass(frozen=True)
class Observations(Tabular):
    """Runs or profiles with their counters, ``r`` rows; missing values are NaN."""

    application: tuple[str, ...]  # (r,); names are for splits and tables, not for models
    kernel: tuple[str, ...]
    size: tuple[str, ...]
    scale: tuple[str, ...]  # size of the machine, or of the problem, for `leave-scale-out`
    source: tuple[str, ...]  # device with the counters, or `NO_SOURCE`
    names: tuple[str, ...]  # (f,) counters, with the names of their tool
    counters: Reals  # (r, f)
    configuration: tuple[str, ...]  # (c,) settings, such as `nodes`, `cores` and `uses_gpu`
    settings: Reals  # (r, c)
    time_s: Reals  # (r,) seconds on the source

    def __len__(self) -> int:
        return len(self.application)

    def caption(self) -> str:
        """The numbers of runs and of counters."""
        return f"Runs: {len(self)}, with {len(self.names)} counters"

    def columns(self) -> Mapping[str, Column]:
        """Names of what ran, where it was counted, time, settings and counters."""
        names = ("application", "kernel", "size", "scale", "source", "time_s")
        columns: dict[str, Column] = {name: getattr(self, name) for name in names}
        numbers = zip((*self.configuration, *self.names), (*self.settings.T, *self.counters.T), strict=True)
        return {**columns, **dict(numbers), **columns}

    @property
    def works(self) -> list[Work]:
        """Work of each row."""
        return list(zip(self.application, self.kernel, self.size, self.scale, strict=True))

    @property
    def kernels(self) -> list[tuple[str, str]]:
        """Application and kernel of each row."""
        return list(zip(self.application, self.kernel, strict=True))

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of applications, kernels, and kernels at a size."""
        kernels_at_a_size = len({work[:3] for work in self.works})
        kernels = {"kernels": len(set(self.kernels)), "kernels_at_a_size": kernels_at_a_size}
        return {"applications": len(set(self.application)), **kernels}

    def label(self, row: int) -> str:
        """Names of a row, for people."""
        return " ".join(dict.fromkeys(filter(None, self.works[row]))) or "profile"

    def counters_of(self, row: int) -> list[str]:
        """Names of the counters that a row has."""
        return [self.names[column] for column in np.flatnonzero(np.isfinite(self.counters[row]))]

    def rows(self, indices: Integers | Flags) -> Observations:
        """The rows of these indices, or of a mask."""
        chosen = np.arange(len(self))[indices].tolist()
        texts = ("application", "kernel", "size", "scale", "source")
        arrays = ("counters", "settings", "time_s")
        parts: dict[str, Any] = {name: tuple(getattr(self, name)[row] for row in chosen) for name in texts}
        return replace(self, **parts, **{name: getattr(self, name)[chosen] for name in arrays})


@dataclass(frozen=True)
class Vectors:
    """Observations with the times of the same work on each of ``d`` devices."""

    observations: Observations
    devices: tuple[str, ...]  # (d,) keys
    times_s: Reals  # (r, d) seconds; the run's own time on its source, elsewhere medians of the same work
    described: tuple[Device, ...] = ()  # descriptions of the devices, if known

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def vector(self) -> Reals:
        """Relative vectors, of shape ``(r, d)``."""
        return relative_to_slowest(self.times_s)

    def rows(self, indices: Integers | Flags) -> Vectors:
        """The rows of these indices, or of a mask."""
        return replace(self, observations=self.observations.rows(indices), times_s=self.times_s[indices])


class RelativePredictor(Protocol):
    """A fitted model."""

    def predict(self, observations: Observations) -> Reals:
        """Relative vectors ``(r, d)``, all above 0; the largest entry of a row may be other than 1."""

    def unknown_counters(self, observations: Observations) -> tuple[str, ...] | None:
        """Counters of runs that it does not use, by name or meaning; ``None`` if it uses none of any run."""


class RelativeModel(Protocol):
    """A model with its settings, not fitted."""

    @property
    def name(self) -> str:
        """Name on the command line, and in tables."""

    def fit(self, vectors: Vectors, seed: int) -> RelativePredictor:
        """Fit; scaling, tuning and selection use these rows only."""


def check_runs(name: str, vectors: Vectors) -> None:
    """Raise InputError without training runs."""
    if not len(vectors):
        raise InputError.of(where=name, expected="a run to learn from", found="none")


def check_times(times: Reals, where: str) -> None:
    """Raise InputError unless times, or vectors of them, are finite and above 0."""
    invalid = ~(np.isfinite(times) & (times > 0))
    if invalid.any():
        raise InputError.of(where=where, expected="numbers above 0", found=float(times[invalid][0]))


def unknown_counters_error(observations: Observations, row: int, known: Sequence[str]) -> InputError:
    """Error for a row that has none of the counters that a model knows."""
    expected = f"counters that the model knows, such as {format_names(known, MOST_NAMED)}"
    found = format_names(observations.counters_of(row), MOST_NAMED) or "none"
    return UnsuitedError.of(where=observations.label(row), expected=expected, found=found)


def relative_to_slowest(times_s: Reals) -> Reals:
    """Times over the longest time of their row.

    >>> relative_to_slowest(np.array([[10.0, 8.0, 20.0]])).tolist()
    [[0.5, 0.4, 1.0]]
    """
    return np.asarray(times_s / times_s.max(axis=1, keepdims=True))


def centred(log_time: Reals) -> Reals:
    """Logarithms of times less their mean over the devices."""
    return np.asarray(log_time - log_time.mean(axis=1, keepdims=True))


def kernel_weights(observations: Observations) -> Reals:
    """Weights of rows; those of each kernel add up to 1."""
    rows = Counter(observations.kernels)
    return np.array([1.0 / rows[kernel] for kernel in observations.kernels])


def observations_of_profiles(profiles: ProfileBatch) -> Observations:
    """Profiles as observations, without the metrics that none of them has."""
    available: Flags = np.asarray(~np.isnan(profiles.metrics).all(axis=0))
    return Observations(
        application=profiles.application,
        kernel=profiles.kernel,
        size=profiles.size,
        scale=profiles.size,
        source=(NO_SOURCE,) * len(profiles),
        names=tuple(metric.name for metric, has in zip(METRICS, available, strict=True) if has),
        counters=profiles.metrics[:, available],
        configuration=(INVOCATIONS,),
        settings=profiles.invocations[:, np.newaxis].astype(np.float64),
        time_s=np.full(len(profiles), np.nan),
    )


@dataclass(frozen=True, eq=False)
class RelativeResiduals(Residuals):
    """Out-of-fold residuals of ``n`` vectors of ``d`` devices."""

    method = CONFORMAL

    # Logarithm of the predicted over the true entry, both relative to the slowest device of their vector.
    log_error: Annotated[Reals, Array("n d", least=1)]
    source: Annotated[Integers, Array("n", low=0)]  # Index of the device with the counters
    sources: Annotated[tuple[str, ...], Array("s")]

    def check(self) -> None:
        """Raise InputError for groups and sources without a residual."""
        super().check()
        check_numbers("source", self.source, self.sources)

    @classmethod
    def of(cls, group: Sequence[str], source: Sequence[str], log_error: Reals) -> RelativeResiduals:
        """Residuals, each with the names of its group and of the device with the counters."""
        (groups, of_group), (sources, of_source) = (
            np.unique(np.array(names), return_inverse=True) for names in (group, source)
        )
        return cls(log_error, of_group, tuple(groups.tolist()), of_source, tuple(sources.tolist()))

    def rows(self, chosen: Flags) -> RelativeResiduals:
        """The residuals of a mask."""
        groups = [self.groups[number] for number in self.group[chosen]]
        sources = [self.sources[number] for number in self.source[chosen]]
        return self.of(groups, sources, self.log_error[chosen])

    def of_source(self, source: str) -> RelativeResiduals:
        """The residuals of runs that were counted on a device; all residuals if there are none."""
        known = source in self.sources
        return self.rows(self.source == self.sources.index(source)) if known else self

    def relative_errors(self, base: int | None) -> Reals:
        """Errors of times relative to a device, ``(n, d)``."""
        return np.asarray(self.log_error - (0.0 if base is None else self.log_error[:, [base]]))

    def half_width(self, level: float, base: int | None) -> Reals:
        """Half-widths of intervals, in logarithms, ``(d,)``."""
        return self.quantile(np.abs(self.relative_errors(base)), level)

    @property
    def most_level(self) -> float:
        """The highest level of an interval with these groups."""
        return most_level(len(self.groups))
