"""Common functions (OpenCL C 1.2, section 6.12.4)."""

from __future__ import annotations

from crosscast.characterization.builtins.mangling import Declaration
from crosscast.characterization.builtins.spelling import FLOATS, splat, uniform, vector

_DEGREES_PER_RADIAN = "57.29577951308232"
_RADIANS_PER_DEGREE = "0.017453292519943295"
# Written so that a NaN in `x` gives the lower bound, as fmin(fmax(x, lower), upper) does.
_CLAMP = "T low = {0} > {1} ? {0} : {1}; return low < {2} ? low : {2};"
_STATEMENTS = {
    ("clamp", 3): _CLAMP,
    ("degrees", 1): "return {0} * (S)" + _DEGREES_PER_RADIAN + ";",
    ("radians", 1): "return {0} * (S)" + _RADIANS_PER_DEGREE + ";",
    ("max", 2): "return {0} < {1} ? {1} : {0};",
    ("min", 2): "return {1} < {0} ? {1} : {0};",
    ("mix", 3): "return {0} + ({1} - {0}) * {2};",
    ("step", 2): "return {1} < {0} ? {zero} : {one};",
    ("smoothstep", 3): (
        "T x = ({2} - {0}) / ({1} - {0}); T low = x > {zero} ? x : {zero}; "
        "T t = low < {one} ? low : {one}; return t * t * ((S)3 - (S)2 * t);"
    ),
    ("sign", 1): (
        "T one = __builtin_elementwise_copysign({one}, {0}); "
        "T zero = __builtin_elementwise_copysign({zero}, {0}); "
        "return {0} != {0} ? {zero} : ({0} == {zero} ? zero : one);"
    ),
}


def define(declaration: Declaration) -> str | None:
    """Result type and block of a common function on floating-point values; ``None`` for others."""
    if (operands := uniform(declaration)) is None:
        return None
    base, width, arguments = operands
    statements = _STATEMENTS.get((declaration.name, len(arguments)))
    if statements is None or base not in FLOATS:
        return None
    result = vector(base, width)
    body = statements.format(*arguments, zero=splat("0", base, width), one=splat("1", base, width))
    return f"{result} {{ typedef {result} T; typedef {base} S; {body} }}"
