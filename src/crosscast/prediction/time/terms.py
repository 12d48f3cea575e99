"""Terms of a launch's time: the seconds that each kind of its work takes on a device.

Each term is the time of its work alone at the rate on paper. Kinds of work that overlap take a smooth maximum
of their times (`joined`), to which the costs of a launch before and after its work are added. Each term has a
factor, the inverse of the efficiency, fitted to measured times with a prior
(`crosscast.prediction.time.efficiencies`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.devices.architectures import Sheets
from crosscast.devices.catalogue import FACTS
from crosscast.devices.launch_work import (
    EXP_COST,
    JOINED_INTEGERS,
    SPECIAL_COST,
    division_instructions,
)
from crosscast.prediction.time.work import CACHE_BITS, EVEN_CHANNELS, GROUPS_TOGETHER, IRREGULAR, Work

TERMS = (
    "launch",
    "start",
    "arithmetic",
    "issue",
    "local",
    "l1",
    "l2",
    "memory",
    "scattered",
    "spills",
    "latency",
    "waiting",
    "groups",
    "atomics",
)
"""Terms of a launch's time.

- launch: from the host's call to the device's start, and from its end to the host's notification.
- start: starting and ending a kernel on the device.
- arithmetic: real operations at the rate of a unit's lanes, idle lanes too; doubles at their own rate.
- issue: all other instructions of sub-groups at the rate of the lanes. On GPUs both take longer if thousands
  of instructions with accesses among them follow each other.
- local: wavefronts of local memory, one a clock and unit, except loads whose values registers keep.
- l1: lines that accesses touch, looked up one or four a clock and unit, and their words, one a clock and
  bank; where sub-groups have 64 work-items, a clock for each line of 64 bytes and at least four an access.
- l2: bytes behind the units' own caches, and those behind the second where memory has a larger cache.
- memory: bytes behind the last cache, as many groups sharing it as are resident; of a launch that is
  repeated, so that data that fit a GPU's last cache are still there. Pages that neighbours walk in apart take
  longer.
- scattered: lines that a thread of a CPU fetches from anywhere, beyond those that one after another need;
  of GPUs, bytes at random addresses of memory beyond those of streams, reads of one address by all units that
  their own caches do not keep, and on AMD's older ones lines of one memory channel.
- spills: values that do not fit the registers, to memory and back; of loops, to the second cache.
- latency: the chains of dependent instructions of a work-item, block by block on GPUs, and loads of which
  the address depends on a load; once for each wave of groups.
- waiting: memory accesses of a work-item, once for each wave: a few in flight at once, but no block begins
  before the loads of the one before it are back, unless a compiler joins the two.
