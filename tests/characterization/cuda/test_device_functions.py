"""Every device function of CUDA's, against NumPy: one kernel for all that give the same type."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch
from support.cuda_rows import evaluate, operations
from support.examples import one_in

Array = np.ndarray
Expected = Callable[[Array, Array], Any]
N = 64
_rng = np.random.default_rng(7)
X = _rng.uniform(0.1, 3, N)
Y = _rng.uniform(-2, 2, N)
A = _rng.integers(-(2**31), 2**31, N).astype(np.int32)
B = _rng.integers(-1000, 1000, N).astype(np.int32)


_UNARY: dict[str, Any] = {
    "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "fabs": np.abs,
    "round": lambda x: np.floor(x + 0.5), "exp10": lambda x: 10.0**x, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x),
    "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc), "tgamma": np.vectorize(math.gamma),
    "lgamma": np.vectorize(math.lgamma), "logb": lambda x: np.floor(np.log2(x)),
    "nearbyint": np.rint, "rcbrt": lambda x: 1 / np.cbrt(x),
    "normcdf": np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
}  # fmt: skip
_BINARY: dict[str, Any] = {
    "pow": np.power, "atan2": np.arctan2, "fmod": np.fmod, "hypot": np.hypot, "fmax": np.fmax,
    "fmin": np.fmin, "fdim": lambda x, y: np.maximum(x - y, 0), "copysign": np.copysign,
    "remainder": np.vectorize(math.remainder), "rhypot": lambda x, y: 1 / np.hypot(x, y),
}  # fmt: skip


def _same(f: Callable[[Array], Any]) -> Expected:
    return lambda x, y: f(x)


REAL: dict[str, Expected] = {
    **{f"{name}{{f}}(x)": _same(f) for name, f in _UNARY.items()},
    **{f"{name}{{f}}(x, y)": f for name, f in _BINARY.items()},
    "fma{f}(x, y, 0.5{f})": lambda x, y: x * y + 0.5,
    "ldexp{f}(x, 3)": lambda x, y: x * 8,
    "asin{f}(y / 2)": lambda x, y: np.arcsin(y / 2),
    "acos{f}(y / 2)": lambda x, y: np.arccos(y / 2),
    "atanh{f}(y / 3)": lambda x, y: np.arctanh(y / 3),
    "acosh{f}(x + 1)": lambda x, y: np.arccosh(x + 1),
    "norm3d{f}(x, y, 1)": lambda x, y: np.sqrt(x * x + y * y + 1),
    "norm4d{f}(x, y, 1, 2)": lambda x, y: np.sqrt(x * x + y * y + 5),
    "rnorm3d{f}(x, y, 1) + rnorm4d{f}(x, y, 1, 1)": lambda x, y: (
        1 / np.sqrt(x * x + y * y + 1) + 1 / np.sqrt(x * x + y * y + 2)
    ),
    "erf{f}(erfinv{f}(y / 2.05{f}))": lambda x, y: y / 2.05,
    "erfc{f}(erfcinv{f}(x / 2))": lambda x, y: x / 2,
    "normcdf{f}(normcdfinv{f}(x / 4))": lambda x, y: x / 4,
    "erfcx{f}(y)": np.vectorize(lambda x, y: math.exp(y * y) * math.erfc(y)),
    "(p = frexp{f}(y, &n), p + 10 * n)": lambda x, y: np.frexp(y)[0] + 10 * np.frexp(y)[1],
    "llrint{f}(y) + 10 * llround{f}(x)": lambda x, y: np.rint(y) + 10 * np.floor(x + 0.5),
    'isnan(nan{f}("")) + 2 * isnormal(x) + 4 * isnormal(0 * x) + 8 * isnormal(x / 0)': lambda x, y: 3,
    "std::clamp(x, ({real})1, ({real})2) + std::max({x, y, x + 1})": lambda x, y: np.clip(x, 1, 2) + x + 1,
    "min(x, y)": np.minimum,
    "max(x, y)": np.maximum,
    "abs(y)": lambda x, y: np.abs(y),
    "std::max(x, y) + std::sqrt(x)": lambda x, y: np.maximum(x, y) + np.sqrt(x),
    "(sincos{f}(x, &p, &q), p + 10 * q)": lambda x, y: np.sin(x) + 10 * np.cos(x),
    "modf{f}(x, &p) + 10 * p": lambda x, y: np.modf(x)[0] + 10 * np.modf(x)[1],
    "isnan(x / 0 - x / 0) + 2 * isinf(x / 0) + 4 * (isfinite(x) != 0)": lambda x, y: np.full(N, 7.0),
    "pow(x, 2)": lambda x, y: x**2,
    "make_{real}4(x, y, 1, 2).y + make_{real}2(x, y).x": lambda x, y: x + y,
}
"""Expressions for float and double; `{f}` is the suffix of float's."""

