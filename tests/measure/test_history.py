"""The history of a process: every run is in the file when its region has been left."""

import errno
import logging
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from crosscast import read_history
from crosscast.measure.regions.history import History, RegionKey, RegionRun
from crosscast.measure.regions.recorder import history_of
from support.examples import one_in
from support.measuring import run_of
from support.refusals import refusal

KEY = RegionKey("a")
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


def ended(program: str, path: Path) -> tuple[int, str]:
    words = [sys.executable, "-c", BEGIN + dedent(program), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def names_in(path: Path) -> list[str]:
    history = read_history(path)
    keys = history.keys()
    runs: list[RegionRun] = [run for key in keys for run in history.runs(key, failed=True)]
    return [f"{run.key.name} {run.failure}" if run.failure else run.key.name for run in runs]


WAITING = "with region('last'): os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"


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
        ],
    ),
)
def test_a_program_that_ends_leaves_runs(program: str, status: int, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    found, errors = ended(program, path)
    assert (found, names_in(path)) == (status, names), errors


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    history = History(tmp_path / "runs.jsonl")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: history.record(run_of(KEY, float(number))), range(200)))
    assert sorted(run.duration_s for run in read_history(tmp_path / "runs.jsonl").runs(KEY)) == list(
        range(200)
    )


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


def test_a_file_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, mode: str, buffering: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "runs.jsonl"
    history = History(path)
    monkeypatch.setattr(Path, "open", full)
    with caplog.at_level(logging.WARNING, "crosscast"):
        for _ in range(3):
            history.record(run_of(KEY))
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: the history cannot be written from now on: No space left on device"
    ]
    assert len(history) == 3
