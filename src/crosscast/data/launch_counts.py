"""Counts in a profile's `launch` beside the metrics, with their paths and their columns in tables.

A column is named by the path to its number, joined with underscores: ``launch["geometry"]["registers"]`` is
``geometry_registers``, and ``launch["sub_groups"]["32"]["accesses_read"]`` is ``sub_group_32_accesses_read``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crosscast.data.schema import Column, ColumnType
from crosscast.units import format_bytes

USES = {
    "sub_groups": "sub-groups",
    "access_patterns": "access patterns",
    "distinct_bytes": "distinct bytes",
    "reuse": "reuse",
    "geometry": "geometry",
    "instructions": "instructions",
    "path": "dependence path",
    "host": "host",
}
"""The parts of `launch` that hold counts, and their names for people."""

SUB_GROUPS = (32, 64)
"""Sizes of sub-groups, in work-items, for which accesses are counted."""
REUSE_LINES, REUSE_GROUPS = (64, 128), (1, 16, 256)
REUSE_CACHES = tuple(1 << bits for bits in range(14, 27))
"""Line sizes in bytes, concurrent work-groups, and cache sizes in bytes, for which reuse is counted."""

_SPARSE = frozenset(("access_patterns", "distinct_bytes", "instructions"))
_SPARSE_INSIDE = frozenset(("loads", "block_loads"))
"""Parts that leave out counts of 0, and what does inside of others."""


@dataclass(frozen=True)
class Count:
    """A number of a launch."""

    column: Column
    path: tuple[str, ...]  # Keys that lead to it in `launch`

    @property
    def part(self) -> str:
        """The part of `launch` that holds it."""
        return self.path[0]

    def of(self, launch: Mapping[str, object]) -> int | float | None:
        """Its value in a launch, summed over kinds; ``None`` where that part was not counted."""
        value = launch.get(self.part)
        if not isinstance(value, Mapping):
            return None
        holder: object = None
        for name in self.path[1:]:
            holder, value = value, value.get(name) if isinstance(value, Mapping) else None
        left_out = self.part in _SPARSE or (self.path[-2] in _SPARSE_INSIDE and isinstance(holder, Mapping))
        return 0 if value is None and left_out and self.column.unit else _total(value)


def _total(value: object) -> int | float | None:
    if isinstance(value, Mapping):
        return sum(_total(part) or 0 for part in value.values()) if value else None
    return int(value) if isinstance(value, bool) else value if isinstance(value, int | float) else None


def counts_of(launch: Mapping[str, object]) -> dict[str, int | float | None]:
    """Counts of a launch by column; ``None`` where a count was not made.

    >>> row = counts_of({"distinct_bytes": {"global": {"read": 64}}})
    >>> row["distinct_bytes_global_read"], row["distinct_bytes_global_written"], row["geometry_groups"]
    (64, 0, None)
    """
    return {count.column.name: count.of(launch) for count in COUNTS}


def kinds_of(launch: Mapping[str, object]) -> dict[str, int | float]:
    """Executed instructions by kind, also those without a column.

    >>> kinds_of({"instructions": {"fp32": {"native_exp": 8}, "barriers": 4}})
    {'instructions_fp32_native_exp': 8, 'instructions_barriers': 4}
    """
    return dict(_flat(launch.get("instructions"), "instructions_", "_"))


def work_of(launch: Mapping[str, object]) -> dict[str, int | float]:
    """Operations and bytes of a launch, and its instructions by class.

    >>> work_of({"work": {"global_bytes": 12, "instructions": {"mem": 3}}})
    {'global_bytes': 12, 'instructions.mem': 3}
    """
    return dict(_flat(launch.get("work"), "", "."))


def _flat(values: object, prefix: str, separator: str) -> Iterator[tuple[str, int | float]]:
    """Numbers of nested objects, by their paths."""
    for name, value in values.items() if isinstance(values, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}{separator}", separator)
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", value


def _count(
    path: str, title: str, unit: str = "count", type_: ColumnType = "integer", le: float | None = None
) -> Count:
    part, *names = path.split(".")
    name = "_".join(("sub_group" if part == "sub_groups" else part, *names))
    return Count(Column(name, type_, unit, title, ge=0, le=le), (part, *names))


_OF_SUB_GROUPS = (
    ("accesses_read", "reads of global and constant memory by a sub-group"),
    ("accesses_write", "writes of it, atomics too"),
    ("sectors_32_read", "distinct 32-byte sectors of each read, added up"),
    ("sectors_32_write", "the same of writes"),
    ("lines_64_read", "distinct 64-byte lines of each read, added up"),
    ("lines_64_write", "the same of writes"),
    ("lines_128_read", "distinct 128-byte lines of each read, added up"),
    ("lines_128_write", "the same of writes"),
    ("local_wavefronts_32_banks", "local memory: most words in one of 32 banks, added up"),
    ("instructions_without_phi", "executed instructions, phis left out"),
    ("sub_group_instructions_without_phi", "most executions of each by one work-item, added up"),
    ("sub_group_fp32", "the same of operations on reals of up to 32 bits"),
    ("sub_group_fp64", "the same of those on reals of 64 bits"),
    ("atomic_conflicts", "most work-items of an atomic at one address, added up"),
    ("atomic_accesses", "atomics of global memory, which are among the writes"),
    ("same_address_read", "other reads at one address for all work-items"),
    ("sectors_32_read_only", "sectors of restrict pointers that are only read"),
)
_PATTERNS = {
    "uniform": "pairs of neighbours that access one address",
    "contiguous": "pairs that access one element after the other",
    "strided": "pairs at a distance that their neighbours have too",
    "irregular": "all other pairs",
}
PATTERNS = tuple(_PATTERNS)
"""Pairs of accesses by neighbours, by the difference of their addresses."""

_SPACES = ("global", "constant", "local")
_NUMBERS = {
    **{f"fp{bits}": f"on real numbers of {bits} bits" for bits in (16, 32, 64)},
    **{f"int{bits}": f"on whole numbers of {bits} bits" for bits in (16, 32, 64)},
}
_KINDS = {
    "add": "additions",
    "mul": "multiplications",
    "fused": "multiply-adds",
    "div": "divisions and remainders",
}
_OF_INTEGERS = {
    "joined": "sums, logic and shifts that GPUs do in one instruction with the next",
    "shift": "shifts",
    "div_by_variable": "divisions and remainders by divisors that are no constants",
    "div_by_invariant": "divisions and remainders by divisors that a loop does not change",
}
_CLASSES = {
    "conversions": "conversions between types of numbers",
    "atomics": "atomics",
    "branches": "branches",
    "addresses": "computations of addresses",
    "ids": "readings of ids and sizes",
    "barriers": "barriers",
    "collectives": "operations of a work-group",
    "sub_group": "operations of a sub-group",
    "fences": "fences",
    "vectors": "changes of single elements of vectors",
    "copies": "copies and fills",
    "images": "readings and writings of images",
    "calls": "calls of own functions and their returns",
    "free": "what costs nothing",
    "other": "what is none of these",
}

COUNTS: tuple[Count, ...] = (
    *(_count(f"sub_groups.{width}.{name}", title) for width in SUB_GROUPS for name, title in _OF_SUB_GROUPS),
    *(_count(f"access_patterns.{name}", title) for name, title in _PATTERNS.items()),
    _count("access_patterns.stride_bytes", "distances of strided pairs, added up", "B"),
    _count("access_patterns.vectorized", "1 if work-items leave loops together, 0 if not", "", le=1),
    _count(
        "work_item.moved_bytes",
        "distances between successive accesses of a work-item, at most 64 B each, added up",
        "B",
    ),
    _count("work_item.mean_walk_log2", "mean logarithm of these in a walk, rounded down", "bits", "real"),
    _count(
        "work_item.mean_alignment_log2",
        "mean logarithm of the largest power of two that divides all distances of a walk",
        "bits",
        "real",
    ),
    *(
        _count(f"distinct_bytes.{space}.{side}", f"distinct bytes of {space} memory {side}", "B")
        for space in ("global", "local")
        for side in ("read", "written")
    ),
    *(
        _count(
            f"reuse.bytes.{line}.{groups}.{cache or 'first'}",
            f"bytes from memory behind {format_bytes(cache) if cache else 'an endless cache'}, "
            f"lines of {line} B, {groups} work-groups together",
            "B",
        )
        for line in REUSE_LINES
        for groups in REUSE_GROUPS
        for cache in (*REUSE_CACHES, 0)
    ),
    _count("reuse.rate", "share of lines that was sampled for these", "1", "real", le=1),
    _count("reuse.error", "their relative standard error, estimated", "1", "real"),
    _count(
        "reuse.channel_share",
        "chance that two lines are in one of 16 memory channels, of 256 B in turn",
        "1",
        "real",
        le=1,
    ),
    _count("geometry.groups", "work-groups"),
    _count("geometry.group_items", "work-items of a full work-group"),
    *(_count(f"geometry.sub_groups_{width}", f"sub-groups of {width}") for width in SUB_GROUPS),
    _count("geometry.local_bytes.static", "local memory of variables, of a work-group", "B"),
    _count("geometry.local_bytes.arguments", "local memory of arguments, of a work-group", "B"),
    _count("geometry.registers", "most values that live at once, in units of 32 bits"),
    _count("geometry.private_bytes", "private arrays and structures of a work-item", "B"),
    *(
        count
        for type_, title in _NUMBERS.items()
        for count in (
            _count(f"instructions.{type_}", f"operations {title}"),
            *(
                _count(f"instructions.{type_}.{kind}", f"{name} {title}")
                for kind, name in (_KINDS | (_OF_INTEGERS if type_.startswith("int") else {})).items()
            ),
        )
    ),
    *(
        _count(f"instructions.{side}.{space}", f"{side} of {space} memory")
        for side in ("loads", "stores")
        for space in (*_SPACES, "private", "generic")
    ),
    *(_count(f"instructions.{name}", title) for name, title in _CLASSES.items()),
    _count("path.instructions", "longest chain of dependences of the longest work-item"),
    *(_count(f"path.loads.{space}", f"loads of {space} memory on that chain") for space in _SPACES),
    _count("path.block_instructions", "longest chains of its basic blocks, added up"),
    *(
        _count(f"path.block_loads.{space}", f"the most loads of {space} memory on chains of these blocks")
        for space in _SPACES
    ),
    _count("host.time_s", "shortest native time on the machine that characterized", "s", "real"),
    _count("host.repeats", "runs of which that is the shortest"),
    _count("host.threads", "threads that ran them"),
)
"""All counts with a column, in the order of the columns."""
