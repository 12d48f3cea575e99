"""Histories of processes: every run is in the file, once, when its region has been left."""

import errno
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from crosscast import read_history
from crosscast.measure.regions import recorder as home
from crosscast.measure.regions.key import RegionKey, RegionRun
from crosscast.measure.regions.recorder import History, history_of
from support.examples import one_in
from support.measuring import FORKS, run_of
from support.refusals import refusal

BEGIN = """
import atexit, os, signal, sys, threading, time
import crosscast
path = sys.argv[1]
def region(name):
    return crosscast.profiled(name, history=path, sensors="none")
def step(name):
    with region(name):
        pass
step("first")
"""

pytestmark = pytest.mark.usefixtures("own_process")


def started(program: str, path: Path, before: str = "") -> subprocess.Popen[str]:
    script = before + BEGIN + dedent(program)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(program: str, path: Path, before: str = "") -> tuple[int, str]:
    with started(program, path, before) as process:
        return process.wait(), process.communicate()[1]


def names_in(path: Path) -> list[str]:
    history = read_history(path)
    keys = history.keys()
    runs: list[RegionRun] = [run for key in keys for run in history.runs(key, failed=True)]
    return [f"{run.key.name} {run.failure}" if run.failure else run.key.name for run in runs]


WAITING = "with region('last'): os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
FORKING = """
with region("both"):
    if child := os.fork(): os.waitpid(child, 0)
if child == 0: step("child")
"""


@pytest.mark.parametrize(
    ("program", "status", "names"),
    one_in(
        5,
        [
            ("step('last')", 0, ["first", "last"]),
            ("sys.exit(3)", 3, ["first"]),
            ("raise ValueError", 1, ["first"]),
            ("with region('last'): raise ValueError", 1, ["first", "last ValueError"]),
            (WAITING, -signal.SIGINT, ["first", "last KeyboardInterrupt"]),
            ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM, ["first"]),
            ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ["first"]),
            ("os._exit(4)", 4, ["first"]),
            ("atexit.register(step, 'last')", 0, ["first", "last"]),
            (FORKING, 0, ["first", "child", "both"]),
        ],
    ),
)
def test_a_program_that_ends_leaves_runs(program: str, status: int, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    found, errors = ended(program, path)
    assert (found, names_in(path)) == (status, names), errors


def test_many_processes_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    program = """
    for number in range(300):
        step(f"{os.getpid()}")
    """
    processes = [started(program, path) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    for process in processes:
        process.communicate()
    names = names_in(path)
    assert {name: names.count(name) for name in set(names)} == {
        "first": 4,
        **{str(process.pid): 300 for process in processes},
    }


def test_regions_bring_nothing_heavy(tmp_path: Path) -> None:
    program = """
    heavy = {"numpy", "pyarrow", "pyopencl", "pynvml", "rich", "cyclopts"} & sys.modules.keys()
    sys.exit(",".join(heavy) or 0)
    """
    assert ended(program, tmp_path / "runs.jsonl") == (0, "")


def test_the_example_shows_its_history(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "profiled_stencil.py"
    if not example.exists():
        pytest.skip("no checkout")
    path = tmp_path / "runs.jsonl"
    words = [sys.executable, str(example), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "smooth(float64[128x128], float64[128x128]) at __main__.relax" in done.stdout
    history = read_history(path)
    keys = history.keys()
    assert sorted(len(history.runs(key)) for key in keys) == [1, 1, 200, 200]


KEY = RegionKey("a")


def times_in(path: Path) -> list[float]:
    return [run.duration_s for run in read_history(path).runs(KEY)] if path.exists() else []


def test_a_process_has_one_history_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    history = history_of("runs.jsonl")
    assert history_of(tmp_path / "runs.jsonl") is history
    assert history_of(str(tmp_path / "sub" / ".." / "runs.jsonl")) is history
    assert history_of(history) is history
    assert history_of(None) is history_of(None) is not history


def test_a_file_that_is_no_history_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("It was a dark night.")
    assert "thesis.txt, line 1" in refusal(history_of, path)
    assert path.read_text() == "It was a dark night."


@FORKS
def test_forked_processes_write_their_own_runs_only(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    history = History(path)
    history.record(run_of(KEY, 1000.0))
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            for step in range(50):
                history.record(run_of(KEY, float(number * 50 + step)))
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    history.record(run_of(KEY, 1001.0))
    assert sorted(times_in(path)) == [*map(float, range(200)), 1000.0, 1001.0]


def test_a_file_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, lines: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    history = History(tmp_path / "runs.jsonl")
    monkeypatch.setattr(home, "append", full)
    with caplog.at_level(logging.WARNING, "crosscast"):
        for _ in range(3):
            history.record(run_of(KEY))
    assert [record.getMessage() for record in caplog.records] == [
        "the history cannot be written from now on: No space left on device"
    ]
    assert len(history) == 3


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"counters": {"a" * (1 << 20): 1.0}}, "a run of a is too long for the history"),
        ({"energy_j": {"gpu": float("nan")}}, "a run of a cannot be written to the history"),
        ({"energy_j": {"gpu": np.float32(0.5)}}, "a run of a cannot be written to the history"),
    ],
)
def test_a_run_that_no_line_holds_is_left_out_of_the_file(
    cells: dict[str, Any], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path / "runs.jsonl")
    with caplog.at_level(logging.WARNING, "crosscast"):
        history.record(run_of(KEY, **cells))
        history.record(run_of(KEY, 2.0))
    assert times_in(tmp_path / "runs.jsonl") == [2.0]
    assert said in caplog.text
