"""Math functions against NumPy and SciPy in a wider type, within the error that OpenCL allows."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.special

from support.exact import pairs, specials
from support.examples import one_in
from support.harness import DTYPES, evaluate

Array = npt.NDArray[Any]
Wide = Callable[..., Array]

PI = np.longdouble("3.14159265358979323846264338327950288")
LENGTH = 240


def turned(x: Array) -> Array:
    """``x`` modulo 2, in [-1, 1]."""
    return np.asarray(x - 2 * np.rint(x / 2))


def sinpi(x: Array) -> Array:
    r = turned(x)
    folded = np.minimum(np.abs(r), 1 - np.abs(r))
    return np.asarray(np.copysign(np.sin(PI * folded), np.where(folded == 0, x, r)))


def cospi(x: Array) -> Array:
    return np.asarray(np.sin(PI * (0.5 - np.abs(turned(x)))))


def in_double(function: Wide) -> Wide:
    return lambda x: function(x.astype(np.float64)).astype(np.longdouble)


def log_gamma(x: float) -> float:
    """CPython's own, which raises where the limit is infinite."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def away_from_zero(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


# Name: reference, error allowed in units of the last place (OpenCL 1.2, section 7.4), range.
UNARY: dict[str, tuple[Wide, float, tuple[float, float]]] = {
    "acos": (np.arccos, 4, (-1, 1)),
    "acosh": (np.arccosh, 4, (1, 1000)),
    "acospi": (lambda x: np.arccos(x) / PI, 5, (-1, 1)),
    "asin": (np.arcsin, 4, (-1, 1)),
    "asinh": (np.arcsinh, 4, (-100, 100)),
    "asinpi": (lambda x: np.arcsin(x) / PI, 5, (-1, 1)),
    "atan": (np.arctan, 5, (-30, 30)),
    "atanh": (np.arctanh, 5, (-1, 1)),
    "atanpi": (lambda x: np.arctan(x) / PI, 5, (-30, 30)),
    "cbrt": (np.cbrt, 2, (-100, 100)),
    "ceil": (np.ceil, 0, (-100, 100)),
    "cos": (np.cos, 4, (-100, 100)),
    "cosh": (np.cosh, 4, (-10, 10)),
    "erf": (in_double(scipy.special.erf), 16, (-3, 3)),
    "erfc": (in_double(scipy.special.erfc), 16, (-3, 3)),
    "exp": (np.exp, 3, (-10, 10)),
    "exp10": (lambda x: np.power(np.longdouble(10), x), 3, (-4, 4)),
    "exp2": (np.exp2, 3, (-14, 15)),
    "expm1": (np.expm1, 3, (-10, 10)),
    "fabs": (np.abs, 0, (-100, 100)),
    "floor": (np.floor, 0, (-100, 100)),
    "lgamma": (in_double(np.vectorize(log_gamma)), 64, (3, 100)),
    "log": (np.log, 3, (0, 100)),
    "log10": (np.log10, 3, (0, 100)),
    "log1p": (np.log1p, 2, (-1, 100)),
    "log2": (np.log2, 3, (0, 100)),
    "logb": (lambda x: np.floor(np.log2(np.abs(x))), 0, (-100, 100)),
    "rint": (np.rint, 0, (-100, 100)),
    "round": (away_from_zero, 0, (-100, 100)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2, (0, 100)),
    "sin": (np.sin, 4, (-100, 100)),
    "sinh": (np.sinh, 4, (-10, 10)),
    "sinpi": (sinpi, 4, (-100.3, 100)),
    "sqrt": (np.sqrt, 0, (0, 100)),
    "tan": (np.tan, 5, (-100, 100)),
    "tanh": (np.tanh, 5, (-4, 4)),
    "tanpi": (lambda x: sinpi(x) / cospi(x), 6, (-100.3, 100)),
    "cospi": (cospi, 4, (-100.3, 100)),
    "tgamma": (in_double(scipy.special.gamma), 16, (0.1, 8)),
    "trunc": (np.trunc, 0, (-100, 100)),
}
FAST = ("cos", "exp", "exp10", "exp2", "log", "log10", "log2", "rsqrt", "sin", "sqrt", "tan")
for prefix in ("native_", "half_"):
    UNARY |= {prefix + name: (UNARY[name][0], 8192, (0.1, 10)) for name in FAST}
    UNARY[prefix + "recip"] = (lambda x: 1 / x, 8192, (0.1, 10))


