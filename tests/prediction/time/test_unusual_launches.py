"""Forecasts of launches that are unlike those of the training data, against what the hardware can do."""

from functools import cache

import numpy as np
import pytest

import crosscast
from crosscast.characterization.run import Options, characterize_launch
from crosscast.device import Device
from crosscast.devices.catalogue import filled
from crosscast.kernel import Argument, Image, Kernel, Launch
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.profile import Profile

GPUS = ("k40c", "gtx1080", "v100-pcie", "rtx4090", "rx7900xtx")
CPUS = ("i7-6700k", "i9-13900k", "epyc-7763")


def profiled(source: str, items: int, *arguments: Argument, local: int = 256) -> Profile:
    launch = Launch(Kernel.from_source(source, "k"), (items,), (local,), arguments)
    return characterize_launch(launch, options=Options(optimize=True))


def forecast(profile: Profile, *devices: str) -> TimeForecast:
    model = crosscast.load_model("launch-times")
    found: TimeForecast = model.predict([profile], devices=[crosscast.device_named(each) for each in devices])
    return found


STEPS = """kernel void k(global float *x, global const int *steps) {
  int i = get_global_id(0); float v = x[i];
  for (int j = 0; j < steps[i]; j++) v = v * 1.0001f + 0.5f;
  x[i] = v;
}"""
LONG = 20_000


