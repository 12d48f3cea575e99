/* Conversions (OpenCL C 1.2, sections 6.2.3 and 6.2.4), and vector data loads and stores (6.12.7). */
#pragma once
#include "values.h"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
/* An integer of 64 bits to double. */
template <mode M, class L> double from_64_bits(L x) {
  bool negative = x < 0;
  if constexpr (M == to_odd) {
    ulong m = negative ? -(ulong)x : (ulong)x;
    if (m >> 53) m = (m & ~0x7fful) | ((m & 0x7ff) ? 0x800 : 0);
    return negative ? -(double)m : (double)m;
  }
  /* Sign of (double)x - x: both halves are exact, and so is the rounding error of their sum. */
  double high = (double)(x >> 32) * 0x1p32, low = (double)(uint)x, excess = ((high + low) - high) - low;
  if constexpr (M == rtp) return excess < 0 ? above((double)x) : (double)x;
  if constexpr (M == rtn) return excess > 0 ? below((double)x) : (double)x;
  if constexpr (M == rtz) return negative ? from_64_bits<rtp>(x) : from_64_bits<rtn>(x);
  return (double)x;
}

template <class S> constexpr bool is_wide = __is_integral(S) && sizeof(S) == 8;
template <class S> constexpr bool fits_float = __is_integral(S) ? sizeof(S) < 4 : sizeof(S) <= 4;
/* Whether a C cast does the conversion: it is exact, or one rounding to nearest. */
template <class F, mode M, class S>
constexpr bool is_cast = sizeof(F) == 2   ? __is_same(S, F) || (M == rte && fits_float<S>)
                         : sizeof(F) == 4 ? M == rte || fits_float<S>
                                          : M == rte || !is_wide<S>;

/* A scalar as a floating-point type, rounded once. */
template <class F, mode M, class S> F rounded(S x) {
  if constexpr (is_cast<F, M, S>) return (F)x;
  else if constexpr (sizeof(F) == 8) return from_64_bits<M>(x);
  else if constexpr (is_wide<S>) return rounded<F, M>(from_64_bits<to_odd>(x));
  else if constexpr (sizeof(F) == 4) return narrowed<M, float>((double)x);
  else if constexpr (fits_float<S>) return narrowed<M, half>((float)x);
  else return narrowed<M, half>(narrowed<to_odd, float>((double)x));
}

template <mode M, class T> T whole(T x) {
  if constexpr (M == rte) return __builtin_elementwise_roundeven(x);
  if constexpr (M == rtz) return __builtin_elementwise_trunc(x);
  if constexpr (M == rtp) return __builtin_elementwise_ceil(x);
  return __builtin_elementwise_floor(x);
}

template <class R, bool SATURATE, class T> R to_integer(T x) {
  using F = element<T>;
  using E = element<R>;
  using masks = like<typename facts<E>::with_sign, R>;
  /* Out of range a narrow conversion is undefined; through int it wraps as C does on hosts. */
  if constexpr (!SATURATE && sizeof(E) < 4) return cast<R>(cast<like<int, T>>(x));
  if constexpr (!SATURATE) return cast<R>(x);
  constexpr E low = facts<E>::low, high = facts<E>::high;
  auto under = x < (F)low, over = x >= (F)(high / 2 + 1) * 2;
  R r = cast<R>((under | over | (x != x)) ? (T)(F)0 : x);
  r = cast<masks>(under) ? (R)low : r;
  return cast<masks>(over) ? (R)high : r;
}

template <class R, mode M, bool SATURATE = false, class T> R convert(T x) {
  using S = element<T>;
  using E = element<R>;
  static_assert((int)shape<R>::width == (int)shape<T>::width);
  if constexpr (!__is_integral(E)) {
    if constexpr (is_cast<E, M, S>) return cast<R>(x);
    else return each<R>([&](int k) { return rounded<E, M>(at(x, k)); });
  } else if constexpr (!__is_integral(S)) {
    return to_integer<R, SATURATE>(whole<M>(cast<promoted<T>>(x)));
  } else {
    using limits = facts<E>;
    if constexpr (SATURATE && (_BitInt(128))limits::low > facts<S>::low)
      x = __builtin_elementwise_max(x, (T)(S)limits::low);
    if constexpr (SATURATE && (_BitInt(128))limits::high < facts<S>::high)
      x = __builtin_elementwise_min(x, (T)(S)limits::high);
    return cast<R>(x);
  }
}

/* Vectors in memory. Three elements occupy four where they are aligned: the fourth is not touched. */
#define TRANSFERS(SPACE)                                                          \
  template <int N, int ALIGNMENT, class S> auto load(const SPACE S *p) {          \
    using V = typename sized<S, N>::type;                                         \
    typedef V aligned __attribute__((aligned(ALIGNMENT)));                        \
    if constexpr (N == 3) return V{p[0], p[1], p[2]};                             \
    else return (V)*(const SPACE aligned *)p;                                     \
  }                                                                               \
  template <int N, int ALIGNMENT, class V, class S> void store(V v, SPACE S *p) { \
    static_assert(__is_same(element<V>, S) && shape<V>::width == N);              \
    typedef V aligned __attribute__((aligned(ALIGNMENT)));                        \
    if constexpr (N == 3) p[0] = v.x, p[1] = v.y, p[2] = v.z;                     \
    else *(SPACE aligned *)p = v;                                                 \
  }
TRANSFERS(private) TRANSFERS(global) TRANSFERS(constant) TRANSFERS(local) TRANSFERS(generic)
#pragma clang attribute pop
