"""Terms of a launch's time on GPUs, at rates on paper, as `crosscast.prediction.time.terms` defines them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.arrays import Reals
from crosscast.devices.architectures import Sheets
from crosscast.devices.catalogue import FACTS
from crosscast.devices.launch_work import JOINED_INTEGERS, SPECIAL_COST, division_instructions
from crosscast.prediction.time.occupancy import Occupancy, bytes_behind
from crosscast.prediction.time.work import EVEN_CHANNELS, IRREGULAR, Work

_LAUNCH_S, _START_S = 5.5e-6, 1.7e-6
_USUAL_LAUNCH_S = 6e-6  # From the call to the start, in collections of measured devices
# Of a load of local memory, beyond those of an addition, by whether sub-groups have 64 work-items, as AMD's
_LOCAL_CLOCKS = {True: 60.0, False: 25.0}
# Iterations of a loop that compilers unroll: 16 of short ones, 4 of long ones (benchmarks.machine_code)
_JOINED_BLOCKS = 8.0
_AFTER_UNROLLING = 0.5  # Of chains of blocks: all where loops have several blocks, a quarter where one
_BARRIER_CLOCKS = 30.0
_WIDE_ADDRESS_CLOCKS = 4.0  # Of a sub-group of 64 work-items
_WIDE_APART = 0.5  # Clocks of a line of these, if few of them are in one bank
_FEW_OF_BANK = 2.0
_APART = 65536.0  # Largest first cache beside a local memory of its own
_LEAST_CACHE = 32768.0  # Of a larger one, beside local memory
_MEMORY_S = 240e-9  # Latency beyond the last cache
_CONSTANT_CLOCKS = 100.0
_AT_ONCE = 8.0  # Loads in flight
_FITS, _FULL = 0.7, 0.88  # Shares of the last cache up to which all, and from which no data stay there
_AT_RANDOM = 2.0  # Time of bytes at random addresses of memory, over that of streams
# Powers of two in the distance of lines up to which they do not conflict, and from which on they do
_OF_ONE_SET = (128.0, 2048.0)
_OTHERS, _UNROLLED = 0.02, 4.0
# Largest distance in a page; time of sectors in pages of their own, over that of streams
_OF_ONE_PAGE, _OTHER_PAGE = 512.0, 2.6
_SIDE_CACHE_RATE = 3.7  # Of the cache before memory, over that of the memory
_SECTOR_BYTES, _LINE_BYTES, _REGISTER_BYTES, _WORD_BYTES = 32.0, 64.0, 4.0, 4.0
_CHANNEL_S = 15e-9  # Of a line in one memory channel with others
_LEAST_EXCESS = 0.15  # Share of lines in one channel that others hide
_GROUP_CLOCKS = 100.0
_ATOMIC_CLOCKS, _LOCAL_ATOMIC_CLOCKS = 4.0, 1.0
# In a clock of the second cache: for each of the device's units, and at most to a line of 128 bytes
_ATOMICS_OF_UNIT, _ATOMICS_OF_LINE = 1.0, 1.6
_MOST_REGISTERS, _REORDERED, _SHARED_REGISTERS = 256.0, 128.0, 24.0
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
    """Seconds of the terms of ``n`` launches on ``d`` GPUs, of shape ``(n, d)`` or ``(n, 1)``, by name."""
    side = sheets.wide.astype(int)
    on = Occupancy.of(work, sheets, resident_groups(work, sheets))
    busy_rate, rate = on.busy * sheets.clock / on.tail, sheets.units * sheets.clock
    slots = busy_rate * sheets.lanes * np.maximum(work.utilization[:, side], 1e-3)
    longer = _long_code(work)
    bytes_of = _traffic(work, sheets, on)
    spilled_bytes, saved_loads = _registers(work, sheets)
    chain_clocks, stall_clocks = _of_item(work, sheets, bytes_of, on)
    groups = work.groups[:, None]
    of_group = np.where(np.isfinite(sheets.group_s), sheets.group_s, _GROUP_CLOCKS / sheets.clock)
    start = np.where(np.isfinite(sheets.empty_s), sheets.empty_s, _START_S)
    measured = np.maximum(sheets.round_trip_s - start, 0.0)
    return {
        "launch": np.where(np.isfinite(measured), measured, _LAUNCH_S * _launch_ratio(sheets)),
        "start": start,
        "arithmetic": _real(work, sheets) / slots * longer,
        "issue": _issued(work, sheets) / slots * longer,
        "local": work.local_wavefronts[:, side] * (1.0 - saved_loads) / busy_rate,
        "l1": _line_clocks(work, sheets) / busy_rate,
        "l2": np.maximum(bytes_of.l2 / (sheets.l2_clock * rate), _of_side_cache(bytes_of, sheets)),
        "memory": _streamed(bytes_of.memory, work, sheets) * _pages(work, sheets),
        "scattered": np.maximum.reduce(
            (
                _one_channel(work, sheets, work.sectors[:, side]),
                _one_line(work, sheets),
                _at_random(work, sheets, bytes_of.memory),
            )
        ),
        "spills": spilled_bytes / sheets.bandwidth + _carried(work) / (sheets.l2_clock * rate),
        "latency": on.waves * chain_clocks / sheets.clock,
        "waiting": on.waves * stall_clocks / sheets.clock,
        "groups": np.maximum(groups * of_group / on.busy, groups * sheets.group_clocks / sheets.clock),
        "atomics": np.maximum(_atomics(work, sheets, busy_rate), _at_one_address(work, sheets)),
    }


def resident_groups(work: Work, sheets: Sheets) -> Reals:
    """Resident work-groups of a unit, of shape ``(n, d)``; at least 1."""
    of_group = np.ceil(work.group_items[:, None] / sheets.width)
    # Compilers that reorder unrolled code need fewer registers than it has values. AMD's keeps
    # what work-items share in scalar registers.
    own = np.minimum(work.registers + 8, work.needed + _SHARED_REGISTERS)[:, None]
    needed = np.clip(own, 16, np.where(sheets.spills, _MOST_REGISTERS, _REORDERED))
    counted = sheets.spills & np.isfinite(work.amd_registers)[:, None]
    needed = np.where(counted, np.maximum(work.amd_registers, 16)[:, None], needed)
    by_registers = sheets.registers / np.maximum(of_group * sheets.width * needed, 1)
    by_local = sheets.local_bytes / np.maximum(work.local_bytes, 1)[:, None]
    limits = (
        sheets.sub_groups / of_group,
        by_registers,
        by_local,
        np.broadcast_to(sheets.groups, of_group.shape),
    )
    resident: Reals = np.maximum(np.floor(np.minimum.reduce(limits)), 1.0)
    return resident


def _real(work: Work, sheets: Sheets) -> Reals:
    """Operations on reals, in those of single precision, ``(n, d)``.

    Where conversions of doubles have no unit of their own, they take that of doubles (NVIDIA, CUDA C++
    Programming Guide, table of arithmetic throughput). Some units take longer for special functions than the
    usual four clocks of the other lanes.
    """
    real = work.operations_real[:, None] + work.operations_fp64[:, None] / sheets.fp64
    real = real + work.operations_fp16[:, None] / sheets.fp16
    real = real + work.conversions_fp64[:, None] * np.maximum(1.0 / sheets.fp64, sheets.special)
    summed: Reals = real + work.special[:, None] * np.maximum(sheets.special - SPECIAL_COST, 0.0)
    return summed


def _issued(work: Work, sheets: Sheets) -> Reals:
    """All other instructions, ``(n, d)``.

    GPUs join two sums, or logic of three values, and have fewer lanes for integers than for reals, or others.
    The rate of integer products over single precision is as measured on a device or its siblings. What
    neighbours load from one address of constant memory is an operand.
    """
    product_rate = np.clip(np.nan_to_num(sheets.fact("int32"), nan=0.5), 0.15, 1.0)
    integers, products = work.integers[:, None] * JOINED_INTEGERS, work.products[:, None] / product_rate
    others = (work.operations - work.integers - work.operands)[:, None]
    divisions = (each[:, None] for each in (work.divisions, work.invariant_divisions, work.long_divisions))
    with_divisions = products + division_instructions(*divisions, product_cost=1.0 / product_rate)
    issued = np.maximum(others, 0.0) + integers + with_divisions
    slowest: Reals = np.maximum.reduce((issued / sheets.issue, integers / sheets.integers, products))
    return slowest


class _Traffic(NamedTuple):
    """Bytes that pass the caches, ``(n, d)`` each."""

    l2: Reals  # From the second cache
    past: Reals  # Past the second cache
    memory: Reals  # From memory
    past_l1: Reals  # Share of the accesses that wait for the second cache
    past_l2: Reals  # And for memory


def _traffic(work: Work, sheets: Sheets, on: Occupancy) -> _Traffic:
    """Bytes behind the caches that work-groups share."""
    side = sheets.wide.astype(int)
    sectors, accesses = work.sectors[:, side], work.accesses[:, side]
    # A larger first cache holds the local memory, too.
    beside = sheets.l1 - np.where(sheets.l1 > _APART, on.of_unit * work.local_bytes[:, None], 0.0)
    own_cache = np.maximum(beside, np.minimum(sheets.l1, _LEAST_CACHE))
    of_unit, of_second, of_last = (
        np.minimum(missed, sectors)
        for missed in bytes_behind(
            work,
            (own_cache, on.of_unit),
            (sheets.l2, on.together),
            (sheets.last_cache, on.together),
        )
    )
    of_own_cache = _fetched(of_unit, work, sheets)
    # Units that do not cache global memory cache what compilers know to be only read.
    cached = np.where(sheets.caches_global, 1.0, work.read_only[:, None])
    l2 = sectors - cached * (sectors - of_own_cache)
    behind = _fetched(of_last, work, sheets)
    kept = _kept(work, sheets)
    memory = np.maximum(np.maximum(behind, work.distinct[:, None]) - kept, 0.0)
    # An access waits if one of its lines is not there; the sectors of a line are, or are not.
    words = _WORD_BYTES * sheets.width * accesses
    used = np.minimum(sectors, np.maximum(work.requested[:, None], words))
    of_line = np.maximum(used / np.maximum(work.lines[:, side], 1.0), _SECTOR_BYTES)
    touched = np.maximum(accesses * of_line, 1.0)
    # Work-items that walk in step come to their next sectors together.
    touched = np.maximum(touched, np.where(sheets.caches_global, work.walks[:, None], 0.0) * sectors)
    past_l1, past_l2 = (np.clip(n / touched, 0.0, 1.0) for n in (l2, np.maximum(behind - kept, 0.0)))
    return _Traffic(l2, of_second, memory, past_l1, past_l2)


def _of_item(work: Work, sheets: Sheets, bytes_of: _Traffic, on: Occupancy) -> tuple[Reals, Reals]:
    """Clocks of a work-item's chain of instructions, and those in which it waits for loads, ``(n, d)`` each.

    GPUs do not speculate: they run blocks one after another.
    """

    def column(values: Reals) -> Reals:
        return values[:, None]

    def stalls(of_item: Reals, of_blocks: Reals, in_turn: Reals, rolled: Reals) -> Reals:
        # Blocks on two sides of a barrier are not joined, nor those that fill local memory before one, nor
        # iterations of loops that the device's compiler does not unroll.
        apart = np.where(work.barriers > 0, np.minimum(of_blocks, work.local_stores), 0.0)
        in_turns = np.maximum(column(apart), np.where(sheets.spills, column(rolled), column(in_turn)))
        waits = in_turns + (column(of_blocks) - in_turns) / _JOINED_BLOCKS
        return np.maximum(column(of_item) / _AT_ONCE, waits * in_wave)

    # The longest work-item is in one wave; the others have those of usual sub-groups.
    in_wave = 1.0 / on.waves + (1.0 - 1.0 / on.waves) * work.mean_longest[:, sheets.wide.astype(int)]
    load = (
        sheets.l1_load
        + (sheets.l2_load - sheets.l1_load) * bytes_of.past_l1
        + _MEMORY_S * sheets.clock * bytes_of.past_l2
    )
    local = np.where(sheets.wide, _LOCAL_CLOCKS[True], _LOCAL_CLOCKS[False])
    steps = _block_path(work, sheets) * column(1 + work.further_cost)
    blocks = steps * sheets.step + column(work.block_local) * local
    blocks = blocks + column(work.path_loads) * load + column(work.path_constants) * _CONSTANT_CLOCKS
    # Loads that need each other are in the chains.
    in_turn, rolled = (
        np.maximum(each - work.path_loads, 0.0) for each in (work.loads_in_turn, work.loads_rolled)
    )
    waits = stalls(work.item_accesses, work.block_loads, in_turn, rolled) * load
    none = np.zeros(len(work))
    constants = stalls(work.item_constants, work.block_constants, none, none)
    waits = waits + np.where(column(work.operands) > 0, 0.0, constants * _CONSTANT_CLOCKS)
    return (blocks + column(work.barriers) * _BARRIER_CLOCKS) * in_wave, waits


def _block_path(work: Work, sheets: Sheets) -> Reals:
    """Instructions but loads of the chains of blocks, one after another, ``(n, d)``.

    Compilers but AMD's unroll short loops by four even if they do not know how often these run; iterations
    then overlap where the next does not need the one before.
    """
    in_turns = work.block_path[:, None]
    needed = work.computed[:, None]
    unrolled = np.maximum(np.minimum(needed, in_turns), _AFTER_UNROLLING * in_turns)
    return np.where(work.loops[:, None] & ~sheets.spills, unrolled, in_turns)


def _long_code(work: Work) -> Reals:
    """Time of instructions over that of short code, ``(n, 1)``.

    Unrolled code that accesses memory has an address to compute for each access, and is fetched again; hashes
    of thousands of instructions run at the full rate (hashcat's benchmarks).
    """
    running = np.maximum(np.minimum(work.code, work.longest), 1.0)
    doublings = np.clip(np.log2(running / _SHORT_CODE), 0.0, _MOST_DOUBLINGS)
    local = work.local_wavefronts[:, 0] / np.maximum(work.sub_groups[:, 0], 1.0)
    accesses = (work.item_accesses + local) / np.maximum(work.longest, 1.0)
    longer: Reals = 1.0 + _LONGER * doublings * np.clip(accesses / _MANY_ACCESSES, 0.0, 1.0)
    return longer[:, None]


def _fetched(missed: Reals, work: Work, sheets: Sheets) -> Reals:
    """Bytes that are fetched, ``(n, d)``, where caches miss so many if all work-items keep step.

    Work-items that walk through memory use a sector several times in a row. Schedulers that prefer older
    warps (Rogers et al. 2012) find it in the cache until it is used up; where many lines are of one set, for
    as long as one iteration of a loop that is unrolled by four. AMD's units take their waves in turn.
    """
    first = np.minimum(work.behind[:, 0, -1][:, None], missed)
    most = np.maximum(_SECTOR_BYTES / work.width, 1.0)
    uses = most / (1.0 + _of_one_set(work) * (most / np.minimum(most, _UNROLLED) - 1.0))
    joined = np.where(sheets.spills, 1.0, 1.0 + (uses - 1.0)[:, None] * work.walks[:, None])
    return np.maximum(missed / joined, first)


def _of_one_set(work: Work) -> Reals:
    """From 0 to 1, how much lines of neighbours conflict, by the power of two in their distance, ``(n,)``.

    The distance is a mean, of which a few others may be a part.
    """
    sectors = np.round(work.apart / _SECTOR_BYTES)
    near = np.abs(sectors * _SECTOR_BYTES - work.apart) <= _OTHERS * work.apart
    distance = np.where(near, sectors, 1.0).astype(np.int64)
    power = _SECTOR_BYTES * np.maximum(distance & -distance, 1)
    low, high = np.log2(_OF_ONE_SET)
    share: Reals = np.clip((np.log2(power) - low) / (high - low), 0.0, 1.0)
    return share


def _pages(work: Work, sheets: Sheets) -> Reals:
    """Time of memory over that of streams, ``(n, d)``: neighbours may walk in different pages."""
    page = np.clip(work.apart / _OF_ONE_PAGE, 1.0, _OTHER_PAGE)
    return np.where(sheets.spills, 1.0, (1.0 + (page - 1.0) * work.walks)[:, None])


def _line_clocks(work: Work, sheets: Sheets) -> Reals:
    """Clocks of the units' first caches for the lines that accesses touch, ``(n, d)``.

    One looks up several lines a clock, and gives one word of each bank (te42kyfo, gpu-benches, gpu-strides).
    Units for textures read several texels of images a clock, wide ones in parts.
    """
    side = sheets.wide.astype(int)
    operands = work.operands[:, None] / sheets.width
    accesses, lines = (np.maximum(each[:, side] - operands, 0.0) for each in (work.accesses, work.lines))
    strided, of_bank = work.strided[:, None], work.of_bank[:, None]
    requested = np.maximum(work.requested - _WORD_BYTES * work.operands, 0.0)[:, None]
    words = np.maximum(np.maximum(accesses, requested / sheets.l1_clock), accesses * strided * of_bank)
    narrow = np.maximum(words, lines / sheets.lookups)
    apart = np.where((strided > 0.5) & (of_bank <= _FEW_OF_BANK), _WIDE_APART, 1.0)
    wide = np.maximum(_WIDE_ADDRESS_CLOCKS * accesses, apart * work.sectors[:, side] / _LINE_BYTES)
    clocks: Reals = np.maximum(np.where(sheets.wide, wide, narrow), work.texels[:, None] / sheets.texels)
    return clocks


def _kept(work: Work, sheets: Sheets) -> Reals:
    """Bytes of a launch that are in the last cache from the launch before, ``(n, d)``.

    Beyond its size, the first are gone when they are used again.
    """
    first = np.maximum(work.behind[:, 0, -1], work.distinct)[:, None]
    share = np.clip((_FULL - first / sheets.last_cache) / (_FULL - _FITS), 0.0, 1.0)
    kept: Reals = share * first
    return kept


def _of_side_cache(bytes_of: _Traffic, sheets: Sheets) -> Reals:
    """Seconds of the bytes behind the second cache, ``(n, d)``, where memory has a larger one."""
    seconds = bytes_of.past / (_SIDE_CACHE_RATE * sheets.bandwidth)
    return np.where(sheets.last_cache > sheets.l2, seconds, 0.0)


def _one_channel(work: Work, sheets: Sheets, sectors: Reals) -> Reals:
    """Seconds of lines in one memory channel, beyond those of an even distribution, ``(n, d)``.

    Its part of the second cache and its memory serve them one after another (AMD APP SDK, OpenCL Optimization
    Guide, 2015, on channel conflicts). They conflict in the first cache, too.
    """
    even = np.maximum(work.channel_share - EVEN_CHANNELS, 0.0) / (1.0 - EVEN_CHANNELS)
    excess = np.maximum(np.sqrt(even) - _LEAST_EXCESS, 0.0) / (1.0 - _LEAST_EXCESS)
    seconds: Reals = np.where(sheets.channels, excess[:, None] * sectors / _LINE_BYTES * _CHANNEL_S, 0.0)
    return seconds


def _one_line(work: Work, sheets: Sheets) -> Reals:
    """Seconds of reads of all units at one address, ``(n, d)``, one a clock of the second cache's part.

    Of units that do not keep global memory in their own cache (kmeans on three of Pascal's).
    """
    clocks = work.same_address[:, sheets.wide.astype(int)]
    seconds: Reals = np.where(sheets.caches_global, 0.0, clocks / sheets.clock)
    return seconds


def _at_random(work: Work, sheets: Sheets, moved: Reals) -> Reals:
    """Seconds of memory, ``(n, d)``, for bytes that regular accesses did not request."""
    regular = work.requested * (1.0 - work.irregular)
    bytes_at_random = np.maximum(moved - regular[:, None], 0.0)
    has_any = (work.irregular > IRREGULAR)[:, None]
    seconds: Reals = np.where(has_any, _AT_RANDOM * bytes_at_random / sheets.bandwidth, 0.0)
    return seconds


def _registers(work: Work, sheets: Sheets) -> tuple[Reals, Reals]:
    """Bytes of values that do not fit the registers, and the share of local loads that registers save.

    Of shape ``(n, d)`` each. A spilled value is written once and read once, if AMD's compiler does not say.
    Consecutive loads are joined by nvcc, and by AMD's compiler of all languages; NVIDIA's of OpenCL does not:
    times of CLBlast's gemm (Kernel Tuner) are those of single loads.
    """
    # Code that is too long to be unrolled keeps its loops, and no value from one iteration to the next.
    unrolled = ~sheets.spills | (work.code[:, None] < _MOST_UNROLLED)
    most = np.where(work.any_group[:, None], _LARGEST_GROUP_REGISTERS, _MOST_REGISTERS)
    most = np.where(sheets.spills, most, _MOST_AT_ONCE * _MOST_REGISTERS)
    moved = 2 * np.where(unrolled, np.maximum(work.kept[:, None] - most, 0.0), 0.0)
    counted = sheets.spills & np.isfinite(work.amd_spilled)[:, None]
    moved = np.where(counted, work.amd_spilled[:, None], moved)
    repeated, consecutive = work.saved_loads.T[..., None]
    saved = repeated + np.where(sheets.spills | work.any_group[:, None], consecutive, 0.0)
    return _REGISTER_BYTES * moved * work.items[:, None], np.where(unrolled, saved, 0.0)


def _carried(work: Work) -> Reals:
    """Bytes of loop-carried values that do not fit the registers, ``(n, 1)``, at each use of them.

    Compilers reorder straight-line code until fewer values are live at once, but not loop-carried values.
    """
    share = np.maximum(1.0 - _MOST_REGISTERS / np.maximum(work.needed, 1.0), 0.0)[:, None]
    uses = np.where(work.loops[:, None], (work.items * work.longest * work.mean)[:, None], 0.0)
    return 2 * _REGISTER_BYTES * share * uses


def _launch_ratio(sheets: Sheets) -> Reals:
    """Launch cost of devices over the usual, ``(d,)``; drawn to 1 where siblings differ."""
    column = FACTS.index("launch_s")
    measured, deviation = sheets.expected[:, column], sheets.doubt[:, column]
    ratio = np.where(np.isfinite(measured), measured / _USUAL_LAUNCH_S, 1.0)
    drawn: Reals = ratio ** (0.5 / (1.0 + np.nan_to_num(deviation) ** 2))
    return drawn


def _streamed(moved: Reals, work: Work, sheets: Sheets) -> Reals:
    """Seconds of bytes to and from memory, ``(n, d)``: at the rates of reading and writing, if measured."""
    stored = np.minimum(work.written[:, None], moved)
    by_streams = (moved - stored) / sheets.reading + stored / sheets.writing
    return np.where(np.isfinite(by_streams), by_streams, moved / sheets.bandwidth)


def _atomics(work: Work, sheets: Sheets, busy_rate: Reals) -> Reals:
    """Seconds of atomics, ``(n, d)``: of local memory, and sent to the second cache, which does them."""
    side = sheets.wide.astype(int)
    local_clocks = np.where(sheets.local_atomics, _LOCAL_ATOMIC_CLOCKS, _ATOMIC_CLOCKS)
    # Those on reals are loops until an exchange succeeds, but for AMD's.
    looped = np.where(sheets.spills, 1.0, 1.0 + (_ATOMIC_CLOCKS - 1.0) * work.local_reals[:, None])
    clocks = work.local_atomics[:, side] * local_clocks * looped
    clocks = clocks + work.global_atomics[:, side] * _ATOMIC_CLOCKS
    at_once = np.minimum(_ATOMICS_OF_UNIT * sheets.units, _ATOMICS_OF_LINE * work.atomic_lines[:, None])
    seconds: Reals = np.maximum(clocks / busy_rate, work.atomics_done[:, None] / (at_once * sheets.clock))
    return seconds


def _at_one_address(work: Work, sheets: Sheets) -> Reals:
    """Seconds of atomics of all units that take turns at an address of global memory, ``(n, d)``.

    The second cache does one a clock. Of compare-exchanges that are repeated until they succeed, one succeeds
    in the time of a load.
    """
    turns = work.turns[:, sheets.wide.astype(int)]
    seconds: Reals = (turns + work.retries[:, None] * sheets.l2_load) / sheets.clock
    return seconds
