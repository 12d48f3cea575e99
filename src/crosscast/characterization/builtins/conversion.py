"""Conversions (OpenCL C 1.2, sections 6.2.3 and 6.2.4), and vector data loads and stores (6.12.7).

To a floating-point type of fewer digits, in the four rounding modes: the value is rounded to nearest by the
hardware, compared with the exact one, and moved by one unit where the mode asks for it. Where two roundings
follow each other the first one is *to odd* (an inexact result gets an odd last digit), which makes the second
one come out as if it were the only one (Boldo and Melquiond, 2008, doi:10.1109/TC.2007.70819).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Template

from crosscast.characterization.builtins.declarations import (
    ADDRESS_SPACES,
    BITS,
    FLOATS,
    INTEGERS,
    Access,
    Declaration,
    Type,
    convert,
    element,
    per_element,
    reinterpret,
    same_size_integer,
    signed,
    splat,
    vector,
)

_STEPS = Template("""
static inline $F cc_above_$F($F x) {
  $I bits = as_$I(x);
  return x == 0 ? as_$F(($I)1) : as_$F(($I)(bits < 0 ? bits - 1 : bits + 1));
}
static inline $F cc_below_$F($F x) { return -cc_above_$F(-x); }
static inline $F cc_inward_$F($F x) { return as_$F(($I)(as_$I(x) - 1)); }
""")
_NARROWING = Template("""
static inline $F cc_${F}_rte_$W($W x) { return ($F)x; }
static inline $F cc_${F}_rtp_$W($W x) { $F r = ($F)x; return ($W)r < x ? cc_above_$F(r) : r; }
static inline $F cc_${F}_rtn_$W($W x) { $F r = ($F)x; return ($W)r > x ? cc_below_$F(r) : r; }
static inline $F cc_${F}_rtz_$W($W x) {
  $F r = ($F)x;
  return __builtin_elementwise_abs(($W)r) > __builtin_elementwise_abs(x) ? cc_inward_$F(r) : r;
}
static inline $F cc_${F}_odd_$W($W x) {
  $F r = cc_${F}_rtz_$W(x);
  return ($W)r != x ? as_$F(($I)(as_$I(r) | 1)) : r;
}
""")
_FROM_64_BITS = Template("""
static inline double cc_double_odd_$L($L x) {
  ulong m = $magnitude;
  if (m >> 53) m = (m & ~0x7fful) | ((m & 0x7ff) ? 0x800 : 0);
  return $negative ? -(double)m : (double)m;
}
/* Sign of (double)x - x: both halves are exact, and so is the rounding error of their sum. */
static inline double cc_excess_$L($L x) {
  double high = (double)(x >> 32) * 0x1p32, low = (double)(uint)x;
  return ((high + low) - high) - low;
}
static inline double cc_double_rte_$L($L x) { return (double)x; }
static inline double cc_double_rtp_$L($L x) {
  return cc_excess_$L(x) < 0 ? cc_above_double((double)x) : (double)x;
}
static inline double cc_double_rtn_$L($L x) {
  return cc_excess_$L(x) > 0 ? cc_below_double((double)x) : (double)x;
}
static inline double cc_double_rtz_$L($L x) { return $negative ? cc_double_rtp_$L(x) : cc_double_rtn_$L(x); }
""")

PRELUDE = "".join(
    [
        *(
            _STEPS.substitute(F=real, I=integer)
            for real, integer in (("half", "short"), ("float", "int"), ("double", "long"))
        ),
        _NARROWING.substitute(F="half", W="float", I="short"),
        _NARROWING.substitute(F="float", W="double", I="int"),
        _FROM_64_BITS.substitute(L="long", magnitude="x < 0 ? -(ulong)x : (ulong)x", negative="(x < 0)"),
        _FROM_64_BITS.substitute(L="ulong", magnitude="x", negative="0"),
    ]
)


_EXACT_IN_FLOAT = frozenset({"half", "float", "char", "uchar", "short", "ushort"})


def is_cast(source: str, target: str, mode: str) -> bool:
    """Whether a C cast does the conversion: it is exact, or one rounding to nearest."""
    if source == target == "half":
        return True
    if target == "half":
        return mode == "rte" and source in _EXACT_IN_FLOAT
    if target == "float":
        return mode == "rte" or source in _EXACT_IN_FLOAT
    return mode == "rte" or source not in ("long", "ulong")


def rounded(expression: str, source: str, target: str, mode: str) -> str:
    """A scalar of type `source` as the floating-point type `target`, rounded once by `mode`.

    For conversions that are not `is_cast`; the text needs `PRELUDE`.
    """
    if target == "half":
        return f"cc_half_{mode}_float({_odd_float(expression, source)})"
    if target == "float":
        wide = f"cc_double_odd_{source}({expression})" if source in ("long", "ulong") else expression
        return f"cc_float_{mode}_double({wide})"
    return f"cc_double_{mode}_{source}({expression})"


def _odd_float(expression: str, source: str) -> str:
    """The value as ``float``, exact or rounded to odd."""
    if source in ("long", "ulong"):
        return f"cc_float_odd_double(cc_double_odd_{source}({expression}))"
    if source in ("int", "uint", "double"):
        return f"cc_float_odd_double({expression})"
    return expression


_TYPES = "|".join(sorted(BITS, key=len, reverse=True))
_CONVERT = re.compile(rf"convert_({_TYPES})(2|3|4|8|16|)(_sat)?(?:_(rte|rtz|rtp|rtn))?")
_AS_TYPE = re.compile(rf"as_({_TYPES})(2|3|4|8|16|)")
_ROUND_TO_INTEGER = {"rte": "roundeven", "rtz": "trunc", "rtp": "ceil", "rtn": "floor"}


def define_conversion(declaration: Declaration) -> str | None:
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
    """A variable as a floating-point type; the text needs `PRELUDE`."""
    if is_cast(source, target, mode):
        return convert(name, target, width)
    return per_element(target, width, lambda k: rounded(element(name, k, width), source, target, mode))


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


HALF_RUNTIME = {
    symbol: Declaration(symbol, symbol, (Type(base),))
    for symbol, base in (("__extendhfsf2", "half"), ("__truncsfhf2", "float"), ("__truncdfhf2", "double"))
}

_EXTEND = """float {
  uint h = as_ushort(a0), sign = (h & 0x8000) << 16, magnitude = h & 0x7fff;
  uint normal = (magnitude << 13) + (112u << 23);
  if (magnitude >= 0x7c00) normal += 112u << 23;
  /* Subnormal: a fraction of 2^-14 without the leading one, which float arithmetic takes off. */
  if (magnitude < 0x400) normal = as_uint(as_float((magnitude << 13) + (113u << 23)) - 0x1p-14f);
  return as_float(sign | normal);
}"""

# The digits are shifted into place, the lost ones decide: above half, or half and odd, rounds up.
_TRUNCATE = """half {{
  {U} bits = as_{U}(a0), magnitude = bits & ({U}_MAXIMUM >> 1);
  ushort sign = (ushort)(bits >> {top}) & 0x8000;
  int exponent = (int)(magnitude >> {digits}) - {bias};
  if (magnitude > (({U}){special} << {digits})) return as_half((ushort)(sign | 0x7e00));
  if (exponent > 15) return as_half((ushort)(sign | 0x7c00));
  if (exponent < -25) return as_half(sign);
  {U} fraction = (magnitude & ((({U})1 << {digits}) - 1)) | (({U})1 << {digits});
  int lost = {digits} - 10 + (exponent < -14 ? -14 - exponent : 0);
  {U} kept = fraction >> lost, rest = fraction & ((({U})1 << lost) - 1), tie = ({U})1 << (lost - 1);
  kept += rest > tie || (rest == tie && (kept & 1));
  uint base = exponent < -14 ? 0 : (uint)(exponent + 14) << 10;
  return as_half((ushort)(sign | (base + (uint)kept)));
}}"""
_HALF_RUNTIME = {
    "__extendhfsf2": _EXTEND,
    "__truncsfhf2": _TRUNCATE.format(U="uint", top=16, digits=23, bias=127, special="0xff").replace(
        "uint_MAXIMUM", "UINT_MAX"
    ),
    "__truncdfhf2": _TRUNCATE.format(U="ulong", top=48, digits=52, bias=1023, special="0x7ff").replace(
        "ulong_MAXIMUM", "ULONG_MAX"
    ),
}


def define_half_runtime(declaration: Declaration) -> str | None:
    """Result type and block of a conversion routine; ``None`` for other functions."""
    return _HALF_RUNTIME.get(declaration.name)


_TRANSFER = re.compile(r"v(load|store)(a?_half)?(2|3|4|8|16|)(?:_(rte|rtz|rtp|rtn))?")


@dataclass(frozen=True)
class _Transfer:
    """What a vector load or store moves."""

    loads: bool  # A load; a store otherwise
    value: Type  # Type of the value in registers
    pointer: Type  # Pointer to the elements in memory
    alignment: int  # Bytes to which the address is aligned
    stride: int  # Elements from one index to the next
    mode: str

    @property
    def memory_base(self) -> str:
        return self.pointer.base

    @property
    def element_size(self) -> int:
        return BITS[self.memory_base] // 8


def _transfer(declaration: Declaration) -> _Transfer | None:
    match = _TRANSFER.fullmatch(declaration.name)
    if match is None:
        return None
    loads = match[1] == "load"
    if len(declaration.parameters) != (2 if loads else 3):
        return None
    pointer = declaration.parameters[-1]
    width = int(match[3] or 1)
    if not pointer.pointer or pointer.base not in BITS or pointer.width != 1:
        return None
    if match[2] is None:
        if width == 1 or match[4]:
            return None
        value = Type(pointer.base, width)
    elif pointer.base != "half":
        return None
    else:
        value = Type("float", width) if loads else declaration.parameters[0]
    if not loads and declaration.parameters[0] != value:
        return None
    size = BITS[pointer.base] // 8
    aligned = match[2] == "a_half"
    stride = 4 if aligned and width == 3 else width
    return _Transfer(loads, value, pointer, size * stride if aligned else size, stride, match[4] or "rte")


def define_transfer(declaration: Declaration) -> str | None:
    """Result type and block of a vector load or store; ``None`` for other functions."""
    transfer = _transfer(declaration)
    if transfer is None:
        return None
    return _load_vector(transfer) if transfer.loads else _store_vector(transfer)


def transfer_accesses(declaration: Declaration) -> tuple[Access, ...]:
    """The one access of a vector load or store; none for private memory."""
    transfer = _transfer(declaration)
    if transfer is None or transfer.pointer.address_space == 0:
        return ()
    size = transfer.element_size
    return (
        Access(
            "read" if transfer.loads else "write",
            pointer=len(declaration.parameters) - 1,
            index=len(declaration.parameters) - 2,
            stride=transfer.stride * size,
            nbytes=transfer.value.width * size,
            alignment=transfer.alignment,
        ),
    )


def _memory_vector(transfer: _Transfer, const: str) -> str:
    """Statements that define `p`, a pointer to a whole vector, aligned as the language promises."""
    space = ADDRESS_SPACES[transfer.pointer.address_space]
    whole = vector(transfer.memory_base, transfer.value.width)
    offset, pointer = ("a0", "a1") if transfer.loads else ("a1", "a2")
    return (
        f"typedef {whole} V __attribute__((aligned({transfer.alignment}))); "
        f"{space} {const}V *p = ({space} {const}V *)({pointer} + {offset} * {transfer.stride}); "
    )


def _load_vector(transfer: _Transfer) -> str:
    base, width = transfer.memory_base, transfer.value.width
    result = transfer.value.spelling
    if width == 3:
        # A three-element vector occupies four: its load would touch the element after it.
        value = per_element(base, 3, lambda k: f"a1[a0 * {transfer.stride} + {k}]")
        return f"{result} {{ return {_widened(value, transfer)}; }}"
    return f"{result} {{ {_memory_vector(transfer, 'const ')}return {_widened('*p', transfer)}; }}"


def _widened(value: str, transfer: _Transfer) -> str:
    same = transfer.value.base == transfer.memory_base
    return value if same else convert(value, transfer.value.base, transfer.value.width)


def _store_vector(transfer: _Transfer) -> str:
    base, width = transfer.memory_base, transfer.value.width
    value = "a0"
    if transfer.value.base != base:
        value = converted("a0", transfer.value.base, base, width, transfer.mode)
    if width == 3:
        stores = (f"a2[a1 * {transfer.stride} + {k}] = {element('v', k, 3)};" for k in range(3))
        return f"void {{ {vector(base, 3)} v = {value}; {' '.join(stores)} }}"
    return f"void {{ {_memory_vector(transfer, '')}*p = {value}; }}"
