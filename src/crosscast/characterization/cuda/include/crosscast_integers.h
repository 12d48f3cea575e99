/* Integer intrinsics, conversions, and the bits of values. */
#ifndef CROSSCAST_INTEGERS_H
#define CROSSCAST_INTEGERS_H

CC_PURE unsigned popcount(unsigned);
CC_PURE unsigned long popcount(unsigned long);
CC_PURE int clz(int);
CC_PURE long clz(long);
CC_PURE int mul24(int, int);
CC_PURE unsigned mul24(unsigned, unsigned);
CC_PURE int mul_hi(int, int);
CC_PURE unsigned mul_hi(unsigned, unsigned);
CC_PURE long mul_hi(long, long);
CC_PURE unsigned long mul_hi(unsigned long, unsigned long);
CC_PURE int hadd(int, int);
CC_PURE unsigned hadd(unsigned, unsigned);
CC_PURE int rhadd(int, int);
CC_PURE unsigned rhadd(unsigned, unsigned);
CC_PURE unsigned abs_diff(int, int);
CC_PURE unsigned abs_diff(unsigned, unsigned);
CC_INLINE int __popc(unsigned x) { return (int)popcount(x); }
CC_INLINE int __popcll(unsigned long long x) { return (int)popcount((unsigned long)x); }
CC_INLINE int __clz(int x) { return clz(x); }
CC_INLINE int __clzll(long long x) { return (int)clz((long)x); }
CC_INLINE int __ffs(int x) { return __builtin_ffs(x); }
CC_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
CC_INLINE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
CC_INLINE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
CC_INLINE int __mul24(int x, int y) { return mul24(x, y); }
CC_INLINE unsigned __umul24(unsigned x, unsigned y) { return mul24(x, y); }
CC_INLINE int __mulhi(int x, int y) { return mul_hi(x, y); }
CC_INLINE unsigned __umulhi(unsigned x, unsigned y) { return mul_hi(x, y); }
CC_INLINE long long __mul64hi(long long x, long long y) { return mul_hi((long)x, (long)y); }
CC_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return mul_hi((unsigned long)x, (unsigned long)y);
}
CC_INLINE int __hadd(int x, int y) { return hadd(x, y); }
CC_INLINE unsigned __uhadd(unsigned x, unsigned y) { return hadd(x, y); }
CC_INLINE int __rhadd(int x, int y) { return rhadd(x, y); }
CC_INLINE unsigned __urhadd(unsigned x, unsigned y) { return rhadd(x, y); }
CC_INLINE unsigned __sad(int x, int y, unsigned z) { return abs_diff(x, y) + z; }
CC_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return abs_diff(x, y) + z; }
CC_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int k = 0; k < 4; k++) {
    unsigned selector = s >> 4 * k & 15, byte = (unsigned)(bytes >> 8 * (selector & 7)) & 255;
    result |= (selector & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * k;
  }
  return result;
}
CC_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (n & 31)) >> 32);
}
CC_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (n & 31));
}
CC_INLINE int __dp4a(int x, int y, int z) {
  for (int k = 0; k < 4; k++) z += (signed char)(x >> 8 * k) * (signed char)(y >> 8 * k);
  return z;
}
CC_INLINE unsigned __dp4a(unsigned x, unsigned y, unsigned z) {
  for (int k = 0; k < 4; k++) z += (unsigned char)(x >> 8 * k) * (unsigned char)(y >> 8 * k);
  return z;
}

CC_INLINE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
CC_INLINE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
CC_INLINE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
CC_INLINE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
CC_INLINE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
CC_INLINE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
CC_INLINE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
CC_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }
CC_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

/* Floating point to integers, as far as these go; in each of the four directions of rounding. */
#define CC_CONVERSION(CUDA, CL, FROM, NAME, TO)                            \
  CC_PURE TO convert_##NAME##_sat_##CL(FROM);
#define CC_CONVERSIONS(FROM, NAME, TO)  \
  CC_CONVERSION(rn, rte, FROM, NAME, TO) CC_CONVERSION(rz, rtz, FROM, NAME, TO) \
  CC_CONVERSION(ru, rtp, FROM, NAME, TO) CC_CONVERSION(rd, rtn, FROM, NAME, TO)
CC_CONVERSIONS(float, int, int) CC_CONVERSIONS(float, uint, unsigned)
CC_CONVERSIONS(float, long, long) CC_CONVERSIONS(float, ulong, unsigned long)
CC_CONVERSIONS(double, int, int) CC_CONVERSIONS(double, uint, unsigned)
CC_CONVERSIONS(double, long, long) CC_CONVERSIONS(double, ulong, unsigned long)
#define CC_TO_INTEGER(CUDA, CL)                                                                          \
  CC_INLINE int __float2int_##CUDA(float x) { return convert_int_sat_##CL(x); }                          \
  CC_INLINE unsigned __float2uint_##CUDA(float x) { return convert_uint_sat_##CL(x); }                   \
  CC_INLINE long long __float2ll_##CUDA(float x) { return convert_long_sat_##CL(x); }                    \
  CC_INLINE unsigned long long __float2ull_##CUDA(float x) { return convert_ulong_sat_##CL(x); }         \
  CC_INLINE int __double2int_##CUDA(double x) { return convert_int_sat_##CL(x); }                        \
  CC_INLINE unsigned __double2uint_##CUDA(double x) { return convert_uint_sat_##CL(x); }                 \
  CC_INLINE long long __double2ll_##CUDA(double x) { return convert_long_sat_##CL(x); }                  \
  CC_INLINE unsigned long long __double2ull_##CUDA(double x) { return convert_ulong_sat_##CL(x); }
CC_TO_INTEGER(rn, rte) CC_TO_INTEGER(rz, rtz) CC_TO_INTEGER(ru, rtp) CC_TO_INTEGER(rd, rtn)
#undef CC_TO_INTEGER
#undef CC_CONVERSIONS
#undef CC_CONVERSION
CC_INLINE float __int2float_rn(int x) { return (float)x; }
CC_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
CC_INLINE float __ll2float_rn(long long x) { return (float)x; }
CC_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
CC_INLINE double __int2double_rn(int x) { return (double)x; }
CC_INLINE double __uint2double_rn(unsigned x) { return (double)x; }
CC_INLINE double __ll2double_rn(long long x) { return (double)x; }
CC_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }
CC_INLINE float __double2float_rn(double x) { return (float)x; }

#endif
