"""What an evaluation and a training of co-runs take beside what those of all questions take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

CoRunFolds = Literal["leave-benchmark-out", "leave-mix-out", "random-80-20"]
"""What can be held out."""


@dataclass(frozen=True)
class CoRunEvaluationOptions:
    """Options of `crosscast.evaluate` for ``corun``."""

    device: str | None = None  # That the co-runners share; by default that of most mixes
    probes: Sequence[int] = (0,)  # Mixes with the held-out application that are measured before the others
    level: float | None = 0.9  # Probability that the intervals are to hold; `None` for no intervals


@dataclass(frozen=True)
class CoRunTrainingOptions:
    """Options of `crosscast.train` for ``corun``."""

    device: str | None = None
    level: float = 0.9
