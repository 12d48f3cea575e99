"""The default model of co-running: a process for slowdowns, with what tells feasibility and power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Bag, CoRuns, Solo
from crosscast.errors import InputError, importing
from crosscast.prediction.corun.forecast import CoRunModel, CoRunPrediction, CoRunPredictor, Mix
from crosscast.prediction.corun.mix_times import mix_times
from crosscast.prediction.corun.slowdowns import MixSlowdowns, SlowdownProcess
from crosscast.prediction.corun.training import Hyperparameters, applications_in, fit_slowdowns
from crosscast.prediction.serialization import Array, Stored

_FEW = 64
"""So many parts of mixes are predicted at once: one after the other takes nearly as long as all."""

_RIDGE, _STEPS = 1e-2, 50
_MEMORY, _TIME, _RATE = "memory_bytes", "time_s", "_per_s"
_LEAST = 3
"""Fewer mixes that do not fit tell nothing."""


@dataclass(frozen=True)
class Feasibility(Stored):
    """Whether a mix fits on a device: logistic in the logarithm of what its co-runners want together."""

    wanted: str  # What is summed: memory, time, or the inverse of a rate alone
    centre: float  # Mean and standard deviation of its logarithm in the training
    spread: Annotated[float, Array(above=0)]
    intercept: float  # Of the log odds that a mix fits
    slope: float

    def log_odds(self, wanted: Reals) -> Reals:
        """Logarithm of the odds of each mix, from the logarithm of what it wants."""
        return np.asarray(self.intercept + self.slope * (wanted - self.centre) / self.spread)

    def probability(self, mixes: Sequence[Mix]) -> Reals:
        """Probability that each mix fits, of shape (b,); NaN where it cannot be told."""
        odds = np.clip(self.log_odds(_wanted(mixes, self.wanted)), -50, 50)
        return np.asarray(1 / (1 + np.exp(-odds)))


def fit_feasibility(mixes: Sequence[Bag]) -> Feasibility | None:
    """Fit it to mixes of which is known whether they fit; ``None`` where these tell too little.

    What is summed is what predicts best that the mixes of each application, which is left out in turn, fit.
    """
    known = [mix for mix in mixes if mix.fits is not None]
    truth = np.array([bool(mix.fits) for mix in known], dtype=np.float64)
    if min((truth == 0).sum(), (truth == 1).sum()) < _LEAST:
        return None
    runs = [mix.solos for mix in known]
    groups = applications_in(known)
    rates = {name for mix in runs for run in mix for name in run.features if name.endswith(_RATE)}
    losses = {
        name: _out_of_fold_loss(numbers, truth, groups)
        for name in (_MEMORY, _TIME, *sorted(rates))
        if np.isfinite(numbers := _wanted(runs, name)).all() and np.ptp(numbers) > 0
    }
    if not losses:
        return None
    best = min(losses, key=lambda name: (losses[name], name))
    return _logistic(best, _wanted(runs, best), truth)


def _wanted(mixes: Sequence[Mix], name: str) -> Reals:
    sums = np.array([sum(_want_of(run, name) for run in mix) for mix in mixes], dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums))


def _want_of(run: Solo, name: str) -> float:
    if name in (_MEMORY, _TIME):
        value = run.memory_bytes if name == _MEMORY else run.time_s
        return np.nan if value is None else float(value)
    rate = run.features.get(name, 0.0)
    return 1 / rate if rate > 0 else np.nan


def _logistic(name: str, numbers: Reals, truth: Reals) -> Feasibility:
    """Fit it by Newton's method, with a ridge; `name` is what `numbers` are the logarithm of."""
    centre, spread = float(numbers.mean()), float(numbers.std()) or 1.0
    design = np.column_stack([np.ones(len(numbers)), (numbers - centre) / spread])
    found = np.zeros(2)
    for _ in range(_STEPS):
        probability = 1 / (1 + np.exp(-np.clip(design @ found, -50, 50)))
        weights = probability * (1 - probability) + 1e-9
        hessian = (design.T * weights) @ design + _RIDGE * np.eye(2)
        found = found + np.linalg.solve(hessian, design.T @ (truth - probability) - _RIDGE * found)
    return Feasibility(name, centre, spread, float(found[0]), float(found[1]))


def _out_of_fold_loss(numbers: Reals, truth: Reals, groups: Flags) -> float:
    """Mean log loss of each application's mixes, by a fit to the others."""
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
    """Power of a mix over the highest isolated one, as a ridge regression of its logarithm."""

    centre: Annotated[Reals, Array("4")]  # Mean, standard deviation and weight of each column
    spread: Annotated[Reals, Array("4", above=0)]
    weights: Annotated[Reals, Array("4")]
    intercept: float  # Its mean in the training
    utilisation: float  # Median utilisation in the training, for those of which it is not known
    low: float  # Least and largest ratio in the training: nothing beyond is predicted
    high: float

    def watts(self, mixes: Sequence[Mix]) -> Reals:
        """Predicted power of each mix, of shape (b,); NaN where a co-runner's is not known."""
        columns, most = _columns(mixes, self.utilisation)
        scaled = (columns - self.centre) / self.spread
        ratio = np.clip(self.intercept + scaled @ self.weights, self.low, self.high)
        return np.asarray(most * np.exp(ratio))


