"""Work-group collectives such as ``work_group_reduce_add``.

A collective cuts the kernel like a barrier. Each work-item hands its arguments over at the end of a
segment; the runtime computes the results; each work-item takes its own at the start of the next one.
"""

from __future__ import annotations

import re

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import builtin_name, parse_call
from crosscast.characterization.instrumentation.names import Names
from crosscast.errors import UnsupportedError

__all__ = ["collective_code", "hand_over", "take"]

_COLLECTIVE = re.compile(
    r"work_group_(all|any|broadcast|reduce|scan_exclusive|scan_inclusive)(?:_(add|min|max))?$"
)
_KINDS = ("all", "any", "broadcast", "reduce", "scan_exclusive", "scan_inclusive")
_OPERATIONS = ("add", "min", "max")
_TYPES = {"i": 0, "j": 1, "l": 2, "m": 3, "f": 4, "d": 5}


def collective_code(call: ir.Instruction) -> tuple[int, int]:
    """Operation and type of a collective, as the runtime numbers them.

    Raises
    ------
    UnsupportedError
        If there is no such collective, or not for this type.
    """
    symbol = parse_call(call).name
    name = builtin_name(symbol)
    match = _COLLECTIVE.match(name)
    letter = symbol[len(f"_Z{len(name)}{name}") :][:1]
    if match is None or letter not in _TYPES:
        raise UnsupportedError(f"{call.where}{name} is not supported")
    operation = _OPERATIONS.index(match[2]) if match[2] else 0
    return _KINDS.index(match[1]) + 16 * operation, _TYPES[letter]


def hand_over(collective: ir.Instruction, names: Names) -> list[str]:
    """Hand a work-item's arguments to the runtime: 16 bytes, a value and whose value is wanted."""
    (type_, value), *whose = parse_call(collective).arguments
    address, second = names.unique("x"), names.unique("x")
    ids = [local_id for _, local_id in whose] + ["0"] * (3 - len(whose))
    plane, row, line, item = (names.unique("x") for _ in range(4))
    return [
        f"{address} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 0",
        f"{second} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 1",
        f"store {type_.split(' ')[0]} {value}, ptr {address}",
        f"{plane} = mul i64 {ids[2]}, %cc.size1",
        f"{row} = add i64 {plane}, {ids[1]}",
        f"{line} = mul i64 {row}, %cc.size0",
        f"{item} = add i64 {line}, {ids[0]}",
        f"store i64 {item}, ptr {second}",
    ]


def take(collective: ir.Instruction, result: str, names: Names) -> list[str]:
    """Take a work-item's result.

    Parameters
    ----------
    collective
        The call.
    result
        Name to give to the result.
    names
        Where new names come from.
    """
    address = names.unique("x")
    return [
        f"{address} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 0",
        f"{result} = load {collective.type}, ptr {address}",
    ]
