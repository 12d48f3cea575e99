"""Terms of a launch's time obey what physics says, whatever the launch and the device are."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.run import Options, characterize_launch
from crosscast.device import Device
from crosscast.devices.catalogue import catalogue, device_named
from crosscast.devices.launch_work import GlobalAtomics
from crosscast.devices.sheets import sheets_of
from crosscast.kernel import Kernel, Launch, Program
from crosscast.prediction.time.efficiencies import Efficiencies, Times, fit, log_times, prior_of
from crosscast.prediction.time.gpu_terms import resident_groups
from crosscast.prediction.time.launch_times import DeviceErrors, doubt_of, in_common
from crosscast.prediction.time.occupancy import bytes_behind
from crosscast.prediction.time.terms import TERMS, joined, terms
from crosscast.prediction.time.work import CACHE_BITS, Work, work_of
from support.streams import stream

EVERY = [device_named(key) for key in catalogue()]
GPU = device_named("gtx1080")
SHEETS = sheets_of([GPU])


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


def test_a_large_copy_takes_what_its_bytes_take_at_the_bandwidth() -> None:
    large = launch_of(26)
    assert term("memory", large, [GPU]) == pytest.approx(8 * 2**26 / 320e9)
    assert seconds(large, [GPU]) == pytest.approx(8 * 2**26 / 320e9, rel=0.15)


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


@pytest.mark.parametrize(
    ("loads", "barriers", "stores", "stalls"),
    [
        *((0, 0, 0, 3), (6, 0, 6, 3), (30, 0, 30, 7.5), (6, 1, 6, 12), (30, 2, 90, 60)),
        *((30, 2, 15, 33.75), (30, 1, 0, 7.5)),
    ],
)
def test_blocks_wait_for_their_loads_and_a_few_accesses_are_in_flight(
    loads: int, barriers: int, stores: int, stalls: float
) -> None:
    """Of 12 accesses of a work-item, `loads` have blocks of their own; those that fill local memory wait."""
    times = [
        term(
            "waiting",
            launch_of(item_accesses=of, block_loads=n, barriers=barriers, local_stores=stores),
            [GPU],
        )
        for of, n in ((12, loads), (4, 0))
    ]
    assert times[0] / times[1] == pytest.approx(stalls)


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


def test_iterations_wait_one_after_another_in_loops_that_compilers_do_not_unroll() -> None:
    """Others have their loads in flight together. A chain of loads waits once."""
    devices = named("gtx1080", "radeon-vii", "rx6900xt")
    joined, rolled, in_turn, chain, few = (
        term(
            "waiting",
            launch_of(item_accesses=4, block_loads=n, loads_in_turn=k, loads_rolled=r, path_loads=m),
            devices,
        )[0]
        for n, k, r, m in (
            (300, 0, 0, 0),
            (300, 0, 300, 0),
            (300, 300, 300, 0),
            (300, 300, 300, 300),
            (1, 1, 1, 0),
        )
    )
    assert (in_turn / few).tolist() == pytest.approx([300, 300, 300])
    assert (rolled / few).tolist() == pytest.approx([37.5, 300, 300])
    assert (joined / few).tolist() == pytest.approx([37.5, 37.5, 37.5])
    assert (chain / few).tolist() == pytest.approx([37.5, 37.5, 37.5])


@given(st.floats(0.5, 64), st.floats(1, 1e6))
def test_a_wide_sub_group_takes_a_clock_for_a_line_and_four_for_its_addresses(
    lines: float, accesses: float
) -> None:
    made = launch_of(sectors=np.array([[0.0, 64 * lines * accesses]]), accesses=np.array([[0.0, accesses]]))
    each, least = (
        term("l1", launch, named("radeon-vii")) for launch in (made, replace(made, sectors=0 * made.sectors))
    )
    assert each / least == pytest.approx(max(lines, 4) / 4)


@given(st.integers(1, 64))
def test_a_first_cache_looks_up_four_lines_a_clock_and_gives_a_word_of_each_bank(stride: int) -> None:
    copy = stream(1 << 22)
    pairs = sum(n for name, n in copy.launch["access_patterns"].items() if name in ("contiguous", "uniform"))
    patterns = {"uniform": 0, "contiguous": 0, "strided": pairs, "irregular": 0}
    launch = {**copy.launch, "access_patterns": {**patterns, "stride_bytes": 4 * stride * pairs}}
    one = work_of([replace(copy, launch=launch)])
    lines = min(stride, 32)
    strided = replace(one, lines=lines * one.accesses, requested=128 * one.accesses[:, :1])
    v100, gtx1080 = terms(strided, sheets_of(list(map(device_named, ("v100-pcie", "gtx1080")))))[0]
    l1 = TERMS.index("l1")
    least = terms(work_of([copy]), sheets_of([device_named("v100-pcie")]))[0, 0, l1]
    assert v100[l1] / least == pytest.approx(max(lines / 4, math.gcd(stride, 32)))
    assert gtx1080[l1] >= lines * strided.accesses[0, 0] / (20 * 2e9)


@pytest.mark.parametrize(("key", "clock"), [("rtx-a6000", 64), ("t4", 64), ("a100-sxm-80gb", 128)])
def test_a_first_cache_gives_as_many_bytes_a_clock_as_were_measured(key: str, clock: int) -> None:
    device, four = device_named(key), launch_of()
    four = replace(four, requested=16 * 32 * four.accesses[:, :1])
    rate = device.numbers["compute_units"] * device.numbers["clock_hz"] * clock
    assert term("l1", four, [device]) == pytest.approx(four.requested / rate, rel=0.01)


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


def test_a_cache_before_memory_has_its_own_rate() -> None:
    one, sheets = launch_of(), sheets_of(named("rx6900xt"))
    within, without = (
        terms(one, each)[0, 0, TERMS.index("l2")] for each in (sheets, replace(sheets, l2=sheets.last_cache))
    )
    assert within == pytest.approx((8 << 22) / (3.7 * sheets.bandwidth[0, 0]))
    assert without < within


def test_a_device_begins_groups_one_after_another_however_many_units_it_has() -> None:
    one, device = launch_of(), device_named("l40s")
    larger = replace(device, numbers={**device.numbers, "compute_units": 1e6})
    groups = term("groups", one, [device, larger])[0]
    assert groups[1] == pytest.approx(one.groups[0] * 1.25 / device.numbers["clock_hz"])
    assert groups[0] >= groups[1]


@given(st.floats(0, 1))
def test_bytes_at_random_addresses_of_memory_take_twice_the_time_of_streams(irregular: float) -> None:
    one = launch_of(24)
    few = replace(one, irregular=np.array([[irregular]]), requested=one.requested / 4)
    beyond = one.distinct - few.requested * (1 - irregular)
    expected = 2 * beyond / sheets_of([GPU]).bandwidth * (irregular > 0.05)
    assert term("scattered", few, [GPU]) == pytest.approx(expected, abs=1e-14)


def test_loads_on_several_chains_of_a_block_leave_no_instructions_to_wait_for() -> None:
    copy = stream(1 << 22)
    chains = {"block_instructions": 3, "block_loads": {"global": 2, "constant": 2}}
    path = {"instructions": 3, "loads": {"global": 2}, **chains}
    assert work_of([replace(copy, launch={**copy.launch, "path": path})]).block_path[0] == 0


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_loads_of_constant_memory_do_not_wait_for_main_memory(share: float) -> None:
    """A chain of loads in memory, of which a share is constant."""
    memory, constant = (
        term("latency", launch_of(path_loads=1000 * (1 - each), path_constants=1000 * each), [GPU])
        for each in (share, 1.0)
    )
    assert memory >= constant
    assert (memory > 1.5 * constant) == (share < 0.5)


@pytest.mark.parametrize("measured", [{}, {"read_bytes_per_s": 40e9, "copy_bytes_per_s": 80e9 / 3}])
def test_a_cpu_reads_lines_that_it_updates_once(measured: dict[str, float]) -> None:
    """An update in place moves two lines where a copy moves three; on a GPU both move two."""
    copy = launch_of(26)
    for kind, share in (("cpu", 2 / 3), ("gpu", 1.0)):
        mine = [replace(*cpu({"bandwidth_bytes_per_s": 4e10}, **measured), type=kind)]
        of_copy, of_update = (
            term("memory", each, mine) for each in (copy, replace(copy, updated=copy.written))
        )
        assert of_update == pytest.approx(share * of_copy, rel=1e-6)


def test_atomics_at_one_address_take_turns_however_many_units_there_are() -> None:
    gpus = [replace(GPU, numbers={**GPU.numbers, "compute_units": units}) for units in (20, 80)]
    none, hot, repeated = (
        term("atomics", launch_of(**amounts), gpus) for amounts in ({}, {"turns": 1e7}, {"retries": 1e7})
    )
    np.testing.assert_allclose(hot, 1e7 / sheets_of(gpus).clock)
    assert (repeated > 100 * hot).all() and (none < 1e-12).all()


@given(st.integers(1, 64), st.integers(1, 4096), st.sampled_from(["_uniform", "", "_fp"]))
def test_only_atomics_at_the_address_of_a_group_are_joined(lanes: int, addresses: int, kind: str) -> None:
    """Of 10,000 executions of an atomic, each by `lanes` work-items: of a program that joins them, one."""
    made = 10_000 * lanes
    launch: dict[str, Any] = {
        "instructions": {"atomics": {f"global{kind}": made}},
        "distinct_bytes": {"atomics": {"written": 4 * addresses}},
        "sub_groups": {"64": {"atomic_accesses": 10_000}},
    }
    uniform = kind == "_uniform"
    turns, _ = GlobalAtomics.of(launch, 64).turns
    assert turns == pytest.approx(made / (max(addresses, lanes) if uniform else addresses))
    assert GlobalAtomics.of(launch, 1).turns[0] == pytest.approx(made / addresses)
    assert GlobalAtomics.of(launch, 64).done == pytest.approx(10_000 if uniform else made)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 512), st.floats(0, 1))
def test_the_most_used_address_takes_turns(uniform: int, others: int, addresses: int, skew: float) -> None:
    """Between an equal use of all addresses, and one that all use."""
    most = max(-(-(uniform + others) // addresses), round(skew * (uniform + others)))
    launch: dict[str, Any] = {
        "instructions": {"atomics": {"global_uniform": uniform, "global": others}},
        "distinct_bytes": {"atomics": {"written": 4 * addresses}},
        "sub_groups": {"32": {"atomic_accesses": -(-(uniform + others) // 32)}},
    }
    equal, _ = GlobalAtomics.of(launch, 32).turns
    launch["distinct_bytes"]["atomics"]["most"] = 2 * most
    turns, compared = GlobalAtomics.of(launch, 32).turns
    assert equal - 1 <= turns <= min(most, uniform / 16 + 1) + others
    assert compared == 0
    if not uniform:
        assert turns == pytest.approx(max(most, others / addresses))


def test_a_second_cache_does_some_atomics_a_clock_to_a_line_and_one_for_each_unit() -> None:
    """GPUs of 28 to 68 units add to 2 KiB at the same rate (benchmarks.published_textbook)."""
    gpus = [
        replace(GPU, numbers={**GPU.numbers, "compute_units": units, "clock_hz": 1e9}) for units in (28, 68)
    ]
    for lines, rates in ((16, (25.6, 25.6)), (30, (28, 48)), (1e6, (28, 68))):
        made = launch_of(atomics_done=1e9, atomic_lines=lines)
        np.testing.assert_allclose(term("atomics", made, gpus)[0], np.divide(1, rates))
    xeon = named("xeon-e5-2670-x2")
    assert term("atomics", made, xeon) == term("atomics", launch_of(), xeon)


def test_atomics_of_local_memory_take_a_clock_each_or_a_lock() -> None:
    numbers = {**GPU.numbers, "compute_units": 50, "clock_hz": 1e9}
    gpus = [replace(GPU, series=series, numbers=numbers) for series in ("Ampere", "Kepler")]
    found = term("atomics", launch_of(local_atomics=1e9), gpus)[0]
    assert found == pytest.approx([1 / 50, 4 / 50], rel=0.1)


def test_consecutive_loads_of_local_memory_are_joined_by_nvcc_and_on_amd() -> None:
    counted = {"local_wavefronts": 1e8, "saved_loads": (0.1, 0.5)}
    on = named("gtx1080", "radeon-pro-w6600")
    cuda, opencl = (term("local", launch_of(**counted, any_group=any_), on)[0] for any_ in (True, False))
    assert (opencl / cuda).tolist() == pytest.approx([0.9 / 0.4, 1])


def test_conversions_of_doubles_take_what_doubles_take_on_gpus_for_graphics() -> None:
    launch, device = launch_of(), named("rtx3080")
    computed = replace(launch, operations_fp64=launch.operations_fp64 + 1e10)
    converted = term("arithmetic", launch_of(conversions_fp64=1e10), device)
    assert converted == pytest.approx(term("arithmetic", computed, device))
    assert converted > 20 * term("arithmetic", launch, device)


def test_a_cpu_joins_no_atomics() -> None:
    few, many = (
        term("atomics", launch_of(turns=of, turns_apart=3e5), named("xeon-e5-2670-x2")) for of in (1e4, 7e4)
    )
    assert few == many > 3e5 * 5e-9


@given(words=st.integers(2**20, 2**24), rate=st.floats(1e7, 1e9))
def test_words_from_all_over_memory_come_at_the_rate_at_which_they_were_measured(
    words: int, rate: float
) -> None:
    mine = cpu({"compute_units": 8.0}, scattered_bytes_per_s=4 * rate)
    assert term("scattered", launch_of(), mine) < 1e-9  # Neighbours fetch the next line
    anywhere = launch_of(requested=4.0 * words, behind=64.0 * words)
    assert term("scattered", anywhere, mine) == pytest.approx(words * 60 / 64 / rate, rel=1e-6)
    assert term("scattered", anywhere, [GPU]) < 1e-9


@given(rate=st.floats(1e8, 1e11))
def test_functions_of_a_library_take_what_exp_was_measured_to_take(rate: float) -> None:
    """One after another, as calls are not vectorized; a function is as many as it costs."""
    usual = launch_of(20, operations_real=2e8, operations_fp64=0)
    functions = launch_of(20, operations_real=10e8, library=8e8, operations_fp64=28e8, library_fp64=28e8)
    mine = cpu(transcendental_op_per_s=rate)
    assert term("arithmetic", functions, mine) == pytest.approx(term("arithmetic", usual, mine))
    longer = term("issue", functions, mine) - term("issue", usual, mine)
    assert longer == pytest.approx((1e8 + 2e8) / rate, rel=0.01)
    assert term("arithmetic", functions, cpu()) > 4 * term("arithmetic", usual, cpu())


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


def test_units_with_lanes_of_their_own_for_integers_compute_them_beside_reals() -> None:
    sums = launch_of(products=0.0, divisions=0.0, operations=2e9, integers=2e9, operations_real=3e9)
    for key, clocks in (("v100-pcie", 3e9), ("rtx2080ti", 3e9), ("rtx3090", 5e9), ("gtx1080", 5e9)):
        (device,), sheets = named(key), sheets_of(named(key))
        slots = sheets.units * sheets.clock * sheets.lanes
        assert term("arithmetic", sums, [device]) == pytest.approx(clocks / slots, rel=0.01)


@pytest.mark.parametrize(
    ("device", "joined", "shifts"),
    [("gtx1080", 0, 2), ("rtx3090", 0, 2), ("rtx2080ti", 0, 1), ("k40m", 1.2, 3), ("rx6800xt", 0, 1)],
)
def test_what_is_joined_and_shifts_take_the_lanes_of_the_architecture(
    device: str, joined: float, shifts: float
) -> None:
    # Clocks of a lane of single precision, beside as many sums.
    (found,), none = named(device), dict.fromkeys(("products", "divisions"), 0.0)
    sums, with_joined, with_shifts = (
        term("arithmetic", launch_of(**none, **each), [found]).item()
        for each in (
            {"operations": 1e9, "integers": 1e9},
            {"operations": 2e9, "integers": 1e9, "joined": 1e9},
            {"operations": 2e9, "integers": 1e9, "shifts": 1e9},
        )
    )
    a_sum = {"rtx3090": 2, "k40m": 1.2}.get(device, 1)
    assert (with_joined / sums - 1) * a_sum == pytest.approx(joined, abs=0.01)
    assert (with_shifts / sums - 1) * a_sum == pytest.approx(shifts, abs=0.01)


def test_a_unit_for_functions_works_beside_the_others_but_on_gcn() -> None:
    devices = named("gtx1080", "rtx3090", "radeon-vii")
    lanes = [device.numbers["peak_flop_per_s"] / 2 for device in devices]
    alone, beside = (
        term("arithmetic", launch_of(operations_real=n + 4e9, special=1e9, fast=1e9), devices)[0] * lanes
        for n in (0.0, 1e10)
    )
    # Of one function, and of others that take longer than the unit for it.
    assert alone / 1e9 == pytest.approx([4, 8, 4], rel=0.02)
    assert beside / 1e9 == pytest.approx([11, 11, 14], rel=0.02)


def test_short_products_take_a_clock_on_amd_and_are_products_elsewhere() -> None:
    none = dict.fromkeys(("operations", "divisions", "invariant_divisions"), 0.0)
    devices = named("hawaii-r9-290x", "gtx1080")
    long, short = (
        term("arithmetic", launch_of(**none, products=1e9, short_products=part), devices)[0]
        for part in (0, 1e9)
    )
    units = [device.numbers["peak_flop_per_s"] / 2 for device in devices]
    assert short[0] == pytest.approx(1e9 / units[0], rel=0.01)
    assert long[0] > 2.5 * short[0]
    assert short[1] == pytest.approx(long[1])


def test_atomics_of_local_memory_on_reals_are_loops_but_on_amd() -> None:
    devices = named("gtx1080", "radeon-vii")
    whole, real = (
        term("atomics", launch_of(local_atomics=1e9, local_reals=share), devices)[0] for share in (0, 1)
    )
    assert (real / whole).tolist() == pytest.approx([4, 1])


def test_loops_with_barriers_are_no_chains_on_cpus() -> None:
    """The innermost loop is over the work-items of a group, which do not wait for each other."""
    mine = cpu(chain_flop_per_s=1e9, fp32_flop_per_s=1e11, barrier_flop_per_s=5e10)
    looped = launch_of(18, longest=1000.0, code=40.0, path=800.0, operations_real=2**18 * 500.0)
    chained, fenced = (term("latency", replace(looped, barriers=np.array([[n]])), mine) for n in (1.0, 30.0))
    assert fenced < chained / 20


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


@given(log2=st.floats(12.0, 24.0), alignment=st.floats(0.0, 20.0), rate=st.floats(1e7, 1e9))
def test_walks_down_columns_fetch_lines_again_where_the_cache_does_not_hold_them(
    log2: float, alignment: float, rate: float
) -> None:
    walks = launch_of(jumps=1e6, walk=2.0**log2, alignment=2.0**alignment)
    numbers = {"compute_units": 8.0, "l1_bytes": 32768.0, "l2_bytes": 2.0**19, "l3_bytes": 2.0**25}
    # Steps of a power of two leave a walk one set in so many lines, of at most 1024.
    filled = log2 + min(max(alignment - 6, 0.0), 10.0)
    gone = min(max(filled - 17, 0.0) / (25 - 17), 1.0)
    found = term("scattered", walks, cpu(numbers, scattered_bytes_per_s=4 * rate))
    assert found == pytest.approx(max(gone * 1e6 / rate, 1e-15), rel=1e-6)
    # Where nobody measured what a line takes, nothing is known of the runtime either.
    assert term("scattered", walks, cpu(numbers)) < 1e-9


PEAK = 8 * 2e9 * 16 * 2
CORES = {"compute_units": 8.0, "clock_hz": 2e9, "peak_flop_per_s": PEAK}


@given(share=st.floats(0.05, 1.0))
def test_code_behind_a_condition_takes_what_it_was_measured_to_take(share: float) -> None:
    mine = cpu(CORES, fp32_flop_per_s=PEAK, guarded_flop_per_s=share * PEAK)
    work = {"operations_real": 1e9, "library": 0.0, "special": 0.0}
    free, behind = (
        term("arithmetic", launch_of(**work, conditional=of), mine) for of in (launch_of().conditional, 1.0)
    )
    assert behind == pytest.approx(free * min(1 / share, 16.0), rel=1e-6)


@given(share=st.floats(0.01, 2.0))
def test_code_behind_a_barrier_keeps_as_many_lanes_busy_as_were_measured(share: float) -> None:
    mine = cpu(CORES, fp32_flop_per_s=PEAK, barrier_flop_per_s=share * PEAK)
    work = {"operations_real": 1e9, "library": 0.0, "special": 0.0}
    free, behind = (term("arithmetic", launch_of(**work, barriers=of), mine) for of in (0.0, 2.0))
    assert behind == pytest.approx(free * np.clip(1 / share, 1.0, 16.0), rel=1e-6)
    # Where nobody measured it, a barrier changes nothing.
    paper = cpu(CORES, fp32_flop_per_s=PEAK)
    assert term("arithmetic", launch_of(**work, barriers=2.0), paper) == pytest.approx(free, rel=1e-6)


@given(share=st.floats(0.05, 1.0), item_s=st.floats(1e-11, 1e-7))
def test_a_condition_costs_each_work_item_what_it_was_measured_to_cost(share: float, item_s: float) -> None:
    launch = launch_of(conditional=1.0, operations=0.0, integers=0.0, products=0.0)
    mine, without = (
        cpu(CORES, fp32_flop_per_s=PEAK, guarded_flop_per_s=share * PEAK, guarded_item_s=each)
        for each in (item_s, 1e-30)
    )
    costs = term("issue", launch, mine) - term("issue", launch, without)
    assert costs == pytest.approx((1 << 22) * item_s / 8, rel=1e-6)
    # The further operations take the rest of the time of the chain of 16.
    chain_s = 32 * 8 / (share * PEAK)
    rate = 30 / (chain_s - item_s) if item_s < chain_s else share * PEAK / 8
    assert sheets_of(mine).guarded[0, 0] == pytest.approx(rate * 8 / PEAK, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "cpu_clocks", "least", "most"),
    # Instructions of a GPU: 20 to 40 for 32 bits, half of it where the reciprocal is there.
    [("divisions", 12, 20, 40), ("invariant_divisions", 12, 10, 20), ("long_divisions", 24, 40, 120)],
)
def test_divisions_by_variables_are_one_by_one_on_cpus_and_code_on_gpus(
    kind: str, cpu_clocks: int, least: float, most: float
) -> None:
    launch = launch_of()
    divides = replace(launch, **{kind: np.full((1, 1), 1e8)})
    i7, gpu = (
        (term(name, divides, [device]) - term(name, launch, [device])).item()
        for name, device in (("issue", device_named("i7-6700k")), ("arithmetic", GPU))
    )
    assert i7 == pytest.approx(1e8 * cpu_clocks / (8 * 4.0e9), rel=0.05)
    each = 1e8 / (SHEETS.units * SHEETS.lanes * SHEETS.clock)[0, 0]
    assert least * each < gpu < most * each


@given(short=st.floats(1e7, 1e10), long=st.floats(1e7, 1e10))
def test_divisions_take_what_they_were_measured_to_take(short: float, long: float) -> None:
    mine = cpu(CORES, int32_div_op_per_s=short, int64_div_op_per_s=long)
    launch = launch_of()
    for kind, rate in (("divisions", short), ("invariant_divisions", short), ("long_divisions", long)):
        divides = replace(launch, **{kind: np.full((1, 1), 1e8)})
        more = term("issue", divides, mine) - term("issue", launch, mine)
        assert more == pytest.approx(1e8 / rate, rel=1e-6)


@given(share=st.floats(0.0, 1.0))
def test_lines_of_one_channel_take_turns_where_addresses_take_channels_in_turn(share: float) -> None:
    launch = launch_of()
    # First caches conflict, too: what misses them does not count.
    uneven = launch_of(channel_share=share, behind=launch.behind / 8)
    devices = named("hawaii-r9-290x", "polaris-rx480", "gtx1080", "radeon-pro-w6600", "i7-6700k")
    more = (term("scattered", uneven, devices) - term("scattered", launch, devices))[0]
    lines = 8 * 2**22 / 64
    expected = 15e-9 * lines * max(max((16 * share - 1) / 15, 0.0) ** 0.5 - 0.15, 0.0) / 0.85
    assert more[:2] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert not more[2:].any()


def test_all_units_read_one_address_one_after_another_where_their_caches_do_not_keep_it() -> None:
    """A table in global memory: GPUs before Volta, but for the P100, cache it only behind all units."""
    devices = named("gtx1080", "k20c", "p100-pcie-16gb", "v100-pcie")
    found = term("scattered", launch_of(16, same_address=[3e6, 1.5e6]), devices)[0]
    assert found[:2] == pytest.approx(3e6 / sheets_of(devices).clock[0, :2])
    assert (found[2:] < 1e-12).all()


def test_what_is_only_read_is_cached_by_all_units() -> None:
    """Through `restrict` pointers; Pascal's units cache nothing else of global memory."""
    launch, devices = passes("own", 1 << 16, 16), named("gtx1080", "v100-pcie")
    none, half, whole = (
        term("l2", replace(launch, read_only=np.full((1, 1), share)), devices)[0] for share in (0.0, 0.5, 1.0)
    )
    assert none[0] > 2 * whole[0] and half[0] == pytest.approx((none[0] + whole[0]) / 2)
    assert none[1] == half[1] == whole[1]