@cache
def one_long(items: int) -> Profile:
    steps = np.full(items, 8, np.int32)
    steps[items // 2] = LONG
    return profiled(STEPS, items, np.ones(items, np.float32), steps)


@pytest.mark.parametrize("device", [*GPUS, *CPUS])
def test_a_long_work_item_takes_its_time_once(device: str) -> None:
    few, many = (forecast(one_long(items), device).centre[0, 0] for items in (4096, 65536))
    numbers = crosscast.device_named(device).numbers
    # Of multiply-adds that wait for each other, 4 to 15 clocks, and other instructions of a step.
    assert LONG * 4 / numbers["clock_hz"] / 2 < few < 5e-4 + LONG * 40 / numbers["clock_hz"]
    assert many < 2.5 * few + 6e-5


def test_an_interval_does_not_begin_below_the_peak_of_doubles() -> None:
    source = """kernel void k(global double *x) {
      int i = get_global_id(0); double a = x[i], b = a + 1, c = a + 2, d = a + 3;
      for (int j = 0; j < 256; j++) { a = a * b + c; b = b * c + d; c = c * d + a; d = d * a + b; }
      x[i] = a + b + c + d;
    }"""
    profile = profiled(source, 1 << 16, np.zeros(1 << 16))
    flop = 2 * 4 * 256 * (1 << 16)
    for key in ("v100-pcie", "rtx4090", "i7-6700k", "ryzen-9-7950x"):
        numbers = crosscast.device_named(key).numbers
        peak = numbers.get("peak_fp64_flop_per_s", numbers["peak_flop_per_s"] / 2)
        assert forecast(profile, key).low[0, 0] >= flop / peak / 1.3
    (warnings,) = forecast(profile, "arc-a770", "rtx4090").warnings
    assert any(each.startswith("arc-a770 has no double precision") for each in warnings)
    (warnings,) = forecast(one_long(4096), "arc-a770").warnings
    assert not any("double" in each for each in warnings)


def test_an_interval_does_not_begin_below_the_peak_of_halves() -> None:
    source = """#pragma OPENCL EXTENSION cl_khr_fp16 : enable
    kernel void k(global half2 *x) {
      int i = get_global_id(0); half2 a = x[i], b = a + (half)1, c = a + (half)2, d = a + (half)3;
      for (int j = 0; j < 256; j++) {
        a = fma(a, b, c); b = fma(b, c, d); c = fma(c, d, a); d = fma(d, a, b);
      }
      x[i] = a + b + c + d;
    }"""
    profile = profiled(source, 1 << 20, np.zeros(1 << 21, np.float16))
    flop = 2 * 2 * 4 * 256 * (1 << 20)
    for key in ("rtx4090", "rx6900xt", "v100-sxm2"):
        peak = crosscast.device_named(key).numbers["peak_fp16_flop_per_s"]
        assert forecast(profile, key).low[0, 0] >= flop / peak / 1.3


ALONE = """kernel void k(global float *x, int steps) {
  float a = x[0], b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5, g = a + 6, h = a + 7;
  for (int j = 0; j < steps; j++) {
    a = a * 0.9f + 1; b = b * 0.9f + 1; c = c * 0.9f + 1; d = d * 0.9f + 1;
    e = e * 0.9f + 1; f = f * 0.9f + 1; g = g * 0.9f + 1; h = h * 0.9f + 1;
  }
  x[0] = a + b + c + d + e + f + g + h;
}"""

# Clocks in which one scheduler issues an instruction of a sub-group: its lanes over those of a scheduler.
ISSUE = {"gtx1080": 1, "rtx4090": 1, "v100-pcie": 2, "t4": 2, "a100-pcie-40gb": 2, "mi210": 4, "rx6800xt": 1}


@pytest.mark.parametrize("device", ISSUE)
def test_a_work_item_alone_is_issued_by_one_scheduler(device: str) -> None:
    steps = 20_000
    found = forecast(profiled(ALONE, 1, np.ones(1, np.float32), np.int32(steps), local=1), device)
    numbers = crosscast.device_named(device).numbers
    issued = 8 * steps * ISSUE[device] / numbers["clock_hz"]
    assert issued < found.centre[0, 0] < 4 * issued + 1e-4
    # No work-group is on two units.
    one_unit = numbers["peak_flop_per_s"] / numbers["compute_units"]
    assert found.low[0, 0] >= 2 * 8 * steps / one_unit / 1.3


# Rates at which data sheets say that textures are filled, texels/s.
FILL = {"gtx1080": 257e9, "v100-pcie": 442e9, "rtx3090": 556e9, "rtx4090": 1290e9, "rx7900xtx": 960e9}


def test_images_are_read_at_the_rate_of_texture_units() -> None:
    source = """kernel void k(read_only image2d_t in, sampler_t s, global float4 *out) {
      int x = get_global_id(0) % 512, y = get_global_id(0) / 512; float4 sum = 0;
      for (int j = -3; j <= 3; j++)
        for (int i = -3; i <= 3; i++) sum += read_imagef(in, s, (int2)(x + i, y + j));
      out[get_global_id(0)] = sum;
    }"""
    items = 512 * 512
    image = Image(np.zeros((512, 512, 4), np.uint8), "RGBA", normalized=True)
    profile = profiled(source, items, image, crosscast.Sampler(), np.zeros((items, 4), np.float32))
    for key, rate in FILL.items():
        found = forecast(profile, key)
        assert found.high[0, 0] > 49 * items / rate
        assert found.centre[0, 0] < 3 * (49 * items / rate) + 3e-5


def test_a_local_memory_of_intel_serves_all_engines_of_a_core() -> None:
    source = """kernel void k(global float *x) {
      local float s[4096]; int l = get_local_id(0); s[l * 16] = x[get_global_id(0)]; float v = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int j = 0; j < 256; j++) v += s[((l + j) & 127) * 32];
      x[get_global_id(0)] = v;
    }"""
    items = 1 << 16
    passes = items * 256
    # 32 cores, with a word of each of 32 banks in a clock: all are in one.
    found = forecast(profiled(source, items, np.ones(items, np.float32)), "arc-a770")
    assert found.low[0, 0] < passes / 32 / 2.4e9 + 1e-5 < found.high[0, 0]


def test_a_cpu_without_a_data_sheet_is_like_others_of_its_cores_and_clock() -> None:
    # Peaks by cores, clock and multiply-adds of 256 bits; bandwidths of their memory.
    known = {"ryzen-7-3700x": (922e9, 51e9), "threadripper-3970x": (3789e9, 102e9), "fx-8350": (256e9, 30e9)}
    for key, (peak, bandwidth) in known.items():
        numbers = filled(crosscast.device_named(key)).device.numbers
        assert peak / 1.3 < numbers["peak_flop_per_s"] < 2.1 * peak
        assert bandwidth / 1.6 < numbers["bandwidth_bytes_per_s"] < 1.6 * bandwidth
    # A rate that was measured is no less.
    slow = Device(
        "slow", vendor="AMD", type="cpu", numbers={"cores": 2.0, "clock_hz": 1e9, "compute_units": 2.0}
    )
    fast = Device(slow.key, "", slow.vendor, slow.type, "", slow.numbers, {"fp32_flop_per_s": 1e12})
    assert filled(slow).device.numbers["peak_flop_per_s"] < 1e11
    assert filled(fast).device.numbers["peak_flop_per_s"] >= 1e12


def test_groups_that_hand_on_in_turn_are_warned_of() -> None:
    source = """kernel void k(global float *x, volatile global int *turn) {
      int g = get_group_id(0);
      if (get_local_id(0) == 0) while (atomic_add(turn, 0) < g);
      barrier(CLK_GLOBAL_MEM_FENCE);
      x[get_global_id(0)] += g;
      barrier(CLK_GLOBAL_MEM_FENCE);
      if (get_local_id(0) == 0) atomic_add(turn, 1);
    }"""
    profile = profiled(source, 4096, np.zeros(4096, np.float32), np.zeros(1, np.int32), local=64)
    (warnings,) = forecast(profile, "v100-pcie").warnings
    assert any(each.startswith("work-groups wait for each other") for each in warnings)


def test_a_profile_of_a_recorded_program_counts_its_launches() -> None:
    def recorded(kernel: str, size: str, **about: float) -> Profile:
        profile = one_long(4096)
        launch = {**profile.launch, "recorded": about}
        return Profile(
            **{**vars(profile), "kernel": kernel, "application": "app", "size": size, "launch": launch}
        )

    profiles = [recorded("a", "64/64", launches=100), recorded("b", "8/8", launches=3, stands_for=7.4)]
    batch = ProfileBatch.of(profiles)
    assert batch.invocations.tolist() == [100, 7]
    assert len(set(batch.groups("run").tolist())) == 1
    assert ProfileBatch.of(profiles, invocations=2).invocations.tolist() == [2, 2]
    model = crosscast.load_model("launch-times")
    found = model.predict(profiles, devices=[crosscast.device_named("v100-pcie")])
    (total,) = found.applications().values()
    once = found.centre[0, 0]
    assert total.of_all_launches()[0][0] == pytest.approx(107 * once, rel=0.05)


STEP = """kernel void k(global %s *x, const uint n) {
  int i = get_global_id(0); %s v = x[i];
  for (int j = 0; j < %d; j++) v = %s;
  x[i] = v;
}"""


@cache
def of_steps(step: str, items: int, steps: int, type_: str = "uint") -> Profile:
    numbers = np.random.default_rng(0).integers(1 << 16, 1 << 20, items, dtype=np.uint32)
    values = numbers if type_ == "uint" else numbers.astype(np.float32)
    return profiled(STEP % (type_, type_, steps, step), items, values, np.uint32(1 << 31), local=32)


@pytest.mark.parametrize("device", GPUS)
def test_a_gpu_computes_quotients_of_integers_by_a_reciprocal(device: str) -> None:
    lane_clocks = crosscast.device_named(device).numbers["peak_flop_per_s"] / 2
    by_variable, by_argument, by_constant = (
        forecast(of_steps(step, 1 << 16, 1000), device).centre[0, 0] * lane_clocks / (1000 << 16)
        for step in ("n / (v + 1)", "(v + j) * 3 % n", "(v + j) * 3 % 1000003")
    )
    # An RTX 4070 and an A4000 were measured: 16 to 35 instructions, and about 10 if the reciprocal is there.
    # Kepler issues products at a sixth of the rate, and Volta two instructions a clock.
    assert (14 if device == "v100-pcie" else 15) < by_variable < (170 if device == "k40c" else 120)
    assert 8 < by_argument < 80
    assert by_constant < by_argument < by_variable


# Clocks of a step that waits for the one before, as measured on Volta, and on others with their ratio.
LATENCIES = [
    ("n / (v + 1)", "uint", 60, 200),
    ("exp(-v)", "float", 20, 80),
    ("1 / (v + 0.5f)", "float", 25, 80),
]


@pytest.mark.parametrize(("step", "type_", "least", "most"), LATENCIES)
def test_steps_that_wait_for_each_other_take_their_latency(
    step: str, type_: str, least: float, most: float
) -> None:
    found = forecast(of_steps(step, 32, 20_000, type_), *GPUS).centre[0]
    clocks = [
        seconds / 20_000 * crosscast.device_named(device).numbers["clock_hz"]
        for seconds, device in zip(found, GPUS, strict=True)
    ]
    assert least < clocks[GPUS.index("v100-pcie")] < most
    assert all(least < each < 5 * most for each in clocks)


@pytest.mark.parametrize("type_", ["int", "float"])
def test_atomics_of_local_memory_take_turns_whatever_their_type(type_: str) -> None:
    """All of a work-group's at one address, of which a unit does one a clock."""
    source = f"""__global__ void k({type_} *sums) {{
      __shared__ {type_} sum;
      for (int j = 0; j < 64; j++) atomicAdd(&sum, ({type_})threadIdx.x);
      sums[blockIdx.x] = sum;
    }}"""
    sums = np.zeros(4096, {"int": np.int32, "float": np.float32}[type_])
    launch = Launch.on_grid(Kernel.from_source(source, "k", form="cuda"), 4096, 256, (sums,))
    found = forecast(characterize_launch(launch, options=Options(optimize=True)), "a100-pcie-40gb")
    assert found.low[0, 0] > 0.25 * 4096 * 256 * 64 / (108 * 1.41e9)


def test_compare_exchanges_that_find_a_mark_do_not_wait_for_a_load() -> None:
    """All mark one of 64 words, which the first of each does: as many sums to these take no longer."""
    body = "kernel void k(global int *marks) {{ int i = get_global_id(0); {}; }}"
    marking, adding = (
        forecast(profiled(body.format(statement), 1 << 20, np.zeros(64, np.int32)), *GPUS).centre
        for statement in ("atomic_cmpxchg(&marks[i % 64], 0, 1)", "atomic_add(&marks[i % 64], i)")
    )
    assert (marking < 1.5 * adding).all()


def test_counters_in_lines_of_their_own_are_faster_than_those_of_one_line() -> None:
    source = "kernel void k(global int *n, global const int *x) { atomic_inc(&n[x[get_global_id(0)]]); }"
    chosen = np.random.default_rng(0).integers(0, 32, 1 << 22).astype(np.int32)
    apart, together = (
        forecast(
            profiled(source, len(chosen), np.zeros(1024, np.int32), step * chosen), "v100-pcie", "rtx4090"
        ).centre
        for step in (np.int32(32), np.int32(1))
    )
    assert (3 * apart < together).all()
