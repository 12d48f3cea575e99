"""Features of isolated runs and of mixes: traits for the process, and those of Moolchandani et al. 2022."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.corun import Mix
from crosscast.prediction.serialization import Array, Nested, Stored

_SHARES = ("utilisation", "memory_utilisation")
"""Features that are shares of the device, which are not transformed."""

_STRESSED = tuple(
    f"{kind}_{level}" for kind in ("slowdown", "inflicted") for level in ("low", "medium", "high")
)
"""Slowdowns with the stressors, which enter as logarithms."""

_RATE = "_steps_per_s"

_IDLE_BELOW = 0.01
"""Use of the device's memory system below which an application is not slowed down by others there."""


@dataclass(frozen=True, eq=False)
class FeatureMatrix(Stored):
    """Features of ``s`` applications."""

    application: Annotated[npt.NDArray[np.str_], Array("s")]  # Name of each, without and with its size
    name: Annotated[npt.NDArray[np.str_], Array("s")]
    near: Annotated[Reals, Array("s f")]  # Traits by which different applications are compared, if any
    batch: Annotated[Reals, Array("s")]  # Logarithm to base 2 of the batch size; 0 where there is none
    load: Annotated[Reals, Array("s")]  # Demand on a device, in standard deviations


@dataclass(frozen=True, eq=False)
class Traits(Stored):
    """Transformation of applications to features, as fitted in the training."""

    names: Annotated[tuple[str, ...], Array("f")]  # Features used as traits
    middle: Annotated[Reals, Array("f")]  # Median in the training, which replaces missing values
    load: str  # Feature for the load: an isolated rate, `time_s`, or empty for the sum of the traits
    centre: float  # Mean and standard deviation of the load in the training
    spread: Annotated[float, Array(above=0)]

    @classmethod
    def of(cls, runs: Sequence[IsolatedRun]) -> Traits:
        """Determine the traits: features that most training applications have."""
        names = np.array((*_SHARES, *_STRESSED))
        values, _ = _numbers(runs, names.tolist(), np.nan, "")
        common = 2 * np.isfinite(values).sum(axis=0) > len(runs)
        traits = tuple(names[common].tolist())
        middle = np.nanmedian(values[:, common], axis=0) if traits else np.empty(0)
        load = "" if traits else _slowest_rate(runs)
        _, loads = _numbers(runs, traits, middle, load)
        known = loads[np.isfinite(loads)]
        centre, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 1.0)
        return cls(traits, middle, load, centre, spread if spread > 0 else 1.0)

    def ranges(self, runs: Sequence[IsolatedRun]) -> dict[str, tuple[float, float]]:
        """Least and greatest value of each trait, or of the load's feature, among runs that have it."""
        ranges = {}
        for name in self.names or (self.load,):
            values = [value for run in runs if (value := raw_value(run, name)) is not None]
            if values:
                ranges[name] = min(values), max(values)
        return ranges

    def matrix(self, runs: Sequence[IsolatedRun]) -> FeatureMatrix:
        """Features of applications; an unknown load is the mean of the training."""
        near, loads = _numbers(runs, self.names, self.middle, self.load)
        batches = [run.features.get("batch_size") for run in runs]
        return FeatureMatrix(
            np.array([run.application for run in runs], dtype=np.str_),
            np.array([run.name for run in runs], dtype=np.str_),
            near,
            np.array([np.log2(size) if size is not None and size > 0 else 0.0 for size in batches]),
            (np.where(np.isfinite(loads), loads, self.centre) - self.centre) / self.spread,
        )


def _numbers(
    runs: Sequence[IsolatedRun], names: Sequence[str], middle: Reals | float, load: str
) -> tuple[Reals, Reals]:
    """Traits ``(runs, names)``, with medians for missing ones; and loads ``(runs,)``, NaN if not known."""
    values = np.array([[run.features.get(name, np.nan) for name in names] for run in runs], dtype=np.float64)
    values = values.reshape(len(runs), len(names))
    logs = np.log(values, where=values > 0, out=np.full_like(values, np.nan))
    traits = np.where([name in _SHARES for name in names], values, logs)
    traits = np.where(np.isfinite(traits), traits, middle)
    return traits, np.array([_log_time(run, load) for run in runs]) if load else traits.sum(axis=1)


