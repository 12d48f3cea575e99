"""What is said and asked before a long campaign begins."""

from __future__ import annotations

import io

import pytest

from crosscast.commands.output import TaskStatus, announce, confirm
from crosscast.evaluation.loop import State


class Terminal(io.StringIO):
    """Text as if it were typed on a terminal, or shown there."""

    def isatty(self) -> bool:
        return True


def asked(monkeypatch: pytest.MonkeyPatch, typed: io.StringIO) -> Terminal:
    """Let this be typed, and catch what is shown; in the test itself, as pytest has streams of its own."""
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("sys.stdin", typed)
    return shown


def test_a_long_campaign_says_how_long_and_a_short_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = asked(monkeypatch, Terminal())
    announce(3, 9.0)
    assert not shown.getvalue()
    announce(30, 125.4)
    assert shown.getvalue() == "crosscast: 30 tasks, roughly 2 min 5 s\n"


@pytest.mark.parametrize("answer", ["y\n", "Yes\n"])
def test_thousands_of_tasks_are_asked_about(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    shown = asked(monkeypatch, Terminal(answer))
    confirm(4495, 1e4)
    assert shown.getvalue().endswith("[y/N] ")


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "maybe\n"])
def test_no_answer_but_yes_begins(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    asked(monkeypatch, Terminal(answer))
    with pytest.raises(KeyboardInterrupt):
        announce(4495, 1e4)


def test_nobody_is_asked_about_few_tasks_or_away_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = asked(monkeypatch, Terminal("n\n"))
    confirm(999, 1e6)
    assert not shown.getvalue()
    shown = asked(monkeypatch, io.StringIO("n\n"))
    confirm(4495, 1e6)
    assert not shown.getvalue()


def states(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, steps: int) -> str:
    """What is shown of work with a task each second."""
    clock = [0.0]
    monkeypatch.setattr("crosscast.commands.output.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.stderr", stream)
    with TaskStatus("fits") as status:
        for done in range(1, steps + 1):
            clock[0] = float(done)
            status(State(done, steps, clock[0], float(steps - done), f"fit {done}"))
    return stream.getvalue()


def test_a_log_has_a_line_each_thirty_seconds_with_what_how_much_and_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = states(monkeypatch, io.StringIO(), 100)
    assert shown.splitlines() == [
        "crosscast: 30 of 100 fits, about 1 min 10 s left: fit 30",
        "crosscast: 60 of 100 fits, about 40 s left: fit 60",
        "crosscast: 90 of 100 fits, about 10 s left: fit 90",
    ]


def test_nothing_is_said_of_what_is_left_before_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = states(monkeypatch, Terminal(), 1000)
    first = shown.split("\r")[1]
    assert first.startswith("2 of 1000 fits, time left not known yet: fit 2")
    assert "10 of 1000 fits, about 16 min 30 s left" in shown