FLOAT: dict[str, Expected] = {
    "__expf(x)": lambda x, y: np.exp(x),
    "__exp10f(x)": lambda x, y: 10**x,
    "__logf(x)": lambda x, y: np.log(x),
    "__log2f(x)": lambda x, y: np.log2(x),
    "__log10f(x)": lambda x, y: np.log10(x),
    "__sinf(x)": lambda x, y: np.sin(x),
    "__cosf(x)": lambda x, y: np.cos(x),
    "__tanf(y)": lambda x, y: np.tan(y),
    "__powf(x, y)": np.power,
    "__fdividef(x, y)": np.divide,
    "__saturatef(y)": lambda x, y: np.clip(y, 0, 1),
    "(__sincosf(x, &p, &q), p + 10 * q)": lambda x, y: np.sin(x) + 10 * np.cos(x),
    "__fadd_rn(x, y)": np.add,
    "__fsub_rn(x, y)": np.subtract,
    "__fadd_rn(__fmul_rn(x, y), -x)": lambda x, y: (x * y).astype(np.float32) - x,
    "__fdiv_rn(x, y)": np.divide,
    "__frcp_rn(x)": lambda x, y: 1 / x,
    "__fsqrt_rn(x)": lambda x, y: np.sqrt(x),
    "__frsqrt_rn(x)": lambda x, y: 1 / np.sqrt(x),
    "__fmaf_rn(x, y, x)": lambda x, y: x.astype(float) * y + x,
    "__int_as_float(__float_as_int(x))": lambda x, y: x,
    "__uint_as_float(__float_as_uint(x) & 0x7fffffff)": lambda x, y: np.abs(x),
    "__half2float(__float2half(x))": lambda x, y: x.astype(np.float16),
}

DOUBLE: dict[str, Expected] = {
    "__dadd_rn(x, y) - __dmul_rn(x, y)": lambda x, y: (x + y) - x * y,
    "__ddiv_rn(x, y)": np.divide,
    "__fma_rn(x, y, 1)": lambda x, y: x * y + 1,
    "__longlong_as_double(__double_as_longlong(x))": lambda x, y: x,
    "__hiloint2double(__double2hiint(x), __double2loint(x))": lambda x, y: x,
}


def unsigned(a: Array, bits: int = 32) -> list[int]:
    return [int(v) % 2**bits for v in a.tolist()]


def of_bits(f: Callable[[int], Any]) -> Expected:
    return lambda a, b: [f(v) for v in unsigned(a)]


def wrapped(values: Any) -> Array:
    """Whole numbers of any size in 32 bits."""
    return np.array([int(v) % 2**32 for v in values], np.uint32).view(np.int32)


def permuted(x: int, y: int, selectors: int) -> int:
    """Four bytes of eight; those whose selector has bit 3 are all of the byte's sign."""
    data = (x | y << 32).to_bytes(8, "little")
    chosen = [(data[selectors >> 4 * k & 7], selectors >> 4 * k & 8) for k in range(4)]
    return int.from_bytes(bytes(255 * (byte >> 7) if sign else byte for byte, sign in chosen), "little")


def of_both(f: Callable[[int, int], int]) -> Expected:
    return lambda a, b: [f(x, y) for x, y in zip(unsigned(a), unsigned(b), strict=True)]


def dot(bytes_: type[np.integer[Any]], parts: tuple[int, int]) -> Expected:
    """The dot product of numbers packed in `a` with bytes of `b` from a first one on, plus one."""
    count, first = parts
    packed = np.dtype(f"{np.dtype(bytes_).kind}{4 // count}")
    return lambda a, b: (
        (a.view(packed).reshape(N, -1).astype(int) * b.view(bytes_).reshape(N, 4)[:, first:][:, :count]).sum(
            1
        )
        + 1
    )