def _slowest_rate(runs: Sequence[IsolatedRun]) -> str:
    """The lowest isolated rate, which represents work best; ``time_s`` where no rate is known."""
    rates = sorted({name for run in runs for name in run.features if name.endswith(_RATE)})
    logs = {name: [_log_time(run, name) for run in runs] for name in rates}
    means = {name: np.nanmean(each) for name, each in logs.items() if np.isfinite(each).all()}
    return max(means, key=lambda name: (means[name], name)) if means else "time_s"


def raw_value(run: IsolatedRun, name: str) -> float | None:
    """A feature of a run, or its time; ``None`` where it is not known."""
    return run.time_s if name == "time_s" else run.features.get(name)


def _log_time(run: IsolatedRun, name: str) -> float:
    value = raw_value(run, name)
    if value is None or value <= 0:
        return np.nan
    return float(np.log(value)) if name == "time_s" else -float(np.log(value))


def leaves_memory_idle(runs: Sequence[IsolatedRun]) -> Flags:
    """Mask ``(s,)`` of the applications that leave the memory system idle."""
    used = [run.features.get("memory_utilisation", 1.0) for run in runs]
    return np.array(used, dtype=np.float64) < _IDLE_BELOW


@dataclass(frozen=True, eq=False)
class CoRunnerRows:
    """``n`` co-runners of mixes of ``s`` applications."""

    own: Integers  # (n,), index of each one's application
    beside: Reals  # (n, s), occurrences of each application among the others of its mix
    mix: Integers  # (n,), index of its mix

    @property
    def members(self) -> Reals:
        """Number of co-runners of each row's mix, ``(n,)``."""
        count: Reals = 1.0 + self.beside.sum(axis=1)
        return count

    @classmethod
    def of(cls, mixes: Sequence[Sequence[int]] | Integers, applications: int) -> CoRunnerRows:
        """Rows of mixes of applications, each given by its index."""
        application_index = np.array([application for mix in mixes for application in mix], dtype=np.int64)
        mix = np.repeat(np.arange(len(mixes)), [len(each) for each in mixes])
        counts = np.zeros((len(mixes), applications))
        np.add.at(counts, (mix, application_index), 1.0)
        beside = counts[mix]
        beside[np.arange(len(application_index)), application_index] -= 1.0
        return cls(application_index, beside, mix)

    def where(self, chosen: Flags) -> CoRunnerRows:
        """The rows of a mask."""
        return CoRunnerRows(self.own[chosen], self.beside[chosen], self.mix[chosen])


def applications_of(mixes: Sequence[Mix]) -> tuple[list[IsolatedRun], list[list[int]]]:
    """The distinct applications of mixes, in the order of their keys, and the mixes as their indices.

    Two profiles of an application with different times or features are distinct.
    """
    identities = [[(*run.key, run.time_s, *run.features.items()) for run in mix] for mix in mixes]
    runs = {
        identity: run
        for mix, of_mix in zip(mixes, identities, strict=True)
        for run, identity in zip(mix, of_mix, strict=True)
    }
    order = sorted(runs, key=lambda identity: identity[:4])
    index = {identity: number for number, identity in enumerate(order)}
    return [runs[identity] for identity in order], [[index[each] for each in of_mix] for of_mix in identities]


def surroundings(features: FeatureMatrix, rows: CoRunnerRows) -> Reals:
    """Traits of co-runners, sums and maxima of the traits of the others in the mix, and their number.

    Of shape (n, 3 f + 1).
    """
    sums = rows.beside @ features.near
    maxima = np.full_like(sums, -np.inf)
    for application, near in enumerate(features.near):
        with_it = rows.beside[:, application] > 0
        maxima[with_it] = np.maximum(maxima[with_it], near)
    return np.column_stack([features.near[rows.own], sums, maxima, rows.beside.sum(axis=1)])


