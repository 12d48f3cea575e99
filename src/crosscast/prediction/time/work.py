"""The work of a launch in numbers, from the counts of its profile, for the terms of its time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.launch_counts import PATTERNS, REUSE_CACHES, REUSE_GROUPS, SUB_GROUPS
from crosscast.devices.launch_work import GlobalAtomics, operation_counts, saved_loads, total_of
from crosscast.profile import Profile, bytes_outside

if TYPE_CHECKING:
    from crosscast.profile import MetricValue


_CACHE_SIZES = tuple(map(str, REUSE_CACHES))
CACHE_BITS = tuple(size.bit_length() - 1 for size in REUSE_CACHES)
"""Logarithms of the sizes of caches in bytes, for which a profile has the bytes behind them."""

EVEN_CHANNELS = 1 / 16
"""Chance that two of many consecutive lines are in one channel."""

IRREGULAR = 0.05
"""Share of irregular accesses above which a launch counts as irregular."""

_MOST_UNIFORM = 0.9  # Of constant accesses, if all are: neighbours at the ends of sub-groups are left out
_LOOPS = 2.0  # Instructions of a work-item over those of the code
_REGISTER_BYTES, _SECTOR_BYTES, _LINE_BYTES, _TEXEL_BYTES = 4.0, 32.0, 64.0, 8.0
_ANY_GROUP = ("cuda", "hip")
"""Forms of programs that are compiled for work-groups of any size."""


@dataclass(frozen=True, eq=False)
class Work:
    """The work of ``n`` launches; arrays are of shape ``(n, 1)`` unless stated otherwise."""

    exact: Reals  # 1 if the profile has counts by sub-groups, 0 if the work is estimated
    items: Reals
    groups: Reals
    group_items: Reals
    sub_groups: Reals  # `(n, 2)` of each width
    registers: Reals  # 32-bit registers of a work-item
    local_bytes: Reals  # Local memory of a work-group
    kept: Reals  # 32-bit registers of the live values of a work-item, in program order
    any_group: Reals  # 1 if it was compiled for work-groups of any size, else 0
    code: Reals  # Instructions of its code
    needed: Reals  # Registers that it needs after AMD's compiler has ordered its code, if that was run
    amd_registers: Reals  # On AMD GPUs, as their compiler allocates them; NaN if it was not run
    amd_spilled: Reals  # 32-bit values that a work-item moves to memory or back there; NaN alike
    saved_loads: Reals  # `(n, 2)` Shares of the loads of local memory that compilers leave out, and may join
    operations_real: Reals  # Of single precision, and functions of half precision, weighted by cost
    operations_fp16: Reals  # Additions, products and the like of half precision
    special: Reals  # Number of these that a unit for transcendental functions computes, or begins
    fast: Reals  # Of these, approximations that are hardly more than this
    library: Reals  # Functions in `operations_real` that CPUs have no instruction for, such as exp
    library_fp64: Reals  # The same of double precision
    operations: Reals  # All others except double precision: integers, accesses, control
    integers: Reals  # Of these, sums and logic of integers, with those of 64 bits as two
    joined: Reals  # Likewise, of which the next instruction of many GPUs takes the operands
    shifts: Reals  # Likewise
    products: Reals  # Of integers, which many devices compute in several steps
    short_products: Reals  # Of these, products of 24 bits at most
    channel_share: Reals  # Chance that two lines are in one of 16 memory channels
    divisions: Reals  # Of integers of up to 32 bits by variables, which are not in `operations`
    invariant_divisions: Reals  # By variables that do not change in a loop
    long_divisions: Reals  # Of 64 bits, by variables of either kind
    further_cost: Reals  # Instructions of a GPU for an arithmetic operation, beyond one, on average
    operations_fp64: Reals
    conversions_fp64: Reals  # From and to double precision
    floating: Reals  # Additions and products of single precision; a multiply-add counts once
    floating_fp64: Reals  # The same of double precision
    texels: Reals  # Fetches from images, of 8 bytes at most
    utilization: Reals  # `(n, 2)` Share of a sub-group's work-items that take part in its instructions
    real_utilization: Reals  # `(n, 2)` In those on real numbers of 16 and 32 bits
    double_utilization: Reals  # `(n, 2)` In those on 64 bits, and conversions of these
    accesses: Reals  # `(n, 2)` Instructions of sub-groups that access global memory
    sectors: Reals  # `(n, 2)` Bytes of the sectors of 32 bytes that these touch, or of lines of 64 bytes
    same_address: Reals  # `(n, 2)` Of these, reads of one buffer at an address that all work-items share
    read_only: Reals  # Share of sectors that are read through `restrict` pointers which are only read
    requested: Reals  # Bytes requested by accesses of global memory
    lines: Reals  # `(n, 2)` Lines of 128 bytes that these touch
    local_wavefronts: Reals  # `(n, 2)`
    local_stores: Reals  # Of a work-item, to local memory
    atomics: Reals  # `(n, 2)` Atomics, and conflicts among them
    local_atomics: Reals  # `(n, 2)` Of local memory, with conflicts among them
    local_reals: Reals  # Share of these on real numbers
    global_atomics: Reals  # `(n, 2)` Of sub-groups, in global memory
    atomics_done: Reals  # Atomics of global memory, with those of a sub-group that are joined as one
    atomic_lines: Reals  # Of global memory, of 128 bytes
    turns: Reals  # `(n, 2)` Those of the launch at one address, with joined ones of a sub-group as one
    turns_apart: Reals  # The same if none are joined, as on a CPU
    locked: Reals  # Atomics, one by one
    retries: Reals  # Compare-exchanges of the launch at one address
    written: Reals  # Distinct bytes written
    updated: Reals  # Of these, bytes that are read as well
    distinct: Reals  # Distinct bytes read and written
    behind: Reals  # `(n, 3, 14)` Bytes behind a cache, by groups that share it and size; the last is infinite
    reuse_groups: Reals  # Work-groups that were run of a sample, of which no more share it in these
    path: Reals  # Instructions of the longest dependency chain of the longest work-item
    path_loads: Reals  # Loads of global memory among these
    path_constants: Reals  # Loads of constant memory among these
    block_path: Reals  # Instructions but loads of the longest chains of the blocks that it runs, added up
    block_loads: Reals  # The most loads of global memory on chains of these blocks, added up
    loads_in_turn: Reals  # Of these, in loops that no compiler unrolls
    loads_rolled: Reals  # And in those that AMD's do not
    block_local: Reals  # Those of local memory
    block_constants: Reals  # Those of constant memory
    item_accesses: Reals  # Accesses of global memory of a work-item
    item_constants: Reals  # Those of constant memory
    operands: Reals  # Loads of it by all work-items at addresses that neighbours share
    jumps: Reals  # Accesses of all work-items that are 64 bytes or more beyond the one before
    walk: Reals  # Bytes of lines that a work-item passes until it turns back
    alignment: Reals  # Bytes that divide the distances of its accesses on the way
    longest: Reals  # Instructions of the longest work-item
    mean: Reals  # Of the mean work-item, over these
    mean_longest: Reals  # `(n, 2)` Of a sub-group, on average, over these
    barriers: Reals  # Of a work-item
    conditional: Reals  # Conditional branches of a work-item
    vectorizable: Reals  # Share of accesses in which neighbours access one element, or consecutive ones
    strided: Reals  # Share in which they keep another distance
    apart: Reals  # Mean bytes between neighbours that keep another distance
    irregular: Reals  # Share in which they keep none
    walks: Reals  # Share in which a work-item goes on where it was, sectors away from its neighbours
    width: Reals  # Mean bytes of an access
    of_bank: Reals  # Accesses of 32 neighbours at this distance that are in one of 32 banks of 4 bytes
    traits: Reals  # `(n, len(TRAITS))`

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def loops(self) -> Flags:
        """Whether work-items loop: they run more instructions than the code has."""
        return (self.longest > _LOOPS * self.code) & (self.code > 0)

    @cached_property
    def item_loops(self) -> Flags:
        """Whether they loop between two barriers, where CPUs run the work-items of a group in turn."""
        return self.loops & (self.longest > _LOOPS * self.code * (self.barriers + 1.0))

    @cached_property
    def computed(self) -> Reals:
        """Instructions but loads of the longest chain of the longest work-item."""
        return np.maximum(self.path - self.path_loads - self.path_constants, 0.0)

    def take(self, rows: Integers | Flags | list[int]) -> Work:
        """The work of some of the launches."""
        return Work(*(getattr(self, field.name)[rows] for field in fields(self)))


_BY_WIDTH = (
    *("sub_groups", "saved_loads", "utilization", "real_utilization", "double_utilization"),
    *("accesses", "sectors", "same_address", "lines"),
    *("local_wavefronts", "atomics", "local_atomics", "global_atomics", "turns", "mean_longest"),
)
_TABLES = ("behind", "traits")
_OF_ONE_NUMBER = tuple(each.name for each in fields(Work) if each.name not in (*_BY_WIDTH, *_TABLES))
_NUMBERS, _PAIRS = itemgetter(*_OF_ONE_NUMBER), itemgetter(*_BY_WIDTH)

TRAITS = (
    "items",
    "group_items",
    "operations",
    "floating",
    "bytes",
    "sectors_of_access",
    "utilization",
    "local_wavefronts",
    "chain",
    "accesses",
    "distinct",
    "beyond_1_mib",
    "vectorizable",
    "barriers",
    "atomics",
)
"""Coordinates for the distance of launches: logarithms, of amounts of a work-item unless stated otherwise.

