"""``convert_*`` (OpenCL C 1.2, section 6.2.3) and ``as_*`` (section 6.2.4)."""

from __future__ import annotations

import re

from crosscast.characterization.builtins import rounding
from crosscast.characterization.builtins.mangling import Declaration
from crosscast.characterization.builtins.spelling import (
    BITS,
    FLOATS,
    INTEGERS,
    convert,
    element,
    per_element,
    reinterpret,
    same_size_integer,
    signed,
    splat,
    vector,
)

_TYPES = "|".join(sorted(BITS, key=len, reverse=True))
_CONVERT = re.compile(rf"convert_({_TYPES})(2|3|4|8|16|)(_sat)?(?:_(rte|rtz|rtp|rtn))?")
_AS_TYPE = re.compile(rf"as_({_TYPES})(2|3|4|8|16|)")
_ROUND_TO_INTEGER = {"rte": "roundeven", "rtz": "trunc", "rtp": "ceil", "rtn": "floor"}


def define(declaration: Declaration) -> str | None:
    """Result type and block of a conversion; ``None`` for other functions."""
    if len(declaration.parameters) != 1 or declaration.parameters[0].base not in BITS:
        return None
    (source,) = declaration.parameters
    if match := _AS_TYPE.fullmatch(declaration.name):
        width = int(match[2] or 1)
        return f"{vector(match[1], width)} {{ return {reinterpret('a0', match[1], width)}; }}"
    match = _CONVERT.fullmatch(declaration.name)
    if match is None or int(match[2] or 1) != source.width:
        return None
    target, width = match[1], source.width
    if target in FLOATS:
        body = f"return {converted('a0', source.base, target, width, match[4] or 'rte')};"
    elif source.base in INTEGERS:
        body = f"return {_between_integers(source.base, target, width, match[3] is not None)};"
    else:
        body = _to_integer(source.base, target, width, match[4] or "rtz", match[3] is not None)
    return f"{vector(target, width)} {{ {body} }}"


def converted(name: str, source: str, target: str, width: int, mode: str) -> str:
    """A variable as a floating-point type; the text needs `rounding.PRELUDE`."""
    if rounding.is_cast(source, target, mode):
        return convert(name, target, width)
    return per_element(
        target, width, lambda k: rounding.rounded(element(name, k, width), source, target, mode)
    )


def _limits(base: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if base != signed(base):
        return 0, (1 << BITS[base]) - 1
    return -(1 << (BITS[base] - 1)), (1 << (BITS[base] - 1)) - 1


def _literal(value: int) -> str:
    """An integer constant; the most negative one has no literal of its own."""
    if value == -(1 << 63):
        return "LONG_MIN"
    return f"{value}UL" if value > (1 << 63) - 1 else f"{value}L"


def _between_integers(source: str, target: str, width: int, saturate: bool) -> str:
    if not saturate:
        return convert("a0", target, width)
    (low, high), (target_low, target_high) = _limits(source), _limits(target)
    value = "a0"
    if target_low > low:
        value = f"__builtin_elementwise_max({value}, {splat(_literal(target_low), source, width)})"
    if target_high < high:
        value = f"__builtin_elementwise_min({value}, {splat(_literal(target_high), source, width)})"
    return convert(value, target, width)


def _to_integer(source: str, target: str, width: int, mode: str, saturate: bool) -> str:
    real = "float" if source == "half" else source
    value = f"__builtin_elementwise_{_ROUND_TO_INTEGER[mode]}({convert('a0', real, width)})"
    start = f"{vector(real, width)} x = {value}; "
    if not saturate:
        # Out of range the narrow conversion is undefined; through int it wraps as C does on hosts.
        through = convert("x", "int", width) if BITS[target] < 32 else "x"
        return f"{start}return {convert(through, target, width)};"
    low, high = _limits(target)
    lowest, beyond = (splat(f"{float(limit).hex()}", real, width) for limit in (low, high + 1))
    masks = vector(same_size_integer(real), width)
    narrow = convert("{}", same_size_integer(target), width)
    least, most = (splat(_literal(limit), target, width) for limit in (low, high))
    inside = convert(f"bad ? {splat('0', real, width)} : x", target, width)
    return (
        f"{start}{masks} under = x < {lowest}, over = x >= {beyond}, bad = under | over | (x != x); "
        f"{vector(target, width)} r = {inside}; "
        f"r = {narrow.format('under')} ? {least} : r; return {narrow.format('over')} ? {most} : r;"
    )
