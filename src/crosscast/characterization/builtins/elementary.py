"""Math functions (OpenCL C 1.2, section 6.12.2), ``native_`` and ``half_`` ones included.

What the hardware does element by element is written for whole vectors. The rest is a scalar
function per element: one of the C library's, or one of `PRELUDE`. ``half`` is computed in
``float``, which has more than twice its digits, and rounded at the end.
"""

from __future__ import annotations

import re
from string import Template

from crosscast.characterization.builtins.declarations import (
    BITS,
    FLOATS,
    Access,
    Declaration,
    Type,
    convert,
    element,
    reinterpret,
    splat,
    vector,
)

_UNARY = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc"),
    *("exp", "exp10", "exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "sinh"),
    *("tan", "tanh", "tgamma"),
)
_BINARY = ("atan2", "fmod", "hypot", "pow", "remainder")
# LLVM may call these for the elementwise builtins and for pairs of calls that it merges.
_LOWERED = (
    *(
        "cbrt",
        "ceil",
        "floor",
        "fma",
        "ldexp",
        "nearbyint",
        "rint",
        "round",
        "roundeven",
        "sincos",
        "sqrt",
        "trunc",
    ),
    *("lgamma_r", "fmax", "fmin"),
)
LIBM = frozenset(
    {
        *(
            f"{name}{suffix}"
            for name in (*_UNARY, *_BINARY, *_LOWERED)
            for suffix in ("", "f")
            if name != "lgamma_r"
        ),
        *("lgamma_r", "lgammaf_r", "memcpy", "memmove", "memset"),
    }
)

# Whole-vector expressions; T is the type, S the element type.
_WHOLE = {
    "ceil": "__builtin_elementwise_ceil({0})",
    "floor": "__builtin_elementwise_floor({0})",
    "trunc": "__builtin_elementwise_trunc({0})",
    "rint": "__builtin_elementwise_roundeven({0})",
    "round": "__builtin_elementwise_round({0})",
    "fabs": "__builtin_elementwise_abs({0})",
    "sqrt": "__builtin_elementwise_sqrt({0})",
    "rsqrt": "{one} / __builtin_elementwise_sqrt({0})",
    "recip": "{one} / {0}",
    "divide": "{0} / {1}",
    "copysign": "__builtin_elementwise_copysign({0}, {1})",
    "fmax": "__builtin_elementwise_maxnum({0}, {1})",
    "fmin": "__builtin_elementwise_minnum({0}, {1})",
    "fdim": "{0} <= {1} ? {zero} : {0} - {1}",
    "mad": "{0} * {1} + {2}",
    "fma": "__builtin_elementwise_fma({0}, {1}, {2})",
    "maxmag": (
        "__builtin_elementwise_abs({0}) > __builtin_elementwise_abs({1}) ? {0} : "
        "__builtin_elementwise_abs({1}) > __builtin_elementwise_abs({0}) ? {1} : "
        "__builtin_elementwise_maxnum({0}, {1})"
    ),
    "minmag": (
        "__builtin_elementwise_abs({0}) < __builtin_elementwise_abs({1}) ? {0} : "
        "__builtin_elementwise_abs({1}) < __builtin_elementwise_abs({0}) ? {1} : "
        "__builtin_elementwise_minnum({0}, {1})"
    ),
}
# Two operations, whose errors would add up in half.
_IN_FLOAT_FOR_HALF = frozenset({"rsqrt"})
_ARITY = {"copysign": 2, "fmax": 2, "fmin": 2, "fdim": 2, "divide": 2, "maxmag": 2, "minmag": 2}
_ARITY |= {"mad": 3, "fma": 3}
_PREFIX = re.compile(
    r"(?:native|half)_(?=cos|divide|exp|exp10|exp2|log|log10|log2|powr|recip|rsqrt|sin|sqrt|tan)"
)
_ONLY_PREFIXED = frozenset({"divide", "recip"})
_NAN = {
    "ushort": ("half", "0x7e00"),
    "uint": ("float", "0x7fc00000"),
    "ulong": ("double", "0x7ff8000000000000"),
}
# Functions of PRELUDE: number of value parameters, and the type of what the pointer receives.
_SCALAR: dict[str, tuple[int, str | None]] = {
    **dict.fromkeys(_UNARY, (1, None)),
    **dict.fromkeys(_BINARY, (2, None)),
    **dict.fromkeys(("acospi", "asinpi", "atanpi", "cospi", "sinpi", "tanpi"), (1, None)),
    **dict.fromkeys(("cbrt", "ilogb", "lgamma", "logb"), (1, None)),
    **dict.fromkeys(("atan2pi", "ldexp", "nextafter", "pown", "powr", "rootn"), (2, None)),
    **dict.fromkeys(("fract", "modf", "sincos"), (1, "real")),
    **dict.fromkeys(("frexp", "lgamma_r"), (1, "int")),
    "remquo": (2, "int"),
}
# These step through the representable numbers, so each type has its own.
_IN_HALF = frozenset({"fract", "modf", "nextafter"})

