/* Mathematical functions: those of OpenCL C have the names of C's, for float, double and half. */
#ifndef CROSSCAST_MATH_H
#define CROSSCAST_MATH_H

template <bool, class T = void> struct cc_enable {};
template <class T> struct cc_enable<true, T> { typedef T type; };
#define CC_IF_INTEGER(T) class = typename cc_enable<__is_integral(T)>::type

#define CC_UNARY(NAME)                                                           \
  CC_PURE float NAME(float);                                                     \
  CC_PURE double NAME(double);                                                   \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(T x) { return NAME((double)x); } \
  CC_INLINE float NAME##f(float x) { return NAME(x); }
CC_UNARY(acos) CC_UNARY(acosh) CC_UNARY(asin) CC_UNARY(asinh) CC_UNARY(atan) CC_UNARY(atanh)
CC_UNARY(cbrt) CC_UNARY(ceil) CC_UNARY(cos) CC_UNARY(cosh) CC_UNARY(cospi) CC_UNARY(erf)
CC_UNARY(erfc) CC_UNARY(exp) CC_UNARY(exp2) CC_UNARY(exp10) CC_UNARY(expm1) CC_UNARY(fabs)
CC_UNARY(floor) CC_UNARY(lgamma) CC_UNARY(log) CC_UNARY(log10) CC_UNARY(log1p) CC_UNARY(log2)
CC_UNARY(logb) CC_UNARY(rint) CC_UNARY(round) CC_UNARY(rsqrt) CC_UNARY(sin) CC_UNARY(sinh)
CC_UNARY(sinpi) CC_UNARY(sqrt) CC_UNARY(tan) CC_UNARY(tanh) CC_UNARY(tgamma) CC_UNARY(trunc)
#undef CC_UNARY

#define CC_BINARY(NAME)                                                          \
  CC_PURE float NAME(float, float);                                              \
  CC_PURE double NAME(double, double);                                           \
  CC_INLINE double NAME(float x, double y) { return NAME((double)x, y); }        \
  CC_INLINE double NAME(double x, float y) { return NAME(x, (double)y); }        \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(double x, T y) { return NAME(x, (double)y); } \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(T x, double y) { return NAME((double)x, y); } \
  CC_INLINE float NAME##f(float x, float y) { return NAME(x, y); }
CC_BINARY(atan2) CC_BINARY(copysign) CC_BINARY(fdim) CC_BINARY(fmax) CC_BINARY(fmin) CC_BINARY(fmod)
CC_BINARY(hypot) CC_BINARY(nextafter) CC_BINARY(pow) CC_BINARY(remainder)
#undef CC_BINARY
template <class T, CC_IF_INTEGER(T)> CC_INLINE float pow(float x, T y) { return pow(x, (float)y); }

CC_PURE float fma(float, float, float);
CC_PURE double fma(double, double, double);
CC_PURE float ldexp(float, int);
CC_PURE double ldexp(double, int);
CC_PURE int ilogb(float);
CC_PURE int ilogb(double);
CC_PURE int isnan(float);
CC_PURE int isnan(double);
CC_PURE int isinf(float);
CC_PURE int isinf(double);
CC_PURE int isfinite(float);
CC_PURE int isfinite(double);
CC_PURE int signbit(float);
CC_PURE int signbit(double);
CC_INLINE float fmaf(float x, float y, float z) { return fma(x, y, z); }
CC_INLINE float ldexpf(float x, int n) { return ldexp(x, n); }
CC_INLINE float scalbnf(float x, int n) { return ldexp(x, n); }
CC_INLINE double scalbn(double x, int n) { return ldexp(x, n); }
CC_INLINE int ilogbf(float x) { return ilogb(x); }
CC_INLINE float fdividef(float x, float y) { return x / y; }
CC_INLINE float powif(float x, int n) { return pow(x, (float)n); }
CC_INLINE float nearbyintf(float x) { return rint(x); }
CC_INLINE double nearbyint(double x) { return rint(x); }
CC_INLINE int lrintf(float x) { return (int)rint(x); }
CC_INLINE long lrint(double x) { return (long)rint(x); }
CC_INLINE long lroundf(float x) { return (long)round(x); }
CC_INLINE long lround(double x) { return (long)round(x); }
CC_INLINE float rcbrtf(float x) { return 1.0f / cbrt(x); }
CC_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
CC_INLINE float rhypotf(float x, float y) { return 1.0f / hypot(x, y); }
CC_INLINE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
CC_INLINE float norm3df(float x, float y, float z) { return sqrt(x * x + y * y + z * z); }
CC_INLINE double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
CC_INLINE float normcdff(float x) { return 0.5f * erfc(-x * 0.707106781186547524f); }
CC_INLINE double normcdf(double x) { return 0.5 * erfc(-x * 0.707106781186547524); }
CC_INLINE void sincos(float x, float *s, float *c) { *s = sin(x), *c = cos(x); }
CC_INLINE void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
CC_INLINE void sincosf(float x, float *s, float *c) { *s = sin(x), *c = cos(x); }
CC_INLINE void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
CC_INLINE void sincospif(float x, float *s, float *c) { *s = sinpi(x), *c = cospi(x); }
CC_INLINE float modf(float x, float *whole) { return *whole = trunc(x), copysign(isinf(x) ? 0.0f : x - trunc(x), x); }
CC_INLINE double modf(double x, double *whole) { return *whole = trunc(x), copysign(isinf(x) ? 0.0 : x - trunc(x), x); }
CC_INLINE float modff(float x, float *whole) { return modf(x, whole); }