- items, group_items: work-items of the launch, in thirds of a logarithm, and of a group, in two thirds.
- sectors_of_access: sectors of 32 bytes that an access of a sub-group touches.
- chain: the longest chain of dependent instructions over all instructions of a work-item.
- distinct, beyond_1_mib: bytes that are distinct, and that pass a cache of 1 MiB, over those accessed.
- vectorizable: the share itself.
"""


def work_of(profiles: Sequence[Profile]) -> Work:
    """Compute the work of launches from their profiles.

    For a profile without counts by sub-groups, neighbours are assumed to do the same and to access
    consecutive elements; `Work.exact` is 0 for these.
    """
    rows = [_of(profile.metrics, profile.launch, profile.program) for profile in profiles]
    for row in rows:
        row["traits"] = _traits(row)
    numbers, pairs = (np.array(list(map(of, rows)), dtype=np.float64) for of in (_NUMBERS, _PAIRS))
    columns = zip(_OF_ONE_NUMBER, numbers.T[..., None], strict=True)
    of_two = zip(_BY_WIDTH, pairs.swapaxes(0, 1), strict=True)
    tables = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in _TABLES}
    return Work(**dict(columns), **dict(of_two), **tables)


def _traits(work: Mapping[str, Any]) -> list[float]:
    """Coordinates of a launch, as `TRAITS` has them."""
    items, (sectors, _), (accesses, _) = work["items"], work["sectors"], work["accesses"]
    real = work["operations_real"] + work["operations_fp16"] + work["operations_fp64"]
    beyond = work["behind"][REUSE_GROUPS.index(16)][CACHE_BITS.index(20)]
    wavefronts, atomics = (work[name][0] * SUB_GROUPS[0] / items for name in ("local_wavefronts", "atomics"))
    return [
        math.log(items) / 3,
        math.log(work["group_items"]) / 1.5,
        math.log1p((real + work["operations"]) / items),
        math.log1p(real / items),
        math.log1p(sectors / items),
        math.log(sectors / max(_SECTOR_BYTES * accesses, 1.0) + 0.1),
        math.log(work["utilization"][0] + 0.02),
        math.log1p(wavefronts),
        math.log(work["path"] / max(work["longest"], 1.0) + 0.01),
        math.log1p(work["item_accesses"]),
        math.log((work["distinct"] + 1) / (sectors + 1) + 0.01),
        math.log((beyond + 1) / (sectors + 1) + 0.01),
        work["vectorizable"],
        math.log1p(work["barriers"]),
        math.log1p(atomics),
    ]


def _of(
    metrics: Mapping[str, MetricValue], launch: Mapping[str, Any], program: Mapping[str, object]
) -> dict[str, object]:
    """The work of one launch, by field."""
    work, sub_groups = _of_geometry(metrics, launch.get("geometry") or {}, program)
    items, total = work["items"], float(metrics.get("total_instruction_count") or 0)
    longest = max(float(metrics.get("max_ipt") or 0), total / items, 1.0)
    counted = launch.get("sub_groups")
    work |= {"longest": longest, "mean": total / items / longest, "exact": counted is not None}
    if counted is None:
        return work | _estimated(metrics, total, items, sub_groups, longest)
    classes = launch.get("instructions") or {}
    operations = operation_counts(classes, total)
    if amd := (launch.get("geometry") or {}).get("amd"):
        work["needed"] = min(work["registers"], amd["registers"] + amd["spilled"])
        work["amd_spilled"] = _spilled(amd, operations["floating"] / items)
    sides = [counted[str(width)] for width in SUB_GROUPS]
    requested = bytes_outside(launch.get("work") or {})
    accesses = _of_accesses(sides, _images(metrics, classes, requested))
    item_accesses = accesses["accesses"][0] / max(sub_groups[0], 1.0)
    neighbours = _of_neighbours(launch.get("access_patterns") or {})
    return {
        **work,
        **operations,
        **accesses,
        **_of_atomics(launch, classes, sides),
        **_of_path(launch.get("path", {}), item_accesses, _constant_share(classes)),
        **_of_memory(metrics, launch),
        **neighbours,
        **_of_walks(metrics, launch, requested),
        "requested": requested or accesses["sectors"][0],
        "saved_loads": saved_loads(classes),
        "local_stores": total_of(classes.get("stores", {}).get("local", 0)) / items,
        "conditional": total_of(classes.get("branches", {}).get("conditional", 0)) / items,
        "operands": _operands(classes, neighbours["uniform"]),
        **_of_lanes(classes, sides),
        "mean_longest": [
            _mean_longest(side, total, longest, of_width)
            for side, of_width in zip(sides, sub_groups, strict=True)
        ],
    }


def _of_geometry(
    metrics: Mapping[str, MetricValue], geometry: Mapping[str, Any], program: Mapping[str, object]
) -> tuple[dict[str, Any], list[float]]:
    """Sizes of the launch, and space of its groups and work-items; also its sub-groups by width."""
    items = max(float(metrics.get("work_items") or 1), 1.0)
    groups = float(geometry.get("groups") or metrics.get("work_groups") or math.ceil(items / 64))
    group_items = float(geometry.get("group_items") or math.ceil(items / groups))
    sub_groups = [
        float(geometry.get(f"sub_groups_{width}") or groups * math.ceil(group_items / width))
        for width in SUB_GROUPS
    ]
    # Small private arrays are in registers too.
    registers = float(geometry.get("registers") or 0)
    registers += float(geometry.get("private_bytes") or 0) / _REGISTER_BYTES
    sizes: dict[str, Any] = {
        "items": items,
        "groups": groups,
        "group_items": group_items,
        "sub_groups": sub_groups,
        "registers": registers,
        "local_bytes": float(sum((geometry.get("local_bytes") or {}).values())),
        "kept": float(geometry.get("kept_values") or 0),
        "any_group": program.get("form") in _ANY_GROUP,
        "code": float(geometry.get("code") or 0),
        "amd_registers": float(geometry.get("amd", {}).get("registers", math.nan)),
        "amd_spilled": math.nan,
        "needed": registers,
        "saved_loads": (0.0, 0.0),
        "barriers": float(metrics.get("total_barriers_hit") or 0) / items,
    }
    return sizes, sub_groups


def _of_accesses(sides: Sequence[Mapping[str, int]], images: tuple[float, float]) -> dict[str, Any]:
    """Accesses by sub-groups of each width, given the share of reads from images and their texels."""
    sectors = [
        size * float(side[f"{name}_{size}_read"] + side[f"{name}_{size}_write"])
        for size, name, side in zip((32, 64), ("sectors", "lines"), sides, strict=True)
    ]
    read_only = _SECTOR_BYTES * float(sides[0].get("sectors_32_read_only") or 0) / max(sectors[0], 1.0)
    of_images, texels = images
    return {
        "accesses": [float(side["accesses_read"] + side["accesses_write"]) for side in sides],
        "same_address": [float(side.get("same_address_read") or 0) for side in sides],
        "read_only": max(read_only, of_images),
        "sectors": sectors,
        "lines": [float(side["lines_128_read"] + side["lines_128_write"]) for side in sides],
        "local_wavefronts": [float(side["local_wavefronts_32_banks"]) for side in sides],
        "texels": texels,
    }


def _of_lanes(
    classes: Mapping[str, Any], sides: Sequence[Mapping[str, int]]
) -> Mapping[str, Sequence[float]]:
    """Shares of the work-items of sub-groups that take part in all instructions, and in those of units."""
    reals = total_of(classes.get("fp16", 0)) + total_of(classes.get("fp32", 0))
    doubles = total_of(classes.get("fp64", 0)) + classes.get("conversions", {}).get("fp64", 0)

    def share(of_items: float, of_sub_groups: float, width: int) -> float:
        return min(1.0, max(of_items, 1.0) / max(of_sub_groups * width, 1.0))

    utilization = [
        share(side["instructions_without_phi"], side["sub_group_instructions_without_phi"], width)
        for width, side in zip(SUB_GROUPS, sides, strict=True)
    ]
    of_units = {
        name: [
            share(items, side[counted], width) if side.get(counted) else usual
            for width, side, usual in zip(SUB_GROUPS, sides, utilization, strict=True)
        ]
        for name, items, counted in (
            ("real_utilization", reals, "sub_group_fp32"),
            ("double_utilization", doubles, "sub_group_fp64"),
        )
    }
    return {"utilization": utilization, **of_units}


_NO_ATOMICS: Mapping[str, object] = {
    **dict.fromkeys(("atomics", "local_atomics", "global_atomics", "turns"), (0.0, 0.0)),
    **dict.fromkeys(("local_reals", "atomics_done", "turns_apart", "locked", "retries"), 0.0),
    "atomic_lines": math.inf,
}


def _of_atomics(
    launch: Mapping[str, Any], classes: Mapping[str, Any], sides: Sequence[Mapping[str, int]]
) -> Mapping[str, object]:
    """Atomics of local and of global memory, and those that wait for each other."""
    if not (number := classes.get("atomics")):
        return _NO_ATOMICS
    in_global = [GlobalAtomics.of(launch, width) for width in SUB_GROUPS]
    local = {kind: total_of(number.get(f"local{kind}", 0)) for kind in ("", "_fp", "_compare")}
    return {
        "atomics": [
            float(side["atomic_conflicts"]) + total_of(number) / width
            for width, side in zip(SUB_GROUPS, sides, strict=True)
        ],
        "local_atomics": [
            _local_atomics(side, each, sum(local.values()), width)
            for side, each, width in zip(sides, in_global, SUB_GROUPS, strict=True)
        ],
        "local_reals": local["_fp"] / max(sum(local.values()), 1.0),
        "global_atomics": [each.accesses for each in in_global],
        "atomics_done": in_global[0].done,
        "atomic_lines": in_global[0].lines,
        "turns": [each.turns[0] for each in in_global],
        "turns_apart": GlobalAtomics.of(launch, 1).turns[0],
        "locked": total_of(number),
        "retries": in_global[0].turns[1],
    }


def _of_path(path: Mapping[str, Any], item_accesses: float, constant: float) -> dict[str, object]:
    """Chains of dependent instructions, and accesses of a work-item, a share of them to constant memory."""
    loads = path.get("loads", {})
    block_loads = path.get("block_loads", loads)
    return {
        "path": float(path.get("instructions") or 1),
        "path_loads": float(loads.get("global", 0)),
        "path_constants": float(loads.get("constant", 0)),
        "block_path": _but_loads(path, block_loads),
        "block_loads": float(block_loads.get("global", 0)),
        "loads_in_turn": float(path.get("loads_in_turn", {}).get("global", 0)),
        "loads_rolled": float(path.get("loads_rolled", {}).get("global", 0)),
        "block_local": float(block_loads.get("local", 0)),
        "block_constants": float(block_loads.get("constant", 0)),
        "item_accesses": item_accesses * (1.0 - constant),
        "item_constants": item_accesses * constant,
    }


def _of_memory(metrics: Mapping[str, MetricValue], launch: Mapping[str, Any]) -> dict[str, object]:
    """Distinct bytes, and those behind caches."""
    distinct, reuse = launch.get("distinct_bytes", {}).get("global", {}), launch.get("reuse", {})
    written = float(distinct.get("written", 0))
    return {
        "written": written,
        "updated": written * _updated(metrics),
        "distinct": float(distinct.get("read", 0) + distinct.get("written", 0)),
        "channel_share": float(reuse.get("channel_share") or EVEN_CHANNELS),
        "behind": _behind(reuse.get("bytes"), float(sum(distinct.values()))),
        "reuse_groups": float(reuse.get("groups") or REUSE_GROUPS[-1]),
    }


def _of_walks(
    metrics: Mapping[str, MetricValue], launch: Mapping[str, Any], requested: float
) -> dict[str, object]:
    """How a work-item moves from one access to the next."""
    of_items = launch.get("work_item") or {}
    jumps, width = _jumps(metrics, of_items, requested), _width(metrics, requested)
    return {
        "jumps": jumps,
        "walk": 2.0 ** (float(of_items.get("mean_walk_log2", 0.0)) + 0.5),
        "alignment": 2.0 ** float(of_items.get("mean_alignment_log2", 0.0)),
        "walks": _walks(launch, jumps, width * _accesses(metrics)),
        "width": max(width, 1.0),
    }


def _of_neighbours(patterns: Mapping[str, int]) -> dict[str, float]:
    """How the addresses of neighbouring work-items differ; kept distances count as their mean."""
    uniform, contiguous, strided, irregular = (patterns.get(name, 0) for name in PATTERNS)
    pairs = uniform + contiguous + strided + irregular
    distance = patterns.get("stride_bytes", 0)
    words, rest = divmod(distance, 4 * strided) if strided else (1, 0)
    return {
        "uniform": uniform / max(pairs, 1),
        "vectorizable": (uniform + contiguous) / pairs if pairs else 1.0,
        "strided": strided / max(pairs, 1),
        "irregular": irregular / max(pairs, 1),
        "apart": distance / max(strided, 1),
        "of_bank": 1.0 if rest else float(math.gcd(int(words), 32)),
    }


def _walks(launch: Mapping[str, Any], jumps: float, accessed: float) -> float:
    """Share of accesses, of so many bytes, with which work-items walk where neighbours access other places.

    None does if others are irregular, but for those between two rows of a group: neighbours do not walk in
    step then.
    """
    patterns = launch.get("access_patterns") or {}
    uniform, contiguous, strided, irregular = (patterns.get(name, 0) for name in PATTERNS)
    elsewhere = contiguous + strided + irregular
    row, *others = launch.get("local_size") or (1,)
    between_rows = 2.0 / row if math.prod(others) > 1 else 0.0
    in_step = irregular <= (IRREGULAR + between_rows) * (uniform + elsewhere)
    if not in_step or patterns.get("stride_bytes", 0) < _SECTOR_BYTES * strided:
        return 0.0
    stepped = (launch.get("work_item") or {}).get("moved_bytes", 0.0) - _LINE_BYTES * jumps
    steps = max(stepped, 0.0) / max(accessed, 1.0)
    return float(min(steps, strided / max(elsewhere, 1)))


def _accesses(metrics: Mapping[str, MetricValue]) -> float:
    """Accesses of global and constant memory by work-items, at least 1."""
    return max(sum(float(metrics.get(f"{space}_accesses") or 0) for space in ("global", "constant")), 1.0)


def _width(metrics: Mapping[str, MetricValue], requested: float) -> float:
    """Mean bytes of an access, at most half a line."""
    return min(requested / _accesses(metrics), _LINE_BYTES / 2)


def _but_loads(path: Mapping[str, Any], block_loads: Mapping[str, int]) -> float:
    """Instructions of blocks' longest chains but for loads, which may be on other chains than the longest."""
    chains = float(path.get("block_instructions") or path.get("instructions") or 1)
    return max(chains - sum(block_loads.get(space, 0) for space in ("global", "constant")), 0.0)


