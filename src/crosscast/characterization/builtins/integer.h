/* Integer functions (OpenCL C 1.2, section 6.12.3), selections (6.12.6) and shuffles (6.12.12). */
#pragma once
#include "values.h"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
namespace cl {

INTEGERS T add_sat(T x, T y) { return __builtin_elementwise_add_sat(x, y); }
INTEGERS T sub_sat(T x, T y) { return __builtin_elementwise_sub_sat(x, y); }
INTEGERS T hadd(T x, T y) { return (x & y) + ((x ^ y) >> splat<T>(1)); }
INTEGERS T rhadd(T x, T y) { return (x | y) - ((x ^ y) >> splat<T>(1)); }
INTEGERS T max(T x, T y) { return __builtin_elementwise_max(x, y); }
INTEGERS T min(T x, T y) { return __builtin_elementwise_min(x, y); }
INTEGERS T clamp(T x, T low, T high) { return min(max(x, low), high); }
INTEGERS T rotate(T x, T n) { return __builtin_elementwise_fshl(x, x, n); }
INTEGERS T clz(T x) { return __builtin_elementwise_clzg(x, splat<T>(8 * sizeof(element<T>))); }
INTEGERS T ctz(T x) { return __builtin_elementwise_ctzg(x, splat<T>(8 * sizeof(element<T>))); }
INTEGERS T popcount(T x) { return __builtin_elementwise_popcount(x); }
INTEGERS uints<T> abs(T x) {
  if constexpr (__is_same(T, uints<T>)) return x;
  else return as<uints<T>>(ABS(x));
}
INTEGERS uints<T> abs_diff(T x, T y) { return as<uints<T>>(max(x, y)) - as<uints<T>>(min(x, y)); }

/* Signed overflow is undefined in C: what wraps is computed without signs. */
INTEGERS T mad24(T x, T y, T z) { return as<T>((uints<T>)(as<uints<T>>(x) * as<uints<T>>(y) + as<uints<T>>(z))); }
INTEGERS T mul24(T x, T y) { return mad24(x, y, splat<T>(0)); }
INTEGERS T mul_hi(T x, T y) {
  return cast<T>(cast<wider<T>>(x) * cast<wider<T>>(y) >> splat<wider<T>>(8 * sizeof(element<T>)));
}
INTEGERS T mad_hi(T x, T y, T z) { return as<T>((uints<T>)(as<uints<T>>(mul_hi(x, y)) + as<uints<T>>(z))); }
INTEGERS T mad_sat(T x, T y, T z) {
  using W = wider<T>;
  W low = splat<W>(facts<element<T>>::low), high = splat<W>(facts<element<T>>::high);
  W sum = cast<W>(x) * cast<W>(y) + cast<W>(z);
  return cast<T>(__builtin_elementwise_min(__builtin_elementwise_max(sum, low), high));
}
INTEGERS wider<T> upsample(T high, uints<T> low) {
  using W = uints<wider<T>>;
  return as<wider<T>>((W)(cast<W>(as<uints<T>>(high)) << splat<W>(8 * sizeof(element<T>)) | cast<W>(low)));
}

/* CUDA's dot products of packed integers, which wrap. */
template <int FIRST, class A, class B, class T> T dot(A x, B y, T z) {
  uint sum = as<uint>(z);
  for (int k = 0; k < shape<A>::width; k++) sum += (uint)((int)x[k] * (int)y[FIRST + k]);
  return as<T>(sum);
}
inline int cc_dp4a(int x, int y, int z) { return dot<0>(as<char4>(x), as<char4>(y), z); }
inline uint cc_dp4a(uint x, uint y, uint z) { return dot<0>(as<uchar4>(x), as<uchar4>(y), z); }
inline int cc_dp2a_lo(int x, int y, int z) { return dot<0>(as<short2>(x), as<char4>(y), z); }
inline uint cc_dp2a_lo(uint x, uint y, uint z) { return dot<0>(as<ushort2>(x), as<uchar4>(y), z); }
inline int cc_dp2a_hi(int x, int y, int z) { return dot<2>(as<short2>(x), as<char4>(y), z); }
inline uint cc_dp2a_hi(uint x, uint y, uint z) { return dot<2>(as<ushort2>(x), as<uchar4>(y), z); }

/* CUDA's shifts of two words by up to 32 bits, and choice of four bytes of eight; 8 more repeats a byte's sign. */
inline uint cc_funnel_lc(uint low, uint high, uint n) {
  return n < 32 ? __builtin_elementwise_fshl(high, low, n) : low;
}
inline uint cc_funnel_rc(uint low, uint high, uint n) {
  return n < 32 ? __builtin_elementwise_fshr(high, low, n) : high;
}
inline uint cc_byte_perm(uint x, uint y, uint selectors) {
  char8 bytes = as<char8>((ulong)y << 32 | x);
  return as<uint>(each<char4>([&](int k) {
    char byte = bytes[selectors >> 4 * k & 7];
    return selectors >> 4 * k & 8 ? (char)(byte >> 7) : byte;
  }));
}
INTEGERS uint cc_sad(T x, T y, uint z) { return abs_diff(x, y) + z; }
inline uint cc_vabsdiffu4(uint x, uint y) { return as<uint>(abs_diff(as<uchar4>(x), as<uchar4>(y))); }
inline uint cc_vsadu4(uint x, uint y, uint z) {
  uchar4 d = abs_diff(as<uchar4>(x), as<uchar4>(y));
  return z + d.x + d.y + d.z + d.w;
}

INTEGERS int any(T x) {
  if constexpr (shape<T>::width == 1) return x < 0;
  else return __builtin_reduce_or(x) < 0;
}
INTEGERS int all(T x) {
  if constexpr (shape<T>::width == 1) return x < 0;
  else return __builtin_reduce_and(x) < 0;
}
template <class T> T bitselect(T x, T y, T mask) {
  using U = uints<T>;
  return as<T>((U)((as<U>(x) & ~as<U>(mask)) | (as<U>(y) & as<U>(mask))));
}
template <class T, class C, typename facts<element<C>>::integer = 0> T select(T x, T y, C condition) {
  static_assert(sizeof(T) == sizeof(C) && (int)shape<T>::width == (int)shape<C>::width);
  if constexpr (shape<T>::width == 1) return condition ? y : x;
  else return as<ints<C>>(condition) < splat<ints<C>>(0) ? y : x;
}

template <class T, class M> auto shuffle(T x, M mask) {
  return each<like<element<T>, M>>([&](int k) { return x[mask[k] & (shape<T>::width - 1)]; });
}
template <class T, class M> auto shuffle2(T x, T y, M mask) {
  constexpr int width = shape<T>::width;
  return each<like<element<T>, M>>([&](int k) {
    return mask[k] & width ? y[mask[k] & (width - 1)] : x[mask[k] & (width - 1)];
  });
}

}
#pragma clang attribute pop
