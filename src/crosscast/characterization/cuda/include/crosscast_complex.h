/* Complex numbers, as in cuComplex.h and hip_complex.h: pairs of real ones. */
#ifndef CROSSCAST_COMPLEX_H
#define CROSSCAST_COMPLEX_H

typedef float2 cuFloatComplex, cuComplex, hipFloatComplex, hipComplex;
typedef double2 cuDoubleComplex, hipDoubleComplex;

#define CC_COMPLEX(C, T, PREFIX, F, PAIR)                                                                  \
  CC_INLINE C make_##PREFIX##PAIR##Complex(T x, T y) { return {x, y}; }                                    \
  CC_INLINE T PREFIX##Creal##F(C z) { return z.x; }                                                        \
  CC_INLINE T PREFIX##Cimag##F(C z) { return z.y; }                                                        \
  CC_INLINE C PREFIX##Conj##F(C z) { return {z.x, -z.y}; }                                                 \
  CC_INLINE C PREFIX##Cadd##F(C a, C b) { return {a.x + b.x, a.y + b.y}; }                                 \
  CC_INLINE C PREFIX##Csub##F(C a, C b) { return {a.x - b.x, a.y - b.y}; }                                 \
  CC_INLINE C PREFIX##Cmul##F(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }         \
  CC_INLINE C PREFIX##Cfma##F(C a, C b, C c) { return PREFIX##Cadd##F(PREFIX##Cmul##F(a, b), c); }         \
  CC_INLINE T PREFIX##Cabs##F(C z) { return hypot(z.x, z.y); }                                             \
  /* Scaled, so that the squares do not overflow. */                                                       \
  CC_INLINE C PREFIX##Cdiv##F(C a, C b) {                                                                  \
    T scale = 1 / (fabs(b.x) + fabs(b.y)), x = a.x * scale, y = a.y * scale, u = b.x * scale, v = b.y * scale; \
    T over = 1 / (u * u + v * v);                                                                          \
    return {(x * u + y * v) * over, (y * u - x * v) * over};                                               \
  }
CC_COMPLEX(cuFloatComplex, float, cu, f, Float) CC_COMPLEX(cuDoubleComplex, double, cu, , Double)
CC_COMPLEX(hipFloatComplex, float, hip, f, Float) CC_COMPLEX(hipDoubleComplex, double, hip, , Double)
#undef CC_COMPLEX
CC_INLINE cuComplex make_cuComplex(float x, float y) { return {x, y}; }
CC_INLINE hipComplex make_hipComplex(float x, float y) { return {x, y}; }
CC_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return {(float)z.x, (float)z.y}; }
CC_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return {z.x, z.y}; }
CC_INLINE hipFloatComplex hipComplexDoubleToFloat(hipDoubleComplex z) { return {(float)z.x, (float)z.y}; }
CC_INLINE hipDoubleComplex hipComplexFloatToDouble(hipFloatComplex z) { return {z.x, z.y}; }

#endif
