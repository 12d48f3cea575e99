"""Whether a bag fits on a device: the more its members want together, the less likely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import arrays_of, kept_names, kept_reals
from crosscast.predict.corun.forecast import CoRunPrediction, mix_times
from crosscast.predict.corun.slowdowns import Running, SlowdownProcess
from crosscast.predict.corun.training import Found, fit_slowdowns
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

_RIDGE = 1e-2
_STEPS = 50
_MEMORY, _TIME = "memory_bytes", "time_s"
_RATE = "_per_s"
_LEAST = 3
"""Fewer bags that do not fit tell nothing."""


@dataclass(frozen=True)
class Fits:
    """Logistic in the logarithm of a sum over the members."""

    wanted: str  # What is summed: memory, time, or the inverse of a rate alone
    centre: float  # Mean and standard deviation of its logarithm in the training
    spread: float
    intercept: float  # Of the log odds that a bag fits
    slope: float

    def probability(self, bags: Sequence[tuple[Solo, ...]]) -> Reals:
        """Probability that each bag fits, of shape ``(b,)``; not a number where it cannot be told."""
        numbers = (_wanted(bags, self.wanted) - self.centre) / self.spread
        odds = np.clip(self.intercept + self.slope * numbers, -50, 50)
        probability: Reals = 1 / (1 + np.exp(-odds))
        return probability

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "wanted": np.array([self.wanted], dtype=np.str_),
            "numbers": np.array([self.centre, self.spread, self.intercept, self.slope]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Fits:
        """Make it from its arrays."""
        wanted, numbers = kept_names(state, "wanted"), kept_reals(state, "numbers", 1)
        if len(wanted) != 1 or len(numbers) != 4 or numbers[1] <= 0:
            raise InputError("model: fits: expected a name and four numbers, found others")
        return cls(wanted[0], *numbers.tolist())


def fit_fits(bags: Sequence[Bag]) -> Fits | None:
    """Fit it to bags of which is known whether they fit; ``None`` where these tell too little.

    What is summed is what predicts best that the bags of each application, which is left out in turn, fit.
    """
    told = [bag for bag in bags if bag.fits is not None]
    truth = np.array([bool(bag.fits) for bag in told], dtype=np.float64)
    if min((truth == 0).sum(), (truth == 1).sum()) < _LEAST:
        return None
    solos = [bag.solos for bag in told]
    names = sorted({name for bag in told for name in bag.applications})
    groups = np.array([[name in bag.applications for name in names] for bag in told])
    losses = {
        name: _left_out_loss(numbers, truth, groups)
        for name in _candidates(solos)
        if np.isfinite(numbers := _wanted(solos, name)).all() and np.ptp(numbers) > 0
    }
    if not losses:
        return None
    best = min(losses, key=lambda name: (losses[name], name))
    return _fitted(best, _wanted(solos, best), truth)


def _candidates(bags: Sequence[tuple[Solo, ...]]) -> list[str]:
    rates = {name for bag in bags for solo in bag for name in solo.features if name.endswith(_RATE)}
    return [_MEMORY, _TIME, *sorted(rates)]


def _wanted(bags: Sequence[tuple[Solo, ...]], name: str) -> Reals:
    sums = np.array([sum(_of(solo, name) for solo in bag) for bag in bags], dtype=np.float64)
    with np.errstate(divide="ignore"):
        found: Reals = np.log(sums)
    return found


def _of(solo: Solo, name: str) -> float:
    if name in (_MEMORY, _TIME):
        value = solo.memory_bytes if name == _MEMORY else solo.time_s
        return np.nan if value is None else float(value)
    rate = solo.features.get(name, 0.0)
    return 1 / rate if rate > 0 else np.nan


def _fitted(name: str, numbers: Reals, truth: Reals) -> Fits:
    centre, spread = float(numbers.mean()), float(numbers.std()) or 1.0
    design = np.column_stack([np.ones(len(numbers)), (numbers - centre) / spread])
    found = np.zeros(2)
    for _ in range(_STEPS):
        probability = 1 / (1 + np.exp(-np.clip(design @ found, -50, 50)))
        weights = probability * (1 - probability) + 1e-9
        hessian = (design.T * weights) @ design + _RIDGE * np.eye(2)
        found = found + np.linalg.solve(hessian, design.T @ (truth - probability) - _RIDGE * found)
    return Fits(name, centre, spread, float(found[0]), float(found[1]))


def _left_out_loss(numbers: Reals, truth: Reals, groups: Flags) -> float:
    """Mean log loss of each application's bags, by a fit to the others."""
    total, count = 0.0, 0
    for group in groups.T:
        rest = truth[~group]
        if not group.any() or len(np.unique(rest)) < 2:
            continue
        fits = _fitted("", numbers[~group], rest)
        odds = fits.intercept + fits.slope * (numbers[group] - fits.centre) / fits.spread
        signed = np.where(truth[group] == 1, -odds, odds)
        total += float(np.logaddexp(0, signed).sum())
        count += int(group.sum())
    return total / count if count else np.inf


