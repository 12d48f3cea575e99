"""Models of co-runs by name: the default process, with feasibility and power, and the baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix
from crosscast.errors import InputError, expect_known
from crosscast.prediction.corun import CoRunModel, CoRunPrediction, CoRunPredictor, Mix
from crosscast.prediction.corun.features import isolated_times
from crosscast.prediction.corun.moolchandani2022 import KINDS, Published
from crosscast.prediction.corun.slowdowns import MixSlowdowns, SlowdownProcess, mix_times, with_fewer
from crosscast.prediction.corun.training import Hyperparameters, applications_in, fit_slowdowns
from crosscast.prediction.serialization import Array, Stored
from crosscast.prediction.trained import single_threaded

_FEW = 64
"""Number of subsets of mixes up to which all are predicted at once, as one takes nearly as long."""

_RIDGE, _STEPS = 1e-2, 50
_MEMORY, _TIME, _RATE = "memory_bytes", "time_s", "_per_s"
_LEAST = 3
"""Least number of mixes that fit, and of those that do not."""


@dataclass(frozen=True)
class Feasibility(Stored):
    """Logistic regression of whether a mix fits on a device, on the logarithm of its total demand."""

    wanted: str  # The summed demand: memory, time, or the inverse of an isolated rate
    centre: float  # Mean and standard deviation of its logarithm in the training
    spread: Annotated[float, Array(above=0)]
    intercept: float  # Of the log odds that a mix fits
    slope: float

    def log_odds(self, demand: Reals) -> Reals:
        """Log odds of each mix, from the logarithm of its demand."""
        return np.asarray(self.intercept + self.slope * (demand - self.centre) / self.spread)

    def probability(self, mixes: Sequence[Mix]) -> Reals:
        """Probability that each mix fits, ``(b,)``; NaN where the demand is not known."""
        odds = np.clip(self.log_odds(_log_demand(mixes, self.wanted)), -50, 50)
        return np.asarray(1 / (1 + np.exp(-odds)))


def fit_feasibility(mixes: Sequence[MeasuredMix]) -> Feasibility | None:
    """Fit to mixes of which is known whether they fit; ``None`` with too few of them.

    The demand is the one that predicts best for the mixes of each application, held out in turn.
    """
    known = [mix for mix in mixes if mix.fits is not None]
    truth = np.array([bool(mix.fits) for mix in known], dtype=np.float64)
    if min((truth == 0).sum(), (truth == 1).sum()) < _LEAST:
        return None
    runs = [mix.isolated_runs for mix in known]
    groups = applications_in(known)
    rates = {name for mix in runs for run in mix for name in run.features if name.endswith(_RATE)}
    losses = {
        name: _out_of_fold_loss(numbers, truth, groups)
        for name in (_MEMORY, _TIME, *sorted(rates))
        if np.isfinite(numbers := _log_demand(runs, name)).all() and np.ptp(numbers) > 0
    }
    if not losses:
        return None
    best = min(losses, key=lambda name: (losses[name], name))
    return _logistic(best, _log_demand(runs, best), truth)


def _log_demand(mixes: Sequence[Mix], name: str) -> Reals:
    sums = np.array([sum(_demand_of(run, name) for run in mix) for mix in mixes], dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums))


def _demand_of(run: IsolatedRun, name: str) -> float:
    if name in (_MEMORY, _TIME):
        value = run.memory_bytes if name == _MEMORY else run.time_s
        return np.nan if value is None else float(value)
    rate = run.features.get(name, 0.0)
    return 1 / rate if rate > 0 else np.nan


def _logistic(name: str, numbers: Reals, truth: Reals) -> Feasibility:
    """Fit by Newton's method, with a ridge, to logarithms of the demand `name`."""
    centre, spread = float(numbers.mean()), float(numbers.std()) or 1.0
    design = np.column_stack([np.ones(len(numbers)), (numbers - centre) / spread])
    coefficients = np.zeros(2)
    for _ in range(_STEPS):
        probability = 1 / (1 + np.exp(-np.clip(design @ coefficients, -50, 50)))
        weights = probability * (1 - probability) + 1e-9
        hessian = (design.T * weights) @ design + _RIDGE * np.eye(2)
        slope = design.T @ (truth - probability) - _RIDGE * coefficients
        coefficients = coefficients + np.linalg.solve(hessian, slope)
    return Feasibility(name, centre, spread, float(coefficients[0]), float(coefficients[1]))


