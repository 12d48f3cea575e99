"""What of CUDA and HIP is supported: each row of the page's table is run here, in both languages.

The table is printed by ``python tests/characterization/cuda/test_support_table.py``.

What of CUDA is not supported is refused before the kernel runs, with construct and line.
"""

import re
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.errors import CrosscastError, KernelFault
from crosscast.kernel import Argument, Image, Kernel, Launch
from crosscast.profile import Profile
from support.examples import one_in

PAGE = Path(__file__).parents[3] / "docs" / "cuda.md"
HEAD = """#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <curand_kernel.h>
#include <cuComplex.h>
#include <mma.h>
namespace cg = cooperative_groups; __constant__ int n; __device__ float sums[2] = {1, 2};
texture<float, 1, cudaReadModeElementType> line;
texture<float, 2, cudaReadModeElementType> plane;
surface<void, 2> written;
template <class T> __device__ T twice(T x) { return 2 * x; }
struct Base { __device__ virtual float f() { return 1; } };
struct Derived : Base { __device__ float f() override { return 2; } };
__device__ __noinline__ int deep(int n) { return n ? deep(n / 2 - 1) * 3 + n : 1; }
extern __device__ float elsewhere(float);
__global__ void other(float *x) { x[0] = 1; }
"""
SUPPORTED: dict[str, str] = {
    "templates, lambdas, overloads, classes": "auto f = [](float v) { return twice(v); }; x[0] = f(x[0]);",
    "`__shared__`, `extern __shared__`, barriers": "extern __shared__ float s[]; s[i] = x[i];"
    " __syncthreads(); x[i] = s[i];",
    "`__constant__`, `__device__` variables, by `--variable`": "x[i] = n + sums[0];",
    "texture references of linear memory (`tex1Dfetch`)": "x[i] = tex1Dfetch(line, i);",
    "texture references of arrays (`tex1D`, `tex2D`, `tex3D`), point and linear": ""
    "x[i] = tex2D(plane, i, 1);",
    "texture objects of linear memory, and of arrays by an image": "x[i] = tex2D<float>(image, i, 1);"
    " x[i] += tex1Dfetch<float>(image, i);",
    "shuffles and votes, with a mask and without": "x[i] = __shfl_down_sync(~0u, x[i], 1);"
    " x[i] += __shfl_xor(x[i], 2) + __any(1);",
    "inline PTX: arithmetic, bits, carries, loads and stores with hints, `atom`, `red`, `cp.async`": ""
    'asm("lop3.b32 %0, %0, 3, 5, 0x96;" : "+r"(i));',
    "atomics": "atomicAdd(&x[0], 1.0f); atomicCAS((int *)&x[1], 0, 1); atomicInc((unsigned *)&x[2], 3);",
    "`cooperative_groups`: blocks, tiles, `reduce`, scans": "auto b = cg::this_thread_block();"
    " auto t = cg::tiled_partition<8>(b);"
    " x[i] = cg::reduce(t, x[i], cg::plus<float>());",
    "CUB's sums, scans, loads and stores of warps and blocks": "typedef cub::BlockReduce<float, 8> R;"
    " __shared__ R::TempStorage t; x[i] = R(t).Sum(x[i]);",
    "cuRAND's XORWOW and Philox; `cuComplex.h`": "curandState s; curand_init(1, i, 0, &s);"
    " x[i] = cuCabsf(make_cuFloatComplex(curand_uniform(&s), curand_normal(&s)));",
    "copies by `__pipeline_memcpy_async` and `cg::memcpy_async`": "__shared__ float c[256];"
    " __pipeline_memcpy_async(&c[i], &x[i], 4); __pipeline_commit(); __pipeline_wait_prior(0); x[i] = c[i];"
    " auto b = cg::this_thread_block(); cg::memcpy_async(b, c, x, 4 * b.size()); cg::wait(b);"
    " x[i] = c[b.size() - 1 - i];",
    "atomics, barriers and pipelines of libcu++": "cuda::atomic_ref<float> sum(x[0]); sum += 1;"
    " x[i] += sum.load();",
    "`half`, `bfloat16`, pairs": "half2 h = __floats2half2_rn(x[0], 2); h = h * h + h;"
    " x[0] = __low2float(h) + __low2float(__hadd2(__float2bfloat162_rn(1), __float2bfloat162_rn(2)));",
    "bytes and halves of words (`__vadd4`, `__viaddmax_s16x2`)": "x[0] = __vadd4(i, i);",
    "`float4` and the other vectors": "float4 v = make_float4(1, 2, 3, x[0]); x[0] = v.w;",
    "mathematics, fast and rounded functions, `numeric_limits`": "x[0] = sqrt(2) + __expf(x[0]);"
    " x[0] += std::numeric_limits<float>::max();",
    "`type_traits`, `pair`, `array` and their like of `std`": "std::array<float, 1> a = {x[0]};"
    " std::conditional_t<std::is_same_v<int, long>, int, float> y = a[0]; x[0] = std::move(y);",
    "`printf`, `assert`": 'if (i > 99) printf("%d", i); assert(i < 99);',
    "`register`, narrowing in braces, `__launch_bounds__`": "register int k = i;"
    " uchar2 c = {(unsigned)k, 2u}; x[0] = c.y;",
}
REFUSED: dict[str, tuple[str, str]] = {
    "textures of layers, cubes and levels": (
        "x[0] = tex2DLod<float>(image, 1, 2, 0);",
        "a texture of layers",
    ),
    "surfaces": ("surf2Dwrite(1.0f, written, 0, 0);", "a surface"),
    "other inline PTX (`mma`, `ldmatrix`, `mbarrier`, `%smid`)": (
        'asm volatile("mov.u32 %0, %%smid;" : "=r"(*(int *)x));',
        "inline assembly",
    ),
    "dynamic parallelism": ("other<<<1, 1>>>(x);", "dynamic parallelism"),
    "cooperative grid launches": ("cg::this_grid().sync();", "synchronization of a whole grid"),
    "tensor cores (`wmma`)": (
        "using namespace nvcuda::wmma; fragment<accumulator, 16, 16, 16, float> f; fill_fragment(f, 0.0f);",
        "tensor cores",
    ),
    "virtual functions, function pointers": (
        "Base a; Derived b; Base *p = x[0] > 0 ? &a : &b; x[0] = p->f();",
        "a call through a function pointer",
    ),
    "recursion": ("x[0] = deep((int)x[0]);", "recursion"),
    "`malloc`, `new` in kernels": ("int *p = (int *)malloc(4); x[0] = *p;", "allocating memory in a kernel"),
    "functions of other files (separate compilation)": ("x[0] = elsewhere(x[0]);", "defined nowhere"),
    "clocks": ("x[0] = clock64();", "reading a clock"),
}