@given(code=st.floats(1.0, 1e5), run=st.floats(1.0, 1e5), accesses=st.floats(0.0, 1.0))
def test_instructions_of_long_code_take_longer_on_gpus_if_it_accesses_memory(
    code: float, run: float, accesses: float
) -> None:
    doublings = min(max(math.log2(min(code, run) / 2048), 0.0), 3.0)
    for name in ("arithmetic", "issue"):
        long, short = (
            term(
                name, launch_of(operations_real=1e9, longest=run, item_accesses=accesses * run, code=of), both
            )
            for both in [[GPU, device_named("i7-6700k")]]
            for of in (code, 1.0)
        )
        assert (long / short)[0, 0] == pytest.approx(1.0 + 0.6 * doublings * min(accesses / 0.2, 1.0))
        assert (long / short)[0, 1] == pytest.approx(1.0)


def test_compilers_that_order_code_need_few_registers_more_than_amds() -> None:
    ordered, asked, unordered = (
        resident_groups(launch_of(registers=registers, needed=needed), SHEETS)
        for registers, needed in ((200.0, 30.0), (46.0, 46.0), (200.0, 200.0))
    )
    assert ordered == asked > unordered


@given(
    odd=st.integers(0, 40).map(lambda n: 2 * n + 1),
    power=st.integers(5, 14),
    walks=st.floats(0.0, 1.0),
    width=st.sampled_from([1, 4, 8, 16]),
)
def test_rows_along_which_work_items_walk_are_fetched_once_unless_they_share_sets(
    odd: int, power: int, walks: float, width: int
) -> None:
    """A cache of lines in the order of their uses would fetch each sector at each use."""
    rows = work_of([stream(1 << 26)])
    first, uses = float(rows.behind[0, 0, -1]), 32 / width
    behind = np.where(np.arange(rows.behind.shape[-1]) < rows.behind.shape[-1] - 1, uses * first, first)
    rows = replace(
        rows,
        behind=np.broadcast_to(behind, rows.behind.shape),
        sectors=np.full((1, 2), uses * first),
        walks=np.array([[walks]]),
        width=np.full((1, 1), float(width)),
        apart=np.array([[float(odd << power)]]),
    )
    devices = [device_named(key) for key in ("gtx1080", "rtx3080", "rx6900xt", "i7-6700k")]
    seconds = terms(rows, sheets_of(devices))[0]
    memory, l2 = seconds[:, TERMS.index("memory")], seconds[:, TERMS.index("l2")]
    streamed = np.array([first / device.numbers["bandwidth_bytes_per_s"] for device in devices])
    conflict = min(max((power - 7) / 4, 0.0), 1.0)
    fetched = max(uses / (1.0 + (uses / (1.0 + conflict * (uses / min(uses, 4) - 1.0)) - 1.0) * walks), 1.0)
    page = min(max((odd << power) / 512, 1.0), 2.6)
    assert memory[:2] / streamed[:2] == pytest.approx(fetched * (1.0 + (page - 1.0) * walks), rel=1e-6)
    assert memory[2:3] / streamed[2:3] == pytest.approx(uses, rel=1e-6)
    assert memory[3] / streamed[3] > 0.98 * uses
    # The first caches of Pascal hold no global memory.
    standing = terms(replace(rows, walks=np.zeros((1, 1))), sheets_of(devices))[0, :, TERMS.index("l2")]
    assert l2[0] == standing[0]
    assert l2[1] == pytest.approx(standing[1] * fetched / uses)


