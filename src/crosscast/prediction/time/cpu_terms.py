"""Terms of a launch's time on CPUs, at rates on paper, as `crosscast.prediction.time.terms` defines them.

Also those on accelerators, which are programmed as CPUs are. A compute unit is a thread, which runs the
work-items of a work-group one after another, or in vectors.
"""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.devices.device_files import GUARDED_ITEMS
from crosscast.devices.launch_work import EXP64_COST, EXP_COST
from crosscast.devices.sheets import Sheets
from crosscast.prediction.time.work import Occupancy, Work, bytes_behind, still_cached

_BARRIER_CLOCKS = 30.0
_ALONE = 2.0  # Instructions of a thread that has a core to itself, over those of one of two
_MEMORY_S = 80e-9  # Latency beyond the last cache
_ONCE = 0.5  # Of a written line's two ways to memory and back
_LINE_BYTES = 64.0
_MOST_SETS = 1024.0  # Of the second cache
_SHARED_LINE = 0.25  # Time of a line of the last cache over one of memory
_LOCKED_CLOCKS = 20.0  # Of a locked instruction: Fog, Instruction tables, 2022
_LOCKED_LINE_S = 15e-9  # From the last cache
_CONTENDED_S = 5e-9  # Of an atomic at an address that twice as many threads use
_CHAIN_CLOCKS, _INTEGER_STEP = 4.0, 0.25  # Latency of a multiply-add; of integers over that
# Latencies of loads: of the first cache; of the second, the last and memory beyond the one before
_LOAD_CLOCKS, _OWN_LOAD_CLOCKS, _SHARED_LOAD_CLOCKS = 5.0, 9.0, 30.0
_TEXEL_CLOCKS = 40.0  # Of a thread for a texel of an image, which has no unit for it (PoCL 3.0)
_DIVIDED_CLOCKS = 1.5  # Of an element of a vector: 0.6 to 3.5 on CPUs of 2011 to 2020 (Fog, as above)
_SCALAR_ISSUE = 2.0
_VECTOR_ITEMS = 8  # Work-items of a group from which on compilers vectorize
# If loops keep step: instructions of the mean work-item over those of the longest, or the share of a
# sub-group's work-items that take part.
_ALIKE, _IN_STEP = 0.7, 0.95
# Behind a barrier: share of the lanes; of a work-item, to begin a part of the code and to end one
_FEW_FENCED, _PART_CLOCKS = 0.5, 4.0
# Of a work-item's time behind a condition, what its row's beginning and end take in rows of `GUARDED_ITEMS`.
# On a Xeon with AVX-512, a row of 16, 64 or 256 took 6, 9 or 23 ns.
_OF_ROW = 0.6
_GUARDED, _SCALAR_CONDITIONS = 0.5, 3.0  # Conditional branches of a work-item; of code without vectors


def cpu_terms(work: Work, sheets: Sheets) -> dict[str, Reals]:
    """Seconds of the terms of ``n`` launches on ``d`` CPUs, of shape ``(n, d)`` or ``(1, d)``, by name."""
    on = Occupancy.of(work, sheets, 1.0)
    sectors = work.sectors[:, :1]
    busy_rate = on.busy * sheets.clock / on.tail
    sole_thread = np.where(2 * work.groups > sheets.units, 1.0, _ALONE)
    lanes = _lanes(work, sheets)
    slots = busy_rate * lanes * sole_thread
    of_one = [(size, 1.0) for size in (sheets.l1, sheets.own_cache, sheets.last_cache)]
    behind = bytes_behind(work, *of_one, (sheets.last_cache, on.together))
    of_thread = np.minimum(behind, sectors)
    issued = work.operations + work.products * sheets.product  # All but reals and divisions
    return {
        "launch": sheets.launch_s,
        "start": sheets.start_s,
        "arithmetic": np.maximum(_real(work, sheets) / slots, _divided(work) / (busy_rate * sole_thread)),
        "issue": issued / (slots * _other_issue(lanes)) + _one_by_one(work, sheets) / busy_rate,
        # Prefetchers fill the second cache while the first is filled from it.
        "l2": np.maximum(of_thread[0] / sheets.own_cache_rate, of_thread[1] / sheets.last_cache_rate)
        / busy_rate,
        "memory": _streamed(np.maximum(of_thread[3], work.distinct), work, sheets),
        "scattered": _scattered(work, sheets, behind) * sheets.units / on.busy,
        "latency": on.waves * _straight_clocks(work, on) / sheets.clock
        + _chains(work, sheets, behind, busy_rate * sole_thread),
        "groups": work.groups * sheets.group_s / on.busy,
        "atomics": np.maximum(_locked(work, sheets, behind[1]) / busy_rate, _at_one_address(work, sheets)),
    }


