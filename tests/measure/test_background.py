"""Threads that work in the background."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from crosscast.measure.background import Background
from support.processes import wait_until

# Libraries have threads of their own, of which Python warns from 3.12 on.
FORKS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_it_works_until_there_is_nothing_more_to_do() -> None:
    left = [1]
    background = Background(left.clear, 0.001, "test", lambda: bool(left))
    assert background.ensure()
    wait_until(lambda: not background.runs)
    assert not left


def test_it_is_started_once_and_again_when_it_has_ended() -> None:
    begun = threading.Event()
    background = Background(begun.set, 0.001, "test", lambda: not begun.is_set())
    assert [background.ensure(), background.ensure()] == [True, False]
    wait_until(lambda: not background.runs)
    assert background.ensure()
    background.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_it_is_started_again_after_work_that_failed() -> None:
    background = Background(lambda: next(iter(())), 0.001, "test", lambda: True)
    assert background.ensure()
    wait_until(lambda: not background.runs)
    assert background.ensure()
    wait_until(lambda: not background.runs)


def test_no_work_is_left_behind_by_a_thread_that_ends() -> None:
    left: list[int] = []
    done: list[int] = []

    def work() -> None:
        while left:
            done.append(left.pop())

    background = Background(work, 1e-5, "test", lambda: bool(left))
    for number in range(2000):
        left.append(number)
        background.ensure()
    wait_until(lambda: len(done) == 2000)
    background.stop()


def test_stopping_waits_and_tells_whether_it_ran() -> None:
    working, may_end = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        may_end.wait(10)

    background = Background(work, 0.001, "test", lambda: True)
    assert not background.stop()
    background.ensure()
    assert working.wait(10)
    threading.Timer(0.01, may_end.set).start()
    assert background.stop()
    assert may_end.is_set()
    assert not background.runs


@pytest.mark.parametrize("busy", [False, True])
@FORKS
def test_a_fork_has_no_thread_and_the_parent_goes_on(busy: bool) -> None:
    counted = [0]

    def work() -> None:
        counted[0] += 1
        time.sleep(0.002 if busy else 0)

    background = Background(work, 0.0005, "test", lambda: True)
    background.ensure()
    wait_until(lambda: counted[0] > 0)
    child = os.fork()
    if child == 0:
        os._exit(0 if not background.runs and background.ensure() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert background.runs
    before = counted[0]
    wait_until(lambda: counted[0] > before)
    background.stop()


def test_where_no_thread_can_be_started_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    background = Background(nothing, 1.0, "test", lambda: True)
    assert background.ensure()
    assert not background.runs
