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

#define CC_ATOMIC(NAME, T, EXPRESSION)                                                     \
  CC_DEVICE T NAME(T *p, T v) { return EXPRESSION; }                                       \
  CC_DEVICE T NAME##_block(T *p, T v) { return EXPRESSION; }                               \
  CC_DEVICE T NAME##_system(T *p, T v) { return EXPRESSION; }
#define CC_ATOMICS_OF_ANY(T)                                                               \
  CC_ATOMIC(atomicAdd, T, __atomic_fetch_add(p, v, __ATOMIC_RELAXED))                      \
  CC_ATOMIC(atomicSub, T, __atomic_fetch_sub(p, v, __ATOMIC_RELAXED))                      \
  CC_ATOMIC(atomicMin, T, __atomic_fetch_min(p, v, __ATOMIC_RELAXED))                      \
  CC_ATOMIC(atomicMax, T, __atomic_fetch_max(p, v, __ATOMIC_RELAXED))
#define CC_ATOMICS_OF_INTEGER(T)                                                           \
  CC_ATOMICS_OF_ANY(T)                                                                     \
  CC_ATOMIC(atomicAnd, T, __atomic_fetch_and(p, v, __ATOMIC_RELAXED))                      \
  CC_ATOMIC(atomicOr, T, __atomic_fetch_or(p, v, __ATOMIC_RELAXED))                        \
  CC_ATOMIC(atomicXor, T, __atomic_fetch_xor(p, v, __ATOMIC_RELAXED))                      \
  CC_ATOMIC(atomicExch, T, __atomic_exchange_n(p, v, __ATOMIC_RELAXED))                    \
  CC_DEVICE T atomicCAS(T *p, T compare, T value) {                                        \
    return __sync_val_compare_and_swap(p, compare, value);                                 \
  }                                                                                        \
  CC_DEVICE T atomicCAS_block(T *p, T compare, T value) { return atomicCAS(p, compare, value); } \
  CC_DEVICE T atomicCAS_system(T *p, T compare, T value) { return atomicCAS(p, compare, value); }
CC_ATOMICS_OF_INTEGER(int)
CC_ATOMICS_OF_INTEGER(unsigned)
CC_ATOMICS_OF_INTEGER(long)
CC_ATOMICS_OF_INTEGER(unsigned long)
CC_ATOMICS_OF_INTEGER(long long)
CC_ATOMICS_OF_INTEGER(unsigned long long)
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
CC_CONVERGENT void cc_assertion_failed();
CC_DEVICE void __trap() { __builtin_trap(); }
CC_DEVICE void __brkpt() {}

#endif
