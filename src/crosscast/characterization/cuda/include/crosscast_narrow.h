/* What cuda_fp16.h and cuda_bf16.h have in common, for a real type T of 16 bits and the pair T2 of such.
 *
 * N and N2 are what names of functions call these types.
 */
#ifndef CROSSCAST_NARROW_H
#define CROSSCAST_NARROW_H

#define CC_NARROW_FUNCTION(T, T2, NAME)        \
  CC_INLINE T h##NAME(T x) { return NAME(x); } \
  CC_INLINE T2 h2##NAME(T2 v) { return {NAME(v.x), NAME(v.y)}; }
#define CC_EACH_FUNCTION(M, ...)                                                                            \
  M(__VA_ARGS__, sqrt) M(__VA_ARGS__, rsqrt) M(__VA_ARGS__, exp) M(__VA_ARGS__, exp2) M(__VA_ARGS__, exp10) \
  M(__VA_ARGS__, log) M(__VA_ARGS__, log2) M(__VA_ARGS__, log10) M(__VA_ARGS__, sin) M(__VA_ARGS__, cos)    \
  M(__VA_ARGS__, tanh) M(__VA_ARGS__, floor) M(__VA_ARGS__, ceil) M(__VA_ARGS__, trunc) M(__VA_ARGS__, rint)

#define CC_NARROW_UNARY(T, T2, NAME, EXPRESSION) \
  CC_INLINE T NAME(T x) { return EXPRESSION; }   \
  CC_INLINE T2 NAME##2(T2 v) { return {NAME(v.x), NAME(v.y)}; }
#define CC_NARROW_BINARY(T, T2, NAME, NAME2, EXPRESSION) \
  CC_INLINE T NAME(T x, T y) { return EXPRESSION; }      \
  CC_INLINE T2 NAME2(T2 a, T2 b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; }
#define CC_NARROW_FUSED(T, T2, NAME, NAME2, EXPRESSION)  \
  CC_INLINE T NAME(T x, T y, T z) { return EXPRESSION; } \
  CC_INLINE T2 NAME2(T2 a, T2 b, T2 c) { return {NAME(a.x, b.x, c.x), NAME(a.y, b.y, c.y)}; }
#define CC_NARROW_COMPARISON(T, T2, NAME, EXPRESSION)                                             \
  CC_INLINE bool __h##NAME(T x, T y) { return EXPRESSION; }                                       \
  CC_INLINE bool __hb##NAME##2(T2 a, T2 b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); } \
  CC_INLINE T2 __h##NAME##2(T2 a, T2 b) {                                                         \
    return {__h##NAME(a.x, b.x) ? (T)1 : (T)0, __h##NAME(a.y, b.y) ? (T)1 : (T)0};                \
  }                                                                                               \
  CC_INLINE unsigned __h##NAME##2_mask(T2 a, T2 b) {                                              \
    return (__h##NAME(a.x, b.x) ? 0xffffu : 0u) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0u);       \
  }
#define CC_NARROW_OPERATOR(T2, OPERATOR, NAME)                                            \
  CC_INLINE T2 operator OPERATOR(T2 a, T2 b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; } \
  CC_INLINE T2 &operator OPERATOR##=(T2 &a, T2 b) { return a = a OPERATOR b; }

