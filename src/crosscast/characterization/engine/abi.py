"""Binary interface of generated code, runtime and Python, from `runtime/runtime.h`."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

_PATH = Path(__file__).with_name("runtime") / "runtime.h"
_TEXT = re.sub(r"/\*.*?\*/", "", _PATH.read_text(), flags=re.DOTALL)
_FIELD = re.compile(r"\**(\w+)(?:\[(\d+)\])?$")


@functools.cache
def words(struct: str) -> dict[str, str]:
    """Return the leading words of a structure and their LLVM types; arrays are expanded: ``group0``."""
    match = re.search(rf"^struct {struct} \{{(.*?)^\}}", _TEXT, re.DOTALL | re.MULTILINE)
    assert match is not None
    types: dict[str, str] = {}
    for declaration in match[1].split(";"):
        type_, _, declared = re.sub(r"\bstruct ", "", declaration.strip()).partition(" ")
        for field in map(str.strip, declared.split(",")):
            name = _FIELD.match(field)
            if name is None or not (type_ == "u64" or field.startswith("*")):
                return types
            names = [f"{name[1]}{k}" for k in range(int(name[2]))] if name[2] else [name[1]]
            types |= dict.fromkeys(names, "ptr" if field.startswith("*") else "i64")
    return types


def _constants() -> dict[str, int]:
    constants: dict[str, int] = {}
    for body in re.findall(r"\benum \w*\s*\{(.*?)\}", _TEXT, re.DOTALL):
        value = -1
        for entry in filter(None, map(str.strip, body.split(","))):
            name, _, expression = entry.partition(" = ")
            base, _, shift = expression.partition(" << ")
            value = int(base) << int(shift or 0) if expression else value + 1
            constants[name] = value
    return constants


CONSTANTS = _constants()
"""Values of all enumerators."""


_LLVM_TYPES = {"void": "void", "u64": "i64", "u32": "i32"}
_PROTOTYPE = re.compile(r"^(u64|u32|void)( \*| )(cc_(?!group\b)\w+)\(([^()]*)\);", re.MULTILINE)


def _declaration(match: re.Match[str]) -> str:
    """Declare a function of the runtime in LLVM IR."""
    types = ["ptr" if "*" in p else _LLVM_TYPES[p.split()[0]] for p in match[4].split(",") if p != "void"]
    result = "ptr" if "*" in match[2] else _LLVM_TYPES[match[1]]
    return f"declare {result} @{match[3]}({', '.join(types)})"


RUNTIME_FUNCTIONS = {match[3]: _declaration(match) for match in _PROTOTYPE.finditer(_TEXT)}
"""Declarations of the runtime's functions, by name."""


class MemoryRegion(NamedTuple):
    """Memory that a kernel may access, as ``struct region``."""

    start: int
    size: int
    granule: int  # Bytes of one counter
    kind: int
    constant: int = 0
    read_only: int = 0
    commutes: int = 0  # The order of accesses does not matter
    counted: int = 1  # Some accesses are not strided
    scattered: int = 0  # Accesses that are counted in small counters: read 1, write 2
    read_bytes: int = 0  # Bytes of the widest read, and of the widest write
    write_bytes: int = 0
    overlaps: int = 0  # Accesses that may overlap without equal start addresses: reads 1, writes 2
    lines_64: int = 0  # Distinct lines, after the reduction
    lines_128: int = 0
    before: int = 0  # Bytes read before and behind it
    behind: int = 0


_SLOTS = [*words("context")]

INVARIANTS = {
    name: type_
    for name, type_ in words("context").items()
    if name != "items" and _SLOTS.index(name) < _SLOTS.index("strided")
}
"""Slots that generated code reads once a work-group, and their types."""

MAX_ITEMS = CONSTANTS["MAX_ITEMS"]
ROW_BYTES = MAX_ITEMS + 64
"""Bytes of a row of branch outcomes."""

ARGUMENT_BYTES = 128
"""Bytes of each kernel argument in the argument block; larger ones are behind the block."""

HISTORY_BYTES = 8 * len(words("history"))
WINDOW = 16
"""Outcomes of one history pattern."""

TABLE_BYTES = 8 << (WINDOW + 2)
"""Bytes of a branch's table: 2^18 counts, indexed by up to 17 outcomes behind a leading 1."""


def slot(name: str) -> int:
    """Return the byte offset of a slot."""
    return 8 * _SLOTS.index(name)