def _operands(classes: Mapping[str, Any], uniform: float) -> float:
    """Loads of constant memory at uniform addresses; none if fewer accesses are uniform than constant."""
    loads = total_of(classes.get("loads", {}).get("constant", 0))
    return loads if uniform >= _MOST_UNIFORM * _constant_share(classes) else 0.0


def _constant_share(classes: Mapping[str, Any]) -> float:
    """Share of loads of constant memory among accesses of constant and global memory."""
    loads, stores = (classes.get(name, {}) for name in ("loads", "stores"))
    constant = total_of(loads.get("constant", 0))
    others = total_of(loads.get("global", 0)) + total_of(stores.get("global", 0))
    return constant / max(constant + others, 1.0)


def _local_atomics(side: Mapping[str, Any], in_global: GlobalAtomics, executed: float, width: int) -> float:
    """Atomics of local memory of sub-groups, and conflicts among them.

    Conflicts are counted for both memories: in global memory, those of uniform addresses are between all
    work-items of an access.
    """
    elsewhere = max(in_global.uniform, in_global.accesses)
    return max(side["atomic_conflicts"] - elsewhere, 0.0) + executed / width if executed else 0.0


def _images(
    metrics: Mapping[str, MetricValue], classes: Mapping[str, Any], requested: float
) -> tuple[float, float]:
    """Share of reads of images among accesses of global memory, and fetches, of 8 bytes each at most."""
    fetches, written = (float(classes.get("images", {}).get(kind, 0)) for kind in ("read", "write"))
    if not fetches:
        return 0.0, 0.0
    total = sum(float(metrics.get(name) or 0) for name in ("total_reads", "total_writes"))
    total = max(total - float(metrics.get("local_accesses") or 0), 1.0)
    buffers = sum(float(metrics.get(f"{space}_accesses") or 0) for space in ("global", "constant"))
    share = max(1.0 - (buffers + written) / total, 0.0)
    return share, fetches * max(requested / total / _TEXEL_BYTES, 1.0)


