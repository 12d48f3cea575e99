"""Consoles: as wide as the terminal, or as the numbers need."""

import io

import pytest

from crosscast.report.text import PLAIN_WIDTH, console_of_numbers, console_on


class Terminal(io.StringIO):
    """Takes what is written, as a terminal."""

    def isatty(self) -> bool:
        """Whether it is one."""
        return True


@pytest.mark.parametrize(("columns", "width"), [(60, PLAIN_WIDTH), (200, 200)])
def test_numbers_are_not_cut_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert console_on(Terminal()).width == columns
    assert console_of_numbers(Terminal()).width == width


def test_without_a_terminal_the_width_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert console_of_numbers(io.StringIO(), 120).width == 120
