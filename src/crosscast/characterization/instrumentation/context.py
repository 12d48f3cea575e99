"""Layout of the memory that generated code and the runtime share; `runtime/runtime.h` mirrors it.

Every slot has 8 bytes. Slots up to `PER_LAUNCH` are set once a launch; the group's slots before
each work-group.
"""

from __future__ import annotations

__all__ = [
    "ARGUMENT_BYTES",
    "HISTORY_BYTES",
    "INVARIANTS",
    "MAX_ITEMS",
    "ROW_BYTES",
    "TABLE_BYTES",
    "WINDOW",
    "slot",
]

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
)

INVARIANTS = tuple(name for name in _SLOTS if name not in ("items",))
"""Slots that generated code reads once a work-group."""

MAX_ITEMS = 4096
ROW_BYTES = MAX_ITEMS + 64
"""Bytes of a row of branch outcomes."""

ARGUMENT_BYTES = 128
"""Bytes that the argument block has for each kernel argument; larger ones stand elsewhere."""

HISTORY_BYTES = 72
WINDOW = 16
"""Outcomes of one history pattern."""

TABLE_BYTES = 8 << (WINDOW + 2)
"""Bytes of a branch's table: 2^18 counts, indexed by up to 17 outcomes behind a leading 1."""


def slot(name: str) -> int:
    """Byte offset of a slot."""
    return 8 * _SLOTS.index(name)
