"""Verdicts: what bounds a kernel on a device, against cases whose answer is known, and laws of limits."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import crosscast
from crosscast.device import Device
from crosscast.devices.catalogue import catalogue, device_named, device_of
from crosscast.devices.launch_work import LaunchWork
from crosscast.devices.limits import BOUNDS, Bound, latencies, limits
from crosscast.devices.roofline import Verdict, verdict_of, verdicts_of
from crosscast.profile import Profile
from support.examples import examples
from support.refusals import refusal

GPU = device_named("gtx1080")
CPU = device_named("i7-6700k")

SOURCE = """
kernel void add(global const float *a, global const float *b, global float *c)
{ size_t i = get_global_id(0); c[i] = a[i] + b[i]; }

kernel void strided(global const float *a, global float *c, int step)
{ size_t i = get_global_id(0); c[i * step] = a[i * step]; }

kernel void matmul(global const float *a, global const float *b, global float *c, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}

kernel void alone(global float *a, int n)
{ float x = a[0]; for (int i = 0; i < n; i++) x = x * 0.5f + 1; a[get_global_id(0)] = x; }

kernel void chase(global const int *next, int steps)
{ int at = 0; for (int k = 0; k < steps; k++) at = next[at]; ((global int *)next)[0] = at; }

kernel void total(global const float *a, global float *sums, int n)
{
    float sum = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) sum += a[i];
    sums[get_global_id(0)] = sum;
}

kernel void columns(global float *a, int pitch)
{
    local volatile float rows[32 * 33];
    int x = get_local_id(0);
    for (int k = 0; k < 32; k++) rows[x * pitch + k] = k;
    a[get_global_id(0)] = rows[x * pitch];
}

kernel void count(global int *bins, int mask)
{ atomic_inc(&bins[get_global_id(0) & mask]); }

kernel void tally(global int *sum) { atomic_inc(sum); }

kernel void twice(global double *a) { a[get_global_id(0)] *= 2; }

kernel void powers(global double *a) { size_t i = get_global_id(0); a[i] = pow(a[i], 2.7); }
"""


def profile(kernel: str, global_size: int | tuple[int, ...], *args: Any, local: int = 64) -> Profile:
    local_size = local if isinstance(global_size, int) else (8, 8)
    found = crosscast.Kernel.from_source(SOURCE, kernel)
    return crosscast.characterize(found, global_size=global_size, local_size=local_size, args=list(args))


def floats(count: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.ones(count, np.float32)


def far_successors(count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Successor of each element in one random cycle through all."""
    order = np.random.default_rng(0).permutation(count)
    following = np.empty(count, np.int32)
    following[order] = np.roll(order, -1)
    return following


def verdict(made: Profile, device: Device = GPU) -> Verdict:
    (found,) = verdicts_of([made], [device]).verdicts
    return found


@pytest.fixture(scope="module")
def large_add() -> Profile:
    return profile("add", 1 << 20, floats(1 << 20), floats(1 << 20), floats(1 << 20))


@pytest.fixture(scope="module")
def large_matmul() -> Profile:
    return profile("matmul", (256, 256), floats(65536), floats(65536), floats(65536), np.int32(256))


@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
def test_a_large_sum_of_vectors_is_bound_by_memory(large_add: Profile, device: Device) -> None:
    found = verdict(large_add, device)
    assert (found.bound, found.close) == ("memory", ())
    assert found.amounts.flops == 1 << 20
    assert found.amounts.unique_bytes == found.moved_bytes == 12 << 20
    assert found.limits_s["memory"] == pytest.approx((12 << 20) / device.numbers["bandwidth_bytes_per_s"])


@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
def test_a_large_product_of_matrices_is_bound_by_compute(large_matmul: Profile, device: Device) -> None:
    found = verdict(large_matmul, device)
    assert (found.bound, found.close) == ("compute", ())
    assert found.amounts.flops == 2 * 256**3
    assert found.amounts.reuse == pytest.approx(256 * 2 / 3, rel=0.01)
    assert any("addresses" in each for each in found.advice)


