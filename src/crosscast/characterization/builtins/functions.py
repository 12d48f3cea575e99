"""Integer, common, geometric, relational functions and shuffles (OpenCL C 1.2, sections 6.12.3 to 6.12.12).

``length``, ``distance`` and ``normalize`` must not overflow or underflow on the way: ``float`` and ``half``
are squared in a wider type, ``double`` is scaled by a power of two first. Relational functions give 1 for
true on scalars, -1 on vectors.
"""

from __future__ import annotations

from collections.abc import Callable

from crosscast.characterization.builtins.declarations import (
    BITS,
    FLOATS,
    INTEGERS,
    Declaration,
    convert,
    element,
    per_element,
    reinterpret,
    same_size_integer,
    signed,
    splat,
    uniform,
    unsigned,
    vector,
)

INTEGER_PRELUDE = """
static inline long cc_mad_sat_long(long x, long y, long z) {
  _BitInt(128) exact = (_BitInt(128))x * y + z;
  return exact > LONG_MAX ? LONG_MAX : exact < LONG_MIN ? LONG_MIN : (long)exact;
}
static inline ulong cc_mad_sat_ulong(ulong x, ulong y, ulong z) {
  unsigned _BitInt(128) exact = (unsigned _BitInt(128))x * y + z;
  return exact > ULONG_MAX ? ULONG_MAX : (ulong)exact;
}
"""

_WIDER_INTEGER = {8: "short", 16: "int", 32: "long"}
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


def define_integer(declaration: Declaration) -> str | None:
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
    wider = _WIDER_INTEGER[BITS[base]]
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


def define_common(declaration: Declaration) -> str | None:
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


_WIDER = {"half": "float", "float": "double", "double": "double"}
_INFINITY = "__builtin_inff()"


def define_geometric(declaration: Declaration) -> str | None:
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


def define_relational(declaration: Declaration) -> str | None:
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


_SOURCES = {"shuffle": 1, "shuffle2": 2}


def define_shuffle(declaration: Declaration) -> str | None:
    """Result type and block of a shuffle; ``None`` for other functions."""
    sources = _SOURCES.get(declaration.name)
    if sources is None or len(declaration.parameters) != sources + 1:
        return None
    *inputs, mask = declaration.parameters
    base, size = inputs[0].base, inputs[0].width
    if base not in BITS or mask.base not in INTEGERS or any(t != inputs[0] or t.pointer for t in inputs):
        return None

    def picked(index: int) -> str:
        selector = f"a{sources}.s{index:x}"
        first = f"a0[{selector} & {size - 1}]"
        if sources == 1:
            return first
        return f"(({selector} & {size}) ? a1[{selector} & {size - 1}] : {first})"

    result = vector(base, mask.width)
    return f"{result} {{ return {per_element(base, mask.width, picked)}; }}"