def _out_of_fold_loss(numbers: Reals, truth: Reals, groups: Flags) -> float:
    """Mean log loss on each application's mixes, by a fit to the others."""
    total, count = 0.0, 0
    for group in groups.T:
        rest = truth[~group]
        if not group.any() or len(np.unique(rest)) < 2:
            continue
        odds = _logistic("", numbers[~group], rest).log_odds(numbers[group])
        total += float(np.logaddexp(0, np.where(truth[group] == 1, -odds, odds)).sum())
        count += int(group.sum())
    return total / count if count else np.inf


_POWER_RIDGE, _LEAST_WATTS = 1e-2, 5


@dataclass(frozen=True, eq=False)
class Power(Stored):
    """Ridge regression of the logarithm of a mix's power over the highest isolated power."""

    centre: Annotated[Reals, Array("4")]  # Mean, standard deviation and weight of each column
    spread: Annotated[Reals, Array("4", above=0)]
    weights: Annotated[Reals, Array("4")]
    intercept: float  # Its mean in the training
    utilisation: float  # Median utilisation in the training, which replaces missing ones
    low: float  # Least and largest log ratio in the training, the limits of predictions
    high: float

    def watts(self, mixes: Sequence[Mix]) -> Reals:
        """Predicted power of each mix, ``(b,)``; NaN where a co-runner's is not known."""
        columns, most = _columns(mixes, self.utilisation)
        scaled = (columns - self.centre) / self.spread
        ratio = np.clip(self.intercept + scaled @ self.weights, self.low, self.high)
        return np.asarray(most * np.exp(ratio))


def fit_power(mixes: Sequence[MeasuredMix]) -> Power | None:
    """Fit to mixes with known power of the mix and of all its runs; ``None`` for fewer than 5."""
    known = [mix for mix in mixes if mix.power_w and all(run.power_w for run in mix.isolated_runs)]
    if len(known) < _LEAST_WATTS:
        return None
    runs = [mix.isolated_runs for mix in known]
    used = [run.features.get("utilisation", np.nan) for mix in runs for run in mix]
    utilisation = float(np.nanmedian(used)) if np.isfinite(used).any() else 1.0
    columns, most = _columns(runs, utilisation)
    ratio = np.log(np.array([mix.power_w for mix in known], dtype=np.float64) / most)
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    scaled = (columns - centre) / spread
    system = scaled.T @ scaled + _POWER_RIDGE * len(known) * np.eye(4)
    weights = np.linalg.solve(system, scaled.T @ (ratio - ratio.mean()))
    limits = float(ratio.min()), float(ratio.max())
    return Power(centre, spread, weights, float(ratio.mean()), utilisation, *limits)


def _columns(mixes: Sequence[Mix], utilisation: float) -> tuple[Reals, Reals]:
    """Columns of mixes, ``(b, 4)``, and the highest isolated power in each, ``(b,)``.

    Sum and maximum of the others' powers over the highest, their use of the device, and their number.
    """
    rows, highest = [], []
    for mix in mixes:
        # A sensor that returns 0 does not work.
        powers = np.array([run.power_w or np.nan for run in mix], dtype=np.float64)
        used = np.array([run.features.get("utilisation", utilisation) for run in mix])
        # Among equal powers the one that uses most, so that the order of co-runners does not matter.
        most = int(np.lexsort((used, powers))[-1])
        rest = np.delete(powers, most) / powers[most]
        free = max(0.0, 1.0 - used[most])
        rows.append([rest.sum(), rest.max(initial=0.0), min(used.sum() - used[most], free), len(mix)])
        highest.append(powers.max())
    return np.array(rows, dtype=np.float64).reshape(-1, 4), np.array(highest)


@dataclass(frozen=True)
class Process(CoRunModel):
    """Slowdowns as a Gaussian process over a co-runner and the others of its mix, for mixes of any size."""

    # Whether predictions are the mean of the process and of extra trees on the same traits
    trees: bool = True
    hyperparameters: Hyperparameters | None = None  # Of a fit to more mixes, if there was one

    @property
    def name(self) -> str:
        """Name on the command line and in tables."""
        return "process" if self.trees else "process-alone"

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunProcessPredictor:
        """Fit to mixes in which no application failed."""
        sound = [mix for mix in co_runs.mixes if not mix.failed and len(mix.members) > 1]
        slowed = [mix for mix in sound if all(member.slowdown for member in mix.members)]
        if len(slowed) < 3:
            expected = "at least 3 mixes with slowdowns to learn from"
            raise InputError.of(where=co_runs.label, expected=expected, found=len(slowed))
        # Synchronizing BLAS threads takes longer than these small matrices do.
        with single_threaded():
            process = fit_slowdowns(slowed, seed, trees=self.trees, known=self.hyperparameters)
        factor = _time_factor(process, slowed)
        return CoRunProcessPredictor(process, fit_feasibility(sound), fit_power(sound), factor)

    def refit(self, predictor: CoRunPredictor) -> Process:
        """A quicker variant for parts of the same mixes, with fitted hyperparameters."""
        process = predictor.process
        if process is None:
            return self
        known = Hyperparameters(process.scale.link, process.traits.names, process.sizes)
        return replace(self, hyperparameters=known)


