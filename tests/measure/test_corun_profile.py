"""Calibration: images that no cache holds, and levels that come out in order."""

import json
from typing import Any

import pytest

from crosscast.data.fields import TableRow
from crosscast.errors import DeviceFault
from crosscast.measure.corun import profile
from crosscast.measure.corun.profile import (
    ProfiledApplication,
    StressorCalibration,
    calibrate_stressors,
    device_power_w,
    profile_of,
)
from crosscast.measure.corun.run import CoRunSettings, Crew, MixRun
from crosscast.measure.inventory import static_facts
from crosscast.measure.opencl import OpenCLDevice, devices
from crosscast.measure.subjects import Stressor, SuiteProblem
from support.measuring import MadeCrew

MIB = 1 << 20
FACTS: dict[str, Any] = {
    "type": "cpu",
    "compute_units": 2,
    "max_work_group_size": 4096,
    "memory_bytes": 8 << 30,
    "l2_bytes": MIB,
    "l3_bytes": 32 * MIB,
}


def made(crew: MadeCrew, **facts: Any) -> StressorCalibration:
    return calibrate_stressors(crew, "pocl:0", TableRow({**FACTS, **facts}))


def subjects(calibration: StressorCalibration) -> list[Stressor]:
    found = [level.work.subject for level in calibration.levels]
    assert all(isinstance(subject, Stressor) for subject in found)
    return [subject for subject in found if isinstance(subject, Stressor)]


def test_an_image_is_as_large_as_the_largest_cache() -> None:
    found = made(MadeCrew())
    assert (found.image_bytes, found.pool_bytes) == (32 * MIB, 128 * MIB)
    assert [level.name for level in found.levels] == ["low", "medium", "high"]
    assert {subject.parameters["image_bytes"] for subject in subjects(found)} == {32 * MIB}


@pytest.mark.parametrize("told", [None, 4 * MIB])
def test_images_grow_where_a_cache_that_the_driver_does_not_tell_of_holds_them(told: int | None) -> None:
    found = made(MadeCrew(cache_bytes=100 * MIB), l2_bytes=told, l3_bytes=None)
    assert 100 * MIB <= found.pool_bytes < 200 * MIB


def test_images_leave_most_of_the_memory_to_others() -> None:
    found = made(MadeCrew(), memory_bytes=128 * MIB)
    assert 6 * found.image_bytes <= 16 * MIB
    assert found.image_bytes % 64 == 0


def test_a_run_takes_long_enough_to_hide_how_it_is_started() -> None:
    found = made(MadeCrew({"low": 1e-14, "medium": 1e-13, "high": 1e-12}))
    medium = found.levels[1]
    assert medium.work.runs is not None
    assert medium.time_s / medium.work.runs >= 2e-3


def test_a_gpu_gets_work_groups_of_many_work_items() -> None:
    low, *_ = subjects(made(MadeCrew(), type="gpu", compute_units=132, max_work_group_size=1024))
    assert (low.parameters["groups"], low.parameters["items"]) == (8 * 132, 256)


def test_bandwidths_are_those_of_what_is_read_and_written() -> None:
    found = made(MadeCrew())
    low, medium, high = (level.bandwidth_bytes_per_s for level in found.levels)
    assert (low, medium, high) == pytest.approx((1e11, 2e10, 3e10))
    assert found.doubts == []
    assert found.sentence == (
        "stressors on pocl:0: low 100 GB/s, medium 20 GB/s, high 30 GB/s; 4 images of 32 MiB "
        "(no counters of misses here: bandwidths)"
    )


def test_counted_misses_tell_the_order_unless_they_stay_0() -> None:
    counted = {
        name: {"llc_loads": 100.0, "llc_load_misses": misses}
        for name, misses in (("low", 1.0), ("medium", 60.0), ("high", 80.0))
    }
    found = made(MadeCrew(counters=counted))
    assert [level.llc_miss for level in found.levels] == pytest.approx([0.01, 0.6, 0.8])
    assert found.doubts == []
    assert "low 100 GB/s (LLC misses 1 %)" in found.sentence
    assert "no counters" not in found.sentence
    counted["low"]["llc_load_misses"] = 90.0
    (doubt,) = made(MadeCrew(counters=counted)).doubts
    assert "expected more misses from one to the next" in doubt
    none = {name: {"llc_loads": 0.0, "llc_load_misses": 0.0} for name in counted}
    assert [level.llc_miss for level in made(MadeCrew(counters=none)).levels] == [None] * 3


def test_a_stressor_that_fails_is_a_fault_of_the_device() -> None:
    with pytest.raises(DeviceFault, match=r"pocl:0: the stressor medium failed \(out of memory\)"):
        made(MadeCrew(failing={"medium": "out of memory"}))


def test_on_this_machine_the_stressors_run_and_are_checked() -> None:
    device = devices()[0]
    settings = CoRunSettings(round_s=0.005, jobs=1, warmups=1, sensor="none")
    with Crew(device, settings) as crew:
        facts = TableRow({**static_facts(device), "memory_bytes": 60 * MIB})
        found = calibrate_stressors(crew, device.id, facts)
    assert all(level.bandwidth_bytes_per_s > 0 and level.work.runs for level in found.levels)
    assert json.loads(json.dumps(found.to_dict()))["levels"]["low"]["time_s"] == found.levels[0].time_s


CPU = devices()[0]
GPU = OpenCLDevice("gpu:0", "gpu-of-a-test", "gpu", CPU.handle)
KMEANS = SuiteProblem("kmeans", "tiny", {}, 0)
COUNTED = {"kmeans": {"instructions": 300.0, "cycles": 100.0, "branches": 10.0, "branch_misses": 0.0}}


