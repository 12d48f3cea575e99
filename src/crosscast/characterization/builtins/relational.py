"""Relational functions (OpenCL C 1.2, section 6.12.6): 1 for true on scalars, -1 on vectors."""

from __future__ import annotations

from crosscast.characterization.builtins.mangling import Declaration
from crosscast.characterization.builtins.spelling import (
    BITS,
    FLOATS,
    INTEGERS,
    reinterpret,
    same_size_integer,
    signed,
    splat,
    uniform,
    unsigned,
    vector,
)

_SMALLEST_NORMAL = {"half": "0x1p-14f", "float": "0x1p-126f", "double": "0x1p-1022"}
_ABS = "__builtin_elementwise_abs({0})"
_TESTS = {
    ("isequal", 2): "{0} == {1}",
    ("isnotequal", 2): "{0} != {1}",
    ("isgreater", 2): "{0} > {1}",
    ("isgreaterequal", 2): "{0} >= {1}",
    ("isless", 2): "{0} < {1}",
    ("islessequal", 2): "{0} <= {1}",
    ("islessgreater", 2): "({0} < {1}) | ({0} > {1})",
    ("isordered", 2): "({0} == {0}) & ({1} == {1})",
    ("isunordered", 2): "({0} != {0}) | ({1} != {1})",
    ("isfinite", 1): _ABS + " < {infinity}",
    ("isinf", 1): _ABS + " == {infinity}",
    ("isnan", 1): "{0} != {0}",
    ("isnormal", 1): f"({_ABS} < {{infinity}}) & ({_ABS} >= {{smallest}})",
    ("signbit", 1): "{bits} < {zero}",
}


def define(declaration: Declaration) -> str | None:
    """Result type and block of a relational function; ``None`` for others."""
    if declaration.name == "select":
        return _select(declaration)
    if (operands := uniform(declaration)) is None:
        return None
    base, width, arguments = operands
    name = declaration.name
    if (test := _TESTS.get((name, len(arguments)))) is not None and base in FLOATS:
        return _test(test, base, width, arguments)
    if name in ("any", "all") and len(arguments) == 1 and base in INTEGERS and base == signed(base):
        merge = "or" if name == "any" else "and"
        return f"int {{ return {f'__builtin_reduce_{merge}(a0)' if width > 1 else 'a0'} < 0; }}"
    if name == "bitselect" and len(arguments) == 3:
        return _bitselect(base, width)
    return None


def _test(test: str, base: str, width: int, arguments: list[str]) -> str:
    integer = same_size_integer(base)
    expression = test.format(
        *arguments,
        infinity=splat("__builtin_inff()", base, width),
        smallest=splat(_SMALLEST_NORMAL[base], base, width),
        bits=reinterpret(arguments[0], integer, width),
        zero=splat("0", integer, width),
    )
    result = "int" if width == 1 else vector(integer, width)
    return f"{result} {{ return {expression}; }}"


def _bitselect(base: str, width: int) -> str:
    bits = unsigned(base)
    x, y, mask = (reinterpret(f"a{k}", bits, width) for k in range(3))
    value = f"({vector(bits, width)})(({x} & ~{mask}) | ({y} & {mask}))"
    return f"{vector(base, width)} {{ return {reinterpret(value, base, width)}; }}"


def _select(declaration: Declaration) -> str | None:
    if len(declaration.parameters) != 3:
        return None
    value, other, condition = declaration.parameters
    if value != other or value.pointer or condition.base not in INTEGERS or value.base not in BITS:
        return None
    if value.width != condition.width or BITS[value.base] != BITS[condition.base]:
        return None
    if value.width == 1:
        return f"{value.base} {{ return a2 ? a1 : a0; }}"
    mask = signed(condition.base)
    chosen = f"{reinterpret('a2', mask, value.width)} < {splat('0', mask, value.width)}"
    return f"{value.spelling} {{ return {chosen} ? a1 : a0; }}"