@dataclass(frozen=True, eq=False)
class CoRunProcessPredictor(Stored, CoRunPredictor, kind="corun-process"):
    """A fitted process, with models of whether mixes fit and of their power."""

    slowdowns: SlowdownProcess
    fits: Feasibility | None  # `None` without mixes that do not fit
    power: Power | None  # `None` where it was not measured
    time_factor: Annotated[float, Array(above=0)]  # Time of mixes over that from slowdowns

    @property
    def process(self) -> SlowdownProcess:
        """The process that can be conditioned on further mixes."""
        return self.slowdowns

    def with_process(self, process: SlowdownProcess) -> CoRunProcessPredictor:
        """The predictor with a process that was conditioned on further mixes."""
        return replace(self, slowdowns=process)

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        unknown = np.full(len(mixes), np.nan)
        if not mixes:
            return CoRunPrediction((), unknown, unknown, unknown)
        applications, indices = self.slowdowns.of_mixes(mixes)
        few = sum(2 ** len(mix) for mix in mixes) <= _FEW
        parts = [part for mix in indices if few for n in range(2, len(mix)) for part in combinations(mix, n)]
        slowdown = applications.slowdowns([*indices, *parts])
        known = dict(zip(parts, slowdown[len(mixes) :], strict=True))
        return CoRunPrediction(
            slowdown[: len(mixes)],
            _times(mixes, indices, slowdown, applications, known) * self.time_factor,
            unknown if self.power is None else self.power.watts(mixes),
            unknown if self.fits is None else self.fits.probability(mixes),
        )


def _times(
    mixes: Sequence[Mix],
    indices: Sequence[Sequence[int]],
    slowdown: Sequence[Reals],
    applications: MixSlowdowns,
    known: Mapping[tuple[int, ...], Reals],
) -> Reals:
    """Times ``(b,)`` from the slowdowns of mixes, and of the subsets that still run as others end.

    `known` has the slowdowns of subsets, or is empty. NaN where an isolated time is not known.
    """
    times = np.full(len(mixes), np.nan)
    timed = [number for number, mix in enumerate(mixes) if all(run.time_s for run in mix)]
    for members in sorted({len(mixes[number]) for number in timed}):
        of_size = [number for number in timed if len(mixes[number]) == members]
        isolated_s = isolated_times([mixes[number] for number in of_size])
        runs = np.array([indices[number] for number in of_size])

        def of_running(rows: Integers, columns: Integers, runs: Integers = runs) -> Reals:
            subsets = runs[np.ix_(rows, columns)].tolist()
            if known:
                return np.stack([known[tuple(subset)] for subset in subsets])
            return np.stack(applications.slowdowns(subsets))

        of_mixes = np.stack([slowdown[number] for number in of_size])
        times[of_size] = mix_times(isolated_s, of_mixes, of_running)
    return times


def _time_factor(process: SlowdownProcess, mixes: Sequence[MeasuredMix]) -> float:
    """Median of the measured times of mixes over those from their measured slowdowns."""
    timed = [mix for mix in mixes if mix.time_s and all(run.time_s for run in mix.isolated_runs)]
    if not timed:
        return 1.0
    slowdown = [np.array([member.slowdown for member in mix.members], dtype=np.float64) for mix in timed]
    runs = [mix.isolated_runs for mix in timed]
    applications, indices = process.of_mixes(runs)
    times = np.array([mix.time_s for mix in timed], dtype=np.float64)
    return float(np.median(times / _times(runs, indices, slowdown, applications, {})))


@dataclass(frozen=True)
class Mean(CoRunModel):
    """The means of the training mixes of the same size, or of all where there is none."""

    name = "mean"

    def fit(self, co_runs: CoRuns, seed: int = 0) -> FittedCoRunMean:
        """Fit the means; nothing is random."""
        sound = [mix for mix in co_runs.mixes if not mix.failed]
        if not sound:
            raise InputError.of(where=co_runs.label, expected="mixes to learn from", found="none")
        sizes = list(dict.fromkeys(len(mix.members) for mix in sound))
        parts = [[mix for mix in sound if len(mix.members) == size] for size in sizes]
        means = [_means(mixes) for mixes in ([mix for part in parts for mix in part], *parts)]
        return FittedCoRunMean(np.array([0, *sizes]), np.array(means))


