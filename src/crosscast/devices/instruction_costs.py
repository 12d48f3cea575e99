"""Operations of a launch, weighted by what each costs on the units of a device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

# Cost of an operation in instructions, where no unit does one in each clock: quotients are computed by
# iteration, transcendental functions by a unit of a quarter of the lanes. Most divisors of integers are
# constants, by which compilers divide with a product or a shift.
SPECIAL_COST = 4.0
_DIVISION_FP, _DIVISION_INT, _LIBRARY = 8.0, 4.0, 20.0
_UNIT_KINDS = ("add", "mul", "fused", "compare", "select", "other", "sqrt", "rsqrt", "recip", "div")
_FP_COSTS = {
    **dict.fromkeys(("add", "mul", "fused", "compare", "select", "other"), 1.0),
    **dict.fromkeys(("sqrt", "rsqrt", "recip", "native_exp", "native_log", "native_sin"), SPECIAL_COST),
    **dict.fromkeys(
        ("native_cos", "native_sqrt", "native_rsqrt", "native_recip", "native_div"), SPECIAL_COST
    ),
    **dict.fromkeys(("exp", "log", "half_exp", "half_log", "half_sqrt", "half_div"), 2 * SPECIAL_COST),
    "div": _DIVISION_FP,
}
EXP_COST = _FP_COSTS["exp"]
_ROOTS_AND_QUOTIENTS = frozenset(kind for kind in _FP_COSTS if kind.split("_")[-1] in _UNIT_KINDS)
_PRODUCTS = ("mul", "fused")  # Count apart
LONG_DIVISION_COST = 80.0
_INTEGERS = {"int16": (1.0, _DIVISION_INT), "int32": (1.0, _DIVISION_INT), "int64": (2.0, LONG_DIVISION_COST)}
"""Cost of an operation and of a division: GPUs divide 64 bits by a function."""

PRODUCT_COST = 2.0
"""Typical cost of an integer product, which units compute in several steps."""

JOINED_INTEGERS = 0.7
"""Typical cost on GPUs of an integer sum or an operation of logic: one instruction can do two of them."""

# Cost of integer operations that only compute addresses and control loops: a loop that is unrolled four times
# has a quarter of them, as offsets within it are part of the memory instructions.
_INDEXING = 0.25

_JOINED_BYTES = 16

Counts = Mapping[str, "Counts"] | float
"""A number, or nested numbers by name."""


def operation_counts(classes: Mapping[str, Any], total: float) -> dict[str, float]:
    """Return operations by class, weighted by cost, from the executed instructions by class and type.

    Private memory is in registers; most address computations are free. Without classes, `total` instructions
    are operations that are none of the other classes.
    """
    if not classes:
        return {
            "operations_real": 0.0,
            "operations_fp16": 0.0,
            "special": 0.0,
            "library": 0.0,
            "operations": total,
            "integers": 0.0,
            "products": 0.0,
            "long_divisions": 0.0,
            "operations_fp64": 0.0,
            "floating": 0.0,
        }
    halves = classes.get("fp16", {})
    half = sum(n for kind, n in halves.items() if _FP_COSTS.get(kind) == 1.0)
    # Other functions of halves are those of single precision.
    reals = Counter(classes.get("fp32", {})) + Counter(
        {kind: n for kind, n in halves.items() if _FP_COSTS.get(kind) != 1.0}
    )
    costs = {kind: _FP_COSTS.get(kind, _LIBRARY) * n for kind, n in reals.items()}
    special = sum(n for kind, n in reals.items() if SPECIAL_COST <= _FP_COSTS.get(kind, _LIBRARY) < _LIBRARY)
    library = sum(cost for kind, cost in costs.items() if kind not in _ROOTS_AND_QUOTIENTS)
    double = sum(_FP_COSTS.get(kind, _LIBRARY) * n for kind, n in classes.get("fp64", {}).items())
    others = 0.0
    for bits, (usual, division) in _INTEGERS.items():
        for kind, n in classes.get(bits, {}).items():
            others += n * (0.0 if kind in _PRODUCTS else division if kind == "div" else usual)
    with_sums = sum(_with_sum(classes, bits) for bits in ("int16", "int32"))
    others -= with_sums
    integers = sum(classes.get(bits, {}).get("add", 0) for bits in ("int16", "int32")) - with_sums
    others += sum(n for kind, n in classes.get("conversions", {}).items() if kind != "int") + classes.get(
        "branches", {}
    ).get("conditional", 0)
    for kind in ("loads", "stores", "atomics"):
        spaces = classes.get(kind, {})
        others += sum(total_of(sizes) for space, sizes in spaces.items() if space != "private")
    others += _joined(classes)
    indexing = classes.get("indexing", {})
    products = sum(
        times * (n.get("mul", 0) + n.get("fused", 0))
        for bits, times in (("int16", 1.0), ("int32", 1.0), ("int64", 3.0))
        for n in (classes.get(bits, {}),)
    )
    others += _INDEXING * sum(total_of(n) for kind, n in indexing.items() if kind != "conversions")
    others += 4.0 * (total_of(classes.get("barriers", 0)) + total_of(classes.get("collectives", 0)))
    real = classes.get("fp32", {})
    floating = sum(real.get(kind, 0) for kind in ("add", "mul", "fused")) - min(
        real.get("add", 0), real.get("mul", 0)
    )
    return {
        "operations_real": float(sum(costs.values())),
        "operations_fp16": float(half),
        "special": float(special),
        "library": float(library),
        "operations": float(others),
        "integers": float(integers),
        "products": float(products),
        "long_divisions": float(classes.get("int64", {}).get("div", 0)),
        "operations_fp64": float(double),
        "floating": float(floating),
    }


def _with_sum(classes: Mapping[str, Any], bits: str) -> float:
    """Return the integer additions that are one instruction with a product."""
    n = classes.get(bits, {})
    return float(min(n.get("mul", 0), n.get("add", 0)))


def _joined(classes: Mapping[str, Any]) -> float:
    """Return the loads of local memory that consecutive ones become."""
    sizes = classes.get("consecutive", {}).get("local", {})
    return float(sum(n * int(size) for size, n in sizes.items())) / _JOINED_BYTES


def saved_loads(classes: Mapping[str, Any]) -> float:
    """Return the share of loads of local memory that compilers leave out, or join with others.

    From the executed instructions by class and type.
    """
    kinds = ("loads", "reloads", "consecutive")
    once, again, parts = (total_of(classes.get(kind, {}).get("local", 0)) for kind in kinds)
    return (again + parts - _joined(classes)) / max(once + again + parts, 1.0)


def total_of(counts: Counts) -> float:
    """Return the sum of nested numbers."""
    return float(sum(map(total_of, counts.values()))) if isinstance(counts, Mapping) else float(counts)