_LEVELS = ("low", "medium", "high")
"""Levels of the microbenchmarks that ran with each application (section 5.1.4)."""

_PRESSURES = ("llc_miss", "inflicted_high", "bandwidth_bytes_per_s")
"""Measures of an application's pressure on the cache.

The paper's misses; without counters, the slowdown of the microbenchmark High by the application, or its
memory traffic.
"""

FAIRNESS = "fairness"
"""Fairness of an application, chosen by the others' pressure on the cache (section 5.1.4)."""

_INSTRUCTIONS = {
    **{name: f"mix_{name.lower()}" for name in ("SSE", "ALU", "MEM", "FP")},
    **{name: f"mix_{name.lower()}" for name in ("Stack", "String", "Shift", "Control")},
}

INSTRUCTION_MIX = tuple(_INSTRUCTIONS)
"""Shares of kinds of instructions: *insmix*."""

_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "CPU_time": "cpu_time_s",
        **_INSTRUCTIONS,
        "CPU_power": "cpu_power_w",
        "IPC": "ipc",
        "LLC_miss": "llc_miss",
        "Branch_miss": "branch_miss",
        "L1_miss": "l1_miss",
        "DTLB_miss": "dtlb_miss",
    }
)
"""Feature of an isolated run, by the paper's name."""

INDIVIDUAL = ("GPU_time", "GPU_power", *_COLUMNS)
"""Features of an isolated run. The two of the GPU are those of the shared device, of any type."""

CONCURRENT = ("IPC_sh", "LLC_miss_sh", "Branch_miss_sh", "L1_miss_sh", "DTLB_miss_sh", "CPU_power_sh")
"""Counters and power of the whole mix on a CPU."""


@dataclass(frozen=True)
class Combination:
    """Features of a predictor: those of each application by the paper's names, and `FAIRNESS`."""

    name: str
    features: tuple[str, ...]

    @property
    def concurrent(self) -> tuple[str, ...]:
        """Features that only a run of the mix itself has."""
        return tuple(name for name in self.features if name in CONCURRENT)


PERFORMANCE = Combination("all", ("CPU_time", "GPU_time", *INSTRUCTION_MIX, FAIRNESS))
"""All features of table 4, for the performance predictor."""

POWER = Combination("comb16", ("CPU_power", "GPU_power", "LLC_miss", FAIRNESS))
"""The paper's choice for power, which needs no run of the mix (section 7.3)."""


def value_of(run: IsolatedRun, name: str) -> float:
    """A feature of an isolated run; NaN if not known."""
    if name in ("GPU_time", "GPU_power"):
        value = run.time_s if name == "GPU_time" else run.power_w
        return math.nan if value is None else value
    return run.features.get(_COLUMNS.get(name, name), math.nan)


def fairness_with(run: IsolatedRun, level: str) -> float:
    """Fairness of an application and a microbenchmark; NaN if not known.

    If not recorded, it is the ratio of the lesser to the greater of both slowdowns.
    """
    known = run.features.get(f"fairness_{level}")
    if known is not None:
        return known
    suffered, other = (run.features.get(f"{kind}_{level}", math.nan) for kind in ("slowdown", "inflicted"))
    return min(suffered, other) / max(suffered, other) if suffered > 0 and other > 0 else math.nan


def unknown_features(names: Iterable[str], mixes: Sequence[Mix]) -> tuple[str, ...]:
    """Features that no run in the mixes has; a combination with one of them is not available."""
    runs = {id(run): run for mix in mixes for run in mix}.values()

    def known(name: str) -> bool:
        if name == FAIRNESS:
            return any(not math.isnan(fairness_with(run, level)) for run in runs for level in _LEVELS)
        return name not in CONCURRENT and any(not math.isnan(value_of(run, name)) for run in runs)

    return tuple(name for name in names if not known(name))