def _mean_longest(side: Mapping[str, Any], total: float, longest: float, sub_groups: float) -> float:
    """Instructions of sub-groups, on average, over those of the longest work-item.

    More than 1 where work-items go different ways, which a sub-group goes one after another. Those of
    sub-groups are counted without phis, of which all work-items have the same share.
    """
    but_phis = side["instructions_without_phi"] / max(total, 1.0)
    mean = side["sub_group_instructions_without_phi"] / max(sub_groups, 1.0)
    return float(mean / max(longest * but_phis, 1.0))


def _jumps(metrics: Mapping[str, MetricValue], of_items: Mapping[str, float], requested: float) -> float:
    """Accesses by work-items of another line than the one before, if all others continue where it ended."""
    accesses, width = _accesses(metrics), _width(metrics, requested)
    beyond = of_items.get("moved_bytes", 0.0) - width * accesses
    return min(max(beyond, 0.0) / (_LINE_BYTES - width), accesses)


def _updated(metrics: Mapping[str, MetricValue]) -> float:
    """Share of what a launch writes that it reads as well, by its distinct elements."""
    read, written, either = (
        float(metrics.get(name) or 0) for name in ("unique_reads", "unique_writes", "total_memory_footprint")
    )
    return min(max(read + written - either, 0.0) / max(written, 1.0), 1.0) if either else 0.0


