"""CUDA kernels by name, on grids of blocks: on the command line, in launch files and in Python."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from crosscast.characterization import characterize, frontend, launchfiles
from crosscast.characterization.cuda import compiler
from crosscast.characterization.frontend import load, parameters
from crosscast.errors import CrosscastError
from crosscast.kernel import Kernel, Launch, Program
from support.examples import one_in

SOURCE = """
#include <vector>
#include "not_here.h"
template <class T> __global__ void saxpy(int n, T a, const T *__restrict__ x, T *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
namespace ns { template <class T, int N = 5> __global__ void fill(T *x) { x[threadIdx.x] = (T)N; } }
extern "C" __global__ void plain(unsigned int *x, const float *y) { x[threadIdx.x] = y[0]; }
__global__ void twice(int *x) { x[0] *= 2; }
__global__ void twice(float *x) { x[0] *= 2; }
__global__ void reversed(float *x) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
template <class> __global__ void unnamed() {}
int main(int argc, char **argv) {
  std::vector<float> v(argc);
  return helper(v);
}
"""


def kernel(name: str, source: str = SOURCE) -> Kernel:
    return Kernel.from_source(source, name, form="cuda")


def test_kernels_have_the_names_of_the_source() -> None:
    assert load(kernel("").program).kernel_names == ("plain", "twice(int*)", "twice(float*)", "reversed")


@pytest.mark.parametrize(
    ("name", "types", "names"),
    [
        ("saxpy<float>", ["int", "float", "float*", "float*"], ["n", "a", "x", "y"]),
        ("saxpy< unsigned char >", ["int", "uchar", "uchar*", "uchar*"], ["n", "a", "x", "y"]),
        ("ns::fill<long long, 4>", ["long*"], ["x"]),
        ("plain", ["uint*", "float*"], ["x", "y"]),
        ("twice(float*)", ["float*"], ["x"]),
        ("_Z5twicePi", ["int*"], ["x"]),
    ],
)
def test_a_kernel_is_found_by_its_name(name: str, types: list[str], names: list[str]) -> None:
    found = parameters(kernel(name).program, name)
    assert [p.type_name for p in found] == types
    assert [p.name for p in found] == names


def test_a_name_without_arguments_is_that_of_the_kernel_that_is_no_template() -> None:
    source = """template <class T> __global__ void k(T *x) { x[0] = 1; }
    __global__ void k(float *x) { x[0] = 2; }
    void host(int *x) { k<int><<<1, 1>>>(x); }"""
    program = kernel("k", source).program
    assert load(program).kernel_names == ("k", "k<int>")
    assert [p.type_name for p in parameters(program, "k")] == ["float*"]


def test_a_template_runs_on_the_type_that_its_name_says() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    arguments = (np.int32(1000), np.float32(2), x, y)
    profile = characterize(Launch.on_grid(kernel("saxpy<float>"), 4, 256, arguments))
    assert np.array_equal(y, 2 * x + 1)
    assert profile.kernel == "saxpy<float>"
    assert profile.program["form"] == "cuda"
    assert profile.metrics["work_groups"] == 4
    assert profile.metrics["total_memory_footprint"] == 2000


SPELLINGS = ("ns::fill<float>", "ns::fill<real, SIX - 1>", "ns::fill< real >")
HOST = "void f(float *x) { ns::fill<float><<<1, 8>>>(x); ns::fill<real><<<1, 8>>>(x); }"


@pytest.mark.parametrize(("instance", "host"), one_in(2, product(SPELLINGS, ["", HOST])))
def test_an_instance_has_any_spelling(instance: str, host: str) -> None:
    x = np.zeros(8, np.float32)
    source = f"{SOURCE}\ntypedef float real; enum {{ SIX = 6 }};\n{host}"
    characterize(Launch.on_grid(Kernel.from_source(source, instance, form="cuda"), 1, 8, (x,)))
    assert x.tolist() == [5] * 8


@pytest.mark.parametrize(
    ("host", "compilations"),
    [("", 1), ("void f(float *x) { halve<float><<<1, 8>>>(x); }", 1), ("// halve<", 2)],
)
def test_an_instance_that_nothing_asks_for_is_compiled_once(
    host: str, compilations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def compile_cuda(program: Program, instance: str) -> compiler.Compiled:
        asked.append(instance)
        return compiler.compile_cuda(program, instance)

    monkeypatch.setattr(frontend, "compile_cuda", compile_cuda)
    text = f"template <class T> __global__ void halve(T *x) {{ x[threadIdx.x] /= 2; }}\n{host}\n"
    x = np.arange(8, dtype=np.float32)
    characterize(Launch.on_grid(kernel("halve<float>", text), 1, 8, (x,)))
    np.testing.assert_array_equal(x, np.arange(8) / 2)
    assert len(asked) == compilations


def test_dynamic_shared_memory_has_the_size_of_the_launch() -> None:
    x = np.arange(64, dtype=np.float32)
    profile = characterize(Launch.on_grid(kernel("reversed"), 1, 64, (x,), shared=256), check_bounds=True)
    assert np.array_equal(x, np.arange(64)[::-1])
    assert profile.metrics["total_barriers_hit"] == 64
    assert profile.metrics["local_accesses"] == 128
    assert profile.launch["shared_bytes"] == 256
    with pytest.raises(CrosscastError, match=r"out-of-bounds write of 4 bytes by work-item 32 in line 14"):
        characterize(Launch.on_grid(kernel("reversed"), 1, 64, (x,), shared=128), check_bounds=True)


SUITES = """
struct Node { int starting, no_of_edges; };
__global__ void bfs(const Node *nodes, int *edges, bool *mask, bool *updating, bool *visited, int *cost) {
  int tid = threadIdx.x;
  if (!mask[tid]) return;
  mask[tid] = false;
  for (int i = nodes[tid].starting; i < nodes[tid].no_of_edges + nodes[tid].starting; i++) {
    int id = edges[i];
    if (!visited[id]) { cost[id] = cost[tid] + 1; updating[id] = true; }
  }
}
__global__ void pathfinder(const int *wall, const int *from, int *to, int cols, int rows) {
  extern __shared__ int memory[];
  int *prev = memory, *result = memory + blockDim.x, tx = threadIdx.x;
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
"""


def test_structures_and_flags_are_as_in_suites() -> None:
    nodes, edges = np.array([[0, 2], [2, 0], [2, 1], [3, 1]], np.int32), np.array([1, 3, 3, 0], np.int32)
    mask, visited = np.array([True, False, True, False]), np.array([True, False, True, False])
    updating, cost = np.zeros(4, bool), np.array([3, -1, 3, -1], np.int32)
    characterize(Launch.on_grid(kernel("bfs", SUITES), 1, 4, (nodes, edges, mask, updating, visited, cost)))
    assert not mask.any()
    assert (updating.tolist(), cost.tolist()) == ([False, True, False, True], [3, 4, 3, 4])


def test_halves_of_shared_memory_may_change_places() -> None:
    rng = np.random.default_rng(3)
    wall, start = rng.integers(0, 10, (9, 128)).astype(np.int32), rng.integers(0, 10, 128).astype(np.int32)
    args, best = (wall, start, np.zeros(128, np.int32), np.int32(128), np.int32(9)), start
    for row in wall:
        left, right = np.pad(best, (1, 0), mode="edge")[:-1], np.pad(best, (0, 1), mode="edge")[1:]
        best = np.minimum(np.minimum(left, best), right) + row
    characterize(Launch.on_grid(kernel("pathfinder", SUITES), 1, 128, args, shared=1024))
    np.testing.assert_array_equal(args[2], best)


def test_a_launch_file_has_grid_block_and_shared(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    text = 'source = "k.cu"\nkernel = "reversed"\ngrid = [2, 3]\nblock = 32\nshared = 128\n'
    (tmp_path / "k.toml").write_text(f"{text}[[arg]]\nlength = 32\n[[launch]]\n[[launch]]\ngrid = 4\n")
    first, second = launchfiles.read(tmp_path / "k.toml")
    assert (first.global_size, first.local_size, first.shared) == ((64, 3), (32, 1), 128)
    assert second.global_size == (128,)


def test_functions_that_devices_inline_keep_arrays_in_registers() -> None:
    text = """__device__ inline void turn(float *a, int n) {
      int order[] = {0, 4, 2, 6, 1, 5, 3, 7};
      for (int j = 0; j < 8; j++) a[j] = a[j] * cosf(6.28f * order[j] / n) + sinf(a[order[j]]);
    }
    __global__ void k(float *x) {
      float a[8];
      for (int j = 0; j < 8; j++) a[j] = x[8 * threadIdx.x + j];
      turn(a, 512); __syncthreads(); turn(a, 64);
      for (int j = 0; j < 8; j++) x[8 * threadIdx.x + j] = a[j];
    }"""
    launch = Launch.on_grid(kernel("k", text), 1, 8, (np.ones(64, np.float32),))
    instructions = characterize(launch).launch["instructions"]
    assert "private" not in instructions["loads"]
    assert "div" not in instructions["fp32"]


@pytest.mark.parametrize("type_", ["", 'type = "uint3"\n', 'type = "uint"\n'])
def test_vectors_of_three_by_value_are_of_three(tmp_path: Path, type_: str) -> None:
    source = "__global__ void k(unsigned *x, uint3 a, bool b) { x[0] = b ? a.x + 10 * a.y + 100 * a.z : 0; }"
    (tmp_path / "k.cu").write_text(source)
    head = 'source = "k.cu"\nkernel = "k"\ngrid = 1\nblock = 1\n[[arg]]\nlength = 1\n'
    (tmp_path / "k.toml").write_text(f"{head}[[arg]]\n{type_}value = [1, 2, 3]\n[[arg]]\nvalue = true\n")
    [launch] = launchfiles.read(tmp_path / "k.toml")
    characterize(launch)
    assert np.asarray(launch.args[0]).tolist() == [321]


@pytest.mark.parametrize(
    ("name", "grid", "block", "shared", "message"),
    [
        ("plain", 0, 1, None, "grid must be 1 to 3 numbers of at least 1, found (0,)"),
        ("plain", 1, 0, None, "block must be 1 to 3 numbers of at least 1, found (0,)"),
        ("plain", 1, (64, 32), None, "a block has at most 1024 threads, found 64 x 32 = 2048"),
        ("plain", 1, 2048, None, "a block has at most 1024 threads, found 2048"),
        ("reversed", 1, 1, -1, "shared must be at least 0 bytes, found -1"),
        ("reversed", 1, 1, None, "<source>: reversed: line 14: the kernel uses dynamic shared memory"),
        ("twice", 1, 1, None, "'twice' may be any of twice(int*), twice(float*)"),
        ("saxpy", 1, 1, None, "'saxpy' is a template, which is named with its arguments: saxpy<T>"),
        ("other", 1, 1, None, "named with their arguments: saxpy<T>, fill<T, N>, unnamed<class>"),
        ("saxpy<flot>", 1, 1, None, "the kernels there are: plain, twice(int*), twice(float*), reversed"),
    ],
)
def test_bad_launches_are_refused(name: str, grid: int, block: int, shared: int | None, message: str) -> None:
    with pytest.raises(CrosscastError) as caught:
        characterize(Launch.on_grid(kernel(name), grid, block, (np.ones(1, np.float32),), shared=shared))
    assert message in str(caught.value)