def other_features(mixes: Sequence[Mix]) -> tuple[str, ...]:
    """Names of the runs' features besides those of the paper, sorted."""
    names = {name for mix in mixes for run in mix for name in run.features}
    return tuple(sorted(names - set(_COLUMNS.values())))


def count_known(values: Sequence[float]) -> int:
    """Number of known values; 0 if they are all equal, as of a broken counter."""
    known = [value for value in values if not math.isnan(value)]
    return len(known) if len(set(known)) > 1 else 0


@dataclass(frozen=True, eq=False)
class FairnessChoice(Stored):
    """Choice of an isolated fairness that represents the fairness in a mix (section 5.1.4).

    In a mix, the pressure of the others on the last-level cache, the sum of their misses, determines which of
    the three microbenchmarks they resemble.
    """

    # One of `_PRESSURES`; empty where no application has any: all are medium then
    pressure: str
    pressure_usual: float  # Replaces a missing pressure: the training median
    # Sums of the others' pressures above which they are medium, and high
    pressure_thresholds: Annotated[Reals, Array("2")]

    @classmethod
    def fit(cls, mixes: Sequence[Mix]) -> FairnessChoice:
        """Fit thresholds to mixes of one size.

        The paper does not state its thresholds. Here they are the tertiles of the sums in the training mixes.
        The measure of pressure is the one that most runs have, and that varies; of equals, the first.
        """
        known = {
            name: [run.features.get(name, math.nan) for mix in mixes for run in mix] for name in _PRESSURES
        }
        best = max(_PRESSURES, key=lambda name: count_known(known[name]))
        if count_known(known[best]) == 0:
            return cls("", 0.0, np.zeros(2))
        unfitted = cls(best, float(np.nanmedian(known[best])), np.zeros(2))
        return replace(unfitted, pressure_thresholds=np.quantile(unfitted.sums(mixes), [1 / 3, 2 / 3]))

    def check(self) -> None:
        """Raise InputError for an unknown pressure, or thresholds in the wrong order."""
        if self.pressure not in ("", *_PRESSURES):
            expected = f"one of {', '.join(_PRESSURES)}"
            raise InputError.of(field="pressure", expected=expected, found=repr(self.pressure))
        low, high = self.pressure_thresholds.tolist()
        if low > high:
            expected, found = "two numbers that do not fall", f"{low:g} and {high:g}"
            raise InputError.of(field="pressure_thresholds", expected=expected, found=found)

    def sums(self, mixes: Sequence[Mix]) -> Reals:
        """Sum of the others' pressures, for each of ``b`` mixes of ``n``, ``(b, n)``."""
        pressures = np.array([[run.features.get(self.pressure, math.nan) for run in mix] for mix in mixes])
        pressures = np.where(np.isnan(pressures), self.pressure_usual, pressures)
        # Not the total less each one, as rounding would distinguish equal co-runners.
        others = [np.delete(pressures, column, axis=1).sum(axis=1) for column in range(pressures.shape[1])]
        return np.stack(others, axis=1)

    def levels(self, mixes: Sequence[Mix]) -> Integers:
        """Microbenchmark that the others resemble, 0 for Low to 2 for High, ``(b, n)``."""
        if not self.pressure:
            return np.ones((len(mixes), len(mixes[0])), dtype=np.int64)
        return np.searchsorted(self.pressure_thresholds, self.sums(mixes), side="left").astype(np.int64)

    def fairness(self, mixes: Sequence[Mix]) -> Reals:
        """Chosen fairness of each, ``(b, n)``; NaN if not known."""
        chosen = zip(mixes, self.levels(mixes).tolist(), strict=True)
        of_mixes = ([(run, _LEVELS[level]) for run, level in zip(*each, strict=True)] for each in chosen)
        return np.array([[fairness_with(*each) for each in of_mix] for of_mix in of_mixes])


_BEYOND = 1e30
"""Limit of scaled features, as trees compare in single precision."""


