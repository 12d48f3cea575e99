"""Integer functions (OpenCL C 1.2, section 6.12.3)."""

from __future__ import annotations

from collections.abc import Callable

from crosscast.characterization.builtins.mangling import Declaration
from crosscast.characterization.builtins.spelling import (
    BITS,
    INTEGERS,
    convert,
    element,
    per_element,
    reinterpret,
    signed,
    splat,
    uniform,
    unsigned,
    vector,
)

PRELUDE = """
static inline long cc_mad_sat_long(long x, long y, long z) {
  _BitInt(128) exact = (_BitInt(128))x * y + z;
  return exact > LONG_MAX ? LONG_MAX : exact < LONG_MIN ? LONG_MIN : (long)exact;
}
static inline ulong cc_mad_sat_ulong(ulong x, ulong y, ulong z) {
  unsigned _BitInt(128) exact = (unsigned _BitInt(128))x * y + z;
  return exact > ULONG_MAX ? ULONG_MAX : (ulong)exact;
}
"""

_WIDER = {8: "short", 16: "int", 32: "long"}
_PLAIN = {
    "add_sat": "__builtin_elementwise_add_sat({0}, {1})",
    "sub_sat": "__builtin_elementwise_sub_sat({0}, {1})",
    "hadd": "({0} & {1}) + (({0} ^ {1}) >> {one})",
    "rhadd": "({0} | {1}) - (({0} ^ {1}) >> {one})",
    "max": "__builtin_elementwise_max({0}, {1})",
    "min": "__builtin_elementwise_min({0}, {1})",
    "clamp": "__builtin_elementwise_min(__builtin_elementwise_max({0}, {1}), {2})",
    "rotate": "__builtin_elementwise_fshl({0}, {0}, {1})",
    "clz": "__builtin_elementwise_clzg({0}, {bits})",
    "ctz": "__builtin_elementwise_ctzg({0}, {bits})",
    "popcount": "__builtin_elementwise_popcount({0})",
}
_ARITY = {"clz": 1, "ctz": 1, "popcount": 1, "clamp": 3}
_MODULAR = {"mul24": ("{0} * {1}", 2), "mad24": ("{0} * {1} + {2}", 3)}


def define(declaration: Declaration) -> str | None:
    """Result type and block of an integer function; ``None`` for others."""
    if declaration.name == "upsample":
        return _upsample(declaration)
    if (operands := uniform(declaration)) is None:
        return None
    base, width, arguments = operands
    if base not in INTEGERS:
        return None
    expression = _expression(declaration.name, base, width, arguments)
    if expression is not None:
        return f"{vector(base, width)} {{ return {expression}; }}"
    return _unsigned_result(declaration.name, base, width, arguments)


def _expression(name: str, base: str, width: int, arguments: list[str]) -> str | None:
    count = len(arguments)
    if name in _PLAIN and count == _ARITY.get(name, 2):
        constants = {"one": splat("1", base, width), "bits": splat(str(BITS[base]), base, width)}
        return _PLAIN[name].format(*arguments, **constants)
    if name in _MODULAR and count == _MODULAR[name][1]:
        return _wrapping(_MODULAR[name][0], base, width, arguments)
    if name == "mul_hi" and count == 2:
        return _high_product(base, width, arguments)
    if name == "mad_hi" and count == 3:
        high = _high_product(base, width, arguments[:2])
        return _wrapping("{0} + {1}", base, width, [high, arguments[2]])
    if name == "mad_sat" and count == 3:
        return _saturated_sum_of_product(base, width, arguments)
    return None


def _unsigned_result(name: str, base: str, width: int, arguments: list[str]) -> str | None:
    """The functions whose result is unsigned whatever the operands: ``abs``, ``abs_diff``."""
    result = unsigned(base)
    if name == "abs" and len(arguments) == 1:
        value = f"__builtin_elementwise_abs({arguments[0]})" if base != result else arguments[0]
        expression = reinterpret(value, result, width)
    elif name == "abs_diff" and len(arguments) == 2:
        largest, smallest = (
            reinterpret(f"__builtin_elementwise_{pick}({arguments[0]}, {arguments[1]})", result, width)
            for pick in ("max", "min")
        )
        expression = f"{largest} - {smallest}"
    else:
        return None
    return f"{vector(result, width)} {{ return {expression}; }}"


def _wrapping(template: str, base: str, width: int, arguments: list[str]) -> str:
    """Arithmetic modulo 2^n: signed overflow is undefined in C, so it is done unsigned."""
    operands = [reinterpret(argument, unsigned(base), width) for argument in arguments]
    value = template.format(*operands)
    return reinterpret(f"({vector(unsigned(base), width)})({value})", base, width)


def _wide(base: str) -> str:
    wider = _WIDER[BITS[base]]
    return wider if base == signed(base) else f"u{wider}"


def _high_product(base: str, width: int, arguments: list[str]) -> str:
    bits = BITS[base]
    if bits == 64:
        sign = "" if base == "long" else "unsigned "
        return _by_128_bits(base, width, arguments, lambda x: f"(({sign}_BitInt(128)){x[0]} * {x[1]}) >> 64")
    wide = _wide(base)
    x, y = (convert(argument, wide, width) for argument in arguments)
    return convert(f"({x} * {y}) >> {splat(str(bits), wide, width)}", base, width)


def _saturated_sum_of_product(base: str, width: int, arguments: list[str]) -> str:
    bits = BITS[base]
    is_signed = base == signed(base)
    low = -(1 << (bits - 1)) if is_signed else 0
    high = (1 << (bits - (1 if is_signed else 0))) - 1
    if bits == 64:
        return _by_128_bits(base, width, arguments, lambda x: f"cc_mad_sat_{base}({x[0]}, {x[1]}, {x[2]})")
    wide = _wide(base)
    x, y, z = (convert(argument, wide, width) for argument in arguments)
    lowest, highest = (splat(f"{limit}{'L' if is_signed else 'UL'}", wide, width) for limit in (low, high))
    # Scalars narrower than int are promoted, and the elementwise builtins want equal types.
    total = f"({vector(wide, width)})({x} * {y} + {z})"
    clamped = f"__builtin_elementwise_min(__builtin_elementwise_max({total}, {lowest}), {highest})"
    return convert(clamped, base, width)


def _by_128_bits(base: str, width: int, arguments: list[str], formula: Callable[[list[str]], str]) -> str:
    return per_element(
        base, width, lambda k: f"({base})({formula([element(a, k, width) for a in arguments])})"
    )


def _upsample(declaration: Declaration) -> str | None:
    if len(declaration.parameters) != 2:
        return None
    high, low = declaration.parameters
    if high.base not in INTEGERS or BITS[high.base] == 64 or low.base != unsigned(high.base):
        return None
    width = high.width
    wide = _wide(high.base)
    upper = convert(reinterpret("a0", low.base, width), unsigned(wide), width)
    lower = convert("a1", unsigned(wide), width)
    value = f"({vector(unsigned(wide), width)})(({upper} << {BITS[high.base]}) | {lower})"
    return f"{vector(wide, width)} {{ return {reinterpret(value, wide, width)}; }}"
