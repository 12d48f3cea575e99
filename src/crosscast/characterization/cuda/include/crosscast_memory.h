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

CC_DEVICE size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }

CC_CONVERGENT void cc_assertion_failed();
CC_DEVICE void __trap() { __builtin_trap(); }
CC_DEVICE void __brkpt() {}

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
CC_NARROW_SHUFFLES(__half, __half2)

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

/* Values of any type are shuffled word by word. */
#define CC_SHUFFLE(NAME, ARGUMENT)                                                                  \
  template <class T> CC_DEVICE T cc_words_##NAME(T x, ARGUMENT n, int width) {                      \
    int words[(sizeof(T) + 3) / 4] = {};                                                            \
    __builtin_memcpy(words, &x, sizeof(T));                                                         \
    for (size_t k = 0; k < (sizeof(T) + 3) / 4; k++) words[k] = cc_tile_##NAME(words[k], n, width); \
    __builtin_memcpy(&x, words, sizeof(T));                                                         \
    return x;                                                                                       \
  }
CC_SHUFFLE(shfl, int) CC_SHUFFLE(shfl_up, unsigned) CC_SHUFFLE(shfl_down, unsigned) CC_SHUFFLE(shfl_xor, unsigned)
#undef CC_SHUFFLE
#define CC_SHUFFLES(T)                                                                                         \
  CC_DEVICE T cc_words_shfl(T x, int n, int width) { return cc_tile_shfl(x, n, width); }                       \
  CC_DEVICE T cc_words_shfl_up(T x, unsigned n, int width) { return cc_tile_shfl_up(x, n, width); }            \
  CC_DEVICE T cc_words_shfl_down(T x, unsigned n, int width) { return cc_tile_shfl_down(x, n, width); }         \
  CC_DEVICE T cc_words_shfl_xor(T x, unsigned n, int width) { return cc_tile_shfl_xor(x, n, width); }
CC_EACH_TYPE(CC_SHUFFLES)
#undef CC_SHUFFLES

CC_DEVICE unsigned cc_thread_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
CC_DEVICE unsigned __lane_id() { return cc_thread_rank() % CROSSCAST_WARP_SIZE; }

#endif
