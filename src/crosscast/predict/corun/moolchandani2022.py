"""Which fairness of a member stands for its fairness in a bag (paper 004, section 5.1.4).

Each application has run with the microbenchmarks Low, Medium and High. In a bag, the pressure of the others
on the last-level cache, the sum of their misses, says which of the three they resemble.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.artefact import arrays_of, kept_integers, kept_names, kept_reals
from crosscast.predict.corun.forecast import CoRunPrediction, even_slowdown, mix_times, with_fewer
from crosscast.predict.trees import (
    Trees,
    constant,
    joined,
    kept_trees,
    trees_of_forest,
    trees_of_gradient_boosting,
    trees_of_tree,
)
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

LEVELS = ("low", "medium", "high")
"""The microbenchmarks."""

PRESSURES = ("llc_miss", "inflicted_high", "bandwidth_bytes_per_s")
"""What the pressure of an application is told by.

The paper's misses; where counters are not to be had, how much the application slowed the microbenchmark High
down, or its memory traffic.
"""


def fairness_with(solo: Solo, level: str) -> float:
    """Fairness of an application and a microbenchmark; not a number where it is not known.

    Where it was not written down, it is made of the slowdowns of both: the lesser over the greater.
    """
    known = solo.features.get(f"fairness_{level}")
    if known is not None:
        return known
    own, other = (solo.features.get(f"{what}_{level}", math.nan) for what in ("slowdown", "inflicted"))
    return min(own, other) / max(own, other) if own > 0 and other > 0 else math.nan


@dataclass(frozen=True, eq=False)
class FairnessChoice:
    """Thresholds of the pressure, fitted to training bags."""

    pressure: str  # Which of `PRESSURES` tells it; nothing where no member has any: all are medium then
    usual: float  # What stands in for the pressure of an application that lacks it: the training median
    thresholds: Reals  # Sums of the others' pressures above which they are medium, and high, of shape `(2,)`

    @classmethod
    def fit(cls, bags: Sequence[tuple[Solo, ...]]) -> FairnessChoice:
        """Fit it to bags of one size.

        The paper does not say how its thresholds were found. Here they are the tertiles of the sums in the
        training bags. Pressure is told by what most members have, and differs among them; of equals, by the
        first.
        """
        known = {name: [_pressure(solo, name) for bag in bags for solo in bag] for name in PRESSURES}
        counts = {name: _told(values) for name, values in known.items()}
        best = max(PRESSURES, key=lambda name: counts[name])
        if counts[best] == 0:
            return cls("", 0.0, np.zeros(2))
        unfitted = cls(best, float(np.nanmedian(known[best])), np.zeros(2))
        sums = unfitted.sums(bags)
        return cls(best, unfitted.usual, np.quantile(sums, [1 / 3, 2 / 3]))

    def sums(self, bags: Sequence[tuple[Solo, ...]]) -> Reals:
        """Sum of the pressures of the others, for each member of ``b`` bags of ``n``, of shape ``(b, n)``."""
        own = np.array([[_pressure(solo, self.pressure) for solo in bag] for bag in bags])
        own = np.where(np.isnan(own), self.usual, own)
        # Not the whole sum less the own one: of equal members, rounding would tell them apart.
        others = [np.delete(own, place, axis=1).sum(axis=1) for place in range(own.shape[1])]
        return np.stack(others, axis=1)

    def levels(self, bags: Sequence[tuple[Solo, ...]]) -> Integers:
        """Places in `LEVELS` of what each member of the bags is up against, of shape ``(b, n)``."""
        if not self.pressure:
            return np.ones((len(bags), len(bags[0])), dtype=np.int64)
        return np.searchsorted(self.thresholds, self.sums(bags), side="left").astype(np.int64)

    def fairness(self, bags: Sequence[tuple[Solo, ...]]) -> Reals:
        """Fairness chosen for each member, of shape ``(b, n)``; not a number where it is not known."""
        levels = self.levels(bags).tolist()
        return np.array(
            [
                [fairness_with(solo, LEVELS[place]) for solo, place in zip(bag, places, strict=True)]
                for bag, places in zip(bags, levels, strict=True)
            ]
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "pressure": np.array([self.pressure]),
            "pressure_usual": np.array([self.usual]),
            "pressure_thresholds": self.thresholds,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FairnessChoice:
        """Make it from its arrays."""
        names, usual = kept_names(state, "pressure"), kept_reals(state, "pressure_usual", 1)
        thresholds = kept_reals(state, "pressure_thresholds", 1)
        if len(names) != 1 or names[0] not in ("", *PRESSURES):
            raise InputError(f"model: pressure: expected one of {', '.join(PRESSURES)}, found {names}")
        if len(usual) != 1 or len(thresholds) != 2 or thresholds[0] > thresholds[1]:
            raise InputError(
                "model: pressure: expected its usual value and two thresholds in order, found others"
            )
        return cls(names[0], float(usual[0]), thresholds)


def _pressure(solo: Solo, name: str) -> float:
    return solo.features.get(name, math.nan)


def _told(values: Sequence[float]) -> int:
    """How many are known; none if they do not differ, as of a counter that does not count."""
    known = [value for value in values if not math.isnan(value)]
    return len(known) if len(set(known)) > 1 else 0


FAIRNESS = "fairness"
"""The fairness of a member, chosen by what the others do to the cache (section 5.1.4)."""

_MIX = MappingProxyType(
    {
        "SSE": "mix_sse",
        "ALU": "mix_alu",
        "MEM": "mix_mem",
        "FP": "mix_fp",
        "Stack": "mix_stack",
        "String": "mix_string",
        "Shift": "mix_shift",
        "Control": "mix_control",
    }
)

MIX = tuple(_MIX)
"""Shares of kinds of instructions: *insmix*."""

_KEPT: Mapping[str, str] = MappingProxyType(
    {
        "CPU_time": "cpu_time_s",
        **_MIX,
        "CPU_power": "cpu_power_w",
        "IPC": "ipc",
        "LLC_miss": "llc_miss",
        "Branch_miss": "branch_miss",
        "L1_miss": "l1_miss",
        "DTLB_miss": "dtlb_miss",
    }
)
"""Where each is among the features of a solo run."""

INDIVIDUAL = ("GPU_time", "GPU_power", *_KEPT)
"""Features of an application alone. The two of the GPU are those of the device at hand, whatever it is."""

CONCURRENT = (
    "IPC_sh",
    "LLC_miss_sh",
    "Branch_miss_sh",
    "L1_miss_sh",
    "DTLB_miss_sh",
    "CPU_power_sh",
)
"""Counters and power of the whole bag on a CPU."""


def value_of(solo: Solo, name: str) -> float:
    """A feature of an application alone; not a number where it is not known."""
    if name == "GPU_time":
        return math.nan if solo.time_s is None else solo.time_s
    if name == "GPU_power":
        return math.nan if solo.power_w is None else solo.power_w
    return solo.features.get(_KEPT.get(name, name), math.nan)


def unknown_features(names: Iterable[str], bags: Sequence[tuple[Solo, ...]]) -> tuple[str, ...]:
    """Which features no member of the bags has; a combination with such a one is not available on them."""
    solos = {id(solo): solo for bag in bags for solo in bag}.values()

    def known(name: str) -> bool:
        if name == FAIRNESS:
            return any(not math.isnan(fairness_with(solo, level)) for solo in solos for level in LEVELS)
        return name not in CONCURRENT and any(not math.isnan(value_of(solo, name)) for solo in solos)

    return tuple(name for name in names if not known(name))


def other_features(bags: Sequence[tuple[Solo, ...]]) -> tuple[str, ...]:
    """Names of what members of the bags have besides the features of the paper, sorted."""
    found = {name for bag in bags for solo in bag for name in solo.features}
    return tuple(sorted(found - set(_KEPT.values())))


@dataclass(frozen=True)
class Combination:
    """Features that a predictor is given."""

    name: str  # Its name
    # Features of each member, and `fairness`, as `crosscast.predict.corun.moolchandani2022` names them
    features: tuple[str, ...]

    @property
    def concurrent(self) -> tuple[str, ...]:
        """Those that only a run of the bag itself would tell."""
        return tuple(name for name in self.features if name in CONCURRENT)


PERFORMANCE = Combination("all", ("CPU_time", "GPU_time", *MIX, FAIRNESS))
"""All features of table 4, which the performance predictor takes."""

FIGURE_7 = (
    Combination("insmix", MIX),
    Combination("insmix+CPU_time", (*MIX, "CPU_time")),
    Combination("insmix+CPU_time+fairness", (*MIX, "CPU_time", FAIRNESS)),
    PERFORMANCE,
)
"""The four schemes of figure 7; the first is of Baldini, Fink and Altman (2014)."""

_ROWS = (
    ("insmix", MIX),
    ("insmix+fairness", (*MIX, FAIRNESS)),
    ("ALU+SSE", ("ALU", "SSE")),
    ("ALU+SSE+fairness", ("ALU", "SSE", FAIRNESS)),
    ("MEM", ("MEM",)),
    ("MEM+fairness", ("MEM", FAIRNESS)),
    ("fairness", (FAIRNESS,)),
)

_COLUMNS = (
    ("", ()),
    ("CPU_time", ("CPU_time",)),
    ("GPU_time", ("GPU_time",)),
    ("CPU_time+GPU_time", ("CPU_time", "GPU_time")),
)

FIGURE_8 = tuple(
    tuple(
        Combination("+".join(filter(None, (row, column))), (*features, *times)) for column, times in _COLUMNS
    )
    for row, features in _ROWS
)
"""The grid of figure 8: parts of table 4 (rows) with neither time, either, or both (columns).

