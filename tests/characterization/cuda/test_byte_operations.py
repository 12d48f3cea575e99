"""CUDA's operations on the bytes and halves of a word, and least and greatest of sums, against NumPy."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

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


@pytest.fixture(scope="module")
def results() -> dict[str, Array]:
    return evaluate(FUNCTIONS, "unsigned", dict(zip("abc", WORDS, strict=True)), before="bool p, q;")


@pytest.mark.parametrize("text", FUNCTIONS)
def test_a_function_of_words(text: str, results: dict[str, Array]) -> None:
    assert results[text].tolist() == [int(value) for value in FUNCTIONS[text](*WORDS)]


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
    assert operations(text, "unsigned", "ab") == COSTS[text]
