"""The oracle: knows all runs of the kernel that it is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags
from crosscast.choose.limit import within_cap
from crosscast.choose.walk import Chooser, Walk
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["Oracle"]


@dataclass(frozen=True)
class Oracle:
    """Takes the fastest configuration that was measured within the cap; a reference, not a method.

    ``sees_all`` asks the evaluation for the kernel's runs at all configurations in place of the samples.
    Where nothing is within the cap, it takes what needs the least power.
    """

    name: str = "oracle"
    sees_all: bool = True

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Nothing is learned; see `Method.fit`."""
        return _OracleChooser()


@dataclass(frozen=True)
class _OracleChooser:
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        within = within_cap(observed.power_w, power_cap)
        if within.any():
            place = np.argmin(np.where(within, observed.time_s, np.inf))
        else:
            place = np.argmin(observed.power_w)
        yield int(observed.numbers[place])
