/* Mathematical functions: those of OpenCL C have the names of C's, for float, double and half. */
#ifndef CROSSCAST_MATH_H
#define CROSSCAST_MATH_H

template <bool, class T = void> struct cc_enable {};
template <class T> struct cc_enable<true, T> { typedef T type; };
#define CC_IF_INTEGER(T) class = typename cc_enable<__is_integral(T)>::type

#define CC_UNARY(NAME)       \
  CC_PURE float NAME(float); \
  CC_SAME(NAME)
#define CC_SAME(NAME)                                                                         \
  CC_PURE double NAME(double);                                                                \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(T x) { return NAME((double)x); } \
  CC_INLINE float NAME##f(float x) { return NAME(x); }
CC_UNARY(acos) CC_UNARY(acosh) CC_UNARY(asin) CC_UNARY(asinh) CC_UNARY(atan) CC_UNARY(atanh)
CC_UNARY(cbrt) CC_UNARY(ceil) CC_UNARY(cos) CC_UNARY(cosh) CC_UNARY(cospi) CC_UNARY(erf)
CC_UNARY(erfc) CC_UNARY(exp) CC_UNARY(exp2) CC_UNARY(exp10) CC_UNARY(expm1) CC_UNARY(fabs)
CC_UNARY(floor) CC_UNARY(lgamma) CC_UNARY(log) CC_UNARY(log10) CC_UNARY(log1p) CC_UNARY(log2)
CC_UNARY(logb) CC_UNARY(rint) CC_UNARY(round) CC_UNARY(sin) CC_UNARY(sinh)
CC_UNARY(sinpi) CC_UNARY(tan) CC_UNARY(tanh) CC_UNARY(tgamma) CC_UNARY(trunc)
/* Roots with options that allow for fast ones. */
#define CC_APPROXIMATE(NAME)                                    \
  CC_PURE float native_##NAME(float);                           \
  CC_INLINE float NAME(float x) { return native_##NAME(x); } \
  CC_SAME(NAME)
#ifdef CROSSCAST_FTZ
CC_APPROXIMATE(rsqrt)
#else
CC_UNARY(rsqrt)
#endif
#ifdef CROSSCAST_SQRT
CC_APPROXIMATE(sqrt)
#else
CC_UNARY(sqrt)
#endif
#undef CC_APPROXIMATE
#undef CC_SAME
#undef CC_UNARY

#define CC_BINARY(NAME)                                                                                    \
  CC_PURE float NAME(float, float);                                                                        \
  CC_PURE double NAME(double, double);                                                                     \
  CC_INLINE double NAME(float x, double y) { return NAME((double)x, y); }                                  \
  CC_INLINE double NAME(double x, float y) { return NAME(x, (double)y); }                                  \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(double x, T y) { return NAME(x, (double)y); } \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(T x, double y) { return NAME((double)x, y); } \
  template <class T, class U, CC_IF_INTEGER(T), CC_IF_INTEGER(U)> CC_INLINE double NAME(T x, U y) {        \
    return NAME((double)x, (double)y);                                                                     \
  }                                                                                                        \
  CC_INLINE float NAME##f(float x, float y) { return NAME(x, y); }
CC_BINARY(atan2) CC_BINARY(copysign) CC_BINARY(fdim) CC_BINARY(fmax) CC_BINARY(fmin) CC_BINARY(fmod)
CC_BINARY(hypot) CC_BINARY(nextafter) CC_BINARY(pow) CC_BINARY(remainder)
#undef CC_BINARY
#define CC_MIXED(NAME)                                                                                      \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(float x, T y) { return NAME((double)x, (double)y); } \
  template <class T, CC_IF_INTEGER(T)> CC_INLINE double NAME(T x, float y) { return NAME((double)x, (double)y); }
CC_MIXED(atan2) CC_MIXED(copysign) CC_MIXED(fdim) CC_MIXED(fmax) CC_MIXED(fmin) CC_MIXED(fmod) CC_MIXED(hypot)
CC_MIXED(remainder)
#undef CC_MIXED
template <class T, CC_IF_INTEGER(T)> CC_INLINE double pow(T x, float y) { return pow((double)x, (double)y); }
template <class T, CC_IF_INTEGER(T)> CC_INLINE float pow(float x, T y) { return pow(x, (float)y); }

CC_PURE float fma(float, float, float);
CC_PURE double fma(double, double, double);
CC_PURE float ldexp(float, int);
CC_PURE double ldexp(double, int);
#define CC_TO_INT(NAME)    \
  CC_PURE int NAME(float); \
  CC_PURE int NAME(double);
CC_TO_INT(ilogb) CC_TO_INT(isnan) CC_TO_INT(isinf) CC_TO_INT(isfinite) CC_TO_INT(signbit)
#undef CC_TO_INT
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
CC_INLINE long long llrintf(float x) { return (long long)rint(x); }
CC_INLINE long long llrint(double x) { return (long long)rint(x); }
CC_INLINE long long llroundf(float x) { return (long long)round(x); }
CC_INLINE long long llround(double x) { return (long long)round(x); }
CC_INLINE float nanf(const char *) { return __builtin_nanf(""); }
CC_INLINE double nan(const char *) { return __builtin_nan(""); }
CC_INLINE bool isnormal(float x) { return isfinite(x) && fabs(x) >= FLT_MIN; }
CC_INLINE bool isnormal(double x) { return isfinite(x) && fabs(x) >= DBL_MIN; }
CC_INLINE float frexp(float x, int *n) { return *n = x == 0 || !isfinite(x) ? 0 : ilogb(x) + 1, ldexp(x, -*n); }
CC_INLINE double frexp(double x, int *n) { return *n = x == 0 || !isfinite(x) ? 0 : ilogb(x) + 1, ldexp(x, -*n); }
CC_INLINE float frexpf(float x, int *n) { return frexp(x, n); }
CC_INLINE float rcbrtf(float x) { return 1.0f / cbrt(x); }
CC_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
CC_INLINE float rhypotf(float x, float y) { return 1.0f / hypot(x, y); }
CC_INLINE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
CC_INLINE float norm3df(float x, float y, float z) { return sqrt(x * x + y * y + z * z); }
CC_INLINE double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
CC_INLINE float norm4df(float x, float y, float z, float w) { return sqrt(x * x + y * y + z * z + w * w); }
CC_INLINE double norm4d(double x, double y, double z, double w) { return sqrt(x * x + y * y + z * z + w * w); }
CC_INLINE float rnorm3df(float x, float y, float z) { return rsqrt(x * x + y * y + z * z); }
CC_INLINE double rnorm3d(double x, double y, double z) { return rsqrt(x * x + y * y + z * z); }
CC_INLINE float rnorm4df(float x, float y, float z, float w) { return rsqrt(x * x + y * y + z * z + w * w); }
CC_INLINE double rnorm4d(double x, double y, double z, double w) { return rsqrt(x * x + y * y + z * z + w * w); }
CC_INLINE float erfcxf(float x) { return exp(x * x) * erfc(x); }
CC_INLINE double erfcx(double x) { return exp(x * x) * erfc(x); }
/* Giles, Approximating the erfinv function, 2010; of double with two steps of Newton's method. */
CC_INLINE float erfinvf(float x) {
  float w = -log((1 - x) * (1 + x)), p;
  if (w < 5) {
    w -= 2.5f;
    p = fma(fma(fma(fma(2.81022636e-08f, w, 3.43273939e-07f), w, -3.5233877e-06f), w, -4.39150654e-06f), w, 0.00021858087f);
    p = fma(fma(fma(fma(p, w, -0.00125372503f), w, -0.00417768164f), w, 0.246640727f), w, 1.50140941f);
  } else {
    w = sqrt(w) - 3;
    p = fma(fma(fma(fma(-0.000200214257f, w, 0.000100950558f), w, 0.00134934322f), w, -0.00367342844f), w, 0.00573950773f);
    p = fma(fma(fma(fma(p, w, -0.0076224613f), w, 0.00943887047f), w, 1.00167406f), w, 2.83297682f);
  }
  return p * x;
}
CC_INLINE double erfinv(double x) {
  double y = erfinvf((float)x);
  if (fabs(y) > 4) return y;
  y -= (erf(y) - x) * exp(y * y) * 0.886226925452758014;
  return y - (erf(y) - x) * exp(y * y) * 0.886226925452758014;
}
CC_INLINE float erfcinvf(float x) { return erfinvf(1 - x); }
CC_INLINE double erfcinv(double x) { return erfinv(1 - x); }
CC_INLINE float normcdfinvf(float x) { return 1.41421356f * erfinvf(2 * x - 1); }
CC_INLINE double normcdfinv(double x) { return 1.41421356237309505 * erfinv(2 * x - 1); }
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
#define CC_ROUNDED(T, P)                                \
  CC_INLINE T __##P##add_rn(T x, T y) { return x + y; } \
  CC_INLINE T __##P##sub_rn(T x, T y) { return x - y; } \
  CC_INLINE T __##P##mul_rn(T x, T y) { return x * y; } \
  CC_INLINE T __##P##div_rn(T x, T y) { return x / y; } \
  CC_INLINE T __##P##rcp_rn(T x) { return 1 / x; }      \
  CC_INLINE T __##P##sqrt_rn(T x) { return sqrt(x); }
CC_ROUNDED(float, f) CC_ROUNDED(double, d)
#undef CC_ROUNDED
CC_INLINE float __frsqrt_rn(float x) { return rsqrt(x); }
CC_INLINE float __fmaf_rn(float x, float y, float z) { return fma(x, y, z); }
CC_INLINE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
#pragma clang fp contract(on)

/* min and max of two types are of the one that C adds them in. */
#define CC_MINMAX(T)   \
  CC_PURE T min(T, T); \
  CC_PURE T max(T, T);
CC_EACH_TYPE(CC_MINMAX)
#undef CC_MINMAX
template <class T, class U, class V = decltype(T() + U()), class = typename cc_enable<!__is_same(T, U)>::type>
CC_INLINE V min(T x, U y) { return min((V)x, (V)y); }
template <class T, class U, class V = decltype(T() + U()), class = typename cc_enable<!__is_same(T, U)>::type>
CC_INLINE V max(T x, U y) { return max((V)x, (V)y); }
#define CC_MINMAX_OF(SUFFIX, T)                           \
  CC_INLINE T SUFFIX##min(T x, T y) { return min(x, y); } \
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
using ::abs; using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; using ::atanh;
using ::cbrt; using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp;
using ::exp2; using ::expm1; using ::fabs; using ::fdim; using ::floor; using ::fma; using ::fmax; using ::fmin;
using ::fmod; using ::frexp; using ::hypot; using ::ilogb; using ::isfinite; using ::isinf; using ::isnan;
using ::isnormal; using ::ldexp; using ::lgamma; using ::llrint; using ::llround; using ::log; using ::log10;
using ::log1p; using ::log2; using ::logb; using ::lrint; using ::lround; using ::modf; using ::nan; using ::nearbyint;
using ::nextafter; using ::pow; using ::remainder; using ::rint; using ::round; using ::scalbn; using ::signbit;
using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::tgamma; using ::trunc;
template <class T> CC_MEMBER constexpr const T &min(const T &x, const T &y) { return y < x ? y : x; }
template <class T> CC_MEMBER constexpr const T &max(const T &x, const T &y) { return x < y ? y : x; }
template <class T> CC_MEMBER constexpr const T &clamp(const T &x, const T &low, const T &high) {
  return x < low ? low : high < x ? high : x;
}
template <class T> struct numeric_limits {};
#define CC_LIMITS(T, DIGITS, MIN, MAX, LOWEST, EPSILON, DENORMAL, INF, NOT)     \
  template <> struct numeric_limits<T> {                                       \
    static constexpr bool is_specialized = true, is_integer = __is_integral(T); \
    static constexpr bool is_signed = (LOWEST) != (MIN) || (MIN) != 0;          \
    static constexpr bool has_infinity = !is_integer, has_quiet_NaN = !is_integer; \
    static constexpr int digits = DIGITS;                                      \
    CC_MEMBER static constexpr T min() { return MIN; }                         \
    CC_MEMBER static constexpr T max() { return MAX; }                         \
    CC_MEMBER static constexpr T lowest() { return LOWEST; }                   \
    CC_MEMBER static constexpr T epsilon() { return EPSILON; }                 \
    CC_MEMBER static constexpr T denorm_min() { return DENORMAL; }             \
    CC_MEMBER static constexpr T infinity() { return INF; }                    \
    CC_MEMBER static constexpr T quiet_NaN() { return NOT; }                   \
  };
#define CC_LIMITS_OF(T, MIN, MAX) CC_LIMITS(T, 8 * sizeof(T) - ((MIN) != 0), MIN, MAX, MIN, 0, 0, 0, 0)
#define CC_LIMITS_OF_REAL(T, DIGITS, MIN, MAX, EPSILON, DENORMAL) \
  CC_LIMITS(T, DIGITS, MIN, MAX, -MAX, EPSILON, DENORMAL, __builtin_inff(), __builtin_nanf(""))
CC_LIMITS_OF_REAL(float, 24, FLT_MIN, FLT_MAX, FLT_EPSILON, __FLT_DENORM_MIN__)
CC_LIMITS_OF_REAL(double, 53, DBL_MIN, DBL_MAX, DBL_EPSILON, __DBL_DENORM_MIN__)
CC_LIMITS_OF_REAL(_Float16, 11, 0x1p-14f, 65504, 0x1p-10f, 0x1p-24f)
CC_LIMITS_OF_REAL(__bf16, 8, 0x1p-126f, 0x1.fep127f, 0x1p-7f, 0x1p-133f)
CC_LIMITS_OF(char, CHAR_MIN, CHAR_MAX) CC_LIMITS_OF(signed char, SCHAR_MIN, SCHAR_MAX)
CC_LIMITS_OF(unsigned char, 0, UCHAR_MAX) CC_LIMITS_OF(short, SHRT_MIN, SHRT_MAX)
CC_LIMITS_OF(unsigned short, 0, USHRT_MAX) CC_LIMITS_OF(int, INT_MIN, INT_MAX) CC_LIMITS_OF(unsigned, 0, UINT_MAX)
CC_LIMITS_OF(long, LONG_MIN, LONG_MAX) CC_LIMITS_OF(unsigned long, 0, ULONG_MAX)
CC_LIMITS_OF(long long, LLONG_MIN, LLONG_MAX) CC_LIMITS_OF(unsigned long long, 0, ULLONG_MAX)
#undef CC_LIMITS_OF
#undef CC_LIMITS_OF_REAL
#undef CC_LIMITS
template <class T> CC_MEMBER constexpr void swap(T &x, T &y) { T z = x; x = y; y = z; }
}

