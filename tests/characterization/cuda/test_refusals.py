"""What of CUDA is not supported is refused before the kernel runs, with construct and line."""

from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.errors import CrosscastError, KernelFault
from crosscast.kernel import Kernel, Launch


def launch(body: str, **options: Any) -> None:
    source = f"""#include <cooperative_groups.h>
#include <mma.h>
#include <assert.h>
__global__ void other(int *o) {{ o[0] = 1; }}
__device__ __noinline__ int deep(int n) {{ return n ? deep(n / 2 - 1) * 3 + n : 1; }}
__device__ __noinline__ int flat(int n) {{ return n; }}
__global__ void k(int *o, cudaTextureObject_t t) {{
 {body}
}}
"""
    kernel = Kernel.from_source(source, "k", form="cuda")
    arguments = (np.ones(64, np.int32), None)
    characterize(Launch.on_grid(kernel, 1, 64, arguments, **options))


def test_what_is_refused_does_not_matter_where_it_is_not_used() -> None:
    launch("if (threadIdx.x > 2000) o[0] = o[1];")
    source = "__global__ void a(int *o) { o[0] = clock(); } __global__ void b(int *o) { o[0] = 1; }"
    characterize(Launch.on_grid(Kernel.from_source(source, "b", form="cuda"), 1, 1, (np.ones(1, np.int32),)))


def test_functions_without_a_rounding_of_ours_are_compile_errors() -> None:
    with pytest.raises(CrosscastError, match=r"<source>:8: error: use of undeclared identifier '__fadd_rz'"):
        launch("o[0] = __fadd_rz(1.0f, 2.0f);")


def test_a_failed_assertion_names_its_line() -> None:
    launch("assert(threadIdx.x < 64);")
    with pytest.raises(KernelFault, match="an assertion in line 9 failed in work-item 40"):
        launch("\n assert(threadIdx.x != 40);")


def test_printf_prints(capfd: pytest.CaptureFixture[str]) -> None:
    source = '__global__ void k(int *o) { if (!threadIdx.x) printf("%d of %s: %.2f\\n", o[0], "two", 0.5); }'
    kernel = Kernel.from_source(source, "k", form="cuda")
    profile = characterize(Launch.on_grid(kernel, 1, 32, (np.full(1, 7, np.int32),)))
    assert profile.printed == "7 of two: 0.50\n"
