/* What is declared so that it is refused by line where it is used: surfaces, the heap, tensor cores. */
#ifndef CROSSCAST_REFUSED_H
#define CROSSCAST_REFUSED_H

typedef unsigned long long cudaSurfaceObject_t;
typedef cudaSurfaceObject_t hipSurfaceObject_t;
CC_REFUSED void cc_refused_texture();
CC_REFUSED void cc_refused_surface();
template <class T, int dimensions = 1> struct surface {};
#define CC_SURFACE(NAME)                                                                                             \
  template <class T, class S, class... Rest> CC_DEVICE T NAME##read(S, Rest...) { return cc_refused_surface(), T(); } \
  template <class T, class S, class... Rest> CC_DEVICE void NAME##read(T *, S, Rest...) { cc_refused_surface(); }     \
  template <class T, class S, class... Rest> CC_DEVICE void NAME##write(T, S, Rest...) { cc_refused_surface(); }
CC_SURFACE(surf1D) CC_SURFACE(surf2D) CC_SURFACE(surf3D) CC_SURFACE(surf2DLayered)
#undef CC_SURFACE

/* Memory of a heap. */
#define CC_NEW inline __device__ __attribute__((always_inline, nodebug))
CC_REFUSED void cc_refused_heap();
CC_DEVICE void *malloc(size_t) { return cc_refused_heap(), nullptr; }
CC_DEVICE void free(void *) { cc_refused_heap(); }
CC_NEW void *operator new(size_t) { return cc_refused_heap(), nullptr; }
CC_NEW void *operator new[](size_t) { return cc_refused_heap(), nullptr; }
CC_NEW void *operator new(size_t, void *place) { return place; }
CC_NEW void operator delete(void *) noexcept { cc_refused_heap(); }
CC_NEW void operator delete[](void *) noexcept { cc_refused_heap(); }

#undef CC_NEW

/* The runtime's functions that device code may call, all of which are for kernels that launch kernels. */
CC_REFUSED void cc_refused_runtime();
#define CC_RUNTIME(NAME) \
  template <class... T> CC_DEVICE cudaError_t NAME(T...) { return cc_refused_runtime(), cudaSuccess; }
CC_RUNTIME(cudaDeviceSynchronize) CC_RUNTIME(cudaMalloc) CC_RUNTIME(cudaFree) CC_RUNTIME(cudaMemcpyAsync)
CC_RUNTIME(cudaMemsetAsync) CC_RUNTIME(cudaStreamCreateWithFlags) CC_RUNTIME(cudaStreamDestroy)
CC_RUNTIME(cudaGetLastError) CC_RUNTIME(cudaLaunchDevice)
#undef CC_RUNTIME

/* Tensor cores: declared, so that what uses them is refused by line. */
CC_REFUSED void cc_refused_matrix();

namespace nvcuda {
namespace wmma {
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
template <class Use, int m, int n, int k, class T, class Layout = void> struct fragment {
  static const int num_elements = 8;
  T x[8];
};
template <class F, class... T> CC_DEVICE void fill_fragment(F &, T...) { cc_refused_matrix(); }
template <class F, class... T> CC_DEVICE void load_matrix_sync(F &, T...) { cc_refused_matrix(); }
template <class P, class F, class... T> CC_DEVICE void store_matrix_sync(P *, const F &, T...) { cc_refused_matrix(); }
template <class D, class A, class B, class C> CC_DEVICE void mma_sync(D &, const A &, const B &, const C &) {
  cc_refused_matrix();
}
}
}

#endif
