"""What models of co-running predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals

__all__ = ["CoRunPrediction"]


@dataclass(frozen=True, eq=False)
class CoRunPrediction:
    """What is predicted of ``b`` bags; not a number where a model does not tell.

    Parameters
    ----------
    slowdown
        For each bag, time of a job of each member while the whole bag runs over its time alone, of shape
        ``(members,)``.
    time_s
        Time from the common start of a job of each member to the end of the last, in seconds, of shape
        ``(b,)``.
    power_w
        Mean power of the device while the whole bag runs, in watts, of shape ``(b,)``.
    fits
        Probability that the bag fits on the device, of shape ``(b,)``.
    """

    slowdown: tuple[Reals, ...]
    time_s: Reals
    power_w: Reals
    fits: Reals

    @classmethod
    def nothing(cls, sizes: Sequence[int]) -> CoRunPrediction:
        """All unknown, of bags of so many members."""
        unknown = np.full(len(sizes), np.nan)
        return cls(tuple(np.full(size, np.nan) for size in sizes), unknown, unknown.copy(), unknown.copy())
