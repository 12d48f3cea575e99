"""Profiles: features of an application alone, and beside each microbenchmark."""

import pytest
from made_crew import MadeCrew

from crosscast.errors import DeviceFault
from crosscast.measure.corun.profile import Calibration, Profiled, calibrate, device_power_w, profile_of
from crosscast.measure.corun.session import BagRun
from crosscast.measure.opencl import OpenCLDevice, devices, static_facts
from crosscast.measure.subjects import SuiteProblem

CPU = devices()[0]
GPU = OpenCLDevice("gpu:0", "gpu-of-a-test", "gpu", CPU.handle)
KMEANS = SuiteProblem("kmeans", "tiny", {}, 0)
COUNTED = {"kmeans": {"instructions": 300.0, "cycles": 100.0, "branches": 10.0, "branch_misses": 0.0}}


def calibrated(crew: MadeCrew) -> Calibration:
    return calibrate(crew, CPU.id, static_facts(CPU))


def profiled(crew: MadeCrew, device: OpenCLDevice = CPU, **options: object) -> Profiled:
    calibration = calibrated(crew)
    crew.bags.clear()
    return profile_of(("kmeans", "tiny"), KMEANS, device, crew, calibration, **options)  # type: ignore[arg-type]


def test_a_profile_has_the_job_alone_and_what_happens_beside_each_microbenchmark() -> None:
    crew = MadeCrew({"kmeans": 0.01}, presses={"kmeans": 1.2})
    found = profiled(crew)
    solo = found.solo
    assert (solo.name, solo.device, solo.runs, solo.memory_bytes) == ("kmeans tiny", CPU.key, 4, 1000)
    assert solo.time_s == pytest.approx(0.04)
    assert crew.bags == [("kmeans",), ("kmeans", "low"), ("kmeans", "medium"), ("kmeans", "high")]
    assert solo.features == pytest.approx(
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
    assert (solo.power_w, found.notes) == (None, [])


def test_power_is_that_of_the_whole_device_alone_and_beside_others() -> None:
    powers = {"package-0": 30.0, "package-0/core": 20.0, "package-1": 10.0}
    solo = profiled(MadeCrew({"kmeans": 0.01}, powers_w=powers)).solo
    assert solo.power_w == solo.features["cpu_power_w"] == 40.0
    assert solo.features["power_high_w"] == 80.0
    assert device_power_w(BagRun(())) is None


def test_counters_become_features_except_those_that_stay_0() -> None:
    features = profiled(MadeCrew({"kmeans": 0.01}, counters=COUNTED)).solo.features
    assert features["ipc"] == 3.0
    assert not {"branch_miss", "llc_miss", "l1_miss", "dtlb_miss"} & set(features)


def test_shares_of_instructions_are_features() -> None:
    features = profiled(MadeCrew({"kmeans": 0.01}), mix={"sse": 0.0, "mem": 0.25}).solo.features
    assert (features["mix_sse"], features["mix_mem"]) == (0.0, 0.25)


def test_on_a_gpu_the_features_of_a_cpu_are_measured_there_for_the_same_runs() -> None:
    cpu = MadeCrew({"kmeans": 0.5}, counters=COUNTED, powers_w={"package-0": 30.0})
    features = profiled(MadeCrew({"kmeans": 0.01}), GPU, on_cpu=(CPU, cpu)).solo.features
    assert (features["cpu_time_s"], features["cpu_power_w"], features["ipc"]) == (2.0, 30.0, 3.0)
    assert "utilisation" not in features
    assert cpu.bags == [("kmeans",)]


def test_on_a_gpu_without_a_cpu_or_where_it_fails_there_these_are_left_out() -> None:
    found = profiled(MadeCrew({"kmeans": 0.01}), GPU)
    assert "cpu_time_s" not in found.solo.features
    cpu = MadeCrew(failing={"kmeans": "it crashed"})
    found = profiled(MadeCrew({"kmeans": 0.01}), GPU, on_cpu=(CPU, cpu))
    assert "cpu_time_s" not in found.solo.features
    assert found.notes == [f"on {CPU.id}: it crashed"]


def test_an_application_that_fails_alone_has_no_profile() -> None:
    crew = MadeCrew(failing={"kmeans": "kmeans tiny: was killed by SIGSEGV"})
    with pytest.raises(DeviceFault, match="kmeans tiny: was killed by SIGSEGV"):
        profiled(crew)


def test_beside_a_microbenchmark_that_fails_the_rest_is_kept() -> None:
    crew = MadeCrew({"kmeans": 0.01})
    calibration = calibrated(crew)
    crew.failing["medium"] = "out of memory"
    found = profile_of(("kmeans", "tiny"), KMEANS, CPU, crew, calibration)
    assert found.notes == ["beside the microbenchmark medium: out of memory"]
    assert {"fairness_low", "fairness_high"} <= set(found.solo.features)
    assert "fairness_medium" not in found.solo.features


def test_without_microbenchmarks_only_the_run_alone_is_measured() -> None:
    crew = MadeCrew({"kmeans": 0.01})
    found = profile_of(("kmeans", "tiny"), KMEANS, CPU, crew, None)
    assert crew.bags == [("kmeans",)]
    assert set(found.solo.features) == {"cpu_time_s", "utilisation"}