- groups: beginning and ending work-groups, on units and on the device.
- atomics: those that wait for each other.
"""

LAUNCH, MEMORY = TERMS.index("launch"), TERMS.index("memory")

_ADDED = 2
"""Number of the first terms, which do not overlap with others."""

SHARPNESS = 2.5
"""Of the smooth maximum: the exponent of the norm by which the terms are joined."""

_LAUNCH_S = {True: 5.5e-6, False: 15e-6}  # by whether it is a GPU
_START_S = {True: 1.7e-6, False: 5e-6}
_USUAL_LAUNCH_S = 6e-6  # From the call to the start, in collections of measured devices
# Of a load of local memory, beyond those of an addition, by whether sub-groups have 64 work-items, as AMD's
_LOCAL_CLOCKS = {True: 60.0, False: 25.0}
_JOINED_BLOCKS = 3.0  # Iterations of a loop that compilers for GPUs unroll
_AFTER_UNROLLING = 0.5  # Of chains of blocks: all where loops have several blocks, a quarter where one
_BARRIER_CLOCKS = 30.0
_WIDE_ADDRESS_CLOCKS = 4.0  # Of a sub-group of 64 work-items
_WIDE_APART = 0.5  # Clocks of a line of these, if few of them are in one bank
_FEW_OF_BANK = 2.0
_APART = 65536.0  # Largest first cache beside a local memory of its own
_ALONE = 2.0
_MEMORY_S = {True: 240e-9, False: 80e-9}  # Latency beyond the last cache
_CONSTANT_CLOCKS = 100.0
_AT_ONCE = 4.0
_FITS, _FULL = 0.7, 0.88  # Shares of the last cache up to which all, and from which no data stay there
_AT_RANDOM = 2.0  # Time of bytes at random addresses of a GPU's memory, over that of streams
# Powers of two in the distance of lines up to which they do not conflict, and from which on they do
_OF_ONE_SET = (128.0, 2048.0)
_OTHERS, _UNROLLED = 0.02, 4.0
# Largest distance in a page; time of sectors in pages of their own, over that of streams
_OF_ONE_PAGE, _OTHER_PAGE = 512.0, 2.6
_SIDE_CACHE_RATE = 3.7  # Of the cache before a GPU's memory, over that of the memory
_ONCE = 0.5  # Of a written line's two ways to memory and back
_SCATTERED_LINE_S = 20e-9  # Of a thread of a CPU
_LINE_BYTES = 64.0
_CACHE_BYTES = 8.0  # That a core of a CPU reads from its last cache in a clock
_MOST_SETS = 1024.0  # Of the second cache of a CPU
_CHANNEL_S = 15e-9  # Of a line in one memory channel with others
_LEAST_EXCESS = 0.15  # Share of lines in one channel that others hide
_SHARED_LINE = 0.25  # Time of a line of a CPU's last cache over one of memory
_GROUP_CLOCKS = {True: 100.0, False: 1000.0}
_ATOMIC_CLOCKS, _LOCAL_ATOMIC_CLOCKS = 4.0, 1.0
# In a clock of a GPU's second cache: for each of the device's units, and at most to a line of 128 bytes
_ATOMICS_OF_UNIT, _ATOMICS_OF_LINE = 1.0, 1.6
_LOCKED_CLOCKS = 20.0  # Of a CPU's locked instruction: Fog, Instruction tables, 2022
_LOCKED_LINE_S = 50e-9  # From the cache of another core
_CONTENDED_S = 5e-9  # Of an atomic of a CPU at an address that twice as many threads use
_SECTOR_BYTES = 32.0
_MOST_REGISTERS, _REORDERED, _SHARED_REGISTERS = 256.0, 128.0, 24.0
_REGISTER_BYTES = 4.0
_LARGEST_GROUP_REGISTERS = 128.0
"""Of a work-item where the compiler allows for groups of 1,024."""

_MOST_AT_ONCE = 4.0
"""Live values in program order over the registers that they need after a compiler reorders the code."""

# Instructions of short code on GPUs; more time for each doubling of those that run, at most so many, and with
# this share of accesses
_SHORT_CODE, _LONGER, _MOST_DOUBLINGS, _MANY_ACCESSES = 2048.0, 0.6, 3.0, 0.2

# LLVM unrolls to 16,384 instructions at most, counted before it simplifies the code: for AMD's targets, with
# their addresses and the two halves of multiply-adds, twice the number after that.
_MOST_UNROLLED = 16384.0 / 2
_CHAIN_CLOCKS, _INTEGER_STEP = 4.0, 0.25  # Latency of a multiply-add; of integers over that
# Latencies of loads of a CPU: of its first cache; of the second, the last and memory beyond the one before
_LOAD_CLOCKS, _OWN_LOAD_CLOCKS, _SHARED_LOAD_CLOCKS = 5.0, 9.0, 30.0
_TEXEL_CLOCKS = 40.0  # Of a CPU's thread for a texel of an image, which has no unit for it (PoCL 3.0)
_LOOPS, _SCALAR_ISSUE = 2.0, 2.0
_VECTOR_ITEMS = 8  # Work-items of a group from which on compilers for CPUs vectorize
# If loops keep step: instructions of the mean work-item over those of the longest, or the share of a
# sub-group's work-items that take part.
_ALIKE, _IN_STEP = 0.7, 0.95
_GUARDED, _SCALAR_CONDITIONS = 0.5, 3.0  # Conditional branches of a work-item; of code without vectors
_AS_MANY = 1.02  # Bytes missed over those of another cache, if they are the same but for sampling
_TINY = 1e-15


def resident_groups(work: Work, sheets: Sheets) -> Reals:
    """Resident work-groups of a unit, of shape ``(n, d)``; at least 1."""
    width = np.where(sheets.wide, 64.0, 32.0)
    of_group = np.ceil(work.group_items[:, None] / width)
    # Compilers that reorder unrolled code need fewer registers than it has values. AMD's keeps
    # what work-items share in scalar registers.
    own = np.minimum(work.registers + 8, work.needed + _SHARED_REGISTERS)[:, None]
    needed = np.clip(own, 16, np.where(sheets.spills, _MOST_REGISTERS, _REORDERED))
    counted = sheets.spills & np.isfinite(work.amd_registers)[:, None]
    needed = np.where(counted, np.maximum(work.amd_registers, 16)[:, None], needed)
    by_registers = sheets.registers / np.maximum(of_group * width * needed, 1)
    by_local = sheets.local_bytes / np.maximum(work.local_bytes, 1)[:, None]
    limits = (
        sheets.sub_groups / of_group,
        by_registers,
        by_local,
        np.broadcast_to(sheets.groups, of_group.shape),
    )
    return np.where(sheets.gpu, np.maximum(np.floor(np.minimum.reduce(limits)), 1.0), 1.0)


def bytes_behind(work: Work, cache: Reals, together: Reals) -> Reals:
    """Bytes that miss a cache of a size in bytes which `together` groups share, of shape ``(n, d)``.

    Interpolated in the logarithms of the sizes and numbers of groups that a profile has. More groups than its
    most need more space for data of their own.
    """
    size_position = _size_position(work, cache, together)
    group_position = np.clip(np.log2(together) / 4, 0, len(GROUPS_TOGETHER) - 1)
    size_index, group_index = (
        np.minimum(size_position.astype(int), len(CACHE_BITS) - 2),
        np.minimum(group_position.astype(int), 1),
    )
    rows = np.arange(len(work))[:, None]
    size_fraction, group_fraction = size_position - size_index, group_position - group_index
    missed = np.zeros(together.shape)
    for di, group_share in ((0, 1 - group_fraction), (1, group_fraction)):
        for dj, size_share in ((0, 1 - size_fraction), (1, size_fraction)):
            missed += group_share * size_share * work.behind[rows, group_index + di, size_index + dj]
    return missed


def _size_position(work: Work, cache: Reals, together: Reals) -> Reals:
    """Index of a cache's size among those in which the most groups of a profile miss as much, ``(n, d)``."""
    bits = np.broadcast_to(np.log2(cache), together.shape)
    as_known: Reals = np.clip(bits - CACHE_BITS[0], 0.0, len(CACHE_BITS) - 1.0)
    if (together <= GROUPS_TOGETHER[-1]).all():
        return as_known
    more = np.log2(np.maximum(together / GROUPS_TOGETHER[-1], 1.0))
    needed = np.array(CACHE_BITS) + _growth(work)[:, None, :] * more[..., None]
    # What a larger cache misses, a smaller one misses too.
    needed = np.minimum.accumulate(needed[..., ::-1], axis=-1)[..., ::-1]
    first, steps = needed[..., :-1], np.maximum(np.diff(needed, axis=-1), _TINY)
    position: Reals = np.clip((bits[..., None] - first + _TINY) / steps, 0.0, 1.0).sum(axis=-1)
    return position


