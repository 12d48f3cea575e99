/* Threads, blocks, barriers and fences. */
#ifndef CROSSCAST_IDS_H
#define CROSSCAST_IDS_H

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
CC_DEVICE void __threadfence() { mem_fence(3); }
CC_DEVICE void __threadfence_block() { mem_fence(3); }
CC_DEVICE void __threadfence_system() { mem_fence(3); }

/* What reads a clock depends on the device. */
CC_REFUSED long long cc_refused_clock();
CC_DEVICE long clock() { return (long)cc_refused_clock(); }
CC_DEVICE long long clock64() { return cc_refused_clock(); }
CC_DEVICE long long wall_clock64() { return cc_refused_clock(); }
CC_DEVICE void __nanosleep(unsigned) { cc_refused_clock(); }

#endif
