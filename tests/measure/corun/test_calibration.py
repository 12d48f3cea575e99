"""Calibration: images that no cache holds, and levels that come out in order."""

from typing import Any

import pytest
from made_crew import MadeCrew

from crosscast.errors import DeviceFault
from crosscast.measure.corun.crew import Crew
from crosscast.measure.corun.profile import Calibration, calibrate
from crosscast.measure.corun.session import CoRunSettings
from crosscast.measure.opencl import devices, static_facts
from crosscast.measure.subjects import Microbenchmark

MIB = 1 << 20
FACTS: dict[str, Any] = {
    "type": "cpu",
    "compute_units": 2,
    "max_work_group_size": 4096,
    "memory_bytes": 8 << 30,
    "l2_bytes": MIB,
    "l3_bytes": 32 * MIB,
}


def made(crew: MadeCrew, **facts: Any) -> Calibration:
    return calibrate(crew, "pocl:0", {**FACTS, **facts})


def subjects(calibration: Calibration) -> list[Microbenchmark]:
    found = [level.work.subject for level in calibration.levels]
    assert all(isinstance(subject, Microbenchmark) for subject in found)
    return [subject for subject in found if isinstance(subject, Microbenchmark)]


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
        "microbenchmarks on pocl:0: low 100 GB/s, medium 20 GB/s, high 30 GB/s; 4 images of 32 MiB "
        "(no counters of misses here: bandwidths)"
    )


def test_levels_out_of_order_are_doubted() -> None:
    (doubt,) = made(MadeCrew({"low": 1e-10, "medium": 5e-11})).doubts
    assert doubt.startswith(
        "microbenchmarks on pocl:0: expected slower reading of images from one to the next"
    )


def test_counted_misses_tell_the_order_where_they_are_there() -> None:
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


def test_counters_that_stay_0_are_none() -> None:
    counted = {name: {"llc_loads": 0.0, "llc_load_misses": 0.0} for name in ("low", "medium", "high")}
    assert [level.llc_miss for level in made(MadeCrew(counters=counted)).levels] == [None] * 3


def test_a_microbenchmark_that_fails_is_a_fault_of_the_device() -> None:
    with pytest.raises(DeviceFault, match=r"pocl:0: the microbenchmark medium failed \(out of memory\)"):
        made(MadeCrew(failing={"medium": "out of memory"}))


def test_on_this_machine_the_microbenchmarks_run_and_are_checked() -> None:
    device = devices()[0]
    settings = CoRunSettings(round_s=0.005, window_s=0.01, jobs=1, rounds=1, warmups=1, sensor="none")
    with Crew(device, settings) as crew:
        found = calibrate(crew, device.id, {**static_facts(device), "memory_bytes": 200 * MIB})
    assert all(level.bandwidth_bytes_per_s > 0 and level.work.runs for level in found.levels)
    assert found.to_dict()["levels"]["low"]["time_s"] == found.levels[0].time_s
