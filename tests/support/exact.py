"""Conversions in exact arithmetic, the reference for those of OpenCL C, and numbers that are special."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from support.harness import DTYPES

FLOATS = ("half", "float", "double")
INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
MODES = ("rte", "rtz", "rtp", "rtn")
_ROUND: dict[str, Callable[[Fraction], int]] = {
    "rte": round,
    "rtz": math.trunc,
    "rtp": math.ceil,
    "rtn": math.floor,
}


def limits(base: str) -> tuple[int, int]:
    info = np.iinfo(DTYPES[base])
    return int(info.min), int(info.max)


def to_integer(value: float | int, mode: str) -> int | None:
    """The value rounded to an integer; ``None`` for NaN and infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(_ROUND[mode](Fraction(value)))


def to_float(value: float | int, base: str, mode: str) -> float:
    """The nearest number of the type in the mode's direction, or an infinity."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    info = np.finfo(DTYPES[base])
    exponent = max(_floor_log2(abs(exact)), int(info.minexp))
    unit = Fraction(2) ** (exponent - int(info.nmant))
    rounded = int(_ROUND[mode](exact / unit)) * unit
    largest = Fraction(float(info.max))
    if abs(rounded) <= largest:
        return math.copysign(float(rounded), exact)
    outward = mode == "rte" or mode == ("rtp" if exact > 0 else "rtn")
    return math.copysign(math.inf if outward else float(largest), exact)


def _floor_log2(value: Fraction) -> int:
    estimate = value.numerator.bit_length() - value.denominator.bit_length()
    return estimate if Fraction(2) ** estimate <= value else estimate - 1


def interesting(base: str) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """96 values where conversions go wrong: ends of ranges, ties, and their neighbours."""
    dtype = DTYPES[base]
    rng = np.random.default_rng(12)
    with np.errstate(over="ignore"):
        if base in INTEGERS:
            low, high = limits(base)
            powers = product((7, 8, 11, 12, 15, 24, 25, 31, 53, 54, 63), (-1, 0, 1), (1, -1))
            edges = [low, high, low + 1, high - 1, 0, 1, 65504, 65519, 65520, 2049, 2051]
            edges += [sign * ((1 << bits) + off) for bits, off, sign in powers]
            inside = np.array([each for each in edges if low <= each <= high], dtype)
            more = rng.integers(low, high, 96 - len(inside), dtype, endpoint=True)
            return np.concatenate([inside, more])
        info = np.finfo(dtype)
        ends = [float(1 << k) for k in (7, 8, 15, 16, 31, 32, 63)]
        ties = [0, 0.5, 1.5, 2.5, 0.3, 65504, 65519.998, 65520, 2**-25, 1.5 * 2**-24]
        limits_ = [info.max, np.inf, info.smallest_normal, info.smallest_subnormal]
        positive = np.array([*ties, *limits_, 1 + 2**-11, 1 + 2**-24, *ends], dtype)
        below = np.nextafter(positive[-len(ends) :], dtype(0))
        signed = np.concatenate([positive, -positive, below, -below, np.array([np.nan], dtype)])
        return np.concatenate([signed, rng.uniform(-300, 300, 96 - len(signed)).astype(dtype)])


def specials(base: str) -> npt.NDArray[Any]:
    """Zeros, ones, infinities, NaN and the ends of the normal and subnormal range."""
    info = np.finfo(DTYPES[base])
    values = [0.0, 1.0, 0.5, 1.5, 2.0, np.inf, info.max, info.smallest_normal, info.smallest_subnormal]
    positive = np.array(values, DTYPES[base])
    return np.concatenate([positive, -positive, np.array([np.nan], DTYPES[base])])


def pairs(base: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """All pairs of special values, and random ones: 432 altogether."""
    edges = specials(base)
    x, y = (side.ravel() for side in np.meshgrid(edges, edges))
    random = np.random.default_rng(2).uniform(-20, 20, (2, 432 - len(x))).astype(DTYPES[base])
    return np.concatenate([x, random[0]]), np.concatenate([y, random[1]])
