"""Layout of the memory that generated code and the runtime share; `runtime/runtime.h` mirrors it.

Every slot has 8 bytes. Slots up to `PER_LAUNCH` are set once a launch; the group's slots before
each work-group.

Numbers of a kernel's counters.

First come the entries into each segment, then the edges that are counted, segment by segment; what
else there is to count is numbered behind them as it is met.
"""

from __future__ import annotations

_SLOTS = (
    *(f"group{d}" for d in range(3)),  # group id
    *(f"base{d}" for d in range(3)),  # global id of its first work-item
    *(f"size{d}" for d in range(3)),  # local size of this group
    "items",  # work-items of this group
    *(f"global{d}" for d in range(3)),
    *(f"groups{d}" for d in range(3)),
    *(f"offset{d}" for d in range(3)),
    *(f"enqueued{d}" for d in range(3)),  # local size asked for
    "dims",
    "shift_buffer",  # distance from data to its counters
    "shift_global",
    "shift_local",
    "shift_small",  # the same to small counters, after addresses are divided by 4
    "local",  # this thread's local memory
    "private",  # private arrays that live across barriers
    "live",  # values that live across barriers
    "outcomes",  # branch outcomes of one segment, a row a branch
    "histories",
    "tables",  # history pattern counts, a table a branch
    "counts",  # counters of executed edges
    "piece",  # instructions since the last barrier, a work-item each
    "total",  # instructions so far, a work-item each
    "args",
    "pieces_log",
    "totals_log",
    "dynamic",  # counters of accesses whose memory is known only while running
    "exchange",  # values of a work-group collective
    "order",  # per work-item state of the published tool's freedom-to-reorder
    "scratch",  # arguments of a printf call
    "warps",  # arguments and results of warp operations, and where each work-item stands
    "rows",  # rows of accesses at equal distances, by access
)

INVARIANTS = tuple(name for name in _SLOTS if name not in ("items", "rows"))
"""Slots that generated code reads once a work-group."""

MAX_ITEMS = 4096
ROW_BYTES = MAX_ITEMS + 64
"""Bytes of a row of branch outcomes."""

ARGUMENT_BYTES = 128
"""Bytes that the argument block has for each kernel argument; larger ones stand elsewhere."""

HISTORY_BYTES = 80
WINDOW = 16
"""Outcomes of one history pattern."""

TABLE_BYTES = 8 << (WINDOW + 2)
"""Bytes of a branch's table: 2^18 counts, indexed by up to 17 outcomes behind a leading 1."""


def slot(name: str) -> int:
    """Byte offset of a slot."""
    return 8 * _SLOTS.index(name)


class Names:
    """Gives names that nothing else in the kernel has."""

    def __init__(self) -> None:
        self._serial = 0

    def unique(self, stem: str) -> str:
        """Return a new name that begins with ``%cc.`` and `stem`."""
        self._serial += 1
        return f"%cc.{stem}{self._serial}"


class Counters:
    """Hands out counters."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.conditional_writes: dict[int, str] = {}
        self.order: int | None = None
        self.rows = 0

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

    def for_row(self) -> int:
        """Number of the rows of one access; the next is that of parts of them."""
        self.rows += 2
        return self.rows - 2

    def for_order(self) -> int:
        """Counter that adds up where each work-item's last load or store stood; there is only one."""
        if self.order is None:
            self.order = self.take(1)
        return self.order
