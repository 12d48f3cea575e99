"""Stressors: kernels that read images, levels that come out in order, and profiles beside them."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.fields import TableRow
from crosscast.errors import CheckFailed, DeviceFault, InputError
from crosscast.kernel import Program
from crosscast.measure.corun import JobWork, MixRun, profile
from crosscast.measure.inventory import static_facts
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, devices
from crosscast.measure.stressors import LEVELS, VGA_BYTES, HostQueue, host_run
from crosscast.measure.subjects import Stressor, SuiteProblem
from support.measuring import MadeCrew
from support.refusals import refusals

MIB = 1 << 20
FACTS: dict[str, Any] = {
    "type": "cpu",
    "compute_units": 2,
    "max_work_group_size": 4096,
    "memory_bytes": 8 << 30,
    "l2_bytes": MIB,
    "l3_bytes": 32 * MIB,
}


def made(crew: MadeCrew, **facts: Any) -> profile.StressorCalibration:
    return profile.calibrate_stressors(crew, "pocl:0", TableRow({**FACTS, **facts}))


def test_bandwidths_are_those_of_images_as_large_as_the_largest_cache() -> None:
    found = made(MadeCrew())
    assert (found.image_bytes, found.pool_bytes) == (32 * MIB, 128 * MIB)
    assert [level.name for level in found.levels] == ["low", "medium", "high"]
    bandwidths = [level.bandwidth_bytes_per_s for level in found.levels]
    assert bandwidths == pytest.approx([1e11, 2e10, 3e10])
    assert found.doubts == []
    assert found.sentence == (
        "stressors on pocl:0: low 100 GB/s, medium 20 GB/s, high 30 GB/s; 4 images of 32 MiB "
        "(no counters of misses here: bandwidths)"
    )
    (doubt,) = made(MadeCrew({"low": 5.0e-10})).doubts
    assert "expected slower reading of images" in doubt


@pytest.mark.parametrize("told", [None, 4 * MIB])
def test_stressors_fit_the_device(told: int | None) -> None:
    # Images grow where a cache that the driver does not tell of holds them.
    found = made(MadeCrew(cache_bytes=100 * MIB), l2_bytes=told, l3_bytes=None)
    assert 100 * MIB <= found.pool_bytes < 200 * MIB
    # They leave most of the memory to others, and runs hide how they are started.
    found = made(MadeCrew({"low": 1e-14, "medium": 1e-13, "high": 1e-12}), memory_bytes=128 * MIB)
    assert 6 * found.image_bytes <= 16 * MIB
    assert found.image_bytes % 64 == 0
    medium = found.levels[1]
    assert medium.time_s >= 2e-3 * (medium.work.runs or 1e9)
    # A GPU gets work-groups of many work-items.
    found = made(MadeCrew(), type="gpu", compute_units=132, max_work_group_size=1024)
    low = found.levels[0].work.subject
    assert isinstance(low, Stressor)
    assert (low.parameters["groups"], low.parameters["items"]) == (8 * 132, 256)


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


CPU = devices()[0]
GPU = OpenCLDevice("gpu:0", "gpu-of-a-test", "gpu", CPU.handle)
KMEANS = SuiteProblem("kmeans", "tiny", {}, 0)
COUNTED = {"kmeans": {"instructions": 300.0, "cycles": 100.0, "branches": 10.0, "branch_misses": 0.0}}


def profiled(
    crew: MadeCrew,
    device: OpenCLDevice = CPU,
    failing: Mapping[str, str] = MappingProxyType({}),
    **options: object,
) -> profile.ProfiledApplication:
    calibration = profile.calibrate_stressors(crew, CPU.id, static_facts(CPU))
    crew.mixes.clear()
    crew.failing.update(failing)
    return profile.profile_of(("kmeans", "tiny"), KMEANS, device, crew, calibration, **options)  # type: ignore[arg-type]


def test_a_profile_has_the_job_alone_and_what_happens_beside_each_stressor() -> None:
    crew = MadeCrew({"kmeans": 0.01}, presses={"kmeans": 1.2})
    found = profiled(crew)
    alone = found.isolated_run
    assert (alone.name, alone.device, alone.runs, alone.memory_bytes) == ("kmeans tiny", CPU.key, 4, 1000)
    assert alone.time_s == pytest.approx(0.04)
    assert crew.mixes == [("kmeans",), ("kmeans", "low"), ("kmeans", "medium"), ("kmeans", "high")]
    expected = {"cpu_time_s": 0.04, "utilisation": min(1.5 / CPU.compute_units, 1.0)}
    for level, slowdown in (("low", 1.0), ("medium", 1.5), ("high", 2.0)):
        expected |= {f"slowdown_{level}": slowdown, f"inflicted_{level}": 1.2}
        expected[f"fairness_{level}"] = min(1.2, slowdown) / max(1.2, slowdown)
    assert alone.features == pytest.approx(expected)
    assert (alone.power_w, found.notes) == (None, [])
    found = profile.profile_of(("kmeans", "tiny"), KMEANS, CPU, crew, None)
    assert crew.mixes[4:] == [("kmeans",)]
    assert set(found.isolated_run.features) == {"cpu_time_s", "utilisation"}


def test_power_is_that_of_the_whole_device_alone_and_beside_others() -> None:
    powers = {"package-0": 30.0, "package-0/core": 20.0, "package-1": 10.0}
    isolated_run = profiled(MadeCrew({"kmeans": 0.01}, powers_w=powers)).isolated_run
    assert isolated_run.power_w == isolated_run.features["cpu_power_w"] == 40.0
    assert isolated_run.features["power_high_w"] == 80.0
    assert profile.device_power_w(MixRun(())) is None


def test_counters_and_shares_of_instructions_become_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "run_job", lambda job, timeout_s: {"mix": {"sse": 0.0, "mem": 0.25}})
    crew = MadeCrew({"kmeans": 0.01}, counters=COUNTED)
    features = profiled(crew, characterize=True).isolated_run.features
    assert (features["ipc"], features["mix_sse"], features["mix_mem"]) == (3.0, 0.0, 0.25)
    # Those that stay 0 do not.
    assert not {"branch_miss", "llc_miss", "l1_miss", "dtlb_miss"} & set(features)


def test_on_a_gpu_the_features_of_a_cpu_are_measured_there_for_the_same_runs() -> None:
    class Longer(MadeCrew):
        """A CPU on which a job has twice the runs, as it is that much faster."""

        def run(self, works: Sequence[JobWork], /) -> MixRun:
            return super().run([replace(work, runs=8) for work in works])

    cpu: MadeCrew = Longer({"kmeans": 0.5}, counters=COUNTED, powers_w={"package-0": 30.0})
    features = profiled(MadeCrew({"kmeans": 0.01}), GPU, on_cpu=(CPU, cpu)).isolated_run.features
    assert (features["cpu_time_s"], features["cpu_power_w"], features["ipc"]) == (2.0, 30.0, 3.0)
    assert "utilisation" not in features
    assert cpu.mixes == [("kmeans",)]
    cpu = MadeCrew(failing={"kmeans": "it crashed"})
    found = profiled(MadeCrew({"kmeans": 0.01}), GPU, on_cpu=(CPU, cpu))
    assert "cpu_time_s" not in found.isolated_run.features
    assert found.notes == [f"on {CPU.id}: it crashed"]


def test_beside_a_stressor_that_fails_the_rest_is_kept() -> None:
    crew = MadeCrew({"kmeans": 0.01})
    found = profiled(crew, failing={"medium": "out of memory"})
    assert found.notes == ["beside the stressor medium: out of memory"]
    assert {"fairness_low", "fairness_high"} <= set(found.isolated_run.features)
    assert "fairness_medium" not in found.isolated_run.features
    # One that fails alone is a fault of the device.
    with pytest.raises(DeviceFault, match=r"pocl:0: the stressor medium failed \(out of memory\)"):
        made(crew)


def test_a_time_that_is_clearly_shorter_beside_a_stressor_is_doubted() -> None:
    found = profiled(MadeCrew({"kmeans": 0.01}, presses={"low": 0.71, "medium": 0.95}))
    (note,) = found.notes
    assert note.startswith("0.71 times as long beside the stressor low as alone: something disturbed the")


@refusals("level nbytes seconds message")
def test_wrong_input_is_refused(level: str, nbytes: int, seconds: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        host_run(level, nbytes, seconds)


def test_the_command_says_when_it_is_ready_and_what_it_moved_and_needs_no_opencl() -> None:
    code = (
        "import sys; sys.modules['pyopencl'] = None\n"
        "from crosscast.cli import main\n"
        "words = ['measure', 'stressor', 'medium', '--seconds', '0', '--image', '64K']\n"
        "sys.exit(main(words) or main([*words, '--json']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "ready\nready\n")
    line, _, answer = done.stdout.partition("\n")
    assert line.startswith("medium: ")
    found = json.loads(answer)
    assert (found["level"], found["runs"], found["image_bytes"]) == ("medium", 1, 65536)


SMALL = {"image_bytes": 640, "images": 3, "passes": 1, "groups": 2, "items": 4}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("images", "passes"), [(3, 2), (4, 1)])
def test_kernels_compute_what_numpy_does_on_each_queue_and_with_buffers_overwritten(
    level: str, images: int, passes: int
) -> None:
    # Memory given back may still hold what says that images are made.
    for _ in range(3):
        made = LEVELS[level]({**SMALL, "images": images, "passes": passes}, 0)
        queue = OpenCLQueue(devices()[0], Program.from_file(made.source_path()), made.arrays)
        for _ in range(2):
            queue.timed(made.run)
            made.check()
    queue.spoil()
    queue.timed(made.run)
    made.check()


@given(st.sampled_from(sorted(LEVELS)), st.integers(1, 40), *[st.integers(1, 5)] * 4)
def test_without_opencl_it_is_the_same(
    level: str, vectors: int, images: int, passes: int, groups: int, items: int
) -> None:
    extents = {"image_bytes": 64 * vectors, "images": images, "passes": passes}
    made = LEVELS[level]({**extents, "groups": groups, "items": items}, 0)
    queue = HostQueue()
    for _ in range(2):
        made.run(queue)
        made.check()


@pytest.mark.parametrize("level", LEVELS)
def test_a_pixel_that_was_not_added_fails_the_check(level: str) -> None:
    made = LEVELS[level](SMALL, 0)
    made.run(HostQueue())
    made.arrays[-1][-1] += np.uint32(1)
    with pytest.raises(CheckFailed, match="sum of the"):
        made.check()


def test_low_reads_one_vga_image_as_often_as_it_takes_to_read_what_medium_reads() -> None:
    extents = {**SMALL, "image_bytes": VGA_BYTES * 5, "images": 4, "passes": 3}
    low, medium, high = (kind(extents, 0) for kind in LEVELS.values())
    assert (low.image_bytes, low.images, low.iterations) == (VGA_BYTES, 1, 60)
    assert low.moved_bytes == medium.moved_bytes == 60 * VGA_BYTES
    # Of the image and one array that are read, and of another that is written.
    assert high.moved_bytes == 3 * medium.moved_bytes
    assert low.nbytes < medium.nbytes < high.nbytes
    for kind in LEVELS.values():
        extents = kind.fit(10_000_000)
        assert 4 * extents["image_bytes"] < kind(extents, 0).nbytes <= 10_000_000 or kind.name == "low"
