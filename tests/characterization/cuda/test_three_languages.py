"""The same kernel in CUDA, HIP, OpenCL C and C++ for OpenCL has the same profile."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch
from crosscast.profile import METRICS, Profile
from support.examples import one_in

# Written once: in CUDA the words of OpenCL C are macros, and the reverse for ids and barriers.
PAIRS = {
    "matrix product": (
        """__global__ void k(const float *a, const float *b, float *c, int n) {
             __shared__ float s[8][8], t[8][8];
             int x = threadIdx.x, y = threadIdx.y;
             int col = blockIdx.x * blockDim.x + x, row = blockIdx.y * blockDim.y + y;
             float sum = 0;
             for (int k = 0; k < n; k += 8) {
               s[y][x] = a[row * n + k + x]; t[y][x] = b[(k + y) * n + col];
               __syncthreads();
               for (int j = 0; j < 8; j++) sum += s[y][j] * t[j][x];
               __syncthreads();
             }
             c[row * n + col] = sum; }""",
        """kernel void k(global const float *a, global const float *b, global float *c, int n) {
             local float s[8][8], t[8][8];
             int x = get_local_id(0), y = get_local_id(1);
             int col = get_global_id(0), row = get_global_id(1);
             float sum = 0;
             for (int k = 0; k < n; k += 8) {
               s[y][x] = a[row * n + k + x]; t[y][x] = b[(k + y) * n + col];
               barrier(CLK_LOCAL_MEM_FENCE);
               for (int j = 0; j < 8; j++) sum += s[y][j] * t[j][x];
               barrier(CLK_LOCAL_MEM_FENCE);
             }
             c[row * n + col] = sum; }""",
    ),
    "histogram": (
        """__global__ void k(const float *a, const float *b, float *c, int n) {
             __shared__ int bins[16];
             int x = threadIdx.y * blockDim.x + threadIdx.x;
             if (x < 16) bins[x] = 0;
             __syncthreads();
             for (int i = x; i < n * n; i += blockDim.x * blockDim.y)
               atomicAdd(&bins[(int)(a[i] * 16)], 1);
             __syncthreads();
             if (x < 16) atomicAdd((int *)&c[x], bins[x]); }""",
        """kernel void k(global const float *a, global const float *b, global float *c, int n) {
             local int bins[16];
             int x = get_local_id(1) * get_local_size(0) + get_local_id(0);
             if (x < 16) bins[x] = 0;
             barrier(CLK_LOCAL_MEM_FENCE);
             for (int i = x; i < n * n; i += get_local_size(0) * get_local_size(1))
               atomic_add(&bins[(int)(a[i] * 16)], 1);
             barrier(CLK_LOCAL_MEM_FENCE);
             if (x < 16) atomic_add((global int *)&c[x], bins[x]); }""",
    ),
    "math and constants": (
        """__constant__ float w[3] = {0.25f, 0.5f, 0.25f};
           __device__ float wave(float x) { return sinf(x) * expf(-x) + sqrtf(fabsf(x)); }
           __global__ void k(const float *a, const float *b, float *c, int n) {
             int i = blockIdx.x * blockDim.x + threadIdx.x;
             if (i < 1 || i >= n - 1) return;
             float s = 0;
             for (int j = 0; j < 3; j++) s = fmaf(w[j], wave(a[i + j - 1]), s);
             c[i] = fmaxf(s, b[i]); }""",
        """constant float w[3] = {0.25f, 0.5f, 0.25f};
           float wave(float x) { return sin(x) * exp(-x) + sqrt(fabs(x)); }
           kernel void k(global const float *a, global const float *b, global float *c, int n) {
             int i = get_global_id(0);
             if (i < 1 || i >= n - 1) return;
             float s = 0;
             for (int j = 0; j < 3; j++) s = fma(w[j], wave(a[i + j - 1]), s);
             c[i] = fmax(s, b[i]); }""",
    ),
}
SIZE = 32
MAY_DIFFER = {
    # Of instructions, which may be 3 % more or fewer, and what follows from them
    *("opcode", "total_instruction_count", "min_itb", "max_itb", "median_itb", "min_ipt", "max_ipt"),
    *("median_ipt", "barriers_per_instruction", "load_imbalance"),
}


def profile(kernel: Kernel) -> tuple[Profile, Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.random((SIZE, SIZE), np.float32) for _ in range(2))
    c = np.zeros((SIZE, SIZE), np.float32)
    launch = Launch(kernel, (SIZE, SIZE), (8, 8), (a, b, c, np.int32(SIZE)))
    return characterize(launch), c


@pytest.mark.parametrize(("name", "language"), one_in(4, product(PAIRS, ["cuda", "hip", "clc++2021"])))
def test_the_profile_is_that_of_opencl(name: str, language: Any) -> None:
    cuda, opencl = PAIRS[name]
    if language == "clc++2021":
        made = Kernel.from_source(opencl, "k", standard=language)
    else:
        made = Kernel.from_source(cuda, "k", form=language, options=("-Oz",))
    expected, wanted = profile(Kernel.from_source(opencl, "k"))
    found, output = profile(made)
    np.testing.assert_allclose(output, wanted, rtol=1e-6)
    for metric in (metric.name for metric in METRICS):
        if metric not in MAY_DIFFER:
            assert found.metrics[metric] == expected.metrics[metric], metric
    for metric in ("total_instruction_count", "median_ipt", "max_itb"):
        assert found.metrics[metric] == pytest.approx(expected.metrics[metric], rel=0.03), metric


def test_cpp_for_opencl_has_templates_and_references() -> None:
    source = """
        template <class T> T twice(const T &x) { return x + x; }
        struct Pair { int a, b; int sum() const { return a + b; } };
        kernel void k(global int *o) {
          Pair p{1, 2};
          o[get_global_id(0)] = twice(o[get_global_id(0)]) + p.sum();
        }"""
    out = np.arange(8, dtype=np.int32)
    made = characterize(Launch(Kernel.from_source(source, "k", standard="clc++2021"), (8,), (4,), (out,)))
    assert out.tolist() == [2 * i + 3 for i in range(8)]
    assert made.program["standard"] == "clc++2021"


INDEXES = {
    "compared with a constant": "if (i == 0) a[j] = 2;",
    "compared with a number": "if (i > n && j > n) a[i * 64 + j] -= a[i * 64 + n] * a[n * 64 + j];",
    "compared with each other": "if (i == j) a[i] = 1; else a[i + 1] += 1;",
    "in a loop": "for (int k = i; k < 64; k += 7) a[k * 64 + j] *= 2;",
    "subtracted": "a[(63 - i) * 64 + j] = (float)(i - j);",
}
HEADS = {
    "one sum": "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    " int j = threadIdx.y + blockDim.y * blockIdx.y;",
    "variables": "int bx = blockIdx.x, tx = threadIdx.x; int i = bx * blockDim.x + tx;"
    " const int by = blockIdx.y; int j = by * blockDim.y + threadIdx.y;",
}


@pytest.mark.parametrize(("head", "body"), one_in(3, product(HEADS.values(), INDEXES.values())))
def test_the_index_of_a_thread_is_that_of_a_work_item(head: str, body: str) -> None:
    cuda = f"__global__ void k(float *__restrict__ a, int n) {{ {head} {body} }}"
    opencl = f"""kernel void k(global float *restrict a, int n) {{
                   int i = get_global_id(0); int j = get_global_id(1); {body} }}"""
    kernels = Kernel.from_source(cuda, "k", form="cuda", options=("-Oz",)), Kernel.from_source(opencl, "k")
    arguments = np.ones((64, 64), np.float32), np.int32(7)
    found, expected = (characterize(Launch(kernel, (64, 64), (32, 8), arguments)) for kernel in kernels)
    assert found.instructions == expected.instructions
