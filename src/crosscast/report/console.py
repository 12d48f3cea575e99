"""The console that reports are printed on."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

__all__ = ["PLAIN_WIDTH", "console_of_numbers", "console_on"]

PLAIN_WIDTH = 110
"""Columns of what goes to a file or a pipe."""


class _Console(Console):
    """A console that leaves to the command line what happens when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Say so instead of exiting with 1, as rich would."""
        self.quiet = True
        raise BrokenPipeError


def console_on(stream: TextIO, width: int = PLAIN_WIDTH) -> Console:
    """A console with colours and its own width on a terminal, and neither elsewhere.

    Parameters
    ----------
    stream
        Where to print.
    width
        Columns where there is no terminal: not rich's 80, which break tables.
    """
    console = _Console(file=stream, highlight=False)
    return console if console.is_terminal else _Console(file=stream, highlight=False, width=width)


def console_of_numbers(stream: TextIO, width: int = PLAIN_WIDTH) -> Console:
    """The same, at least so wide on a terminal too: one that is narrower breaks lines, but no number.

    Columns that may not wrap would lose their last digits there.
    """
    console = console_on(stream, width)
    console.width = max(console.width, width)
    return console
