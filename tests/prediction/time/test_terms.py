"""Terms of a launch's time obey what physics says, whatever the launch and the device are."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.device import Device
from crosscast.devices.catalogue import catalogue, device_named
from crosscast.devices.sheets import sheets_of
from crosscast.prediction.time.counts import work_of
from crosscast.prediction.time.gpu_terms import resident_groups
from crosscast.prediction.time.terms import (
    TERMS,
    Efficiencies,
    Times,
    fit,
    joined,
    log_times,
    prior_of,
    saved_by_half,
    terms,
)
from crosscast.prediction.time.work import CACHE_BITS, Work
from support.streams import stream

EVERY = [device_named(key) for key in catalogue()]
GPU = device_named("gtx1080")
SHEETS = sheets_of([GPU])
Amounts = Mapping[str, Any]


@pytest.fixture(scope="module")
def work() -> Work:
    return work_of([stream(1 << 22), stream(1 << 12), stream(1 << 22, group=64)])


def seconds(work: Work, devices: list[Device]) -> Any:
    return joined(terms(work, sheets_of(devices)))[0]


def term(name: str, work: Work, devices: list[Device]) -> Any:
    """Seconds of a term, of each launch on each device."""
    return terms(work, sheets_of(devices))[..., TERMS.index(name)]


def launch_of(log2: int = 22, /, **amounts: Any) -> Work:
    """A copy of so many values, of which these amounts are others."""
    copy = work_of([stream(1 << log2)])
    return replace(copy, **{name: np.full_like(getattr(copy, name), of) for name, of in amounts.items()})


def cpu(numbers: dict[str, float] | None = None, **measured: float) -> list[Device]:
    return [Device("m", "m", type="cpu", numbers=numbers or {}, measured=measured)]


def named(*keys: str) -> list[Device]:
    return [device_named(key) for key in keys]


@dataclass(frozen=True)
class Case:
    """A term on some devices, of a copy with some amounts of work changed, and what is expected of it."""

    name: str
    devices: str | list[Device]  # Keys, or devices
    amounts: Amounts
    expected: Any
    others: Amounts = field(default_factory=dict)  # With which it is compared

    @property
    def times(self) -> tuple[Any, Any]:
        """Seconds with each of both amounts."""
        devices = named(*self.devices.split()) if isinstance(self.devices, str) else self.devices
        more, less = (term(self.name, launch_of(**each), devices)[0] for each in (self.amounts, self.others))
        return more, less


def changed(device: Device, **numbers: float) -> Device:
    return replace(device, numbers={**device.numbers, **numbers})


def on_lanes(operations: list[float], keys: str) -> Any:
    """Seconds of operations on all lanes of devices."""
    lanes = np.array([device.numbers["peak_flop_per_s"] / 2 for device in named(*keys.split())])
    return np.array(operations) / lanes


def measured_cpu(**rates: float) -> Device:
    """One whose rates are such shares of its peak."""
    of_peak = {f"{name}_flop_per_s": share * PEAK for name, share in rates.items()}
    (device,) = cpu(CORES, fp32_flop_per_s=PEAK, **of_peak)
    return device


def in_blocks(blocks: float, in_turn: float = 0, rolled: float = 0, chained: float = 0) -> Amounts:
    """Loads in blocks of their own, in loops that some do not unroll, and in a chain."""
    counts = {"block_loads": blocks, "loads_in_turn": in_turn, "loads_rolled": rolled}
    return {**counts, "path_loads": chained, "item_accesses": 4}


def filled(blocks: float, barriers: float, stores: float, accesses: float = 12) -> Amounts:
    """Accesses of which some have blocks of their own, and those that fill local memory before a barrier."""
    amounts = {"block_loads": blocks, "item_accesses": accesses}
    return {**amounts, "barriers": barriers, "local_stores": stores}


def rows(walks: float, apart: float) -> Amounts:
    """Rows of floats along which work-items walk, each sector used eight times."""
    first = 8.0 * 2**22
    behind = [8 * first] * len(CACHE_BITS) + [first]
    return {"walks": walks, "apart": apart, "width": 4, "sectors": 8 * first, "behind": behind}


def functions(real: float, library: float, fp64: float) -> Amounts:
    of_library = {"library": library, "library_fp64": fp64}
    return {"operations_real": real, "operations_fp64": fp64, **of_library}


PEAK = 8 * 2e9 * 16 * 2
CORES = {"compute_units": 8.0, "clock_hz": 2e9, "peak_flop_per_s": PEAK}
CACHES = {"compute_units": 8.0, "l1_bytes": 32768.0, "l2_bytes": 2.0**19, "l3_bytes": 2.0**25}
BANDWIDTH = {"bandwidth_bytes_per_s": 4e10}
SEVERAL = [changed(GPU, compute_units=units, clock_hz=1e9) for units in (28, 68)]
NONE: Amounts = dict.fromkeys(("operations", "products", "divisions", "invariant_divisions"), 0.0)
SUMS = {**NONE, "operations": 1e9, "integers": 1e9}
LOCAL = {"local_wavefronts": 1e8, "saved_loads": (0.1, 0.5), "any_group": 1}
PLAIN = {"operations_real": 1e9, "library": 0.0, "special": 0.0}
LONG = {"operations_real": 1e9, "code": 1e5}
LOOPS = {"registers": 400, "needed": 400, "code": 1000, "longest": 8000}
HALVES = {"special": 0.0, "library": 0.0, "operations_fp64": 0.0, "operations_real": 0.0}
GUARDED = [
    replace(each, measured={**each.measured, "guarded_item_s": 5e-10})
    for each in (measured_cpu(guarded=0.5), measured_cpu())
]
ARCHITECTURES = "gtx1080 rtx3090 rtx2080ti k40m rx6800xt"
ALL_KINDS = "gtx1080 rtx3080 rx6900xt i7-6700k"
OF_FUNCTIONS = {"operations_real": 4e9, "special": 1e9, "fast": 1e9}
WITH_SPECIAL = "gtx1080 rtx3090 radeon-vii"
BESIDE_REALS = "v100-pcie rtx2080ti rtx3090 gtx1080"

RATIOS = {
    "a few accesses are in flight": Case("waiting", [GPU], filled(0, 0, 0), [3], filled(0, 0, 0, 4)),
    "few blocks wait no longer": Case("waiting", [GPU], filled(6, 0, 6), [3], filled(0, 0, 6, 4)),
    "many wait for their loads": Case("waiting", [GPU], filled(30, 0, 0), [7.5], filled(0, 0, 0, 4)),
    "those that fill local memory wait": Case("waiting", [GPU], filled(6, 1, 6), [12], filled(0, 1, 6, 4)),
    "others are joined": Case("waiting", [GPU], filled(30, 2, 15), [33.75], filled(0, 2, 15, 4)),
    "a barrier alone parts none": Case("waiting", [GPU], filled(30, 1, 0), [7.5], filled(0, 1, 0, 4)),
    "iterations of unrolled loops are in flight together": Case(
        "waiting", "gtx1080 radeon-vii rx6900xt", in_blocks(300), [37.5, 37.5, 37.5], in_blocks(1, 1, 1)
    ),
    "those that AMD's does not unroll wait there": Case(
        "waiting", "gtx1080 radeon-vii", in_blocks(300, 0, 300), [37.5, 300], in_blocks(1, 1, 1)
    ),
    "those that none unrolls wait": Case(
        "waiting", "gtx1080 radeon-vii", in_blocks(300, 300, 300), [300, 300], in_blocks(1, 1, 1)
    ),
    "a chain of loads waits once": Case(
        "waiting", "gtx1080 radeon-vii", in_blocks(300, 300, 300, 300), [37.5, 37.5], in_blocks(1, 1, 1)
    ),
    "a wide sub-group takes a clock for a line, and four for its addresses": Case(
        "l1", "radeon-vii", {"sectors": 640e3, "accesses": 1e3}, [2.5], {"sectors": 128e3, "accesses": 1e3}
    ),
    "consecutive loads are joined by nvcc, and on AMD": Case(
        "local", "gtx1080 radeon-pro-w6600", {**LOCAL, "any_group": 0}, [0.9 / 0.4, 1], LOCAL
    ),
    "conversions of doubles take what doubles take": Case(
        "arithmetic", "rtx3080", {"conversions_fp64": 1e10}, [1], {"operations_fp64": 1e10}
    ),
    "a sub-group alone has the lanes of one scheduler": Case(
        "arithmetic",
        "gtx1080 p100-pcie-16gb rx6800xt mi210 arc-a770",
        {"groups": 1, "group_items": 32, "operations_real": 1e9},
        [4, 2, 2, 4, 8],
        {"groups": 1, "group_items": 256, "operations_real": 1e9},
    ),
    "as many groups of a unit as it has schedulers have all": Case(
        "arithmetic",
        "gtx1080 mi210",
        {"groups": 1e5, "group_items": 32, "operations_real": 1e12},
        [1, 1],
        {"groups": 1e5, "group_items": 256, "operations_real": 1e12},
    ),
    "a CPU joins no atomics": Case(
        "atomics", "xeon-e5-2670-x2", {"turns": 7e4, "atomics_done": 1e9, "atomic_lines": 16}, [1]
    ),
    "a GPU locks none": Case("atomics", [GPU], {"locked": 1e9}, [1]),
    "local atomics on reals are loops but on AMD": Case(
        *("atomics", "gtx1080 radeon-vii", {"local_atomics": 1e9, "local_reals": 1}, [4, 1]),
        {"local_atomics": 1e9},
    ),
    "functions are not among operations where they were measured": Case(
        *("arithmetic", cpu(transcendental_op_per_s=1e9), functions(10e8, 8e8, 28e8), [1]),
        {"operations_real": 2e8},
    ),
    "what is joined takes the lanes of few architectures": Case(
        "arithmetic", ARCHITECTURES, {**SUMS, "operations": 2e9, "joined": 1e9}, [1, 1, 1, 2, 1], SUMS
    ),
    "a shift takes those of sums, or more": Case(
        "arithmetic", ARCHITECTURES, {**SUMS, "operations": 2e9, "shifts": 1e9}, [3, 2, 2, 3.5, 2], SUMS
    ),
    "short products are faster on AMD": Case(
        *("arithmetic", "hawaii-r9-290x gtx1080", {**NONE, "products": 1e9}, [2.92, 1]),
        {**NONE, "products": 1e9, "short_products": 1e9},
    ),
    "half precision has the rate of its architecture": Case(
        *("arithmetic", "gtx1080 a100-sxm-80gb i7-6700k xeon-8480+", {**HALVES, "operations_fp16": 1e9}),
        *([64, 1 / 4, 4, 1 / 2], {**HALVES, "operations_real": 1e9}),
    ),
    "long code that accesses memory takes longer on GPUs": Case(
        *("arithmetic", "gtx1080 i7-6700k", {**LONG, "longest": 4096, "item_accesses": 4096}, [1.6, 1]),
        {**LONG, "longest": 4096, "item_accesses": 4096, "code": 1},
    ),
    "up to three doublings, by its accesses": Case(
        *("issue", "gtx1080 i7-6700k", {**LONG, "longest": 1e5, "item_accesses": 1e4}, [1.9, 1]),
        {**LONG, "longest": 1e5, "item_accesses": 1e4, "code": 1},
    ),
    "a CPU reads lines that it updates once": Case(
        "memory", [*cpu(BANDWIDTH), GPU], {"updated": 4 * 2**22}, [2 / 3, 1]
    ),
    "a measured copy has that in it": Case(
        *("memory", cpu(BANDWIDTH, read_bytes_per_s=40e9, copy_bytes_per_s=80e9 / 3)),
        *({"updated": 4 * 2**22}, [2 / 3]),
    ),
    "code behind a condition takes what was measured, and a lane at most": Case(
        "arithmetic",
        [measured_cpu(guarded=0.25), measured_cpu(guarded=0.05), measured_cpu()],
        {**PLAIN, "conditional": 1},
        [4, 16, 1],
        PLAIN,
    ),
    "so does code behind a barrier": Case(
        "arithmetic",
        [*(measured_cpu(barrier=share) for share in (0.25, 0.01, 2)), measured_cpu()],
        {**PLAIN, "barriers": 2},
        [4, 16, 1, 1],
        PLAIN,
    ),
    "rows along which work-items walk are fetched once but by AMD's": Case(
        "memory", ALL_KINDS, rows(1, 96), [1 / 8, 1 / 8, 1, 1], rows(0, 96)
    ),
    "where some share sets, more often, and in several pages": Case(
        "memory", ALL_KINDS, rows(0.5, 768), [1.25 / 3.7, 1.25 / 3.7, 1, 1], rows(0, 96)
    ),
    "where all share one, for as long as an unrolled loop": Case(
        "memory", ALL_KINDS, rows(1, 4096), [2.6 / 4, 2.6 / 4, 1, 1], rows(0, 96)
    ),
    "first caches of Pascal hold no global memory": Case(
        "l2", "gtx1080 rtx3080", rows(1, 96), [1, 1 / 8], rows(0, 96)
    ),
}


@pytest.mark.parametrize("case", RATIOS)
def test_more_work_takes_so_many_times_as_long(case: str) -> None:
    more, less = RATIOS[case].times
    assert (more / less).tolist() == pytest.approx(RATIOS[case].expected, rel=0.02)


LATENCY = 1e3 * 16384 / 160 / 1.733e9  # Of a thousand clocks in each wave of groups
SECONDS = {
    "bytes take the bandwidth": Case(
        "memory", [GPU], {"distinct": 0, "behind": 0, "written": 0}, [-8 * 2**22 / 320e9]
    ),
    "a first cache gives as many bytes a clock as were measured": Case(
        *("l1", [changed(each, compute_units=10, clock_hz=1e9) for each in named("t4", "a100-sxm-80gb")]),
        *({"requested": 2.0**37}, 2.0**37 / np.array([64e10, 128e10])),
    ),
    "constant memory is not main memory": Case("latency", [GPU], {"path_constants": 1e3}, [100 * LATENCY]),
    "chains of loads wait for it": Case("latency", [GPU], {"path_loads": 1001}, [641 * LATENCY]),
    "atomics at an address take turns however many units there are": Case(
        "atomics", [changed(GPU, compute_units=n) for n in (20, 80)], {"turns": 1e7}, [1e7 / 1.733e9] * 2
    ),
    "compare-exchanges that are repeated take a load": Case(
        "atomics", [GPU], {"retries": 1e7}, [225e7 / 1.733e9]
    ),
    "a second cache does some atomics a clock to a line": Case(
        "atomics", SEVERAL, {"atomics_done": 1e9, "atomic_lines": 16}, [1 / 25.6, 1 / 25.6]
    ),
    "to many lines, one for each of few units": Case(
        "atomics", SEVERAL, {"atomics_done": 1e9, "atomic_lines": 30}, [1 / 28, 1 / 48]
    ),
    "local atomics take a clock, or a lock": Case(
        *("atomics", [replace(SEVERAL[0], series=series) for series in ("Ampere", "Kepler")]),
        *({"local_atomics": 1e9}, [1 / 28, 4 / 28]),
    ),
    "threads take turns": Case("atomics", "xeon-e5-2670-x2", {"turns_apart": 3e5}, [3e5 * 5e-9 * 5]),
    "atomics of a CPU wait for lines of other cores": Case(
        "atomics", "i7-6700k", {"locked": 1e4}, [1e4 * (5e-9 + 15e-9) / 8]
    ),
    "as many as its own cache misses": Case(
        "atomics", "i7-6700k", {"locked": 1e9}, [(1e9 * 5e-9 + 2**19 * 15e-9) / 8]
    ),
    "words from all over memory come at the measured rate": Case(
        *("scattered", [*cpu({"compute_units": 8.0}, scattered_bytes_per_s=4e8), GPU]),
        *({"requested": 4e6, "behind": 64e6}, [60e6 / 64 / 1e8, 0]),
    ),
    **{
        f"walks down columns, {name}": Case(
            *("scattered", [*cpu(CACHES, scattered_bytes_per_s=4e8), *cpu(CACHES)]),
            *({"jumps": 1e6, "walk": 2.0**21, "alignment": 2.0**bits}, [share * 1e6 / 1e8, 0]),
        )
        for name, bits, share in (("of any step", 0, 0.5), ("in few sets", 8, 0.75), ("in one", 20, 1.0))
    },
    "bytes at random addresses take twice the time of streams": Case(
        "scattered", [GPU], {"irregular": 0.3, "requested": 2.0**23}, [2 * 3.3 * 2**23 / 320e9]
    ),
    "if they are not few": Case("scattered", [GPU], {"irregular": 0.04, "requested": 2.0**23}, [0]),
    "lines of one channel take turns on AMD's older ones": Case(
        *("scattered", "hawaii-r9-290x polaris-rx480 gtx1080 radeon-pro-w6600 i7-6700k"),
        *({"channel_share": 0.5, "behind": 2.0**22}, 4.931e-3 * np.array([1, 1, 0, 0, 0])),
    ),
    "units read one address in turn where their caches do not keep it": Case(
        "scattered", "gtx1080 p100-pcie-16gb v100-pcie", {"same_address": 3e6}, [3e6 / 1.733e9, 0, 0]
    ),
    "functions are as many as they cost": Case(
        *("issue", cpu(transcendental_op_per_s=1e9), functions(8e8, 8e8, 28e8), [3e8 / 1e9]),
    ),
    "a unit for functions": Case(
        "arithmetic", WITH_SPECIAL, OF_FUNCTIONS, on_lanes([4e9, 8e9, 4e9], WITH_SPECIAL)
    ),
    "works beside others but on GCN": Case(
        *("arithmetic", WITH_SPECIAL, {**OF_FUNCTIONS, "operations_real": 14e9}),
        on_lanes([11e9, 11e9, 14e9], WITH_SPECIAL),
    ),
    "lanes for integers compute beside reals": Case(
        *("arithmetic", BESIDE_REALS, {"operations": 2e9, "integers": 2e9, "operations_real": 3e9}),
        on_lanes([3e9, 3e9, 5e9, 5e9], BESIDE_REALS),
    ),
    **{
        f"{kind}, on {on}": Case(term_name, devices, {kind: 1e9}, [seconds])
        for kind, clocks, instructions, measured_s in (
            *(("divisions", 12, 29.6, 1), ("invariant_divisions", 12, 14.8, 1)),
            ("long_divisions", 24, 50, 10),
        )
        for on, term_name, devices, seconds in (
            ("a CPU", "issue", "i7-6700k", 1e9 * clocks / 32e9),
            ("a GPU, in instructions", "arithmetic", "gtx1080", on_lanes([1e9 * instructions], "gtx1080")[0]),
            (
                *("a measured CPU", "issue"),
                *(cpu(CORES, int32_div_op_per_s=1e9, int64_div_op_per_s=1e8), measured_s),
            ),
        )
    },
    "a condition costs each work-item what it was measured to cost": Case(
        "issue", GUARDED, {**NONE, "conditional": 1, "row_items": 64}, [2**22 * 5e-10 / 8, 0], NONE
    ),
    "a CPU divides as fast with few lanes as with many": Case(
        "arithmetic",
        cpu(CORES),
        {"operations_real": 1e6, "library": 0.0, "special": 1e9},
        [1.5e9 / 16e9],
        PLAIN | {"operations_real": 0.0},
    ),
    "and more where rows are short": Case(
        "issue", GUARDED, {**NONE, "conditional": 1, "row_items": 16}, [2.8 * 2**22 * 5e-10 / 8, 0], NONE
    ),
    "a CPU has no unit for texels": Case(
        "issue", [*cpu({"compute_units": 4.0, "clock_hz": 2e9}), GPU], {"texels": 1e9}, [40e9 / 8e9, 0]
    ),
    "values that a loop carries spill beyond 256 registers": Case(
        "spills", [GPU], LOOPS, [8 * 0.36 * 2**22 * 8000 / (32 * 20 * 1.733e9)]
    ),
    "those of straight code do not": Case("spills", [GPU], {**LOOPS, "longest": 1000}, [0]),
    "nor fewer once it is ordered": Case("spills", [GPU], {**LOOPS, "needed": 100}, [0]),
}


@pytest.mark.parametrize("case", SECONDS)
def test_more_work_takes_so_many_seconds_more(case: str) -> None:
    more, less = SECONDS[case].times
    assert (more - less).tolist() == pytest.approx(list(SECONDS[case].expected), rel=0.02, abs=1e-9)


RATES = st.floats(1e9, 2e12)


@given(read=RATES, share=st.floats(0.6, 1.2), kind=st.sampled_from(["cpu", "gpu"]))
def test_a_copy_takes_what_it_was_measured_to_take(read: float, share: float, kind: str) -> None:
    """On CPUs too, which read lines before they write to them: a measured copy has that in it."""
    measured = {"read_bytes_per_s": read, "copy_bytes_per_s": share * read}
    measured |= {"round_trip_s": 7e-5, "empty_s": 1e-5}
    mine = Device("mine", "mine", type=kind, measured=measured, numbers={"bandwidth_bytes_per_s": 1e9})
    memory = TERMS.index("memory")
    seconds = terms(work_of([stream(1 << 26)]), sheets_of([mine]))[0, 0]
    assert seconds[memory] == pytest.approx(8 * 2**26 / (share * read), rel=1e-6)
    assert seconds[TERMS.index("launch")] == pytest.approx(6e-5)
    assert seconds[TERMS.index("start")] == 1e-5
    # What others reach of their data sheets says nothing of it.
    others = Efficiencies({f"kind:{kind}": np.ones(len(TERMS)), "device:mine": np.full(len(TERMS), 0.1)})
    assert others.of(mine)[memory] == 0.1
    assert others.of(mine)[TERMS.index("waiting")] == pytest.approx(1.1)


@pytest.mark.parametrize("key", ["gtx1080", "k20c", "v100-pcie", "rx6800xt", "xeon-e5-2670-x2"])
def test_a_gpu_runs_blocks_one_after_another_and_a_cpu_does_not(work: Work, key: str) -> None:
    device = device_named(key)
    slower = replace(work, block_path=work.block_path + 1000, block_local=work.block_local + 10)
    few, many = (term("latency", each, [device])[:, 0] for each in (work, slower))
    sheets = sheets_of([device])
    waves = np.maximum(work.groups / (sheets.units * resident_groups(work, sheets)), 1).T
    clocks = waves * (1000 * sheets.step + 10 * np.where(sheets.wide, 60, 25)) * (device.type == "gpu")
    assert many - few == pytest.approx((clocks / sheets.clock)[0])


def test_an_access_waits_for_any_of_its_lines() -> None:
    """Half of the sectors miss: all accesses wait if each sector is in a line of its own."""
    waits = [
        term(
            "waiting",
            launch_of(sectors=[128e6] * 2, requested=128e6, accesses=[1e6] * 2, lines=[n] * 2, behind=64e6),
            [GPU],
        )
        for n in (1e6, 4e6)
    ]
    few, many = (each - term("waiting", launch_of(behind=0, distinct=0), [GPU]) for each in waits)
    assert many == pytest.approx(2 * few)
    assert few > 0


@given(st.floats(0.05, 4))
def test_data_that_fit_the_last_cache_of_a_gpu_stay_there_and_others_do_not(share: float) -> None:
    keys = ("a100-sxm-80gb", "l40s", "rx6900xt", "i7-6700k")
    devices = list(map(device_named, keys))
    for column, size in enumerate(sheets_of(devices).last_cache[0].tolist()):
        n = int(share * size / 8)
        one, alone = work_of([stream(n)]), sheets_of(devices[column : column + 1])
        seconds = terms(one, alone)[0, 0, TERMS.index("memory")]
        whole = 8 * n / alone.bandwidth[0, 0]
        if keys[column] == "i7-6700k" or share > 0.9:
            assert seconds >= whole * 0.99
        elif share < 0.65:
            assert seconds < 1e-3 * whole
        else:
            assert seconds <= whole * 1.01


def test_a_cache_before_memory_has_its_own_rate_and_a_device_begins_groups_in_turn() -> None:
    (radeon, l40s), launch = named("rx6900xt", "l40s"), launch_of()
    bandwidth, clock = radeon.numbers["bandwidth_bytes_per_s"], l40s.numbers["clock_hz"]
    assert term("l2", launch, [radeon]) == pytest.approx((8 << 22) / (3.7 * bandwidth))
    many = term("groups", launch, [changed(l40s, compute_units=1e6)])
    assert many == pytest.approx(launch.groups * 1.25 / clock)


def test_what_neighbours_load_from_constant_memory_are_operands_on_gpus() -> None:
    devices = named("gtx1080", "radeon-vii")
    loads = 1e9 * np.array([1 / 32, 1 / 64])
    copy = launch_of()
    taps = replace(copy, operations=copy.operations + 1e9, accesses=copy.accesses + loads)
    taps = replace(taps, lines=taps.lines + loads)
    for name in ("issue", "l1"):
        none, operands, loaded = (
            term(name, each, devices) for each in (copy, replace(taps, operands=np.array([[1e9]])), taps)
        )
        assert operands == pytest.approx(none)
        assert (loaded > 2 * none).all()


def test_loops_with_barriers_are_no_chains_on_cpus() -> None:
    """The innermost loop is over the work-items of a group, which do not wait for each other."""
    mine = cpu(chain_flop_per_s=1e9, fp32_flop_per_s=1e11, barrier_flop_per_s=5e10)
    looped = launch_of(18, longest=1000.0, code=40.0, path=800.0, operations_real=2**18 * 500.0)
    chained, fenced = (term("latency", replace(looped, barriers=np.array([[n]])), mine) for n in (1.0, 30.0))
    assert fenced < chained / 20


def test_groups_that_a_cpu_runs_in_parts_exchange_values_item_by_item() -> None:
    """Without vectors there is one lane, and 4 clocks of a work-item go to the part behind each barrier."""
    amounts = {"barriers": 2.0, "operations_real": 2**18 * 32.0, "group_items": 256.0}
    alone, exchanged = (launch_of(18, **amounts, local_wavefronts=each) for each in (0.0, 2**14))
    unfenced = replace(exchanged, barriers=np.zeros((1, 1)))
    for at_barrier, exchanging, clocks in ((0.25, 1.0, 8.0), (0.75, 12.0, 0.0)):
        mine = measured_cpu(chain=0.5, barrier=at_barrier)
        rate = 8 * 2e9
        few, one = (term("arithmetic", each, [mine]) for each in (alone, exchanged))
        assert few == pytest.approx(2**18 * 32 / rate / (16 * at_barrier))
        assert one == pytest.approx(2**18 * 32 / rate / exchanging)
        parts = term("issue", exchanged, [mine]) - term("issue", unfenced, [mine])
        assert parts >= 2**18 * clocks / rate


@given(steps=st.integers(10**4, 10**7), bits=st.integers(12, 26))
def test_loads_that_depend_on_each_other_take_the_latency_of_the_cache_that_has_them(
    steps: int, bits: int
) -> None:
    """A list in random order, walked by one work-item: 2 ns a step in the first cache, 80 ns in memory."""
    misses = [64.0 * steps * max(0.0, 1 - (1 << size) / (1 << bits)) for size in [*range(14, 27), 60]]
    once = dict.fromkeys(("items", "groups", "group_items"), 1.0)
    work = {"operations_real": 0.0, "operations_fp64": 0.0, "longest": 8.0 * steps, "code": 20.0}
    path = {"path": 3.0 * steps, "path_loads": steps, "item_accesses": steps}
    i7 = device_named("i7-6700k")
    ns = 1e9 * term("latency", launch_of(12, **once, **work, **path, behind=misses), [i7])[0, 0] / steps
    assert 1 < ns < 110
    assert (ns < 2.1) == (1 << bits <= i7.numbers["l1_bytes"])
    assert (ns > 55) == (1 << bits > 2 * i7.numbers["l3_bytes"])


def test_further_operations_behind_a_condition_take_the_rest_of_the_time_of_a_chain() -> None:
    """A chain of 16 takes 1 ns at half of the peak, of which the condition takes half."""
    assert sheets_of(GUARDED[:1]).guarded == pytest.approx(30 / 5e-10 * 8 / PEAK)


def test_compilers_that_order_code_need_few_registers_more_than_amds() -> None:
    ordered, asked, unordered = (
        resident_groups(launch_of(registers=registers, needed=needed), SHEETS)
        for registers, needed in ((200.0, 30.0), (46.0, 46.0), (200.0, 200.0))
    )
    assert ordered == asked > unordered


@pytest.mark.parametrize(("cache", "usual", "held"), [("last", 8, 99), ("own", 32, 17)])
def test_a_cpu_reads_its_caches_at_the_rates_that_were_measured(cache: str, usual: float, held: int) -> None:
    numbers = {"compute_units": 8.0, "clock_hz": 2e9, "l2_bytes": 2.0**19}
    half = {f"{cache}_cache_bytes_per_s": 8 * usual / 2 * 2e9}
    work = launch_of()
    behind = work.behind * (np.array((*CACHE_BITS, 98)) < held)
    found = [term("l2", replace(work, behind=behind), cpu(numbers, **of)) for of in ({}, half)]
    assert found[1] == pytest.approx(2 * found[0])
    moved = work.sectors[0, 0]
    assert found[0] == pytest.approx(moved / (8 * usual * 2e9), rel=0.01)


def test_registers_and_local_memory_limit_how_many_groups_are_resident(work: Work) -> None:
    full = resident_groups(work, SHEETS)
    more = work.registers + 200
    many = resident_groups(replace(work, registers=more, needed=more), SHEETS)
    large = resident_groups(replace(work, local_bytes=work.local_bytes + 40_000), SHEETS)
    assert (many < full).all()
    assert (large == 2).all()
    radeon = sheets_of([device_named("radeon-pro-w6600")])
    half, whole = (
        resident_groups(replace(work, amd_registers=np.full((len(work), 1), each)), radeon)
        for each in (256, 128)
    )
    np.testing.assert_array_equal(2 * half, whole)


@pytest.mark.parametrize(
    "grown", ["operations", "operations_real", "sectors", "behind", "distinct", "local_wavefronts", "lines"]
)
def test_more_work_never_takes_less_time(work: Work, grown: str) -> None:
    more = replace(work, **{grown: 2 * getattr(work, grown)})
    assert (seconds(more, EVERY) >= seconds(work, EVERY) * (1 - 1e-12)).all()


def test_the_joined_time_lies_between_the_largest_term_and_the_sum(work: Work) -> None:
    each = terms(work, sheets_of(EVERY))
    joined_time, shares = joined(each)
    assert (joined_time >= each.max(axis=-1)).all()
    assert (joined_time <= each.sum(axis=-1) * (1 + 1e-12)).all()
    np.testing.assert_allclose(shares.sum(axis=-1), 1.0)


def test_to_halve_a_term_saves_what_the_joined_time_says(work: Work) -> None:
    each = terms(work, sheets_of([GPU, *named("i7-6700k")]))
    whole, shares = joined(each)
    for index in range(len(TERMS)):
        halved = each.copy()
        halved[..., index] /= 2
        saved = 1 - joined(halved)[0] / whole
        np.testing.assert_allclose(saved_by_half(shares)[..., index], saved, atol=1e-9)


def made_times(work: Work, devices: list[Device], factors: Any) -> Times:
    """Times of each launch on each device, with true factors."""
    n, d = len(work), len(devices)
    each = terms(work, sheets_of(devices)).reshape(n * d, -1)
    indices = np.tile(np.arange(d), n)
    times = Times(each, np.ones(n * d), np.arange(n * d), indices, np.zeros(n * d), np.ones(n * d))
    return replace(times, log_time=log_times(times, factors[indices])[0])


def test_factors_are_found_again(work: Work) -> None:
    devices = [GPU, device_named("k40c"), device_named("fiji-furyx")]
    true = np.stack([Efficiencies({}).of(device) for device in devices])
    true[:, TERMS.index("memory")] += 0.05
    true[:, TERMS.index("launch")] += 0.5
    times = made_times(work, devices, true)
    fitted = fit(times, devices)
    centre, _ = log_times(times, np.stack([fitted.of(device) for device in devices])[times.device])
    assert np.abs(centre - times.log_time).max() < 0.1
    assert fitted.of(Device("other", type="gpu")).shape == (len(TERMS),)


@pytest.mark.parametrize(("key", "taught"), [("titanx", True), ("rtx-a4000", False), ("rx6800xt", False)])
def test_launches_with_older_drivers_tell_nothing_of_newer_ones(
    work: Work, key: str, *, taught: bool
) -> None:
    devices = [GPU, device_named("fiji-furyx")]
    slow = np.stack([Efficiencies({}).of(device) for device in devices])
    launch = TERMS.index("launch")
    slow[:, launch] += 1.0
    other = device_named(key)
    fitted = fit(made_times(work, devices, slow), devices).of(other)[launch]
    assert (fitted > prior_of(other)[launch] + 0.1) == taught


def test_slopes_of_the_times_are_those_of_differences(work: Work) -> None:
    times = made_times(work, [GPU], np.zeros((1, len(TERMS))))
    factors = np.zeros((len(work), len(TERMS)))
    before, slopes = log_times(times, factors)
    for index in range(len(TERMS)):
        moved = factors.copy()
        moved[:, index] += 1e-6
        np.testing.assert_allclose((log_times(times, moved)[0] - before) / 1e-6, slopes[:, index], atol=1e-5)