@pytest.mark.parametrize(
    ("index", "group", "walks"),
    [
        ("i * n + k", (64, 1), 0.96),
        ("i * n + k", (4, 16), 0.54),  # of the pairs of neighbours, half are of two rows of a group
        ("k * n + i", (64, 1), 0.0),
        ("at[i] + k", (64, 1), 0.0),
    ],
)
def test_work_items_walk_along_rows_not_down_columns(
    index: str, group: tuple[int, int], walks: float
) -> None:
    source = f"""kernel void sum(global const float *a, global const int *at, global float *c, int n) {{
        size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0); float s = 0;
        for (int k = 0; k < n; k++) s += a[{index}];
        c[i] = s; }}"""
    n = 128
    at = np.random.default_rng(3).integers(0, n * (n - 1), n, np.int32)
    a, c = np.zeros(n * n, np.float32), np.zeros(n, np.float32)
    size = (n, 1) if group[1] == 1 else (8, 16)
    launch = Launch(Kernel.from_source(source, "sum"), size, group, (a, at, c, np.int32(n)))
    found = work_of([characterize_launch(launch, options=Options())])
    assert found.walks[0] == pytest.approx(walks, abs=0.04)
    assert found.width[0] == pytest.approx(4.0)
    if walks:
        assert found.apart[0] == pytest.approx(4 * n, rel=0.02)