/* Comparisons are false of what has no order, those whose name ends in u true. */
#define CC_NARROW(T, T2)                                                                                      \
  CC_EACH_FUNCTION(CC_NARROW_FUNCTION, T, T2)                                                                 \
  CC_NARROW_BINARY(T, T2, __hadd, __hadd2, x + y) CC_NARROW_BINARY(T, T2, __hsub, __hsub2, x - y)             \
  CC_NARROW_BINARY(T, T2, __hmul, __hmul2, x * y) CC_NARROW_BINARY(T, T2, __hdiv, __h2div, x / y)             \
  CC_NARROW_BINARY(T, T2, __hadd_rn, __hadd2_rn, x + y) CC_NARROW_BINARY(T, T2, __hsub_rn, __hsub2_rn, x - y) \
  CC_NARROW_BINARY(T, T2, __hmul_rn, __hmul2_rn, x * y)                                                       \
  CC_INLINE T cc_saturated(T x) { return fmin(fmax(x, (T)0), (T)1); }                                         \
  CC_NARROW_BINARY(T, T2, __hadd_sat, __hadd2_sat, cc_saturated(x + y))                                       \
  CC_NARROW_BINARY(T, T2, __hsub_sat, __hsub2_sat, cc_saturated(x - y))                                       \
  CC_NARROW_BINARY(T, T2, __hmul_sat, __hmul2_sat, cc_saturated(x * y))                                       \
  CC_NARROW_BINARY(T, T2, __hmax, __hmax2, fmax(x, y)) CC_NARROW_BINARY(T, T2, __hmin, __hmin2, fmin(x, y))   \
  CC_NARROW_BINARY(T, T2, __hmax_nan, __hmax2_nan, __builtin_elementwise_maximum(x, y))                       \
  CC_NARROW_BINARY(T, T2, __hmin_nan, __hmin2_nan, __builtin_elementwise_minimum(x, y))                       \
  CC_NARROW_FUSED(T, T2, __hfma, __hfma2, fma(x, y, z))                                                       \
  CC_NARROW_FUSED(T, T2, __hfma_sat, __hfma2_sat, cc_saturated(fma(x, y, z)))                                 \
  CC_INLINE T cc_not_negative(T x) { return x < 0 ? (T)0 : x; }                                               \
  CC_NARROW_FUSED(T, T2, __hfma_relu, __hfma2_relu, cc_not_negative(fma(x, y, z)))                            \
  CC_NARROW_UNARY(T, T2, __hneg, -x) CC_NARROW_UNARY(T, T2, __habs, fabs(x))                                  \
  CC_INLINE T hrcp(T x) { return (T)1 / x; }                                                                  \
  CC_INLINE T2 h2rcp(T2 v) { return {hrcp(v.x), hrcp(v.y)}; }                                                 \
  CC_INLINE bool __hisnan(T x) { return isnan(x); }                                                           \
  CC_INLINE T2 __hisnan2(T2 v) { return {isnan(v.x) ? (T)1 : (T)0, isnan(v.y) ? (T)1 : (T)0}; }               \
  CC_INLINE int __hisinf(T x) { return fabs(x) == (T)__builtin_inff() ? x < 0 ? -1 : 1 : 0; }                 \
  CC_NARROW_COMPARISON(T, T2, eq, x == y) CC_NARROW_COMPARISON(T, T2, ne, x < y || x > y)                     \
  CC_NARROW_COMPARISON(T, T2, lt, x < y) CC_NARROW_COMPARISON(T, T2, le, x <= y)                              \
  CC_NARROW_COMPARISON(T, T2, gt, x > y) CC_NARROW_COMPARISON(T, T2, ge, x >= y)                              \
  CC_NARROW_COMPARISON(T, T2, equ, !(x < y || x > y)) CC_NARROW_COMPARISON(T, T2, neu, x != y)                \
  CC_NARROW_COMPARISON(T, T2, ltu, !(x >= y)) CC_NARROW_COMPARISON(T, T2, leu, !(x > y))                      \
  CC_NARROW_COMPARISON(T, T2, gtu, !(x <= y)) CC_NARROW_COMPARISON(T, T2, geu, !(x < y))                      \
  CC_NARROW_OPERATOR(T2, +, __hadd) CC_NARROW_OPERATOR(T2, -, __hsub)                                         \
  CC_NARROW_OPERATOR(T2, *, __hmul) CC_NARROW_OPERATOR(T2, /, __hdiv)                                         \
  CC_INLINE T2 operator-(T2 a) { return {-a.x, -a.y}; }                                                       \
  CC_INLINE bool operator==(T2 a, T2 b) { return a.x == b.x && a.y == b.y; }                                  \
  CC_INLINE bool operator!=(T2 a, T2 b) { return !(a == b); }

/* The bits of values, which become values. */
#define CC_NARROW_BITS(T, T2)                                                        \
  struct T##_raw {                                                                   \
    unsigned short x;                                                                \
    CC_MEMBER constexpr operator T() const { return __builtin_bit_cast(T, *this); }   \
  };                                                                                 \
  struct __align__(4) T2##_raw {                                                     \
    unsigned short x, y;                                                             \
    CC_MEMBER constexpr operator T2() const { return __builtin_bit_cast(T2, *this); } \
  };