The rows are those that section 6.3 speaks of, and the same without fairness.
"""

_MISSES = ("Branch_miss", "L1_miss", "DTLB_miss")
_MISSES_SH = ("Branch_miss_sh", "L1_miss_sh", "DTLB_miss_sh")

_TABLE_7: tuple[tuple[str, ...], ...] = (
    ("CPU_power", "GPU_power", "IPC", "LLC_miss", FAIRNESS),
    ("CPU_power", "IPC", "LLC_miss", FAIRNESS),
    ("GPU_power", "IPC", "LLC_miss", FAIRNESS),
    ("CPU_power", "GPU_power", "IPC", "LLC_miss"),
    ("CPU_power", "GPU_power", "IPC", FAIRNESS),
    ("CPU_power", "GPU_power", "IPC"),
    ("CPU_power_sh", "IPC_sh", "LLC_miss_sh", FAIRNESS),
    ("CPU_power_sh", "IPC_sh", "LLC_miss_sh", FAIRNESS, *_MISSES_SH),
    ("IPC_sh", "LLC_miss_sh", FAIRNESS, *_MISSES_SH),
    ("IPC", "LLC_miss", *_MISSES, FAIRNESS),
    ("IPC", "LLC_miss", *_MISSES),
    ("IPC_sh", "LLC_miss_sh", *_MISSES_SH),
    ("IPC", "LLC_miss", FAIRNESS),
    ("IPC", "LLC_miss", "Branch_miss", "L1_miss", FAIRNESS),
    ("CPU_power_sh", "IPC_sh", *_MISSES_SH),
    ("CPU_power", "GPU_power", "LLC_miss", FAIRNESS),
    ("GPU_power", "LLC_miss", FAIRNESS, "CPU_power_sh"),
    ("GPU_power", "IPC", "LLC_miss", FAIRNESS, "CPU_power_sh"),
    ("GPU_power", "IPC", "LLC_miss", *_MISSES, FAIRNESS, "CPU_power_sh"),
    ("GPU_power", "CPU_power_sh", "IPC_sh", "LLC_miss_sh", *_MISSES_SH, FAIRNESS),
)

TABLE_7 = tuple(Combination(f"comb{place}", features) for place, features in enumerate(_TABLE_7, start=1))
"""The combinations of table 7, in its order."""

POWER = TABLE_7[15]
"""``comb16``, which the paper chooses for power: it needs no run of the bag (section 7.3)."""


class Regressor(Protocol):
    """A fitted function of rows of features."""

    @property
    def form(self) -> str:
        """What it is kept as."""
        ...

    def predict(self, rows: Reals) -> Reals:
        """What it predicts of rows, of shape ``(r, f)``: of shape ``(r,)``."""
        ...

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `kept_regressor` makes it again."""
        ...


