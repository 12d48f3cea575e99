"""What is said and asked before a long campaign begins."""

from __future__ import annotations

import io

import pytest

from crosscast.cli.running import announce, confirm


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
