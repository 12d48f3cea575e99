"""Histories: what is written, by which process, and when."""

import errno
import logging
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import begin_anew
from made_runs import run_of

from crosscast import read_history
from crosscast.errors import InputError
from crosscast.measure.regions import history as home
from crosscast.measure.regions.history import KEPT, History, history_of
from crosscast.measure.regions.key import RegionKey
from support.processes import wait_until

KEY = RegionKey("a")

# Libraries have threads of their own, of which Python warns from 3.12 on.
FORKS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_anew(monkeypatch)


def times_in(path: Path) -> list[float]:
    return [run.duration_s for run in read_history(path).runs(KEY)] if path.exists() else []


def test_runs_are_written_in_the_background(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    history = History(path)
    for time_s in (1.0, 2.0):
        history.record(run_of(KEY, time_s))
    assert history.mean_time_s(KEY) == 1.5
    wait_until(lambda: times_in(path) == [1.0, 2.0])
    wait_until(lambda: not history._background.runs)
    history.record(run_of(KEY, 3.0))
    wait_until(lambda: times_in(path) == [1.0, 2.0, 3.0])


def test_runs_are_written_when_that_is_asked_for(tmp_path: Path) -> None:
    history = History(tmp_path / "runs.jsonl")
    history.record(run_of(KEY))
    history.flush()
    assert times_in(tmp_path / "runs.jsonl") == [0.5]


def test_a_history_without_a_file_keeps_the_last_runs() -> None:
    history = History()
    for number in range(KEPT + 5):
        history.record(run_of(KEY, float(number)))
    history.flush()
    assert len(history) == KEPT
    assert history.runs(KEY)[0].duration_s == 5.0


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
    with pytest.raises(InputError, match=r"thesis.txt, line 1"):
        history_of(path)
    assert path.read_text() == "It was a dark night."


def test_threads_write_every_run_once(tmp_path: Path) -> None:
    history = History(tmp_path / "runs.jsonl")

    def work(start: int) -> None:
        for number in range(start, start + 200):
            history.record(run_of(KEY, float(number)))
            if number % 50 == 0:
                history.flush()

    threads = [threading.Thread(target=work, args=(200 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history.flush()
    assert sorted(times_in(tmp_path / "runs.jsonl")) == [float(number) for number in range(800)]


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
                if step % 10 == 0:
                    history.flush()
            history.flush()
            os._exit(0 if len(history) == 50 else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    history.record(run_of(KEY, 1001.0))
    history.flush()
    assert sorted(times_in(path)) == [*map(float, range(200)), 1000.0, 1001.0]


def _work(path: Path, time_s: float) -> None:
    history_of(path).record(run_of(KEY, time_s))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@FORKS
def test_workers_of_multiprocessing_write_at_their_end(method: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    context: Any = multiprocessing.get_context(method)
    worker = context.Process(target=_work, args=(path, 7.0))
    worker.start()
    worker.join()
    assert (worker.exitcode, times_in(path)) == (0, [7.0])


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
            history.flush()
    assert [record.getMessage() for record in caplog.records] == [
        "the history cannot be written from now on: No space left on device"
    ]
    assert len(history) == 3


def test_a_run_too_long_for_a_line_is_left_out_of_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path / "runs.jsonl")
    with caplog.at_level(logging.WARNING, "crosscast"):
        history.record(run_of(KEY, counters={"a" * (1 << 20): 1.0}))
        history.record(run_of(KEY, 2.0))
        history.flush()
    assert times_in(tmp_path / "runs.jsonl") == [2.0]
    assert "a run of a is too long for the history" in caplog.text


@pytest.mark.parametrize("number", [float("nan"), np.float32(0.5)])
def test_a_run_of_numbers_that_are_none_is_left_out_of_the_file(
    number: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path / "runs.jsonl")
    with caplog.at_level(logging.WARNING, "crosscast"):
        history.record(run_of(KEY, energy_j={"gpu": number}))
        history.record(run_of(KEY, 2.0))
        history.flush()
    assert times_in(tmp_path / "runs.jsonl") == [2.0]
    assert "a run of a cannot be written to the history" in caplog.text


def test_where_no_thread_can_be_started_runs_are_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    History(tmp_path / "runs.jsonl").record(run_of(KEY))
    assert times_in(tmp_path / "runs.jsonl") == [0.5]