def _spilled(amd: Mapping[str, float], floating: float) -> float:
    """Values that a work-item with so many floating-point operations moves to memory or back.

    Of moves in loops the code has one, and how often a loop is passed follows from these operations.
    """
    in_loops = amd["moves_in_loops"] / max(amd["moves"], 1)
    once = amd["floating"] - amd["floating_in_loops"]
    passes = max(1.0, (floating - once) / max(amd["floating_in_loops"], 1))
    return 2.0 * amd["spilled"] * (1.0 - in_loops + in_loops * passes)


def _behind(
    counted: Mapping[str, Mapping[str, Mapping[str, float]]] | None, distinct: float
) -> list[list[float]]:
    if counted is None:
        return [[distinct] * (len(CACHE_BITS) + 1)] * len(REUSE_GROUPS)
    rows = []
    for groups in REUSE_GROUPS:
        sizes = counted["64"][str(groups)]
        first = float(sizes["first"])
        # A larger cache misses no more; counts that were extended to more work-groups may violate that.
        misses = accumulate([max(float(sizes[size]), first) for size in _CACHE_SIZES], min)
        rows.append([*misses, first])
    return rows


def _estimated(
    metrics: Mapping[str, MetricValue],
    total: float,
    items: float,
    sub_groups: Sequence[float],
    longest: float,
) -> dict[str, object]:
    accesses = float(metrics.get("global_accesses") or 0) or float(
        (metrics.get("total_reads") or 0) + (metrics.get("total_writes") or 0)
    )
    size = _access_bytes(metrics, accesses / max(total, 1.0))
    read, written = (size * float(metrics.get(f"unique_{name}") or 0) for name in ("reads", "writes"))
    footprint = read + written or size * float(metrics.get("total_memory_footprint") or 0)
    footprint = min(footprint, size * accesses) if accesses else footprint  # Local memory is in it
    touched = max(size * accesses, footprint)
    shares = [min(1.0, items / (n * width)) for n, width in zip(sub_groups, SUB_GROUPS, strict=True)]
    local = float(metrics.get("local_accesses") or 0)
    return {
        # Half of the instructions of the intermediate representation compute addresses or are free.
        **operation_counts({}, 0.5 * total),
        **dict.fromkeys(("utilization", "real_utilization", "double_utilization"), shares),
        "accesses": [accesses / width / share for width, share in zip(SUB_GROUPS, shares, strict=True)],
        "same_address": [0.0, 0.0],
        "read_only": 0.0,
        "sectors": [touched, touched],
        "requested": touched,
        "lines": [touched / 128, touched / 128],
        "local_stores": 0.0,
        "local_wavefronts": [local / width for width in SUB_GROUPS],
        **_NO_ATOMICS,
        "written": min(written or footprint / 3, footprint),
        "updated": min(written or footprint / 3, footprint) * _updated(metrics),
        "distinct": footprint,
        "channel_share": EVEN_CHANNELS,
        "behind": [[footprint] * (len(CACHE_BITS) + 1)] * len(REUSE_GROUPS),
        "reuse_groups": float(REUSE_GROUPS[-1]),
        "path": 0.3 * longest,
        "path_loads": 1.0 if accesses else 0.0,
        "path_constants": 0.0,
        "block_path": 0.3 * longest,
        "block_loads": 1.0 if accesses else 0.0,
        "loads_in_turn": 0.0,
        "loads_rolled": 0.0,
        "block_local": 0.0,
        "block_constants": 0.0,
        "item_accesses": accesses / items,
        "item_constants": 0.0,
        "operands": 0.0,
        "jumps": 0.0,
        "walk": 1.0,
        "alignment": 1.0,
        "mean_longest": [total / items / longest] * len(SUB_GROUPS),
        "texels": 0.0,
        "conditional": 0.0,
        "vectorizable": 1.0,
        "strided": 0.0,
        "apart": 0.0,
        "walks": 0.0,
        "width": 4.0,
        "irregular": 0.0,
        "of_bank": 1.0,
    }


def _access_bytes(metrics: Mapping[str, MetricValue], share: float) -> float:
    """Bytes of an access, with 4 for each element; if there are vector instructions, accesses come first.

    `share` is the share of accesses in the instructions.
    """
    widest, mean = (float(metrics.get(f"{name}_simd_width") or 1) for name in ("max", "mean"))
    vectors = (mean - 1.0) / (widest - 1.0) if widest > 1.0 else 0.0
    return 4.0 * (1.0 + min(1.0, vectors / share) * (widest - 1.0)) if share else 4.0
