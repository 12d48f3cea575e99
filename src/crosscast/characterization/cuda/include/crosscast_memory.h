/* Loads and stores with hints, atomics, printf and assert. */
#ifndef CROSSCAST_MEMORY_H
#define CROSSCAST_MEMORY_H

#define CC_LOAD(NAME) \
  template <class T> CC_DEVICE T NAME(const T *p) { return *p; }
CC_LOAD(__ldg) CC_LOAD(__ldca) CC_LOAD(__ldcg) CC_LOAD(__ldcs) CC_LOAD(__ldcv) CC_LOAD(__ldlu)
#undef CC_LOAD
#define CC_STORE(NAME) \
  template <class T> CC_DEVICE void NAME(T *p, T value) { *p = value; }
CC_STORE(__stwb) CC_STORE(__stcg) CC_STORE(__stcs) CC_STORE(__stwt)
#undef CC_STORE

#define CC_ATOMIC(NAME, T, EXPRESSION)                       \
  CC_DEVICE T NAME(T *p, T v) { return EXPRESSION; }         \
  CC_DEVICE T NAME##_block(T *p, T v) { return EXPRESSION; } \
  CC_DEVICE T NAME##_system(T *p, T v) { return EXPRESSION; }
#define CC_ATOMICS_OF_ANY(T)                                          \
  CC_ATOMIC(atomicAdd, T, __atomic_fetch_add(p, v, __ATOMIC_RELAXED)) \
  CC_ATOMIC(atomicSub, T, __atomic_fetch_sub(p, v, __ATOMIC_RELAXED)) \
  CC_ATOMIC(atomicMin, T, __atomic_fetch_min(p, v, __ATOMIC_RELAXED)) \
  CC_ATOMIC(atomicMax, T, __atomic_fetch_max(p, v, __ATOMIC_RELAXED))
#define CC_ATOMICS_OF_INTEGER(T)                                                                 \
  CC_ATOMICS_OF_ANY(T)                                                                           \
  CC_ATOMIC(atomicAnd, T, __atomic_fetch_and(p, v, __ATOMIC_RELAXED))                            \
  CC_ATOMIC(atomicOr, T, __atomic_fetch_or(p, v, __ATOMIC_RELAXED))                              \
  CC_ATOMIC(atomicXor, T, __atomic_fetch_xor(p, v, __ATOMIC_RELAXED))                            \
  CC_ATOMIC(atomicExch, T, __atomic_exchange_n(p, v, __ATOMIC_RELAXED))                          \
  CC_DEVICE T atomicCAS(T *p, T compare, T value) {                                              \
    return __sync_val_compare_and_swap(p, compare, value);                                       \
  }                                                                                              \
  CC_DEVICE T atomicCAS_block(T *p, T compare, T value) { return atomicCAS(p, compare, value); } \
  CC_DEVICE T atomicCAS_system(T *p, T compare, T value) { return atomicCAS(p, compare, value); }
CC_EACH_INTEGER(CC_ATOMICS_OF_INTEGER)
CC_ATOMICS_OF_ANY(float)
CC_ATOMICS_OF_ANY(double)
CC_ATOMIC(atomicExch, float, __uint_as_float(__atomic_exchange_n((unsigned *)p, __float_as_uint(v), 0)))
CC_DEVICE double atomicExch(double *p, double v) {
  return __longlong_as_double(__atomic_exchange_n((long long *)p, __double_as_longlong(v), 0));
}
CC_ATOMIC(atomicInc, unsigned, __atomic_fetch_uinc(p, v, __ATOMIC_RELAXED))
CC_ATOMIC(atomicDec, unsigned, __atomic_fetch_udec(p, v, __ATOMIC_RELAXED))
#undef CC_ATOMICS_OF_INTEGER
#undef CC_ATOMICS_OF_ANY
#undef CC_ATOMIC
CC_DEVICE unsigned short atomicCAS(unsigned short *p, unsigned short compare, unsigned short value) {
  return __sync_val_compare_and_swap(p, compare, value);
}
CC_DEVICE float unsafeAtomicAdd(float *p, float v) { return atomicAdd(p, v); }
CC_DEVICE double unsafeAtomicAdd(double *p, double v) { return atomicAdd(p, v); }

