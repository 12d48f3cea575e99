/* Vector types: structures, whose components are accessed one by one. */
#ifndef CROSSCAST_VECTORS_H
#define CROSSCAST_VECTORS_H

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

struct dim3 {
  unsigned x, y, z;
  CC_MEMBER constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  CC_MEMBER constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  CC_MEMBER constexpr operator uint3() const { return {x, y, z}; }
};

#endif