def test_atomics_of_a_cpu_are_locked_instructions_and_wait_for_lines_of_other_cores() -> None:
    devices = [device_named("i7-6700k"), GPU]
    for locked, waits in ((1e4, 1e4), (1e9, 2**22 * 8 / 64)):
        i7, gpu = term("atomics", launch_of(locked=locked, turns_apart=0.0), devices)[0]
        assert i7 == pytest.approx((locked * 20 / 4.0e9 + waits * 15e-9) / 8, rel=0.05)
        assert gpu == term("atomics", launch_of(), devices)[0, 1]


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


@pytest.mark.parametrize(
    ("key", "rate"), [("gtx1080", 1 / 64), ("a100-sxm-80gb", 4.0), ("i7-6700k", 1 / 4), ("xeon-8480+", 2.0)]
)
def test_half_precision_has_the_rate_of_its_architecture(key: str, rate: float) -> None:
    none = dict.fromkeys(("special", "library", "operations_fp64"), 0.0)
    single, half = (
        term("arithmetic", launch_of(**none, operations_real=real, operations_fp16=of_halves), named(key))
        for real, of_halves in ((1e9, 0.0), (0.0, 1e9))
    )
    assert single == pytest.approx(rate * half)


@pytest.mark.parametrize("registers", [200, 300, 400])
def test_values_that_a_loop_carries_spill_beyond_256_registers(registers: int) -> None:
    # Of the first, AMD's compiler was run, and keeps fewer values after it has ordered the code.
    fewer, straight, looping = (
        term("spills", launch_of(registers=registers, needed=needed, code=1000, longest=longest), [GPU])[0, 0]
        for needed, longest in ((100, 8000), (registers, 1000), (registers, 8000))
    )
    assert fewer == pytest.approx(0.0, abs=1e-12) and straight == pytest.approx(0.0, abs=1e-12)
    units, clock = GPU.numbers["compute_units"], GPU.numbers["clock_hz"]
    share = max(1 - 256 / registers, 0.0)
    assert looping == pytest.approx(max(8 * share * 2**22 * 8000 / (units * clock * 32), 1e-15))


