"""Evaluation and training of models of times.

Its options stand here, where the command line reads them without the rest.
"""

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
"""Folds; ``leave-source-out`` only for times of launches."""


@dataclass(frozen=True)
class TimeEvaluationOptions:
    """Options of `crosscast.evaluate` for ``time``."""

    # Numbers of devices on which a kernel is measured before the others are predicted
    probes: Sequence[int] = (0,)
    level: float = 0.9  # Probability that the intervals are to hold


@dataclass(frozen=True)
class TimeTrainingOptions:
    """Options of `crosscast.train` for ``time``."""

    level: float = 0.9  # Of the intervals when errors are measured
