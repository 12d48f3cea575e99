"""CUB, cuRAND, cuComplex and C++'s library in kernels, each against NumPy or published numbers."""

from typing import Literal

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch
from support.examples import one_in

COLLECTIVES = """
#include <cub/cub.cuh>
struct Pair { float a; double b; };
struct Add {
  __device__ Pair operator()(const Pair &x, const Pair &y) const { return {x.a + y.a, x.b + y.b}; }
};
template <int X, int Y> __global__ void k(const int *in, int *out) {
  const int N = X * Y;
  typedef cub::BlockReduce<int, X, cub::BLOCK_REDUCE_RAKING, Y> Reduce;
  typedef cub::BlockScan<int, X, cub::BLOCK_SCAN_RAKING, Y> Scan;
  typedef cub::BlockReduce<Pair, X, cub::BLOCK_REDUCE_WARP_REDUCTIONS, Y> Pairs;
  typedef cub::BlockReduce<cub::KeyValuePair<int, int>, X, cub::BLOCK_REDUCE_RAKING, Y> Largest;
  typedef cub::BlockLoad<int, X, 4, cub::BLOCK_LOAD_TRANSPOSE, Y> Load;
  typedef cub::BlockStore<int, X, 4, cub::BLOCK_STORE_STRIPED, Y> Store;
  __shared__ union {
    typename Reduce::TempStorage reduce; typename Scan::TempStorage scan; typename Pairs::TempStorage pairs;
    typename Largest::TempStorage largest; typename Load::TempStorage load; typename Store::TempStorage store;
  } s;
  int i = threadIdx.x + X * threadIdx.y, x = in[i], o[12], v[4];
  o[0] = Reduce(s.reduce).Sum(x); __syncthreads();
  o[1] = Reduce(s.reduce).Reduce(x, cub::Min(), 50); __syncthreads();
  Scan(s.scan).ExclusiveSum(x, o[2], o[3]); __syncthreads();
  Scan(s.scan).InclusiveScan(x, o[4], cub::Max()); __syncthreads();
  Pair p = Pairs(s.pairs).Reduce(Pair{(float)x, 2.0 * x}, Add()); o[5] = (int)(p.a + p.b); __syncthreads();
  o[6] = Largest(s.largest).Reduce(cub::KeyValuePair<int, int>(i, x), cub::ArgMax()).key; __syncthreads();
  Load(s.load).Load(in, v); __syncthreads();
  o[7] = 1000 * v[0] + v[3];
  Scan(s.scan).InclusiveSum(v, v, o[8]); __syncthreads();
  o[9] = v[3];
  Store(s.store).Store(out + 12 * N, v, 4 * N - 5);
  __shared__ typename cub::WarpReduce<int, 16>::TempStorage w[N / 16];
  o[10] = cub::WarpReduce<int, 16>(w[i / 16]).Sum(x);
  __shared__ typename cub::WarpScan<int>::TempStorage ws[(N + 31) / 32];
  cub::WarpScan<int>(ws[i / 32]).ExclusiveScan(x, o[11], 7, cub::Sum());
  for (int j = 0; j < 12; j++) out[j * N + i] = o[j];
}"""


@pytest.mark.parametrize("form", ["cuda", "hip"])
@pytest.mark.parametrize(("x", "y"), one_in(2, [(16, 6), (32, 1), (256, 1), (80, 1)]))
def test_collectives_of_warps_and_blocks(x: int, y: int, form: Literal["cuda", "hip"]) -> None:
    source = COLLECTIVES
    if form == "hip":
        source = "#include <hip/hip_runtime.h>\n" + source.replace("cub/cub.cuh", "hipcub/hipcub.hpp")
        source = source.replace("cub::", "hipcub::")
    n = x * y
    values = np.random.default_rng(n).integers(0, 100, 4 * n).astype(np.int32)
    out = np.zeros((16, n), np.int32)
    kernel = Kernel.from_source(source, f"k<{x}, {y}>", form=form)
    characterize(Launch(kernel, (x, y), (x, y), (values, out)))
    own, items = values[:n], values.reshape(n, 4)
    assert out[0, 0] == own.sum()
    assert out[1, 0] == own[:50].min()
    assert (out[2] == np.cumsum(own) - own).all()
    assert (out[3] == own.sum()).all()
    assert (out[4] == np.maximum.accumulate(own)).all()
    assert out[5, 0] == 3 * own.sum()
    assert out[6, 0] == own.argmax()
    assert (out[7] == 1000 * items[:, 0] + items[:, 3]).all()
    assert (out[8] == values.sum()).all()
    sums = np.cumsum(values).reshape(n, 4)
    assert (out[9] == sums[:, 3]).all()
    striped = sums.T.ravel()
    assert (out[12:].ravel() == np.where(np.arange(4 * n) < 4 * n - 5, striped, 0)).all()
    assert (out[10, ::16] == own.reshape(-1, 16).sum(axis=1)).all()
    for first in range(0, n, 32):
        warp = own[first : first + 32]
        assert (out[11, first : first + 32] == 7 + np.cumsum(warp) - warp).all()