extern "C" {
__host__ __device__ int printf(const char *, ...);
CC_INLINE void *memcpy(void *to, const void *from, size_t n) { return __builtin_memcpy(to, from, n); }
CC_INLINE void *memmove(void *to, const void *from, size_t n) { return __builtin_memmove(to, from, n); }
CC_INLINE void *memset(void *to, int value, size_t n) { return __builtin_memset(to, value, n); }
}
/* Asynchronous copies to shared memory: an access of 4, 8 or 16 bytes each, done at once; some bytes are zeros. */
template <class T> CC_DEVICE void cc_copy(void *to, const void *from, size_t zeros) {
  if (zeros == 0) *(T *)to = *(const T *)from;
  else if (zeros >= sizeof(T)) *(T *)to = T();
  else
    for (size_t k = 0; k < sizeof(T); k++) ((char *)to)[k] = k < sizeof(T) - zeros ? ((const char *)from)[k] : 0;
}
CC_DEVICE void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeros = 0) {
  if (size == 4) cc_copy<int>(to, from, zeros);
  else if (size == 8) cc_copy<int2>(to, from, zeros);
  else if (size == 16) cc_copy<int4>(to, from, zeros);
  else __builtin_trap();
}
CC_DEVICE void __pipeline_commit() { mem_fence(1); }
CC_DEVICE void __pipeline_wait_prior(size_t) { mem_fence(1); }

CC_CONVERGENT void cc_assertion_failed();
CC_DEVICE void __trap() { __builtin_trap(); }
CC_DEVICE void __brkpt() {}

/* Half precision: what cuda_fp16.h and hip_fp16.h have most used. */
typedef _Float16 __half;
typedef _Float16 half;
struct __align__(4) __half2 {
  __half x, y;
};
typedef __half2 half2;

#define CC_HALF(NAME)          \
  CC_PURE __half NAME(__half); \
  CC_INLINE __half h##NAME(__half x) { return NAME(x); }
CC_HALF(sqrt) CC_HALF(rsqrt) CC_HALF(exp) CC_HALF(exp2) CC_HALF(log) CC_HALF(log2) CC_HALF(sin) CC_HALF(cos)
CC_HALF(tanh) CC_HALF(floor) CC_HALF(ceil) CC_HALF(trunc) CC_HALF(rint)
#undef CC_HALF
CC_PURE __half fabs(__half);
CC_PURE __half fmax(__half, __half);
CC_PURE __half fmin(__half, __half);
CC_PURE __half fma(__half, __half, __half);
CC_PURE int isnan(__half);
CC_INLINE __half __hneg(__half x) { return -x; }
CC_INLINE __half __habs(__half x) { return fabs(x); }
CC_INLINE __half hrcp(__half x) { return (__half)1 / x; }

#define CC_HALF(NAME, EXPRESSION) CC_INLINE __half NAME(__half x, __half y) { return EXPRESSION; }
#pragma clang fp contract(off)
CC_HALF(__hadd, x + y) CC_HALF(__hsub, x - y) CC_HALF(__hmul, x * y) CC_HALF(__hdiv, x / y)
#pragma clang fp contract(on)
CC_HALF(__hmax, fmax(x, y)) CC_HALF(__hmin, fmin(x, y))
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
#define CC_HALF2(OPERATOR, NAME)                                                         \
  CC_INLINE __half2 operator OPERATOR(__half2 a, __half2 b) {                             \
    return {NAME(a.x, b.x), NAME(a.y, b.y)};                                              \
  }                                                                                       \
  CC_INLINE __half2 &operator OPERATOR##=(__half2 &a, __half2 b) { return a = a OPERATOR b; }
CC_HALF2(+, __hadd) CC_HALF2(-, __hsub) CC_HALF2(*, __hmul) CC_HALF2(/, __hdiv)
#undef CC_HALF2
CC_INLINE bool operator==(__half2 a, __half2 b) { return a.x == b.x && a.y == b.y; }
CC_INLINE bool operator!=(__half2 a, __half2 b) { return !(a == b); }
CC_INLINE __half2 __hneg2(__half2 a) { return {-a.x, -a.y}; }
CC_INLINE __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
CC_INLINE __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
CC_INLINE __half2 __h2div(__half2 a, __half2 b) { return a / b; }
CC_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
CC_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
CC_INLINE __half2 __lowhigh2highlow(__half2 a) { return {a.y, a.x}; }
CC_INLINE __half2 __low2half2(__half2 a) { return {a.x, a.x}; }
CC_INLINE __half2 __high2half2(__half2 a) { return {a.y, a.y}; }
CC_INLINE __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)}; }

/* Warp operations, which the engine does: each counts as one instruction. */
#if CROSSCAST_WARP_SIZE == 64
typedef unsigned long long cc_lanes;
#else
typedef unsigned cc_lanes;
#endif

CC_CONVERGENT void __syncwarp(cc_lanes mask = (cc_lanes)-1);
CC_CONVERGENT cc_lanes __activemask();
CC_CONVERGENT int __all_sync(cc_lanes, int);
CC_CONVERGENT int __any_sync(cc_lanes, int);
CC_CONVERGENT cc_lanes __ballot_sync(cc_lanes, int);
CC_CONVERGENT int __all(int);
CC_CONVERGENT int __any(int);
CC_CONVERGENT cc_lanes __ballot(int);