def remainder(x: Array, y: Array) -> Array:
    """IEEE 754 remainder, element by element: doubles hold the smaller types exactly."""

    def one(a: float, b: float) -> float:
        return math.remainder(a, b) if math.isfinite(a) and b != 0 else math.nan

    return np.array([one(float(a), float(b)) for a, b in zip(x, y, strict=True)], np.longdouble)


def powr(x: Array, y: Array) -> Array:
    undefined = (x < 0) | np.isnan(x) | np.isnan(y) | ((y == 0) & ((x == 0) | np.isinf(x)))
    undefined |= (x == 1) & np.isinf(y)
    return np.where(undefined, np.nan, np.power(np.abs(x), y))


BINARY: dict[str, tuple[Wide, float]] = {
    "atan2": (np.arctan2, 6),
    "atan2pi": (lambda y, x: np.arctan2(y, x) / PI, 6),
    "copysign": (np.copysign, 0),
    "fdim": (lambda x, y: np.where(x <= y, 0, x - y), 0),
    "fmax": (np.fmax, 0),
    "fmin": (np.fmin, 0),
    "fmod": (np.fmod, 0),
    "hypot": (np.hypot, 4),
    "maxmag": (
        lambda x, y: np.where(np.abs(x) > np.abs(y), x, np.where(np.abs(y) > np.abs(x), y, np.fmax(x, y))),
        0,
    ),
    "minmag": (
        lambda x, y: np.where(np.abs(x) < np.abs(y), x, np.where(np.abs(y) < np.abs(x), y, np.fmin(x, y))),
        0,
    ),
    "pow": (np.power, 16),
    "powr": (powr, 16),
    "remainder": (remainder, 0),
}


