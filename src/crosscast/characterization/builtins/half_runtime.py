"""Conversions of ``half`` that LLVM calls where the processor has no instruction for them.

No C library has them (compilers bring their own), so the library can define them too: demand them
by these names for a module that computes with ``half`` or that the library gives such code.
"""

from __future__ import annotations

from crosscast.characterization.builtins.mangling import Declaration, Type

DECLARATIONS = {
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
_BLOCKS = {
    "__extendhfsf2": _EXTEND,
    "__truncsfhf2": _TRUNCATE.format(U="uint", top=16, digits=23, bias=127, special="0xff").replace(
        "uint_MAXIMUM", "UINT_MAX"
    ),
    "__truncdfhf2": _TRUNCATE.format(U="ulong", top=48, digits=52, bias=1023, special="0x7ff").replace(
        "ulong_MAXIMUM", "ULONG_MAX"
    ),
}


def define(declaration: Declaration) -> str | None:
    """Result type and block of a conversion routine; ``None`` for other functions."""
    return _BLOCKS.get(declaration.name)