DOTS = {"__dp4a": (4, 0), "__dp2a_lo": (2, 0), "__dp2a_hi": (2, 2)}
INTEGER: dict[str, Expected] = {
    "__popc(a)": of_bits(int.bit_count),
    "__popcll((long long)a)": lambda a, b: [v.bit_count() for v in unsigned(a, 64)],
    "__clz(a)": of_bits(lambda v: 32 - v.bit_length()),
    "__clz(0)": lambda a, b: [32] * N,
    "__clzll((long long)a)": lambda a, b: [64 - v.bit_length() for v in unsigned(a, 64)],
    "__ffs(a)": of_bits(lambda v: (v & -v).bit_length()),
    "__ffs(0)": lambda a, b: [0] * N,
    "__ffsll((long long)a << 20)": lambda a, b: [((v << 20) & -(v << 20)).bit_length() for v in a.tolist()],
    "__brev(a)": of_bits(lambda v: int(f"{v:032b}"[::-1], 2)),
    "(int)(__brevll((unsigned)a) >> 32)": of_bits(lambda v: int(f"{v:032b}"[::-1], 2)),
    "__mul24(b, b)": lambda a, b: b * b,
    "__umul24(b & 1023, 5)": lambda a, b: (b & 1023) * 5,
    "__mulhi(a, b)": lambda a, b: a.astype(int) * b >> 32,
    "__umulhi(a, b)": of_both(lambda x, y: x * y >> 32),
    "(int)__mul64hi((long long)a << 32, b)": lambda a, b: a.astype(int) * b >> 32,
    "__hadd(a, b)": lambda a, b: (a.astype(int) + b) >> 1,
    "__rhadd(a, b)": lambda a, b: (a.astype(int) + b + 1) >> 1,
    "__sad(a, b, 3)": lambda a, b: np.abs(a.astype(int) - b) + 3,
    "__usad(a, b, 3)": of_both(lambda x, y: abs(x - y) + 3),
    "__byte_perm(a, b, 0x5140)": of_both(lambda x, y: permuted(x, y, 0x5140)),
    "__byte_perm(a, b, 0xc8f3)": of_both(lambda x, y: permuted(x, y, 0xC8F3)),
    "__byte_perm(a, b, a ^ b)": of_both(lambda x, y: permuted(x, y, x ^ y)),
    "__funnelshift_l(a, b, 7)": of_both(lambda x, y: (y << 32 | x) << 7 >> 32),
    "__funnelshift_r(a, b, 7)": of_both(lambda x, y: (y << 32 | x) >> 7),
    "__funnelshift_l(a, b, b)": of_both(lambda x, y: (y << 32 | x) << y % 32 >> 32),
    "__funnelshift_r(a, b, b)": of_both(lambda x, y: (y << 32 | x) >> y % 32),
    "__funnelshift_lc(a, b, b & 63)": of_both(lambda x, y: (y << 32 | x) << min(y % 64, 32) >> 32),
    "__funnelshift_rc(a, b, b & 63)": of_both(lambda x, y: (y << 32 | x) >> min(y % 64, 32)),
    **{f"{name}(a, b, 1)": dot(np.int8, widths) for name, widths in DOTS.items()},
    **{f"(int){name}((unsigned)a, (unsigned)b, 1u)": dot(np.uint8, widths) for name, widths in DOTS.items()},
    "__dp4a(make_char4(a, b, 3, 4), make_char4(1, 2, b, 5), 7)": lambda a, b: (
        a.astype(np.int8).astype(int) + 5 * b.astype(np.int8).astype(int) + 27
    ),
    "min(a, b)": np.minimum,
    "max(a, b)": np.maximum,
    "umin(a, b)": lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)),
    "(int)min((unsigned)a, 7)": lambda a, b: np.minimum(a.view(np.uint32), 7),
    "abs(b)": lambda a, b: np.abs(b),
    "__float2int_rn(b * 0.3f)": lambda a, b: np.rint(b.astype(np.float32) * np.float32(0.3)),
    "__float2int_rz(b * 0.3f)": lambda a, b: np.trunc(b.astype(np.float32) * np.float32(0.3)),
    "__float2int_ru(b * 0.3f)": lambda a, b: np.ceil(b.astype(np.float32) * np.float32(0.3)),
    "__float2int_rd(b * 0.3f)": lambda a, b: np.floor(b.astype(np.float32) * np.float32(0.3)),
    "__float2int_rn(1e20f)": lambda a, b: [2**31 - 1] * N,
    "(int)__float2uint_rz(fabsf(b * 0.3f))": lambda a, b: np.trunc(
        np.abs(b.astype(np.float32) * np.float32(0.3))
    ),
    "(int)__double2ll_rn(b * 0.3)": lambda a, b: np.rint(b * 0.3),
    "(int)__int2float_rn(b)": lambda a, b: b,
    "__half2int_rn(__int2half_rn(b))": lambda a, b: b,
    "(int)__half_as_ushort(__ushort_as_half(12345))": lambda a, b: [12345] * N,
    "__ldg(a_ + i) + __ldcg(a_ + i)": lambda a, b: 2 * a.astype(int),
    "warpSize + (int)(blockDim.x + gridDim.x + threadIdx.y + blockIdx.z)": lambda a, b: [32 + N + 1] * N,
    "(int)cg::this_thread_block().thread_rank()": lambda a, b: np.arange(N),
    "make_int3(1, a, b).z + make_uchar4(1, 2, 3, 4).w": lambda a, b: b + 4,
    "std::numeric_limits<half>::digits + 100 * std::numeric_limits<int>::is_signed": lambda a, b: [111] * N,
    "std::numeric_limits<unsigned>::digits + 100 * std::numeric_limits<float>::is_integer": lambda a, b: (
        [32] * N
    ),
    "std::numeric_limits<__bf16>::lowest() < -3e38f && CUDART_LN2 < CUDART_SQRT_HALF_F": lambda a, b: [1] * N,
    "(int)sizeof(float4) * 1000 + (int)sizeof(float3) * 10 + (int)alignof(int2)": lambda a, b: [16128] * N,
}


