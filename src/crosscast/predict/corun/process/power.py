"""Power while a bag runs: from the powers of its members alone, and how much of the device they use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_reals
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo

__all__ = ["Power", "fit_power"]

_COLUMNS = 4
_RIDGE = 1e-2
_LEAST = 5


@dataclass(frozen=True, eq=False)
class Power:
    """Power of a bag over that of the member with the highest alone, as a ridge regression of its logarithm.

    Parameters
    ----------
    centre, spread, weights
        Mean, standard deviation and weight of each column, of shape ``(4,)``.
    intercept
        Its mean in the training.
    utilisation
        Median utilisation of the training's members, for those of which it is not known.
    low, high
        Least and largest ratio in the training: nothing beyond is predicted.
    """

    centre: Reals
    spread: Reals
    weights: Reals
    intercept: float
    utilisation: float
    low: float
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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        scaled, numbers = kept_reals(state, "scaled", 2), kept_reals(state, "numbers", 1)
        if scaled.shape != (3, _COLUMNS) or len(numbers) != 4 or (scaled[1] <= 0).any():
            raise InputError(f"model: power: expected 3 rows of {_COLUMNS} numbers and 4 more, found others")
        return cls(*scaled, *numbers.tolist())


def fit_power(bags: Sequence[Bag]) -> Power | None:
    """Fit it to bags whose power is known, and that of all members; ``None`` if there are fewer than 5."""
    told = [bag for bag in bags if bag.power_w and np.isfinite(_powers(bag.solos)).all()]
    if len(told) < _LEAST:
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
    system = scaled.T @ scaled + _RIDGE * len(told) * np.eye(_COLUMNS)
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
