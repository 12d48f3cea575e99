"""What bags of jobs must keep to, and what is in the way of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.errors import InputError

__all__ = ["ALLOWED", "LOSES", "MEMORY", "SLOWER", "UNLIKELY", "Limits"]

ALLOWED, MEMORY, SLOWER, UNLIKELY, LOSES = range(5)
"""What a limit says of a bag: nothing; too much memory, too slow, likely not to fit; or nothing is gained."""


@dataclass(frozen=True)
class Limits:
    """What bags must keep to.

    Parameters
    ----------
    max_slowdown
        Most that any member slows down; ``None`` for no limit.
    sure
        Whether the upper limit of the interval of a slowdown keeps to it, not only what is predicted.
    memory_bytes
        Memory of the device, if it is known.
    level
        Probability of intervals.
    """

    max_slowdown: float | None = None
    sure: bool = False
    memory_bytes: int | None = None
    level: float = 0.9

    def __post_init__(self) -> None:
        """Check them."""
        if self.max_slowdown is not None and not 1 <= self.max_slowdown < np.inf:
            raise InputError(f"max_slowdown: expected a number of at least 1, found {self.max_slowdown:g}")
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise InputError(f"memory_bytes: expected a number above 0, found {self.memory_bytes}")
        if not 0 < self.level < 1:
            raise InputError(f"level: expected a probability between 0 and 1, found {self.level:g}")