def _growth(work: Work) -> Reals:
    """Power of the number of groups with which caches must grow to miss no more bytes, ``(n, sizes)``.

    Of the bytes that the most groups of a profile miss in each size: 1 where groups have data of their own, 0
    where they share them. Sixteen groups miss as many bytes in a smaller cache.
    """
    few, many = work.behind[:, -2, :-1], work.behind[:, -1, :-1]
    as_many = few[:, None, :] <= _AS_MANY * many[:, :, None]
    last = len(CACHE_BITS) - 1
    fits = np.where(as_many.any(axis=-1), as_many.argmax(axis=-1), last)
    least, before = (np.take_along_axis(few, index, axis=1) for index in (fits, np.maximum(fits - 1, 0)))
    between = np.clip((many - least) / np.maximum(before - least, _TINY), 0.0, 1.0)
    times = np.log2(GROUPS_TOGETHER[-1] / GROUPS_TOGETHER[-2])
    growth: Reals = np.clip((np.arange(last + 1) - (fits - between)) / times, 0.0, 1.0)
    # The smallest size may be larger than needed: as of the next that is not.
    for size in reversed(range(last)):
        growth[:, size] = np.where(fits[:, size] == 0, growth[:, size + 1], growth[:, size])
    return growth


def terms(work: Work, sheets: Sheets) -> Reals:
    """Seconds that each term takes at rates on paper, of shape ``(n, d, len(TERMS))``.

    The time is from the host's call to its notification of the end; see `by_device`.
    """
    side = sheets.wide.astype(int)
    gpu = sheets.gpu
    n, d = len(work), len(gpu)

    def of_width(counts: Reals) -> Reals:
        return counts[:, side]

    def column(values: Reals) -> Reals:
        return values[:, None]

    rate = sheets.units * sheets.clock
    resident = resident_groups(work, sheets)
    groups = column(work.groups)
    # Units that have at least one group; the last wave may leave most of them idle.
    busy = np.minimum(sheets.units, groups)
    waves = np.maximum(groups / (sheets.units * resident), 1.0)
    rounds = np.where(groups > sheets.units, groups / sheets.units, 1.0)
    tail = np.where(groups > sheets.units, np.ceil(rounds - 1e-9) / rounds, 1.0)
    busy_rate = busy * sheets.clock / tail
    together = np.minimum(groups, sheets.units * resident)

    # Library functions of a CPU scale with its measured exp.
    more = np.where(gpu, 0.0, np.nan_to_num(sheets.exp / EXP_COST - 1.0))
    real = column(work.operations_real) + column(work.library) * np.maximum(more, 0.0)
    real = real + column(work.operations_fp64) / sheets.fp64 + column(work.operations_fp16) / sheets.fp16
    # Where conversions of doubles have no unit of their own, they take that of doubles (NVIDIA, CUDA C++
    # Programming Guide, table of arithmetic throughput).
    wide_conversion = np.maximum(1.0 / sheets.fp64, np.where(gpu, sheets.special, 1.0))
    real = real + column(work.conversions_fp64) * wide_conversion
    # Units of which the special functions take longer than the usual four clocks of the other lanes.
    real = real + column(work.special) * np.maximum(sheets.special - SPECIAL_COST, 0.0)
    lanes = np.where(
        gpu, sheets.lanes * np.maximum(of_width(work.utilization), 1e-3), _cpu_lanes(work, sheets)
    )
    # A thread that has a core of a CPU to itself issues more than one of two that share it.
    sole_thread = np.where(gpu | (2 * groups > sheets.units), 1.0, _ALONE)
    slots = busy_rate * lanes * sole_thread

    # Rate of integer products over single precision, as measured on a device or its siblings.
    product_rate = np.where(gpu, np.clip(np.nan_to_num(sheets.fact("int32"), nan=0.5), 0.15, 1.0), 0.5)

    # GPUs join two sums, or logic of three values, and have fewer lanes for integers than for reals.
    integers = column(work.integers) * np.where(gpu, JOINED_INTEGERS, 1.0)
    issued = column(work.operations) - column(work.integers) + integers + column(work.products) / product_rate
    issued = np.maximum(issued, integers / sheets.integers)
    divisions = map(column, (work.divisions, work.invariant_divisions, work.long_divisions))
    issued = issued + np.where(gpu, division_instructions(*divisions, product_cost=1.0 / product_rate), 0.0)

    # A larger first cache of a GPU's unit holds the local memory, too.
    beside = sheets.l1 - np.where(gpu & (sheets.l1 > _APART), resident * column(work.local_bytes), 0.0)
    own_cache = np.maximum(beside, np.minimum(sheets.l1, 32768.0))
    past_own_cache = bytes_behind(
        work, own_cache, np.broadcast_to(np.minimum(groups, np.where(gpu, resident, 1.0)), (n, d))
    )
    sectors = of_width(work.sectors)
    of_own_cache = _fetched(np.minimum(past_own_cache, sectors), work, sheets)
    # Units that do not cache global memory cache what compilers know to be only read.
    cached = np.where(sheets.caches_global, 1.0, column(work.read_only))
    l2_bytes = sectors - cached * (sectors - of_own_cache)
    floor = column(work.distinct)
    behind = _fetched(np.minimum(bytes_behind(work, sheets.last_cache, together), sectors), work, sheets)
    spilled_bytes, saved_loads = _registers(work, sheets)
    kept = _kept(work, sheets)
    behind, moved = np.maximum(behind - kept, 0.0), np.maximum(np.maximum(behind, floor) - kept, 0.0)
    # Shares of accesses that wait for the second cache and for memory.
    touched = np.maximum(_SECTOR_BYTES * of_width(work.accesses), 1.0)
    # Work-items that walk in step come to their next sectors together.
    touched = np.maximum(touched, np.where(sheets.caches_global, column(work.walks), 0.0) * sectors)
    past_l1, past_l2 = (np.clip(each / touched, 0.0, 1.0) for each in (l2_bytes, behind))

    of_cache = sheets.last_cache_rate / sheets.units * busy / tail
    of_cache = np.where(np.isfinite(of_cache), of_cache, _CACHE_BYTES * busy_rate)

    longer = _long_code(work, sheets)
    # The longest work-item is in one wave; the others have those of usual sub-groups.
    in_wave = 1.0 / waves + (1.0 - 1.0 / waves) * of_width(work.mean_longest)
    chain_clocks, stall_clocks = _of_item(work, sheets, past_l1, past_l2, in_wave)
    alone = np.ones((n, d))
    caches = (sheets.l1, sheets.own_cache, sheets.last_cache)
    of_thread = [bytes_behind(work, cache, alone) for cache in caches]
    chains = np.where(gpu, 0.0, _cpu_chains(work, sheets, of_thread, busy_rate * sole_thread))
    usual = np.where(gpu, _GROUP_CLOCKS[True], _GROUP_CLOCKS[False]) / sheets.clock
    of_group = np.where(np.isfinite(sheets.group_s), sheets.group_s, usual)
    start = np.where(gpu, _START_S[True], _START_S[False])
    start = np.where(np.isfinite(sheets.empty_s), sheets.empty_s, start)
    launch = np.where(gpu, _LAUNCH_S[True] * _launch_ratio(sheets), _LAUNCH_S[False])
    measured_launch = np.maximum(sheets.round_trip_s - start, 0.0)
    launch = np.where(np.isfinite(measured_launch), measured_launch, launch)
    clocks = np.where(gpu, _atomic_clocks(work, sheets), _locked(work, sheets, of_thread[1]))
    at_once = np.minimum(_ATOMICS_OF_UNIT * sheets.units, _ATOMICS_OF_LINE * column(work.atomic_lines))
    done = np.where(gpu, column(work.atomics_done) / (at_once * sheets.clock), 0.0)
    atomics = np.maximum(clocks / busy_rate, done)
    stacked = np.stack(
        np.broadcast_arrays(
            launch + np.zeros((n, 1)),
            start + np.zeros((n, 1)),
            real / slots * longer,
            issued / (slots * _other_issue(sheets, lanes)) * longer + _one_by_one(work, sheets) / busy_rate,
            np.where(gpu, of_width(work.local_wavefronts) * (1.0 - saved_loads) / busy_rate, 0.0),
            np.where(gpu, _line_clocks(work, sheets) / busy_rate, 0.0),
            np.where(
                gpu,
                np.maximum(
                    l2_bytes / (sheets.l2_clock * rate), _of_side_cache(work, sheets, together, sectors)
                ),
                l2_bytes / of_cache,
            ),
            _streamed(moved, work, sheets) * _pages(work, sheets),
            np.where(
                gpu,
                np.maximum.reduce(
                    (
                        _one_channel(work, sheets, sectors),
                        _one_line(work, sheets),
                        _at_random(work, sheets, moved),
                    )
                ),
                _scattered(work, sheets, of_thread) * sheets.units / busy,
            ),
            np.where(gpu, spilled_bytes / sheets.bandwidth + _carried(work) / (sheets.l2_clock * rate), 0.0),
            waves * chain_clocks / sheets.clock + chains,
            waves * stall_clocks / sheets.clock,
            np.maximum(
                groups * of_group / busy, np.where(gpu, groups * sheets.group_clocks / sheets.clock, 0.0)
            ),
            np.maximum(atomics, _at_one_address(work, sheets)),
        ),
        -1,
    )
    seconds: Reals = np.maximum(stacked, _TINY)
    return seconds


