"""A kernel has the same profile in OpenCL C, C++ for OpenCL, CUDA and HIP."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize, run
from crosscast.kernel import Kernel, Launch
from crosscast.profile import METRICS, Profile
from support.examples import one_in

_WORDS = {
    "KERNEL": ("kernel void", "__global__ void"),
    "GLOBAL": ("global", ""),
    "LOCAL": ("local", "__shared__"),
    "BARRIER": ("barrier(CLK_LOCAL_MEM_FENCE)", "__syncthreads()"),
    "FLOAT4": ("(float4)", "make_float4"),
    "ADD": ("atomic_add", "atomicAdd"),
    "CONSTANT": ("constant", "__constant__"),
    "DEVICE": ("", "__device__"),
    **{name.upper(): (name, f"{name}f") for name in ("rsqrt", "sqrt", "sin", "exp", "fabs", "fma", "fmax")},
    "ITEM": ("(int)get_local_id(0)", "(int)threadIdx.x"),
    "GROUP": ("(int)get_group_id(0)", "(int)blockIdx.x"),
    "INDEX": ("(int)get_global_id(0)", "(int)(blockIdx.x * blockDim.x + threadIdx.x)"),
}
_HEAD = """CONSTANT float weights[3] = {0.25f, 0.5f, 0.25f};
DEVICE float wave(float x) { return SIN(x) * EXP(-x) + SQRT(FABS(x)); }
"""
_GROUP, _GROUPS = 64, 4
# Type of the two arrays, and the body of a kernel of `n` elements
_KERNELS = {
    "components": ("float4", "float4 v = a[i]; b[i] = FLOAT4(v.x * 2, v.y + 1, v.z * v.w, v.w);"),
    "bytes": ("uchar4", "uchar4 v = a[i]; v.x = 255 - v.x; v.y = (v.x + v.y) / 2; b[i] = v;"),
    "bodies": (
        "float4",
        """
        float4 own = a[i];
        float x = 0, y = 0;
        for (int k = 0; k < n; k++) {
          float4 other = a[k];
          float u = other.x - own.x, v = other.y - own.y, w = other.z - own.z;
          float r = RSQRT(u * u + v * v + w * w + 0.01f) * other.w;
          x += u * r;
          y += v * r + w;
        }
        b[i] = FLOAT4(x, y, 0, 0);""",
    ),
    "waves": (
        "float",
        """
        if (i < 1 || i >= n - 1) return;
        float s = 0;
        for (int j = 0; j < 3; j++) s = FMA(weights[j], wave(a[i + j - 1]), s);
        b[i] = FMAX(s, a[i]);""",
    ),
    "tile": (
        "float",
        """
        LOCAL float tile[64 * 9];
        for (int k = 0; k < 8; k++) tile[ITEM * 9 + k] = a[k * n + i];
        BARRIER;
        for (int k = 0; k < 8; k++) b[i * 8 + k] = tile[ITEM * 9 + k];""",
    ),
    "sum": (
        "float",
        """
        LOCAL float sums[64];
        sums[ITEM] = a[i];
        BARRIER;
        for (int k = 32; k > 0; k >>= 1) {
          if (ITEM < k) sums[ITEM] += sums[ITEM + k];
          BARRIER;
        }
        if (ITEM == 0) b[GROUP] = sums[0];""",
    ),
    "histogram": (
        "int",
        """
        LOCAL int bins[64];
        bins[ITEM] = 0;
        BARRIER;
        ADD(&bins[a[i] & 63], 1);
        BARRIER;
        ADD(&b[ITEM], bins[ITEM]);""",
    ),
    "escape": (
        "float",
        """
        float x = 0, y = 0, c = a[i];
        int k = 0;
        while (k < 50 && x * x + y * y < 4) {
          float t = x * x - y * y + c;
          y = 2 * x * y + 0.3f;
          x = t;
          k++;
        }
        b[i] = k;""",
    ),
}


def _launch(name: str, form: Any, standard: str = "1.2", options: tuple[str, ...] = ()) -> Launch:
    type_, body = _KERNELS[name]
    kind = re.sub(r"4$", "", type_)
    source = (
        f"{_HEAD}KERNEL same(const GLOBAL {type_} *__restrict__ a, GLOBAL {type_} *__restrict__ b, int n) {{"
        f" int i = INDEX; {body} }}"
    )
    for word, spellings in _WORDS.items():
        source = re.sub(rf"\b{word}\b", spellings[form != "opencl-c"], source)
    dtype = {"uchar": np.uint8, "float": np.float32, "int": np.int32}[kind]
    items = _GROUP * _GROUPS
    arrays = np.arange(8 * items).astype(dtype), np.zeros(8 * items, dtype)
    of_form = {"standard": standard} if form == "opencl-c" else {}
    kernel = Kernel.from_source(source, "same", form=form, options=options, **of_form)
    return Launch.on_grid(kernel, _GROUPS, _GROUP, (*arrays, np.int32(items)))


_ADDRESSES = ("addresses", "free", "ids", "indexing")
"""Kinds of instructions that compute addresses, in integers of other sizes in CUDA."""
_INSTRUCTIONS = ("instructions_without_phi", "sub_group_instructions_without_phi")


_OF_INSTRUCTIONS = {
    *("opcode", "total_instruction_count", "min_itb", "max_itb", "median_itb", "min_ipt", "max_ipt"),
    *("median_ipt", "barriers_per_instruction", "load_imbalance", "mean_simd_width", "sd_simd_width"),
    "instructions_per_operand",
}
"""Metrics that follow from the number of instructions, which may be a few more or fewer."""


def _counts(profile: Profile) -> dict[str, Any]:
    """Counts that are the kernel's, whatever its language."""
    launch = profile.launch
    kinds = {kind: n for kind, n in launch["instructions"].items() if kind not in _ADDRESSES}
    kinds["branches"] = kinds["branches"].get("conditional")
    return {
        "instructions": kinds,
        "sub_groups": {
            width: {key: n for key, n in counts.items() if key not in _INSTRUCTIONS}
            for width, counts in launch["sub_groups"].items()
        },
        "work": {key: n for key, n in launch["work"].items() if key != "instructions"},
        **{key: launch[key] for key in ("access_patterns", "distinct_bytes", "reuse", "work_item")},
    }


