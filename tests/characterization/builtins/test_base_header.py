"""The base header: every version of the language compiles with it, and its constants are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness import DTYPES, evaluate

from crosscast.characterization import toolchain

COMMON = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
constant float table[3] = {NAN, INFINITY, MAXFLOAT};
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void everything(global float4 *a, global double3 *d, global half *h, local int *l, global long *q,
                       read_only image2d_t picture, write_only image3d_t volume, global int *n, sampler_t s) {
  size_t i = get_global_id(0);
  float4 whole;
  int exponent;
  a[0] = sin(a[1]) + fract(a[2], &whole) + native_rsqrt(a[5]) + table[1];
  a[1] = (float4)(NAN, HUGE_VALF, M_PI_F, FLT_EPSILON) + whole;
  d[i] = pow(d[i], (double3)M_PI) + convert_double3_rtz(a[i].xyz) * DBL_MAX;
  d[1].x = frexp(d[2].x, &exponent);
  vstore_half4_rte(a[i], i, h);
  vstore4(sin(vload4(0, h)) * HALF_MAX + M_PI_H, 1, h);
  atomic_add(n, 1); atom_add(q, 1L); atom_max(q, 3L); atomic_inc(l);
  a[4] = read_imagef(picture, nearest, (int2)(1, 2)) + read_imagef(picture, s, (float2)(1, 2));
  write_imagef(volume, (int4)(1, 2, 3, 0), a[2]);
  n[1] = get_image_width(picture) + get_image_channel_order(picture) - CLK_RGBA;
  event_t copied = async_work_group_copy(l, n, 10, 0);
  wait_group_events(1, &copied);
  prefetch(n, 3);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  mem_fence(CLK_LOCAL_MEM_FENCE);
  n[2] = as_int(a[1].x) + any(isnan(a[1])) + clz(n[6]) + mad_sat(1, 2, n[3]) + UINT_MAX + exponent;
  a[6] = select(shuffle(a[3], (uint4)(1, 2, 3, 0)), a[2], isless(a[3], a[4]));
}
"""
NEWER = """
kernel void newer(global int *n, local int *l) {
  int *anywhere = n[0] ? (int *)n : (int *)l;
  *anywhere = 3;
  atomic_int made;
  atomic_init(&made, 3);
  atomic_fetch_add_explicit((global atomic_int *)n, 1, memory_order_relaxed, memory_scope_device);
  work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_device);
  n[9] = work_group_reduce_add(3) + get_local_linear_id() + work_group_all(3);
  atomic_flag_test_and_set((global atomic_flag *)n);
}
"""


def compile_as(standard: str, source: str) -> None:
    arguments = [
        *("-x", "cl", f"-cl-std=CL{standard}", "-target", "spir64-unknown-unknown", "-S", "-emit-llvm"),
        *("-isystem", str(toolchain.INCLUDE_DIR), "-Wall", "-Werror"),
    ]
    toolchain.clang(arguments, source.encode(), "everything")


@pytest.mark.parametrize("standard", ["1.0", "1.1", "1.2", "2.0", "3.0"])
def test_every_version_of_the_language_compiles(standard: str) -> None:
    compile_as(standard, COMMON)
    if standard >= "1.2":
        compile_as(standard, 'kernel void say(int n) { printf("%d\\n", n + popcount(n)); }')
    if standard >= "2.0":
        compile_as(standard, NEWER)


@pytest.mark.parametrize(
    "absent", ["cl_khr_subgroups", "cl_intel_subgroups", "cl_amd_media_ops", "__opencl_c_pipes"]
)
def test_what_crosscast_does_not_run_is_not_announced(absent: str) -> None:
    compile_as("3.0", f"#ifdef {absent}\n#error announced\n#endif\nkernel void empty() {{}}")


def test_integer_limits() -> None:
    names = {"char": "CHAR", "short": "SHRT", "int": "INT", "long": "LONG"}
    for base, prefix in names.items():
        info = np.iinfo(DTYPES[base])
        got = evaluate({"low": f"{prefix}_MIN", "high": f"{prefix}_MAX"}, base, {"x": np.zeros(1, np.int32)})
        assert (got["low"][0], got["high"][0]) == (info.min, info.max)
        prefix = "USHRT" if base == "short" else f"U{prefix}"
        got = evaluate({"high": f"{prefix}_MAX"}, f"u{base}", {"x": np.zeros(1, np.int32)})
        assert got["high"][0] == np.iinfo(DTYPES[f"u{base}"]).max


CONSTANTS = {
    "E": math.e,
    "LOG2E": math.log2(math.e),
    "LOG10E": math.log10(math.e),
    "LN2": math.log(2),
    "LN10": math.log(10),
    "PI": math.pi,
    "PI_2": math.pi / 2,
    "PI_4": math.pi / 4,
    "1_PI": 1 / math.pi,
    "2_PI": 2 / math.pi,
    "2_SQRTPI": 2 / math.sqrt(math.pi),
    "SQRT2": math.sqrt(2),
    "SQRT1_2": math.sqrt(0.5),
}


@pytest.mark.parametrize(
    ("base", "prefix", "suffix"), [("half", "HALF", "_H"), ("float", "FLT", "_F"), ("double", "DBL", "")]
)
def test_floating_point_limits_and_constants(base: str, prefix: str, suffix: str) -> None:
    dtype = DTYPES[base]
    info = np.finfo(dtype)
    expected = {f"M_{name}{suffix}": dtype(value) for name, value in CONSTANTS.items()}
    expected |= {
        f"{prefix}_MAX": info.max,
        f"{prefix}_MIN": info.smallest_normal,
        f"{prefix}_EPSILON": info.eps,
        f"{prefix}_MANT_DIG": info.nmant + 1,
        f"{prefix}_DIG": info.precision,
        f"{prefix}_MAX_EXP": info.maxexp,
        f"{prefix}_MIN_EXP": info.minexp + 1,
    }
    got = evaluate({name: name for name in expected}, base, {"x": np.zeros(1, np.int32)})
    for name, value in expected.items():
        assert got[name][0] == dtype(value), name