HEAD = """
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <algorithm>
#include <cmath>
namespace cg = cooperative_groups;
"""


def spelled(real: str, suffix: str) -> dict[str, Expected]:
    return {t.replace("{f}", suffix).replace("{real}", real): f for t, f in REAL.items()}


@pytest.mark.parametrize(
    ("real", "suffix", "more", "digit"), [("float", "f", FLOAT, 1e-5), ("double", "", DOUBLE, 1e-13)]
)
def test_functions_of_reals(real: str, suffix: str, more: dict[str, Expected], digit: float) -> None:
    rows = {**spelled(real, suffix), **more}
    x, y = (values.astype("f4" if suffix else "f8") for values in (X, Y))
    found = evaluate(rows, real, {"x": x, "y": y}, HEAD, f"{real} p, q; int n;")
    for text, expected in rows.items():
        np.testing.assert_allclose(found[text], expected(x, y), rtol=digit, atol=digit / 10, err_msg=text)


def test_functions_of_integers() -> None:
    found = evaluate(INTEGER, "int", {"a": A, "b": B}, HEAD)
    for text, expected in INTEGER.items():
        np.testing.assert_array_equal(found[text], wrapped(expected(A, B)), err_msg=text)


ATOMICS: dict[str, tuple[str, str, list[float], list[float]]] = {
    # Type, what each of 64 threads does, and the memory before and after
    "atomicAdd": ("int", "atomicAdd(p, i)", [5], [5 + 2016]),
    "atomicAdd of unsigned": ("unsigned", "atomicAdd(p, 2u)", [1], [129]),
    "atomicAdd of long": ("unsigned long long", "atomicAdd(p, 1ull << 33)", [1], [1 + (64 << 33)]),
    "atomicAdd of float": ("float", "atomicAdd(p, 0.5f)", [1], [33]),
    "atomicAdd of double": ("double", "atomicAdd(p, 0.25)", [1], [17]),
    "atomicAdd_block": ("int", "atomicAdd_block(p, 1)", [0], [64]),
    "atomicAdd_system": ("float", "atomicAdd_system(p, 1.f)", [0], [64]),
    "atomicSub": ("int", "atomicSub(p, 3)", [0], [-192]),
    "atomicExch": ("int", "p[1] += i == 63 ? 0 : atomicExch(p, i)", [-1, 0], [62, -1 + 61 * 62 // 2]),
    "atomicExch of float": ("float", "atomicExch(p, (float)i)", [-1], [63]),
    "atomicMin": ("int", "atomicMin(p, -i)", [5], [-63]),
    "atomicMax of unsigned": ("unsigned", "atomicMax(p, (unsigned)i)", [5], [63]),
    "atomicMax of float": ("float", "atomicMax(p, (float)i)", [5], [63]),
    "atomicInc": ("unsigned", "atomicInc(p, 9u)", [0], [4]),
    "atomicDec": ("unsigned", "atomicDec(p, 9u)", [0], [6]),
    "atomicCAS": ("int", "atomicCAS(p, i, i + 1)", [0], [64]),
    "atomicAnd": ("unsigned", "atomicAnd(p, ~(1u << i % 32))", [2**32 - 1], [0]),
    "atomicOr": ("unsigned", "atomicOr(p, 1u << i % 32)", [0], [2**32 - 1]),
    "atomicXor": ("int", "atomicXor(p, i)", [7], [7]),
}
_DTYPES = {"int": np.int32, "unsigned": np.uint32, "unsigned long long": np.uint64, "float": np.float32}


ATOMIC_CASES = [*product([False, True], ATOMICS)]
ATOMIC_SOURCE = "".join(
    f"""__global__ void k{number}({type_} *out) {{
      __shared__ {type_} t[2];
      int i = threadIdx.x;
      {type_} *p = {"t" if shared else "out"};
      if (i < {len(before)}) t[i] = out[i];
      __syncthreads();
      {body};
      __syncthreads();
      if (i < {len(before)}) out[i] = p[i];
    }}
    """
    for number, (shared, name) in enumerate(ATOMIC_CASES)
    for type_, body, before, _ in [ATOMICS[name]]
)


@pytest.mark.parametrize(("shared", "name"), one_in(5, ATOMIC_CASES))
def test_an_atomic(name: str, shared: bool) -> None:
    type_, _, before, after = ATOMICS[name]
    out = np.array(before, _DTYPES.get(type_, np.float64))
    kernel = Kernel.from_source(ATOMIC_SOURCE, f"k{ATOMIC_CASES.index((shared, name))}", form="cuda")
    profile = characterize(Launch.on_grid(kernel, 1, 64, (out,)))
    assert out.tolist() == after
    assert profile.metrics["unique_writes"] == len(before) * (2 if shared else 1)


ONE_SUM = (
    *(f"{name}(a, b, c)" for name in DOTS),
    *(f"__funnelshift_{kind}(a, b, {count})" for kind, count in product(("l", "r", "lc", "rc"), "c7")),
    *("__byte_perm(a, b, c)", "__byte_perm(a, b, 0x5410)", "__byte_perm(a, 0, 0x0123)"),
    *("__sad(a, b, c)", "__usad(a, b, c)", "__popc(a)", "__clz(a)", "__brev(a)"),
    *("a << 7 | a >> 25", "a << (c & 31) | a >> (-c & 31)", "a << 7 | b >> 25"),
)


@pytest.mark.parametrize("expression", one_in(5, ONE_SUM))
def test_what_devices_do_at_once_costs_a_sum_or_a_shift(expression: str) -> None:
    """Dot products and permutations of bytes, and shifts of two words, are an instruction of 32 bits each."""
    kind = "shift" if "shift" in expression or "<<" in expression else "add"
    assert operations(expression, ONE_SUM, "unsigned", "abc") == {"int32": {kind: 1}}


def test_vectors_of_hip_have_operators_element_by_element() -> None:
    source = """
        #include <hip/hip_runtime.h>
        __device__ float2 operator+(float2 a, float2 b) { return {a.x + b.x + 100, a.y}; }
        __global__ void k(float4 *x) {
          float4 v = x[0] * 2 + x[1];
          v -= x[0];
          v /= 2;
          x[2] = 3 / -v;
          float2 own = make_float2(1, 2) + make_float2(3, 4);
          uint3 n = {1, 2, 3};
          x[3] = float4{own.x, own.y, (float)(n == n * 1u), (float)(n != n + n)};
        }"""
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = -6 / (x[0] + x[1])
    characterize(Launch.on_grid(Kernel.from_source(source, "k", form="hip"), 1, 1, (x,)))
    assert np.allclose(x[2], expected)
    assert x[3].tolist() == [104, 2, 1, 1]
