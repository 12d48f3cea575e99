/* Tensor cores: declared, so that what uses them is refused by line. */
#ifndef CROSSCAST_MMA_H
#define CROSSCAST_MMA_H

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
