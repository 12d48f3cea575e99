"""Parameters of the functions of segments, as they are declared and as the driver passes them.

All are inlined, so parameters cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import context
from crosscast.characterization.instrumentation.instrumented import Switches

_NUMBERS = ("group", "base", "size", "global", "offset", "enqueued", "dims", "shift")


def invariant_type(name: str) -> str:
    """LLVM type of an invariant of the launch or the work-group."""
    return "i64" if name.startswith(_NUMBERS) else "ptr"


def formal(parameters: Sequence[ir.Parameter]) -> str:
    """Formal parameters: context, counters, histories, the work-item, invariants, kernel parameters."""
    return listed([f"%cc.id{d}" for d in range(3)], "%cc.wi", parameters)


def actual(parameters: Sequence[ir.Parameter], loop: str) -> str:
    """Arguments inside a loop over work-items."""
    return listed([f"%{axis}{loop}" for axis in "xyz"], f"%wi{loop}", parameters)


def listed(ids: Sequence[str], item: str, parameters: Sequence[ir.Parameter]) -> str:
    """Arguments for a work-item with the given ids and number."""
    values = [
        *("ptr %cc.ctx", "ptr %cc.acc", "ptr %cc.past"),
        *(f"i64 {name}" for name in ids),
        *(f"i64 {item}", "i64 %cc.items"),
        *(f"{invariant_type(name)} %cc.{name}" for name in context.INVARIANTS),
        *(f"{p.type} {p.name}" for p in parameters),
    ]
    return ", ".join(values)


SLICE = "ptr %cc.ctx, i64 %cc.id0, i64 %cc.id1, i64 %cc.id2, ptr %cc.results"
"""Parameters of a slice."""


def load(parameters: Sequence[ir.Parameter], switches: Switches) -> list[str]:
    """Load all invariants and kernel arguments from the context."""
    rows = _invariants(switches)
    for position, parameter in enumerate(parameters):
        rows += _argument(position, parameter)
    return rows


def load_all(parameters: Sequence[ir.Parameter], switches: Switches) -> list[str]:
    """Compute whatever a function of a segment gets as parameters, in a slice."""
    return [
        *load(parameters, switches),
        "  %cc.xy = mul i64 %cc.size0, %cc.size1",
        "  %cc.items = mul i64 %cc.xy, %cc.size2",
        "  %cc.row.y = mul i64 %cc.id1, %cc.size0",
        "  %cc.row.z = mul i64 %cc.id2, %cc.xy",
        "  %cc.row.yz = add i64 %cc.row.y, %cc.row.z",
        "  %cc.wi = add i64 %cc.row.yz, %cc.id0",
    ]


def _invariants(switches: Switches) -> list[str]:
    rows = []
    for name in context.INVARIANTS:
        type_ = invariant_type(name)
        stem, dimension = name[:-1], name[-1]
        fixed = stem == "enqueued" or (stem == "size" and switches.uniform)
        if fixed:
            rows.append(f"  %cc.{name} = add i64 {switches.local_size[int(dimension)]}, 0")
        else:
            rows += [
                f"  %cc.at.{name} = getelementptr i8, ptr %cc.ctx, i64 {context.slot(name)}",
                f"  %cc.{name} = load {type_}, ptr %cc.at.{name}",
            ]
    return rows


def _argument(position: int, parameter: ir.Parameter) -> list[str]:
    """Load one kernel argument; a local pointer is given as an offset into local memory."""
    place = f"%cc.at.arg{position}"
    rows = [f"  {place} = getelementptr i8, ptr %cc.args, i64 {context.ARGUMENT_BYTES * position}"]
    if parameter.type == "ptr addrspace(3)":
        return [
            *rows,
            f"  {place}.offset = load i64, ptr {place}",
            f"  {parameter.name} = getelementptr i8, ptr %cc.local, i64 {place}.offset",
        ]
    if parameter.name.startswith("%cc.given"):
        return [*rows, f"  {parameter.name} = load ptr, ptr {place}"]
    return [*rows, f"  {parameter.name} = load {parameter.type}, ptr {place}"]
