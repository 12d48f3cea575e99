/* Common, geometric and relational functions (OpenCL C 1.2, sections 6.12.4 to 6.12.6). */
#pragma once
#include "math.h"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
namespace cl {

REALS T max(T x, T y) { return x < y ? y : x; }
REALS T min(T x, T y) { return y < x ? y : x; }
/* A NaN in x gives the lower bound, as fmin(fmax(x, low), high) does. */
REALS T clamp(T x, T low, T high) { return min(x > low ? x : low, high); }
REALS T degrees(T x) { return x * splat<T>((element<T>)57.29577951308232); }
REALS T radians(T x) { return x * splat<T>((element<T>)0.017453292519943295); }
REALS T mix(T x, T y, T a) { return x + (y - x) * a; }
REALS T step(T edge, T x) { return x < edge ? splat<T>(0) : splat<T>(1); }
REALS T smoothstep(T low, T high, T x) {
  T t = clamp((x - low) / (high - low), splat<T>(0), splat<T>(1));
  return t * t * (splat<T>(3) - splat<T>(2) * t);
}
REALS T sign(T x) {
  T zero = splat<T>(0), one = splat<T>(1);
  return x != x ? zero : x == zero ? copysign(zero, x) : copysign(one, x);
}

/* Sum of products from left to right; in float for half. */
REALS element<T> dot(T x, T y) {
  promoted<T> products = cast<promoted<T>>(x) * cast<promoted<T>>(y);
  auto sum = at(products, 0);
  _Pragma("unroll") for (int k = 1; k < shape<T>::width; k++) sum += at(products, k);
  return (element<T>)sum;
}
REALS T cross(T x, T y) {
  element<T> a = x.y * y.z - x.z * y.y, b = x.z * y.x - x.x * y.z, c = x.x * y.y - x.y * y.x;
  if constexpr (shape<T>::width == 3) return T{a, b, c};
  else return T{a, b, c, 0};
}
namespace parts {
/* Squares must not overflow or underflow on the way: float and half are squared in a wider type, double is scaled
 * by a power of two first. */
REALS pair<wider<T>, element<wider<T>>> scaled(T x) {
  wider<T> wide = cast<wider<T>>(x);
  if constexpr (!__is_same(element<T>, double)) return {wide, 1};
  else {
    double most = at(fabs(wide), 0);
    _Pragma("unroll") for (int k = 1; k < shape<T>::width; k++) most = fmax(most, at(fabs(wide), k));
    double scale = most > 0x1p500 ? 0x1p-600 : most < 0x1p-400 ? 0x1p600 : 1;
    return {wide * scale, scale};
  }
}
}
REALS element<T> length(T x) {
  auto [wide, scale] = parts::scaled(x);
  return (element<T>)(sqrt(dot(wide, wide)) / scale);
}
REALS T normalize(T x) {
  using W = wider<T>;
  W wide = parts::scaled(x).first;
  element<W> square = dot(wide, wide);
  /* An infinite element counts as 1 and makes the finite ones 0 (section 7.5.1). */
  if (__builtin_expect(square == infinity<element<W>>(), 0)) {
    wide = copysign(fabs(wide) == infinity<W>() ? splat<W>(1) : splat<W>(0), wide);
    square = dot(wide, wide);
  }
  return cast<T>(square == 0 ? wide : wide / sqrt(square));
}
REALS element<T> distance(T x, T y) { return length(x - y); }
REALS element<T> fast_length(T x) { return sqrt(dot(x, x)); }
REALS element<T> fast_distance(T x, T y) { return fast_length(x - y); }
REALS T fast_normalize(T x) {
  element<T> square = dot(x, x);
  return square == 0 ? x : x * (element<T>)(1 / sqrt(square));
}

/* Relational functions give 1 for true on scalars, -1 on vectors. */
template <class T> struct truth { using type = ints<T>; };
template <> struct truth<half> { using type = int; };
template <> struct truth<double> { using type = int; };
#define TEST(NAME, CONDITION) REALS typename truth<T>::type NAME(T x) { return CONDITION; }
TEST(isfinite, fabs(x) < infinity<T>()) TEST(isinf, fabs(x) == infinity<T>()) TEST(isnan, x != x)
TEST(isnormal, (fabs(x) < infinity<T>()) & (fabs(x) >= splat<T>(facts<element<T>>::smallest)))
TEST(signbit, as<ints<T>>(x) < splat<ints<T>>(0))
#define COMPARISON(NAME, CONDITION) REALS typename truth<T>::type NAME(T x, T y) { return CONDITION; }
COMPARISON(isequal, x == y) COMPARISON(isnotequal, x != y) COMPARISON(isgreater, x > y)
COMPARISON(isgreaterequal, x >= y) COMPARISON(isless, x < y) COMPARISON(islessequal, x <= y)
COMPARISON(islessgreater, (x < y) | (x > y)) COMPARISON(isordered, (x == x) & (y == y))
COMPARISON(isunordered, (x != x) | (y != y))

}
#pragma clang attribute pop