@pytest.mark.parametrize("passes", [1.0, 3.0])
def test_what_amd_compilers_spill_is_moved_through_memory_on_their_devices_alone(passes: float) -> None:
    launch, looped = stream(1 << 20), passes > 1
    amd = {"registers": 128, "spilled": 100, "moves": 210, "moves_in_loops": 210 * looped}
    amd |= {"floating": 50, "floating_in_loops": 50 * looped}
    geometry = {**launch.launch["geometry"], "amd": amd}
    floating = {"fp32": {"fused": passes * 50 * 2**20}}
    counted = {**launch.launch, "geometry": geometry, "instructions": floating}
    radeon = device_named("radeon-pro-w6600")
    moved = term("spills", work_of([replace(launch, launch=counted)]), [radeon, GPU])[0]
    assert moved[0] == pytest.approx(passes * 2 * 100 * 4 * 2**20 / radeon.numbers["bandwidth_bytes_per_s"])
    assert moved[1] < 1e-12


@given(st.lists(st.integers(0, 1 << 30), min_size=13, max_size=13))
def test_a_larger_cache_lets_no_more_bytes_through(counted: list[int]) -> None:
    profile = stream(1 << 16)
    sizes = {"first": 1 << 16, **{str(1 << bits): n for bits, n in zip(range(14, 27), counted, strict=True)}}
    reuse = {"bytes": {line: {str(n): sizes for n in (1, 16, 256)} for line in ("64", "128")}}
    behind = np.asarray(work_of([replace(profile, launch={**profile.launch, "reuse": reuse})]).behind)
    assert (np.diff(behind) <= 0).all()
    assert behind.min() == 1 << 16


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


