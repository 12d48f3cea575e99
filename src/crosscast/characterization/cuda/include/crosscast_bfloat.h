/* The upper half of a float, as in cuda_bf16.h and hip_bf16.h. Functions are those of float, with conversions. */
#ifndef CROSSCAST_BFLOAT_H
#define CROSSCAST_BFLOAT_H

typedef __bf16 __nv_bfloat16;
typedef __bf16 nv_bfloat16;
typedef __bf16 __hip_bfloat16;
typedef __bf16 hip_bfloat16;
struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __nv_bfloat162 nv_bfloat162;
typedef __nv_bfloat162 __hip_bfloat162;

#define CC_BFLOAT(T, T2, NAME) CC_INLINE T NAME(T x) { return (T)NAME((float)x); }
CC_EACH_FUNCTION(CC_BFLOAT, __nv_bfloat16, __nv_bfloat162)
#undef CC_BFLOAT
CC_INLINE __nv_bfloat16 fabs(__nv_bfloat16 x) { return __builtin_elementwise_abs(x); }
CC_INLINE __nv_bfloat16 fmax(__nv_bfloat16 x, __nv_bfloat16 y) { return __builtin_elementwise_maxnum(x, y); }
CC_INLINE __nv_bfloat16 fmin(__nv_bfloat16 x, __nv_bfloat16 y) { return __builtin_elementwise_minnum(x, y); }
CC_INLINE __nv_bfloat16 fma(__nv_bfloat16 x, __nv_bfloat16 y, __nv_bfloat16 z) {
  return __builtin_elementwise_fma(x, y, z);
}
CC_INLINE int isnan(__nv_bfloat16 x) { return x != x; }

#pragma clang fp contract(off)
CC_NARROW(__nv_bfloat16, __nv_bfloat162)
#pragma clang fp contract(on)
CC_NARROW_BITS(__nv_bfloat16, __nv_bfloat162)
CC_NARROW_MOVES(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
CC_NARROW_ATOMICS(__nv_bfloat16, __nv_bfloat162)
CC_NARROW_SHUFFLES(__nv_bfloat16, __nv_bfloat162)
CC_INLINE int __bfloat162int_rn(__nv_bfloat16 x) { return __float2int_rn((float)x); }
CC_INLINE int __bfloat162int_rz(__nv_bfloat16 x) { return __float2int_rz((float)x); }

#endif