_LIBRARY = Template('$const $F cc_${name}_$F($parameters) __asm__("$symbol");\n')
_STEPPING = Template("""
static inline $F cc_fract_$F($F x, private $F *whole) {
  $F below = __builtin_elementwise_floor(x), rest = x - below;
  *whole = below;
  rest = rest >= ($F)$below_one ? ($F)$below_one : rest;
  $F infinite_rest = __builtin_elementwise_copysign(($F)0, x);
  return __builtin_elementwise_abs(x) == ($F)__builtin_inff() ? infinite_rest : rest;
}
static inline $F cc_modf_$F($F x, private $F *whole) {
  $F towards_zero = __builtin_elementwise_trunc(x);
  *whole = towards_zero;
  $F rest = __builtin_elementwise_abs(x) == ($F)__builtin_inff() ? ($F)0 : x - towards_zero;
  return __builtin_elementwise_copysign(rest, x);
}
static inline $F cc_nextafter_$F($F x, $F y) {
  $F beside = y > x ? cc_above_$F(x) : cc_below_$F(x);
  return x != x || y != y ? x + y : x == y ? y : beside;
}
""")
_SCALARS = Template("""
static inline $F cc_frexp_$F($F x, private int *exponent) {
  $F magnitude = __builtin_elementwise_abs(x);
  int small = magnitude < $smallest;
  $I bits = as_$I(small ? x * $scale : x);
  int special = magnitude == 0 || !(magnitude < ($F)__builtin_inff());
  int biased = (int)(bits >> $digits) & $exponent_mask;
  *exponent = special ? 0 : biased - $half_bias - (small ? $scale_log : 0);
  bits = (bits & ~(($I)$exponent_mask << $digits)) | (($I)$half_bias << $digits);
  return special ? x : as_$F(bits);
}
static inline int cc_ilogb_$F($F x) {
  int exponent;
  cc_frexp_$F(x, &exponent);
  return x == 0 ? INT_MIN : !(__builtin_elementwise_abs(x) < ($F)__builtin_inff()) ? INT_MAX : exponent - 1;
}
static inline $F cc_logb_$F($F x) {
  int exponent;
  cc_frexp_$F(x, &exponent);
  $F finite = x == 0 ? -($F)__builtin_inff() : ($F)(exponent - 1);
  return __builtin_elementwise_abs(x) < ($F)__builtin_inff() ? finite : x * x;
}
static inline $F cc_lgamma_r_$F($F x, private int *sign) { return cc_lgamma_sign_$F(x, sign); }
static inline $F cc_lgamma_$F($F x) { int sign; return cc_lgamma_sign_$F(x, &sign); }
static inline $F cc_sincos_$F($F x, private $F *cosine) { *cosine = cc_cos_$F(x); return cc_sin_$F(x); }

/* The C library may be off by more than 2 ulp in double: one step of Newton's method. */
static inline $F cc_cbrt_$F($F x) {
  $F root = cc_library_cbrt_$F(x), square = root * root;
  $F lost = __builtin_elementwise_fma(root, root, -square) * root;
  $F excess = lost + __builtin_elementwise_fma(square, root, -x);
  $F better = root - excess / (3 * square);
  return sizeof($F) == 8 && x != 0 && __builtin_elementwise_abs(x) < ($F)__builtin_inff() ? better : root;
}
static inline $F cc_acospi_$F($F x) { return ($F)(cc_acos_$F(x) * M_1_PI); }
static inline $F cc_asinpi_$F($F x) { return ($F)(cc_asin_$F(x) * M_1_PI); }
static inline $F cc_atanpi_$F($F x) { return ($F)(cc_atan_$F(x) * M_1_PI); }
static inline $F cc_atan2pi_$F($F y, $F x) { return ($F)(cc_atan2_$F(y, x) * M_1_PI); }
/* x modulo 2 in [-1, 1], exact. */
static inline $F cc_turn_$F($F x) { return x - 2 * __builtin_elementwise_roundeven(x * ($F)0.5); }
static inline $F cc_sinpi_$F($F x) {
  $F r = cc_turn_$F(x), a = __builtin_elementwise_abs(r);
  $F s = ($F)cc_sin_double(M_PI * (a > ($F)0.5 ? 1 - a : a));
  return __builtin_elementwise_copysign(s, s == 0 ? x : r);
}
static inline $F cc_cospi_$F($F x) {
  $F a = __builtin_elementwise_abs(cc_turn_$F(x));
  return ($F)cc_sin_double(M_PI * (0.5 - a));
}
static inline $F cc_tanpi_$F($F x) {
  $F r = cc_turn_$F(x), a = __builtin_elementwise_abs(r), f = a > ($F)0.5 ? 1 - a : a;
  $F t = ($F)cc_tan_double(M_PI * (f > ($F)0.25 ? ($F)0.5 - f : f));
  $F sign = a == 0 || a == 1 ? x : r;
  return __builtin_elementwise_copysign(f > ($F)0.25 ? 1 / t : t, a > ($F)0.5 ? -sign : sign);
}

static inline $F cc_pown_$F($F x, int n) { return ($F)cc_pow_double(x, n); }
static inline $F cc_powr_$F($F x, $F y) {
  $F infinity = ($F)__builtin_inff();
  int undefined = x < 0 || x != x || y != y || (y == 0 && (x == 0 || x == infinity)) ||
                  (x == 1 && __builtin_elementwise_abs(y) == infinity);
  return undefined ? ($F)__builtin_nanf("") : cc_pow_$F(__builtin_elementwise_abs(x), y);
}
static inline $F cc_rootn_$F($F x, int n) {
  double magnitude = __builtin_elementwise_abs(x), inverse = 1.0 / n;
  double root = cc_pow_double(magnitude, inverse);
  /* 1/n is rounded; what it lacks matters for the last digits of double. */
  if (sizeof($F) == 8 && root > 0 && root < __builtin_inff())
    root -= root * (__builtin_elementwise_fma(inverse, (double)n, -1.0) * inverse * cc_log_double(magnitude));
  if (n == 0 || (x < 0 && !(n & 1))) return ($F)__builtin_nanf("");
  return (n & 1) ? __builtin_elementwise_copysign(($F)root, x) : ($F)root;
}
/* The C library gives three bits of the quotient, OpenCL wants seven. */
static inline $F cc_remquo_$F($F x, $F y, private int *quotient) {
  $F divisor = __builtin_elementwise_abs(y), infinity = ($F)__builtin_inff();
  $F r = __builtin_elementwise_abs(x);
  *quotient = 0;
  if (!(r < infinity) || divisor == 0 || divisor != divisor) return ($F)__builtin_nanf("");
  if (divisor == infinity) return x;
  if (divisor * 128 < infinity) r = cc_fmod_$F(r, divisor * 128);
  uint q = 0;
  for (int bit = 64; bit; bit >>= 1) {
    $F multiple = divisor * bit;
    int fits = r >= multiple;
    r = fits ? r - multiple : r;
    q += fits ? bit : 0;
  }
  $F complement = divisor - r;
  if (r > complement || (r == complement && (q & 1))) { r -= divisor; ++q; }
  *quotient = (x < 0) != (y < 0) ? -(int)(q & 127) : (int)(q & 127);
  return (as_$I(x) < 0) ? -r : r;
}
""")
_LDEXP = """
/* The power of two is exact in double, and so is the product but for results out of range. */
static inline float cc_ldexp_float(float x, int n) {
  int clamped = __builtin_elementwise_max(__builtin_elementwise_min(n, 400), -400);
  return (float)(x * as_double((long)(clamped + 1023) << 52));
}
double cc_ldexp_double(double, int) __asm__("ldexp");
"""
_LAYOUT = {
    "float": {
        "I": "int",
        "digits": 23,
        "exponent_mask": "0xff",
        "half_bias": 126,
        "smallest": "0x1p-126f",
        "scale": "0x1p25f",
        "scale_log": 25,
    },
    "double": {
        "I": "long",
        "digits": 52,
        "exponent_mask": "0x7ff",
        "half_bias": 1022,
        "smallest": "0x1p-1022",
        "scale": "0x1p54",
        "scale_log": 54,
    },
}
_BELOW_ONE = {"half": "0x1.ffcp-1f", "float": "0x1.fffffep-1f", "double": "0x1.fffffffffffffp-1"}


