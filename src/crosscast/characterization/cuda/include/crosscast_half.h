/* Half precision: what cuda_fp16.h and hip_fp16.h have most used. */
#ifndef CROSSCAST_HALF_H
#define CROSSCAST_HALF_H

typedef _Float16 __half;
typedef _Float16 half;
struct __align__(4) __half2 {
  __half x, y;
};
typedef __half2 half2;

CC_PURE __half sqrt(__half);
CC_PURE __half rsqrt(__half);
CC_PURE __half exp(__half);
CC_PURE __half exp2(__half);
CC_PURE __half log(__half);
CC_PURE __half log2(__half);
CC_PURE __half sin(__half);
CC_PURE __half cos(__half);
CC_PURE __half tanh(__half);
CC_PURE __half fabs(__half);
CC_PURE __half floor(__half);
CC_PURE __half ceil(__half);
CC_PURE __half trunc(__half);
CC_PURE __half rint(__half);
CC_PURE __half fmax(__half, __half);
CC_PURE __half fmin(__half, __half);
CC_PURE __half fma(__half, __half, __half);
CC_PURE int isnan(__half);

#define CC_HALF(NAME, EXPRESSION) CC_INLINE __half NAME(__half x, __half y) { return EXPRESSION; }
#pragma clang fp contract(off)
CC_HALF(__hadd, x + y) CC_HALF(__hsub, x - y) CC_HALF(__hmul, x * y) CC_HALF(__hdiv, x / y)
#pragma clang fp contract(on)
CC_HALF(__hmax, fmax(x, y)) CC_HALF(__hmin, fmin(x, y))
#undef CC_HALF
#define CC_HALF(NAME, EXPRESSION) CC_INLINE __half NAME(__half x) { return EXPRESSION; }
CC_HALF(__hneg, -x) CC_HALF(__habs, fabs(x)) CC_HALF(hsqrt, sqrt(x)) CC_HALF(hrsqrt, rsqrt(x))
CC_HALF(hexp, exp(x)) CC_HALF(hexp2, exp2(x)) CC_HALF(hlog, log(x)) CC_HALF(hlog2, log2(x))
CC_HALF(hsin, sin(x)) CC_HALF(hcos, cos(x)) CC_HALF(htanh, tanh(x)) CC_HALF(hfloor, floor(x))
CC_HALF(hceil, ceil(x)) CC_HALF(htrunc, trunc(x)) CC_HALF(hrint, rint(x)) CC_HALF(hrcp, (__half)1 / x)
#undef CC_HALF
#define CC_HALF(NAME, OPERATOR) CC_INLINE bool NAME(__half x, __half y) { return x OPERATOR y; }
CC_HALF(__heq, ==) CC_HALF(__hne, !=) CC_HALF(__hlt, <) CC_HALF(__hle, <=) CC_HALF(__hgt, >) CC_HALF(__hge, >=)
#undef CC_HALF
CC_INLINE __half __hfma(__half x, __half y, __half z) { return fma(x, y, z); }
CC_INLINE bool __hisnan(__half x) { return isnan(x); }

CC_INLINE __half __float2half(float x) { return (__half)x; }
CC_INLINE __half __float2half_rn(float x) { return (__half)x; }
CC_INLINE __half __double2half(double x) { return (__half)x; }
CC_INLINE __half __int2half_rn(int x) { return (__half)x; }
CC_INLINE __half __uint2half_rn(unsigned x) { return (__half)x; }
CC_INLINE float __half2float(__half x) { return (float)x; }
CC_INLINE int __half2int_rn(__half x) { return (int)rint(x); }
CC_INLINE int __half2int_rz(__half x) { return (int)x; }
CC_INLINE short __half_as_short(__half x) { return __builtin_bit_cast(short, x); }
CC_INLINE unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x); }
CC_INLINE __half __short_as_half(short x) { return __builtin_bit_cast(__half, x); }
CC_INLINE __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(__half, x); }

CC_INLINE __half2 make_half2(__half x, __half y) { return {x, y}; }
CC_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
CC_INLINE __half2 __half2half2(__half x) { return {x, x}; }
CC_INLINE __half2 __float2half2_rn(float x) { return {(__half)x, (__half)x}; }
CC_INLINE __half2 __floats2half2_rn(float x, float y) { return {(__half)x, (__half)y}; }
CC_INLINE __half2 __float22half2_rn(float2 v) { return {(__half)v.x, (__half)v.y}; }
CC_INLINE float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
CC_INLINE __half __low2half(__half2 v) { return v.x; }
CC_INLINE __half __high2half(__half2 v) { return v.y; }
CC_INLINE float __low2float(__half2 v) { return (float)v.x; }
CC_INLINE float __high2float(__half2 v) { return (float)v.y; }
CC_INLINE __half2 __hadd2(__half2 a, __half2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }
CC_INLINE __half2 __hsub2(__half2 a, __half2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }
CC_INLINE __half2 __hmul2(__half2 a, __half2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }
CC_INLINE __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)}; }

#endif
