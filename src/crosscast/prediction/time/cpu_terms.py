"""Terms of a launch's time on CPUs, at rates on paper, as `crosscast.prediction.time.terms` defines them.

Also those on accelerators, which are programmed as CPUs are. A compute unit is a thread, which runs the
work-items of a work-group one after another, or in vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.devices.architectures import Sheets
from crosscast.devices.launch_work import EXP64_COST, EXP_COST, SPECIAL_COST
from crosscast.prediction.time.occupancy import Occupancy, bytes_behind
from crosscast.prediction.time.work import Work

_LAUNCH_S, _START_S = 15e-6, 5e-6
_GROUP_CLOCKS, _BARRIER_CLOCKS = 1000.0, 30.0
_ALONE = 2.0  # Instructions of a thread that has a core to itself, over those of one of two
_PRODUCT_RATE = 0.5  # Of integers, over single precision
_MEMORY_S = 80e-9  # Latency beyond the last cache
_ONCE = 0.5  # Of a written line's two ways to memory and back
_SCATTERED_LINE_S = 20e-9  # Of a thread
_LINE_BYTES = 64.0
_OWN_CACHE_BYTES, _CACHE_BYTES = 32.0, 8.0  # That a core reads from its second and the last cache in a clock
_MOST_SETS = 1024.0  # Of the second cache
_SHARED_LINE = 0.25  # Time of a line of the last cache over one of memory
_LOCKED_CLOCKS = 20.0  # Of a locked instruction: Fog, Instruction tables, 2022
_LOCKED_LINE_S = 15e-9  # From the last cache
_CONTENDED_S = 5e-9  # Of an atomic at an address that twice as many threads use
_CHAIN_CLOCKS, _INTEGER_STEP = 4.0, 0.25  # Latency of a multiply-add; of integers over that
# Latencies of loads: of the first cache; of the second, the last and memory beyond the one before
_LOAD_CLOCKS, _OWN_LOAD_CLOCKS, _SHARED_LOAD_CLOCKS = 5.0, 9.0, 30.0
_TEXEL_CLOCKS = 40.0  # Of a thread for a texel of an image, which has no unit for it (PoCL 3.0)
_SCALAR_ISSUE = 2.0
_VECTOR_ITEMS = 8  # Work-items of a group from which on compilers vectorize
# If loops keep step: instructions of the mean work-item over those of the longest, or the share of a
# sub-group's work-items that take part.
_ALIKE, _IN_STEP = 0.7, 0.95
_GUARDED, _SCALAR_CONDITIONS = 0.5, 3.0  # Conditional branches of a work-item; of code without vectors


def cpu_terms(work: Work, sheets: Sheets) -> dict[str, Reals]:
    """Seconds of the terms of ``n`` launches on ``d`` CPUs, of shape ``(n, d)`` or ``(d,)``, by name."""
    alone = np.ones((len(work), len(sheets.gpu)))
    on = Occupancy.of(work, sheets, alone)
    groups, sectors = work.groups[:, None], work.sectors[:, :1]
    busy_rate = on.busy * sheets.clock / on.tail
    sole_thread = np.where(2 * groups > sheets.units, 1.0, _ALONE)
    lanes = _lanes(work, sheets)
    slots = busy_rate * lanes * sole_thread
    caches = (sheets.l1, sheets.own_cache, sheets.last_cache)
    *of_thread, of_all = bytes_behind(
        work, *((cache, alone) for cache in caches), (sheets.last_cache, on.together)
    )
    behind = np.minimum(of_all, sectors)
    of_group = np.where(np.isfinite(sheets.group_s), sheets.group_s, _GROUP_CLOCKS / sheets.clock)
    start = np.where(np.isfinite(sheets.empty_s), sheets.empty_s, _START_S)
    measured = np.maximum(sheets.round_trip_s - start, 0.0)
    return {
        "launch": np.where(np.isfinite(measured), measured, _LAUNCH_S),
        "start": start,
        "arithmetic": _real(work, sheets) / slots,
        "issue": _issued(work, sheets) / (slots * _other_issue(lanes))
        + _one_by_one(work, sheets) / busy_rate,
        "l2": _cached([np.minimum(missed, sectors) for missed in of_thread], sheets, busy_rate),
        "memory": _streamed(np.maximum(behind, work.distinct[:, None]), work, sheets),
        "scattered": _scattered(work, sheets, of_thread) * sheets.units / on.busy,
        "latency": on.waves * _straight_clocks(work, on) / sheets.clock
        + _chains(work, sheets, of_thread, busy_rate * sole_thread),
        "groups": groups * of_group / on.busy,
        "atomics": np.maximum(_locked(work, sheets, of_thread[1]) / busy_rate, _at_one_address(work, sheets)),
    }


def _real(work: Work, sheets: Sheets) -> Reals:
    """Operations on reals, in those of single precision, ``(n, d)``; without functions of measured rates."""
    usual = np.isnan(sheets.exp)
    single = work.operations_real - work.library, work.library
    double = work.operations_fp64 - work.library_fp64, work.library_fp64
    real, real_fp64 = (each[:, None] + functions[:, None] * usual for each, functions in (single, double))
    real = real + real_fp64 / sheets.fp64 + work.operations_fp16[:, None] / sheets.fp16
    real = real + work.conversions_fp64[:, None] * np.maximum(1.0 / sheets.fp64, 1.0)
    summed: Reals = real + work.special[:, None] * np.maximum(sheets.special - SPECIAL_COST, 0.0)
    return summed


def _issued(work: Work, sheets: Sheets) -> Reals:
    """All other instructions but divisions, ``(n, d)``."""
    issued = (work.operations + work.products / _PRODUCT_RATE)[:, None]
    return np.maximum(issued, work.integers[:, None] / sheets.integers)


def _straight_clocks(work: Work, on: Occupancy) -> Reals:
    """Clocks of the dependence chain of a work-item without loops, and of barriers, ``(n, d)``.

    The longest work-item is in one wave; the others have those of usual sub-groups.
    """
    in_wave = 1.0 / on.waves + (1.0 - 1.0 / on.waves) * work.mean_longest[:, :1]
    clocks = np.where(work.item_loops, 0.0, work.path) + work.barriers * _BARRIER_CLOCKS
    of_wave: Reals = clocks[:, None] * in_wave
    return of_wave


def _streamed(moved: Reals, work: Work, sheets: Sheets) -> Reals:
    """Seconds of bytes to and from memory, ``(n, d)``: at the rates of reading and writing, if measured.

    A CPU reads a line before it writes to it, which is in the time of a measured copy. A line that the
    launch reads anyway is read once.
    """
    written, updated = work.written[:, None], work.updated[:, None]
    on_paper = (moved + written - updated) / sheets.bandwidth
    stored = np.minimum(written, moved)
    by_streams = (moved - stored) / sheets.reading + (
        stored - _ONCE * np.minimum(updated, stored)
    ) / sheets.writing
    return np.where(np.isfinite(by_streams), by_streams, on_paper)


def _cached(behind: Sequence[Reals], sheets: Sheets, busy_rate: Reals) -> Reals:
    """Seconds of the bytes that miss a thread's first cache, or of those that miss its second, ``(n, d)``.

    Prefetchers fill the second cache while the first is filled from it.
    """

    def read(missed: Reals, rate: Reals, usual: float) -> Reals:
        in_clock = np.where(np.isfinite(rate), rate / (sheets.units * sheets.clock), usual)
        return missed / (in_clock * busy_rate)

    own, last, _ = behind
    return np.maximum(
        read(own, sheets.own_cache_rate, _OWN_CACHE_BYTES), read(last, sheets.last_cache_rate, _CACHE_BYTES)
    )


def _locked(work: Work, sheets: Sheets, missed: Reals) -> Reals:
    """Clocks of threads for atomics, ``(n, d)``, if a thread's own cache misses so many bytes."""
    locked = work.locked[:, None]
    return locked * _LOCKED_CLOCKS + np.minimum(locked, missed / _LINE_BYTES) * _LOCKED_LINE_S * sheets.clock


