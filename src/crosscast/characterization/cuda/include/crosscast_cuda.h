/* What CUDA and HIP have for device code, in terms of the builtin functions of OpenCL C. */
#ifndef CROSSCAST_CUDA_H
#define CROSSCAST_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define CC_INLINE static inline __host__ __device__ __attribute__((always_inline, nodebug))
#define CC_DEVICE static inline __device__ __attribute__((always_inline, nodebug))
#define CC_PURE __host__ __device__ __attribute__((const, nothrow))

#define CC_INLINE_MEMBER __host__ __device__ __attribute__((always_inline, nodebug))

#include "crosscast_ids.h"

#endif