/* Fast versions of one instruction each. */
#define CC_FAST(NAME, BUILTIN)  \
  CC_PURE float BUILTIN(float); \
  CC_INLINE float NAME(float x) { return BUILTIN(x); }
CC_FAST(__expf, native_exp) CC_FAST(__exp10f, native_exp10) CC_FAST(__logf, native_log)
CC_FAST(__log2f, native_log2) CC_FAST(__log10f, native_log10) CC_FAST(__sinf, native_sin)
CC_FAST(__cosf, native_cos) CC_FAST(__tanf, native_tan)
#undef CC_FAST
CC_PURE float native_divide(float, float);
CC_PURE float native_powr(float, float);
CC_PURE float clamp(float, float, float);
CC_INLINE float __fdividef(float x, float y) { return native_divide(x, y); }
CC_INLINE float __powf(float x, float y) { return native_powr(x, y); }
CC_INLINE void __sincosf(float x, float *s, float *c) { *s = native_sin(x), *c = native_cos(x); }
CC_INLINE float __saturatef(float x) { return clamp(x, 0.0f, 1.0f); }

/* Rounded to nearest, never fused with what is around. */
#pragma clang fp contract(off)
CC_INLINE float __fadd_rn(float x, float y) { return x + y; }
CC_INLINE float __fsub_rn(float x, float y) { return x - y; }
CC_INLINE float __fmul_rn(float x, float y) { return x * y; }
CC_INLINE float __fdiv_rn(float x, float y) { return x / y; }
CC_INLINE float __frcp_rn(float x) { return 1.0f / x; }
CC_INLINE float __fsqrt_rn(float x) { return sqrt(x); }
CC_INLINE float __frsqrt_rn(float x) { return rsqrt(x); }
CC_INLINE float __fmaf_rn(float x, float y, float z) { return fma(x, y, z); }
CC_INLINE double __dadd_rn(double x, double y) { return x + y; }
CC_INLINE double __dsub_rn(double x, double y) { return x - y; }
CC_INLINE double __dmul_rn(double x, double y) { return x * y; }
CC_INLINE double __ddiv_rn(double x, double y) { return x / y; }
CC_INLINE double __drcp_rn(double x) { return 1.0 / x; }
CC_INLINE double __dsqrt_rn(double x) { return sqrt(x); }
CC_INLINE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
#pragma clang fp contract(on)

/* min and max of two types are of the one that C adds them in. */
#define CC_MINMAX(T) \
  CC_PURE T min(T, T); \
  CC_PURE T max(T, T);
CC_MINMAX(int) CC_MINMAX(unsigned) CC_MINMAX(long) CC_MINMAX(unsigned long)
CC_MINMAX(long long) CC_MINMAX(unsigned long long) CC_MINMAX(float) CC_MINMAX(double)
#undef CC_MINMAX
template <class T, class U, class V = decltype(T() + U()), class = typename cc_enable<!__is_same(T, U)>::type>
CC_INLINE V min(T x, U y) { return min((V)x, (V)y); }
template <class T, class U, class V = decltype(T() + U()), class = typename cc_enable<!__is_same(T, U)>::type>
CC_INLINE V max(T x, U y) { return max((V)x, (V)y); }
#define CC_MINMAX_OF(SUFFIX, T)                                    \
  CC_INLINE T SUFFIX##min(T x, T y) { return min(x, y); }          \
  CC_INLINE T SUFFIX##max(T x, T y) { return max(x, y); }
CC_MINMAX_OF(u, unsigned) CC_MINMAX_OF(ll, long long) CC_MINMAX_OF(ull, unsigned long long)
#undef CC_MINMAX_OF
CC_INLINE int abs(int x) { return x < 0 ? -x : x; }
CC_INLINE long abs(long x) { return x < 0 ? -x : x; }
CC_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
CC_INLINE float abs(float x) { return fabs(x); }
CC_INLINE double abs(double x) { return fabs(x); }
CC_INLINE long labs(long x) { return x < 0 ? -x : x; }
CC_INLINE long long llabs(long long x) { return x < 0 ? -x : x; }

namespace std {
using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2; using ::cbrt; using ::ceil;
using ::copysign; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp; using ::exp2;
using ::expm1; using ::fabs; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod;
using ::hypot; using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::lgamma; using ::log;
using ::log10; using ::log1p; using ::log2; using ::nextafter; using ::pow; using ::rint; using ::round;
using ::signbit; using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::tgamma;
using ::trunc; using ::size_t; using ::ptrdiff_t;
template <class T> CC_MEMBER constexpr const T &min(const T &x, const T &y) { return y < x ? y : x; }
template <class T> CC_MEMBER constexpr const T &max(const T &x, const T &y) { return x < y ? y : x; }
template <class T> CC_MEMBER constexpr void swap(T &x, T &y) { T z = x; x = y; y = z; }
}

#endif
