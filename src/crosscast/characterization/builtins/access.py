"""How one call of a builtin touches memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Access:
    """One event of a builtin call, at its start address ``pointer + index * stride``."""

    # Whether the call reads or writes there; `read-write` is one of each, and `compare-exchange` a read, and
    # a write if it succeeds
    kind: Literal["read", "write", "read-write", "compare-exchange"]
    pointer: int  # Position of the pointer among the arguments
    index: int | None  # Position of the argument that counts units of `stride`; `None` if there is none
    stride: int  # Bytes of one unit of the index
    nbytes: int  # Bytes touched
    alignment: int  # Bytes to which the language lets the start address be aligned
    # How a compare-exchange tells that it wrote: `result` (the result is true) or `equals-argument` (the
    # result equals argument 1)
    success: Literal["none", "pair", "result", "equals-argument"] = "none"