@dataclass(frozen=True, eq=False)
class MixColumns(Stored):
    """Columns of each co-runner of a mix: ``k`` features, and a flag for those that may be missing."""

    choice: Annotated[FairnessChoice, Nested(flat=True)]  # Of the fairness
    columns: Annotated[tuple[str, ...], Array("k", least=1)]  # Names of the features
    dropped: Annotated[tuple[str, ...], Array("d")]  # Requested features that no run has
    usual: Annotated[Reals, Array("k")]  # Replaces a missing feature: the training median
    # Indices of features that some training runs lack: each has a column that is 1 where it is missing, and 0
    # elsewhere
    flagged: Annotated[Integers, Array("m", low=0, below="k")]
    # The least value in the training, and the difference to the largest, or 1 if all are equal: features are
    # scaled to the range from 0 to 1 (section 5.3)
    low: Annotated[Reals, Array("k")]
    span: Annotated[Reals, Array("k", above=0)]

    @classmethod
    def fit(cls, names: Sequence[str], mixes: Sequence[Mix]) -> MixColumns:
        """Fit to one or more training mixes of one size."""
        choice = FairnessChoice.fit(mixes)
        values = _values(names, choice, mixes).reshape(-1, len(names))
        known: Flags = np.asarray(~np.isnan(values).all(axis=0))
        if not known.any():
            expected = f"at least one of {', '.join(names)}"
            raise InputError.of(where="features", expected=expected, found="none in the mixes")
        values = values[:, known]
        usual = np.nanmedian(values, axis=0)
        complete = np.where(np.isnan(values), usual, values)
        low, high = complete.min(axis=0), complete.max(axis=0)
        return cls(
            choice,
            tuple(np.array(names)[known].tolist()),
            tuple(np.array(names)[~known].tolist()),
            usual,
            np.flatnonzero(np.isnan(values).any(axis=0)),
            low,
            np.where(high > low, high - low, 1.0),
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of all columns: the features, then the flags."""
        return *self.columns, *(f"{self.columns[index]} missing" for index in self.flagged)

    def indices(self, names: Sequence[str]) -> Integers:
        """Indices of the columns of some features, with their flags."""
        chosen = [self.columns.index(name) for name in names if name in self.columns]
        flags = [len(self.columns) + k for k, index in enumerate(self.flagged.tolist()) if index in chosen]
        return np.array([*chosen, *flags], dtype=np.int64)

    def of(self, mixes: Sequence[Mix]) -> tuple[Reals, Integers]:
        """Columns of ``b`` mixes of ``n``, ``(b, n, columns)``, and the order of the co-runners, ``(b, n)``.

        The order does not depend on that of the mix: the longest isolated run comes first, and runs of equal
        length are ordered by their columns.
        """
        values = _values(self.columns, self.choice, mixes)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.usual, values) - self.low) / self.span
        scaled = np.clip(scaled, -_BEYOND, _BEYOND)
        columns = np.concatenate([scaled, missing[:, :, self.flagged]], axis=2)
        times = isolated_times(mixes)
        # The last key of `lexsort` is the primary one. Unknown times come last.
        keys = np.concatenate([columns[:, :, ::-1], -times[:, :, None]], axis=2)
        order = np.lexsort(np.moveaxis(keys, 2, 0), axis=-1)
        return np.take_along_axis(columns, order[:, :, None], axis=1), order


def isolated_times(mixes: Sequence[Mix]) -> Reals:
    """Isolated times of mixes of one size, ``(b, n)``; NaN where not known."""
    return np.array([[run.time_s for run in mix] for mix in mixes], dtype=np.float64)


def _values(names: Sequence[str], choice: FairnessChoice, mixes: Sequence[Mix]) -> Reals:
    """Features without scaling, ``(b, n, names)``."""
    runs = {id(run): run for mix in mixes for run in mix}
    alone = {key: [value_of(run, name) for name in names] for key, run in runs.items()}
    values = np.array([[alone[id(run)] for run in mix] for mix in mixes], dtype=np.float64)
    if FAIRNESS in names:
        values[:, :, list(names).index(FAIRNESS)] = choice.fairness(mixes)
    return values