def _library_declarations() -> str:
    const = "__attribute__((const))"
    text = ""
    for real, suffix in (("float", "f"), ("double", "")):
        for names, parameters in ((_UNARY, real), (_BINARY, f"{real}, {real}")):
            for name in names:
                text += _LIBRARY.substitute(
                    const=const, F=real, name=name, parameters=parameters, symbol=name + suffix
                )
        text += _LIBRARY.substitute(
            const=const, F=real, name="library_cbrt", parameters=real, symbol=f"cbrt{suffix}"
        )
        text += _LIBRARY.substitute(
            const="",
            F=real,
            name="lgamma_sign",
            parameters=f"{real}, private int *",
            symbol=f"lgamma{suffix}_r",
        )
    return text


PRELUDE = "".join(
    [
        _library_declarations(),
        _LDEXP,
        *(_STEPPING.substitute(F=real, below_one=_BELOW_ONE[real]) for real in ("half", "float", "double")),
        *(_SCALARS.substitute(_LAYOUT[real], F=real) for real in ("float", "double")),
    ]
)


def define(declaration: Declaration) -> str | None:
    """Result type and block of a math function; ``None`` for others."""
    parameters = declaration.parameters
    if not parameters or parameters[0].pointer or parameters[0].base not in BITS:
        return None
    base, width = parameters[0].base, parameters[0].width
    if declaration.name == "nan" and len(parameters) == 1 and base in _NAN:
        real, quiet = _NAN[base]
        bits = f"({vector(base, width)})(a0 | {splat(quiet, base, width)})"
        return f"{vector(real, width)} {{ return {reinterpret(bits, real, width)}; }}"
    name = _unprefixed(declaration.name)
    if name is None or base not in FLOATS:
        return None
    if name in _WHOLE:
        return _whole(name, parameters)
    return _by_element(name, parameters) if name in _SCALAR else None


