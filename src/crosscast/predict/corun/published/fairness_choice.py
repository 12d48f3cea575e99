"""Which fairness of a member stands for its fairness in a bag (paper 004, section 5.1.4).

Each application has run with the microbenchmarks Low, Medium and High. In a bag, the pressure of the others
on the last-level cache, the sum of their misses, says which of the three they resemble.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_names, kept_reals
from crosscast.tables.corun.solo import Solo

__all__ = ["LEVELS", "PRESSURES", "FairnessChoice", "fairness_with"]

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
    """Thresholds of the pressure, fitted to training bags.

    Parameters
    ----------
    pressure
        Which of `PRESSURES` tells it; nothing where no member has any: all are medium then.
    usual
        What stands in for the pressure of an application that lacks it: the training median.
    thresholds
        Sums of the others' pressures above which they are medium, and high, of shape ``(2,)``.
    """

    pressure: str
    usual: float
    thresholds: Reals

    @classmethod
    def fit(cls, bags: Sequence[tuple[Solo, ...]]) -> FairnessChoice:
        """Fit it to bags of one size.

        The paper does not say how its thresholds were found. Here they are the tertiles of the sums in the
        training bags. Pressure is told by what most members have, and differs among them; of equals, by the
        first.

        Parameters
        ----------
        bags
            At least one.
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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
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
