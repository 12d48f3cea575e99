"""Geometric functions (OpenCL C 1.2, section 6.12.5).

``length``, ``distance`` and ``normalize`` must not overflow or underflow on the way: ``float`` and
``half`` are squared in a wider type, ``double`` is scaled by a power of two first.
"""

from __future__ import annotations

from crosscast.characterization.builtins.mangling import Declaration
from crosscast.characterization.builtins.spelling import FLOATS, convert, element, splat, uniform, vector

_WIDER = {"half": "float", "float": "double", "double": "double"}
_INFINITY = "__builtin_inff()"


def define(declaration: Declaration) -> str | None:
    """Result type and block of a geometric function; ``None`` for others."""
    if (operands := uniform(declaration)) is None:
        return None
    base, width, arguments = operands
    if base not in FLOATS or width > 4:
        return None
    match declaration.name, len(arguments):
        case "cross", 2 if width in (3, 4):
            return f"{vector(base, width)} {{ return {_cross(base, width)}; }}"
        case "dot", 2:
            return f"{base} {{ return {_dot(base, width, 'a0', 'a1')}; }}"
        case "length", 1:
            return f"{base} {{ {_length(base, width, 'a0')} }}"
        case "distance", 2:
            return f"{base} {{ {_length(base, width, '(a0 - a1)')} }}"
        case "fast_length", 1:
            return f"{base} {{ return {_root(base, _dot(base, width, 'a0', 'a0'))}; }}"
        case "fast_distance", 2:
            return (
                f"{base} {{ {vector(base, width)} d = a0 - a1; "
                f"return {_root(base, _dot(base, width, 'd', 'd'))}; }}"
            )
        case "normalize", 1:
            return f"{vector(base, width)} {{ {_normalize(base, width)} }}"
        case "fast_normalize", 1:
            return (
                f"{vector(base, width)} {{ {base} square = {_dot(base, width, 'a0', 'a0')}; "
                f"return square == 0 ? a0 : a0 * ({base})(1 / {_root(base, 'square')}); }}"
            )
    return None


def _root(base: str, expression: str) -> str:
    return f"__builtin_elementwise_sqrt(({base})({expression}))"


def _dot(base: str, width: int, x: str, y: str) -> str:
    """Sum of products from left to right; in ``float`` for ``half``."""
    if base == "half":
        x, y = (f"({convert(operand, 'float', width)})" for operand in (x, y))
    products = (f"{element(x, k, width)} * {element(y, k, width)}" for k in range(width))
    return f"({base})({' + '.join(products)})"


def _cross(base: str, width: int) -> str:
    pairs = (("y", "z"), ("z", "x"), ("x", "y"))
    elements = [f"a0.{p} * a1.{q} - a0.{q} * a1.{p}" for p, q in pairs] + ["0"] * (width - 3)
    return f"({vector(base, width)})({', '.join(elements)})"


def _scaled(base: str, width: int, expression: str) -> str:
    """Statements that define the wide vector ``v`` and its ``scale``, safe to square."""
    wide = _WIDER[base]
    statements = f"{vector(wide, width)} v = {convert(expression, wide, width)}; {wide} scale = 1; "
    if base != "double":
        return statements
    largest = "__builtin_elementwise_abs(v.s0)" if width > 1 else "__builtin_elementwise_abs(v)"
    for k in range(1, width):
        largest = f"__builtin_elementwise_maxnum({largest}, __builtin_elementwise_abs(v.s{k}))"
    return statements + (
        f"double m = {largest}; scale = m > 0x1p500 ? 0x1p-600 : m < 0x1p-400 ? 0x1p600 : 1; v *= scale; "
    )


def _length(base: str, width: int, expression: str) -> str:
    wide = _WIDER[base]
    root = _root(wide, _dot(wide, width, "v", "v"))
    return f"{_scaled(base, width, expression)}return ({base})({root} / scale);"


def _normalize(base: str, width: int) -> str:
    wide = _WIDER[base]
    square = _dot(wide, width, "v", "v")
    ones = splat("1", wide, width)
    zeros = splat("0", wide, width)
    # An infinite element counts as 1 and makes the finite ones 0 (section 7.5.1).
    infinite = f"__builtin_elementwise_abs(v) == {splat(_INFINITY, wide, width)}"
    return (
        f"{_scaled(base, width, 'a0')}{wide} square = {square}; "
        f"if (__builtin_expect(square == {_INFINITY}, 0)) {{ "
        f"v = __builtin_elementwise_copysign({infinite} ? {ones} : {zeros}, v); square = {square}; }} "
        f"v = square == 0 ? v : v / {_root(wide, 'square')}; return {convert('v', base, width)};"
    )
