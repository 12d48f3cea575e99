"""Whether a bag fits on a device: the more its members want together, the less likely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_names, kept_reals
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo

__all__ = ["Fits", "fit_fits"]

_RIDGE = 1e-2
_STEPS = 50
_MEMORY, _TIME = "memory_bytes", "time_s"
_RATE = "_per_s"
_LEAST = 3
"""Fewer bags that do not fit tell nothing."""


@dataclass(frozen=True)
class Fits:
    """Logistic in the logarithm of a sum over the members.

    Parameters
    ----------
    wanted
        What is summed: memory, time, or the inverse of a rate alone.
    centre, spread
        Mean and standard deviation of its logarithm in the training.
    intercept, slope
        Of the log odds that a bag fits.
    """

    wanted: str
    centre: float
    spread: float
    intercept: float
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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
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
