"""Parameters of the functions of segments, as they are declared and as the driver passes them.

All are inlined, so parameters cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import context

_NUMBERS = ("group", "base", "size", "global", "offset", "enqueued", "dims", "shift")


def invariant_type(name: str) -> str:
    """LLVM type of an invariant of the launch or the work-group."""
    return "i64" if name.startswith(_NUMBERS) else "ptr"


def formal(parameters: Sequence[ir.Parameter]) -> str:
    """Formal parameters: context, counters, histories, the work-item, invariants, kernel parameters."""
    return _listed([f"%cc.id{d}" for d in range(3)], "%cc.wi", parameters)


def actual(parameters: Sequence[ir.Parameter], loop: str) -> str:
    """Arguments inside a loop over work-items."""
    return _listed([f"%{axis}{loop}" for axis in "xyz"], f"%wi{loop}", parameters)


def _listed(ids: Sequence[str], item: str, parameters: Sequence[ir.Parameter]) -> str:
    values = [
        *("ptr %cc.ctx", "ptr %cc.acc", "ptr %cc.past"),
        *(f"i64 {name}" for name in ids),
        *(f"i64 {item}", "i64 %cc.items"),
        *(f"{invariant_type(name)} %cc.{name}" for name in context.INVARIANTS),
        *(f"{p.type} {p.name}" for p in parameters),
    ]
    return ", ".join(values)
