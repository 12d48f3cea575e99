"""Tables of numbers on a terminal: names on the left, numbers on the right."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["number_table", "print_table"]


def number_table(first: str, headings: Sequence[str]) -> Table:
    """A table without rows, of a column of names and several of numbers.

    Parameters
    ----------
    first
        Heading of the names.
    headings
        Those of the numbers.
    """
    table = Table(box=None, pad_edge=False)
    # Not through rich's markup: names of devices and machines may hold brackets.
    table.add_column(Text(first), no_wrap=True)
    for heading in headings:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    return table


def print_table(console: Console, heading: str, table: Table) -> None:
    """Print a table below its heading, with an empty line above."""
    console.print()
    console.print(Text(heading, style="bold"), soft_wrap=True)
    console.print(table)