def test_a_profile_without_sub_groups_is_said_to_be_estimated() -> None:
    bare = replace(stream(1 << 20), launch={})
    work = work_of([bare, stream(1 << 20)])
    assert work.exact.tolist() == [[False], [True]]
    assert np.isfinite(seconds(work, EVERY)).all()


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


def test_doubt_covers_what_it_promises() -> None:
    rng = np.random.default_rng(0)
    shares = np.zeros((4000, len(TERMS)))
    shares[np.arange(4000), np.where(rng.random(4000) < 0.5, 0, TERMS.index("memory"))] = 1.0
    sides = (rng.random(4000) < 0.5).astype(int)
    errors = rng.normal(size=4000) * np.where(shares[:, 0] > 0, 0.5, 0.1) * np.where(sides > 0, 3.0, 1.0)
    doubt = doubt_of(errors, shares, np.ones(4000), sides, 4000)
    inside = np.abs(errors) <= doubt.factor(0.9) * doubt.deviation(shares, sides)
    for of_launch in (True, False):
        for side in (0, 1):
            rows = ((shares[:, 0] > 0) == of_launch) & (sides == side)
            assert inside[rows].mean() == pytest.approx(0.9, abs=0.04)
    # An interval of one more application is wider, the fewer there are.
    few = doubt_of(errors, shares, np.ones(4000), sides, 16)
    assert few.quantile(0.9) == doubt.quantile(0.9)
    assert few.factor(0.9) == few.quantile(0.9 * 17 / 16) > doubt.factor(0.9)
    assert few.quantile(0.96) / few.quantile(0.9) == pytest.approx(2.302 / 1.782, rel=1e-3)