#define CC_NARROW_MOVES(T, T2, N, N2)                                                               \
  CC_INLINE T __float2##N(float x) { return (T)x; }                                                 \
  CC_INLINE T __float2##N##_rn(float x) { return (T)x; }                                            \
  CC_INLINE T __double2##N(double x) { return (T)x; }                                               \
  CC_INLINE T __int2##N##_rn(int x) { return (T)x; }                                                \
  CC_INLINE T __uint2##N##_rn(unsigned x) { return (T)x; }                                          \
  CC_INLINE T __short2##N##_rn(short x) { return (T)x; }                                            \
  CC_INLINE T __ushort2##N##_rn(unsigned short x) { return (T)x; }                                  \
  CC_INLINE T __ll2##N##_rn(long long x) { return (T)x; }                                           \
  CC_INLINE T __ull2##N##_rn(unsigned long long x) { return (T)x; }                                 \
  CC_INLINE float __##N##2float(T x) { return (float)x; }                                           \
  CC_INLINE short __##N##_as_short(T x) { return __builtin_bit_cast(short, x); }                    \
  CC_INLINE unsigned short __##N##_as_ushort(T x) { return __builtin_bit_cast(unsigned short, x); } \
  CC_INLINE T __short_as_##N(short x) { return __builtin_bit_cast(T, x); }                          \
  CC_INLINE T __ushort_as_##N(unsigned short x) { return __builtin_bit_cast(T, x); }                \
  CC_INLINE T2 make_##N2(T x, T y) { return {x, y}; }                                               \
  CC_INLINE T2 __halves2##N2(T x, T y) { return {x, y}; }                                           \
  CC_INLINE T2 __##N##2##N2(T x) { return {x, x}; }                                                 \
  CC_INLINE T2 __float2##N2##_rn(float x) { return {(T)x, (T)x}; }                                  \
  CC_INLINE T2 __floats2##N2##_rn(float x, float y) { return {(T)x, (T)y}; }                        \
  CC_INLINE T2 __float22##N2##_rn(float2 v) { return {(T)v.x, (T)v.y}; }                            \
  CC_INLINE float2 __##N2##2float2(T2 v) { return {(float)v.x, (float)v.y}; }                       \
  CC_INLINE T __low2##N(T2 v) { return v.x; }                                                       \
  CC_INLINE T __high2##N(T2 v) { return v.y; }                                                      \
  CC_INLINE float __low2float(T2 v) { return (float)v.x; }                                          \
  CC_INLINE float __high2float(T2 v) { return (float)v.y; }                                         \
  CC_INLINE T2 __lows2##N2(T2 a, T2 b) { return {a.x, b.x}; }                                       \
  CC_INLINE T2 __highs2##N2(T2 a, T2 b) { return {a.y, b.y}; }                                      \
  CC_INLINE T2 __lowhigh2highlow(T2 a) { return {a.y, a.x}; }                                       \
  CC_INLINE T2 __low2##N2(T2 a) { return {a.x, a.x}; }                                              \
  CC_INLINE T2 __high2##N2(T2 a) { return {a.y, a.y}; }

/* Sums in memory. That of a pair is one atomic of two sums (compiler.py puts it in place of the call). */
#define CC_NARROW_ATOMICS(T, T2)                                                \
  typedef T cc_pair_of_##T __attribute__((ext_vector_type(2)));                 \
  CC_CONVERGENT cc_pair_of_##T cc_atomic_add(cc_pair_of_##T *, cc_pair_of_##T); \
  CC_NARROW_ATOMIC(T, T2, atomicAdd) CC_NARROW_ATOMIC(T, T2, atomicAdd_block)   \
  CC_NARROW_ATOMIC(T, T2, atomicAdd_system) CC_NARROW_ATOMIC(T, T2, unsafeAtomicAdd)
#define CC_NARROW_ATOMIC(T, T2, NAME)                                                                         \
  CC_DEVICE T NAME(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }                          \
  CC_DEVICE T2 NAME(T2 *p, T2 v) {                                                                            \
    return __builtin_bit_cast(T2, cc_atomic_add((cc_pair_of_##T *)p, __builtin_bit_cast(cc_pair_of_##T, v))); \
  }

/* Shuffles of a word, of which the lower half may be the value. */
#define CC_NARROW_SHUFFLES(T, T2)                                              \
  CC_NARROW_SHUFFLE(T, T2, __shfl, int) CC_NARROW_SHUFFLE(T, T2, __shfl_up, unsigned) \
  CC_NARROW_SHUFFLE(T, T2, __shfl_down, unsigned) CC_NARROW_SHUFFLE(T, T2, __shfl_xor, int)
#define CC_NARROW_SHUFFLE(T, T2, NAME, ARGUMENT)                                                            \
  CC_DEVICE T NAME##_sync(cc_lanes mask, T x, ARGUMENT n, int width = CROSSCAST_WARP_SIZE) {                \
    unsigned word = __builtin_bit_cast(unsigned short, x);                                                  \
    return __builtin_bit_cast(T, (unsigned short)NAME##_sync(mask, word, n, width));                        \
  }                                                                                                         \
  CC_DEVICE T2 NAME##_sync(cc_lanes mask, T2 x, ARGUMENT n, int width = CROSSCAST_WARP_SIZE) {              \
    return __builtin_bit_cast(T2, NAME##_sync(mask, __builtin_bit_cast(unsigned, x), n, width));            \
  }                                                                                                         \
  CC_DEVICE T NAME(T x, ARGUMENT n, int width = CROSSCAST_WARP_SIZE) {                                      \
    unsigned word = __builtin_bit_cast(unsigned short, x);                                                  \
    return __builtin_bit_cast(T, (unsigned short)NAME(word, n, width));                                     \
  }                                                                                                         \
  CC_DEVICE T2 NAME(T2 x, ARGUMENT n, int width = CROSSCAST_WARP_SIZE) {                                    \
    return __builtin_bit_cast(T2, NAME(__builtin_bit_cast(unsigned, x), n, width));                         \
  }

#endif
