"""Results of an evaluation of parts: those of co-running, of each size of parts."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.evaluate.corun.result import CoRunResult

__all__ = ["PARTITION", "PartitionResult"]

PARTITION = "partition"
"""Quantity: relative time of a member alone on a part, over that on the part on which it is slowest."""


@dataclass(frozen=True, eq=False)
class PartitionResult(CoRunResult):
    """How good a model is on parts of one size, or on all of them.

    Parameters
    ----------
    slices
        Slices of the parts; ``None`` for all sizes together.
    """

    slices: float | None = None