# The table of `waves` may be set in CUDA, which compilers do not fold then.
_CASES = [(name, language) for name in _KERNELS for language in ("clc++2021", "cuda", "hip")]
_CASES = [each for each in _CASES if each not in (("waves", "cuda"), ("waves", "hip"))]


@pytest.mark.parametrize(("name", "language"), one_in(2, _CASES))
def test_what_a_kernel_does_is_not_a_matter_of_language(name: str, language: str) -> None:
    is_cpp = language.startswith("clc")
    launches = [_launch(name, "opencl-c"), _launch(name, "opencl-c" if is_cpp else language, language)]
    options = run.Options(optimize=True, host_time=False)
    opencl, other = (run.characterize_launch(launch, options=options) for launch in launches)
    np.testing.assert_array_equal(launches[0].args[1], launches[1].args[1])
    assert _counts(opencl) == _counts(other)
    for metric in METRICS:
        if metric.name not in _OF_INSTRUCTIONS:
            assert other.metrics[metric.name] == opencl.metrics[metric.name], metric.name
    for group, key, most in (("geometry", "registers", 4), ("path", "instructions", 3)):
        assert opencl.launch[group][key] == pytest.approx(other.launch[group][key], abs=most)


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


INDEXES = (
    "if (i == 0) a[j] = 2;",
    "if (i > n && j > n) a[i * 64 + j] -= a[i * 64 + n] * a[n * 64 + j];",
    "if (i == j) a[i] = 1; else a[i + 1] += 1;",
    "for (int k = i; k < 64; k += 7) a[k * 64 + j] *= 2;",
    "a[(63 - i) * 64 + j] = (float)(i - j);",
)
HEADS = (
    "int i = blockIdx.x * blockDim.x + threadIdx.x; int j = threadIdx.y + blockDim.y * blockIdx.y;",
    "int bx = blockIdx.x, tx = threadIdx.x; int i = bx * blockDim.x + tx;"
    " const int by = blockIdx.y; int j = by * blockDim.y + threadIdx.y;",
)


@pytest.mark.parametrize(("head", "body"), one_in(3, product(HEADS, INDEXES)))
def test_the_index_of_a_thread_is_that_of_a_work_item(head: str, body: str) -> None:
    cuda = f"__global__ void k(float *__restrict__ a, int n) {{ {head} {body} }}"
    opencl = f"""kernel void k(global float *restrict a, int n) {{
                   int i = get_global_id(0); int j = get_global_id(1); {body} }}"""
    kernels = Kernel.from_source(cuda, "k", form="cuda", options=("-Oz",)), Kernel.from_source(opencl, "k")
    arguments = np.ones((64, 64), np.float32), np.int32(7)
    found, expected = (characterize(Launch(kernel, (64, 64), (32, 8), arguments)) for kernel in kernels)
    assert found.instructions == expected.instructions
