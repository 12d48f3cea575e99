"""The work of a launch that limits its time on any device, from the counts of its profile.

Its operations are weighted by what each costs on the units of a device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from crosscast.profile import Profile, bytes_outside

# Cost of an operation in instructions, where no unit does one in each clock: quotients are computed by
# iteration, transcendental functions by a unit of a quarter of the lanes.
SPECIAL_COST = 4.0
_LIBRARY = 20.0
_OF_ONE = ("add", "mul", "fused", "compare", "select", "other")
_UNIT_KINDS = (*_OF_ONE, "sqrt", "rsqrt", "recip", "div")
_FP_COSTS = {
    **dict.fromkeys(_OF_ONE, 1.0),
    **dict.fromkeys(("sqrt", "rsqrt", "recip", "native_exp", "native_log", "native_sin"), SPECIAL_COST),
    **dict.fromkeys(
        ("native_cos", "native_sqrt", "native_rsqrt", "native_recip", "native_div"), SPECIAL_COST
    ),
    **dict.fromkeys(("exp", "native_pow", "half_exp", "half_log", "half_sqrt"), 2 * SPECIAL_COST),
    **dict.fromkeys(("div", "half_div"), 2 * SPECIAL_COST),
}
"""Of single precision, without rare paths, as nvcc 12.9 compiles for sm_80; others are a `_LIBRARY`."""
_FP_COSTS |= {"log": 24.0, "atan": 24.0, "asin": 27.0, "acos": 27.0, "erf": 32.0, "pow": 60.0, "gamma": 120.0}
_FP64_COSTS = dict.fromkeys(_OF_ONE, 1.0)
"""Of double precision, in instructions of it."""
_FP64_COSTS |= {"recip": 7.0, "rsqrt": 8.0, "sqrt": 9.0, "div": 9.0, "cbrt": 11.0, "exp": 14.0, "hypot": 15.0}
_FP64_COSTS |= {"log": 27.0, "atan": 34.0, "tanh": 34.0, "asin": 42.0, "acos": 42.0, "erf": 42.0, "pow": 78.0}
_FP64_COSTS |= {"gamma": 200.0}
EXP_COST, EXP64_COST = _FP_COSTS["exp"], _FP64_COSTS["exp"]
_ROOTS_AND_QUOTIENTS = frozenset(kind for kind in _FP_COSTS if kind.split("_")[-1] in _UNIT_KINDS)
_FAST = frozenset(k for k, cost in _FP_COSTS.items() if k.startswith("native_") and cost == SPECIAL_COST)
_PRODUCTS = ("mul", "fused", "mul24", "fused24")  # Count apart
_SHORT_PRODUCTS = _PRODUCTS[2:]
_INTEGERS = {"int16": (1.0, 4.0), "int32": (1.0, 4.0), "int64": (2.0, 16.0)}
"""Cost of an operation, and of a division by a constant, which is a product and shifts."""

_REALS = ("fp16", "fp32", "fp64")
_DIVISIONS = ("div_by_variable", "div_by_invariant")

# Instructions of a GPU for the division of an integer by a variable: a reciprocal of single precision and its
# corrections, and the products among these (LLVM, AMDGPUCodeGenPrepare). For 64 bits, it is a function of
# about 100, if not both values fit 32, which compilers check (LLVM, NVPTX).
_DIVISION, _DIVISION_PRODUCTS, _LONG_DIVISION = 16.0, 4.0, 50.0
OF_INVARIANT = 0.5  # Part of these where the reciprocal is computed once for a loop

PRODUCT_COST = 2.0
"""Typical cost of an integer product, which units compute in several steps."""

# Cost of integer operations that only compute addresses and control loops: a loop that is unrolled four times
# has a quarter of them, as offsets within it are part of the memory instructions.
_INDEXING = 0.25

_JOINED_BYTES = 16

Counts = dict[str, "Counts"] | float
"""A number, or nested numbers by name."""


def operation_counts(classes: Mapping[str, Any], total: float) -> dict[str, float]:
    """Return operations by class, weighted by cost, from the executed instructions by class and type.

    Private memory is in registers; most address computations are free. Without classes, `total` instructions
    are operations that are none of the other classes.
    """
    halves = classes.get("fp16", {})
    half = sum(n for kind, n in halves.items() if _FP_COSTS.get(kind) == 1.0)
    # Other functions of halves are those of single precision.
    reals = dict(classes.get("fp32", {}))
    reals |= {kind: reals.get(kind, 0) + n for kind, n in halves.items() if _FP_COSTS.get(kind) != 1.0}
    costs = {kind: _FP_COSTS.get(kind, _LIBRARY) * n for kind, n in reals.items()}
    special = sum(n for kind, n in reals.items() if SPECIAL_COST <= _FP_COSTS.get(kind, _LIBRARY) < _LIBRARY)
    fast = sum(n for kind, n in reals.items() if kind in _FAST)
    # Units for other types select, half of a double at a time.
    doubles = dict(classes.get("fp64", {}))
    selected = doubles.pop("select", 0)
    costs_fp64 = {kind: _FP64_COSTS.get(kind, _LIBRARY) * n for kind, n in doubles.items()}
    double = sum(costs_fp64.values())
    library, library_fp64 = (
        sum(cost for kind, cost in each.items() if kind not in _ROOTS_AND_QUOTIENTS)
        for each in (costs, costs_fp64)
    )
    others = 2.0 * selected if classes else total
    for bits, (usual, division) in _INTEGERS.items():
        for kind, n in classes.get(bits, {}).items():
            apart = kind in _PRODUCTS or kind in _DIVISIONS
            others += n * (0.0 if apart else division if kind == "div" else usual)
    integers, joined, shifts = (
        sum(cost * classes.get(bits, {}).get(kind, 0) for bits, (cost, _) in _INTEGERS.items())
        for kind in ("add", "joined", "shift")
    )
    conversions = classes.get("conversions", {})
    others += sum(n for kind, n in conversions.items() if kind != "int")
    others += classes.get("branches", {}).get("conditional", 0)
    for kind in ("loads", "stores", "atomics"):
        spaces = classes.get(kind, {})
        others += sum(total_of(sizes) for space, sizes in spaces.items() if space != "private")
    others += _joined(classes)
    indexing = classes.get("indexing", {})
    products = sum(
        times * _sum_of(classes.get(bits, {}), _PRODUCTS)
        for bits, times in (("int16", 1.0), ("int32", 1.0), ("int64", 3.0))
    )
    short = _sum_of(classes.get("int16", {}), _PRODUCTS) + _sum_of(classes.get("int32", {}), _SHORT_PRODUCTS)
    others += _INDEXING * sum(total_of(n) for kind, n in indexing.items() if kind != "conversions")
    others += 4.0 * (total_of(classes.get("barriers", 0)) + total_of(classes.get("collectives", 0)))
    divisions = [
        float(sum(classes.get(bits, {}).get(kind, 0) for bits in ("int16", "int32"))) for kind in _DIVISIONS
    ]
    long_divisions = float(sum(classes.get("int64", {}).get(kind, 0) for kind in _DIVISIONS))
    arithmetic = sum(total_of(classes.get(bits, {})) for bits in (*_REALS, *_INTEGERS))
    costly = sum(costs.values()) - sum(reals.values()) + double - sum(doubles.values())
    costly += division_instructions(divisions[0], divisions[1], long_divisions, product_cost=PRODUCT_COST)
    floating, floating_fp64 = (_fused(classes.get(bits, {})) for bits in ("fp32", "fp64"))
    return {
        "operations_real": float(sum(costs.values())),
        "operations_fp16": float(half),
        "special": float(special),
        "fast": float(fast),
        "library": float(library),
        "library_fp64": float(library_fp64),
        "operations": float(others),
        "integers": float(integers),
        "joined": float(joined),
        "shifts": float(shifts),
        "products": float(products),
        "short_products": float(short),
        "divisions": divisions[0],
        "invariant_divisions": divisions[1],
        "long_divisions": long_divisions,
        "further_cost": float(costly / max(arithmetic, 1)),
        "operations_fp64": float(double),
        "conversions_fp64": float(conversions.get("fp64", 0)),
        "floating": floating,
        "floating_fp64": floating_fp64,
    }


def division_instructions(
    by_variable: float, by_invariant: float, long_divisions: float, *, product_cost: float
) -> float:
    """Return the instructions of a GPU for divisions of integers by variables, at a cost of products."""
    divisions = by_variable + OF_INVARIANT * by_invariant
    return divisions * (_DIVISION + _DIVISION_PRODUCTS * product_cost) + long_divisions * _LONG_DIVISION


def _sum_of(n: Mapping[str, float], kinds: Sequence[str]) -> float:
    return sum(n.get(kind, 0.0) for kind in kinds)


def _fused(n: Mapping[str, float]) -> float:
    """Return the additions and products of reals, with one of each as one instruction."""
    return float(_sum_of(n, ("add", "mul", "fused")) - min(n.get("add", 0), n.get("mul", 0)))


def _joined(classes: Mapping[str, Any]) -> float:
    """Return the loads of local memory that consecutive ones become."""
    sizes = classes.get("consecutive", {}).get("local", {})
    return float(sum(n * int(size) for size, n in sizes.items())) / _JOINED_BYTES


def saved_loads(classes: Mapping[str, Any]) -> tuple[float, float]:
    """Return the shares of loads of local memory that compilers leave out, and that some join with others.

    From the executed instructions by class and type.
    """
    kinds = ("loads", "reloads", "consecutive")
    once, again, parts = (total_of(classes.get(kind, {}).get("local", 0)) for kind in kinds)
    loads = max(once + again + parts, 1.0)
    return again / loads, (parts - _joined(classes)) / loads


def total_of(counts: Counts) -> float:
    """Return the sum of nested numbers."""
    return float(sum(map(total_of, counts.values()))) if isinstance(counts, dict) else float(counts)


NEEDED = ("total_instruction_count", "work_items", "total_memory_footprint")
"""Metrics without which a profile has no verdict."""

_USUAL_GROUP = 64.0  # Work-items of a work-group, if the profile lacks them
_MOST_PACKED = 4.0  # Operations of half precision in the time of one of single precision
_ELEMENT_BITS = 4
PRECISIONS = ("half", "single", "double")
_SECTOR_BYTES, _LINE_BYTES, _ATOMIC_BYTES = 32.0, 64.0, 4.0


@dataclass(frozen=True)
class LaunchWork:
    """The work of one launch of a kernel."""

    kernel: str
    operations: float  # Executed instructions, vector ones counted by element
    issued: float  # By what they cost on a device, with multiply-adds once and loops unrolled
    doubles: float  # Of these, those that units for double precision compute
    flops: float | None  # Floating-point operations; `None` if the profile lacks them
    double_share: float  # Share of those in double precision, 0 to 1; without any, of functions
    half_share: float  # And in half precision
    function_elements: float  # Elements computed by mathematical functions
    unique_bytes: float  # Distinct bytes read, plus distinct bytes written
    accessed_bytes: float  # Bytes of all accesses to global and constant memory
    local_bytes: float  # Bytes of accesses to local memory
    work_items: float
    work_groups: float
    longest: float  # Instructions of the longest work-item
    imbalance: float  # `longest` over the median
    barriers: float  # Barriers of a work-item
    branch_entropy: float
    instructions: Mapping[str, float]  # Shares of the classes of instructions; may be empty
    # Counts by sub-groups of 32 work-items, and dependences of the longest work-item; 0 if unknown
    first_bytes: float = 0.0  # Of lines of 64 bytes that come from or go to memory behind an endless cache
    line_bytes: float = 0.0  # Of lines of 64 bytes that each access touches
    sector_bytes: float = 0.0  # Of sectors of 32 bytes that each access touches
    written_bytes: float = 0.0  # Of lines of 64 bytes that each write touches
    reads: float = 0.0  # Of global memory, of a work-item
    accesses: float = 0.0  # Likewise, with writes
    path: float = 0.0  # Instructions of the longest chain of dependences
    path_loads: float = 0.0  # Loads of global memory among these
    wavefronts: float = 0.0  # Of local memory, each with one word of a bank at most
    atomics: float = 0.0  # That are done one after another, as they have one address
    turns: float = 0.0  # See `GlobalAtomics`

    @property
    def reuse(self) -> float:
        """Mean number of accesses to a byte."""
        return self.accessed_bytes / self.unique_bytes if self.unique_bytes else 1.0


def amounts_of(profile: Profile) -> LaunchWork | None:
    """Return the work of a launch from its profile; ``None`` if that lacks a required metric.

    Profiles of Crosscast 0.1 and imported ones have no counts of operations and bytes: widths of accesses are
    then estimated by the address bits that never vary.
    """
    metrics = profile.metrics

    def metric(name: str, default: float = 0.0) -> float:
        value = metrics.get(name)
        return default if value is None else float(value)

    if any(metrics.get(name) is None for name in NEEDED) or not metric("work_items"):
        return None
    work = profile.launch.get("work")
    work = work if isinstance(work, Mapping) else {}
    accesses = metric("total_reads") + metric("total_writes") or sum(
        metric(f"{space}_accesses") for space in ("global", "local", "constant")
    )
    outside = bytes_outside(work)
    local = float(work.get("local_bytes", 0))
    if outside + local and not work.get("unsized_accesses"):
        width = (outside + local) / max(accesses, 1.0)
    else:
        entropies = [
            metric("global_memory_address_entropy"),
            *(metric(f"local_memory_address_entropy_{bits}") for bits in range(1, _ELEMENT_BITS + 1)),
        ]
        lost = [1 - (entropies[bits] - entropies[bits + 1]) for bits in range(_ELEMENT_BITS)]
        width = 2 ** sum(min(max(each, 0.0), 1.0) for each in lost)
        outside = width * max(accesses - metric("local_accesses"), 0.0)
        local = width * metric("local_accesses")
    flops = {name: float(work.get(f"flops_{name}", 0)) for name in PRECISIONS}
    total, items = metric("total_instruction_count"), metric("work_items")
    operations = total / (metric("instructions_per_operand") or 1.0)
    mix = work.get("instructions") or profile.instructions
    mix = mix if isinstance(mix, Mapping) else {}
    classes = profile.launch.get("instructions")
    classes = classes if isinstance(classes, Mapping) else {}
    # Half of the instructions of the intermediate representation compute addresses or are free.
    counts = operation_counts(classes, 0.5 * operations)
    # Operands may change their sign.
    doubles = counts["operations_fp64"] - classes.get("fp64", {}).get("other", 0)
    reals = sum(counts[name] for name in ("operations_real", "operations_fp16")) + doubles
    flop = sum(flops.values())
    return LaunchWork(
        kernel=profile.kernel,
        operations=operations,
        issued=_issued(counts),
        doubles=doubles,
        flops=flop if work else None,
        double_share=flops["double"] / flop if flop else doubles / (reals or 1.0),
        half_share=flops["half"] / (flop or 1.0),
        function_elements=float(work.get("function_elements", 0)),
        unique_bytes=_unique_bytes(profile, width, outside),
        accessed_bytes=outside,
        local_bytes=local,
        work_items=items,
        work_groups=metric("work_groups") or max(items / _USUAL_GROUP, 1.0),
        longest=max(metric("max_ipt", metric("max_itb")), total / items),
        imbalance=metric("max_ipt") / (metric("median_ipt") or 1.0),
        barriers=metric("total_barriers_hit") / items,
        branch_entropy=metric("average_linear_branch_entropy"),
        instructions={name: float(count) / (sum(mix.values()) or 1.0) for name, count in mix.items()},
        **_of_sub_groups(profile.launch),
    )


def _issued(counts: Mapping[str, float]) -> float:
    """Return the instructions that a device issues, weighted by cost."""
    # Units for functions may work beside the others.
    single = counts["operations_real"] - (SPECIAL_COST - 1) * counts["fast"]
    single = max(single, SPECIAL_COST * counts["special"])
    of_reals = single + counts["operations_fp64"] + counts["operations_fp16"] / _MOST_PACKED
    others = counts["operations"] - counts["joined"] + PRODUCT_COST * counts["products"]
    divisions = (counts[name] for name in ("divisions", "invariant_divisions", "long_divisions"))
    return of_reals + others + division_instructions(*divisions, product_cost=PRODUCT_COST)


def _unique_bytes(profile: Profile, width: float, accessed: float) -> float:
    """Return distinct bytes read and written outside of local memory, counted or by mean width."""
    counted = profile.launch.get("distinct_bytes")
    if isinstance(counted, Mapping):
        return float(sum(counted.get("global", {}).values()))
    sides = [profile.metrics.get(name) for name in ("unique_reads", "unique_writes")]
    known = [float(side) for side in sides if side is not None]
    addresses = sum(known) if len(known) == 2 else float(profile.metrics["total_memory_footprint"] or 0)
    # These include addresses of local memory, and widths differ: distinct bytes are at most all accessed
    # bytes.
    return min(width * addresses, accessed or math.inf)


def _of_sub_groups(launch: Mapping[str, Any]) -> dict[str, float]:
    """Return the fields of `LaunchWork` that have a default; empty if the profile lacks these counts."""
    counted = launch.get("sub_groups", {}).get("32")
    if counted is None:
        return {}
    path, classes, geometry = (launch.get(name) or {} for name in ("path", "instructions", "geometry"))
    first = launch.get("reuse", {}).get("bytes", {}).get("64", {}).get("1", {}).get("first", 0)
    sub_groups = max(geometry.get("sub_groups_32", 0), 1)
    return {
        "first_bytes": float(first),
        "line_bytes": _LINE_BYTES * (counted["lines_64_read"] + counted["lines_64_write"]),
        "sector_bytes": _SECTOR_BYTES * (counted["sectors_32_read"] + counted["sectors_32_write"]),
        "written_bytes": _LINE_BYTES * counted["lines_64_write"],
        "reads": counted["accesses_read"] / sub_groups,
        "accesses": (counted["accesses_read"] + counted["accesses_write"]) / sub_groups,
        "path": float(path.get("instructions", 0)),
        "path_loads": float(total_of(path.get("loads", {})) - path.get("loads", {}).get("local", 0)),
        # Registers keep what is loaded again.
        "wavefronts": counted["local_wavefronts_32_banks"] * (1 - sum(saved_loads(classes))),
        "atomics": float(counted["atomic_conflicts"]),
        "turns": sum(GlobalAtomics.of(launch, 32).turns),
    }


@dataclass(frozen=True)
class GlobalAtomics:
    """Atomics of global memory of a launch."""

    uniform: float  # On integers, at an address that all work-items of a group share by the code
    apart: float  # Others but for compare-exchanges
    compared: float
    addresses: float  # Distinct ones
    lines: float  # Of 128 bytes, that they write; if unknown, as addresses next to each other
    most: float  # At one of them
    accesses: float  # Of sub-groups

    @classmethod
    def of(cls, launch: Mapping[str, Any], width: int) -> Self:
        """Return those of a launch with sub-groups of so many work-items; of 1, none is uniform."""
        counted = (launch.get("instructions") or {}).get("atomics", {})
        uniform, integers, reals, compared = (
            float(sum(counted.get(f"{space}{kind}", 0) for space in ("global", "generic")))
            for kind in ("_uniform", "", "_fp", "_compare")
        )
        known = launch.get("distinct_bytes", {}).get("atomics", {})
        addresses = known.get("written", math.inf) / _ATOMIC_BYTES
        dense = addresses * _ATOMIC_BYTES / 128
        lines = max(min(known.get("lines", dense), addresses), dense, 1.0)
        total = uniform + integers + reals + compared
        # An atomic is two accesses. Those of a sample may not meet at an address where all of a launch do.
        most = max(min(known.get("most", 0) / 2, total), total / addresses)
        made = (launch.get("sub_groups") or {}).get(str(width), {}).get("atomic_accesses")
        accesses = total / width if made is None else float(made)
        return cls(uniform, integers + reals, compared, addresses, lines, most, accesses)

    @property
    def at_once(self) -> float:
        """Work-items of an access, on average."""
        return (self.uniform + self.apart + self.compared) / max(self.accesses, 1.0)

    @property
    def joined(self) -> float:
        """Uniform ones, with those of an access as one."""
        return self.uniform / max(self.at_once, 1.0)

    @property
    def done(self) -> float:
        """Number that the device does."""
        return self.joined + self.apart + self.compared

    @property
    def turns(self) -> tuple[float, float]:
        """Those at the address that a launch uses most, with joined ones as one, and compare-exchanges."""
        others = self.apart + self.compared
        # The address that most use may be that of uniform ones.
        share = max(self.most - self.uniform, others / self.addresses) / others if others else 0.0
        return min(self.joined, self.most) + self.apart * share, self.compared * share
