"""Kernels as the public suites of CUDA have them (PolyBench, Rodinia, SHOC): their outputs are right."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch
from support.examples import one_in

Array = np.ndarray
Case = Callable[[np.random.Generator], tuple[Any, Any, list[Any], dict[int, Array]]]
"""Makes grid, block, arguments and what arguments hold afterwards, by their numbers."""
CASES: dict[str, tuple[str, str, int | None, Case]] = {}


def case(name: str, source: str, shared: int | None = None) -> Callable[[Case], Case]:
    def keep(make: Case) -> Case:
        CASES[make.__name__] = (name, source, shared, make)
        return make

    return keep


def single(rng: np.random.Generator, *shape: int) -> Array:
    return rng.random(shape, np.float32)


# -- PolyBench: a thread an element of dense matrices


@case(
    "gemm<float, 16>",
    """
    #define BLOCK_X 16
    template <class T, int TILE> __global__ void gemm(int n, T alpha, T beta, const T *a, const T *b, T *c) {
      __shared__ T s[TILE][TILE], t[TILE][TILE + 1];
      const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
      T sum = 0;
      for (int k = 0; k < n; k += TILE) {
        s[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
        __syncthreads();
    #pragma unroll
        for (int j = 0; j < TILE; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
      }
      c[row * n + col] = alpha * sum + beta * c[row * n + col];
    }
    """,
)
def gemm(rng: np.random.Generator) -> Any:
    a, b, c = (single(rng, 64, 64) for _ in range(3))
    args = [np.int32(64), np.float32(1.5), np.float32(0.5), a, b, c]
    return (4, 4), (16, 16), args, {5: 1.5 * a @ b + 0.5 * c}


# -- Rodinia: flags, structures, halves of shared memory that change places


@case(
    "bfs",
    """
    struct Node { int starting, no_of_edges; };
    __global__ void bfs(const Node *nodes, const int *edges, bool *mask, bool *updating, bool *visited,
                        int *cost, int count) {
      int tid = blockIdx.x * 128 + threadIdx.x;
      if (tid < count && mask[tid]) {
        mask[tid] = false;
        for (int i = nodes[tid].starting; i < nodes[tid].no_of_edges + nodes[tid].starting; i++) {
          int id = edges[i];
          if (!visited[id]) {
            cost[id] = cost[tid] + 1;
            updating[id] = true;
          }
        }
      }
    }
    """,
)
def bfs(rng: np.random.Generator) -> Any:
    count = 200
    nodes = np.zeros((count, 2), np.int32)
    nodes[:, 1] = rng.integers(0, 6, count)
    nodes[1:, 0] = np.cumsum(nodes[:-1, 1])
    edges = rng.integers(0, count, int(nodes[:, 1].sum())).astype(np.int32)
    mask, visited = rng.random(count) < 0.2, rng.random(count) < 0.5
    visited |= mask
    cost, wanted, reached = np.where(visited, 3, -1).astype(np.int32), None, np.zeros(count, bool)
    wanted = cost.copy()
    for node in np.flatnonzero(mask):
        for target in edges[nodes[node, 0] : nodes[node].sum()]:
            if not visited[target]:
                wanted[target], reached[target] = 4, True
    args = [nodes, edges, mask, np.zeros(count, bool), visited, cost, np.int32(count)]
    return 2, 128, args, {2: np.zeros(count, bool), 3: reached, 5: wanted}


@case(
    "pathfinder",
    """
    __global__ void pathfinder(const int *wall, const int *from, int *to, int cols, int rows) {
      extern __shared__ int memory[];
      int *prev = memory, *result = memory + blockDim.x;
      int tx = threadIdx.x;
      prev[tx] = from[tx];
      __syncthreads();
      for (int r = 0; r < rows; r++) {
        int left = prev[max(tx - 1, 0)], up = prev[tx], right = prev[min(tx + 1, cols - 1)];
        result[tx] = min(min(left, up), right) + wall[r * cols + tx];
        __syncthreads();
        int *swapped = prev; prev = result; result = swapped;
      }
      to[tx] = prev[tx];
    }
    """,
    shared=1024,
)
def pathfinder(rng: np.random.Generator) -> Any:
    wall, start = rng.integers(0, 10, (9, 128)).astype(np.int32), rng.integers(0, 10, 128).astype(np.int32)
    best = start
    for row in wall:
        p = np.pad(best, 1, mode="edge")
        best = np.minimum(np.minimum(p[:-2], p[1:-1]), p[2:]) + row
    return 1, 128, [wall, start, np.zeros(128, np.int32), np.int32(128), np.int32(9)], {2: best}


# -- SHOC: templates on block sizes, warps, vector types


@case(
    "reduction<double, 128>",
    """
    template <class T> __device__ T warp_sum(T x) {
      for (int d = warpSize / 2; d > 0; d /= 2) x += __shfl_down_sync(0xffffffff, x, d);
      return x;
    }
    template <class T, int blockSize>
    __global__ void reduction(const T *__restrict__ in, T *__restrict__ out, unsigned n) {
      __shared__ T part[blockSize / 32];
      const unsigned grid = blockSize * 2 * gridDim.x;
      T sum = 0;
      for (unsigned i = blockIdx.x * blockSize * 2 + threadIdx.x; i < n; i += grid) {
        sum += in[i];
        if (i + blockSize < n) sum += in[i + blockSize];
      }
      sum = warp_sum(sum);
      if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
      __syncthreads();
      if (threadIdx.x >= 32) return;
      sum = warp_sum(threadIdx.x < blockSize / 32 ? part[threadIdx.x] : T(0));
      if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
    """,
)
def reduction(rng: np.random.Generator) -> Any:
    values = rng.random(1500)
    padded = np.pad(values, (0, 1536 - 1500)).reshape(-1, 2, 256)
    args = [values, np.zeros(2), np.uint32(1500)]
    return 2, 128, args, {1: padded.sum((0, 2))}


@pytest.mark.parametrize(("name", "form"), one_in(2, product(CASES, ["cuda", "hip"])))
def test_the_outputs_of_a_kernel_are_right(name: str, form: Any) -> None:
    kernel, source, shared, make = CASES[name]
    grid, block, args, wanted = make(np.random.default_rng(3))
    made = Kernel.from_source(source, kernel, form=form)
    profile = characterize(Launch.on_grid(made, grid, block, args, shared=shared), check_bounds=form == "hip")
    for position, value in wanted.items():
        np.testing.assert_allclose(args[position], value, rtol=2e-4, atol=1e-5)
    assert profile.program["form"] == form
    assert profile.metrics["work_groups"] == np.prod(grid)
