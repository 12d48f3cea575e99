"""Instruction mixes are counted in a process of their own, of applications and launch files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.characterization.instruction_mix import CLASSES
from crosscast.errors import CheckFailed, InputError
from crosscast.measure.processes import MixJob, read_job, render_job, run_job
from crosscast.measure.subjects import LaunchFile, SuiteProblem, mix_here

LAUNCHES = """
source = "k.cl"
kernel = "k"
global = 64
local = 64
[[arg]]
name = "a"
type = "int"
length = 64
fill = "arange"
"""


@pytest.fixture
def launch_file(tmp_path: Path) -> LaunchFile:
    (tmp_path / "k.cl").write_text("kernel void k(global int *a) { a[get_global_id(0)] *= 3; }")
    (tmp_path / "k.toml").write_text(LAUNCHES)
    return LaunchFile(str(tmp_path / "k.toml"))


def test_the_mix_of_an_application_comes_from_a_process_of_its_own(
    make_application: Callable[..., Path],
) -> None:
    problem = SuiteProblem(str(make_application()), "tiny", {"items": 1024}, 0)
    job = MixJob(problem, 60.0)
    assert read_job(render_job(job)) == job
    mix = run_job(job, 120.0)["mix"]
    assert tuple(mix) == CLASSES
    assert mix == mix_here(problem, 60.0)
    assert mix["mem"] > 0
    assert sum(mix.values()) <= 1


def test_launch_files_have_one_too(launch_file: LaunchFile) -> None:
    assert MixJob(launch_file, 1.0).label == launch_file.path
    mix = mix_here(launch_file, 60.0)
    # Of a work-item: its number, an address, a load, a multiplication, a store, and the return.
    assert mix["shift"] == mix["control"] == mix["mem"] / 2 > 0


def test_a_wrong_result_has_no_mix(make_application: Callable[..., Path]) -> None:
    wrong = make_application("wrong", check="raise CheckFailed('it is wrong')")
    with pytest.raises(CheckFailed, match="it is wrong"):
        mix_here(SuiteProblem(str(wrong), "tiny", {"items": 1024}, 0), 60.0)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.toml"):
        mix_here(LaunchFile(str(tmp_path / "gone.toml")), 60.0)
