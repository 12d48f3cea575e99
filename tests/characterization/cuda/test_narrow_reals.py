"""CUDA's functions of half and bfloat16 and of pairs of them, against NumPy."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch
from support.cuda_rows import evaluate, operations

Array = np.ndarray
Expected = Callable[[Array, Array], Any]
N = 64
_rng = np.random.default_rng(3)
_UNARY: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "exp2": np.exp2, "rint": np.rint,
    "exp10": lambda x: 10**x, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rcp": lambda x: 1 / x,
}  # fmt: skip
X = (_rng.integers(16, 256, N) / 64).astype(np.float32)
Y = (_rng.integers(-255, 256, N) / 128).astype(np.float32)
"""Both types have these numbers."""
TYPES = {"half": ("half2", 2**-10), "bfloat16": ("bfloat162", 2**-7)}
"""The name of pairs, and the distance of 1 from the next number, by the name of numbers."""


def _of_first(f: Callable[[Array], Array]) -> Expected:
    return lambda x, y: f(x)


# `v` is the pair {x, y} and `w` {y, x}; `{n}` and `{n2}` are the types in names of functions.
NARROW: dict[str, Expected] = {
    **{f"h{name}(x)": _of_first(f) for name, f in _UNARY.items()},
    **{f"h2{name}(v).x": _of_first(f) for name, f in _UNARY.items()},
    "h2exp(v).y": lambda x, y: np.exp(y),
    "__hadd(x, y)": np.add,
    "__hsub_rn(x, y)": np.subtract,
    "__hmul(x, y)": np.multiply,
    "__hdiv(y, x)": lambda x, y: y / x,
    "__hfma(x, y, x)": lambda x, y: x * y + x,
    "__hfma_sat(x, y, x)": lambda x, y: np.clip(x * y + x, 0, 1),
    "__hfma_relu(x, y, x)": lambda x, y: np.maximum(x * y + x, 0),
    "__hadd_sat(x, y)": lambda x, y: np.clip(x + y, 0, 1),
    "__hmax(x, y)": np.maximum,
    "__hmin(x, y)": np.minimum,
    "__hmax(x, nan)": lambda x, y: x,
    "__hmin_nan(x, nan)": lambda x, y: x * np.nan,
    "__hneg(x)": lambda x, y: -x,
    "__habs(y)": lambda x, y: np.abs(y),
    "__hadd2(v, w).y": np.add,
    "__hsub2(v, w).x": np.subtract,
    "__hmul2_sat(v, w).x": lambda x, y: np.clip(x * y, 0, 1),
    "__hfma2(v, w, v).y": lambda x, y: x * y + y,
    "__h2div(w, v).x": lambda x, y: y / x,
    "__hmin2(v, w).x": np.minimum,
    "__habs2(v).y": lambda x, y: np.abs(y),
    "(-(v * w + v)).x": lambda x, y: -(x * y + x),
    "__heq(x, y)": np.equal,
    "__hlt2(v, w).x": np.less,
    "__hbge2(v, v) + 2 * __hblt2(v, w)": lambda x, y: np.ones(N),
    "__hgt2_mask(v, w) >> 16 & 1": lambda x, y: y > x,
    "__hne(x, nan) + 2 * __hneu(x, nan) + 4 * __hltu(x, nan) + 8 * __hlt(x, nan)": lambda x, y: 6,
    "__hisnan(nan) + 2 * __hisnan(x)": lambda x, y: 1,
    "__hisinf((T)-INFINITY) + 10 * __hisinf((T)INFINITY) + 100 * __hisinf(x)": lambda x, y: 9,
    "__float2{n}(3.14159f)": lambda x, y: 3.14159,
    "__{n}2float(__low2{n}(v)) + __high2float(v)": np.add,
    "__floats2{n2}_rn(1.5f, 2.5f).y": lambda x, y: 2.5,
    "__{n2}2float2(v).y": lambda x, y: y,
    "__ushort_as_{n}(__{n}_as_ushort(y))": lambda x, y: y,
    "__lowhigh2highlow(__halves2{n2}(x, y)).x": lambda x, y: y,
    "(T)Raw{__{n}_as_ushort(y)}": lambda x, y: y,
    "__{n}2int_rn(y)": lambda x, y: np.rint(y),
    "__{n}2int_rz(y)": lambda x, y: np.trunc(y),
}
OF_HALF: dict[str, Expected] = {
    "__half2uint_ru(x)": lambda x, y: np.ceil(x),
    "__half2short_rd(y)": lambda x, y: np.floor(y),
    "__half2ll_rn(y)": lambda x, y: np.rint(y),
    "__half2ushort_rz((T)-1)": lambda x, y: 0,
    "__float2half_ru(1.0001f)": lambda x, y: 1 + 2**-10,
    "__float2half_rz(1.0009f)": lambda x, y: 1,
}


def texts(type_: str) -> dict[str, Expected]:
    chosen = {**NARROW, **(OF_HALF if type_ == "half" else {})}
    return {text.replace("{n}", type_).replace("{n2}", TYPES[type_][0]): f for text, f in chosen.items()}


def head(type_: str) -> str:
    prefix = "__" if type_ == "half" else "__nv_"
    return f"""
        #include <cuda_fp16.h>
        #include <cuda_bf16.h>
        typedef {prefix}{type_} T;
        typedef {prefix}{TYPES[type_][0]} T2;
        typedef {prefix}{type_}_raw Raw;"""


@pytest.fixture(scope="module")
def results() -> dict[tuple[str, str], Array]:
    before = "T x = (T)r, y = (T)s, nan = (T)NAN; T2 v = {x, y}, w = {y, x};"
    return {
        (type_, row): values
        for type_ in TYPES
        for row, values in evaluate(texts(type_), "float", {"r": X, "s": Y}, head(type_), before).items()
    }


@pytest.mark.parametrize(("type_", "text"), [(type_, text) for type_ in TYPES for text in texts(type_)])
def test_a_function_of_narrow_reals(type_: str, text: str, results: dict[tuple[str, str], Array]) -> None:
    expected = np.broadcast_to(texts(type_)[text](X.astype(float), Y.astype(float)), N)
    digit = TYPES[type_][1]
    np.testing.assert_allclose(results[type_, text], expected, rtol=digit, atol=digit)


@pytest.mark.parametrize(("type_", "pair", "shared"), list(product(TYPES, [False, True], [False, True])))
def test_an_atomic_sum_of_narrow_reals_is_one_of_a_pair_too(type_: str, pair: bool, shared: bool) -> None:
    added = "T2{(T)1, (T)2}" if pair else "(T)1"
    name = "T2" if pair else "T"
    at = "&t" if shared else "out"
    body = f"__shared__ {name} t; if (i == 0) t = *out; __syncthreads(); atomicAdd({at}, {added});"
    body += f" __syncthreads(); if (i == 0) *out = *{at};"
    out = np.zeros(2, np.float16)
    source = f"{head(type_)}\n__global__ void k({name} *out) {{ int i = threadIdx.x; {body} }}"
    profile = characterize(Launch.on_grid(Kernel.from_source(source, "k", form="cuda"), 1, N, (out,)))
    bits = out.view(np.uint16)
    values = out if type_ == "half" else (bits.astype(np.uint32) << 16).view(np.float32)
    assert values.tolist() == ([64, 128] if pair else [64, 0])
    assert profile.launch["instructions"]["atomics"] == {"local_fp" if shared else "global_fp": N}


COSTS = {
    "hexp(x)": {"fp32": {"exp": 1}, "conversions": {"fp32": 2}},  # Of bfloat16
    "__hadd(x, y)": {"fp16": {"add": 1}},
    "__hfma(x, y, x)": {"fp16": {"fused": 1}},
    "__hfma2(v, w, v).x": {"fp16": {"fused": 1}},
    "__hlt(x, y) ? x : y": {"fp16": {"compare": 1, "select": 1}},
}


@pytest.mark.parametrize(("type_", "text"), [*product(TYPES, COSTS)][1:])
def test_arithmetic_of_narrow_reals_is_of_16_bits(type_: str, text: str) -> None:
    assert operations(text, "T", "xy", head(type_), "T2 v = {x, y}, w = v;") == COSTS[text]