_COLUMNS = 4
_POWER_RIDGE = 1e-2
_LEAST_WATTS = 5


@dataclass(frozen=True, eq=False)
class Power:
    """Power of a bag over that of the member with the highest alone, as a ridge regression of its
    logarithm.
    """

    centre: Reals  # Mean, standard deviation and weight of each column, of shape `(4,)`
    spread: Reals
    weights: Reals
    intercept: float  # Its mean in the training
    utilisation: float  # Median utilisation of the training's members, for those of which it is not known
    low: float  # Least and largest ratio in the training: nothing beyond is predicted
    high: float

    def watts(self, bags: Sequence[tuple[Solo, ...]]) -> Reals:
        """Predicted power of each bag, of shape ``(b,)``; not a number where a member's is not known."""
        most = np.array([_powers(bag).max() for bag in bags])
        columns = (_columns(bags, self.utilisation) - self.centre) / self.spread
        ratio = np.clip(self.intercept + columns @ self.weights, self.low, self.high)
        watts: Reals = most * np.exp(ratio)
        return watts

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "scaled": np.stack([self.centre, self.spread, self.weights]),
            "numbers": np.array([self.intercept, self.utilisation, self.low, self.high]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Power:
        """Make it from its arrays."""
        scaled, numbers = kept_reals(state, "scaled", 2), kept_reals(state, "numbers", 1)
        if scaled.shape != (3, _COLUMNS) or len(numbers) != 4 or (scaled[1] <= 0).any():
            raise InputError(f"model: power: expected 3 rows of {_COLUMNS} numbers and 4 more, found others")
        return cls(*scaled, *numbers.tolist())


def fit_power(bags: Sequence[Bag]) -> Power | None:
    """Fit it to bags whose power is known, and that of all members; ``None`` if there are fewer than 5."""
    told = [bag for bag in bags if bag.power_w and np.isfinite(_powers(bag.solos)).all()]
    if len(told) < _LEAST_WATTS:
        return None
    solos = [bag.solos for bag in told]
    known = [solo.features.get("utilisation", np.nan) for bag in solos for solo in bag]
    utilisation = float(np.nanmedian(known)) if np.isfinite(known).any() else 1.0
    columns = _columns(solos, utilisation)
    most = np.array([_powers(bag).max() for bag in solos])
    ratio = np.log(np.array([bag.power_w for bag in told], dtype=np.float64) / most)
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    scaled = (columns - centre) / spread
    system = scaled.T @ scaled + _POWER_RIDGE * len(told) * np.eye(_COLUMNS)
    weights = np.linalg.solve(system, scaled.T @ (ratio - ratio.mean()))
    limits = float(ratio.min()), float(ratio.max())
    return Power(centre, spread, weights, float(ratio.mean()), utilisation, *limits)


def _powers(bag: Sequence[Solo]) -> Reals:
    """Powers alone; a sensor that says 0 does not work."""
    return np.array([solo.power_w or np.nan for solo in bag], dtype=np.float64)


def _columns(bags: Sequence[tuple[Solo, ...]], utilisation: float) -> Reals:
    """Others' powers over the highest, use of the device beyond the member of that power, and members."""
    rows = []
    for bag in bags:
        powers = _powers(bag)
        used = np.array([solo.features.get("utilisation", utilisation) for solo in bag])
        # Of several of the highest power the one that uses most: members have no order.
        most = int(np.lexsort((used, powers))[-1])
        rest = np.delete(powers, most) / powers[most]
        free = max(0.0, 1.0 - used[most])
        rows.append([rest.sum(), rest.max(initial=0.0), min(used.sum() - used[most], free), len(bag)])
    return np.array(rows, dtype=np.float64).reshape(-1, _COLUMNS)


@dataclass(frozen=True)
class Process:
    """Slowdowns of members as a Gaussian process over a member and those beside it, for bags of any size."""

    # Whether extra trees on the same traits stand beside it; predictions are the mean of both
    trees: bool = True
    found: Found | None = None  # Sizes of the covariance, if they are known from a fit to more bags

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "process" if self.trees else "process-alone"

    def fit(self, co_runs: CoRuns, seed: int) -> ProcessPredictor:
        """Fit it to bags in which no application failed; see `CoRunModel.fit`."""
        sound = [bag for bag in co_runs.bags if not bag.failed and len(bag.members) > 1]
        slowed = [bag for bag in sound if all(member.slowdown for member in bag.members)]
        if len(slowed) < 3:
            raise InputError(
                f"{co_runs.label}: expected at least 3 bags with slowdowns to learn from, found {len(slowed)}"
            )
        # Imported here: predicting needs it not.
        from crosscast.predict.scikit import threadpool_limits

        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            slowdowns, found = fit_slowdowns(slowed, seed, trees=self.trees, found=self.found)
        made = ProcessPredictor(slowdowns, fit_fits(sound), fit_power(sound), 1.0, found)
        return replace(made, time_factor=_time_factor(made, slowed))

    def refit(self, predictor: ProcessPredictor) -> Process:
        """The same with the sizes that were found, for fits to parts of the same bags."""
        return replace(self, found=predictor.found)


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """A fitted process, with what tells whether bags fit and what power they draw."""

    slowdowns: SlowdownProcess  # Predicts slowdowns
    fits: Fits | None  # Predicts whether bags fit; `None` where nothing tells
    power: Power | None  # Predicts power; `None` where it was not measured
    time_factor: float  # Time of bags over what slowdowns make of it
    found: Found | None = None  # Sizes for fits to parts of the same bags; `None` of one that was kept

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of any sizes; see `CoRunPredictor.predict`."""
        nothing = CoRunPrediction.nothing([len(bag) for bag in bags])
        if not bags:
            return nothing
        running = Running(self.slowdowns, bags)
        return CoRunPrediction(
            running.whole,
            self.times(bags, running.whole, running) * self.time_factor,
            nothing.power_w if self.power is None else self.power.watts(bags),
            nothing.fits if self.fits is None else self.fits.probability(bags),
        )

    def times(self, bags: Sequence[tuple[Solo, ...]], slowdown: Sequence[Reals], running: Running) -> Reals:
        """Times by the slowdowns of whole bags, and of what is left of them as members end. In seconds, of
        shape ``(b,)``; not a number where the time of a member alone is not known.
        """
        times = np.full(len(bags), np.nan)
        for members in sorted({len(bag) for bag in bags}):
            places = [
                place
                for place, bag in enumerate(bags)
                if len(bag) == members and all(solo.time_s for solo in bag)
            ]
            if places:
                alone = np.array(
                    [[solo.time_s for solo in bags[place]] for place in places], dtype=np.float64
                )
                whole = np.stack([slowdown[place] for place in places])
                times[places] = mix_times(alone, whole, partial(running.left, places)).time_s
        return times

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        parts = {"slowdowns": self.slowdowns, "fits": self.fits, "power": self.power}
        return {
            "time_factor": np.array([self.time_factor]),
            **{
                f"{name}.{each}": array
                for name, part in parts.items()
                if part is not None
                for each, array in part.state().items()
            },
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> ProcessPredictor:
        """Make it from its arrays."""
        factor = kept_reals(state, "time_factor", 1)
        if len(factor) != 1 or factor[0] <= 0:
            raise InputError("model: time_factor: expected one number above 0, found others")
        fits, power = arrays_of(state, "fits"), arrays_of(state, "power")
        return cls(
            SlowdownProcess.from_state(arrays_of(state, "slowdowns")),
            Fits.from_state(fits) if fits else None,
            Power.from_state(power) if power else None,
            float(factor[0]),
        )


def _time_factor(made: ProcessPredictor, bags: Sequence[Bag]) -> float:
    """Measured times of bags over what their measured slowdowns make of them."""
    told = [bag for bag in bags if bag.time_s and all(solo.time_s for solo in bag.solos)]
    if not told:
        return 1.0
    solos = [bag.solos for bag in told]
    slowdown = [np.array([member.slowdown for member in bag.members], dtype=np.float64) for bag in told]
    through = made.times(solos, slowdown, Running(made.slowdowns, solos))
    return float(np.median(np.array([bag.time_s for bag in told]) / through))
