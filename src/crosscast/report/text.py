"""The console that reports are printed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.configuration import Configuration, Setting
from crosscast.predict.configuration.data import Space

PLAIN_WIDTH = 110
"""Columns of what goes to a file or a pipe."""


class _Console(Console):
    """A console that leaves to the command line what happens when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Say so instead of exiting with 1, as rich would."""
        self.quiet = True
        raise BrokenPipeError


def console_on(stream: TextIO, width: int = PLAIN_WIDTH) -> Console:
    """A console with colours and its own width on a terminal, and neither elsewhere."""
    console = _Console(file=stream, highlight=False)
    return console if console.is_terminal else _Console(file=stream, highlight=False, width=width)


def console_of_numbers(stream: TextIO, width: int = PLAIN_WIDTH) -> Console:
    """The same, at least so wide on a terminal too: one that is narrower breaks lines, but no number.

    Columns that may not wrap would lose their last digits there.
    """
    console = console_on(stream, width)
    console.width = max(console.width, width)
    return console


def number_table(first: str, headings: Sequence[str]) -> Table:
    """A table without rows, of a column of names and several of numbers."""
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


_MOST_WORDS = 4
"""Words of a setting that are spelled out; of more, their number is."""
_UNITS = (("_hz", "MHz", 1e-6), ("_w", "W", 1.0), ("_s", "s", 1.0), ("_j", "J", 1.0))


def setting_heading(name: str) -> str:
    """What a knob is, with its unit.

    >>> setting_heading("core_clock_hz"), setting_heading("cores")
    ('core clock, MHz', 'cores')
    """
    words, unit, _ = _parts(name)
    return f"{words}, {unit}" if unit else words


def setting_scale(name: str) -> float:
    """How many of the heading's unit one in SI is.

    >>> setting_scale("core_clock_hz"), setting_scale("cores")
    (1e-06, 1.0)
    """
    return _parts(name)[2]


def setting_text(name: str, value: Setting | None) -> str:
    """What a knob is set to, in the unit of its heading; a dash where a device does not have it.

    >>> setting_text("core_clock_hz", 1.164e9), setting_text("scheduling", "dynamic")
    ('1164', 'dynamic')
    """
    if value is None:
        return "—"
    return value if isinstance(value, str) else f"{value * setting_scale(name):.6g}"


def configuration_text(configuration: Configuration) -> str:
    """A configuration on one line.

    >>> configuration_text(Configuration("node", {"cpu_cap_w": 65, "core_clock_hz": 1.1e9}))
    'node: core clock 1100 MHz, cpu cap 65 W'
    """
    settings = []
    for name, value in configuration.settings.items():
        words, unit, _ = _parts(name)
        settings.append(f"{words} {setting_text(name, value)} {unit}".rstrip())
    return f"{configuration.device}: {', '.join(settings)}" if settings else configuration.device


def setting_range(name: str, values: Sequence[Setting]) -> str:
    """What a knob was set to: from least to most, or one of some words.

    >>> setting_range("cpu_cap_w", (65.0, 90.0, 120.0)), setting_range("mode", ("fast", "slow"))
    ('cpu cap 65 to 120 W', 'mode fast or slow')
    >>> setting_range("cpu_cap_w", (65.0,)), setting_range("mode", ("a", "b", "c", "d", "e"))
    ('cpu cap 65 W', 'mode one of 5 words')
    """
    words, unit, _ = _parts(name)
    numbers = [value for value in values if not isinstance(value, str)]
    named = [value for value in values if isinstance(value, str)]
    ends = dict.fromkeys(setting_text(name, value) for value in (numbers[:1] + numbers[-1:]))
    found = [f"{' to '.join(ends)} {unit}".rstrip()] if numbers else []
    found += named if len(named) <= _MOST_WORDS else [f"one of {len(named)} words"]
    return f"{words} {' or '.join(found)}"


def shown_settings(space: Space) -> tuple[str, ...]:
    """Names of the settings that tell the configurations of a space apart: knobs, then words."""
    return (*space.knobs, *space.words)


def _parts(name: str) -> tuple[str, str, float]:
    """Words, unit and how many of it one in SI is."""
    for suffix, unit, scale in _UNITS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return _words(name.removesuffix(suffix)), unit, scale
    return _words(name), "", 1.0


def _words(name: str) -> str:
    return name.replace("_", " ")
