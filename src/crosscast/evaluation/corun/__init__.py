"""Evaluation and training of models of applications that share a device.

Its options stand here, where the command line reads them without the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

CoRunFolds = Literal["leave-benchmark-out", "leave-mix-out", "random-80-20"]
"""Names of the folds."""


@dataclass(frozen=True)
class CoRunEvaluationOptions:
    """Options of `crosscast.evaluate` for ``corun``."""

    device: str | None = None  # Shared by the co-runners; by default that of most mixes
    probes: Sequence[int] = (0,)  # Mixes with the held-out application that are measured before the others
    level: float | None = 0.9  # Probability that the intervals are to hold; `None` for no intervals


@dataclass(frozen=True)
class CoRunTrainingOptions:
    """Options of `crosscast.train` for ``corun``."""

    device: str | None = None
    level: float = 0.9