def _real(work: Work, sheets: Sheets) -> Reals:
    """Operations on reals, in those of single precision, ``(n, d)``; without functions of measured rates."""
    usual = sheets.exp == 0
    real, real_fp64 = (
        each - functions + functions * usual
        for each, functions in (
            (work.operations_real, work.library),
            (work.operations_fp64, work.library_fp64),
        )
    )
    real = real + real_fp64 / sheets.fp64 + work.operations_fp16 / sheets.fp16
    summed: Reals = real + work.conversions_fp64 * sheets.conversion
    return summed


def _divided(work: Work) -> Reals:
    """Clocks of threads for quotients and roots of single precision, however many lanes compute the rest."""
    functions = work.library / EXP_COST
    clocks: Reals = _DIVIDED_CLOCKS * np.maximum(work.special - functions, 0.0)
    return clocks


def _straight_clocks(work: Work, on: Occupancy) -> Reals:
    """Clocks of the dependence chain of a work-item without loops, and of barriers, ``(n, d)``.

    The longest work-item is in one wave; the others have those of usual sub-groups.
    """
    longest = 1.0 / on.waves
    clocks = np.where(work.item_loops, 0.0, work.path) + work.barriers * _BARRIER_CLOCKS
    return clocks * (longest + (1.0 - longest) * np.minimum(work.mean_longest[:, :1], 1.0))


def _streamed(moved: Reals, work: Work, sheets: Sheets) -> Reals:
    """Seconds of bytes to and from memory, ``(n, d)``, at the rates of reading and writing.

    A CPU reads a line before it writes to it, which is in the time of a measured copy. A line that the
    launch reads anyway is read once.
    """
    stored = np.minimum(work.written, moved)
    written = stored - _ONCE * np.minimum(work.updated, stored)
    return (moved - stored) / sheets.reading + written / sheets.writing


def _locked(work: Work, sheets: Sheets, missed: Reals) -> Reals:
    """Clocks of threads for atomics, ``(n, d)``, if a thread's own cache misses so many bytes."""
    lines = np.minimum(work.locked, missed / _LINE_BYTES)
    return work.locked * _LOCKED_CLOCKS + lines * (_LOCKED_LINE_S * sheets.clock)


def _scattered(work: Work, sheets: Sheets, behind: Reals) -> Reals:
    """Seconds of all threads for lines that prefetchers do not predict, ``(n, d)``.

    Requested bytes would come in consecutive lines; a thread's own cache that misses more bytes than these
    fetches the rest line by line. Where the scattered rate was measured, it also counts for work-items that
    walk down columns one after another: the more lines lie between two uses of one, the fewer are still
    there, as sets of the cache conflict and pages are translated again.
    """
    of_cache, of_memory = np.maximum(behind[1:3] - work.requested, 0.0) / _LINE_BYTES
    lines = of_memory + _SHARED_LINE * (of_cache - of_memory)
    if sheets.scattered.any():
        # A walk of steps of a power of two has few sets of a cache to itself.
        sets = np.minimum(work.alignment / _LINE_BYTES, _MOST_SETS)
        first = np.sqrt(sheets.l1 * sheets.own_cache)
        walk = work.walk * np.maximum(sets, 1.0)
        gone = np.log(walk / first) / np.log(np.maximum(sheets.last_cache / first, 2.0))
        lines = np.maximum(lines, work.jumps * np.minimum(np.maximum(gone, 0.0), sheets.scattered))
    seconds: Reals = lines * sheets.line_s
    return seconds


def _lanes(work: Work, sheets: Sheets) -> Reals:
    """Operations of a thread in a clock: as many work-items at once as accesses can be vectorized.

    A compiler that vectorizes neighbours with loops overlaps several steps of their chains. Straight code
    behind a condition, and behind a barrier, was measured apart; behind three conditions, it is not
    vectorized, nor are loops that neighbours pass at different times, nor, where groups are run in parts,
    what neighbours exchange through local memory.
    """
    # Neighbours that all do little do not change that.
    in_step = (work.mean > _ALIKE) | (work.utilization[:, :1] > _IN_STEP) | ~work.item_loops
    share = np.where((work.group_items >= _VECTOR_ITEMS) & in_step, work.vectorizable, 0.0)
    lanes = most = np.maximum(sheets.lanes, 1.0)
    if sheets.has_code_rates:
        at_once = np.minimum(np.maximum(_CHAIN_CLOCKS * sheets.chain, 1.0), most)
        lanes = np.where(work.item_loops & np.isfinite(sheets.chain), at_once, most)
        straight = np.minimum(np.maximum(sheets.lanes * sheets.guarded, 1.0), most)
        vectors = np.minimum(np.maximum(_SCALAR_CONDITIONS - work.conditional, 0.0), 1.0)
        lanes = np.where(_guarded(work, sheets), straight**vectors, lanes)
        exchanged = (work.local_wavefronts[:, :1] > 0) & _in_parts(sheets)
        fenced = np.where(exchanged, 1.0, sheets.fenced)
        lanes = np.where(work.barriers > 0, np.minimum(fenced, lanes), lanes)
    operations: Reals = 1.0 / (share / lanes + (1 - share))
    return operations


