"""The published models of Moolchandani, Kumar and Sarangi (2022): features, regressors, a model a size."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from types import MappingProxyType
from typing import Annotated, Any, Protocol

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import Bag, CoRuns, Solo
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.corun.forecast import (
    CoRunPrediction,
    Mix,
    even_slowdown,
    mix_times,
    remaining_slowdowns,
    with_fewer,
)
from crosscast.predict.serialization import Array, Nested, Stored
from crosscast.predict.trees import (
    Trees,
    constant,
    joined,
    trees_of_forest,
    trees_of_gradient_boosting,
    trees_of_tree,
)

LEVELS = ("low", "medium", "high")
"""The microbenchmarks with which each application has run (section 5.1.4)."""

PRESSURES = ("llc_miss", "inflicted_high", "bandwidth_bytes_per_s")
"""What the pressure of an application is told by.

The paper's misses; where counters are not to be had, how much the application slowed the microbenchmark High
down, or its memory traffic.
"""


def fairness_with(run: Solo, level: str) -> float:
    """Fairness of an application and a microbenchmark; not a number where it is not known.

    Where it was not written down, it is made of the slowdowns of both: the lesser over the greater.
    """
    known = run.features.get(f"fairness_{level}")
    if known is not None:
        return known
    own, other = (run.features.get(f"{what}_{level}", math.nan) for what in ("slowdown", "inflicted"))
    return min(own, other) / max(own, other) if own > 0 and other > 0 else math.nan


@dataclass(frozen=True, eq=False)
class FairnessChoice(Stored):
    """Which fairness of an application stands for its fairness in a mix (section 5.1.4).

    In a mix, the pressure of the others on the last-level cache, the sum of their misses, says which of the
    three microbenchmarks they resemble.
    """

    # Which of `PRESSURES` tells it; nothing where no application has any: all are medium then
    pressure: str
    pressure_usual: float  # What stands in for the pressure of one that lacks it: the training median
    # Sums of the others' pressures above which they are medium, and high
    pressure_thresholds: Annotated[Reals, Array("2")]

    @classmethod
    def fit(cls, mixes: Sequence[Mix]) -> FairnessChoice:
        """Fit it to mixes of one size.

        The paper does not say how its thresholds were found. Here they are the tertiles of the sums in the
        training mixes. Pressure is told by what most have, and differs among them; of equals, by the first.
        """
        known = {name: [_pressure(run, name) for mix in mixes for run in mix] for name in PRESSURES}
        counts = {name: _count_known(values) for name, values in known.items()}
        best = max(PRESSURES, key=lambda name: counts[name])
        if counts[best] == 0:
            return cls("", 0.0, np.zeros(2))
        unfitted = cls(best, float(np.nanmedian(known[best])), np.zeros(2))
        return replace(unfitted, pressure_thresholds=np.quantile(unfitted.sums(mixes), [1 / 3, 2 / 3]))

    def check(self) -> None:
        """Refuse another pressure, and thresholds in the wrong order."""
        if self.pressure not in ("", *PRESSURES):
            expected = f"one of {', '.join(PRESSURES)}"
            raise InputError.of(field="pressure", expected=expected, found=repr(self.pressure))
        low, high = self.pressure_thresholds.tolist()
        if low > high:
            expected, found = "two numbers that do not fall", f"{low:g} and {high:g}"
            raise InputError.of(field="pressure_thresholds", expected=expected, found=found)

    def sums(self, mixes: Sequence[Mix]) -> Reals:
        """Sum of the pressures of the others, for each of ``b`` mixes of ``n``, of shape (b, n)."""
        own = np.array([[_pressure(run, self.pressure) for run in mix] for mix in mixes])
        own = np.where(np.isnan(own), self.pressure_usual, own)
        # Not the whole sum less the own one: of equal co-runners, rounding would tell them apart.
        others = [np.delete(own, place, axis=1).sum(axis=1) for place in range(own.shape[1])]
        return np.stack(others, axis=1)

    def levels(self, mixes: Sequence[Mix]) -> Integers:
        """Places in `LEVELS` of what each is up against, of shape (b, n)."""
        if not self.pressure:
            return np.ones((len(mixes), len(mixes[0])), dtype=np.int64)
        return np.searchsorted(self.pressure_thresholds, self.sums(mixes), side="left").astype(np.int64)

    def fairness(self, mixes: Sequence[Mix]) -> Reals:
        """Fairness chosen for each, of shape (b, n); not a number where it is not known."""
        levels = self.levels(mixes).tolist()
        return np.array(
            [
                [fairness_with(run, LEVELS[place]) for run, place in zip(mix, places, strict=True)]
                for mix, places in zip(mixes, levels, strict=True)
            ]
        )


def _pressure(run: Solo, name: str) -> float:
    return run.features.get(name, math.nan)


def _count_known(values: Sequence[float]) -> int:
    """How many are known; none if they do not differ, as of a counter that does not count."""
    known = [value for value in values if not math.isnan(value)]
    return len(known) if len(set(known)) > 1 else 0


FAIRNESS = "fairness"
"""The fairness of an application, chosen by what the others do to the cache (section 5.1.4)."""

_INSTRUCTIONS = MappingProxyType(
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

MIX = tuple(_INSTRUCTIONS)
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
"""Where each is among the features of an isolated run."""

INDIVIDUAL = ("GPU_time", "GPU_power", *_COLUMNS)
"""Features of an application alone. The two of the GPU are those of the device at hand, whatever it is."""

CONCURRENT = (
    "IPC_sh",
    "LLC_miss_sh",
    "Branch_miss_sh",
    "L1_miss_sh",
    "DTLB_miss_sh",
    "CPU_power_sh",
)
"""Counters and power of the whole mix on a CPU."""


def value_of(run: Solo, name: str) -> float:
    """A feature of an application alone; not a number where it is not known."""
    if name == "GPU_time":
        return math.nan if run.time_s is None else run.time_s
    if name == "GPU_power":
        return math.nan if run.power_w is None else run.power_w
    return run.features.get(_COLUMNS.get(name, name), math.nan)


def unknown_features(names: Iterable[str], mixes: Sequence[Mix]) -> tuple[str, ...]:
    """Which features nothing in the mixes has; a combination with such a one is not available on them."""
    runs = {id(run): run for mix in mixes for run in mix}.values()

    def known(name: str) -> bool:
        if name == FAIRNESS:
            return any(not math.isnan(fairness_with(run, level)) for run in runs for level in LEVELS)
        return name not in CONCURRENT and any(not math.isnan(value_of(run, name)) for run in runs)

    return tuple(name for name in names if not known(name))


def other_features(mixes: Sequence[Mix]) -> tuple[str, ...]:
    """Names of what applications of the mixes have besides the features of the paper, sorted."""
    found = {name for mix in mixes for run in mix for name in run.features}
    return tuple(sorted(found - set(_COLUMNS.values())))


@dataclass(frozen=True)
class Combination:
    """Features that a predictor is given: those of each application by the paper's names, and `FAIRNESS`."""

    name: str
    features: tuple[str, ...]

    @property
    def concurrent(self) -> tuple[str, ...]:
        """Those that only a run of the mix itself would tell."""
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

