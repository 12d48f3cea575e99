"""Memory of values that live across barriers: an array per value, with a place per work-item.

A uniform value has one place a work-group. Two places, in fact: what enters a segment stays while
the segment runs, so what leaves it stands apart, and the driver hands it on.
"""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.characterization.instrumentation import context
from crosscast.characterization.instrumentation.names import Names
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.segments import Carried

__all__ = ["UNIFORM_STEP", "LiveMemory"]

UNIFORM_STEP = 256
"""Bytes between what enters a segment and what leaves it, for a uniform value."""

_LINE = 64
_LEAD_BYTES = _LINE
"""The first place holds what a segment that ran once counted for each work-item."""


class LiveMemory:
    """Places of carried values.

    Parameters
    ----------
    carried
        All values that the segments of a kernel carry.
    names
        Where new names come from.
    scopes
        The kernel's alias scopes.
    """

    def __init__(self, carried: Sequence[Carried], names: Names, scopes: Scopes) -> None:
        self._names, self._scopes = names, scopes
        self.nbytes = _LEAD_BYTES
        self.offsets: dict[str, int] = {}
        for value in carried:
            self.offsets[value.name] = self.nbytes
            array = -(-value.nbytes * context.MAX_ITEMS // _LINE) * _LINE
            self.nbytes += array + _LINE + UNIFORM_STEP

    def load(self, value: Carried, result: str) -> list[str]:
        """Load a value, under the name `result`."""
        address, texts = self._place(value, leaving=False)
        return [*texts, f"{result} = load {value.type}, ptr {address}{self._scope(value, leaving=False)}"]

    def save(self, value: Carried, slot: str | None) -> list[str]:
        """Save a value, from its stack slot if it has one."""
        kept = self._names.unique("v") if slot else value.name
        address, texts = self._place(value, leaving=True)
        if slot:
            texts.append(f"{kept} = load {value.type}, ptr {slot}")
        return [*texts, f"store {value.type} {kept}, ptr {address}{self._scope(value, leaving=True)}"]

    def _place(self, value: Carried, *, leaving: bool) -> tuple[str, list[str]]:
        base, address = self._names.unique("p"), self._names.unique("p")
        offset, index = self.offsets[value.name], "%cc.wi"
        if value.uniform:
            offset, index = offset + leaving * UNIFORM_STEP, "0"
        return address, [
            f"{base} = getelementptr i8, ptr %cc.live, i64 {offset}",
            f"{address} = getelementptr [{value.nbytes} x i8], ptr {base}, i64 {index}",
        ]

    def _scope(self, value: Carried, *, leaving: bool) -> str:
        direction = ("out" if leaving else "in") if value.uniform else ""
        return self._scopes.attach(f"live{value.name}{direction}")
