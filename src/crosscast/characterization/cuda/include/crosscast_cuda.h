/* What CUDA and HIP have for device code, in terms of the builtin functions of OpenCL C.
 *
 * Functions without a body are builtins that the engine has: a call of one counts as one instruction.
 * The others are written with them, and count as what is written.
 */
#ifndef CROSSCAST_CUDA_H
#define CROSSCAST_CUDA_H

#include "crosscast_libc.h"
#include "math.h"

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline__ inline
#define __noinline__ __attribute__((noinline))
#ifdef CROSSCAST_LAUNCH_BOUNDS
#define __launch_bounds__(...) __attribute__((annotate("launch_bounds", __VA_ARGS__)))
#else
#define __launch_bounds__(...)
#endif
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

#define CC_MEMBER __host__ __device__ __attribute__((always_inline, nodebug))
#define CC_INLINE static inline CC_MEMBER
#define CC_DEVICE static inline __device__ __attribute__((always_inline, nodebug))
#define CC_LANE_MEMBER __device__ __attribute__((always_inline, nodebug))
#define CC_PURE __host__ __device__ __attribute__((const, nothrow))
#define CC_CONVERGENT __device__ __attribute__((convergent, nothrow))
/* Refused by the engine, by the line of the user's that uses it. */
#define CC_REFUSED __device__ __attribute__((convergent))

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

/* What stands in the parentheses, for each type of number. */
#define CC_EACH_INTEGER(M) M(int) M(unsigned) M(long) M(unsigned long) M(long long) M(unsigned long long)
#define CC_EACH_TYPE(M) CC_EACH_INTEGER(M) M(float) M(double)

/* Vector types: structures, whose accesses are merged (vector_accesses.py). */
#define CC_VECTORS(NAME, T, ALIGN2, ALIGN4)                                                   \
  struct NAME##1 { T x; };                                                                    \
  struct __align__(ALIGN2) NAME##2 { T x, y; };                                               \
  struct NAME##3 { T x, y, z; };                                                              \
  struct __align__(ALIGN4) NAME##4 { T x, y, z, w; };                                         \
  CC_INLINE constexpr NAME##1 make_##NAME##1(T x) { return {x}; }                             \
  CC_INLINE constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                     \
  CC_INLINE constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }             \
  CC_INLINE constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CC_VECTORS(char, signed char, 2, 4)
CC_VECTORS(uchar, unsigned char, 2, 4)
CC_VECTORS(short, short, 4, 8)
CC_VECTORS(ushort, unsigned short, 4, 8)
CC_VECTORS(int, int, 8, 16)
CC_VECTORS(uint, unsigned, 8, 16)
CC_VECTORS(long, long, 16, 16)
CC_VECTORS(ulong, unsigned long, 16, 16)
CC_VECTORS(longlong, long long, 16, 16)
CC_VECTORS(ulonglong, unsigned long long, 16, 16)
CC_VECTORS(float, float, 8, 16)
CC_VECTORS(double, double, 16, 16)
#undef CC_VECTORS

#ifdef __HIPCC__
/* HIP's vectors have operators, element by element; a program's own go first. */
template <class V> struct cc_vector {};
#define CC_VECTOR(V, T, SIZE)                            \
  template <> struct cc_vector<V> {                      \
    typedef T element;                                   \
    static constexpr int size = SIZE;                    \
  };