RANDOM = """
#include <curand_kernel.h>
template <class S> __device__ void draw(unsigned *bits, float *uniform, float *normal, double *wide) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  S s;
  curand_init(0, i, 0, &s);
  for (int j = 0; j < 4; j++) bits[j * n + i] = curand(&s);
  for (int j = 0; j < 4; j++) uniform[j * n + i] = curand_uniform(&s);
  for (int j = 0; j < 4; j++) normal[j * n + i] = curand_normal(&s);
  for (int j = 0; j < 4; j++) wide[j * n + i] = curand_uniform_double(&s);
  for (int j = 4; j < 8; j++) wide[j * n + i] = curand_normal_double(&s);
}
__global__ void xorwow(unsigned *b, float *u, float *n, double *w) { draw<curandState>(b, u, n, w); }
__global__ void philox(unsigned *b, float *u, float *n, double *w) {
  draw<curandStatePhilox4_32_10_t>(b, u, n, w);
}
__global__ void fours(unsigned *b, float *u, float *n, double *w) {
  curandStatePhilox4_32_10_t s;
  curand_init(0, 0, 3, &s);
  uint4 x = curand4(&s);
  b[0] = x.x; b[1] = x.y; b[2] = x.z; b[3] = x.w;
}"""


def drawn(kernel: str, items: int = 4096) -> tuple[np.ndarray, ...]:
    sizes = {np.uint32: 4, np.float32: 4, np.float64: 8}
    types = (np.uint32, np.float32, np.float32, np.float64)
    arrays = tuple(np.zeros((sizes[dtype], items), dtype) for dtype in types)
    characterize(
        Launch(Kernel.from_source(RANDOM, kernel, form="cuda"), (items,), (min(items, 128),), arrays)
    )
    return arrays


@pytest.mark.parametrize("kernel", ["xorwow", "philox"])
def test_random_numbers_have_their_distributions(kernel: str) -> None:
    bits, uniform, normal, (*wide, a, b, c, d) = drawn(kernel)
    assert len(np.unique(bits)) > 0.999 * bits.size
    for values in (uniform, np.array(wide)):
        assert 0 < values.min() < values.max() <= 1
        assert values.mean() == pytest.approx(0.5, abs=0.01)
        assert values.var() == pytest.approx(1 / 12, rel=0.03)
    for values in (normal, np.array([a, b, c, d])):
        assert values.mean() == pytest.approx(0, abs=0.03)
        assert values.std() == pytest.approx(1, rel=0.02)
    assert np.abs(np.corrcoef(uniform)[np.triu_indices(4, 1)]).max() < 0.06


def test_philox_is_that_of_random123() -> None:
    # Known answers of Random123's philox4x32-10, for a key and counter of zeros.
    answers = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert drawn("philox", 1)[0].ravel().tolist() == answers
    assert drawn("fours", 1)[0].ravel()[0] == answers[3]


def test_complex_numbers() -> None:
    source = """#include <cuComplex.h>
    __global__ void k(const cuDoubleComplex *x, const cuDoubleComplex *y, cuDoubleComplex *out) {
      int i = threadIdx.x, n = blockDim.x;
      out[i] = cuCmul(x[i], y[i]);
      out[n + i] = cuCdiv(x[i], y[i]);
      out[2 * n + i] = cuCsub(cuConj(x[i]), cuCfma(x[i], y[i], y[i]));
      out[3 * n + i] = make_cuDoubleComplex(cuCabs(x[i]), cuCreal(cuCadd(x[i], y[i])));
    }"""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 64)) + 1j * rng.normal(size=(2, 64))
    out = np.zeros((4, 64), complex)
    parts = [np.ascontiguousarray(each).view(np.float64) for each in (x, y)]
    result = out.view(np.float64)
    characterize(Launch(Kernel.from_source(source, "k", form="cuda"), (64,), (64,), (*parts, result)))
    np.testing.assert_allclose(
        out, [x * y, x / y, x.conj() - (x * y + y), np.abs(x) + 1j * (x + y).real], rtol=1e-12
    )


