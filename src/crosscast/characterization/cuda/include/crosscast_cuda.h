/* What CUDA and HIP have for device code, in terms of the builtin functions of OpenCL C.
 *
 * Functions without a body are builtins that the engine has: a call of one counts as one instruction.
 * The others are written with them, and count as what is written.
 */
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
#define __inline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
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

#include "crosscast_vectors.h"

#include "crosscast_ids.h"

#include "crosscast_math.h"

#include "crosscast_integers.h"

#include "crosscast_memory.h"

#include "crosscast_half.h"

#include "crosscast_warps.h"

#include "crosscast_textures.h"

#include "crosscast_host.h"

#endif