FORMS = ("cuda", "hip")


BODIES = [*SUPPORTED.values(), *(body for body, _ in REFUSED.values())]
BODIES += ["cudaGridDependencySynchronize(); if (i == 3) __trap();"]
SOURCE = HEAD + "".join(
    f"__global__ void __launch_bounds__(64) k{number}(float *x, cudaTextureObject_t image) {{"
    f" int i = threadIdx.x; {body} }}\n"
    for number, body in enumerate(BODIES)
)


def run(body: str, form: Any) -> None:
    variables: dict[str, Argument] = {"n": np.int32(3), "line": np.ones(8, np.float32)}
    variables["plane"] = Image(np.ones((4, 8), np.float32), "R")
    kernel = Kernel.from_source(SOURCE, f"k{BODIES.index(body)}", form=form)
    arguments = (np.ones(8, np.float32), variables["plane"])
    characterize(Launch.on_grid(kernel, 1, 8, arguments, shared=32, variables=variables))


@pytest.mark.parametrize(("name", "form"), one_in(3, product(SUPPORTED, FORMS)))
def test_what_the_table_says_is_supported_runs(name: str, form: Literal["cuda", "hip"]) -> None:
    run(SUPPORTED[name], form)


@pytest.mark.parametrize(("name", "form"), one_in(2, product(REFUSED, FORMS)))
def test_what_the_table_says_is_refused_is_refused(name: str, form: Literal["cuda", "hip"]) -> None:
    body, reason = REFUSED[name]
    with pytest.raises(CrosscastError) as caught:
        run(body, form)
    assert reason in str(caught.value)
    line = SOURCE[: SOURCE.index(body)].count("\n") + 1
    assert re.search(rf"line (1[56]|{line})\b", str(caught.value))


def table() -> str:
    rows = ["| CUDA and HIP | constructs |", "|---|---|"]
    rows += [
        f"| {heading} | {'; '.join(names)} |" for heading, names in (("run", SUPPORTED), ("refused", REFUSED))
    ]
    return "\n".join([*rows, ""])


def test_the_page_has_the_table() -> None:
    if not PAGE.exists():
        pytest.skip("no checkout")
    assert table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(table())


def launch(source: str, name: str = "k") -> Profile:
    kernel = Kernel.from_source(source, name, form="cuda")
    return characterize(Launch.on_grid(kernel, 1, 64, (np.ones(64, np.int32),)))


def test_what_is_refused_does_not_matter_where_it_is_not_used() -> None:
    launch("__global__ void a(int *o) { o[0] = clock(); } __global__ void b(int *o) { o[0] = 1; }", "b")


def test_functions_without_a_rounding_of_ours_are_compile_errors() -> None:
    with pytest.raises(CrosscastError, match=r"<source>:1: error: use of undeclared identifier '__fadd_rz'"):
        launch("__global__ void k(int *o) { o[0] = __fadd_rz(1.0f, 2.0f); }")


def test_a_failed_assertion_names_its_line() -> None:
    source = "#include <assert.h>\n__global__ void k(int *o) {\nassert(threadIdx.x %s);\n}"
    launch(source % "< 64")
    with pytest.raises(KernelFault, match="an assertion in line 3 failed in work-item 40"):
        launch(source % "!= 40")


def test_a_trap_is_told() -> None:
    with pytest.raises(KernelFault, match=r"a trap .* stopped work-group 0"):
        run(BODIES[-1], "cuda")


def test_printf_prints() -> None:
    body = 'if (!threadIdx.x) printf("%d of %s: %.2f\\n", o[0], "two", 0.5);'
    assert launch(f"__global__ void k(int *o) {{ {body} }}").printed == "1 of two: 0.50\n"
