"""Scores of predictions of one quantity, over all that was held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.forecast import CoRunPrediction
from crosscast.tables.corun.bag import Bag


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows of a quantity that were predicted and measured."""

    # What was measured, what was predicted and the limits of its interval, of shape `(n,)`; limits are not a
    # number where there are none
    true: Reals
    centre: Reals
    low: Reals
    high: Reals
    group: Integers  # Number of the fold of each, of shape `(n,)`
    bag_size: Integers  # Members of the bag of each, of shape `(n,)`

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.true)

    def where(self, chosen: Flags) -> Scored:
        """Some of the rows."""
        return Scored(*(each[chosen] for each in vars(self).values()))

    @property
    def relative_error(self) -> Reals:
        """Absolute error over the true value, of shape ``(n,)`` (Equation 1 of paper 004)."""
        errors: Reals = np.abs(self.centre - self.true) / self.true
        return errors

    @property
    def held(self) -> Reals:
        """Whether each interval holds the true value, as 1 and 0; not a number without an interval."""
        inside = (self.low <= self.true) & (self.true <= self.high)
        return np.where(np.isfinite(self.low), inside, np.nan)


def mean_error(scored: Scored) -> tuple[float, float]:
    """Mean absolute percentage error, and mean absolute error in the quantity's own unit.

    >>> ones = np.ones(2)
    >>> places = np.zeros(2, np.int64)
    >>> mean_error(Scored(np.array([1.0, 2.0]), np.array([1.5, 2.0]), ones, ones, places, places))
    (25.0, 0.25)
    """
    return 100 * float(scored.relative_error.mean()), float(np.abs(scored.centre - scored.true).mean())


def worst_coverage(scored: Scored) -> tuple[int, float]:
    """The group whose intervals hold least often, and how often they do; one has intervals at least."""
    groups = np.unique(scored.group)
    shares = [float(scored.held[scored.group == group].mean()) for group in groups]
    place = int(np.nanargmin(shares))
    return int(groups[place]), shares[place]


def area_under_curve(true: Reals, probability: Reals) -> float | None:
    """Area under the receiver's operating curve: how often a 1 has a higher probability than a 0.

    Ties count half. ``None`` if all are the same.

    >>> area_under_curve(np.array([0.0, 1.0, 1.0]), np.array([0.2, 0.2, 0.9]))
    0.75
    """
    if not np.isin(true, (0.0, 1.0)).all():
        raise InputError("true: expected 0 and 1, found others")
    ones, zeros = probability[true == 1], np.sort(probability[true == 0])
    if not len(ones) or not len(zeros):
        return None
    below = np.searchsorted(zeros, ones, "left")
    upto = np.searchsorted(zeros, ones, "right")
    return float((below + upto).mean() / 2 / len(zeros))


QUANTITIES = ("slowdown", "speed", "time", "power")
"""Quantities: slowdown and speed (its inverse) of each member, time and power of the bag."""

FITS = "fits"
"""Whether a bag fits on the device, which is a probability."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A value for each member of ``b`` bags, or for each bag."""

    value: Reals  # The values, of shape `(n,)`; not a number where one is not known
    bag: Integers  # Place of the bag of each, of shape `(n,)`


def measured(bags: Sequence[Bag], quantity: str) -> Rows:
    """What was measured; of bags of which a member failed nothing.

    A slowdown, time or power of 0 is none: nothing takes no time, and a sensor that says 0 does not work.
    """
    if quantity in ("slowdown", "speed"):
        found = [None if bag.failed else member.slowdown for bag in bags for member in bag.members]
        return _of_members(_above_0(found), [len(bag.members) for bag in bags], quantity)
    read = _OF_BAGS[quantity]
    found = [None if bag.failed else read(bag) for bag in bags]
    values = np.array(found, dtype=np.float64) if quantity == FITS else _above_0(found)
    return Rows(values, np.arange(len(bags)))


def predicted(prediction: CoRunPrediction, quantity: str) -> Rows:
    """What was predicted, in the same rows."""
    if quantity in ("slowdown", "speed"):
        sizes = [len(each) for each in prediction.slowdown]
        return _of_members(np.concatenate([np.empty(0), *prediction.slowdown]), sizes, quantity)
    by_name = {"time": prediction.time_s, "power": prediction.power_w, FITS: prediction.fits}
    return Rows(by_name[quantity], np.arange(len(prediction.time_s)))


_OF_BAGS: Mapping[str, Callable[[Bag], float | None]] = {
    "time": lambda bag: bag.time_s,
    "power": lambda bag: bag.power_w,
    FITS: lambda bag: None if bag.fits is None else float(bag.fits),
}


def _above_0(found: Sequence[float | None]) -> Reals:
    return np.array([value or np.nan for value in found], dtype=np.float64)


def _of_members(values: Reals, sizes: Sequence[int], quantity: str) -> Rows:
    places = np.repeat(np.arange(len(sizes)), sizes)
    return Rows(1.0 / values if quantity == "speed" else values, places)


@dataclass(frozen=True, eq=False)
class CoRunResult:
    """How good a model is at a quantity; ``None`` for what does not apply."""

    model: str  # Name of the model
    baseline: bool  # Whether others are compared with it
    split: str  # What was held out
    probes: int  # Bags with what was held out that were known
    bag_size: int | None  # Members of the bags; `None` for all of them
    quantity: str  # `slowdown` or `speed` of members, `time` or `power` of bags, or whether a bag `fits`
    rows: int  # How many values were predicted
    mape: float | None = None  # Mean absolute percentage error, in per cent
    mae: float | None = None  # Mean absolute error in the unit of the quantity
    coverage: float | None = None  # Share of the intervals that hold what was measured
    width: float | None = None  # Mean width of the intervals, in the unit of the quantity
    worst_coverage: float | None = None  # Least share among what was held out, and its name
    worst: str | None = None
    auc: float | None = None  # Area under the receiver's operating curve, of probabilities
    by_group: dict[str, float] | None = None  # Mean absolute percentage error of each group that was held out
    scored: Scored | None = None  # The rows themselves; `None` of probabilities

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows, as an object of JSON; what is not known is null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "scored"
        }