def fit_power(mixes: Sequence[Bag]) -> Power | None:
    """Fit it to mixes whose power is known, and that of all in them; ``None`` if there are fewer than 5."""
    known = [mix for mix in mixes if mix.power_w and all(run.power_w for run in mix.solos)]
    if len(known) < _LEAST_WATTS:
        return None
    runs = [mix.solos for mix in known]
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
    """Columns of mixes, (b, 4), and the highest isolated power in each, (b,).

    Others' powers over the highest, use of the device beyond the one of that power, and how many run.
    """
    rows, highest = [], []
    for mix in mixes:
        # A sensor that says 0 does not work.
        powers = np.array([run.power_w or np.nan for run in mix], dtype=np.float64)
        used = np.array([run.features.get("utilisation", utilisation) for run in mix])
        # Of several of the highest power the one that uses most: co-runners have no order.
        most = int(np.lexsort((used, powers))[-1])
        rest = np.delete(powers, most) / powers[most]
        free = max(0.0, 1.0 - used[most])
        rows.append([rest.sum(), rest.max(initial=0.0), min(used.sum() - used[most], free), len(mix)])
        highest.append(powers.max())
    return np.array(rows, dtype=np.float64).reshape(-1, 4), np.array(highest)


@dataclass(frozen=True)
class Process(CoRunModel):
    """Slowdowns as a Gaussian process over a co-runner and those beside it, for mixes of any size."""

    # Whether extra trees on the same traits stand beside it; predictions are the mean of both
    trees: bool = True
    found: Hyperparameters | None = None  # Those of a fit to more mixes, if there was one

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "process" if self.trees else "process-alone"

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunProcessPredictor:
        """Fit it to mixes in which no application failed."""
        sound = [mix for mix in co_runs.bags if not mix.failed and len(mix.members) > 1]
        slowed = [mix for mix in sound if all(member.slowdown for member in mix.members)]
        if len(slowed) < 3:
            expected = "at least 3 mixes with slowdowns to learn from"
            raise InputError.of(where=co_runs.label, expected=expected, found=len(slowed))
        # Imported here: predicting needs it not.
        with importing("train", "fitting a model"):
            from threadpoolctl import threadpool_limits

        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            process = fit_slowdowns(slowed, seed, trees=self.trees, found=self.found)
        factor = _time_factor(process, slowed)
        return CoRunProcessPredictor(process, fit_feasibility(sound), fit_power(sound), factor)

    def refit(self, predictor: CoRunPredictor) -> Process:
        """A quicker form for parts of the same mixes, with the hyperparameters that were found."""
        found = predictor.process
        if found is None:
            return self
        return replace(self, found=Hyperparameters(found.scale.link, found.traits.names, found.sizes))


@dataclass(frozen=True, eq=False)
class CoRunProcessPredictor(Stored, CoRunPredictor, kind="corun-process"):
    """A fitted process, with what tells whether mixes fit and what power they draw."""

    slowdowns: SlowdownProcess
    fits: Feasibility | None  # `None` where nothing tells
    power: Power | None  # `None` where it was not measured
    time_factor: Annotated[float, Array(above=0)]  # Time of mixes over what slowdowns make of it

    @property
    def process(self) -> SlowdownProcess:
        """What learns from further mixes."""
        return self.slowdowns

    def with_process(self, process: SlowdownProcess) -> CoRunProcessPredictor:
        """The same with a process that has learned."""
        return replace(self, slowdowns=process)

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        unknown = np.full(len(mixes), np.nan)
        if not mixes:
            return CoRunPrediction((), unknown, unknown, unknown)
        told, places = self.slowdowns.of_mixes(mixes)
        few = sum(2 ** len(mix) for mix in mixes) <= _FEW
        parts = [part for mix in places if few for n in range(2, len(mix)) for part in combinations(mix, n)]
        slowdown = told.slowdowns([*places, *parts])
        known = dict(zip(parts, slowdown[len(mixes) :], strict=True))
        return CoRunPrediction(
            slowdown[: len(mixes)],
            _times(mixes, places, slowdown, told, known) * self.time_factor,
            unknown if self.power is None else self.power.watts(mixes),
            unknown if self.fits is None else self.fits.probability(mixes),
        )


def _times(
    mixes: Sequence[Mix],
    places: Sequence[Sequence[int]],
    slowdown: Sequence[Reals],
    told: MixSlowdowns,
    known: Mapping[tuple[int, ...], Reals],
) -> Reals:
    """Times, (b,), by the slowdowns of whole mixes, and of what is left as one after the other ends.

    `known` has those of what is left, or nothing. Not a number where an isolated time is not known.
    """
    times = np.full(len(mixes), np.nan)
    timed = [number for number, mix in enumerate(mixes) if all(run.time_s for run in mix)]
    for members in sorted({len(mixes[number]) for number in timed}):
        some = [number for number in timed if len(mixes[number]) == members]
        isolated_s = np.array([[run.time_s for run in mixes[number]] for number in some], dtype=np.float64)
        runs = np.array([places[number] for number in some])

        def of_left(rows: Integers, left: Integers, runs: Integers = runs) -> Reals:
            asked = runs[np.ix_(rows, left)].tolist()
            return np.stack([known[tuple(each)] for each in asked] if known else told.slowdowns(asked))

        times[some] = mix_times(isolated_s, np.stack([slowdown[number] for number in some]), of_left)
    return times


def _time_factor(process: SlowdownProcess, mixes: Sequence[Bag]) -> float:
    """Measured times of mixes over what their measured slowdowns make of them."""
    timed = [mix for mix in mixes if mix.time_s and all(run.time_s for run in mix.solos)]
    if not timed:
        return 1.0
    slowdown = [np.array([member.slowdown for member in mix.members], dtype=np.float64) for mix in timed]
    runs = [mix.solos for mix in timed]
    told, places = process.of_mixes(runs)
    times = np.array([mix.time_s for mix in timed], dtype=np.float64)
    return float(np.median(times / _times(runs, places, slowdown, told, {})))