def _scattered(work: Work, sheets: Sheets, behind: Sequence[Reals]) -> Reals:
    """Seconds of all threads for lines that prefetchers do not predict, ``(n, d)``.

    Requested bytes would come in consecutive lines; a thread's own cache that misses more bytes than these
    fetches the rest line by line. Where the scattered rate was measured, it also counts for work-items that
    walk down columns one after another: the more lines lie between two uses of one, the fewer are still
    there, as sets of the cache conflict and pages are translated again.
    """
    lines, of_memory = (
        np.maximum(missed - work.requested[:, None], 0.0) / _LINE_BYTES for missed in behind[1:]
    )
    line_s = np.where(np.isfinite(sheets.scattered), 1 / sheets.scattered, _SCATTERED_LINE_S / sheets.units)
    lines = of_memory + _SHARED_LINE * (lines - of_memory)
    # A walk of steps of a power of two has few sets of a cache to itself.
    sets = np.minimum(work.alignment / _LINE_BYTES, _MOST_SETS)[:, None]
    first = np.sqrt(sheets.l1 * sheets.own_cache)
    walk = work.walk[:, None] * np.maximum(sets, 1.0)
    gone = np.log(walk / first) / np.log(np.maximum(sheets.last_cache / first, 2.0))
    again = np.where(np.isfinite(sheets.scattered), work.jumps[:, None] * np.clip(gone, 0.0, 1.0), 0.0)
    seconds: Reals = np.maximum(lines, again) * line_s
    return seconds