@dataclass(frozen=True, eq=False)
class FittedCoRunMean(Stored, CoRunPredictor, kind="corun-mean"):
    """Means by size of mixes."""

    sizes: Annotated[Integers, Array("s", low=0, least=1)]  # Sizes; the first is 0, for all sizes
    # Of each: geometric mean of the slowdowns; mean position of the time between the longest isolated time
    # (0) and their sum (1); mean power in watts; share that fits. NaN where not known
    means: Annotated[Reals, Array("s 4", nan=True)]

    def check(self) -> None:
        """Raise InputError unless the means of all sizes come first."""
        if self.sizes[0] != 0:
            raise InputError.of(field="sizes", expected="0 first", found=int(self.sizes[0]))

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        rows = np.array([self._row(len(mix)) for mix in mixes]).reshape(-1, 4)
        slowdown, _, power, fits = rows.T
        times = [
            _time(isolated_times([mix])[0], *row[:2]) for mix, row in zip(mixes, rows.tolist(), strict=True)
        ]
        slowdowns = tuple(np.full(len(mix), each) for mix, each in zip(mixes, slowdown, strict=True))
        return CoRunPrediction(slowdowns, np.array(times, dtype=np.float64), power, fits)

    def _row(self, members: int) -> Reals:
        """Means of a size, with those of all sizes where a mean is missing."""
        of_size = self.means[[0, *np.flatnonzero(self.sizes == members)][-1]]
        return np.asarray(np.where(np.isnan(of_size), self.means[0], of_size))


@dataclass(frozen=True)
class Sum(CoRunModel):
    """One after another: a mix takes the sum of the isolated times."""

    name = "sum"

    def fit(self, co_runs: CoRuns, seed: int = 0) -> FittedSum:
        """Nothing is fitted."""
        return FittedSum()


@dataclass(frozen=True)
class FittedSum(Stored, CoRunPredictor, kind="corun-sum"):
    """Time sharing: the slowdown of each co-runner is their number.

    Power is the mean of the isolated powers over the time of each.
    """

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        isolated_s = [isolated_times([mix])[0] for mix in mixes]
        times = np.array([each.sum() for each in isolated_s])
        powers = [np.array([run.power_w for run in mix], dtype=np.float64) for mix in mixes]
        energies = [(each * power).sum() for each, power in zip(isolated_s, powers, strict=True)]
        with np.errstate(invalid="ignore"):
            power_w = np.array(energies) / times
        slowdown = tuple(np.full(len(mix), float(len(mix))) for mix in mixes)
        return CoRunPrediction(slowdown, times, power_w, np.full(len(mixes), np.nan))


def _time(isolated_s: Reals, slowdown: float, position: float) -> float:
    """Time from its position between longest and sum; or from slowdowns, where no time is known."""
    if not np.isnan(position):
        return float(isolated_s.max() + position * (isolated_s.sum() - isolated_s.max()))
    count = len(isolated_s)

    def fewer(rows: Integers, columns: Integers) -> Reals:
        return with_fewer(np.full((len(rows), len(columns)), slowdown), count, len(columns))

    return float(mix_times(isolated_s[None], np.full((1, count), slowdown), fewer)[0])


def _means(mixes: Sequence[MeasuredMix]) -> list[float]:
    slowdowns = [member.slowdown for mix in mixes for member in mix.members if member.slowdown]
    return [
        float(np.exp(_mean(np.log(slowdowns)))),
        _mean([_position(mix) for mix in mixes]),
        _mean([mix.power_w for mix in mixes]),
        _mean([mix.fits for mix in mixes]),
    ]


def _position(mix: MeasuredMix) -> float | None:
    isolated_s = isolated_times([mix.isolated_runs])[0]
    if mix.time_s is None or not (rest := isolated_s.sum() - isolated_s.max()) > 0:
        return None
    return float((mix.time_s - isolated_s.max()) / rest)


def _mean(values: Sequence[float | None] | Reals) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


DEFAULT_MODEL = "process"

BASELINES = ("mean", "sum")
"""Models that ignore the applications; all others must beat them."""

MODELS: Mapping[str, Callable[[], CoRunModel]] = MappingProxyType(
    {
        "mean": Mean,
        "sum": Sum,
        **{f"published-{kind}": partial(Published, kind) for kind in KINDS},
        "process-alone": partial(Process, trees=False),
        "process": Process,
    }
)
"""Factories of the models by name, from the trivial to the strong."""


def models_named(names: Sequence[str]) -> list[CoRunModel]:
    """Return new models, in the order of their names."""
    expect_known(names, MODELS, field="models")
    return [MODELS[name]() for name in dict.fromkeys(names)]