def error(got: Array, expected: Array) -> float:
    """Largest error in units of the last place; infinite where only one is NaN or infinite."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(got.dtype)
        special = ~np.isfinite(rounded)
        same = (np.isnan(rounded) & np.isnan(got)) | (rounded == got)
        ulps = np.abs(got.astype(np.longdouble) - expected) / np.spacing(np.abs(rounded))
        return float(np.max(np.where(same, 0, np.where(special | ~np.isfinite(got), np.inf, ulps))))


def tolerance(base: str, allowed: float) -> float:
    """Error allowed; what must be correctly rounded is off by half a unit at most."""
    return min(max(allowed, 0.5), 1 if base == "half" else np.inf)


def points(base: str, low: float, high: float, seed: int) -> Array:
    values = np.random.default_rng(seed).uniform(low, high, LENGTH).astype(DTYPES[base])
    edges = specials(base)
    values[: len(edges)] = edges
    return values


# By twos, as hundreds of functions take long to compile.
CASES = [("float", 3), ("float", 1), ("double", 4), ("double", 1), ("half", 16), ("float", 8)]


@pytest.mark.parametrize(("base", "width"), one_in(2, CASES))
def test_unary_functions_are_as_exact_as_the_standard_asks(base: str, width: int) -> None:
    names = [n for n in UNARY if base == "float" or not n.startswith(("native_", "half_"))]
    for shared in sorted({UNARY[n][2] for n in names}):
        group = [n for n in names if UNARY[n][2] == shared]
        x = points(base, *shared, seed=1)
        got = evaluate({n: f"{n}(x)" for n in group}, base, {"x": x}, width)
        for name in group:
            reference, allowed, _ = UNARY[name]
            with np.errstate(all="ignore"):
                expected = np.asarray(reference(x.astype(np.longdouble)))
            assert error(got[name], expected) <= tolerance(base, allowed), name


@pytest.mark.parametrize(("base", "width"), [("float", 1), ("float", 4), ("double", 3), ("half", 2)])
def test_binary_functions_hold_for_all_pairs_of_special_values(base: str, width: int) -> None:
    x, y = pairs(base)
    got = evaluate({name: f"{name}(x, y)" for name in [*BINARY, "nextafter"]}, base, {"x": x, "y": y}, width)
    with np.errstate(all="ignore"):
        for name, (reference, allowed) in BINARY.items():
            expected = np.asarray(reference(x.astype(np.longdouble), y.astype(np.longdouble)))
            assert error(got[name], expected) <= tolerance(base, allowed), name
        assert np.array_equal(got["nextafter"], np.nextafter(x, y), equal_nan=True)


@pytest.mark.parametrize("base", ["float", "double", "half"])
def test_zeros_keep_their_signs(base: str) -> None:
    x = np.array([0.0, -0.0, -0.25, 0.25, 3.0, -3.0, 2.0, -2.0], DTYPES[base])
    names = ("rint", "ceil", "round", "cbrt", "sinpi", "tanpi")
    texts = {**{n: f"{n}(x)" for n in names}, "root": "rootn(x, 3)", "steps": "nextafter(x, x)"}
    got = {**evaluate(texts, base, {"x": x}, 8), **evaluate({"sin": "sin(x)"}, base, {"x": x[:4]}, 4)}
    for name, row in got.items():
        expected = np.array([1, -1, -1, 1, -1, 1, 1, -1]) if name == "tanpi" else x[: len(row)]
        assert np.array_equal(np.signbit(row), np.signbit(expected)), name


@pytest.mark.parametrize(("base", "width"), [("float", 4), ("double", 2), ("half", 8)])
def test_products_and_sums_round_as_often_as_they_say(base: str, width: int) -> None:
    dtype = DTYPES[base]
    rng = np.random.default_rng(3)
    x, y = (rng.uniform(-2, 2, 64).astype(dtype) for _ in range(2))
    z = (-(x * y)).astype(dtype)
    got = evaluate({"fma": "fma(x, y, z)", "mad": "mad(x, y, z)"}, base, {"x": x, "y": y, "z": z}, width)
    assert np.array_equal(got["mad"], np.zeros(64))
    parts = (map(Fraction, row.tolist()) for row in (x, y, z))
    exact = [float(a * b + c) for a, b, c in zip(*parts, strict=True)]
    assert np.array_equal(got["fma"], np.array(exact).astype(dtype))
    assert np.any(got["fma"] != 0)


@pytest.mark.parametrize(
    ("base", "width"), [("float", 1), ("float", 8), ("double", 1), ("double", 3), ("half", 4)]
)
def test_integer_exponents(base: str, width: int) -> None:
    sides = np.meshgrid(specials(base), np.array([-301, -8, -1, 0, 1, 2, 3, 30, 2000], np.int32))
    x, n = (np.resize(side, 192) for side in sides)
    x[171:] = np.random.default_rng(4).uniform(0.5, 90, 21)
    got = evaluate({f: f"{f}(x, n)" for f in ("ldexp", "pown", "rootn")}, base, {"x": x, "n": n}, width)
    wide = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        assert error(got["ldexp"], np.ldexp(wide, n)) <= 0.5
        assert error(got["pown"], np.power(wide, n)) <= tolerance(base, 16)
        magnitude = np.power(np.abs(wide), 1 / n.astype(np.longdouble))
        root = np.where(n % 2 != 0, np.copysign(magnitude, wide), magnitude)
        root[(n == 0) | ((wide < 0) & (n % 2 == 0))] = np.nan
        assert error(got["rootn"], root) <= tolerance(base, 16)
    exponents = evaluate({"ilogb": "ilogb(x)"}, "int", {"x": x}, width)["ilogb"]
    ordinary = np.isfinite(x) & (x != 0)
    assert np.array_equal(exponents[ordinary], np.frexp(wide[ordinary])[1] - 1)
    assert set(exponents[x == 0]) == {-(2**31)}
    assert set(exponents[~np.isfinite(x)]) == {2**31 - 1}


@pytest.mark.parametrize(("base", "width"), [("float", 1), ("float", 4), ("double", 3), ("half", 2)])
def test_second_results_through_pointers(base: str, width: int) -> None:
    x = np.resize(np.concatenate([specials(base), np.linspace(-7, 9, 29).astype(DTYPES[base])]), 48)
    suffix = str(width) if width > 1 else ""
    names = ("fract", "modf", "sincos")
    got = evaluate({n: f"({{{base}{suffix} t; {n}(x, &t);}})" for n in names}, base, {"x": x}, width)
    rest = evaluate({n: f"({{{base}{suffix} t; {n}(x, &t); t;}})" for n in names}, base, {"x": x}, width)
    wide = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        below_one = np.nextafter(DTYPES[base](1), DTYPES[base](0))
        fraction = np.where(
            np.isinf(wide), np.copysign(0, wide), np.minimum(wide - np.floor(wide), below_one)
        )
        assert error(got["fract"], fraction) <= 0.5
        assert error(rest["fract"], np.floor(wide)) == 0
        assert error(got["modf"], np.modf(wide)[0]) == 0
        assert error(rest["modf"], np.modf(wide)[1]) == 0
        assert error(got["sincos"], np.sin(wide)) <= tolerance(base, 4)
        assert error(rest["sincos"], np.cos(wide)) <= tolerance(base, 4)


@pytest.mark.parametrize(("base", "width"), [("float", 1), ("float", 16), ("double", 2), ("half", 3)])
def test_second_results_that_are_integers(base: str, width: int) -> None:
    x, y = pairs(base)
    suffix = str(width) if width > 1 else ""
    calls = {"frexp": "frexp(x, &t)", "lgamma_r": "lgamma_r(x, &t)", "remquo": "remquo(x, y, &t)"}
    got = evaluate({n: f"({{int{suffix} t; {c};}})" for n, c in calls.items()}, base, {"x": x, "y": y}, width)
    integers = evaluate(
        {n: f"({{int{suffix} t; {c}; t;}})" for n, c in calls.items()}, "int", {"x": x, "y": y}, width
    )
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(x.astype(np.longdouble))
        assert error(got["frexp"], mantissa) == 0
        finite = np.isfinite(x)
        assert np.array_equal(integers["frexp"][finite], exponent[finite])
        assert error(got["remquo"], remainder(x, y)) == 0
        positive = x > 0
        assert np.all(integers["lgamma_r"][positive] == 1)
        assert np.all(integers["lgamma_r"][(x < 0) & (x > -0.9)] == -1)
        expected = in_double(np.vectorize(log_gamma))(x[positive])
        assert error(got["lgamma_r"][positive], expected) <= tolerance(base, 64)
    for a, b, q in zip(x, y, integers["remquo"], strict=True):
        if np.isfinite(a) and np.isfinite(b) and b != 0:
            exact = round(Fraction(float(a)) / Fraction(float(b)))
            assert abs(int(q)) == abs(exact) & 127
            assert q == 0 or (q < 0) == (exact < 0)


def test_nan_carries_its_code() -> None:
    for code, quiet in (("ushort", 0x7E00), ("uint", 0x7FC00000), ("ulong", 0x7FF8 << 48)):
        x = np.array([0, 1, 77, 5], DTYPES[code])
        got = evaluate({"nan": f"as_{code}4(nan(x))"}, code, {"x": x}, 4)["nan"]
        assert np.array_equal(got, x | DTYPES[code](quiet)), code