#define CC_VECTORS(NAME, T) CC_VECTOR(NAME##2, T, 2) CC_VECTOR(NAME##3, T, 3) CC_VECTOR(NAME##4, T, 4)
CC_VECTORS(char, signed char) CC_VECTORS(uchar, unsigned char) CC_VECTORS(short, short) CC_VECTORS(ushort, unsigned short)
CC_VECTORS(int, int) CC_VECTORS(uint, unsigned) CC_VECTORS(long, long) CC_VECTORS(ulong, unsigned long)
CC_VECTORS(longlong, long long) CC_VECTORS(ulonglong, unsigned long long)
CC_VECTORS(float, float) CC_VECTORS(double, double)
#undef CC_VECTORS
#undef CC_VECTOR
#define CC_ELEMENT typename cc_vector<V>::element
#define CC_OPERATOR(OP)                                                                                   \
  template <class V, class T = CC_ELEMENT> CC_INLINE V &operator OP##=(V &a, const V &b) {                \
    for (int k = 0; k < cc_vector<V>::size; k++) ((T *)&a)[k] OP##= ((const T *)&b)[k];                   \
    return a;                                                                                             \
  }                                                                                                       \
  template <class V, class T = CC_ELEMENT> CC_INLINE V &operator OP##=(V &a, CC_ELEMENT b) {              \
    for (int k = 0; k < cc_vector<V>::size; k++) ((T *)&a)[k] OP##= b;                                    \
    return a;                                                                                             \
  }                                                                                                       \
  template <class V, class T = CC_ELEMENT> CC_INLINE V operator OP(V a, const V &b) { return a OP##= b; } \
  template <class V, class T = CC_ELEMENT> CC_INLINE V operator OP(V a, CC_ELEMENT b) { return a OP##= b; } \
  template <class V, class T = CC_ELEMENT> CC_INLINE V operator OP(CC_ELEMENT a, const V &b) {            \
    V c;                                                                                                  \
    for (int k = 0; k < cc_vector<V>::size; k++) ((T *)&c)[k] = a OP ((const T *)&b)[k];                  \
    return c;                                                                                             \
  }
CC_OPERATOR(+) CC_OPERATOR(-) CC_OPERATOR(*) CC_OPERATOR(/)
#undef CC_OPERATOR
template <class V, class T = CC_ELEMENT> CC_INLINE V operator-(const V &a) { return T(0) - a; }
template <class V, class T = CC_ELEMENT> CC_INLINE bool operator==(const V &a, const V &b) {
  bool same = true;
  for (int k = 0; k < cc_vector<V>::size; k++) same = same && ((const T *)&a)[k] == ((const T *)&b)[k];
  return same;
}
template <class V, class T = CC_ELEMENT> CC_INLINE bool operator!=(const V &a, const V &b) { return !(a == b); }
#undef CC_ELEMENT
#endif

struct dim3 {
  unsigned x, y, z;
  CC_MEMBER constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  CC_MEMBER constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  CC_MEMBER constexpr operator uint3() const { return {x, y, z}; }
};

/* Threads, blocks, barriers and fences. */
CC_PURE size_t get_local_id(unsigned);
CC_PURE size_t get_group_id(unsigned);
CC_PURE size_t get_local_size(unsigned);
CC_PURE size_t get_num_groups(unsigned);
CC_CONVERGENT void barrier(unsigned);
CC_CONVERGENT int work_group_reduce_add(int);
CC_CONVERGENT int work_group_all(int);
CC_CONVERGENT int work_group_any(int);
CC_CONVERGENT void mem_fence(unsigned);

#define CC_INDEX(NAME, BUILTIN)                                                        \
  struct NAME##_t {                                                                    \
    __declspec(property(get = get_x)) unsigned x;                                      \
    __declspec(property(get = get_y)) unsigned y;                                      \
    __declspec(property(get = get_z)) unsigned z;                                      \
    CC_MEMBER static unsigned get_x() { return (unsigned)BUILTIN(0); }                 \
    CC_MEMBER static unsigned get_y() { return (unsigned)BUILTIN(1); }                 \
    CC_MEMBER static unsigned get_z() { return (unsigned)BUILTIN(2); }                 \
    CC_MEMBER operator uint3() const { return {get_x(), get_y(), get_z()}; }           \
    CC_MEMBER operator dim3() const { return dim3(get_x(), get_y(), get_z()); }        \
  };                                                                                   \
  static const __device__ NAME##_t NAME = {};
CC_INDEX(threadIdx, get_local_id)
CC_INDEX(blockIdx, get_group_id)
CC_INDEX(blockDim, get_local_size)
CC_INDEX(gridDim, get_num_groups)
#undef CC_INDEX

static const int warpSize = CROSSCAST_WARP_SIZE;

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

CC_DEVICE void __syncthreads() { barrier(1); }
CC_DEVICE int __syncthreads_count(int predicate) { return barrier(1), work_group_reduce_add(predicate != 0); }
CC_DEVICE int __syncthreads_and(int predicate) { return barrier(1), work_group_all(predicate); }
CC_DEVICE int __syncthreads_or(int predicate) { return barrier(1), work_group_any(predicate); }
CC_DEVICE void __threadfence() { mem_fence(3); }
CC_DEVICE void __threadfence_block() { mem_fence(3); }
CC_DEVICE void __threadfence_system() { mem_fence(3); }

/* What reads a clock depends on the device. */
CC_REFUSED long long cc_refused_clock();
CC_DEVICE long clock() { return (long)cc_refused_clock(); }
CC_DEVICE long long clock64() { return cc_refused_clock(); }
CC_DEVICE long long wall_clock64() { return cc_refused_clock(); }
/* A pause does no work, nor does waiting for the launch before. */
CC_DEVICE void __nanosleep(unsigned) {}
CC_DEVICE void cudaGridDependencySynchronize() {}
CC_DEVICE void cudaTriggerProgrammaticLaunchCompletion() {}

#include "crosscast_math.h"
#include "crosscast_std.h"
#include "crosscast_words.h"
#include "crosscast_half.h"
#include "crosscast_memory.h"
#include "crosscast_ptx.h"
#include "crosscast_host.h"
#include "crosscast_refused.h"
#include "crosscast_texture.h"
#include "assert.h"

#endif
