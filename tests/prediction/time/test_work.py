"""The work of a launch from its profile, and the bytes behind caches that groups share."""

import math
from dataclasses import replace
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
from crosscast.prediction.time.counts import work_of
from crosscast.prediction.time.terms import TERMS, joined, terms
from crosscast.prediction.time.work import Work, bytes_behind
from support.streams import stream

GPU = device_named("gtx1080")
SIZES = np.array([1024.0 * 2**k for k in range(4, 17)])


def term(name: str, work: Work, devices: list[Device]) -> Any:
    """Seconds of a term, of each launch on each device."""
    return terms(work, sheets_of(devices))[..., TERMS.index(name)]


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


def test_loads_on_several_chains_of_a_block_leave_no_instructions_to_wait_for() -> None:
    copy = stream(1 << 22)
    chains = {"block_instructions": 3, "block_loads": {"global": 2, "constant": 2}}
    path = {"instructions": 3, "loads": {"global": 2}, **chains}
    assert work_of([replace(copy, launch={**copy.launch, "path": path})]).block_path[0] == 0


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


@pytest.mark.parametrize(("uniform", "operands"), [(50, 1000), (46, 1000), (10, 0)])
def test_constants_at_addresses_that_neighbours_share_are_operands(uniform: int, operands: int) -> None:
    """Of pairs of neighbours, so many of a hundred access one address; half of the loads are constant."""
    patterns = {"uniform": uniform, "contiguous": 100 - uniform, "strided": 0, "irregular": 0}
    loads = {"loads": {"constant": {"4": 1000}, "global": {"4": 900}}, "stores": {"global": {"4": 100}}}
    launch = {**stream(1 << 12).launch, "access_patterns": patterns, "instructions": loads}
    assert work_of([replace(stream(1 << 12), launch=launch)]).operands == operands


def test_a_copy_of_which_only_metrics_are_known_is_estimated_as_it_would_be_counted() -> None:
    copy = stream(1 << 20)
    copy = replace(copy, metrics={**copy.metrics, "total_memory_footprint": 3 << 19})  # Half in place
    work = work_of([replace(copy, launch={}), copy])
    assert work.exact.tolist() == [[False], [True]]
    alike = ("items", "groups", "accesses", "sectors", "lines", "requested", "written", "updated", "distinct")
    for name in (*alike, "behind", "item_accesses", "longest", "mean_longest", "vectorizable"):
        estimated, counted = getattr(work, name)
        np.testing.assert_allclose(estimated, counted, err_msg=name)
    every = sheets_of([device_named(key) for key in catalogue()])
    assert np.isfinite(joined(terms(work, every))[0]).all()


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


def test_what_is_only_read_is_cached_by_all_units() -> None:
    """Through `restrict` pointers; Pascal's units cache nothing else of global memory."""
    launch, devices = passes("own", 1 << 16, 16), [GPU, device_named("v100-pcie")]
    none, half, whole = (
        term("l2", replace(launch, read_only=np.full((1, 1), share)), devices)[0] for share in (0.0, 0.5, 1.0)
    )
    assert none[0] > 2 * whole[0] and half[0] == pytest.approx((none[0] + whole[0]) / 2)
    assert none[1] == half[1] == whole[1]


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
