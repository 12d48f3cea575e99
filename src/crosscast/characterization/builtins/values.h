/* Scalars and vectors of OpenCL C, in templates: a T is either, an S or F is a scalar.
 *
 * These headers are C++ for OpenCL. Namespace `cl` has the builtin functions of OpenCL C under their names, and
 * nothing else; they call no builtins but clang's own (__builtin_...) and the C library's functions.
 */
#pragma once
#pragma OPENCL FP_CONTRACT OFF
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)

template <class S, int N> using vec = S __attribute__((ext_vector_type(N)));

template <class T> struct shape {
  using element = T;
  template <class S> using with = S;
  enum { width = 1 };
};
template <class S, int N> struct shape<vec<S, N>> {
  using element = S;
  template <class R> using with = vec<R, N>;
  enum { width = N };
};
template <class T> using element = typename shape<T>::element;
/* As many elements as T has, each an S. */
template <class S, class T> using like = typename shape<T>::template with<S>;
/* The vector of that many elements; one element is a scalar. */
template <class S, int N> struct sized { using type = vec<S, N>; };
template <class S> struct sized<S, 1> { using type = S; };

/* What there is to know of a scalar type. Which kinds it is of tell members that only those have. */
template <class S> struct facts;
#define INTEGER_FACTS(S, SIGNED, UNSIGNED, WIDER)                                        \
  template <> struct facts<S> {                                                          \
    using integer = int;                                                                 \
    using with_sign = SIGNED;                                                            \
    using without_sign = UNSIGNED;                                                       \
    using wider = WIDER;                                                                 \
    static constexpr bool is_signed = (S)-1 < (S)0;                                      \
    static constexpr S low = is_signed ? (S)((UNSIGNED)1 << (8 * sizeof(S) - 1)) : (S)0; \
    static constexpr S high = (S)~low;                                                   \
  };
#define INTEGERS_FACTS(S, U, WIDER, UWIDER) INTEGER_FACTS(S, S, U, WIDER) INTEGER_FACTS(U, S, U, UWIDER)
INTEGERS_FACTS(char, uchar, short, ushort)
INTEGERS_FACTS(short, ushort, int, uint)
INTEGERS_FACTS(int, uint, long, ulong)
INTEGERS_FACTS(long, ulong, _BitInt(128), unsigned _BitInt(128))
#define REAL_FACTS(F, KIND, BITS, WIDER, DIGITS, SMALLEST)                    \
  template <> struct facts<F> {                                               \
    using real = int;                                                         \
    using KIND = int;                                                         \
    enum { digits = DIGITS, bias = (1 << (8 * sizeof(F) - DIGITS - 2)) - 1 }; \
    using with_sign = BITS;                                                   \
    using without_sign = u##BITS;                                             \
    using wider = WIDER;                                                      \
    static constexpr F smallest = SMALLEST;                                   \
  };
REAL_FACTS(half, narrow, short, float, 10, 0x1p-14f)
REAL_FACTS(float, wide, int, double, 23, 0x1p-126f)
REAL_FACTS(double, wide, long, double, 52, 0x1p-1022)

/* Heads of templates for certain types: values of real or integer elements, scalars of one of the types. */
#define REALS template <class T, typename facts<element<T>>::real = 0>
#define INTEGERS template <class T, typename facts<element<T>>::integer = 0>
#define REAL template <class F, typename facts<F>::wide = 0>
#define STEPPING template <class F, typename facts<F>::real = 0>

template <class T> using ints = like<typename facts<element<T>>::with_sign, T>;
template <class T> using uints = like<typename facts<element<T>>::without_sign, T>;
template <class T> using promoted = like<decltype(element<T>() + 0.0f), T>;
template <class T> using wider = like<typename facts<element<T>>::wider, T>;

/* The same bits. */
template <class R, class T> R as(T x) { return __builtin_astype(x, R); }

/* The same values, as C casts them. */
template <class R, class T> R cast(T x) {
  if constexpr (shape<T>::width == 1) return (R)x;
  else return __builtin_convertvector(x, R);
}

template <class T> T splat(element<T> x) { return (T)x; }
template <class T> T infinity() { return splat<T>((element<T>)__builtin_inff()); }
#define ABS(X) __builtin_elementwise_abs(X)

template <class T> element<T> at(T x, int k) {
  if constexpr (shape<T>::width == 1) return x;
  else return x[k];
}

template <class A, class B> struct pair {
  A first;
  B second;
};

/* A value whose elements a function of their number makes. */
template <class R, class Function> R each(Function make) {
  if constexpr (shape<R>::width == 1) return make(0);
  else {
    R r;
    _Pragma("unroll") for (int k = 0; k < shape<R>::width; k++) r[k] = make(k);
    return r;
  }
}

/* To a floating-point type of fewer digits, in the four rounding modes: the value is rounded to nearest by the
 * hardware, compared with the exact one, and moved by one unit where the mode asks for it. Where two roundings
 * follow each other the first one is to odd (an inexact result gets an odd last digit), which makes the second
 * one come out as if it were the only one (Boldo and Melquiond, 2008, doi:10.1109/TC.2007.70819).
 */
enum mode { rte, rtz, rtp, rtn, to_odd };

/* The next number above, below, and towards zero. */
template <class F> F above(F x) {
  ints<F> bits = as<ints<F>>(x);
  F beside = as<F>((ints<F>)(bits + (bits < 0 ? -1 : 1)));
  return x == 0 ? as<F>((ints<F>)1) : beside;
}
template <class F> F below(F x) { return -above(-x); }
template <class F> F inward(F x) { return as<F>((ints<F>)(as<ints<F>>(x) - 1)); }

/* To a type of less than half the digits: the sums and comparisons in W are exact. */
template <mode M, class F, class W> F narrowed(W x) {
  F r = (F)x;
  if constexpr (M == rtp) return (W)r < x ? above(r) : r;
  if constexpr (M == rtn) return (W)r > x ? below(r) : r;
  if constexpr (M == rtz) return ABS((W)r) > ABS(x) ? inward(r) : r;
  if constexpr (M == to_odd) {
    r = narrowed<rtz, F>(x);
    return (W)r != x ? as<F>((ints<F>)(as<ints<F>>(r) | 1)) : r;
  }
  return r;
}
#pragma clang attribute pop