def calibrated(crew: MadeCrew) -> StressorCalibration:
    return calibrate_stressors(crew, CPU.id, static_facts(CPU))


def profiled(crew: MadeCrew, device: OpenCLDevice = CPU, **options: object) -> ProfiledApplication:
    calibration = calibrated(crew)
    crew.mixes.clear()
    return profile_of(("kmeans", "tiny"), KMEANS, device, crew, calibration, **options)  # type: ignore[arg-type]


def test_a_profile_has_the_job_alone_and_what_happens_beside_each_stressor() -> None:
    crew = MadeCrew({"kmeans": 0.01}, presses={"kmeans": 1.2})
    found = profiled(crew)
    isolated_run = found.isolated_run
    assert (isolated_run.name, isolated_run.device, isolated_run.runs, isolated_run.memory_bytes) == (
        "kmeans tiny",
        CPU.key,
        4,
        1000,
    )
    assert isolated_run.time_s == pytest.approx(0.04)
    assert crew.mixes == [("kmeans",), ("kmeans", "low"), ("kmeans", "medium"), ("kmeans", "high")]
    assert isolated_run.features == pytest.approx(
        {
            "cpu_time_s": 0.04,
            "utilisation": min(1.5 / CPU.compute_units, 1.0),
            "slowdown_low": 1.0,
            "slowdown_medium": 1.5,
            "slowdown_high": 2.0,
            "inflicted_low": 1.2,
            "inflicted_medium": 1.2,
            "inflicted_high": 1.2,
            "fairness_low": 1 / 1.2,
            "fairness_medium": 1.2 / 1.5,
            "fairness_high": 1.2 / 2.0,
        }
    )
    assert (isolated_run.power_w, found.notes) == (None, [])


def test_power_is_that_of_the_whole_device_alone_and_beside_others() -> None:
    powers = {"package-0": 30.0, "package-0/core": 20.0, "package-1": 10.0}
    isolated_run = profiled(MadeCrew({"kmeans": 0.01}, powers_w=powers)).isolated_run
    assert isolated_run.power_w == isolated_run.features["cpu_power_w"] == 40.0
    assert isolated_run.features["power_high_w"] == 80.0
    assert device_power_w(MixRun(())) is None


def test_counters_become_features_except_those_that_stay_0() -> None:
    features = profiled(MadeCrew({"kmeans": 0.01}, counters=COUNTED)).isolated_run.features
    assert features["ipc"] == 3.0
    assert not {"branch_miss", "llc_miss", "l1_miss", "dtlb_miss"} & set(features)


def test_shares_of_instructions_are_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "run_job", lambda job, timeout_s: {"mix": {"sse": 0.0, "mem": 0.25}})
    features = profiled(MadeCrew({"kmeans": 0.01}), characterize=True).isolated_run.features
    assert (features["mix_sse"], features["mix_mem"]) == (0.0, 0.25)


def test_on_a_gpu_the_features_of_a_cpu_are_measured_there_for_the_same_runs() -> None:
    cpu = MadeCrew({"kmeans": 0.5}, counters=COUNTED, powers_w={"package-0": 30.0})
    features = profiled(MadeCrew({"kmeans": 0.01}), GPU, on_cpu=(CPU, cpu)).isolated_run.features
    assert (features["cpu_time_s"], features["cpu_power_w"], features["ipc"]) == (2.0, 30.0, 3.0)
    assert "utilisation" not in features
    assert cpu.mixes == [("kmeans",)]


def test_on_a_gpu_without_a_cpu_or_where_it_fails_there_these_are_left_out() -> None:
    found = profiled(MadeCrew({"kmeans": 0.01}), GPU)
    assert "cpu_time_s" not in found.isolated_run.features
    cpu = MadeCrew(failing={"kmeans": "it crashed"})
    found = profiled(MadeCrew({"kmeans": 0.01}), GPU, on_cpu=(CPU, cpu))
    assert "cpu_time_s" not in found.isolated_run.features
    assert found.notes == [f"on {CPU.id}: it crashed"]


def test_an_application_that_fails_alone_has_no_profile() -> None:
    crew = MadeCrew(failing={"kmeans": "kmeans tiny: was killed by SIGSEGV"})
    with pytest.raises(DeviceFault, match="kmeans tiny: was killed by SIGSEGV"):
        profiled(crew)


def test_beside_a_stressor_that_fails_the_rest_is_kept() -> None:
    crew = MadeCrew({"kmeans": 0.01})
    calibration = calibrated(crew)
    crew.failing["medium"] = "out of memory"
    found = profile_of(("kmeans", "tiny"), KMEANS, CPU, crew, calibration)
    assert found.notes == ["beside the stressor medium: out of memory"]
    assert {"fairness_low", "fairness_high"} <= set(found.isolated_run.features)
    assert "fairness_medium" not in found.isolated_run.features


def test_a_time_that_is_clearly_shorter_beside_a_stressor_is_doubted() -> None:
    found = profiled(MadeCrew({"kmeans": 0.01}, presses={"low": 0.71, "medium": 0.95}))
    (note,) = found.notes
    assert note.startswith("0.71 times as long beside the stressor low as alone: something disturbed the")


def test_without_stressors_only_the_run_alone_is_measured() -> None:
    crew = MadeCrew({"kmeans": 0.01})
    found = profile_of(("kmeans", "tiny"), KMEANS, CPU, crew, None)
    assert crew.mixes == [("kmeans",)]
    assert set(found.isolated_run.features) == {"cpu_time_s", "utilisation"}
