"""Evaluation and training of models of relative performance.

Its options stand here, where the command line reads them without the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from crosscast.evaluation import Note

RelativeFolds = Literal[
    "leave-application-out",
    "leave-kernel-out",
    "leave-configuration-out",
    "leave-machine-out",
    "leave-scale-out",
    "published",
]
"""Names of the folds; ``published`` is the random split of Nichols et al. 2024."""

Weighting = Literal["rows", "kernels", "applications"]
"""Units that have equal weight."""


@dataclass(frozen=True)
class RelativeEvaluationOptions:
    """Options of `crosscast.evaluate` for ``relative``."""

    devices: str | Sequence[str] | None = (
        None  # Keys of those to compare; by default those with most times in common
    )
    sources: str | Sequence[str] | None = None  # Keys of those whose counters are used; by default all
    weights: Weighting | None = None  # Rows by default, or kernels where these are held out
    note: Note | None = None  # Called with a sentence about data that are left out


@dataclass(frozen=True)
class RelativeTrainingOptions:
    """Options of `crosscast.train` for ``relative``."""

    devices: str | Sequence[str] | None = None
    sources: str | Sequence[str] | None = None
    level: float = 0.9  # Of the intervals when errors are measured
    note: Note | None = None