def test_a_small_launch_is_bound_by_the_launch() -> None:
    found = verdict(profile("add", 256, floats(256), floats(256), floats(256)))
    assert (found.bound, found.close) == ("launch", ())
    assert any("typical" in each for each in found.notes)
    measured = replace(GPU, numbers={**GPU.numbers, "launch_overhead_s": 1e-3})
    known = verdict_of(found.amounts, measured)
    assert known.limits_s["launch"] == 1e-3
    assert not any("typical" in each for each in known.notes)


def test_one_long_work_item_is_bound_by_latency() -> None:
    found = verdict(profile("alone", 1, floats(1), np.int32(100_000), local=1))
    assert (found.bound, found.close) == ("latency", ())
    assert "instructions of its longest work-item, one after another, take" in found.text
    wide = verdict_of(replace(found.amounts, longest=1.0, path=0.0), GPU)
    assert "1 work-item in 1 work-group do not fill it" in wide.text
    # A thread that has a core of a CPU to itself is as fast as two that share it.
    groups = CPU.numbers["compute_units"]
    seconds = [
        latencies(replace(found.amounts, work_groups=groups / idle), CPU)["idle"] for idle in (4, 2, 1)
    ]
    assert seconds == [pytest.approx(2 * limits(found.amounts, CPU)["compute"]), 0, 0]


def test_lines_of_which_a_part_is_used_are_moved_whole() -> None:
    size, step = 1 << 16, 16
    made = profile("strided", size, floats(size * step), floats(size * step), np.int32(step))
    for device, line in ((CPU, 64), (GPU, 32)):
        # Without a known cache, the written half may stay there.
        numbers = {key: value for key, value in device.numbers.items() if key not in ("l2_bytes", "l3_bytes")}
        small = replace(device, numbers=numbers | {"l2_bytes": 1.0, "l3_bytes": 1.0})
        found = verdict(made, small)
        assert found.line_use == pytest.approx(4 / line, rel=0.05)
        assert found.moved_bytes == pytest.approx(2 * line * size, rel=0.05)
        assert f"of which {100 * found.line_use:.2g} % is used" in found.text
        assert found.advice[0].startswith("neighbouring addresses")
        unknown = verdict(made, replace(device, numbers=numbers))
        assert unknown.moved_bytes == pytest.approx(found.moved_bytes / 2, rel=0.05)
        assert any("of written lines may stay in its cache" in each for each in unknown.notes)


@pytest.mark.parametrize(
    ("device", "step_s"), [(GPU, 300 / GPU.numbers["clock_hz"]), (CPU, 50e-9)], ids=["gpu", "cpu"]
)
def test_loads_that_depend_on_each_other_wait_for_memory(device: Device, step_s: float) -> None:
    count, steps = 1 << 20, 2000
    found = verdict(profile("chase", 1, far_successors(count), np.int32(steps), local=1), device)
    assert found.bound == "latency"
    assert found.limits_s["latency"] == pytest.approx(steps * step_s, rel=0.15)
    assert "2,000 loads that wait for each other take" in found.text
    assert found.advice[0] == "several independent chains of loads in a work-item"
    # Those of one address are hits.
    found = verdict(profile("chase", 1, np.zeros(1 << 20, np.int32), np.int32(20000), local=1))
    assert found.limits_s["latency"] == pytest.approx(20000 * 28 / GPU.numbers["clock_hz"], rel=0.2)
    # So are some of a chain where other loads take most of the lines.
    loads = found.amounts.path_loads
    work = replace(found.amounts, accesses=5 * loads, line_bytes=320 * loads)
    some, all_ = (
        latencies(replace(work, first_bytes=share * 320 * loads), GPU)["chain"] for share in (0.9, 1)
    )
    assert all_ - some == pytest.approx(loads / 2 * (300 - 28) / GPU.numbers["clock_hz"])


def test_few_work_groups_wait_for_their_reads() -> None:
    found = verdict(profile("total", 256, floats(1 << 18), floats(256), np.int32(1 << 18), local=64))
    assert (found.bound, found.waits_for) == ("latency", "reads")
    assert "reads of a work-item, a few at once" in found.text
    assert found.advice[0] == "more work-groups"


def test_one_work_group_has_the_bandwidth_of_one_unit() -> None:
    wide = verdict(profile("add", 1 << 18, *(floats(1 << 18) for _ in range(3)), local=64)).amounts
    found = verdict_of(replace(wide, work_groups=1.0, work_items=1e9), GPU)
    assert found.limits_s["memory"] == pytest.approx((3 << 20) / (64 * GPU.numbers["clock_hz"]))
    assert "the most of 1 compute unit, take" in found.text
    assert found.advice[0] == "more work-groups"