STD = """
#include <array>
#include <cuda/std/type_traits>
#include <type_traits>
#include <utility>
template <class T, class = std::enable_if_t<std::is_integral_v<T>>> __device__ int kind(T) { return 1; }
template <class T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
__device__ int kind(T) { return 2; }
template <size_t... i> __device__ int squares(std::index_sequence<i...>) { return (0 + ... + (int)(i * i)); }
template <class F, class... A> __device__ auto apply(F &&f, A &&...a) {
  return std::forward<F>(f)(std::forward<A>(a)...);
}
static_assert(std::is_same_v<std::common_type_t<char, int, float>, float>);
static_assert(std::is_same<std::decay_t<const int &>, int>::value);
static_assert(std::conjunction_v<std::is_pointer<int *>, std::negation<std::is_const<int>>>);
static_assert(std::is_same_v<cuda::std::conditional_t<true, int, long>, int>);
static_assert(std::is_unsigned<std::make_unsigned_t<int>>() && !std::is_floating_point_v<half>);
static_assert(std::is_base_of_v<std::true_type, std::is_void<void>>);
static_assert(std::is_same_v<std::invoke_result_t<float (*)(int), int>, float>);
__global__ void k(int *out) {
  out[0] = kind(1) + 10 * kind(1.0f);
  out[1] = squares(std::make_index_sequence<4>());
  std::array<int, 3> some = {1, 2, 4};
  for (int x : some) out[2] += x;
  for (int x : {8, 16}) out[2] += x;
  auto [first, second] = std::make_pair(out[2], 0.5);
  out[3] = first * second + std::exchange(some[1], 5) + some.size();
  out[4] = apply([](int a, int &&b) { return a - b; }, 7, std::move(some[1]));
}"""


@pytest.mark.parametrize("form", ["cuda", "hip"])
def test_traits_pairs_and_arrays_of_the_library_of_cpp(form: Literal["cuda", "hip"]) -> None:
    out = np.zeros(5, np.int32)
    characterize(Launch.on_grid(Kernel.from_source(STD, "k", form=form), 1, 1, (out,)))
    assert out.tolist() == [21, 14, 31, 20, 2]


LIBCU = """
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int *in, int *out, int *sums) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> count;
  __shared__ int x[64], y[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  int i = threadIdx.x;
  if (i == 0) { count = 0; init(&bar, blockDim.x); }
  __syncthreads();
  count.fetch_add(in[i], cuda::memory_order_relaxed);
  cuda::memcpy_async(&x[i], &in[i], sizeof(int), bar);
  bar.wait(bar.arrive());
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  pipe.producer_acquire();
  cuda::memcpy_async(block, y, in, cuda::aligned_size_t<16>(sizeof y), pipe);
  pipe.producer_commit();
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  out[i] = x[63 - i] + y[(i + 1) % 64];
  pipe.consumer_release();
  cuda::atomic_ref<int, cuda::thread_scope_device> sum(sums[0]), most(sums[1]);
  cuda::std::atomic_ref<int> least(sums[2]);
  if (i == 0) sum += count.load();
  most.fetch_max(in[i]);
  int old = least.load();
  while (in[i] < old && !least.compare_exchange_weak(old, in[i])) {}
}"""


def test_atomics_barriers_and_pipelines_of_libcu() -> None:
    values = np.random.default_rng(0).integers(0, 1000, 64).astype(np.int32)
    out, sums = np.zeros(64, np.int32), np.array([0, 0, 5000], np.int32)
    kernel = Kernel.from_source(LIBCU, "k", form="cuda")
    profile = characterize(Launch.on_grid(kernel, 1, 64, (values, out, sums)))
    np.testing.assert_array_equal(out, values[::-1] + np.roll(values, -1))
    assert sums.tolist() == [values.sum(), values.max(), values.min()]
    assert profile.launch["instructions"]["atomics"]["local"] >= 64