def test_a_cpu_has_no_unit_for_texels() -> None:
    numbers = {"compute_units": 4.0, "clock_hz": 2e9}
    seconds_of = [term("issue", launch_of(20, texels=n), cpu(numbers))[0, 0] for n in (0.0, 1e9)]
    assert seconds_of[1] - seconds_of[0] == pytest.approx(1e9 * 40 / 8e9)
    assert term("issue", launch_of(20, texels=1e9), [GPU]) == term("issue", launch_of(20), [GPU])


DEVICES = [
    Device("ti", vendor="Nvidia", type="gpu", series="Pascal"),
    Device("x", vendor="Nvidia", type="gpu", series="Pascal"),
    Device("k", vendor="Nvidia", type="gpu", series="Kepler"),
    Device("fury", vendor="AMD", type="gpu", series="GCN 3"),
    Device("knl", vendor="Intel", type="accelerator", series="Knights Landing"),
    Device("mystery"),
]
TOGETHER = np.array([0.1, 0.2, 0.4, 0.6])


def device_errors(known: Sequence[float], shared: float = 1.0) -> DeviceErrors:
    """Errors of a kernel, of which the first are known."""
    n = len(DEVICES)
    errors = np.array([[*known, *[np.nan] * (n - len(known))]])
    deviation = np.array([[0.5, 0.5, 0.5, 0.5, 1.0, 1.0]])
    keys = tuple(device.key for device in DEVICES)
    return DeviceErrors(keys, deviation, np.full((1, n), shared), TOGETHER[in_common(DEVICES)], errors)


