"""Layout of the memory that generated code and the runtime share, as `runtime/runtime.h` has it.

Every slot of a thread's context has 8 bytes. Those before `rows` are what generated code reads.

Numbers of a kernel's counters.

First come the entries into each segment, then the edges that are counted, segment by segment; what
else there is to count is numbered behind them as it is met.
"""

from __future__ import annotations

from crosscast.characterization.engine.header import CONSTANTS, words

_SLOTS = words("context")

INVARIANTS = tuple(name for name in _SLOTS[: _SLOTS.index("rows")] if name != "items")
"""Slots that generated code reads once a work-group."""

MAX_ITEMS = CONSTANTS["MAX_ITEMS"]
ROW_BYTES = MAX_ITEMS + 64
"""Bytes of a row of branch outcomes."""

ARGUMENT_BYTES = 128
"""Bytes that the argument block has for each kernel argument; larger ones stand elsewhere."""

HISTORY_BYTES = 8 * len(words("history"))
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