def test_conflicts_in_local_memory_bound() -> None:
    found, padded = (
        verdict(profile("columns", 1 << 16, floats(1 << 16), np.int32(pitch), local=32)) for pitch in (32, 33)
    )
    assert found.bound == "local"
    assert "passes through local memory take" in found.text
    assert found.advice[0].startswith("rows padded")
    assert found.amounts.wavefronts > 20 * padded.amounts.wavefronts
    assert not any("padded" in each for each in padded.advice)


def test_atomics_at_one_address_take_turns() -> None:
    hot, spread = (
        verdict(profile("count", 1 << 19, np.zeros(1024, np.int32), np.int32(mask), local=256))
        for mask in (0, 1023)
    )
    assert hot.bound == "atomics"
    assert hot.limits_s["atomics"] == pytest.approx((1 << 19) / GPU.numbers["clock_hz"])
    assert "atomics that take turns need" in hot.text
    assert spread.limits_s["atomics"] < hot.limits_s["atomics"] / 20
    joined = verdict(profile("tally", 1 << 19, np.zeros(1, np.int32), local=256))
    assert joined.limits_s["atomics"] * GPU.numbers["compute_units"] == pytest.approx(hot.limits_s["atomics"])


def test_atomics_on_real_numbers_at_one_address_take_turns_across_all_units() -> None:
    source = "__global__ void sum(float *x) { atomicAdd(x, (float)threadIdx.x); }"
    kernel = crosscast.Kernel.from_source(source, "sum", form="cuda")
    found = verdict(crosscast.characterize(kernel, 1 << 16, 256, [np.zeros(1, np.float32)]))
    assert found.bound == "atomics"
    assert found.limits_s["atomics"] == pytest.approx((1 << 16) / GPU.numbers["clock_hz"])
    assert "65,536 atomics that take turns need" in found.text


def test_where_the_profile_has_no_counts_widths_are_estimated(large_add: Profile) -> None:
    old = replace(large_add, launch={}, instructions={})
    for device in (GPU, replace(GPU, type="")):
        found = verdict(old, device)
        assert (found.bound, found.amounts.flops) == ("memory", None)
        assert found.amounts.unique_bytes == pytest.approx(12 << 20)
        assert any("no count of floating-point operations" in each for each in found.notes)
    nothing = replace(old, metrics={**old.metrics, "total_instruction_count": 0})
    assert verdict(nothing).limits_s["compute"] == 0
    table = verdicts_of([old, nothing], [GPU, CPU])
    assert table.columns()["device"] == ["gtx1080", "i7-6700k"] * 2
    assert set(table.plain_columns()["bound"]) <= set(BOUNDS)
    lacking = replace(old, metrics={**old.metrics, "total_memory_footprint": None})
    assert "profile of add: expected the metrics " in refusal(verdicts_of, [lacking], [GPU])


@pytest.mark.parametrize(("key", "bound"), [("gtx1080", "compute"), ("mi250x-gcd", "memory")])
def test_double_precision_is_said_and_functions_of_it_take_what_it_takes(key: str, bound: Bound) -> None:
    found = verdict(profile("powers", 1 << 22, np.ones(1 << 22), local=256), device_named(key))
    assert (found.bound, found.amounts.flops) == (bound, 0)
    assert any("no floating-point operations but mathematical functions" in each for each in found.notes)
    cheaper = ("cheaper mathematical functions (native_, half_)", "single precision, where it suffices")
    assert (found.advice[:2] == cheaper) is (bound == "compute")
    assert any("It computes in double precision" in each for each in found.notes) is (bound == "compute")
    amounts = verdict(profile("twice", 64, np.ones(64))).amounts
    assert (amounts.flops, amounts.double_share) == (64, 1)


def test_it_says_that_caches_decide_where_they_do(large_matmul: Profile) -> None:
    found = verdict(large_matmul)
    assert not found.needs_cache, "786 kB fit the second cache"
    larger = replace(
        found.amounts, unique_bytes=1e9, accessed_bytes=1e13, operations=1e13, issued=1e13, work_items=1e9
    )
    assert verdict_of(larger, GPU).needs_cache
    assert any("where caches do not keep it" in each for each in verdict_of(larger, GPU).notes)


