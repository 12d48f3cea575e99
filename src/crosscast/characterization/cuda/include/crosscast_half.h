/* Half precision, as in cuda_fp16.h and hip_fp16.h. */
#ifndef CROSSCAST_HALF_H
#define CROSSCAST_HALF_H
#include "crosscast_narrow.h"

typedef _Float16 __half;
typedef _Float16 half;
struct __align__(4) __half2 {
  __half x, y;
};
typedef __half2 half2;

#define CC_HALF(T, T2, NAME) CC_PURE T NAME(T);
CC_EACH_FUNCTION(CC_HALF, __half, __half2)
#undef CC_HALF
CC_PURE __half fabs(__half);
CC_PURE __half fmax(__half, __half);
CC_PURE __half fmin(__half, __half);
CC_PURE __half fma(__half, __half, __half);
CC_PURE int isnan(__half);

#pragma clang fp contract(off)
CC_NARROW(__half, __half2)
#pragma clang fp contract(on)
CC_NARROW_BITS(__half, __half2)
CC_NARROW_MOVES(__half, __half2, half, half2)
CC_NARROW_ATOMICS(__half, __half2)

/* To integers as far as these go, and from float, in the four directions of rounding. */
#define CC_HALF(CUDA, CL)                                                                        \
  CC_PURE __half convert_half_##CL(float);                                                       \
  CC_PURE int convert_int_sat_##CL(__half);                                                      \
  CC_PURE unsigned convert_uint_sat_##CL(__half);                                                \
  CC_PURE short convert_short_sat_##CL(__half);                                                  \
  CC_PURE unsigned short convert_ushort_sat_##CL(__half);                                        \
  CC_PURE long convert_long_sat_##CL(__half);                                                    \
  CC_PURE unsigned long convert_ulong_sat_##CL(__half);                                          \
  CC_INLINE int __half2int_##CUDA(__half x) { return convert_int_sat_##CL(x); }                  \
  CC_INLINE unsigned __half2uint_##CUDA(__half x) { return convert_uint_sat_##CL(x); }           \
  CC_INLINE short __half2short_##CUDA(__half x) { return convert_short_sat_##CL(x); }            \
  CC_INLINE unsigned short __half2ushort_##CUDA(__half x) { return convert_ushort_sat_##CL(x); } \
  CC_INLINE long long __half2ll_##CUDA(__half x) { return convert_long_sat_##CL(x); }            \
  CC_INLINE unsigned long long __half2ull_##CUDA(__half x) { return convert_ulong_sat_##CL(x); }
CC_HALF(rn, rte) CC_HALF(rz, rtz) CC_HALF(ru, rtp) CC_HALF(rd, rtn)
#undef CC_HALF
CC_INLINE __half __float2half_rz(float x) { return convert_half_rtz(x); }
CC_INLINE __half __float2half_ru(float x) { return convert_half_rtp(x); }
CC_INLINE __half __float2half_rd(float x) { return convert_half_rtn(x); }

#endif
