"""The features of Moolchandani, Kumar and Sarangi (2022): of isolated runs, and fairness in a mix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.corun.forecast import Mix
from crosscast.prediction.serialization import Array, Nested, Stored

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
    own, other = (run.features.get(f"{kind}_{level}", math.nan) for kind in ("slowdown", "inflicted"))
    return min(own, other) / max(own, other) if own > 0 and other > 0 else math.nan


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