def accesses(declaration: Declaration) -> tuple[Access, ...]:
    """The write of a second result through a pointer that is not to private memory."""
    target = declaration.parameters[-1]
    if target.address_space == 0 or define(declaration) is None:
        return ()
    size = BITS[target.base] // 8 * (4 if target.width == 3 else target.width)
    last = len(declaration.parameters) - 1
    return (Access("write", pointer=last, index=None, stride=0, nbytes=size, alignment=size),)


def _unprefixed(name: str) -> str | None:
    """Name of the function that computes it: ``native_sin`` is ``sin``."""
    if match := _PREFIX.match(name):
        return name[match.end() :]
    return None if name in _ONLY_PREFIXED else name


def _whole(name: str, parameters: tuple[Type, ...]) -> str | None:
    base, width = parameters[0].base, parameters[0].width
    if len(parameters) != _ARITY.get(name, 1):
        return None
    if any(t.pointer or t.base != base or t.width not in (1, width) for t in parameters):
        return None
    if name == "fma" and base == "half":
        return _half_fma(width)
    arguments = [
        f"a{k}" if t.width == width else splat(f"a{k}", base, width) for k, t in enumerate(parameters)
    ]
    computed = base
    if name in _IN_FLOAT_FOR_HALF and base == "half":
        computed, arguments = "float", [convert(argument, "float", width) for argument in arguments]
    constants = {"zero": splat("0", computed, width), "one": splat("1", computed, width)}
    value = _WHOLE[name].format(*arguments, **constants)
    return f"{vector(base, width)} {{ return {convert(f'({value})', base, width)}; }}"


def _half_fma(width: int) -> str:
    """The product is exact in double; the sum is where its rounding could show in half."""
    factors = [[f"(double){element(f'a{k}', e, width)}" for k in range(3)] for e in range(width)]
    sums = (f"cc_half_rte_float(cc_float_odd_double({x} * {y} + {z}))" for x, y, z in factors)
    return f"{vector('half', width)} {{ return ({vector('half', width)})({', '.join(sums)}); }}"


def _by_element(name: str, parameters: tuple[Type, ...]) -> str | None:
    values, written = _SCALAR[name]
    base, width = parameters[0].base, parameters[0].width
    if len(parameters) != values + (written is not None):
        return None
    if any(t.pointer or t.width not in (1, width) for t in parameters[:values]):
        return None
    computed = "float" if base == "half" and name not in _IN_HALF else base
    real = "int" if name == "ilogb" else base
    statements = [f"{vector(real, width)} r;"]
    output = ""
    if written is not None:
        target = parameters[-1]
        memory = "int" if written == "int" else base
        if not target.pointer or (target.base, target.width) != (memory, width):
            return None
        output = ", &out"
        statements.append(f"{vector(memory, width)} s; {'int' if written == 'int' else computed} out;")
    for k in range(width):
        operands = (_operand(f"a{i}", parameters[i], k, computed) for i in range(values))
        call = f"cc_{name}_{computed}({', '.join(operands)}{output})"
        statements.append(f"{element('r', k, width)} = ({real}){call};")
        if written is not None:
            statements.append(f"{element('s', k, width)} = ({target.base})out;")
    if written is not None:
        statements.append(f"*a{values} = s;")
    return f"{vector(real, width)} {{ {' '.join(statements)} return r; }}"


def _operand(name: str, type_: Type, index: int, computed: str) -> str:
    value = element(name, index, type_.width)
    return f"({computed}){value}" if type_.base in FLOATS else value
