import io

import pytest

from crosscast.characterization.run import Progress
from crosscast.cli.running import ProgressLine, describe, time_left


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_short_runs_are_silent() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream, "k")
    line(Progress(1, 2, 1.9))
    line.close()
    assert stream.getvalue() == ""


def test_files_get_a_line_now_and_then() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream, "k")
    for tenths in range(0, 100, 2):
        line(Progress(tenths, 100, tenths / 10))
    line.close()
    assert len(stream.getvalue().splitlines()) == 2


def test_terminals_get_one_line_that_goes_away() -> None:
    stream = Terminal()
    line = ProgressLine(stream, "k")
    line(Progress(10, 20, 2.5))
    line(Progress(11, 20, 2.7))
    line.close()
    text = stream.getvalue()
    assert "\n" not in text
    assert text.endswith("\r")
    assert "11 of 20 work-groups" in text


def test_the_line_goes_away_when_the_work_fails() -> None:
    stream = Terminal()
    with pytest.raises(RuntimeError), ProgressLine(stream, "k") as line:
        line(Progress(10, 20, 2.5))
        raise RuntimeError
    assert stream.getvalue().endswith("\r")


def test_the_line_says_done_rate_and_time_left() -> None:
    assert describe("k", 50, 200, 5.0) == "k: 50 of 200 work-groups (25 %), 10 a second, 15 s left"


def test_a_slow_rate_is_time_a_work_group() -> None:
    assert describe("k", 1, 3, 4.0) == "k: 1 of 3 work-groups (33 %), 4 s each, 8 s left"


def test_nothing_done_has_no_rate() -> None:
    assert describe("k", 0, 3, 4.0) == "k: 0 of 3 work-groups (0 %), 4 s so far"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "less than a second left"),
        (0.909, "less than a second left"),
        (1.0, "about 1 s left"),
        (11.26, "about 11 s left"),
        (59.7, "about 1 min 0 s left"),
    ],
)
def test_what_is_left_is_told_to_the_second(seconds: float, text: str) -> None:
    assert time_left(seconds) == text
