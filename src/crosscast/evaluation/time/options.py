"""What an evaluation and a training of models of times take beside what those of all questions take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

TimeFolds = Literal[
    "leave-application-out",
    "leave-kernel-out",
    "leave-device-out",
    "leave-device-and-application-out",
    "leave-source-out",
]
"""What can be held out; ``leave-source-out`` of times of launches alone."""


@dataclass(frozen=True)
class TimeEvaluationOptions:
    """Options of `crosscast.evaluate` for ``time``."""

    probes: Sequence[int] = (0,)  # On how many devices a kernel is measured before the others are predicted
    level: float = 0.9  # Probability that the intervals are to hold


@dataclass(frozen=True)
class TimeTrainingOptions:
    """Options of `crosscast.train` for ``time``."""

    level: float = 0.9  # Probability that the intervals are to hold with which errors are measured
