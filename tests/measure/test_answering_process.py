"""Hearing processes: whole lines, from several, and nothing lost between."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.measure.processes import AnsweringProcess, heard

Start = Callable[[str], AnsweringProcess]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starter of processes that run statements."""

    def begin(statements: str) -> AnsweringProcess:
        name = f"said_{len(list(tmp_path.iterdir()))}"
        (tmp_path / f"{name}.py").write_text(f"import os, sys, time\n{statements}\n")
        return AnsweringProcess(name, {**os.environ, "PYTHONPATH": str(tmp_path)})

    return begin


def soon() -> float:
    return time.monotonic() + 60


def test_lines_that_nobody_took_are_heard_later(start: Start) -> None:
    process = start("os.write(1, b'a\\nb\\nc\\nd')")
    try:
        _, first = next(heard([process], soon()))
        rest = [line for _, line in heard([process], soon())]
        again = [line for _, line in heard([process], soon())]
    finally:
        process.end()
    # A line that was never ended is none.
    assert (first, rest, again) == (b"a", [b"b", b"c", None], [None])


def test_several_are_heard_each_until_it_ends(start: Start) -> None:
    talker = start("print(*range(50_000), sep='\\n')")
    echo = start("print(sys.stdin.readline(), end='')")
    silent = start("time.sleep(600)")
    try:
        echo.tell("hello\n")
        lines: dict[int, list[bytes | None]] = {talker.pid: [], echo.pid: [], silent.pid: []}
        for process, line in heard([talker, echo, silent], soon()):
            lines[process.pid].append(line)
            if lines[talker.pid][-1:] == lines[echo.pid][-1:] == [None]:
                break
        assert silent.runs
    finally:
        for process in (talker, echo, silent):
            process.end()
    assert lines == {
        talker.pid: [*(str(number).encode() for number in range(50_000)), None],
        echo.pid: [b"hello", None],
        silent.pid: [],
    }
    assert not silent.runs


def test_nobody_is_listened_to_for_longer_than_asked(start: Start) -> None:
    chatterer = start("while True: os.write(1, b'and\\n' * 100)")
    try:
        assert all(line == b"and" for _, line in heard([chatterer], time.monotonic() + 0.2))
    finally:
        chatterer.end()


def test_telling_a_process_that_has_ended_is_no_error(start: Start) -> None:
    process = start("os.write(2, b'why\\n'); sys.exit(3)")
    try:
        assert [line for _, line in heard([process], soon())] == [None]
        process.tell("hello\n")
        assert str(process.crash("it")) == "it: the process that measured ended with code 3: why"
    finally:
        process.end()