def by_device(seconds: Reals) -> Reals:
    """Terms of times that the device measures, which lack the launch by the host."""
    on_device = seconds.copy()
    on_device[..., LAUNCH] = _TINY
    return on_device


def _of_item(
    work: Work, sheets: Sheets, past_l1: Reals, past_l2: Reals, in_wave: Reals
) -> tuple[Reals, Reals]:
    """Clocks of a work-item's chain of instructions, and those in which it waits for loads, ``(n, d)`` each.

    Of shares of accesses that go past the first cache, and past the last, and of the longest work-item of a
    wave over that of all. GPUs do not speculate: they run blocks one after another. On CPUs, loads and loops
    are in `_cpu_chains`.
    """

    def column(values: Reals) -> Reals:
        return values[:, None]

    def stalls(of_item: Reals, of_blocks: Reals) -> Reals:
        # Blocks on two sides of a barrier are not joined, nor those that fill local memory before one.
        apart = np.where(work.barriers > 0, np.minimum(of_blocks, work.local_stores), 0.0)
        waits = apart + (of_blocks - apart) / _JOINED_BLOCKS
        return np.maximum(column(of_item) / _AT_ONCE, column(waits) * in_wave)

    load = (
        sheets.l1_load
        + (sheets.l2_load - sheets.l1_load) * past_l1
        + _MEMORY_S[True] * sheets.clock * past_l2
    )
    local = np.where(sheets.wide, _LOCAL_CLOCKS[True], _LOCAL_CLOCKS[False])
    steps = _block_path(work, sheets) * column(1 + work.further_cost)
    blocks = steps * sheets.step + column(work.block_local) * local
    blocks = blocks + column(work.path_loads) * load + column(work.path_constants) * _CONSTANT_CLOCKS
    straight = np.where(_loops(work), 0.0, column(work.path))
    chain: Reals = np.where(sheets.gpu, blocks, straight) + column(work.barriers) * _BARRIER_CLOCKS
    waits = stalls(work.item_accesses, work.block_loads) * load
    waits = waits + stalls(work.item_constants, work.block_constants) * _CONSTANT_CLOCKS
    return chain * in_wave, np.where(sheets.gpu, waits, 0.0)


