"""The console that reports are printed on."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

__all__ = ["PLAIN_WIDTH", "console_on"]

PLAIN_WIDTH = 110
"""Columns of what goes to a file or a pipe."""


def console_on(stream: TextIO, width: int = PLAIN_WIDTH) -> Console:
    """A console with colours and its own width on a terminal, and neither elsewhere.

    Parameters
    ----------
    stream
        Where to print.
    width
        Columns where there is no terminal: not rich's 80, which break tables.
    """
    console = Console(file=stream, highlight=False)
    return console if console.is_terminal else Console(file=stream, highlight=False, width=width)
