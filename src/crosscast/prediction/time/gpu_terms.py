"""Terms of a launch's time on GPUs, at rates on paper, as `crosscast.prediction.time.terms` defines them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.arrays import Reals
from crosscast.devices.launch_work import OF_INVARIANT, SPECIAL_COST
from crosscast.devices.sheets import Sheets
from crosscast.prediction.time.work import (
    EVEN_CHANNELS,
    IRREGULAR,
    Occupancy,
    Work,
    bytes_behind,
    still_cached,
)

# Of a load of local memory, beyond those of an addition, where sub-groups have 64 work-items, as AMD's, or 32
_WIDE_LOCAL_CLOCKS, _LOCAL_CLOCKS = 60.0, 25.0
# Iterations of a loop that compilers unroll: 16 of short ones, 4 of long ones (benchmarks.machine_code)
_JOINED_BLOCKS = 8.0
_AFTER_UNROLLING = 0.5  # Of chains of blocks: all where loops have several blocks, a quarter where one
_BARRIER_CLOCKS = 30.0
_WIDE_ADDRESS_CLOCKS = 4.0  # Of a sub-group of 64 work-items
_WIDE_APART = 0.5  # Clocks of a line of these, if few of them are in one bank
_FEW_OF_BANK = 2.0
_APART = 65536.0  # Largest first cache beside a local memory of its own
_LEAST_CACHE = 32768.0  # Of a larger one, beside local memory
_CONSTANT_CLOCKS = 100.0
_AT_ONCE = 8.0  # Loads in flight
_AT_RANDOM = 2.0  # Time of bytes at random addresses of memory, over that of streams
# Powers of two in the distance of sectors up to which they do not conflict, and from which on they do
_FEW_OF_ONE_SET, _OF_ONE_SET = 2.0, 6.0
_OTHERS, _UNROLLED = 0.02, 4.0
# Largest distance in a page; time of sectors in pages of their own, over that of streams
_OF_ONE_PAGE, _OTHER_PAGE = 512.0, 2.6
_SIDE_CACHE_RATE = 3.7  # Of the cache before memory, over that of the memory
_SECTOR_BYTES, _LINE_BYTES, _REGISTER_BYTES, _WORD_BYTES = 32.0, 64.0, 4.0, 4.0
_CHANNEL_S = 15e-9  # Of a line in one memory channel with others
_LEAST_EXCESS = 0.15  # Share of lines in one channel that others hide
_ATOMIC_CLOCKS = 4.0
# In a clock of the second cache: for each of the device's units, and at most to a line of 128 bytes
_ATOMICS_OF_UNIT, _ATOMICS_OF_LINE = 1.0, 1.6
_LEAST_REGISTERS, _MOST_REGISTERS, _REORDERED, _SHARED_REGISTERS = 16.0, 256.0, 128.0, 24.0
_LARGEST_GROUP_REGISTERS = 128.0
"""Of a work-item where the compiler allows for groups of 1,024."""

_MOST_AT_ONCE = 4.0
"""Live values in program order over the registers that they need after a compiler reorders the code."""

# Instructions of short code; more time for each doubling of those that run, at most so many, and with this
# share of accesses
_SHORT_CODE, _LONGER, _MOST_DOUBLINGS, _MANY_ACCESSES = 2048.0, 0.6, 3.0, 0.2

# LLVM unrolls to 16,384 instructions at most, counted before it simplifies the code: for AMD's targets, with
# their addresses and the two halves of multiply-adds, twice the number after that.
_MOST_UNROLLED = 16384.0 / 2


def gpu_terms(work: Work, sheets: Sheets) -> dict[str, Reals]:
    """Seconds of the terms of ``n`` launches on ``d`` GPUs, of shape ``(n, d)`` or ``(1, d)``, by name."""
    side = sheets.side
    on = Occupancy.of(work, sheets, resident_groups(work, sheets))
    busy_rate = on.busy * sheets.clock / on.tail
    slots = busy_rate * sheets.lanes * _served(work, sheets, on) / _long_code(work)
    bytes_of = _traffic(work, sheets, on)
    spilled_bytes, saved_loads = _registers(work, sheets)
    chain_clocks, stall_clocks = _of_item(work, sheets, bytes_of, on)
    l2_rate = sheets.l2_clock * sheets.rate
    past_rate = np.where(sheets.last_cache > sheets.l2, _SIDE_CACHE_RATE * sheets.bandwidth, np.inf)
    waves_s = on.waves / sheets.clock
    return {
        "launch": sheets.launch_s,
        "start": sheets.start_s,
        "arithmetic": _computed(work, sheets) / slots,
        "issue": _issued(work, sheets) / slots,
        "local": work.local_wavefronts[:, side] * (1.0 - saved_loads) / busy_rate,
        "l1": _line_clocks(work, sheets, bytes_of) / busy_rate,
        # Where memory has a larger cache, it gives what is behind the second.
        "l2": np.maximum(bytes_of.l2 / l2_rate, bytes_of.past / past_rate),
        "memory": _streamed(bytes_of.memory, work, sheets) * _pages(work, sheets),
        "scattered": _scattered(work, sheets, bytes_of),
        "spills": spilled_bytes / sheets.bandwidth + _carried(work) / l2_rate,
        "latency": waves_s * chain_clocks,
        "waiting": waves_s * stall_clocks,
        "groups": work.groups * np.maximum(sheets.group_s / on.busy, sheets.next_group_s),
        "atomics": _atomics(work, sheets, busy_rate),
    }


def resident_groups(work: Work, sheets: Sheets) -> Reals:
    """Resident work-groups of a unit, of shape ``(n, d)``; at least 1."""
    of_group = np.ceil(work.group_items / sheets.width)
    # Compilers that reorder unrolled code need fewer registers than it has values. AMD's keeps
    # what work-items share in scalar registers.
    registers = np.maximum(np.minimum(work.registers + 8, work.needed + _SHARED_REGISTERS), _LEAST_REGISTERS)
    counted = np.maximum(work.amd_registers, _LEAST_REGISTERS)
    of_amd = np.where(np.isfinite(counted), counted, np.minimum(registers, _MOST_REGISTERS))
    needed = np.where(sheets.spills, of_amd, np.minimum(registers, _REORDERED))
    by_registers = sheets.registers / (of_group * sheets.width * needed)
    by_local = sheets.local_bytes / np.maximum(work.local_bytes, 1)
    limits = np.minimum(sheets.sub_groups / of_group, by_registers), np.minimum(by_local, sheets.groups)
    resident: Reals = np.maximum(np.floor(np.minimum(*limits)), 1.0)
    return resident


def _served(work: Work, sheets: Sheets, on: Occupancy) -> Reals:
    """Share of the schedulers of a unit that have a sub-group, ``(n, d)``; others leave their lanes idle."""
    sub_groups = on.of_unit * np.ceil(work.group_items / sheets.width)
    return np.minimum(sub_groups / sheets.schedulers, 1.0)


def _real(work: Work, sheets: Sheets) -> Reals:
    """Operations on reals, in those of single precision and by all work-items of sub-groups, ``(n, d)``.

    Where conversions of doubles have no unit of their own, they take that of doubles (NVIDIA, CUDA C++
    Programming Guide, table of arithmetic throughput). A unit for transcendental functions works beside the
    others, which wait for it where sub-groups have 64 work-items.
    """
    beside = np.maximum(work.operations_real - (SPECIAL_COST - 1) * work.fast, work.special * sheets.special)
    single = np.where(
        sheets.wide,
        work.operations_real + work.special * np.maximum(sheets.special - SPECIAL_COST, 0.0),
        beside,
    )
    real = (single + work.operations_fp16 / sheets.fp16) / work.real_utilization[:, sheets.side]
    doubles = work.operations_fp64 / sheets.fp64 + work.conversions_fp64 * sheets.conversion
    summed: Reals = real + doubles / work.double_utilization[:, sheets.side]
    return summed


def _computed(work: Work, sheets: Sheets) -> Reals:
    """Operations on reals and integers, ``(n, d)``, in the time of those of single precision.

    Many GPUs add three values and do logic of three, and some have fewer lanes for integers, or others. The
    rate of integer products over single precision is as measured on a device or its siblings; AMD's GPUs
    compute short ones at that of sums.
    """
    sums = work.integers + work.joined * sheets.joined + work.shifts * sheets.shift
    products = work.products * sheets.product - work.short_products * (sheets.product - sheets.short_product)
    divisions = (work.divisions + OF_INVARIANT * work.invariant_divisions) * sheets.division
    integers = sums + products + divisions + work.long_divisions * sheets.long_division
    own_lanes = np.maximum(sums / sheets.integers, products) / work.utilization[:, sheets.side]
    real = _real(work, sheets)
    return np.maximum(
        np.maximum(real, own_lanes), (real + integers / work.utilization[:, sheets.side]) / sheets.issue
    )


def _issued(work: Work, sheets: Sheets) -> Reals:
    """All other instructions, ``(n, d)``.

    What neighbours load from one address of constant memory is an operand.
    """
    others = work.operations - work.integers - work.joined - work.shifts - work.operands
    issued: Reals = np.maximum(others, 0.0) / sheets.issue / work.utilization[:, sheets.side]
    return issued


class _Traffic(NamedTuple):
    """Accesses, and bytes that pass the caches, ``(n, d)`` each."""

    accesses: Reals  # Of sub-groups
    sectors: Reals  # Their bytes
    lines: Reals
    l2: Reals  # From the second cache
    past: Reals  # Past the second cache
    memory: Reals  # From memory
    past_l1: Reals  # Share of the accesses that wait for the second cache
    past_l2: Reals  # And for what is behind that
    past_last: Reals  # And for memory


def _traffic(work: Work, sheets: Sheets, on: Occupancy) -> _Traffic:
    """Bytes behind the caches that work-groups share."""
    side = sheets.side
    accesses, sectors, lines = work.accesses[:, side], work.sectors[:, side], work.lines[:, side]
    # A larger first cache holds the local memory, too.
    beside = sheets.l1 - (sheets.l1 > _APART) * (on.of_unit * work.local_bytes)
    own_cache = np.maximum(beside, np.minimum(sheets.l1, _LEAST_CACHE))
    missed = np.minimum(
        bytes_behind(
            work, (own_cache, on.of_unit), (sheets.l2, on.together), (sheets.last_cache, on.together)
        ),
        sectors,
    )
    of_own_cache, behind = _fetched(missed[::2], work, sheets)
    # Units that do not cache global memory cache what compilers know to be only read.
    l2 = sectors - np.maximum(sheets.caches_global, work.read_only) * (sectors - of_own_cache)
    kept = still_cached(work, sheets)
    memory = np.maximum(np.maximum(behind, work.distinct) - kept, 0.0)
    # An access waits if one of its lines is not there; the sectors of a line are, or are not.
    used = np.minimum(sectors, np.maximum(work.requested, _WORD_BYTES * sheets.width * accesses))
    of_line = np.maximum(used / np.maximum(lines, 1.0), _SECTOR_BYTES)
    # Work-items that walk in step come to their next sectors together.
    walked = work.walks * sheets.caches_global * sectors
    touched = np.maximum(np.maximum(accesses * of_line, 1.0), walked)
    missing = np.maximum(behind - kept, 0.0)
    past = np.where(sheets.last_cache > sheets.l2, np.maximum(missed[1], missing), missing)
    past_l1, past_l2, past_last = (np.minimum(each / touched, 1.0) for each in (l2, past, missing))
    return _Traffic(accesses, sectors, lines, l2, missed[1], memory, past_l1, past_l2, past_last)


def _of_item(work: Work, sheets: Sheets, bytes_of: _Traffic, on: Occupancy) -> tuple[Reals, Reals]:
    """Clocks of a work-item's chain of instructions, and those in which it waits for loads, ``(n, d)`` each.

    GPUs do not speculate: they run blocks one after another.
    """

    def waits(blocks: Reals, in_turn: Reals | float) -> Reals:
        # Blocks on two sides of a barrier are not joined, nor those that fill local memory before one, nor
        # iterations of loops that the device's compiler does not unroll.
        apart = np.where(work.barriers > 0, np.minimum(blocks, work.local_stores), 0.0)
        in_turns = np.maximum(apart, in_turn)
        return np.asarray(in_turns + (blocks - in_turns) / _JOINED_BLOCKS)

    # The longest work-item is in one wave; the others have those of usual sub-groups.
    longest = 1.0 / on.waves
    usual = work.mean_longest[:, sheets.side]
    in_wave = longest * np.maximum(usual, 1.0) + (1.0 - longest) * usual
    load = (
        sheets.l1_load
        + (sheets.l2_load - sheets.l1_load) * bytes_of.past_l1
        + sheets.last_load_s * sheets.clock * (bytes_of.past_l2 - bytes_of.past_last)
        + sheets.memory_load_s * sheets.clock * bytes_of.past_last
    )
    local = np.where(sheets.wide, _WIDE_LOCAL_CLOCKS, _LOCAL_CLOCKS)
    steps = _block_path(work, sheets) * sheets.step + work.block_local * local
    chain = (
        steps
        + work.path_loads * load
        + (work.path_constants * _CONSTANT_CLOCKS + work.barriers * _BARRIER_CLOCKS)
    )
    # Loads that need each other are in the chains.
    rolled, in_turn = (
        waits(work.block_loads, each - work.path_loads) for each in (work.loads_rolled, work.loads_in_turn)
    )
    loads = np.maximum(work.item_accesses / _AT_ONCE, np.where(sheets.spills, rolled, in_turn) * in_wave)
    stalls = loads * load
    if work.item_constants.any():
        constants = np.maximum(work.item_constants / _AT_ONCE, waits(work.block_constants, 0.0) * in_wave)
        stalls = stalls + np.where(work.operands > 0, 0.0, _CONSTANT_CLOCKS) * constants
    return chain * in_wave, stalls


def _block_path(work: Work, sheets: Sheets) -> Reals:
    """Instructions but loads of the chains of blocks, one after another, ``(n, d)``, by what they cost.

    Compilers but AMD's unroll short loops by four even if they do not know how often these run; iterations
    then overlap where the next does not need the one before.
    """
    in_turns, cost = work.block_path, 1 + work.further_cost
    if not work.loops.any():
        return in_turns * cost
    unrolled = np.maximum(np.minimum(work.computed, in_turns), _AFTER_UNROLLING * in_turns)
    return np.where(sheets.spills | ~work.loops, in_turns * cost, unrolled * cost)


def _long_code(work: Work) -> Reals:
    """Time of instructions over that of short code, ``(n, 1)``.

    Unrolled code that accesses memory has an address to compute for each access, and is fetched again; hashes
    of thousands of instructions run at the full rate (hashcat's benchmarks).
    """
    if not (work.code > _SHORT_CODE).any():
        return np.ones((1, 1))
    running = np.minimum(work.code, work.longest)
    doublings = np.minimum(np.log2(np.maximum(running / _SHORT_CODE, 1.0)), _MOST_DOUBLINGS)
    local = work.local_wavefronts[:, :1] / np.maximum(work.sub_groups[:, :1], 1.0)
    accesses = (work.item_accesses + local) / np.maximum(work.longest, 1.0)
    return 1.0 + _LONGER * doublings * np.minimum(accesses / _MANY_ACCESSES, 1.0)


def _fetched(missed: Reals, work: Work, sheets: Sheets) -> Reals:
    """Bytes that are fetched, ``(..., n, d)``, where caches miss so many if all work-items keep step.

    Work-items that walk through memory use a sector several times in a row. Schedulers that prefer older
    warps (Rogers et al. 2012) find it in the cache until it is used up; where many lines are of one set, for
    as long as one iteration of a loop that is unrolled by four. AMD's units take their waves in turn.
    """
    if not work.walks.any():
        return missed
    most = np.maximum(_SECTOR_BYTES / work.width, 1.0)
    uses = most / (1.0 + _of_one_set(work) * (most / np.minimum(most, _UNROLLED) - 1.0))
    joined = np.where(sheets.spills, 1.0, 1.0 + (uses - 1.0) * work.walks)
    return np.maximum(missed / joined, np.minimum(work.behind[:, 0, -1:], missed))


def _of_one_set(work: Work) -> Reals:
    """From 0 to 1, how much lines of neighbours conflict, by the power of two in their distance, ``(n, 1)``.

    The distance is a mean, of which a few others may be a part.
    """
    sectors = np.rint(work.apart / _SECTOR_BYTES)
    near = np.abs(sectors * _SECTOR_BYTES - work.apart) <= _OTHERS * work.apart
    distance = np.where(near, sectors, 1.0).astype(np.int64)
    power = np.log2(np.maximum(distance & -distance, 1))
    share = (power - _FEW_OF_ONE_SET) / (_OF_ONE_SET - _FEW_OF_ONE_SET)
    of_one_set: Reals = np.minimum(np.maximum(share, 0.0), 1.0)
    return of_one_set


def _pages(work: Work, sheets: Sheets) -> Reals:
    """Time of memory over that of streams, ``(n, d)``: neighbours may walk in different pages."""
    if not work.walks.any():
        return np.ones((1, 1))
    page = np.minimum(np.maximum(work.apart / _OF_ONE_PAGE, 1.0), _OTHER_PAGE)
    return np.where(sheets.spills, 1.0, 1.0 + (page - 1.0) * work.walks)


def _line_clocks(work: Work, sheets: Sheets, bytes_of: _Traffic) -> Reals:
    """Clocks of the units' first caches for the lines that accesses touch, ``(n, d)``.

    One looks up several lines a clock, and gives one word of each bank (te42kyfo, gpu-benches, gpu-strides).
    Units for textures read several texels of images a clock, wide ones in parts.
    """
    operands = work.operands / sheets.width
    accesses, lines = (np.maximum(each - operands, 0.0) for each in (bytes_of.accesses, bytes_of.lines))
    requested = np.maximum(work.requested - _WORD_BYTES * work.operands, 0.0)
    of_banks = np.maximum(work.strided * work.of_bank, 1.0)
    narrow = np.maximum(np.maximum(accesses * of_banks, requested / sheets.l1_clock), lines / sheets.lookups)
    apart = np.where(
        (work.strided > 0.5) & (work.of_bank <= _FEW_OF_BANK), _WIDE_APART / _LINE_BYTES, 1.0 / _LINE_BYTES
    )
    wide = np.maximum(_WIDE_ADDRESS_CLOCKS * accesses, apart * bytes_of.sectors)
    return np.maximum(np.where(sheets.wide, wide, narrow), work.texels / sheets.texels)


def _scattered(work: Work, sheets: Sheets, bytes_of: _Traffic) -> Reals:
    """Seconds of lines that wait for each other, or come from anywhere in memory, ``(n, d)``.

    Lines in one memory channel, beyond those of an even distribution: its part of the second cache and its
    memory serve them one after another (AMD APP SDK, OpenCL Optimization Guide, 2015, on channel conflicts).
    They conflict in the first cache, too. Reads of all units at one address, one a clock of a part of the
    second cache, if they do not keep global memory in their own (kmeans on three of Pascal's). And bytes of
    memory that regular accesses did not request.
    """
    even = np.maximum(work.channel_share - EVEN_CHANNELS, 0.0) / (1.0 - EVEN_CHANNELS)
    excess = np.maximum(np.sqrt(even) - _LEAST_EXCESS, 0.0) / (1.0 - _LEAST_EXCESS)
    one_channel = excess * (_CHANNEL_S / _LINE_BYTES) * (sheets.channels * bytes_of.sectors)
    one_line = work.same_address[:, sheets.side] * ((1.0 - sheets.caches_global) / sheets.clock)
    regular = work.requested * (1.0 - work.irregular)
    times = np.where(work.irregular > IRREGULAR, _AT_RANDOM, 0.0)
    at_random = np.maximum(bytes_of.memory - regular, 0.0) * times / sheets.bandwidth
    return np.maximum(np.maximum(one_channel, one_line), at_random)


def _registers(work: Work, sheets: Sheets) -> tuple[Reals, Reals]:
    """Bytes of values that do not fit the registers, and the share of local loads that registers save.

    Of shape ``(n, d)`` each. A spilled value is written once and read once, if AMD's compiler does not say.
    Consecutive loads are joined by nvcc, and by AMD's compiler of all languages; NVIDIA's of OpenCL does not:
    times of CLBlast's gemm (Kernel Tuner) are those of single loads.
    """
    # Code that AMD's does not unroll keeps its loops, and no value from one iteration to the next.
    unrolled = work.code < _MOST_UNROLLED
    most = np.where(work.any_group, _LARGEST_GROUP_REGISTERS, _MOST_REGISTERS)
    of_amd = unrolled * 2 * np.maximum(work.kept - most, 0.0)
    of_amd = np.where(np.isfinite(work.amd_spilled), work.amd_spilled, of_amd)
    of_others = 2 * np.maximum(work.kept - _MOST_AT_ONCE * _MOST_REGISTERS, 0.0)
    repeated, consecutive = work.saved_loads[:, :1], work.saved_loads[:, 1:]
    values = np.where(sheets.spills, of_amd, of_others)
    saved = np.where(
        sheets.spills, unrolled * (repeated + consecutive), repeated + work.any_group * consecutive
    )
    return values * (_REGISTER_BYTES * work.items), saved


def _carried(work: Work) -> Reals:
    """Bytes of loop-carried values that do not fit the registers, ``(n, 1)``, at each use of them.

    Compilers reorder straight-line code until fewer values are live at once, but not loop-carried values.
    """
    if not (work.needed > _MOST_REGISTERS).any():
        return np.zeros((1, 1))
    share = np.maximum(1.0 - _MOST_REGISTERS / np.maximum(work.needed, 1.0), 0.0)
    return 2 * _REGISTER_BYTES * share * work.loops * (work.items * work.longest * work.mean)


def _streamed(moved: Reals, work: Work, sheets: Sheets) -> Reals:
    """Seconds of bytes to and from memory, ``(n, d)``, at the rates of reading and writing."""
    stored = np.minimum(work.written, moved)
    return (moved - stored) / sheets.reading + stored / sheets.writing


def _atomics(work: Work, sheets: Sheets, busy_rate: Reals) -> Reals:
    """Seconds of atomics, ``(n, d)``: of local memory, sent to the second cache, or at one address there.

    The second cache does one of these a clock. Of compare-exchanges that are repeated until they succeed, one
    succeeds in the time of a load.
    """
    side = sheets.side
    # Those on reals are loops until an exchange succeeds, but for AMD's.
    looped = np.where(sheets.spills, 1.0, 1.0 + (_ATOMIC_CLOCKS - 1.0) * work.local_reals)
    clocks = work.local_atomics[:, side] * sheets.local_atomic * looped
    clocks = clocks + work.global_atomics[:, side] * _ATOMIC_CLOCKS
    at_once = np.minimum(_ATOMICS_OF_UNIT * sheets.units, _ATOMICS_OF_LINE * work.atomic_lines)
    turns = work.turns[:, side] + work.retries * sheets.l2_load
    return np.maximum(clocks / busy_rate, np.maximum(work.atomics_done / at_once, turns) / sheets.clock)
