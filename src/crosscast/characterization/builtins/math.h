/* Math functions (OpenCL C 1.2, section 6.12.2), `native_` and `half_` ones included.
 *
 * What the hardware does element by element is written for whole vectors. The rest is a function of a float or
 * double, the C library's or one of these, that is called for each element. half is computed in float, which has
 * more than twice its digits, and rounded at the end.
 */
#pragma once
#include "values.h"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
template <class T> struct lifted {};
template <> struct lifted<half> { using yes = int; };
template <class S, int N> struct lifted<vec<S, N>> { using yes = int; };
inline float to_float(half x) { return (float)x; }
inline int to_float(int x) { return x; }
inline half to_half(float x) { return (half)x; }
inline int to_half(int x) { return x; }
template <class Function, class T, class... More> auto by_element(Function function, T x, More... more) {
  if constexpr (__is_same(T, half)) return to_half(function(to_float(x), to_float(more)...));
  else return each<like<decltype(function(at(x, 0), at(more, 0)...)), T>>([&](int k) {
    return function(at(x, k), at(more, k)...);
  });
}

namespace cl {

#define WHOLE(NAME, BUILTIN) REALS T NAME(T x) { return __builtin_elementwise_##BUILTIN(x); }
WHOLE(ceil, ceil) WHOLE(floor, floor) WHOLE(trunc, trunc) WHOLE(rint, roundeven) WHOLE(round, round)
WHOLE(fabs, abs) WHOLE(sqrt, sqrt)
REALS T copysign(T x, T y) { return __builtin_elementwise_copysign(x, y); }
REALS T fmax(T x, T y) { return __builtin_elementwise_maxnum(x, y); }
REALS T fmin(T x, T y) { return __builtin_elementwise_minnum(x, y); }
REALS T fdim(T x, T y) { return x <= y ? splat<T>(0) : x - y; }
REALS T mad(T x, T y, T z) { return x * y + z; }
REALS T maxmag(T x, T y) { return fabs(x) > fabs(y) ? x : fabs(y) > fabs(x) ? y : fmax(x, y); }
REALS T minmag(T x, T y) { return fabs(x) < fabs(y) ? x : fabs(y) < fabs(x) ? y : fmin(x, y); }
REALS T native_recip(T x) { return splat<T>(1) / x; }
REALS T native_divide(T x, T y) { return x / y; }
REALS T half_recip(T x) { return native_recip(x); }
REALS T half_divide(T x, T y) { return native_divide(x, y); }
/* Two operations, whose errors would add up in half. */
REALS T rsqrt(T x) { return cast<T>(splat<promoted<T>>(1) / sqrt(cast<promoted<T>>(x))); }
REALS T fma(T x, T y, T z) {
  /* In half the product is exact in double; the sum is where its rounding could show. */
  if constexpr (__is_same(element<T>, half))
    return each<T>([&](int k) { return narrowed<rte, half>(narrowed<to_odd, float>((double)at(x, k) * at(y, k) + at(z, k))); });
  else return __builtin_elementwise_fma(x, y, z);
}

/* A function of float and double for half and for vectors. */
#define BY_ELEMENT(NAME)                                                                        \
  template <class T, class... More, typename lifted<T>::yes = 0> auto NAME(T x, More... more) { \
    return by_element([](auto... elements) { return NAME(elements...); }, x, more...);          \
  }
#define LIBRARY(NAME, SYMBOL, ...)                                          \
  [[gnu::const]] float NAME(float __VA_OPT__(, float)) __asm__(SYMBOL "f"); \
  [[gnu::const]] double NAME(double __VA_OPT__(, double)) __asm__(SYMBOL);
#define UNARY(NAME) LIBRARY(NAME, #NAME) BY_ELEMENT(NAME)
UNARY(acos) UNARY(acosh) UNARY(asin) UNARY(asinh) UNARY(atan) UNARY(atanh) UNARY(cos) UNARY(cosh) UNARY(erf)
UNARY(erfc) UNARY(exp) UNARY(exp10) UNARY(exp2) UNARY(expm1) UNARY(log) UNARY(log10) UNARY(log1p) UNARY(log2)
UNARY(sin) UNARY(sinh) UNARY(tan) UNARY(tanh) UNARY(tgamma)
#define BINARY(NAME) LIBRARY(NAME, #NAME, 2) BY_ELEMENT(NAME)
BINARY(atan2) BINARY(fmod) BINARY(hypot) BINARY(pow) BINARY(remainder)

inline half nan(ushort x) { return as<half>((ushort)(x | 0x7e00)); }
inline float nan(uint x) { return as<float>(x | 0x7fc00000); }
inline double nan(ulong x) { return as<double>(x | 0x7ff8000000000000); }
BY_ELEMENT(nan)

/* The power of two is exact in double, and so is the product but for results out of range. */
inline float ldexp(float x, int n) {
  int clamped = __builtin_elementwise_max(__builtin_elementwise_min(n, 400), -400);
  return (float)(x * as<double>((long)(clamped + 1023) << 52));
}
double ldexp(double, int) __asm__("ldexp");
BY_ELEMENT(ldexp)

/* Parts of functions, which are none of OpenCL C's. */
namespace parts {

LIBRARY(library_cbrt, "cbrt")
float lgamma_with(float, __private int *) __asm__("lgammaf_r");
double lgamma_with(double, __private int *) __asm__("lgamma_r");
/* x modulo 2 in [-1, 1], exact. */
REAL F turn_of(F x) { return x - 2 * rint(x * (F)0.5); }
REAL pair<F, int> frexp_of(F x) {
  constexpr int digits = facts<F>::digits, bias = facts<F>::bias;
  using I = ints<F>;
  F magnitude = fabs(x);
  int small = magnitude < facts<F>::smallest;
  I bits = as<I>(small ? x * (F)(1ul << (digits + 2)) : x), mask = 2 * bias + 1;
  int special = magnitude == 0 || !(magnitude < infinity<F>());
  int exponent = ((int)(bits >> digits) & (int)mask) - (bias - 1) - (small ? digits + 2 : 0);
  F fraction = as<F>((bits & ~(mask << digits)) | ((I)(bias - 1) << digits));
  return {special ? x : fraction, special ? 0 : exponent};
}
REAL pair<F, int> lgamma_r_of(F x) {
  int sign;
  F value = lgamma_with(x, &sign);
  return {value, sign};
}
REAL pair<F, F> sincos_of(F x) { return {sin(x), cos(x)}; }
/* The C library gives three bits of the quotient, OpenCL wants seven. */
REAL pair<F, int> remquo_of(F x, F y) {
  F divisor = fabs(y), r = fabs(x);
  if (!(r < infinity<F>()) || divisor == 0 || divisor != divisor) return {(F)__builtin_nanf(""), 0};
  if (divisor == infinity<F>()) return {x, 0};
  if (divisor * 128 < infinity<F>()) r = fmod(r, divisor * 128);
  uint q = 0;
  for (int bit = 64; bit; bit >>= 1) {
    F multiple = divisor * bit;
    int fits = r >= multiple;
    r = fits ? r - multiple : r;
    q += fits ? bit : 0;
  }
  F complement = divisor - r;
  if (r > complement || (r == complement && (q & 1))) r -= divisor, ++q;
  return {as<ints<F>>(x) < 0 ? -r : r, (x < 0) != (y < 0) ? -(int)(q & 127) : (int)(q & 127)};
}
#define IN_FLOAT(NAME) \
  template <class... More> auto NAME(half x, More... more) { return NAME(to_float(x), to_float(more)...); }
IN_FLOAT(frexp_of) IN_FLOAT(lgamma_r_of) IN_FLOAT(sincos_of) IN_FLOAT(remquo_of)
STEPPING pair<F, F> fract_of(F x) {
  F whole = floor(x), rest = x - whole, below_one = below((F)1);
  rest = rest >= below_one ? below_one : rest;
  return {fabs(x) == infinity<F>() ? copysign((F)0, x) : rest, whole};
}
STEPPING pair<F, F> modf_of(F x) {
  F whole = trunc(x);
  return {copysign(fabs(x) == infinity<F>() ? (F)0 : x - whole, x), whole};
}

}

REAL F lgamma(F x) { return parts::lgamma_r_of(x).first; }
BY_ELEMENT(lgamma)
REAL int ilogb(F x) {
  int exponent = parts::frexp_of(x).second - 1;
  return x == 0 ? INT_MIN : !(fabs(x) < infinity<F>()) ? INT_MAX : exponent;
}
REAL F logb(F x) {
  F exponent = (F)(parts::frexp_of(x).second - 1), finite = x == 0 ? -infinity<F>() : exponent;
  return fabs(x) < infinity<F>() ? finite : x * x;
}
BY_ELEMENT(ilogb) BY_ELEMENT(logb)

/* The C library may be off by more than 2 ulp in double: one step of Newton's method. */
REAL F cbrt(F x) {
  F root = parts::library_cbrt(x), square = root * root;
  F lost = fma(root, root, -square) * root;
  F excess = lost + fma(square, root, -x);
  F better = root - excess / (3 * square);
  return sizeof(F) == 8 && x != 0 && fabs(x) < infinity<F>() ? better : root;
}
REAL F acospi(F x) { return (F)(acos(x) * M_1_PI); }
REAL F asinpi(F x) { return (F)(asin(x) * M_1_PI); }
REAL F atanpi(F x) { return (F)(atan(x) * M_1_PI); }
REAL F atan2pi(F y, F x) { return (F)(atan2(y, x) * M_1_PI); }
REAL F sinpi(F x) {
  F r = parts::turn_of(x), a = fabs(r);
  F s = (F)sin(M_PI * (a > (F)0.5 ? 1 - a : a));
  return copysign(s, s == 0 ? x : r);
}
REAL F cospi(F x) {
  F a = fabs(parts::turn_of(x));
  return (F)sin(M_PI * (0.5 - a));
}
REAL F tanpi(F x) {
  F r = parts::turn_of(x), a = fabs(r), f = a > (F)0.5 ? 1 - a : a;
  F t = (F)tan(M_PI * (f > (F)0.25 ? (F)0.5 - f : f));
  F sign = a == 0 || a == 1 ? x : r;
  return copysign(f > (F)0.25 ? 1 / t : t, a > (F)0.5 ? -sign : sign);
}
REAL F pown(F x, int n) { return (F)pow((double)x, (double)n); }
REAL F powr(F x, F y) {
  int undefined = x < 0 || x != x || y != y || (y == 0 && (x == 0 || x == infinity<F>())) ||
                  (x == 1 && fabs(y) == infinity<F>());
  return undefined ? (F)__builtin_nanf("") : pow(fabs(x), y);
}
REAL F rootn(F x, int n) {
  double magnitude = fabs(x), inverse = 1.0 / n;
  double root = pow(magnitude, inverse);
  /* 1/n is rounded; what it lacks matters for the last digits of double. */
  if (sizeof(F) == 8 && root > 0 && root < __builtin_inff())
    root -= root * (fma(inverse, (double)n, -1.0) * inverse * log(magnitude));
  if (n == 0 || (x < 0 && !(n & 1))) return (F)__builtin_nanf("");
  return (n & 1) ? copysign((F)root, x) : (F)root;
}
BY_ELEMENT(cbrt) BY_ELEMENT(acospi) BY_ELEMENT(asinpi) BY_ELEMENT(atanpi) BY_ELEMENT(atan2pi) BY_ELEMENT(sinpi)
BY_ELEMENT(cospi) BY_ELEMENT(tanpi) BY_ELEMENT(pown) BY_ELEMENT(powr) BY_ELEMENT(rootn)

/* Steps through the representable numbers, so half has its own. */
STEPPING F nextafter(F x, F y) {
  F beside = y > x ? above(x) : below(x);
  return x != x || y != y ? x + y : x == y ? y : beside;
}
template <class S, int N> vec<S, N> nextafter(vec<S, N> x, vec<S, N> y) {
  return each<vec<S, N>>([&](int k) { return nextafter((S)x[k], (S)y[k]); });
}

/* The second result goes through a pointer. */
#define WITH_SECOND(NAME, SECOND, PARAMETERS, ...)                                      \
  template <class T, class P, typename facts<element<T>>::real = 0> T NAME PARAMETERS { \
    auto both = [&](int k) { return parts::NAME##_of(__VA_ARGS__); };                   \
    decltype(both(0)) found[shape<T>::width];                                           \
    T first = each<T>([&](int k) { return found[k] = both(k), found[k].first; });       \
    *second = each<like<SECOND, T>>([&](int k) { return (SECOND)found[k].second; });    \
    return first;                                                                       \
  }
WITH_SECOND(fract, element<T>, (T x, P *second), at(x, k))
WITH_SECOND(modf, element<T>, (T x, P *second), at(x, k))
WITH_SECOND(sincos, element<T>, (T x, P *second), at(x, k))
WITH_SECOND(frexp, int, (T x, P *second), at(x, k))
WITH_SECOND(lgamma_r, int, (T x, P *second), at(x, k))
WITH_SECOND(remquo, int, (T x, T y, P *second), at(x, k), at(y, k))

}
#pragma clang attribute pop
