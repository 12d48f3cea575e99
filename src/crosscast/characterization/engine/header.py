"""What ``runtime/runtime.h`` says of the memory that Python, generated code and the runtime share."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

_PATH = Path(__file__).with_name("runtime") / "runtime.h"
_TEXT = re.sub(r"/\*.*?\*/", "", _PATH.read_text(), flags=re.DOTALL)
_FIELD = re.compile(r"\**(\w+)(?:\[(\d+)\])?$")


@functools.cache
def words(struct: str) -> tuple[str, ...]:
    """Names of the words that a structure begins with, those of an array one by one: ``group0``."""
    match = re.search(rf"^struct {struct} \{{(.*?)^\}}", _TEXT, re.DOTALL | re.MULTILINE)
    assert match is not None
    found: list[str] = []
    for declaration in match[1].split(";"):
        type_, _, declared = re.sub(r"\bstruct ", "", declaration.strip()).partition(" ")
        for field in map(str.strip, declared.split(",")):
            name = _FIELD.match(field)
            if name is None or not (type_ == "u64" or field.startswith("*")):
                return tuple(found)
            found += [f"{name[1]}{k}" for k in range(int(name[2]))] if name[2] else [name[1]]
    return tuple(found)


def _constants() -> dict[str, int]:
    found: dict[str, int] = {}
    for body in re.findall(r"\benum \w*\s*\{(.*?)\}", _TEXT, re.DOTALL):
        value = -1
        for entry in filter(None, map(str.strip, body.split(","))):
            name, _, given = entry.partition(" = ")
            base, _, shift = given.partition(" << ")
            value = int(base) << int(shift or 0) if given else value + 1
            found[name] = value
    return found


CONSTANTS = _constants()
"""All that its enumerations name."""


class Region(NamedTuple):
    """Memory that a kernel may access, as ``struct region`` has it."""

    start: int
    size: int
    granule: int  # Bytes that one counter stands for
    place: int
    constant: int = 0
    read_only: int = 0
    commutes: int = 0  # The order of accesses does not matter
    counted: int = 1  # Some accesses are not recorded as rows
    scattered: int = 0  # What accesses do that are counted in small counters: read 1, write 2