def test_a_probe_moves_other_devices_by_what_they_have_in_common() -> None:
    assert in_common(DEVICES)[0].tolist() == [3, 3, 2, 1, 0, 0]
    assert in_common(DEVICES)[5].tolist() == [0, 0, 0, 0, 1, 1]
    errors = device_errors([1.0])
    moved, left = errors.conditioned(np.zeros((1, len(DEVICES))))
    np.testing.assert_allclose(moved, [[1.0, 0.6, 0.4, 0.2, 0.2, 0.2]])
    correlation = moved[0, 1:] * 0.5 / errors.deviation[0, 1:]
    np.testing.assert_allclose(left[0, 1:], errors.deviation[0, 1:] * np.sqrt(1 - correlation**2))
    # Of what devices do not share, one says nothing of the others.
    alone, as_before = device_errors([1.0], shared=0.0).conditioned(np.zeros((1, len(DEVICES))))
    assert alone[0].tolist() == [1.0, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(as_before[0, 1:], errors.deviation[0, 1:])


@given(st.lists(st.floats(-2, 2), max_size=len(DEVICES)), st.floats(0, 1))
def test_each_probe_leaves_less_doubt_and_is_its_own_forecast(known: list[float], shared: float) -> None:
    errors = device_errors(known, shared)
    moved, left = errors.conditioned(np.zeros((1, len(DEVICES))))
    np.testing.assert_allclose(moved[0, : len(known)], known, atol=1e-9)
    assert (left <= errors.deviation + 1e-9).all()
    assert (left[0, : len(known)] < 1e-3).all()
    # Between a known time and another is the doubt of that one alone.
    for first, second in itertools.product(range(len(known)), range(len(known), len(DEVICES))):
        chance = errors.probability_faster(0, DEVICES[first].key, DEVICES[second].key, 0.1)
        assert chance == pytest.approx(NormalDist().cdf(-0.1 / left[0, second]), abs=1e-6)


PASSES = """__kernel void own(__global const float *x, __global float *y, int n, int rows, int passes) {
    float sum = 0;
    for (int pass = 0; pass < passes; pass++)
        for (int k = 0; k < rows; k++)
            sum += x[k * n + get_global_id(0)] * pass;
    y[get_global_id(0)] = sum;
}
__kernel void shared(__global const float *x, __global float *y, int n, int rows, int passes) {
    float sum = 0;
    for (int pass = 0; pass < passes; pass++)
        for (int k = 0; k < rows; k++)
            sum += x[k * 32] * pass;
    y[get_global_id(0)] = sum;
}"""


def passes(
    kernel: str, items: int, rows: int, *, group: int = 16, sample: int | Literal["all"] = "all"
) -> Work:
    """Work of a kernel that reads rows four times: each work-item its column, or all of them the same."""
    arrays = [np.ones(max(rows * items, 32 * rows), np.float32), np.ones(items, np.float32)]
    sizes = map(np.int32, (items, rows, 4))
    launch = Launch(Kernel(Program(PASSES.encode()), kernel), (items,), (group,), (*arrays, *sizes))
    return work_of([characterize_launch(launch, options=Options(optimize=True, sample_groups=sample))])


SIZES = np.array([1024.0 * 2**k for k in range(4, 17)])


@pytest.mark.parametrize("more", [1, 2, 4, 8, 16])
def test_more_groups_than_a_profile_knows_need_as_much_cache_as_fewer_of_more_work_items(more: int) -> None:
    """4,096 groups of 16 share a cache as 256 groups of 256 do: each work-item has data of its own."""
    small, large = (
        bytes_behind(passes("own", 1 << 16, 64, group=group), (SIZES, np.full((1, len(SIZES)), together)))[0][
            0
        ]
        for group, together in ((16, 256.0 * more), (16 * more, 256.0))
    )
    assert small[0] > 3 * small[-1] and (np.diff(small) <= 0).all()
    # Sizes between those that the profiles know are interpolated.
    assert (small[1:] <= 1.02 * large[:-1]).all() and (small[:-1] >= 0.98 * large[1:]).all()


def test_more_groups_that_read_the_same_table_need_no_more_cache() -> None:
    of_table = passes("shared", 1 << 13, 1 << 11)
    few, many = (
        bytes_behind(of_table, (SIZES, np.full((1, len(SIZES)), groups)))[0] for groups in (256.0, 4096.0)
    )
    assert few.max() > 3 * few.min()
    np.testing.assert_allclose(few, many)


@pytest.mark.parametrize("sample", [12, 24, 100])
@pytest.mark.parametrize(("kernel", "items", "rows"), [("own", 1 << 16, 64), ("shared", 1 << 13, 1 << 11)])
def test_a_sample_of_few_groups_tells_the_cache_that_more_groups_need(
    kernel: str, items: int, rows: int, sample: int
) -> None:
    """Within a power of two, as caches are known: of groups with data of their own, and of a table of all."""
    sampled, whole = passes(kernel, items, rows, sample=sample), passes(kernel, items, rows)
    assert 0.9 * sample <= sampled.reuse_groups[0] < whole.reuse_groups[0]

    def needed(work: Work, together: float) -> int:
        missed = bytes_behind(work, (SIZES, np.full((1, len(SIZES)), together)))[0][0]
        return int(np.argmax(missed <= np.sqrt(missed.min() * missed.max())))

    for together in (16.0, 256.0, 1024.0):
        assert abs(needed(sampled, together) - needed(whole, together)) <= 1