/* Integer intrinsics, conversions, and the bits of values. */
CC_PURE unsigned popcount(unsigned);
CC_PURE unsigned long popcount(unsigned long);
CC_PURE int clz(int);
CC_PURE long clz(long);
CC_PURE int mul24(int, int);
CC_PURE unsigned mul24(unsigned, unsigned);
CC_PURE int mul_hi(int, int);
CC_PURE unsigned mul_hi(unsigned, unsigned);
CC_PURE long mul_hi(long, long);
CC_PURE unsigned long mul_hi(unsigned long, unsigned long);
CC_PURE int hadd(int, int);
CC_PURE unsigned hadd(unsigned, unsigned);
CC_PURE int rhadd(int, int);
CC_PURE unsigned rhadd(unsigned, unsigned);
CC_PURE unsigned abs_diff(int, int);
CC_PURE unsigned abs_diff(unsigned, unsigned);
CC_INLINE int __popc(unsigned x) { return (int)popcount(x); }
CC_INLINE int __popcll(unsigned long long x) { return (int)popcount((unsigned long)x); }
CC_INLINE int __clz(int x) { return clz(x); }
CC_INLINE int __clzll(long long x) { return (int)clz((long)x); }
CC_INLINE int __ffs(int x) { return __builtin_ffs(x); }
CC_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
CC_INLINE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
CC_INLINE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
CC_INLINE int __mul24(int x, int y) { return mul24(x, y); }
CC_INLINE unsigned __umul24(unsigned x, unsigned y) { return mul24(x, y); }
CC_INLINE int __mulhi(int x, int y) { return mul_hi(x, y); }
CC_INLINE unsigned __umulhi(unsigned x, unsigned y) { return mul_hi(x, y); }
CC_INLINE long long __mul64hi(long long x, long long y) { return mul_hi((long)x, (long)y); }
CC_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return mul_hi((unsigned long)x, (unsigned long)y);
}
CC_INLINE int __hadd(int x, int y) { return hadd(x, y); }
CC_INLINE unsigned __uhadd(unsigned x, unsigned y) { return hadd(x, y); }
CC_INLINE int __rhadd(int x, int y) { return rhadd(x, y); }
CC_INLINE unsigned __urhadd(unsigned x, unsigned y) { return rhadd(x, y); }