@dataclass(frozen=True, eq=False)
class Grown:
    """A decision tree, a forest or boosted trees: a sum of trees with one output."""

    trees: Trees
    form: ClassVar[str] = "trees"

    def predict(self, rows: Reals) -> Reals:
        """Sum of the trees."""
        total: Reals = self.trees.sum(rows)[:, 0]
        return total

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        return {"form": np.array([self.form]), **self.trees.state()}


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear function: ``slopes`` of shape ``(f,)``, and the value where all features are 0."""

    slopes: Reals
    level: float
    form: ClassVar[str] = "linear"

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        values: Reals = rows @ self.slopes + self.level
        return values

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        return {"form": np.array([self.form]), "slopes": self.slopes, "level": np.array([self.level])}


@dataclass(frozen=True, eq=False)
class Network:
    """A perceptron with one hidden layer of ``h`` logistic units."""

    hidden: Reals  # Weights of the features, of shape `(f, h)`, and biases of the units, of shape `(h,)`
    bias: Reals
    output: Linear  # A linear function of the units
    form: ClassVar[str] = "network"

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        # The logistic function, without an exponential that might overflow.
        return self.output.predict(0.5 + 0.5 * np.tanh(0.5 * (rows @ self.hidden + self.bias)))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        own = {"form": np.array([self.form]), "hidden": self.hidden, "bias": self.bias}
        return {**self.output.state(), **own}


@dataclass(frozen=True, eq=False)
class Kernels:
    """A linear function of how near rows are to ``m`` support vectors, by a Gaussian of the distance."""

    vectors: Reals  # Of shape `(m, f)`
    output: Linear  # A linear function of the nearness to each
    gamma: float  # How fast nearness falls with the squared distance
    form: ClassVar[str] = "kernels"

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        sums = (rows**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)
        squares = np.maximum(sums - 2.0 * (rows @ self.vectors.T), 0.0)
        return self.output.predict(np.exp(-self.gamma * squares))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        own = {
            "form": np.array([self.form]),
            "vectors": self.vectors,
            "gamma": np.array([self.gamma]),
        }
        return {**self.output.state(), **own}


def kept_regressor(state: Mapping[str, npt.NDArray[Any]], features: int) -> Regressor:
    """Make a regressor of so many features from its arrays."""
    form = kept_names(state, "form")
    if form == ("trees",):
        trees = kept_trees(state, features)
        _check("leaf_value", trees.leaf_value.shape[1:], (1,))
        return Grown(trees)
    slopes, level = kept_reals(state, "slopes", 1), kept_reals(state, "level", 1)
    _check("level", level.shape, (1,))
    output = Linear(slopes, float(level[0]))
    if form == ("linear",):
        _check("slopes", slopes.shape, (features,))
        return output
    if form == ("network",):
        hidden, bias = kept_reals(state, "hidden", 2), kept_reals(state, "bias", 1)
        _check("hidden", hidden.shape, (features, len(slopes)))
        _check("bias", bias.shape, slopes.shape)
        return Network(hidden, bias, output)
    if form == ("kernels",):
        vectors, gamma = kept_reals(state, "vectors", 2), kept_reals(state, "gamma", 1)
        _check("vectors", vectors.shape, (len(slopes), features))
        _check("gamma", gamma.shape, (1,))
        return Kernels(vectors, output, float(gamma[0]))
    raise InputError(f"model: form: expected trees, linear, network or kernels, found {', '.join(form)}")


def _check(name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if found != expected:
        raise InputError(f"model: {name}: expected shape {expected}, found {found}")


_BEYOND = 1e30
"""Scaled features further from 0 than this are taken to be this: trees compare in single precision."""


@dataclass(frozen=True, eq=False)
class MemberColumns:
    """What makes ``k`` features, and a flag for those that may be missing, of each member of a bag."""

    names: tuple[str, ...]  # Names of the `k` features
    dropped: tuple[str, ...]  # Features that were asked for, and that no training member has
    choice: FairnessChoice  # What chooses the fairness
    usual: Reals  # What stands in for a feature that is missing: the training median, of shape `(k,)`
    # Places of features that were missing of some training members: each has a column that is 1 where it is
    # missing, and 0 elsewhere
    flagged: Integers
    # The least value among the training members, and how far the largest is above it, or 1 if they are all
    # the same: features are scaled so that they go from 0 to 1 (section 5.3), of shape `(k,)`
    low: Reals
    span: Reals

    @classmethod
    def fit(cls, names: Sequence[str], bags: Sequence[tuple[Solo, ...]]) -> MemberColumns:
        """Fit it to training bags of one size, at least one."""
        choice = FairnessChoice.fit(bags)
        values = _values(names, choice, bags)
        missing = np.isnan(values).reshape(-1, len(names))
        known = np.flatnonzero(~missing.all(axis=0)).tolist()
        if len(known) == 0:
            raise InputError(f"features: expected at least one of {', '.join(names)}, found none in the bags")
        values = values.reshape(-1, len(names))[:, known]
        usual = np.nanmedian(values, axis=0)
        complete = np.where(np.isnan(values), usual, values)
        low, high = complete.min(axis=0), complete.max(axis=0)
        return cls(
            tuple(names[place] for place in known),
            tuple(name for place, name in enumerate(names) if place not in known),
            choice,
            usual,
            np.flatnonzero(missing[:, known].any(axis=0)),
            low,
            np.where(high > low, high - low, 1.0),
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of all columns: the features, then the flags."""
        return *self.names, *(f"{self.names[place]} missing" for place in self.flagged)

    def places(self, names: Sequence[str]) -> Integers:
        """Columns of some features, with their flags."""
        wanted = [self.names.index(name) for name in names if name in self.names]
        flags = [len(self.names) + at for at, place in enumerate(self.flagged.tolist()) if place in wanted]
        return np.array([*wanted, *flags], dtype=np.int64)

    def of(self, bags: Sequence[tuple[Solo, ...]]) -> tuple[Reals, Integers]:
        """Columns of the members of ``b`` bags of ``n``.

        The members of each bag come in an order that is that of the bag in no way: the longest job alone
        first, and among jobs of one length by the columns.
        """
        values = _values(self.names, self.choice, bags)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.usual, values) - self.low) / self.span
        scaled = np.clip(scaled, -_BEYOND, _BEYOND)
        columns = np.concatenate([scaled, missing[:, :, self.flagged]], axis=2)
        times = np.array([[value_of(solo, "GPU_time") for solo in bag] for bag in bags])
        # The last key of `lexsort` is the first that it sorts by. Unknown times come last.
        keys = np.concatenate([columns[:, :, ::-1], -times[:, :, None]], axis=2)
        order = np.lexsort(np.moveaxis(keys, 2, 0), axis=-1)
        return np.take_along_axis(columns, order[:, :, None], axis=1), order

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            **self.choice.state(),
            "columns": np.array(self.names),
            "dropped": np.array(self.dropped, dtype=np.str_),
            "usual": self.usual,
            "flagged": self.flagged,
            "low": self.low,
            "span": self.span,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> MemberColumns:
        """Make it from its arrays."""
        names = kept_names(state, "columns")
        usual, low, span = (kept_reals(state, name, 1) for name in ("usual", "low", "span"))
        if not names or not len(usual) == len(low) == len(span) == len(names) or (span <= 0).any():
            raise InputError("model: columns: expected a usual value, a least one and a span of each")
        flagged = kept_integers(state, "flagged", 1, (0, len(names)))
        return cls(
            names,
            kept_names(state, "dropped"),
            FairnessChoice.from_state(state),
            usual,
            flagged,
            low,
            span,
        )