@pytest.mark.parametrize("bound", BOUNDS)
def test_each_limit_that_is_close_has_its_time_in_the_sentence(bound: Bound, large_add: Profile) -> None:
    made = verdict(large_add)
    others = [name for name in BOUNDS if name != bound]
    seconds = {bound: 8e-3, **dict(zip(others, (7e-3, 6e-3, 5e-3, 3e-3, 2e-3), strict=True))}
    found = replace(made, limits_s=seconds)
    assert len(found.close) == 3
    assert all(f"about {n} ms" in found.text for n in (8, 7, 6, 5))


@pytest.mark.parametrize("name", ["peak_flop_per_s", "bandwidth_bytes_per_s", "clock_hz"])
def test_siblings_stand_for_a_number_that_a_data_sheet_lacks(large_add: Profile, name: str) -> None:
    numbers = {key: value for key, value in GPU.numbers.items() if key != name}
    found, known = verdict(large_add, replace(GPU, numbers=numbers)), verdict(large_add)
    assert found.bound == known.bound
    assert found.limits_s["memory"] == pytest.approx(known.limits_s["memory"], rel=0.3)
    assert all(verdict_of(known.amounts, each).text for each in map(device_of, catalogue().values()))
    assert any(f"The data sheet lacks {name}: " in each for each in found.notes)
    assert not any("lacks" in each for each in known.notes)


@pytest.mark.parametrize(
    ("key", "share"), [("gtx1080", 32), ("h100-sxm", 2), ("k40c", 3), ("mi210", 2), ("rx7900xtx", 32)]
)
def test_doubles_are_compared_with_the_rate_of_doubles(large_matmul: Profile, key: str, share: float) -> None:
    device = device_named(key)
    amounts = replace(verdict(large_matmul, device).amounts, flops=1e14)
    single, double = (verdict_of(replace(amounts, double_share=each), device) for each in (0.0, 1.0))
    assert double.limits_s["compute"] / single.limits_s["compute"] == pytest.approx(share, rel=0.1)
    assert single.balance / double.balance == pytest.approx(share, rel=0.1)
    # Without the number on the sheet, its architecture's share of the single rate stands for it.
    numbers = {name: value for name, value in device.numbers.items() if name != "peak_fp64_flop_per_s"}
    without = verdict_of(replace(amounts, double_share=1.0), replace(device, numbers=numbers))
    assert without.limits_s["compute"] == pytest.approx(double.limits_s["compute"], rel=0.1)
    packed = verdict_of(replace(amounts, half_share=1.0), device_named("a100-sxm-80gb"))
    assert packed.limits_s["compute"] == pytest.approx(1e14 / (4 * 19.5e12), rel=0.01)


def test_doubles_of_an_unknown_architecture_have_the_measured_share(large_matmul: Profile) -> None:
    numbers = {"compute_units": 8, "clock_hz": 1e9, "peak_flop_per_s": 1e12, "bandwidth_bytes_per_s": 5e10}
    measured = {"fp32_flop_per_s": 8e11, "fp64_flop_per_s": 2e10}
    device = replace(GPU, key="other", series="other", vendor="Other", numbers=numbers, measured=measured)
    amounts = replace(verdict(large_matmul, device).amounts, flops=1e12, double_share=1.0)
    assert verdict_of(amounts, device).limits_s["compute"] == pytest.approx(40, rel=0.01)


amount, share = st.floats(1.0, 1e13), st.floats(0, 1)
AMOUNTS = (
    "operations issued unique_bytes accessed_bytes work_items longest first_bytes line_bytes sector_bytes "
    "written_bytes reads accesses path path_loads wavefronts atomics"
)
amounts = st.builds(
    LaunchWork,
    kernel=st.just("k"),
    instructions=st.just({}) | st.fixed_dictionaries({"fp": share, "alu": share}),
    flops=st.none() | st.floats(0, 1e13),
    work_groups=st.floats(1, 1e6),
    imbalance=st.floats(1, 100),
    barriers=st.floats(0, 100),
    **dict.fromkeys(AMOUNTS.split(), amount),
    **dict.fromkeys(("double_share", "half_share", "branch_entropy"), share),
    **dict.fromkeys(("doubles", "function_elements", "local_bytes"), st.floats(0, 1e12)),
).map(lambda made: replace(made, half_share=made.half_share * (1 - made.double_share)))
devices = st.sampled_from([GPU, CPU, device_named("h100-sxm"), device_named("epyc-9654")])
more = st.floats(1.01, 1e4)


