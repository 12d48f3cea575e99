"""CUDA's operations on the bytes and halves of a word, and on half and bfloat16, against NumPy."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch
from support.cuda_rows import evaluate, operations

Array = np.ndarray
Expected = Callable[[Array, Array, Array], Any]
N = 64
_rng = np.random.default_rng(5)
_ENDS = _rng.choice(np.array([0, 1, 0x7F, 0x80, 0xFF], np.uint8), (3, N // 2, 4)).view(np.uint32)[:, :, 0]
WORDS = np.concatenate([_ENDS, _rng.integers(0, 2**32, (3, N // 2)).astype(np.uint32)], axis=1)

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less,
}  # fmt: skip


def of_parts(parts: str, f: Any) -> Expected:
    """A function of the parts of words, such as `u1` for unsigned bytes; results wrap around."""

    def expected(*words: Array) -> Any:
        count = f.__code__.co_argcount - len(f.__defaults__ or ())
        results = f(*(word.view(parts).astype(int) for word in words[:count]))
        return results.astype(f"u{parts[1]}").view(np.uint32)

    return expected


def compared(f: Callable[[Array, Array], Array], holds: int) -> Callable[[Array, Array], Array]:
    return lambda x, y: holds * f(x, y).astype(int)


def clipped(parts: str, values: Array) -> Any:
    limits = np.iinfo(parts)
    return np.clip(values, limits.min, limits.max)


def sum_of_parts(parts: str) -> Expected:
    def expected(a: Array, b: Array, c: Array) -> Any:
        x, y = (word.view(parts).astype(int).reshape(N, -1) for word in (a, b))
        return np.abs(x - y).sum(1)

    return expected


def _of_any_sign(n: int) -> dict[str, Expected]:
    signed, unsigned = f"i{4 // n}", f"u{4 // n}"
    return {
        f"__vadd{n}(a, b)": of_parts(unsigned, lambda x, y: x + y),
        f"__vsub{n}(a, b)": of_parts(unsigned, lambda x, y: x - y),
        f"__vneg{n}(a)": of_parts(unsigned, lambda x: -x),
        f"__vcmpeq{n}(a, b)": of_parts(unsigned, compared(np.equal, -1)),
        f"__vcmpne{n}(a, b)": of_parts(unsigned, compared(np.not_equal, -1)),
        f"__vseteq{n}(a, b)": of_parts(unsigned, compared(np.equal, 1)),
        f"__vsetne{n}(a, b)": of_parts(unsigned, compared(np.not_equal, 1)),
        f"__vcmpeq{n}(a, a)": lambda a, b, c: [2**32 - 1] * N,
        f"__vnegss{n}(a)": of_parts(signed, lambda x: clipped(signed, -x)),
        f"__vabs{n}(a)": of_parts(signed, lambda x: np.abs(x)),
        f"__vabsss{n}(a)": of_parts(signed, lambda x: clipped(signed, np.abs(x))),
        f"__vhaddu{n}(a, b)": of_parts(unsigned, lambda x, y: (x + y) >> 1),
        f"__vavgu{n}(a, b)": of_parts(unsigned, lambda x, y: (x + y + 1) >> 1),
    }


def _of_a_sign(n: int, sign: str) -> dict[str, Expected]:
    parts = f"{'i' if sign == 's' else 'u'}{4 // n}"
    return {
        f"__vmax{sign}{n}(a, b)": of_parts(parts, lambda x, y: np.maximum(x, y)),
        f"__vmin{sign}{n}(a, b)": of_parts(parts, lambda x, y: np.minimum(x, y)),
        f"__vadd{sign}s{n}(a, b)": of_parts(parts, lambda x, y: clipped(parts, x + y)),
        f"__vsub{sign}s{n}(a, b)": of_parts(parts, lambda x, y: clipped(parts, x - y)),
        f"__vabsdiff{sign}{n}(a, b)": of_parts(parts, lambda x, y: np.abs(x - y)),
        f"__vsad{sign}{n}(a, b)": sum_of_parts(parts),
        **{
            f"__vcmp{name}{sign}{n}(a, b)": of_parts(parts, compared(f, -1))
            for name, f in _COMPARISONS.items()
        },
        **{
            f"__vset{name}{sign}{n}(a, b)": of_parts(parts, compared(f, 1))
            for name, f in _COMPARISONS.items()
        },
    }


def _bounds(type_: str) -> dict[str, Expected]:
    """DPX, of words or of their halves."""
    parts = f"{'i' if type_[0] == 's' else 'u'}{2 if 'x2' in type_ else 4}"
    dtype = np.dtype(parts)

    def rows(tail: str, least: float) -> dict[str, Expected]:
        functions: dict[str, Callable[..., Array]] = {
            "__vimax3": lambda x, y, z: np.maximum(np.maximum(x, y), z),
            "__vimin3": lambda x, y, z: np.minimum(np.minimum(x, y), z),
            "__viaddmax": lambda x, y, z: np.maximum((x + y).astype(dtype).astype(int), z),
            "__viaddmin": lambda x, y, z: np.minimum((x + y).astype(dtype).astype(int), z),
        }
        return {
            f"{name}_{type_}{tail}(a, b, c)": of_parts(
                parts, lambda x, y, z, f=f: np.maximum(f(x, y, z), least).astype(int)
            )
            for name, f in functions.items()
        }

    found = rows("", -np.inf)
    if type_[0] == "s":
        found |= rows("_relu", 0)
        found[f"__vimax_{type_}_relu(a, b)"] = of_parts(parts, lambda x, y: np.maximum(np.maximum(x, y), 0))
        found[f"__vimin_{type_}_relu(a, b)"] = of_parts(parts, lambda x, y: np.maximum(np.minimum(x, y), 0))
    return found


def _halves(word: Array) -> Array:
    return word.view(np.int16).reshape(N, 2)


def found(mask: int, base: int, offset: int) -> int:
    """The position of a set bit from `base` on."""
    if offset == 0:
        return base if mask >> base & 1 else 2**32 - 1
    way = range(base, 32) if offset > 0 else range(base, -1, -1)
    places = [k for k in way if mask >> k & 1]
    return places[abs(offset) - 1] if len(places) >= abs(offset) else 2**32 - 1


FUNCTIONS: dict[str, Expected] = {
    **_of_any_sign(4), **_of_any_sign(2),
    **{text: f for n, sign in product((4, 2), "su") for text, f in _of_a_sign(n, sign).items()},
    **{text: f for type_ in ("s32", "u32", "s16x2", "u16x2") for text, f in _bounds(type_).items()},
    "__vibmax_s32(a, b, &p) ^ p": lambda a, b, c: (
        np.maximum(a.view("i4"), b.view("i4")).view("u4") ^ (a.view("i4") >= b.view("i4"))
    ),
    "__vibmin_u32(a, b, &p) ^ p": lambda a, b, c: np.minimum(a, b) ^ (a <= b),
    "(__vibmax_s16x2(a, b, &p, &q), p * 2 + q)": lambda a, b, c: (_halves(a) >= _halves(b)) @ [1, 2],
    "__vibmin_u16x2(a, b, &p, &q)": of_parts("u2", lambda x, y: np.minimum(x, y)),
    "__fns(a, b & 31, (int)(c & 15) - 8)": lambda a, b, c: [
        found(x, y & 31, (z & 15) - 8)
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ],
}  # fmt: skip


def test_functions_of_words() -> None:
    found = evaluate(FUNCTIONS, "unsigned", dict(zip("abc", WORDS, strict=True)), before="bool p, q;")
    for text, expected in FUNCTIONS.items():
        assert found[text].tolist() == [int(value) for value in expected(*WORDS)], text


COSTS = {
    "__vabsdiffu4(a, b)": {"int32": {"add": 1}},
    "__vsadu4(a, b)": {"int32": {"add": 1}},
    "__vadd4(a, b)": {"int32": {"add": 5, "joined": 1}},
    "__vsub4(a, b)": {"int32": {"add": 5, "joined": 2}},
    "__vcmpeq4(a, b)": {"int32": {"add": 5, "joined": 1}},
    "__vcmpgtu4(a, b)": {"int32": {"add": 5, "joined": 6}},
    "__vmaxu4(a, b)": {"int32": {"add": 6, "joined": 8}},
    "__vsubss4(a, b)": {"int32": {"add": 10, "joined": 6, "shift": 1}},
    "__vadd2(a, b)": {"int16": {"add": 2}},
    "__viaddmax_s16x2(a, b, a)": {"int16": {"add": 4}},
    "__viaddmax_s32(a, b, a)": {"int32": {"add": 2}},
}
"""Sums, logic and shifts of a call, and those that are one instruction with the next."""


@pytest.mark.parametrize("text", COSTS)
def test_an_operation_on_parts_costs_what_it_is_made_of(text: str) -> None:
    assert operations(text, COSTS, "unsigned", "ab") == COSTS[text]


# -- half and bfloat16, and pairs of them

OfReals = Callable[[Array, Array], Any]
_reals = np.random.default_rng(3)
_OF_REALS: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "exp2": np.exp2, "rint": np.rint,
    "exp10": lambda x: 10**x, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rcp": lambda x: 1 / x,
}  # fmt: skip
X = (_reals.integers(16, 256, N) / 64).astype(np.float32)
Y = (_reals.integers(-255, 256, N) / 128).astype(np.float32)
"""Both types have these numbers."""
TYPES = {"half": ("half2", 2**-10), "bfloat16": ("bfloat162", 2**-7)}
"""The name of pairs, and the distance of 1 from the next number, by the name of numbers."""


def _of_first(f: Callable[[Array], Array]) -> OfReals:
    return lambda x, y: f(x)


# `v` is the pair {x, y} and `w` {y, x}; `{n}` and `{n2}` are the types in names of functions.
NARROW: dict[str, OfReals] = {
    **{f"h{name}(x)": _of_first(f) for name, f in _OF_REALS.items()},
    **{f"h2{name}(v).x": _of_first(f) for name, f in _OF_REALS.items()},
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
OF_HALF: dict[str, OfReals] = {
    "__half2uint_ru(x)": lambda x, y: np.ceil(x),
    "__half2short_rd(y)": lambda x, y: np.floor(y),
    "__half2ll_rn(y)": lambda x, y: np.rint(y),
    "__half2ushort_rz((T)-1)": lambda x, y: 0,
    "__float2half_ru(1.0001f)": lambda x, y: 1 + 2**-10,
    "__float2half_rz(1.0009f)": lambda x, y: 1,
}


def texts(type_: str) -> dict[str, OfReals]:
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


@pytest.mark.parametrize("type_", TYPES)
def test_functions_of_narrow_reals(type_: str) -> None:
    before, digit = "T x = (T)r, y = (T)s, nan = (T)NAN; T2 v = {x, y}, w = {y, x};", TYPES[type_][1]
    found = evaluate(texts(type_), "float", {"r": X, "s": Y}, head(type_), before)
    for text, expected in texts(type_).items():
        wanted = np.broadcast_to(expected(X.astype(float), Y.astype(float)), N)
        np.testing.assert_allclose(found[text], wanted, rtol=digit, atol=digit, err_msg=text)


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


REAL_COSTS = {
    "hexp(x)": {"fp32": {"exp": 1}, "conversions": {"fp32": 2}},  # Of bfloat16
    "__hadd(x, y)": {"fp16": {"add": 1}},
    "__hfma(x, y, x)": {"fp16": {"fused": 1}},
    "__hfma2(v, w, v).x": {"fp16": {"fused": 1}},
    "__hlt(x, y) ? x : y": {"fp16": {"compare": 1, "select": 1}},
}


@pytest.mark.parametrize(("type_", "text"), [*product(TYPES, REAL_COSTS)][1:])
def test_arithmetic_of_narrow_reals_is_of_16_bits(type_: str, text: str) -> None:
    assert operations(text, REAL_COSTS, "T", "xy", head(type_), "T2 v = {x, y}, w = v;") == REAL_COSTS[text]