/* One instruction each: sums of differences, permuted bytes, and shifts of two words, modulo 32 or clamped to it. */
CC_PURE unsigned cc_sad(int, int, unsigned);
CC_PURE unsigned cc_sad(unsigned, unsigned, unsigned);
CC_PURE unsigned cc_byte_perm(unsigned, unsigned, unsigned);
CC_PURE unsigned cc_funnel_lc(unsigned, unsigned, unsigned);
CC_PURE unsigned cc_funnel_rc(unsigned, unsigned, unsigned);
CC_INLINE unsigned __sad(int x, int y, unsigned z) { return cc_sad(x, y, z); }
CC_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return cc_sad(x, y, z); }
CC_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned s) { return cc_byte_perm(x, y, s); }
#define CC_FUNNEL(NAME, EXPRESSION) \
  CC_INLINE unsigned __funnelshift_##NAME(unsigned low, unsigned high, unsigned n) { return EXPRESSION; }
CC_FUNNEL(l, __builtin_elementwise_fshl(high, low, n)) CC_FUNNEL(r, __builtin_elementwise_fshr(high, low, n))
CC_FUNNEL(lc, cc_funnel_lc(low, high, n)) CC_FUNNEL(rc, cc_funnel_rc(low, high, n))
#undef CC_FUNNEL
#define CC_DOTS(T, HALVES, BYTES)                                                                        \
  CC_PURE T cc_dp4a(T, T, T);                                                                            \
  CC_PURE T cc_dp2a_lo(T, T, T);                                                                         \
  CC_PURE T cc_dp2a_hi(T, T, T);                                                                         \
  CC_INLINE T __dp4a(T x, T y, T z) { return cc_dp4a(x, y, z); }                                         \
  CC_INLINE T __dp2a_lo(T x, T y, T z) { return cc_dp2a_lo(x, y, z); }                                   \
  CC_INLINE T __dp2a_hi(T x, T y, T z) { return cc_dp2a_hi(x, y, z); }                                   \
  CC_INLINE T __dp4a(BYTES x, BYTES y, T z) {                                                            \
    return cc_dp4a(__builtin_bit_cast(T, x), __builtin_bit_cast(T, y), z);                               \
  }                                                                                                      \
  CC_INLINE T __dp2a_lo(HALVES x, BYTES y, T z) {                                                        \
    return cc_dp2a_lo(__builtin_bit_cast(T, x), __builtin_bit_cast(T, y), z);                            \
  }                                                                                                      \
  CC_INLINE T __dp2a_hi(HALVES x, BYTES y, T z) {                                                        \
    return cc_dp2a_hi(__builtin_bit_cast(T, x), __builtin_bit_cast(T, y), z);                            \
  }