def scaled(device: Device, factor: float, *names: str) -> Device:
    return replace(device, numbers={k: v * factor if k in names else v for k, v in device.numbers.items()})


BOUND_OF = {"bandwidth_bytes_per_s": "memory", "peak_flop_per_s": "compute", "launch_overhead_s": "launch"}


@pytest.mark.parametrize("name", [*BOUND_OF, "clock_hz", "l2_bytes", "l3_bytes"])
@given(amounts, devices, more)
def test_a_better_number_lowers_limits_and_is_no_new_bound(
    name: str, work: LaunchWork, device: Device, factor: float
) -> None:
    bound = BOUND_OF.get(name)
    device = replace(device, numbers={**device.numbers, "launch_overhead_s": 1e-5})
    before = verdict_of(work, device)
    after = verdict_of(work, scaled(device, 1 / factor if bound == "launch" else factor, name))
    assert all(after.limits_s[each] <= before.limits_s[each] * (1 + 1e-9) for each in BOUNDS)
    assert before.bound == bound or after.bound != bound
    assert bound in (None, "compute", before.bound) or after.bound == before.bound


@given(amounts, devices, more)
def test_verdicts_are_sentences_and_more_bytes_stay_with_memory(
    work: LaunchWork, device: Device, factor: float
) -> None:
    found = verdict_of(work, device)
    assert found.limits_s[found.bound] == max(found.limits_s.values())
    assert all(sentence.endswith(".") for sentence in (found.text, *found.notes))
    assert found.advice
    assert found.to_dict()["bound"] == found.bound
    names = ("unique_bytes", "first_bytes", "line_bytes", "sector_bytes", "written_bytes")
    after = verdict_of(replace(work, **{name: getattr(work, name) * factor for name in names}), device)
    assert found.bound != "memory" or after.bound == "memory"


@given(amounts, devices)
def test_the_bytes_of_a_sentence_over_its_bandwidth_are_its_time(work: LaunchWork, device: Device) -> None:
    others = "operations issued doubles flops longest path path_loads reads wavefronts atomics"
    none: dict[str, Any] = dict.fromkeys(others.split(), 0.0)
    found = verdict_of(replace(work, **none, unique_bytes=work.unique_bytes + 1e8), device)
    assume(found.limits_s["memory"] < 60)
    assert found.bound == "memory"
    text = r"memory.*: ([\d.e+]+) (\w?)B.* at ([\d.]+) (\w?)B/s.* take about ([\d.]+) (\w?)s, its"
    figures = re.search(text, found.text)
    assert figures is not None
    scale = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    moved, rate, time_s = (float(figures[i]) * scale[figures[i + 1]] for i in (1, 3, 5))
    assert moved / rate == pytest.approx(time_s, rel=0.02)


@given(st.sampled_from(["add", "strided", "total", "chase"]), *map(st.integers, (6, 5, 1), (17, 8, 32)))
@examples(20, fast=6)
def test_no_forecast_is_below_the_limits_by_more_than_its_doubt(
    kind: str, log_items: int, log_local: int, step: int
) -> None:
    items, local = 1 << log_items, 1 << min(log_local, log_items)
    size = items if kind in ("add", "chase") else items * step
    arguments: dict[str, list[Any]] = {
        "add": [floats(size) for _ in range(3)],
        "strided": [floats(size), floats(size), np.int32(step)],
        "total": [floats(size), floats(items), np.int32(size)],
        "chase": [far_successors(size), np.int32(size)],
    }
    if kind == "chase":
        items = local = 1
    made = profile(kind, items, *arguments[kind], local=local)
    judged = [GPU, device_named("h100-sxm"), CPU, device_named("epyc-9654")]
    forecast = crosscast.predict(made, devices=judged)
    for device, high in zip(judged, forecast.high[0], strict=True):
        assert max(verdict(made, device).limits_s.values()) <= high
