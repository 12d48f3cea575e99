"""The work of launches from the counts of their profiles, or from metrics alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.data.launch_counts import PATTERNS, REUSE_CACHES, REUSE_GROUPS, SUB_GROUPS
from crosscast.devices.launch_work import GlobalAtomics, operation_counts, saved_loads, total_of
from crosscast.prediction.time.work import CACHE_BITS, EVEN_CHANNELS, IRREGULAR, Work
from crosscast.profile import Profile, bytes_outside

if TYPE_CHECKING:
    from crosscast.profile import MetricValue

_MOST_UNIFORM = 0.9  # Of constant accesses, if all are: neighbours at the ends of sub-groups are left out
_REGISTER_BYTES, _SECTOR_BYTES, _LINE_BYTES, _TEXEL_BYTES = 4.0, 32.0, 64.0, 8.0
_ANY_GROUP = ("cuda", "hip")
"""Forms of programs that are compiled for work-groups of any size."""

_BY_WIDTH = (
    *("sub_groups", "saved_loads", "utilization", "real_utilization", "double_utilization"),
    *("accesses", "sectors", "same_address", "lines"),
    *("local_wavefronts", "atomics", "local_atomics", "global_atomics", "turns", "mean_longest"),
)
_TABLES = ("behind", "traits")
_OF_ONE_NUMBER = tuple(each.name for each in fields(Work) if each.name not in (*_BY_WIDTH, *_TABLES))
_NUMBERS, _PAIRS = itemgetter(*_OF_ONE_NUMBER), itemgetter(*_BY_WIDTH)
_NOTHING: Mapping[str, Any] = dict.fromkeys(_OF_ONE_NUMBER, 0.0) | dict.fromkeys(_BY_WIDTH, (0.0, 0.0))
"""Of what a profile counts nothing."""


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
    geometry = launch.get("geometry") or {}
    work = _of_geometry(metrics, geometry, program)
    items, sub_groups = work["items"], work["sub_groups"]
    total = float(metrics.get("total_instruction_count") or 0)
    longest = max(float(metrics.get("max_ipt") or 0), total / items, 1.0)
    counted = launch.get("sub_groups")
    work |= {"longest": longest, "mean": total / items / longest, "exact": counted is not None}
    if counted is None:
        return work | _estimated(metrics, total, work)
    classes = launch.get("instructions") or {}
    operations = operation_counts(classes, total)
    if amd := geometry.get("amd"):
        work["needed"] = min(work["registers"], amd["registers"] + amd["spilled"])
        work["amd_spilled"] = _spilled(amd, operations["floating"] / items)
    sides = [counted[str(width)] for width in SUB_GROUPS]
    requested = bytes_outside(launch.get("work") or {})
    accesses = _of_accesses(sides, _images(metrics, classes, requested))
    item_accesses = accesses["accesses"][0] / max(sub_groups[0], 1.0)
    neighbours = _of_neighbours(launch.get("access_patterns") or {})
    constants, constant_share = _constants(classes)
    # At addresses that neighbours do not share, they are loads of their own.
    operands = constants * (neighbours["uniform"] >= _MOST_UNIFORM * constant_share)
    return {
        **work,
        **operations,
        **accesses,
        **_of_atomics(launch, classes, sides),
        **_of_path(launch.get("path", {}), item_accesses, constant_share),
        **_of_memory(metrics, launch),
        **neighbours,
        **_of_walks(metrics, launch, requested),
        "row_items": min(work["group_items"], *(launch.get("local_size") or [math.inf])[:1]),
        "requested": requested or accesses["sectors"][0],
        "saved_loads": saved_loads(classes),
        "local_stores": total_of(classes.get("stores", {}).get("local", 0)) / items,
        "conditional": total_of(classes.get("branches", {}).get("conditional", 0)) / items,
        "operands": operands,
        **_of_lanes(classes, sides),
        "mean_longest": [
            _mean_longest(side, total, longest, of_width)
            for side, of_width in zip(sides, sub_groups, strict=True)
        ],
    }


def _of_geometry(
    metrics: Mapping[str, MetricValue], geometry: Mapping[str, Any], program: Mapping[str, object]
) -> dict[str, Any]:
    """Sizes of the launch, and space of its groups and work-items; of all else, nothing."""
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
    return {
        **_NOTHING,
        "items": items,
        "groups": groups,
        "group_items": group_items,
        "row_items": group_items,
        "sub_groups": sub_groups,
        "registers": registers,
        "local_bytes": float(sum((geometry.get("local_bytes") or {}).values())),
        "kept": float(geometry.get("kept_values") or 0),
        "any_group": program.get("form") in _ANY_GROUP,
        "code": float(geometry.get("code") or 0),
        "amd_registers": float(geometry.get("amd", {}).get("registers", math.nan)),
        "amd_spilled": math.nan,
        "needed": registers,
        "barriers": float(metrics.get("total_barriers_hit") or 0) / items,
        "atomic_lines": math.inf,
    }


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


def _of_atomics(
    launch: Mapping[str, Any], classes: Mapping[str, Any], sides: Sequence[Mapping[str, int]]
) -> Mapping[str, object]:
    """Atomics of local and of global memory, and those that wait for each other."""
    if not (number := classes.get("atomics")):
        return {}
    in_global = [GlobalAtomics.of(launch, width) for width in SUB_GROUPS]
    local = {kind: total_of(number.get(f"local{kind}", 0)) for kind in ("", "_fp", "_compare")}
    executed = sum(local.values())
    return {
        "atomics": [
            float(side["atomic_conflicts"]) + total_of(number) / width
            for width, side in zip(SUB_GROUPS, sides, strict=True)
        ],
        # Conflicts are counted for both memories: in global memory, those of uniform addresses are between
        # all work-items of an access.
        "local_atomics": [
            max(side["atomic_conflicts"] - max(each.uniform, each.accesses), 0.0) + executed / width
            if executed
            else 0.0
            for side, each, width in zip(sides, in_global, SUB_GROUPS, strict=True)
        ],
        "local_reals": local["_fp"] / max(executed, 1.0),
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
    chains = float(path.get("block_instructions") or path.get("instructions") or 1)
    return {
        "path": float(path.get("instructions") or 1),
        "path_loads": float(loads.get("global", 0)),
        "path_constants": float(loads.get("constant", 0)),
        # Loads may be on other chains than the longest.
        "block_path": max(chains - sum(block_loads.get(space, 0) for space in ("global", "constant")), 0.0),
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
    accesses = max(_accesses(metrics), 1.0)
    width = min(requested / accesses, _LINE_BYTES / 2)
    # Of another line than the one before, if all others continue where it ended.
    beyond = of_items.get("moved_bytes", 0.0) - width * accesses
    jumps = min(max(beyond, 0.0) / (_LINE_BYTES - width), accesses)
    return {
        "jumps": jumps,
        "walk": 2.0 ** (float(of_items.get("mean_walk_log2", 0.0)) + 0.5),
        "alignment": 2.0 ** float(of_items.get("mean_alignment_log2", 0.0)),
        "walks": _walks(launch, jumps, width * accesses),
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
    """Accesses of global and constant memory by work-items."""
    return sum(float(metrics.get(f"{space}_accesses") or 0) for space in ("global", "constant"))


def _constants(classes: Mapping[str, Any]) -> tuple[float, float]:
    """Loads of constant memory, and their share of the accesses of constant and global memory."""
    loads, stores = (classes.get(name, {}) for name in ("loads", "stores"))
    constant = total_of(loads.get("constant", 0))
    others = total_of(loads.get("global", 0)) + total_of(stores.get("global", 0))
    return constant, constant / max(constant + others, 1.0)


def _images(
    metrics: Mapping[str, MetricValue], classes: Mapping[str, Any], requested: float
) -> tuple[float, float]:
    """Share of reads of images among accesses of global memory, and fetches, of 8 bytes each at most."""
    fetches, written = (float(classes.get("images", {}).get(kind, 0)) for kind in ("read", "write"))
    if not fetches:
        return 0.0, 0.0
    total = sum(float(metrics.get(name) or 0) for name in ("total_reads", "total_writes"))
    total = max(total - float(metrics.get("local_accesses") or 0), 1.0)
    share = max(1.0 - (_accesses(metrics) + written) / total, 0.0)
    return share, fetches * max(requested / total / _TEXEL_BYTES, 1.0)


def _mean_longest(side: Mapping[str, Any], total: float, longest: float, sub_groups: float) -> float:
    """Instructions of sub-groups, on average, over those of the longest work-item.

    More than 1 where work-items go different ways, which a sub-group goes one after another. Those of
    sub-groups are counted without phis, of which all work-items have the same share.
    """
    but_phis = side["instructions_without_phi"] / max(total, 1.0)
    mean = side["sub_group_instructions_without_phi"] / max(sub_groups, 1.0)
    return float(mean / max(longest * but_phis, 1.0))


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
        misses = accumulate([max(float(sizes[size]), first) for size in map(str, REUSE_CACHES)], min)
        rows.append([*misses, first])
    return rows


def _estimated(
    metrics: Mapping[str, MetricValue], total: float, sizes: Mapping[str, Any]
) -> dict[str, object]:
    """The work of a launch of some sizes, from its metrics alone."""
    items, sub_groups, longest = sizes["items"], sizes["sub_groups"], sizes["longest"]
    accesses = float(metrics.get("global_accesses") or 0) or float(
        (metrics.get("total_reads") or 0) + (metrics.get("total_writes") or 0)
    )
    size = _access_bytes(metrics, accesses / max(total, 1.0))
    read, written = (size * float(metrics.get(f"unique_{name}") or 0) for name in ("reads", "writes"))
    footprint = read + written or size * float(metrics.get("total_memory_footprint") or 0)
    footprint = min(footprint, size * accesses) if accesses else footprint  # Local memory is in it
    written = min(written or footprint / 3, footprint)
    touched = max(size * accesses, footprint)
    shares = [min(1.0, items / (n * width)) for n, width in zip(sub_groups, SUB_GROUPS, strict=True)]
    local = float(metrics.get("local_accesses") or 0)
    return {
        # Half of the instructions of the intermediate representation compute addresses or are free.
        **operation_counts({}, 0.5 * total),
        **dict.fromkeys(("utilization", "real_utilization", "double_utilization"), shares),
        **dict.fromkeys(("path", "block_path"), 0.3 * longest),
        **dict.fromkeys(("path_loads", "block_loads"), 1.0 if accesses else 0.0),
        **dict.fromkeys(("walk", "alignment", "vectorizable", "of_bank"), 1.0),
        "accesses": [accesses / width / share for width, share in zip(SUB_GROUPS, shares, strict=True)],
        "sectors": [touched, touched],
        "requested": touched,
        "lines": [touched / 128, touched / 128],
        "local_wavefronts": [local / width for width in SUB_GROUPS],
        "written": written,
        "updated": written * _updated(metrics),
        "distinct": footprint,
        "channel_share": EVEN_CHANNELS,
        "behind": _behind(None, footprint),
        "reuse_groups": float(REUSE_GROUPS[-1]),
        "item_accesses": accesses / items,
        "mean_longest": [total / items / longest] * len(SUB_GROUPS),
        "width": 4.0,
    }


def _access_bytes(metrics: Mapping[str, MetricValue], share: float) -> float:
    """Bytes of an access, with 4 for each element; if there are vector instructions, accesses come first.

    `share` is the share of accesses in the instructions.
    """
    widest, mean = (float(metrics.get(f"{name}_simd_width") or 1) for name in ("max", "mean"))
    vectors = (mean - 1.0) / (widest - 1.0) if widest > 1.0 else 0.0
    return 4.0 * (1.0 + min(1.0, vectors / share) * (widest - 1.0)) if share else 4.0