def own_first(members: int) -> Integers:
    """For each member of a bag, the places of itself and then of the others, of shape ``(n, n)``."""
    return np.array(
        [[own, *(place for place in range(members) if place != own)] for own in range(members)],
        dtype=np.int64,
    )


def _values(names: Sequence[str], choice: FairnessChoice, bags: Sequence[tuple[Solo, ...]]) -> Reals:
    """Features as they are, of shape ``(b, n, len(names))``."""
    each = {id(solo): solo for bag in bags for solo in bag}
    alone = {
        key: [np.nan if name == FAIRNESS else value_of(solo, name) for name in names]
        for key, solo in each.items()
    }
    values = np.array([[alone[id(solo)] for solo in bag] for bag in bags], dtype=np.float64)
    if FAIRNESS in names:
        values[:, :, list(names).index(FAIRNESS)] = choice.fairness(bags)
    return values


TARGETS = ("slowdown", "time_s", "power_w")
"""What may be predicted: of each member, and of the bag."""

_FEW = 16
"""So many bags are predicted by the trees of all targets at once: each pass costs more than its rows do."""


@dataclass(frozen=True, eq=False)
class Target:
    """What predicts one of `TARGETS`."""

    columns: Integers  # Columns of a member that it sees, of all members one after the other
    regressor: Regressor  # What predicts
    # The least that it learned from. Nothing below it is predicted: a linear function may fall below 0, where
    # there are no times
    least: float

    def places(self, width: int, members: int) -> Integers:
        """Where its features are in rows of the columns of all members, each of a width."""
        return (np.arange(members)[:, None] * width + self.columns).ravel()


