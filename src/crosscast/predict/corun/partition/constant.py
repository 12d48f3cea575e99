"""The mean of all jobs, whatever the mix: any model of parts must beat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.predict.corun.partition.learner import Amount, Rows
from crosscast.predict.state import kept_reals
from crosscast.predict.stored import State

__all__ = ["Constant", "LearnedConstant"]


@dataclass(frozen=True)
class Constant:
    """The mean of each size of parts over the members."""

    name: ClassVar[str] = "mean"
    choices: ClassVar[int] = 1

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int = 0) -> LearnedConstant:
        """Take the mean; nothing is random."""
        return LearnedConstant(rows.alone.mean(axis=0))

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """What it predicts, of shape ``(1, r, s)``."""
        return self.fit(rows, amount, seed).predict(features)[None]


@dataclass(frozen=True, eq=False)
class LearnedConstant:
    """Means, of shape ``(s,)``."""

    means: Reals
    form: ClassVar[str] = "constant"

    def predict(self, features: Reals) -> Reals:
        """The means, for each row."""
        return np.tile(self.means, (len(features), 1))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"means": self.means}

    @classmethod
    def from_state(cls, state: State, levels: int) -> LearnedConstant:
        """Make it from its arrays."""
        return cls(kept_reals(state, "means", 1))