def _one_by_one(work: Work, sheets: Sheets) -> Reals:
    """Clocks for divisions by variables, functions, conditions and texels, item by item, ``(n, d)``.

    Functions are as many exponential ones as they cost. Where these were measured, calls are not vectorized.
    """
    short = (work.divisions + work.invariant_divisions) * sheets.division
    divisions = short + work.long_divisions * sheets.long_division
    functions = work.library / EXP_COST + work.library_fp64 / EXP64_COST
    alone = divisions + functions * sheets.exp + work.texels * _TEXEL_CLOCKS
    if not sheets.has_code_rates:
        return alone
    parts = work.barriers * (_in_parts(sheets) * _PART_CLOCKS)
    rows = np.maximum(work.row_items, _VECTOR_ITEMS) / GUARDED_ITEMS
    of_item = _guarded(work, sheets) * sheets.guarded_item * (1.0 - _OF_ROW + _OF_ROW / rows)
    return alone + work.items * (of_item + parts)


def _in_parts(sheets: Sheets) -> Flags:
    """Whether barriers divide the code that a thread runs item by item, as in PoCL.

    What an item keeps beyond a barrier is then in memory, so that most lanes were measured idle behind one.
    """
    return sheets.fenced < _FEW_FENCED * sheets.lanes


def _guarded(work: Work, sheets: Sheets) -> Flags:
    """Whether straight code stands behind a condition, and the device's rate of such was measured."""
    of_work: Flags = (work.conditional >= _GUARDED) & ~work.item_loops
    return of_work & np.isfinite(sheets.guarded)


def _other_issue(lanes: Reals) -> Reals:
    """Other instructions over real operations that a thread issues in a clock.

    Scalar code leaves its units for integers and memory idle.
    """
    return np.minimum(np.maximum(_SCALAR_ISSUE / lanes, 1.0), _SCALAR_ISSUE)


def _chains(work: Work, sheets: Sheets, behind: Reals, busy_rate: Reals) -> Reals:
    """Seconds of the dependency chains in loops of work-items, one item after another, ``(n, d)``.

    Chains of real operations take the measured latency, or else the usual one, of as many work-items at once
    as fit a vector; those of integers less. A load whose address depends on another load waits for the
    nearest cache that has its line. The longest work-item may have little beside it.
    """
    if not work.item_loops.any():
        return np.zeros((1, 1))
    together = np.where(work.group_items >= _VECTOR_ITEMS, np.maximum(sheets.lanes / 2, 1.0), 1.0)
    chain = np.where(np.isfinite(sheets.chain), sheets.chain, together / _CHAIN_CLOCKS)
    real = work.operations_real + work.operations_fp16 + work.operations_fp64
    of_reals = np.minimum(1.0, 4.0 * real / np.maximum(real + work.operations + work.products, 1.0))
    computed = work.computed * (of_reals + (1 - of_reals) * _INTEGER_STEP)
    waits = (work.path_loads + work.path_constants) * _load_clocks(work, sheets, behind)
    total = (work.items * work.mean) * (computed / chain + waits) / busy_rate
    longest = (computed * _CHAIN_CLOCKS + waits) / sheets.clock
    return np.where(work.item_loops, np.maximum(total, longest), 0.0)


def _load_clocks(work: Work, sheets: Sheets, behind: Reals) -> Reals:
    """Mean clocks from the address to the value of a load of a thread, ``(n, d)``.

    `behind` has the bytes that miss its first, its second and the last cache, where those of the launch
    before still are.
    """
    lines = np.maximum(work.items * (work.item_accesses + work.item_constants), 1.0) * _LINE_BYTES
    of_memory = np.maximum(behind[2] - still_cached(work, sheets), 0.0)
    private, shared, memory = (np.minimum(each / lines, 1.0) for each in (*behind[:2], of_memory))
    caches = _LOAD_CLOCKS + _OWN_LOAD_CLOCKS * private + _SHARED_LOAD_CLOCKS * shared
    clocks: Reals = caches + _MEMORY_S * sheets.clock * memory
    return clocks


def _at_one_address(work: Work, sheets: Sheets) -> Reals:
    """Seconds of atomics of all threads that take turns at an address of global memory, ``(n, d)``."""
    threads = np.minimum(sheets.units, work.groups)
    return (work.turns_apart + work.retries) * _CONTENDED_S * np.log2(threads)