def _block_path(work: Work, sheets: Sheets) -> Reals:
    """Instructions but loads of the chains of blocks, one after another, ``(n, d)``.

    Compilers but AMD's unroll short loops by four even if they do not know how often these run; iterations
    then overlap where the next does not need the one before.
    """
    in_turns = work.block_path[:, None]
    needed = _computed(work)[:, None]
    unrolled = np.maximum(np.minimum(needed, in_turns), _AFTER_UNROLLING * in_turns)
    return np.where(_loops(work) & _keeps_lines(sheets), unrolled, in_turns)


def _computed(work: Work) -> Reals:
    """Instructions but loads of the longest chain of the longest work-item, ``(n,)``."""
    return np.maximum(work.path - work.path_loads - work.path_constants, 0.0)


def _long_code(work: Work, sheets: Sheets) -> Reals:
    """Time of instructions on GPUs over that of short code, ``(n, d)``.

    Unrolled code that accesses memory has an address to compute for each access, and is fetched again; hashes
    of thousands of instructions run at the full rate (hashcat's benchmarks).
    """
    running = np.maximum(np.minimum(work.code, work.longest), 1.0)
    doublings = np.clip(np.log2(running / _SHORT_CODE), 0.0, _MOST_DOUBLINGS)
    local = work.local_wavefronts[:, 0] / np.maximum(work.sub_groups[:, 0], 1.0)
    accesses = (work.item_accesses + local) / np.maximum(work.longest, 1.0)
    more = _LONGER * doublings * np.clip(accesses / _MANY_ACCESSES, 0.0, 1.0)
    return np.where(sheets.gpu, 1.0 + more[:, None], 1.0)


def _fetched(missed: Reals, work: Work, sheets: Sheets) -> Reals:
    """Bytes that a GPU fetches, ``(n, d)``, where caches miss so many if all work-items keep step.

    Work-items that walk through memory use a sector several times in a row. Schedulers that prefer older
    warps (Rogers et al. 2012) find it in the cache until it is used up; where many lines are of one set, for
    as long as one iteration of a loop that is unrolled by four. AMD's units take their waves in turn.
    """
    first = np.minimum(work.behind[:, 0, -1][:, None], missed)
    most = np.maximum(_SECTOR_BYTES / work.width, 1.0)
    uses = most / (1.0 + _of_one_set(work) * (most / np.minimum(most, _UNROLLED) - 1.0))
    joined = np.where(_keeps_lines(sheets), 1.0 + (uses - 1.0)[:, None] * work.walks[:, None], 1.0)
    return np.maximum(missed / joined, first)


