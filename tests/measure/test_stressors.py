"""Microbenchmarks as processes without OpenCL, by call and by command."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cli import main
from crosscast.errors import CheckFailed, InputError
from crosscast.kernel import Program
from crosscast.measure.opencl import OpenCLQueue, devices
from crosscast.measure.stressors import LEVELS, VGA_BYTES, HostQueue, ImageReader, host_run
from crosscast.suite.registry import names
from support.refusals import refusals

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize("level", LEVELS)
def test_it_runs_once_at_least_after_it_said_that_it_is_ready(level: str) -> None:
    said: list[str] = []
    found = host_run(level, 6400, 0.0, lambda: said.append("ready"))
    assert (found.level, found.runs, said) == (level, 1, ["ready"])
    assert found.bandwidth_bytes_per_s > 0


@refusals("level nbytes seconds message")
def test_wrong_input_is_refused(level: str, nbytes: int, seconds: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        host_run(level, nbytes, seconds)


def test_the_command_says_when_it_is_ready_and_what_it_moved(capfd: Output) -> None:
    assert main(["measure", "stressor", "medium", "--seconds", "0", "--image", "64K", "--json"]) == 0
    output = capfd.readouterr()
    found = json.loads(output.out)
    assert (found["level"], found["runs"], found["image_bytes"]) == ("medium", 1, 65536)
    assert output.err == "ready\n"


def test_the_command_refuses_what_it_cannot_be(capfd: Output) -> None:
    assert main(["measure", "stressor", "none"]) == 2
    assert "LEVEL: expected one of low, medium, high, found 'none'" in capfd.readouterr().err
    assert main(["measure", "stressor", "low", "--seconds", "-3"]) == 2
    assert "--seconds: expected a number of seconds" in capfd.readouterr().err


def test_it_needs_no_opencl() -> None:
    code = (
        "import sys; sys.modules['pyopencl'] = None\n"
        "from crosscast.cli import main\n"
        "sys.exit(main(['measure', 'stressor', 'low', '--seconds', '0', '--image', '64K']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("low: ")


SMALL = {"image_bytes": 640, "images": 3, "passes": 1, "groups": 2, "items": 4}


def opencl_queue(made: ImageReader) -> OpenCLQueue:
    return OpenCLQueue(devices()[0], Program.from_file(made.source_path()), made.arrays)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("images", "passes"), [(3, 2), (4, 1)])
def test_kernels_compute_what_numpy_does(level: str, images: int, passes: int) -> None:
    made = LEVELS[level]({**SMALL, "images": images, "passes": passes}, 0)
    queue = opencl_queue(made)
    for _ in range(2):
        queue.timed(made.run)
        made.check()


@given(
    level=st.sampled_from(sorted(LEVELS)),
    vectors=st.integers(1, 40),
    images=st.integers(1, 5),
    passes=st.integers(1, 3),
    groups=st.integers(1, 5),
    items=st.integers(1, 5),
)
def test_processes_without_opencl_compute_the_same(
    level: str, vectors: int, images: int, passes: int, groups: int, items: int
) -> None:
    extents = {"image_bytes": 64 * vectors, "images": images, "passes": passes}
    made = LEVELS[level]({**extents, "groups": groups, "items": items}, 0)
    queue = HostQueue()
    for _ in range(2):
        made.run(queue)
        made.check()


@pytest.mark.parametrize("level", LEVELS)
def test_images_are_made_again_where_their_buffers_were_overwritten(level: str) -> None:
    made = LEVELS[level](SMALL, 0)
    queue = opencl_queue(made)
    queue.timed(made.run)
    queue.spoil()
    queue.timed(made.run)
    made.check()


@pytest.mark.parametrize("level", LEVELS)
def test_images_are_made_on_each_queue_though_memory_given_back_says_that_they_are(level: str) -> None:
    for _ in range(5):
        made = LEVELS[level](SMALL, 0)
        opencl_queue(made).timed(made.run)
        made.check()


@pytest.mark.parametrize("level", LEVELS)
def test_a_pixel_that_was_not_added_fails_the_check(level: str) -> None:
    made = LEVELS[level](SMALL, 0)
    made.run(HostQueue())
    made.check()
    result = made.arrays[-1]
    result[-1] += np.uint32(1)
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


@pytest.mark.parametrize("level", LEVELS)
def test_extents_that_fit_leave_room_for_the_arrays(level: str) -> None:
    extents = LEVELS[level].fit(10_000_000)
    assert 4 * extents["image_bytes"] < LEVELS[level](extents, 0).nbytes or level == "low"
    assert LEVELS[level](extents, 0).nbytes <= 10_000_000


def test_the_suite_does_not_name_them() -> None:
    assert not set(LEVELS) & set(names())
    assert all(kind.source_path() == Path(kind.folder() / "stressors.cl") for kind in LEVELS.values())