_FIGURE_8_ROWS = (
    ("insmix", MIX),
    ("insmix+fairness", (*MIX, FAIRNESS)),
    ("ALU+SSE", ("ALU", "SSE")),
    ("ALU+SSE+fairness", ("ALU", "SSE", FAIRNESS)),
    ("MEM", ("MEM",)),
    ("MEM+fairness", ("MEM", FAIRNESS)),
    ("fairness", (FAIRNESS,)),
)

_FIGURE_8_TIMES = ((), ("CPU_time",), ("GPU_time",), ("CPU_time", "GPU_time"))

FIGURE_8 = tuple(
    tuple(Combination("+".join((row, *times)), (*features, *times)) for times in _FIGURE_8_TIMES)
    for row, features in _FIGURE_8_ROWS
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
"""``comb16``, which the paper chooses for power: it needs no run of the mix (section 7.3)."""


class Regressor(Protocol):
    """A fitted function of rows of features."""

    def predict(self, rows: Reals) -> Reals:
        """What it predicts of rows, (r, f): of shape (r,)."""
        ...

    def check_width(self, features: int) -> None:
        """Refuse rows of so many features if it is of others."""
        ...


@dataclass(frozen=True, eq=False)
class Grown(Stored, kind="corun-trees"):
    """A decision tree, a forest or boosted trees: a sum of trees with one output."""

    trees: Annotated[Trees, Nested(flat=True)]

    def predict(self, rows: Reals) -> Reals:
        """Sum of the trees."""
        total: Reals = self.trees.sum(rows)[:, 0]
        return total

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        self.trees.check_width(features, 1)


@dataclass(frozen=True, eq=False)
class Linear(Stored, kind="corun-linear"):
    """A linear function."""

    slopes: Annotated[Reals, Array("f")]
    level: float  # Value where all features are 0

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        values: Reals = rows @ self.slopes + self.level
        return values

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        _check_width("slopes", len(self.slopes), features)


@dataclass(frozen=True, eq=False)
class Network(Stored, kind="corun-network"):
    """A perceptron with one hidden layer of ``h`` logistic units."""

    hidden: Annotated[Reals, Array("f h")]  # Weights of the features
    bias: Annotated[Reals, Array("h")]
    output: Annotated[Linear, Nested(flat=True)]  # A linear function of the units

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        # The logistic function, without an exponential that might overflow.
        return self.output.predict(0.5 + 0.5 * np.tanh(0.5 * (rows @ self.hidden + self.bias)))

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        _check_width("hidden", len(self.hidden), features)
        self.output.check_width(len(self.bias))


@dataclass(frozen=True, eq=False)
class Kernels(Stored, kind="corun-kernels"):
    """A linear function of how near rows are to ``m`` support vectors, by a Gaussian of the distance."""

    vectors: Annotated[Reals, Array("m f")]
    output: Annotated[Linear, Nested(flat=True)]  # A linear function of the nearness to each
    gamma: float  # How fast nearness falls with the squared distance

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        sums = (rows**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)
        squares = np.maximum(sums - 2.0 * (rows @ self.vectors.T), 0.0)
        return self.output.predict(np.exp(-self.gamma * squares))

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        _check_width("vectors", self.vectors.shape[1], features)
        self.output.check_width(len(self.vectors))


def _check_width(field: str, found: int, expected: int) -> None:
    if found != expected:
        raise InputError.of(field=field, expected=f"weights of {expected} features", found=found)


_BEYOND = 1e30
"""Scaled features further from 0 than this are taken to be this: trees compare in single precision."""


@dataclass(frozen=True, eq=False)
class MixColumns(Stored):
    """What makes ``k`` features, and a flag for those that may be missing, of each co-runner of a mix."""

    choice: Annotated[FairnessChoice, Nested(flat=True)]  # What chooses the fairness
    columns: Annotated[tuple[str, ...], Array("k", least=1)]  # Names of the features
    dropped: Annotated[tuple[str, ...], Array("d")]  # Features that were asked for, and that nothing has
    usual: Annotated[Reals, Array("k")]  # What stands in for a feature that is missing: the training median
    # Places of features that were missing of some in the training: each has a column that is 1 where it is
    # missing, and 0 elsewhere
    flagged: Annotated[Integers, Array("m", low=0, below="k")]
    # The least value in the training, and how far the largest is above it, or 1 if they are all the same:
    # features are scaled so that they go from 0 to 1 (section 5.3)
    low: Annotated[Reals, Array("k")]
    span: Annotated[Reals, Array("k", above=0)]

    @classmethod
    def fit(cls, names: Sequence[str], mixes: Sequence[Mix]) -> MixColumns:
        """Fit it to training mixes of one size, at least one."""
        choice = FairnessChoice.fit(mixes)
        values = _values(names, choice, mixes)
        missing = np.isnan(values).reshape(-1, len(names))
        known = np.flatnonzero(~missing.all(axis=0)).tolist()
        if len(known) == 0:
            raise InputError(
                f"features: expected at least one of {', '.join(names)}, found none in the mixes"
            )
        values = values.reshape(-1, len(names))[:, known]
        usual = np.nanmedian(values, axis=0)
        complete = np.where(np.isnan(values), usual, values)
        low, high = complete.min(axis=0), complete.max(axis=0)
        return cls(
            choice,
            tuple(names[place] for place in known),
            tuple(name for place, name in enumerate(names) if place not in known),
            usual,
            np.flatnonzero(missing[:, known].any(axis=0)),
            low,
            np.where(high > low, high - low, 1.0),
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of all columns: the features, then the flags."""
        return *self.columns, *(f"{self.columns[place]} missing" for place in self.flagged)

    def places(self, names: Sequence[str]) -> Integers:
        """Columns of some features, with their flags."""
        wanted = [self.columns.index(name) for name in names if name in self.columns]
        flags = [len(self.columns) + at for at, place in enumerate(self.flagged.tolist()) if place in wanted]
        return np.array([*wanted, *flags], dtype=np.int64)

    def of(self, mixes: Sequence[Mix]) -> tuple[Reals, Integers]:
        """Columns of ``b`` mixes of ``n``, (b, n, columns), and the places that they come from, (b, n).

        The co-runners of each mix come in an order that is that of the mix in no way: the longest job alone
        first, and among jobs of one length by the columns.
        """
        values = _values(self.columns, self.choice, mixes)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.usual, values) - self.low) / self.span
        scaled = np.clip(scaled, -_BEYOND, _BEYOND)
        columns = np.concatenate([scaled, missing[:, :, self.flagged]], axis=2)
        times = np.array([[value_of(run, "GPU_time") for run in mix] for mix in mixes])
        # The last key of `lexsort` is the first that it sorts by. Unknown times come last.
        keys = np.concatenate([columns[:, :, ::-1], -times[:, :, None]], axis=2)
        order = np.lexsort(np.moveaxis(keys, 2, 0), axis=-1)
        return np.take_along_axis(columns, order[:, :, None], axis=1), order


def own_first(members: int) -> Integers:
    """For each co-runner of a mix, the places of itself and then of the others, of shape (n, n)."""
    return np.array(
        [[own, *(place for place in range(members) if place != own)] for own in range(members)],
        dtype=np.int64,
    )


def _values(names: Sequence[str], choice: FairnessChoice, mixes: Sequence[Mix]) -> Reals:
    """Features as they are, of shape (b, n, names)."""
    each = {id(run): run for mix in mixes for run in mix}
    alone = {
        key: [np.nan if name == FAIRNESS else value_of(run, name) for name in names]
        for key, run in each.items()
    }
    values = np.array([[alone[id(run)] for run in mix] for mix in mixes], dtype=np.float64)
    if FAIRNESS in names:
        values[:, :, list(names).index(FAIRNESS)] = choice.fairness(mixes)
    return values


TARGETS = ("slowdown", "time_s", "power_w")
"""What may be predicted: of each co-runner, and of the mix."""

_FEW = 16
"""So many mixes are predicted by the trees of all targets at once: each pass costs more than its rows do."""


@dataclass(frozen=True, eq=False)
class Target(Stored):
    """What predicts one of `TARGETS`."""

    columns: Annotated[Integers, Array("c", low=0, least=1)]  # Columns of a co-runner that it sees, of each
    regressor: Regressor
    # The least that it learned from. Nothing below it is predicted: a linear function may fall below 0, where
    # there are no times
    least: float

    def places(self, width: int, members: int) -> Integers:
        """Where its features are in rows of the columns of all co-runners, each of a width."""
        return (np.arange(members)[:, None] * width + self.columns).ravel()


@dataclass(frozen=True, eq=False)
class SizePredictor(Stored):
    """Predicts mixes of ``n`` co-runners."""

    members: Annotated[int, Array(low=2, below=1 << 10)]  # `n`
    columns: Annotated[MixColumns, Nested(flat=True)]  # Columns of each co-runner
    slowdown: Target | None  # What predicts each of `TARGETS`; `None` for what was not known
    time_s: Target | None
    power_w: Target | None

    def check(self) -> None:
        """Refuse targets of other columns."""
        width = len(self.columns.titles)
        for target in self.targets.values():
            if target.columns.max() >= width:
                found = int(target.columns.max())
                raise InputError.of(field="columns", expected=f"places below {width}", found=found)
            target.regressor.check_width(len(target.columns) * self.members)
        if not self.targets:
            raise InputError.of(expected=f"one of {', '.join(TARGETS)}", found="none")

    @cached_property
    def targets(self) -> Mapping[str, Target]:
        """What predicts each of `TARGETS` that is predicted."""
        return {name: target for name in TARGETS if (target := getattr(self, name)) is not None}

    def rows(self, mixes: Sequence[Mix]) -> tuple[Reals, Integers]:
        """Rows of all columns, from each co-runner's view: its own, then those of the others.

        The first of a mix is the view of the mix, too: its co-runners in their own order, the longest first.
        """
        values, order = self.columns.of(mixes)
        return values[:, own_first(self.members)].reshape(len(mixes), self.members, -1), order

    def predict(self, mixes: Sequence[Mix]) -> dict[str, Reals]:
        """Predict ``b`` mixes of its size: slowdowns of shape (b, n), the others of shape (b,)."""
        rows, order = self.rows(mixes)
        found = {
            name: np.maximum(values, self.targets[name].least) for name, values in self._each(rows).items()
        }
        if "slowdown" in found:
            each = np.empty_like(found["slowdown"])
            np.put_along_axis(each, order, found["slowdown"], axis=1)
            found["slowdown"] = each
        return found

    def _each(self, rows: Reals) -> dict[str, Reals]:
        """What the targets' regressors say."""
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
        """The trees of all targets on the views of a mix side by side, with an output for each."""
        width, parts = len(self.columns.titles) * self.members, []
        for name, target in self.targets.items():
            if not isinstance(target.regressor, Grown):
                return None
            own = target.places(len(self.columns.titles), self.members)
            views = self.members if name == "slowdown" else 1
            parts += [target.regressor.trees.reading((own + view * width).tolist()) for view in range(views)]
        outputs = np.eye(len(parts))
        return joined([trees.onto(output[None]) for trees, output in zip(parts, outputs, strict=True)])


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
    _, as_arrays = KINDS[kind]
    return as_arrays(fitted, low, span)


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


def _grown(trees_of: Callable[[Any], Trees]) -> Callable[[Any, float, float], Regressor]:
    def grown(fitted: Any, low: float, span: float) -> Regressor:
        return Grown(joined([constant(np.array([low])), trees_of(fitted).onto(np.array([[span]]))]))

    return grown


def _linear(fitted: Any, low: float, span: float) -> Regressor:
    return Linear(fitted.coef_ * span, float(fitted.intercept_) * span + low)


def _network(fitted: Any, low: float, span: float) -> Regressor:
    (hidden, output), (bias, level) = fitted.coefs_, fitted.intercepts_
    return Network(hidden, bias, Linear(output[:, 0] * span, float(level[0]) * span + low))


def _kernels(fitted: Any, low: float, span: float) -> Regressor:
    output = Linear(fitted.dual_coef_[0] * span, float(fitted.intercept_[0]) * span + low)
    return Kernels(fitted.support_vectors_, output, float(fitted._gamma))


KINDS: Mapping[str, tuple[Callable[[Any, int, int], Any], Callable[[Any, float, float], Regressor]]] = (
    MappingProxyType(
        {
            "decision-tree": (
                lambda sk, seed, depth: sk.tree.DecisionTreeRegressor(max_depth=depth, random_state=seed),
                _grown(trees_of_tree),
            ),
            "forest": (
                lambda sk, seed, depth: sk.ensemble.RandomForestRegressor(
                    TREES, max_depth=depth, random_state=seed
                ),
                _grown(trees_of_forest),
            ),
            "boosting": (
                lambda sk, seed, depth: sk.ensemble.GradientBoostingRegressor(
                    loss="squared_error", random_state=seed
                ),
                _grown(trees_of_gradient_boosting),
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
)
"""The regressors of table 6: what makes scikit-learn's, and what keeps a fitted one as arrays."""


MOST_PERMUTED = 3
"""Mixes of more are learned from in one order only."""


@dataclass(frozen=True, eq=False)
class PublishedCoRunPredictor(Stored, kind="corun-published"):
    """One predictor a size (sections 5.1.3 and 8).

    Where the training mixes of a size had slowdowns and no times, its times are made of slowdowns by
    `mix_times`, and those of fewer co-runners are predicted, too, or taken as `with_fewer` says if there is
    no predictor of their size. Where they had times and no slowdowns, slowdowns are those of `even_slowdown`.
    """

    sizes: tuple[SizePredictor, ...]  # Predictors by ascending numbers of co-runners

    def check(self) -> None:
        """Refuse sizes that are not ascending."""
        found = [each.members for each in self.sizes]
        if not found or sorted(set(found)) != found:
            raise InputError.of(field="sizes", expected="predictors of ascending sizes", found=found)

    @cached_property
    def by_size(self) -> Mapping[int, SizePredictor]:
        """Predictors by number of co-runners."""
        return {each.members: each for each in self.sizes}

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of sizes that it was fitted to."""
        nothing = CoRunPrediction.nothing([len(mix) for mix in mixes])
        slowdown, time_s, power_w = list(nothing.slowdown), nothing.time_s, nothing.power_w
        for members in sorted({len(mix) for mix in mixes}):
            predictor = self.of_size(members)
            places = [place for place, mix in enumerate(mixes) if len(mix) == members]
            asked = [mixes[place] for place in places]
            found = self._completed(predictor.predict(asked), asked)
            for place, each in zip(places, found.get("slowdown", ()), strict=False):
                slowdown[place] = each
            time_s[places] = found.get("time_s", np.nan)
            power_w[places] = found.get("power_w", np.nan)
        return CoRunPrediction(tuple(slowdown), time_s, power_w, nothing.fits)

    def of_size(self, members: int) -> SizePredictor:
        """The predictor of mixes of so many co-runners."""
        if members not in self.by_size:
            known = ", ".join(str(size) for size in self.by_size)
            raise InputError(
                f"mix: expected as many applications as in mixes that the model was trained on ({known}), "
                f"found {members}"
            )
        return self.by_size[members]

    @property
    def dropped(self) -> Mapping[int, tuple[str, ...]]:
        """By size, the features that it was to learn from, and that nothing in the training had."""
        return {each.members: each.columns.dropped for each in self.sizes}

    def _completed(self, found: dict[str, Reals], mixes: Sequence[Mix]) -> dict[str, Reals]:
        if ("slowdown" in found) == ("time_s" in found):
            return found
        isolated_s = np.array([[value_of(run, "GPU_time") for run in mix] for mix in mixes])
        count = isolated_s.shape[1]
        if "time_s" in found:
            every = even_slowdown(isolated_s, found["time_s"])
            return {**found, "slowdown": np.repeat(every[:, None], count, axis=1)}
        slowdown = found["slowdown"]

        def of_subset(rows: Integers, places: Integers) -> Reals:
            predictor = self.by_size.get(len(places))
            if predictor is None or predictor.slowdown is None:
                return with_fewer(slowdown[np.ix_(rows, places)], count, len(places))
            return predictor.predict([tuple(mixes[row][place] for place in places) for row in rows])[
                "slowdown"
            ]

        times = mix_times(isolated_s, slowdown, lambda running: remaining_slowdowns(running, of_subset))
        return {**found, "time_s": times.time_s}


@dataclass(frozen=True)
class Published:
    """A regressor of table 6 for each size of mixes, and for each of mix time, power and slowdown.

    The paper predicts time and power. Slowdowns, which are all that other data have, are predicted from the
    features of times, those of the co-runner itself first.
    """

    kind: str  # Kind of regressor, see `KINDS`
    performance: Combination = PERFORMANCE  # Features that times and slowdowns, and power, are predicted from
    power: Combination = POWER
    # Whether training mixes of two and three are put in every order, as the paper permutes benchmarks
    # (section 5.2). What is predicted is always in one order, so that it does not depend on that of the mix.
    # On times of pairs that follow from gavel's V100, all kinds but the perceptron err less by it, if little
    permuted: bool = True
    # Whether to take all other features of the isolated runs, too, which is not as published. They are taken
    # in any case where nothing in the training has any feature of a combination: else there were no model
    others: bool = False

    def __post_init__(self) -> None:
        """Check the kind, and that the features are known before a mix runs."""
        if self.kind not in KINDS:
            raise InputError(f"model: expected one of {', '.join(KINDS)}, found {self.kind!r}")
        for combination in (self.performance, self.power):
            if combination.concurrent:
                raise InputError(
                    f"{combination.name}: expected features of applications alone, found "
                    f"{', '.join(combination.concurrent)}, which only a run of the mix itself tells"
                )

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return f"published-{self.kind}"

    def fit(self, co_runs: CoRuns, seed: int) -> PublishedCoRunPredictor:
        """Fit it to mixes in which no application failed."""
        by_size: dict[int, list[Bag]] = {}
        for mix in co_runs.bags:
            if not mix.failed and len(mix.members) > 1:
                by_size.setdefault(len(mix.members), []).append(mix)
        fitted = [self._fit_size(mixes, seed) for _, mixes in sorted(by_size.items())]
        sizes = tuple(each for each in fitted if each is not None)
        if not sizes:
            raise InputError(
                f"{co_runs.label}: expected mixes with a slowdown, a time or a power to learn from, "
                "found none"
            )
        return PublishedCoRunPredictor(sizes)

    def _fit_size(self, mixes: Sequence[Bag], seed: int) -> SizePredictor | None:
        """A predictor of mixes of one size; ``None`` if nothing is known of them that it could predict."""
        known = {name: _known(name, mixes) for name in TARGETS}
        known = {name: values for name, values in known.items() if not np.isnan(values).all()}
        if not known:
            return None
        told = [
            place
            for place in range(len(mixes))
            if any(~np.isnan(each[place]).all() for each in known.values())
        ]
        every = [mix.solos for mix in mixes]
        performance, power = (self._complete(each, every) for each in (self.performance, self.power))
        features = {name: power if name == "power_w" else performance for name in known}
        runs = [every[place] for place in told]
        columns = MixColumns.fit(
            tuple(dict.fromkeys(name for each in features.values() for name in each)), runs
        )
        values, order = columns.of(runs)
        targets: dict[str, Target] = {}
        for name, all_values in known.items():
            used = columns.places(features[name])
            if len(used) == 0:
                continue
            wanted = all_values[told]
            wanted = np.take_along_axis(wanted, order, axis=1) if name == "slowdown" else wanted
            rows, aims = _rows(values[:, :, used], wanted, self.permuted)
            finite = ~np.isnan(aims)
            rows, aims = rows[finite], aims[finite]
            depth = PERFORMANCE_DEPTH if self.kind == "decision-tree" and name != "power_w" else DEPTH
            targets[name] = Target(
                used, fit_regressor(self.kind, rows, aims, seed, depth=depth), float(aims.min())
            )
        return SizePredictor(len(mixes[0].members), columns, *(targets.get(name) for name in TARGETS))

    def _complete(self, combination: Combination, mixes: Sequence[Mix]) -> tuple[str, ...]:
        """Features of a combination, and the others where they are to be taken."""
        features = combination.features
        if not self.others and len(unknown_features(features, mixes)) < len(features):
            return features
        return (*features, *(name for name in other_features(mixes) if name not in features))


def _known(target: str, mixes: Sequence[Bag]) -> Reals:
    """What is known of a target: slowdowns of shape (b, n), the others of shape (b,)."""
    if target == "slowdown":
        return np.array([[member.slowdown for member in mix.members] for mix in mixes], dtype=np.float64)
    return np.array([getattr(mix, target) for mix in mixes], dtype=np.float64)


def _rows(values: Reals, known: Reals, permuted: bool) -> tuple[Reals, Reals]:
    """Rows to learn from, and what is known of each."""
    b, n, _ = values.shape
    orders = own_first(n) if known.ndim == 2 else own_first(n)[:1]
    if permuted and n <= MOST_PERMUTED:
        stays = 1 if known.ndim == 2 else 0
        orders = np.array(
            [[*order[:stays], *rest] for order in orders.tolist() for rest in permutations(order[stays:])]
        )
    each = known[:, orders[:, 0]] if known.ndim == 2 else np.repeat(known[:, None], len(orders), axis=1)
    return values[:, orders].reshape(b * len(orders), -1), each.ravel()
