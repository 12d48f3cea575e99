"""How one call of a builtin touches memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Access"]


@dataclass(frozen=True)
class Access:
    """One event of a builtin call, at its start address ``pointer + index * stride``.

    Parameters
    ----------
    kind
        Whether the call reads or writes there; ``read-write`` is one of each, and
        ``compare-exchange`` a read, and a write if it succeeds.
    pointer
        Position of the pointer among the arguments.
    index
        Position of the argument that counts units of `stride`; ``None`` if there is none.
    stride
        Bytes of one unit of the index.
    nbytes
        Bytes touched.
    alignment
        Bytes to which the language lets the start address be aligned.
    success
        How a compare-exchange tells that it wrote: ``result`` (the result is true) or
        ``equals-argument`` (the result equals argument 1).
    """

    kind: Literal["read", "write", "read-write", "compare-exchange"]
    pointer: int
    index: int | None
    stride: int
    nbytes: int
    alignment: int
    success: Literal["none", "pair", "result", "equals-argument"] = "none"