CC_DOTS(int, short2, char4) CC_DOTS(unsigned, ushort2, uchar4)
#undef CC_DOTS

CC_INLINE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
CC_INLINE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
CC_INLINE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
CC_INLINE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
CC_INLINE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
CC_INLINE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
CC_INLINE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
CC_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }
CC_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

/* Floating point to integers, as far as these go; in each of the four directions of rounding. */
#define CC_CONVERSION(FROM, SHORT, RESULT, NAME, TO, CUDA, CL) \
  CC_PURE TO convert_##NAME##_sat_##CL(FROM);                  \
  CC_INLINE RESULT __##FROM##2##SHORT##_##CUDA(FROM x) { return convert_##NAME##_sat_##CL(x); }
#define CC_DIRECTIONS(...)                                                \
  CC_CONVERSION(__VA_ARGS__, rn, rte) CC_CONVERSION(__VA_ARGS__, rz, rtz) \
  CC_CONVERSION(__VA_ARGS__, ru, rtp) CC_CONVERSION(__VA_ARGS__, rd, rtn)
#define CC_CONVERSIONS(FROM)                                         \
  CC_DIRECTIONS(FROM, int, int, int, int)                            \
  CC_DIRECTIONS(FROM, uint, unsigned, uint, unsigned)                \
  CC_DIRECTIONS(FROM, ll, long long, long, long)                     \
  CC_DIRECTIONS(FROM, ull, unsigned long long, ulong, unsigned long) \
  CC_INLINE FROM __int2##FROM##_rn(int x) { return (FROM)x; }        \
  CC_INLINE FROM __uint2##FROM##_rn(unsigned x) { return (FROM)x; }  \
  CC_INLINE FROM __ll2##FROM##_rn(long long x) { return (FROM)x; }   \
  CC_INLINE FROM __ull2##FROM##_rn(unsigned long long x) { return (FROM)x; }
CC_CONVERSIONS(float) CC_CONVERSIONS(double)
#undef CC_CONVERSIONS
#undef CC_DIRECTIONS
#undef CC_CONVERSION
CC_INLINE float __double2float_rn(double x) { return (float)x; }

#endif
