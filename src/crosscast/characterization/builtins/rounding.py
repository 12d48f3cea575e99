"""Conversions to a floating-point type of fewer digits, in the four rounding modes, as OpenCL C.

The value is rounded to nearest by the hardware, compared with the exact one, and moved by one
unit where the mode asks for it. Where two roundings follow each other the first one is *to odd*
(an inexact result gets an odd last digit), which makes the second one come out as if it were the
only one (Boldo and Melquiond, 2008, doi:10.1109/TC.2007.70819).
"""

from __future__ import annotations

from string import Template

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
