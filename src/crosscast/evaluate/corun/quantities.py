"""What is predicted of bags and measured in them, as rows that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.corun.prediction import CoRunPrediction
from crosscast.tables.corun.bag import Bag

__all__ = ["FITS", "QUANTITIES", "Rows", "measured", "predicted"]

QUANTITIES = ("slowdown", "speed", "time", "power")
"""Quantities: slowdown and speed (its inverse) of each member, time and power of the bag."""

FITS = "fits"
"""Whether a bag fits on the device, which is a probability."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A value for each member of ``b`` bags, or for each bag.

    Parameters
    ----------
    value
        The values, of shape ``(n,)``; not a number where one is not known.
    bag
        Place of the bag of each, of shape ``(n,)``.
    """

    value: Reals
    bag: Integers


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
