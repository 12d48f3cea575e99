/* Threads, blocks and barriers. */
#ifndef CROSSCAST_IDS_H
#define CROSSCAST_IDS_H

CC_PURE size_t get_local_id(unsigned);
CC_PURE size_t get_group_id(unsigned);
CC_PURE size_t get_local_size(unsigned);
CC_PURE size_t get_num_groups(unsigned);
__device__ __attribute__((convergent, nothrow)) void barrier(unsigned);
__device__ __attribute__((convergent, nothrow)) int work_group_reduce_add(int);
__device__ __attribute__((convergent, nothrow)) int work_group_all(int);
__device__ __attribute__((convergent, nothrow)) int work_group_any(int);

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  CC_INLINE_MEMBER constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  CC_INLINE_MEMBER constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  CC_INLINE_MEMBER constexpr operator uint3() const { return {x, y, z}; }
};

#define CC_INDEX(NAME, BUILTIN)                                                              \
  struct NAME##_t {                                                                          \
    __declspec(property(get = get_x)) unsigned x;                                            \
    __declspec(property(get = get_y)) unsigned y;                                            \
    __declspec(property(get = get_z)) unsigned z;                                            \
    CC_INLINE_MEMBER static unsigned get_x() { return (unsigned)BUILTIN(0); }                \
    CC_INLINE_MEMBER static unsigned get_y() { return (unsigned)BUILTIN(1); }                \
    CC_INLINE_MEMBER static unsigned get_z() { return (unsigned)BUILTIN(2); }                \
    CC_INLINE_MEMBER operator uint3() const { return {get_x(), get_y(), get_z()}; }          \
    CC_INLINE_MEMBER operator dim3() const { return dim3(get_x(), get_y(), get_z()); }       \
  };                                                                                         \
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
CC_DEVICE int __syncthreads_count(int predicate) {
  barrier(1);
  return work_group_reduce_add(predicate != 0);
}
CC_DEVICE int __syncthreads_and(int predicate) {
  barrier(1);
  return work_group_all(predicate);
}
CC_DEVICE int __syncthreads_or(int predicate) {
  barrier(1);
  return work_group_any(predicate);
}

#endif
