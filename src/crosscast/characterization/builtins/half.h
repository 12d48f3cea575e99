/* The conversions of half and bfloat that LLVM calls where the hardware has none, made of integers.
 *
 * A bfloat is the upper half of a float. It is returned as a half of the same bits, in the same register.
 */
#pragma once
#include "values.h"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
inline float extended(half x) {
  uint h = as<ushort>(x), sign = (h & 0x8000) << 16, magnitude = h & 0x7fff;
  uint normal = (magnitude << 13) + (112u << 23);
  if (magnitude >= 0x7c00) normal += 112u << 23;
  /* Subnormal: a fraction of 2^-14 without the leading one, which float arithmetic takes off. */
  if (magnitude < 0x400) normal = as<uint>(as<float>((magnitude << 13) + (113u << 23)) - 0x1p-14f);
  return as<float>(sign | normal);
}
/* The digits are shifted into place, the lost ones decide: above half, or half and odd, rounds up. */
template <class F> half truncated(F x) {
  using U = uints<F>;
  constexpr int digits = facts<F>::digits, bias = facts<F>::bias;
  U bits = as<U>(x), magnitude = bits & ((U)~(U)0 >> 1);
  ushort sign = (ushort)(bits >> (8 * sizeof(F) - 16)) & 0x8000;
  int exponent = (int)(magnitude >> digits) - bias;
  if (magnitude > (U)(2 * bias + 1) << digits) return as<half>((ushort)(sign | 0x7e00));
  if (exponent > 15) return as<half>((ushort)(sign | 0x7c00));
  if (exponent < -25) return as<half>(sign);
  U fraction = (magnitude & (((U)1 << digits) - 1)) | ((U)1 << digits);
  int lost = digits - 10 + (exponent < -14 ? -14 - exponent : 0);
  U kept = fraction >> lost, rest = fraction & (((U)1 << lost) - 1), tie = (U)1 << (lost - 1);
  kept += rest > tie || (rest == tie && (kept & 1));
  uint base = exponent < -14 ? 0 : (uint)(exponent + 14) << 10;
  return as<half>((ushort)(sign | (base + (uint)kept)));
}
inline half shortened(float x) {
  uint bits = as<uint>(x);
  bits += x != x ? 0 : 0x7fff + (bits >> 16 & 1);
  return as<half>((ushort)(bits >> 16 | (x != x ? 0x40 : 0)));
}
/* Rounded to odd first: an inexact float has an odd last digit, so that the second rounding is as of the double. */
inline half shortened(double x) {
  float near = (float)x;
  if (near == x || x != x) return shortened(near);
  bool above = ABS(near) > ABS(x);
  return shortened(as<float>((as<uint>(near) - above) | 1));
}
#pragma clang attribute pop