def _lanes(work: Work, sheets: Sheets) -> Reals:
    """Operations of a thread in a clock: as many work-items at once as accesses can be vectorized.

    A compiler that vectorizes neighbours with loops overlaps several steps of their chains. Straight code
    behind a condition, and behind a barrier, was measured apart; behind three conditions, it is not
    vectorized, nor are loops that neighbours pass at different times.
    """
    # Neighbours that all do little do not change that.
    in_step = (work.mean > _ALIKE) | (work.utilization[:, 0] > _IN_STEP) | ~work.item_loops
    share = np.where((work.group_items >= _VECTOR_ITEMS) & in_step, work.vectorizable, 0.0)[:, None]
    lanes = np.maximum(sheets.lanes, 1.0)
    at_once = np.clip(_CHAIN_CLOCKS * sheets.chain, 1.0, lanes)
    lanes = np.where(work.item_loops[:, None] & np.isfinite(at_once), at_once, lanes)
    straight = np.clip(sheets.lanes * sheets.guarded, 1.0, lanes)
    straight = straight ** np.clip(_SCALAR_CONDITIONS - work.conditional, 0.0, 1.0)[:, None]
    lanes = np.where(_guarded(work, sheets), straight, lanes)
    fenced = (work.barriers > 0)[:, None] & np.isfinite(sheets.fenced)
    lanes = np.where(fenced, np.clip(sheets.fenced, 1.0, lanes), lanes)
    operations: Reals = 1.0 / (share / lanes + (1 - share))
    return operations


def _one_by_one(work: Work, sheets: Sheets) -> Reals:
    """Clocks for divisions by variables, functions, conditions and texels, item by item, ``(n, d)``.

    Functions are as many exponential ones as they cost. Where these were measured, calls are not vectorized.
    """
    short = (work.divisions + work.invariant_divisions)[:, None] * sheets.division
    divisions = short + work.long_divisions[:, None] * sheets.long_division
    of_items = work.items[:, None] * np.nan_to_num(sheets.guarded_item) * sheets.clock
    functions = (work.library / EXP_COST + work.library_fp64 / EXP64_COST)[:, None]
    alone = divisions + functions * np.nan_to_num(sheets.exp) + work.texels[:, None] * _TEXEL_CLOCKS
    clocks: Reals = alone + np.where(_guarded(work, sheets), of_items, 0.0)
    return clocks


def _guarded(work: Work, sheets: Sheets) -> Flags:
    """Whether straight code stands behind a condition, and the device's rate of such was measured."""
    of_work: Flags = (work.conditional >= _GUARDED)[:, None] & ~work.item_loops[:, None]
    return of_work & np.isfinite(sheets.guarded)


def _other_issue(lanes: Reals) -> Reals:
    """Other instructions over real operations that a thread issues in a clock.

    Scalar code leaves its units for integers and memory idle.
    """
    return np.clip(_SCALAR_ISSUE / lanes, 1.0, _SCALAR_ISSUE)


def _chains(work: Work, sheets: Sheets, behind: Sequence[Reals], busy_rate: Reals) -> Reals:
    """Seconds of the dependency chains in loops of work-items, one item after another, ``(n, d)``.

    Chains of real operations take the measured latency, or else the usual one, of as many work-items at once
    as fit a vector; those of integers less. A load whose address depends on another load waits for the
    nearest cache that has its line. The longest work-item may have little beside it.
    """
    together = np.where((work.group_items >= _VECTOR_ITEMS)[:, None], np.maximum(sheets.lanes / 2, 1.0), 1.0)
    chain = np.where(np.isfinite(sheets.chain), sheets.chain, together / _CHAIN_CLOCKS)
    real = work.operations_real + work.operations_fp16 + work.operations_fp64
    of_reals = np.minimum(1.0, 4.0 * real / np.maximum(real + work.operations + work.products, 1.0))
    step = (of_reals + (1 - of_reals) * _INTEGER_STEP)[:, None]
    loads = work.path_loads + work.path_constants
    computed = work.computed[:, None] * step
    waits = loads[:, None] * _load_clocks(work, sheets, behind)
    total = (work.items * work.mean)[:, None] * (computed / chain + waits) / busy_rate
    longest = (computed * _CHAIN_CLOCKS + waits) / sheets.clock
    seconds: Reals = np.where(work.item_loops[:, None], np.maximum(total, longest), 0.0)
    return seconds


def _load_clocks(work: Work, sheets: Sheets, behind: Sequence[Reals]) -> Reals:
    """Mean clocks from the address to the value of a load of a thread, ``(n, d)``.

    `behind` has the bytes that miss its first, its second and the last cache.
    """
    of_item = work.item_accesses + work.item_constants
    lines = np.maximum(work.items * of_item, 1.0)[:, None] * _LINE_BYTES
    beyond = (_OWN_LOAD_CLOCKS, _SHARED_LOAD_CLOCKS, _MEMORY_S * sheets.clock)
    clocks = np.full(behind[0].shape, _LOAD_CLOCKS)
    for missed, further in zip(behind, beyond, strict=True):
        clocks = clocks + further * np.minimum(missed / lines, 1.0)
    return clocks


def _at_one_address(work: Work, sheets: Sheets) -> Reals:
    """Seconds of atomics of all threads that take turns at an address of global memory, ``(n, d)``."""
    threads = np.minimum(sheets.units, work.groups[:, None])
    seconds: Reals = (work.turns_apart + work.retries)[:, None] * _CONTENDED_S * np.log2(threads)
    return seconds