def _keeps_lines(sheets: Sheets) -> Flags:
    """Which devices are GPUs whose schedulers prefer older sub-groups."""
    return sheets.gpu & ~sheets.spills


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
    """Time of a GPU's memory over that of streams, ``(n, d)``: neighbours may walk in different pages."""
    page = np.clip(work.apart / _OF_ONE_PAGE, 1.0, _OTHER_PAGE)
    return np.where(_keeps_lines(sheets), (1.0 + (page - 1.0) * work.walks)[:, None], 1.0)


def _line_clocks(work: Work, sheets: Sheets) -> Reals:
    """Clocks of the first caches of a GPU's units for the lines that accesses touch, ``(n, d)``.

    One looks up several lines a clock, and gives one word of each bank (te42kyfo, gpu-benches, gpu-strides).
    Units for textures read several texels of images a clock, wide ones in parts.
    """
    side = sheets.wide.astype(int)
    accesses, strided, of_bank = work.accesses[:, side], work.strided[:, None], work.of_bank[:, None]
    words = np.maximum(
        np.maximum(accesses, work.requested[:, None] / sheets.l1_clock), accesses * strided * of_bank
    )
    narrow = np.maximum(words, work.lines[:, side] / sheets.lookups)
    apart = np.where((strided > 0.5) & (of_bank <= _FEW_OF_BANK), _WIDE_APART, 1.0)
    wide = np.maximum(_WIDE_ADDRESS_CLOCKS * accesses, apart * work.sectors[:, side] / _LINE_BYTES)
    clocks: Reals = np.maximum(np.where(sheets.wide, wide, narrow), work.texels[:, None] / sheets.texels)
    return clocks


def _kept(work: Work, sheets: Sheets) -> Reals:
    """Bytes of a launch that are in a GPU's last cache from the launch before, ``(n, d)``.

    Beyond its size, the first are gone when they are used again.
    """
    first = np.maximum(work.behind[:, 0, -1], work.distinct)[:, None]
    share = np.clip((_FULL - first / sheets.last_cache) / (_FULL - _FITS), 0.0, 1.0)
    kept: Reals = np.where(sheets.gpu, share * first, 0.0)
    return kept


def _of_side_cache(work: Work, sheets: Sheets, together: Reals, sectors: Reals) -> Reals:
    """Seconds of the bytes behind a GPU's second cache, ``(n, d)``, where memory has a larger one."""
    moved = np.minimum(bytes_behind(work, sheets.l2, together), sectors)
    seconds: Reals = np.where(
        sheets.last_cache > sheets.l2, moved / (_SIDE_CACHE_RATE * sheets.bandwidth), 0.0
    )
    return seconds


def _streamed(moved: Reals, work: Work, sheets: Sheets) -> Reals:
    """Seconds of bytes to and from memory, ``(n, d)``: at the rates of reading and writing, if measured.

    A CPU reads a line before it writes to it, which is in the time of a measured copy. A line that the
    launch reads anyway is read once.
    """
    written = work.written[:, None]
    updated = np.where(sheets.gpu, 0.0, work.updated[:, None])
    on_paper = (moved + np.where(sheets.gpu, 0.0, written) - updated) / sheets.bandwidth
    stored = np.minimum(written, moved)
    by_streams = (moved - stored) / sheets.reading + (
        stored - _ONCE * np.minimum(updated, stored)
    ) / sheets.writing
    return np.where(np.isfinite(by_streams), by_streams, on_paper)


def _atomic_clocks(work: Work, sheets: Sheets) -> Reals:
    """Clocks of a GPU's units for atomics, ``(n, d)``: of local memory, and sent to the second cache."""
    side = sheets.wide.astype(int)
    local_clocks = np.where(sheets.local_atomics, _LOCAL_ATOMIC_CLOCKS, _ATOMIC_CLOCKS)
    clocks: Reals = work.local_atomics[:, side] * local_clocks + work.global_atomics[:, side] * _ATOMIC_CLOCKS
    return clocks


def _locked(work: Work, sheets: Sheets, missed: Reals) -> Reals:
    """Clocks of a CPU's threads for atomics, ``(n, d)``, if a thread's own cache misses so many bytes."""
    locked = work.locked[:, None]
    return locked * _LOCKED_CLOCKS + np.minimum(locked, missed / _LINE_BYTES) * _LOCKED_LINE_S * sheets.clock


def _at_one_address(work: Work, sheets: Sheets) -> Reals:
    """Seconds of atomics of all units that take turns at an address of global memory, ``(n, d)``.

    The second cache of a GPU does one a clock. Of compare-exchanges that are repeated until they succeed, one
    succeeds in the time of a load.
    """
    turns, retries = work.turns[:, sheets.wide.astype(int)], work.retries[:, None]
    of_gpu = (turns + retries * sheets.l2_load) / sheets.clock
    of_cpu = (
        (work.turns_apart[:, None] + retries)
        * _CONTENDED_S
        * np.log2(np.minimum(sheets.units, work.groups[:, None]))
    )
    return np.where(sheets.gpu, of_gpu, of_cpu)