@dataclass(frozen=True, eq=False)
class SizePredictor:
    """Predicts bags of ``n`` members."""

    members: int  # `n`
    columns: MemberColumns  # Columns of each member
    targets: Mapping[str, Target]  # What predicts each of `TARGETS` that is predicted

    def rows(self, bags: Sequence[tuple[Solo, ...]]) -> tuple[Reals, Integers]:
        """Rows of all members' columns, from each member's view: its own, then those of the others.

        The first of a bag is the view of the bag, too: its members in their own order, the longest first.
        """
        values, order = self.columns.of(bags)
        return values[:, own_first(self.members)].reshape(len(bags), self.members, -1), order

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> dict[str, Reals]:
        """Predict ``b`` bags of its size."""
        rows, order = self.rows(bags)
        result: dict[str, Reals] = {}
        for name, values in self._each(rows).items():
            result[name] = np.maximum(values, self.targets[name].least)
        if "slowdown" in result:
            each = np.empty_like(result["slowdown"])
            np.put_along_axis(each, order, result["slowdown"], axis=1)
            result["slowdown"] = each
        return result

    def _each(self, rows: Reals) -> dict[str, Reals]:
        """What the targets' regressors say: slowdowns of shape ``(b, n)``, the others of shape ``(b,)``."""
        b, n, width = rows.shape
        if b <= _FEW and self._all_trees is not None:
            sums = self._all_trees.sum(rows.reshape(b, n * width))
            slots = np.cumsum([0, *(n if name == "slowdown" else 1 for name in self.targets)])
            found = zip(self.targets, np.split(sums, slots[1:-1], axis=1), strict=True)
            return {name: each if name == "slowdown" else each[:, 0] for name, each in found}
        result = {}
        for name, target in self.targets.items():
            seen = rows[..., target.places(width // n, n)]
            if name == "slowdown":
                result[name] = target.regressor.predict(seen.reshape(b * n, -1)).reshape(b, n)
            else:
                result[name] = target.regressor.predict(seen[:, 0])
        return result

    @cached_property
    def _all_trees(self) -> Trees | None:
        """The trees of all targets on the views of a bag side by side, with an output for each."""
        width, parts = len(self.columns.titles) * self.members, []
        for name, target in self.targets.items():
            if not isinstance(target.regressor, Grown):
                return None
            own = target.places(len(self.columns.titles), self.members)
            views = self.members if name == "slowdown" else 1
            parts += [target.regressor.trees.reading((own + view * width).tolist()) for view in range(views)]
        outputs = np.eye(len(parts))
        return joined([trees.onto(output[None]) for trees, output in zip(parts, outputs, strict=True)])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        result = {**self.columns.state(), "members": np.array([self.members])}
        for name, target in self.targets.items():
            own = {"columns": target.columns, "least": np.array([target.least])}
            for key, array in {**target.regressor.state(), **own}.items():
                result[f"{name}.{key}"] = array
        return result

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> SizePredictor:
        """Make it from its arrays."""
        members = kept_integers(state, "members", 1, (2, 1 << 10))
        if len(members) != 1:
            raise InputError(f"model: members: expected one integer, found {members.tolist()}")
        columns, size = MemberColumns.from_state(state), int(members[0])
        kept = {name: arrays_of(state, name) for name in TARGETS}
        targets = {
            name: _target(arrays, len(columns.titles), size) for name, arrays in kept.items() if arrays
        }
        if not targets:
            raise InputError(f"model: expected arrays of one of {', '.join(TARGETS)}, found none")
        return cls(size, columns, targets)


def _target(state: Mapping[str, npt.NDArray[Any]], width: int, members: int) -> Target:
    columns, least = kept_integers(state, "columns", 1, (0, width)), kept_reals(state, "least", 1)
    if len(columns) == 0 or len(least) != 1:
        raise InputError("model: expected columns and one least value of each target, found others")
    return Target(columns, kept_regressor(state, len(columns) * members), float(least[0]))


DEPTH = 10
"""Splits from the root to a leaf, at most, of the decision tree and the forest."""

PERFORMANCE_DEPTH = 7
"""The same of the decision tree that predicts times (section 5.4.1)."""

TREES = 100
"""Trees of the forest."""

UNITS = 100
"""Units of the perceptron's hidden layer."""


def fit_regressor(kind: str, rows: Reals, wanted: Reals, seed: int, *, depth: int = DEPTH) -> Regressor:
    """Fit a regressor, in one thread: the same rows and seed give the same numbers."""
    low = float(wanted.min())
    span = float(wanted.max()) - low or 1.0
    fitted = estimator(kind, seed, depth)
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        # A perceptron that has not converged after the default number of rounds is what the table asks for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(rows, (wanted - low) / span)
    _, kept = KINDS[kind]
    return kept(fitted, low, span)


def estimator(kind: str, seed: int, depth: int = DEPTH) -> Any:
    """The regressor of scikit-learn, not fitted."""
    try:
        import sklearn.ensemble
        import sklearn.linear_model
        import sklearn.neural_network
        import sklearn.svm
        import sklearn.tree
    except ImportError as error:
        raise MissingExtraError("train", "fitting a model") from error
    made, _ = KINDS[kind]
    return made(sklearn, seed % 2**31, depth)


def _tree(fitted: Any, low: float, span: float) -> Regressor:
    return _moved(trees_of_tree(fitted), low, span)


def _forest(fitted: Any, low: float, span: float) -> Regressor:
    return _moved(trees_of_forest(fitted), low, span)


def _boosting(fitted: Any, low: float, span: float) -> Regressor:
    return _moved(trees_of_gradient_boosting(fitted), low, span)


def _moved(trees: Trees, low: float, span: float) -> Grown:
    scaled = trees.onto(np.array([[span]]))
    return Grown(joined([constant(np.array([low])), scaled]))


def _linear(fitted: Any, low: float, span: float) -> Regressor:
    return Linear(fitted.coef_ * span, float(fitted.intercept_) * span + low)


def _network(fitted: Any, low: float, span: float) -> Regressor:
    (hidden, output), (bias, level) = fitted.coefs_, fitted.intercepts_
    return Network(hidden, bias, Linear(output[:, 0] * span, float(level[0]) * span + low))


def _kernels(fitted: Any, low: float, span: float) -> Regressor:
    output = Linear(fitted.dual_coef_[0] * span, float(fitted.intercept_[0]) * span + low)
    return Kernels(fitted.support_vectors_, output, float(fitted._gamma))


_Made = Callable[[Any, int, int], Any]
_Kept = Callable[[Any, float, float], Regressor]

KINDS: Mapping[str, tuple[_Made, _Kept]] = MappingProxyType(
    {
        "decision-tree": (
            lambda sk, seed, depth: sk.tree.DecisionTreeRegressor(max_depth=depth, random_state=seed),
            _tree,
        ),
        "forest": (
            lambda sk, seed, depth: sk.ensemble.RandomForestRegressor(
                TREES, max_depth=depth, random_state=seed
            ),
            _forest,
        ),
        "boosting": (
            lambda sk, seed, depth: sk.ensemble.GradientBoostingRegressor(
                loss="squared_error", random_state=seed
            ),
            _boosting,
        ),
        "linear": (lambda sk, seed, depth: sk.linear_model.LinearRegression(fit_intercept=True), _linear),
        "mlp": (
            lambda sk, seed, depth: sk.neural_network.MLPRegressor(
                hidden_layer_sizes=(UNITS,), activation="logistic", random_state=seed
            ),
            _network,
        ),
        "svr": (lambda sk, seed, depth: sk.svm.SVR(kernel="rbf"), _kernels),
    }
)
"""For each kind, what makes scikit-learn's regressor, and what keeps a fitted one as numbers."""


MOST_PERMUTED = 3
"""Bags of more members are learned from in one order only."""


@dataclass(frozen=True)
class Recipe:
    """What is fitted."""

    kind: str  # Kind of regressor; see `crosscast.predict.corun.moolchandani2022.KINDS`
    performance: Combination  # Features that times and slowdowns, and power, are predicted from
    power: Combination
    permuted: bool  # Whether the members of a training bag are put in every order (section 5.2), or in one

    def features(self, target: str) -> tuple[str, ...]:
        """Features that a target is predicted from."""
        return (self.power if target == "power_w" else self.performance).features

    def depth(self, target: str) -> int:
        """Depth of the trees for a target."""
        return PERFORMANCE_DEPTH if self.kind == "decision-tree" and target != "power_w" else DEPTH


def fit_size(recipe: Recipe, bags: Sequence[Bag], seed: int) -> SizePredictor | None:
    """Fit a predictor of bags of one size; ``None`` if nothing is known of them that it could predict."""
    wanted = {name: _known(name, bags) for name in TARGETS}
    kept = {name: values for name, values in wanted.items() if not np.isnan(values).all()}
    told = [name for name in TARGETS if name in kept]
    if not told:
        return None
    rows_of = [
        place for place in range(len(bags)) if any(~np.isnan(kept[name][place]).all() for name in told)
    ]
    solos = [bags[place].solos for place in rows_of]
    names = dict.fromkeys(feature for name in told for feature in recipe.features(name))
    columns = MemberColumns.fit(tuple(names), solos)
    values, order = columns.of(solos)
    targets = {}
    for name in told:
        used = columns.places(recipe.features(name))
        if len(used) == 0:
            continue
        known = kept[name][rows_of]
        known = np.take_along_axis(known, order, axis=1) if name == "slowdown" else known
        rows, aims = _rows(values[:, :, used], known, recipe.permuted)
        finite = ~np.isnan(aims)
        rows, aims = rows[finite], aims[finite]
        regressor = fit_regressor(recipe.kind, rows, aims, seed, depth=recipe.depth(name))
        targets[name] = Target(used, regressor, float(aims.min()))
    return SizePredictor(len(bags[0].members), columns, targets)


def _known(target: str, bags: Sequence[Bag]) -> Reals:
    """What is known of a target: slowdowns of shape ``(b, n)``, the others of shape ``(b,)``."""
    if target == "slowdown":
        return np.array([[member.slowdown for member in bag.members] for bag in bags], dtype=np.float64)
    return np.array([getattr(bag, target) for bag in bags], dtype=np.float64)


def _rows(values: Reals, known: Reals, permuted: bool) -> tuple[Reals, Reals]:
    """Rows to learn from, and what is known of each."""
    b, n, _ = values.shape
    orders = own_first(n) if known.ndim == 2 else own_first(n)[:1]
    if permuted and n <= MOST_PERMUTED:
        orders = np.concatenate([_permuted(order, 1 if known.ndim == 2 else 0) for order in orders])
    each = known[:, orders[:, 0]] if known.ndim == 2 else np.repeat(known[:, None], len(orders), axis=1)
    return values[:, orders].reshape(b * len(orders), -1), each.ravel()


def _permuted(order: Integers, stays: int) -> Integers:
    """All orders of some places, of which the first few stay."""
    head, tail = order[:stays].tolist(), order[stays:].tolist()
    return np.array([[*head, *each] for each in permutations(tail)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PublishedCoRunPredictor:
    """One predictor a size (sections 5.1.3 and 8).

    Where the training bags of a size had slowdowns and no times, its times are made of slowdowns by
    `crosscast.predict.corun.forecast.mix_times`, and those of fewer members are predicted, too, or taken as
    `with_fewer` says if there is no predictor of their size. Where they had times and no slowdowns,
    slowdowns are those of `even_slowdown`.
    """

    sizes: Mapping[int, SizePredictor]  # Predictors by number of members

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of sizes that it was fitted to; see `CoRunPredictor.predict`."""
        nothing = CoRunPrediction.nothing([len(bag) for bag in bags])
        slowdown, time_s, power_w = list(nothing.slowdown), nothing.time_s, nothing.power_w
        for members in sorted({len(bag) for bag in bags}):
            predictor = self.of_size(members)
            places = [place for place, bag in enumerate(bags) if len(bag) == members]
            asked = [bags[place] for place in places]
            found = self._completed(predictor.predict(asked), asked)
            for place, each in zip(places, found.get("slowdown", ()), strict=False):
                slowdown[place] = each
            time_s[places] = found.get("time_s", np.nan)
            power_w[places] = found.get("power_w", np.nan)
        return CoRunPrediction(tuple(slowdown), time_s, power_w, nothing.fits)

    def of_size(self, members: int) -> SizePredictor:
        """The predictor of bags of so many members."""
        if members not in self.sizes:
            known = ", ".join(str(size) for size in self.sizes)
            raise InputError(
                f"bag: expected as many members as in bags that the model was trained on ({known}), "
                f"found {members}"
            )
        return self.sizes[members]

    @property
    def dropped(self) -> Mapping[int, tuple[str, ...]]:
        """By size, the features that it was to learn from, and that no training member had."""
        return {members: each.columns.dropped for members, each in self.sizes.items()}

    def _completed(self, found: dict[str, Reals], bags: Sequence[tuple[Solo, ...]]) -> dict[str, Reals]:
        if ("slowdown" in found) == ("time_s" in found):
            return found
        alone = np.array([[value_of(solo, "GPU_time") for solo in bag] for bag in bags])
        if "time_s" in found:
            every = even_slowdown(alone, found["time_s"])
            return {**found, "slowdown": np.repeat(every[:, None], alone.shape[1], axis=1)}
        slowdown = found["slowdown"]

        def slowdowns_left(running: Flags) -> Reals:
            left = running.sum(axis=1)
            result = with_fewer(slowdown, running.shape[1], left[:, None])
            for members in {int(count) for count in left} & set(self.sizes):
                rows = np.flatnonzero(left == members).tolist()
                parts = [
                    tuple(solo for solo, runs in zip(bags[row], running[row], strict=True) if runs)
                    for row in rows
                ]
                predicted = self.sizes[members].predict(parts)
                if "slowdown" in predicted:
                    fewer = result[rows]
                    fewer[running[rows]] = predicted["slowdown"].ravel()
                    result[rows] = fewer
            return result

        return {**found, "time_s": mix_times(alone, slowdown, slowdowns_left).time_s}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "sizes": np.array(sorted(self.sizes)),
            **{
                f"{size}.{name}": array
                for size, each in self.sizes.items()
                for name, array in each.state().items()
            },
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> PublishedCoRunPredictor:
        """Make it from its arrays."""
        sizes = kept_integers(state, "sizes", 1, (2, 1 << 16)).tolist()
        made = {size: SizePredictor.from_state(arrays_of(state, str(size))) for size in sizes}
        if not made or any(each.members != size for size, each in made.items()):
            raise InputError(f"model: sizes: expected those of the predictors, found {sizes}")
        return cls(made)


@dataclass(frozen=True)
class Published:
    """A regressor of table 6 for each size of bags, and for each of bag time, power and slowdown.

    The paper predicts bag time and power. Slowdowns, which are all that other data have, are predicted from
    the features of times, those of the member itself first.
    """

    kind: str  # Kind of regressor; see `crosscast.predict.corun.moolchandani2022.KINDS`
    performance: Combination = PERFORMANCE  # Features that times, and power, are predicted from
    power: Combination = POWER
    # Whether training bags of two and three are put in every order, as the paper permutes benchmarks (section
    # 5.2). What is predicted is always in one order, so that it does not depend on that of the bag. On times
    # of pairs that follow from gavel's V100, all kinds but the perceptron err less by it, if little
    permuted: bool = True
    # Whether to take all other features of the solo runs, too, which is not as published. They are taken in
    # any case where no training member has any feature of a combination: else there were no model
    others: bool = False

    def __post_init__(self) -> None:
        """Check the kind, and that the features are known before a bag runs."""
        if self.kind not in KINDS:
            raise InputError(f"model: expected one of {', '.join(KINDS)}, found {self.kind!r}")
        for combination in (self.performance, self.power):
            if combination.concurrent:
                raise InputError(
                    f"{combination.name}: expected features of applications alone, found "
                    f"{', '.join(combination.concurrent)}, which only a run of the bag itself tells"
                )

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return f"published-{self.kind}"

    def fit(self, co_runs: CoRuns, seed: int) -> PublishedCoRunPredictor:
        """Fit it to bags in which no application failed; see `CoRunModel.fit`."""
        by_size: dict[int, list[Bag]] = {}
        for bag in co_runs.bags:
            if not bag.failed and len(bag.members) > 1:
                by_size.setdefault(len(bag.members), []).append(bag)
        fitted = {
            members: fit_size(self._recipe(bags), bags, seed) for members, bags in sorted(by_size.items())
        }
        sizes = {members: each for members, each in fitted.items() if each is not None}
        if not sizes:
            raise InputError(
                f"{co_runs.label}: expected bags with a slowdown, a time or a power to learn from, found none"
            )
        return PublishedCoRunPredictor(sizes)

    def _recipe(self, bags: list[Bag]) -> Recipe:
        solos = [bag.solos for bag in bags]

        def complete(combination: Combination) -> Combination:
            features = combination.features
            if not self.others and len(unknown_features(features, solos)) < len(features):
                return combination
            more = tuple(name for name in other_features(solos) if name not in features)
            return replace(combination, features=(*features, *more))

        return Recipe(self.kind, complete(self.performance), complete(self.power), self.permuted)
