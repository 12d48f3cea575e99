"""What an evaluation and a training of relative performance take beside what those of all questions take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from crosscast.evaluation.question import Note

RelativeFolds = Literal[
    "leave-application-out",
    "leave-kernel-out",
    "leave-configuration-out",
    "leave-machine-out",
    "leave-scale-out",
    "published",
]
"""What can be held out; ``published`` is the random split of Nichols et al. 2024."""

Weighting = Literal["rows", "kernels", "applications"]
"""What has equal weight."""


@dataclass(frozen=True)
class RelativeEvaluationOptions:
    """Options of `crosscast.evaluate` for ``relative``."""

    devices: str | Sequence[str] | None = None  # Keys of those to compare; those with most times in common
    sources: str | Sequence[str] | None = None  # Keys of those whose counters are used; by default all
    weights: Weighting | None = None  # Rows by default, or kernels where these are held out
    note: Note | None = None  # Called with what is left out of the data


@dataclass(frozen=True)
class RelativeTrainingOptions:
    """Options of `crosscast.train` for ``relative``."""

    devices: str | Sequence[str] | None = None
    sources: str | Sequence[str] | None = None
    level: float = 0.9  # Probability that the intervals are to hold with which errors are measured
    note: Note | None = None