def _scattered(work: Work, sheets: Sheets, behind: Sequence[Reals]) -> Reals:
    """Seconds of all threads of a CPU for lines that prefetchers do not predict, ``(n, d)``.

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


def _one_channel(work: Work, sheets: Sheets, sectors: Reals) -> Reals:
    """Seconds of lines of a GPU in one memory channel, beyond those of an even distribution, ``(n, d)``.

    Its part of the second cache and its memory serve them one after another (AMD APP SDK, OpenCL Optimization
    Guide, 2015, on channel conflicts). They conflict in the first cache, too.
    """
    even = np.maximum(work.channel_share - EVEN_CHANNELS, 0.0) / (1.0 - EVEN_CHANNELS)
    excess = np.maximum(np.sqrt(even) - _LEAST_EXCESS, 0.0) / (1.0 - _LEAST_EXCESS)
    seconds: Reals = np.where(sheets.channels, excess[:, None] * sectors / _LINE_BYTES * _CHANNEL_S, 0.0)
    return seconds


def _one_line(work: Work, sheets: Sheets) -> Reals:
    """Seconds of reads of all units at one address, ``(n, d)``, one a clock of the second cache's part.

    Of GPUs whose units do not keep global memory in their own cache (kmeans on three of Pascal's).
    """
    clocks = work.same_address[:, sheets.wide.astype(int)]
    seconds: Reals = np.where(sheets.gpu & ~sheets.caches_global, clocks / sheets.clock, 0.0)
    return seconds


def _at_random(work: Work, sheets: Sheets, moved: Reals) -> Reals:
    """Seconds of a GPU's memory, ``(n, d)``, for bytes that regular accesses did not request."""
    regular = work.requested * (1.0 - work.irregular)
    bytes_at_random = np.maximum(moved - regular[:, None], 0.0)
    has_any = (work.irregular > IRREGULAR)[:, None]
    seconds: Reals = np.where(has_any, _AT_RANDOM * bytes_at_random / sheets.bandwidth, 0.0)
    return seconds


def _registers(work: Work, sheets: Sheets) -> tuple[Reals, Reals]:
    """Bytes of values that do not fit the registers, and the share of local loads that registers save.

    Of shape ``(n, d)`` each. A spilled value is written once and read once, if AMD's compiler does not say.
    """
    # Code that is too long to be unrolled keeps its loops, and no value from one iteration to the next.
    unrolled = ~sheets.spills | (work.code[:, None] < _MOST_UNROLLED)
    most = np.where(work.any_group[:, None], _LARGEST_GROUP_REGISTERS, _MOST_REGISTERS)
    most = np.where(sheets.spills, most, _MOST_AT_ONCE * _MOST_REGISTERS)
    moved = 2 * np.where(unrolled, np.maximum(work.kept[:, None] - most, 0.0), 0.0)
    counted = sheets.spills & np.isfinite(work.amd_spilled)[:, None]
    moved = np.where(counted, work.amd_spilled[:, None], moved)
    return _REGISTER_BYTES * moved * work.items[:, None], np.where(unrolled, work.saved_loads[:, None], 0.0)


def _carried(work: Work) -> Reals:
    """Bytes of loop-carried values that do not fit the registers, ``(n, 1)``, at each use of them.

    Compilers reorder straight-line code until fewer values are live at once, but not loop-carried values.
    """
    share = np.maximum(1.0 - _MOST_REGISTERS / np.maximum(work.needed, 1.0), 0.0)[:, None]
    uses = np.where(_loops(work), (work.items * work.longest * work.mean)[:, None], 0.0)
    return 2 * _REGISTER_BYTES * share * uses


def _launch_ratio(sheets: Sheets) -> Reals:
    """Launch cost of devices over the usual, ``(d,)``; drawn to 1 where siblings differ."""
    column = FACTS.index("launch_s")
    measured, deviation = sheets.expected[:, column], sheets.doubt[:, column]
    ratio = np.where(np.isfinite(measured), measured / _USUAL_LAUNCH_S, 1.0)
    drawn: Reals = ratio ** (0.5 / (1.0 + np.nan_to_num(deviation) ** 2))
    return drawn


def _cpu_lanes(work: Work, sheets: Sheets) -> Reals:
    """Operations of a CPU's thread in a clock: as many work-items at once as accesses can be vectorized.

    A compiler that vectorizes neighbours with loops overlaps several steps of their chains. Straight code
    behind a condition, and behind a barrier, was measured apart; behind three conditions, it is not
    vectorized, nor are loops that neighbours pass at different times.
    """
    # Neighbours that all do little do not change that.
    in_step = (work.mean > _ALIKE) | (work.utilization[:, 0] > _IN_STEP) | ~_loops(work)[:, 0]
    share = np.where((work.group_items >= _VECTOR_ITEMS) & in_step, work.vectorizable, 0.0)[:, None]
    lanes = np.maximum(sheets.lanes, 1.0)
    at_once = np.clip(_CHAIN_CLOCKS * sheets.chain, 1.0, lanes)
    lanes = np.where(_loops(work) & np.isfinite(at_once), at_once, lanes)
    straight = np.clip(sheets.lanes * sheets.guarded, 1.0, lanes)
    straight = straight ** np.clip(_SCALAR_CONDITIONS - work.conditional, 0.0, 1.0)[:, None]
    lanes = np.where(_guarded(work, sheets), straight, lanes)
    fenced = (work.barriers > 0)[:, None] & np.isfinite(sheets.fenced)
    lanes = np.where(fenced, np.clip(sheets.fenced, 1.0, lanes), lanes)
    operations: Reals = 1.0 / (share / lanes + (1 - share))
    return operations


def _one_by_one(work: Work, sheets: Sheets) -> Reals:
    """Clocks that a CPU takes for divisions by variables, conditions and texels, item by item, ``(n, d)``."""
    short = (work.divisions + work.invariant_divisions)[:, None] * sheets.division
    divisions = short + work.long_divisions[:, None] * sheets.long_division
    of_items = work.items[:, None] * np.nan_to_num(sheets.guarded_item) * sheets.clock
    alone = divisions + work.texels[:, None] * _TEXEL_CLOCKS
    clocks: Reals = np.where(sheets.gpu, 0.0, alone) + np.where(_guarded(work, sheets), of_items, 0.0)
    return clocks


def _guarded(work: Work, sheets: Sheets) -> Flags:
    """Whether straight code stands behind a condition, and the device's rate of such was measured."""
    of_work: Flags = (work.conditional >= _GUARDED)[:, None] & ~_loops(work)
    return of_work & np.isfinite(sheets.guarded) & ~sheets.gpu


def _other_issue(sheets: Sheets, lanes: Reals) -> Reals:
    """Other instructions over real operations that a unit issues in a clock.

    Scalar code of a CPU leaves its units for integers and memory idle.
    """
    return np.where(sheets.gpu, 1.0, np.clip(_SCALAR_ISSUE / lanes, 1.0, _SCALAR_ISSUE))


def _cpu_chains(work: Work, sheets: Sheets, behind: Sequence[Reals], busy_rate: Reals) -> Reals:
    """Seconds of the dependency chains in loops of a CPU's work-items, one item after another, ``(n, d)``.

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
    computed = _computed(work)[:, None] * step
    waits = loads[:, None] * _load_clocks(work, sheets, behind)
    total = (work.items * work.mean)[:, None] * (computed / chain + waits) / busy_rate
    longest = (computed * _CHAIN_CLOCKS + waits) / sheets.clock
    seconds: Reals = np.where(_loops(work), np.maximum(total, longest), 0.0)
    return seconds


def _load_clocks(work: Work, sheets: Sheets, behind: Sequence[Reals]) -> Reals:
    """Mean clocks from the address to the value of a load of a CPU's thread, ``(n, d)``.

    `behind` has the bytes that miss its first, its second and the last cache.
    """
    of_item = work.item_accesses + work.item_constants
    lines = np.maximum(work.items * of_item, 1.0)[:, None] * _LINE_BYTES
    beyond = (_OWN_LOAD_CLOCKS, _SHARED_LOAD_CLOCKS, _MEMORY_S[False] * sheets.clock)
    clocks = np.full(behind[0].shape, _LOAD_CLOCKS)
    for missed, further in zip(behind, beyond, strict=True):
        clocks = clocks + further * np.minimum(missed / lines, 1.0)
    return clocks


def _loops(work: Work) -> Flags:
    """Whether work-items loop, ``(n, 1)``: they run more instructions than the code has."""
    return (work.longest > _LOOPS * work.code)[:, None] & (work.code > 0)[:, None]


def joined(seconds: Reals) -> tuple[Reals, Reals]:
    """Total time of terms ``(..., len(TERMS))``, and the share of each.

    The time is the sum of launch, start, and a smooth maximum of the others, in seconds. Shares are also the
    derivatives of the log time by the logarithm of each term.
    """
    work = seconds[..., _ADDED:]
    most = work.max(axis=-1, keepdims=True)
    powers = (work / most) ** SHARPNESS
    total = powers.sum(axis=-1, keepdims=True)
    overlap = most * total ** (1 / SHARPNESS) * powers / total
    parts = np.concatenate([seconds[..., :_ADDED], overlap], axis=-1)
    sums = parts.sum(axis=-1)
    return sums, parts / sums[..., None]


def saved_by_half(shares: Reals) -> Reals:
    """Share of a time that halving each term would save, by the terms' shares ``(..., len(TERMS))``."""
    added, parts = shares[..., :_ADDED], shares[..., _ADDED:]
    overlap = 1.0 - added.sum(axis=-1, keepdims=True)
    parts = parts / np.maximum(overlap, _TINY)
    remaining = (1.0 - parts * (1.0 - 0.5**SHARPNESS)) ** (1 / SHARPNESS)
    return np.concatenate([0.5 * added, overlap * (1.0 - remaining)], axis=-1)