#define CC_SHUFFLES(T)                                                                            \
  CC_CONVERGENT T __shfl_sync(cc_lanes, T, int lane, int width = CROSSCAST_WARP_SIZE);            \
  CC_CONVERGENT T __shfl_up_sync(cc_lanes, T, unsigned delta, int width = CROSSCAST_WARP_SIZE);   \
  CC_CONVERGENT T __shfl_down_sync(cc_lanes, T, unsigned delta, int width = CROSSCAST_WARP_SIZE); \
  CC_CONVERGENT T __shfl_xor_sync(cc_lanes, T, int mask, int width = CROSSCAST_WARP_SIZE);        \
  CC_CONVERGENT T __shfl(T, int lane, int width = CROSSCAST_WARP_SIZE);                           \
  CC_CONVERGENT T __shfl_up(T, unsigned delta, int width = CROSSCAST_WARP_SIZE);                  \
  CC_CONVERGENT T __shfl_down(T, unsigned delta, int width = CROSSCAST_WARP_SIZE);                \
  CC_CONVERGENT T __shfl_xor(T, int mask, int width = CROSSCAST_WARP_SIZE);                       \
  CC_CONVERGENT T cc_tile_shfl(T, int lane, int width);                                           \
  CC_CONVERGENT T cc_tile_shfl_up(T, unsigned delta, int width);                                  \
  CC_CONVERGENT T cc_tile_shfl_down(T, unsigned delta, int width);                                \
  CC_CONVERGENT T cc_tile_shfl_xor(T, unsigned mask, int width);
CC_EACH_TYPE(CC_SHUFFLES)
#undef CC_SHUFFLES
#define CC_SHUFFLES(NAME, ARGUMENT)                                                               \
  CC_DEVICE __half NAME(cc_lanes mask, __half x, ARGUMENT n, int width = CROSSCAST_WARP_SIZE) {   \
    return __ushort_as_half((unsigned short)NAME(mask, (unsigned)__half_as_ushort(x), n, width)); \
  }
CC_SHUFFLES(__shfl_sync, int) CC_SHUFFLES(__shfl_up_sync, unsigned)
CC_SHUFFLES(__shfl_down_sync, unsigned) CC_SHUFFLES(__shfl_xor_sync, int)
#undef CC_SHUFFLES

#define CC_MATCH(T)                                                       \
  CC_CONVERGENT cc_lanes __match_any_sync(cc_lanes, T);                   \
  CC_CONVERGENT cc_lanes cc_match_all(cc_lanes, T);                       \
  CC_DEVICE cc_lanes __match_all_sync(cc_lanes mask, T value, int *all) { \
    cc_lanes found = cc_match_all(mask, value);                           \
    *all = found != 0;                                                    \
    return found;                                                         \
  }
CC_EACH_TYPE(CC_MATCH)
#undef CC_MATCH

#define CC_REDUCE(NAME, T) CC_CONVERGENT T __reduce_##NAME##_sync(cc_lanes, T);
CC_REDUCE(add, int) CC_REDUCE(min, int) CC_REDUCE(max, int)
CC_REDUCE(add, unsigned) CC_REDUCE(min, unsigned) CC_REDUCE(max, unsigned)
CC_REDUCE(and, unsigned) CC_REDUCE(or, unsigned) CC_REDUCE(xor, unsigned)
#undef CC_REDUCE

CC_CONVERGENT void cc_tile_sync(int width);
CC_CONVERGENT int cc_tile_all(int, int width);
CC_CONVERGENT int cc_tile_any(int, int width);
CC_CONVERGENT cc_lanes cc_tile_ballot(int, int width);
#define CC_TILES(T)                                       \
  CC_CONVERGENT cc_lanes cc_tile_match_any(T, int width); \
  CC_CONVERGENT T cc_tile_add(T, int width);              \
  CC_CONVERGENT T cc_tile_min(T, int width);              \
  CC_CONVERGENT T cc_tile_max(T, int width);              \
  CC_CONVERGENT T cc_tile_scan_add(T, int width);         \
  CC_CONVERGENT T cc_tile_scan_exclusive_add(T, int width);
CC_EACH_TYPE(CC_TILES)
#undef CC_TILES
#define CC_TILES(T)                          \
  CC_CONVERGENT T cc_tile_and(T, int width); \
  CC_CONVERGENT T cc_tile_or(T, int width);  \
  CC_CONVERGENT T cc_tile_bitxor(T, int width);
CC_EACH_INTEGER(CC_TILES)
#undef CC_TILES

CC_DEVICE unsigned cc_thread_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
CC_DEVICE unsigned __lane_id() { return cc_thread_rank() % CROSSCAST_WARP_SIZE; }

#endif
