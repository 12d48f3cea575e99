"""The work of launches in numbers, and its work-groups and their data on the units and caches of a device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.launch_counts import REUSE_CACHES, REUSE_GROUPS
from crosscast.devices.sheets import Sheets

CACHE_BITS = tuple(size.bit_length() - 1 for size in REUSE_CACHES)
"""Logarithms of the sizes of caches in bytes, for which a profile has the bytes behind them."""

EVEN_CHANNELS = 1 / 16
"""Chance that two of many consecutive lines are in one channel."""

IRREGULAR = 0.05
"""Share of irregular accesses above which a launch counts as irregular."""

_FITS, _FULL = 0.7, 0.88  # Shares of the last cache up to which all, and from which no data stay there
_LOOPS = 2.0  # Instructions of a work-item over those of the code


@dataclass(frozen=True, eq=False)
class Work:
    """The work of ``n`` launches; arrays are of shape ``(n, 1)`` unless stated otherwise."""

    exact: Reals  # 1 if the profile has counts by sub-groups, 0 if the work is estimated
    items: Reals
    groups: Reals
    group_items: Reals
    row_items: Reals  # Of these, neighbours in the first dimension
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

_AS_MANY = 1.02  # Bytes missed over those of another cache, if they are the same but for sampling
_TINY = 1e-15
_BITS = np.array(CACHE_BITS)
_LAST = len(CACHE_BITS) - 1
_SEVERAL = math.log2(REUSE_GROUPS[-2])
# Places in a table of bytes behind caches: of a size and the next, for a number of groups and the next
_CORNERS = np.array([[0, 1], [_LAST + 2, _LAST + 3]])[..., None, None, None]


class Occupancy(NamedTuple):
    """Work-groups of ``n`` launches on ``d`` devices; arrays are of shape ``(n, d)``."""

    of_unit: Reals  # Work-groups of a unit at once
    busy: Reals  # Units that have a work-group; the last wave may leave most of them idle
    waves: Reals  # Of the groups that are resident together
    tail: Reals  # Time of whole rounds of groups over that of groups spread evenly
    together: Reals  # Work-groups of all units at once

    @classmethod
    def of(cls, work: Work, sheets: Sheets, resident: Reals | float) -> Occupancy:
        """Distribute the work-groups, of which a unit has so many at once, ``(n, d)``."""
        groups, each, at_once = work.groups, work.groups / sheets.units, sheets.units * resident
        rounds = np.maximum(each, 1.0)
        return cls(
            of_unit=np.minimum(np.ceil(each), resident),
            busy=np.minimum(sheets.units, groups),
            waves=np.maximum(groups / at_once, 1.0),
            tail=np.ceil(rounds - 1e-9) / rounds,
            together=np.minimum(groups, at_once),
        )


def bytes_behind(work: Work, *caches: tuple[Reals, Reals | float]) -> Reals:
    """Bytes ``(len(caches), n, d)`` that miss caches, each of a size in bytes and shared by so many groups.

    Interpolated in the logarithms of the sizes and numbers of groups that a profile has. More groups than its
    most need more space for data of their own.
    """
    bits = np.empty((2, len(caches), len(work), np.shape(caches[-1][0])[-1]))
    for number, each in enumerate(caches):
        bits[0, number], bits[1, number] = each
    size, group = np.log2(bits, out=bits)
    position = np.minimum(np.maximum(size - _BITS[0], 0.0), _LAST)
    known = np.log2(np.minimum(REUSE_GROUPS, work.reuse_groups))
    alone, several, most = known.T[..., None]
    beyond = group > most
    if beyond.any():
        growth = np.array(list(map(_growth, work.behind[..., :-1].tolist(), known[:, -1].tolist()))).T
        if len(work) > 1:
            growth = growth[:, beyond.nonzero()[1]]
        position[beyond] = _beyond(size[beyond], (group - most)[beyond], growth)
    of_groups = np.zeros(group.shape)
    for low, high in ((alone, several), (several, most)):
        of_groups += np.minimum(np.maximum((group - low) / np.maximum(high - low, _TINY), 0.0), 1.0)
    first, fewer = (
        np.minimum(position.astype(int), _LAST - 1),
        np.minimum(of_groups.astype(int), len(REUSE_GROUPS) - 2),
    )
    row = np.arange(len(work))[:, None] * len(REUSE_GROUPS)
    corners = work.behind.reshape(-1)[(row + fewer) * (_LAST + 2) + first + _CORNERS]
    smaller, larger = corners[0] + (of_groups - fewer) * (corners[1] - corners[0])
    missed: Reals = smaller + (position - first) * (larger - smaller)
    return missed


def still_cached(work: Work, sheets: Sheets) -> Reals:
    """Bytes of a launch that are in the last cache from the launch before, ``(n, d)``.

    Beyond its size, the first are gone when they are used again.
    """
    first = np.maximum(work.behind[:, 0, -1:], work.distinct)
    share = (_FULL - first / sheets.last_cache) / (_FULL - _FITS)
    return np.minimum(np.maximum(share, 0.0), 1.0) * first


def _beyond(bits: Reals, more: Reals, growth: Reals) -> Reals:
    """Index of a cache's size ``(k,)`` among those in which the most groups of a profile miss as much.

    If ``2**more`` times as many groups share the cache; `growth` is ``(sizes, k)`` or ``(sizes, 1)``.
    """
    # What a larger cache misses, a smaller one misses too.
    needed = np.minimum.accumulate((_BITS[:, None] + growth * more)[::-1])[::-1]
    first, steps = needed[:-1], np.maximum(needed[1:] - needed[:-1], _TINY)
    index: Reals = np.minimum(np.maximum((bits - first + _TINY) / steps, 0.0), 1.0).sum(axis=0)
    return index


def _growth(by_groups: Sequence[Sequence[float]], most: float) -> list[float]:
    """Power of the number of groups with which caches of each size must grow to miss no more bytes.

    Of the bytes that the most groups of a profile, ``2**most``, miss in each size: 1 where groups have data
    of their own, 0 where they share them. Sixteen groups, or one, miss as many bytes in a smaller cache.
    """
    alone, several, many = by_groups
    few, fewer = (several, _SEVERAL) if most >= _SEVERAL + 1 else (alone, 0.0)
    if few[0] <= _AS_MANY * many[-1]:  # No cache has more of it than another
        return [1.0] * len(many)
    growth, fits, smallest = [], 0, 0
    for size, missed in enumerate(many):
        while fits < _LAST and few[fits] > _AS_MANY * missed:
            fits += 1
        least = few[fits]
        between = (missed - least) / max(few[max(fits - 1, 0)] - least, _TINY)
        power = (size - fits + min(max(between, 0.0), 1.0)) / max(most - fewer, _TINY)
        growth.append(min(max(power, 0.0), 1.0))
        smallest += fits == 0 and size < _LAST
    # The smallest size may be larger than needed: as of the next that is not.
    return [growth[smallest]] * smallest + growth[smallest:]
