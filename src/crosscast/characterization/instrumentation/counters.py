"""Numbers of a kernel's counters.

First come the entries into each segment, then the edges that are counted, segment by segment; what
else there is to count is numbered behind them as it is met.
"""

from __future__ import annotations

__all__ = ["Counters"]


class Counters:
    """Hands out counters.

    Parameters
    ----------
    count
        Counters that there are from the start: the entries into each segment.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.conditional_writes: dict[int, str] = {}
        self.order: int | None = None

    def take(self, count: int) -> int:
        """Take some counters, and return the number of the first."""
        first = self.count
        self.count += count
        return first

    def for_writes(self, space: str) -> int:
        """Counter of one compare-exchange's successes, by which it writes to an address space."""
        number = self.take(1)
        self.conditional_writes[number] = space
        return number

    def for_order(self) -> int:
        """Counter that adds up where each work-item's last load or store stood; there is only one."""
        if self.order is None:
            self.order = self.take(1)
        return self.order
