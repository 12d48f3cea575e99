"""Slowdowns of those of a bag that still run, as the others end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.choose.pairing.weights import turned_out

__all__ = ["SlowdownsLeft"]


@dataclass(frozen=True, eq=False)
class SlowdownsLeft:
    """Slowdowns of those that still run, of bags of one size; each set of them is predicted once.

    Rows are the bags, again and again.
    """

    bags: Integers
    predicted: Callable[[Integers], Reals]
    _found: dict[int, Reals] = field(default_factory=dict)

    def turned_out(self, spreads: Reals, relative: Reals) -> Callable[[Flags], Reals]:
        """The same with errors; see `crosscast.choose.pairing.weights.turned_out`."""

        def slowdowns(running: Flags) -> Reals:
            return turned_out(self._of(running), spreads, relative)

        return slowdowns

    def _of(self, running: Flags) -> Reals:
        result = np.ones(running.shape)
        bag = np.arange(len(running)) % len(self.bags)
        codes = running @ (1 << np.arange(running.shape[1]))
        for code in np.unique(codes).tolist():
            places = [place for place in range(running.shape[1]) if code >> place & 1]
            if len(places) < 2:
                continue
            if code not in self._found:
                found = np.ones(self.bags.shape)
                found[:, places] = self.predicted(self.bags[:, places])
                self._found[code] = found
            rows = codes == code
            result[rows] = self._found[code][bag[rows]]
        return result
