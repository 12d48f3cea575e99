"""Devices on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.report.console import console_on
from crosscast.units import format_bytes, format_hertz

if TYPE_CHECKING:
    from crosscast.measure.inventory import Entry

__all__ = ["print_devices"]


def print_devices(entries: Sequence[Entry], stream: TextIO) -> None:
    """Print a table of devices, and below it why sensors and counters do not work.

    Parameters
    ----------
    entries
        At least one.
    stream
        Where to print.
    """
    console = console_on(stream)
    table = Table(box=None, pad_edge=False)
    for heading in ("id", "name", "type", "units", "clock", "L1", "L2", "L3", "memory", "sensors"):
        table.add_column(heading, justify="right" if heading in _RIGHT else "left")
    for entry in entries:
        table.add_row(*map(Text, _cells(entry)))
    console.print(table)
    for line in _reasons(entries):
        console.print(Text(line), soft_wrap=True)


_RIGHT = frozenset({"units", "clock", "L1", "L2", "L3", "memory"})


def _cells(entry: Entry) -> list[str]:
    facts = entry.facts
    working = [sensor.name for sensor in entry.sensors if sensor.works]
    return [
        entry.device.id,
        entry.device.name,
        entry.device.type,
        str(entry.device.compute_units),
        "" if facts["clock_hz"] is None else format_hertz(facts["clock_hz"]),
        *(_size(facts.get(name)) for name in ("l1_bytes", "l2_bytes", "l3_bytes", "memory_bytes")),
        ", ".join(working) or "none",
    ]


def _size(nbytes: Any) -> str:
    return "" if nbytes is None else format_bytes(nbytes)


def _reasons(entries: Sequence[Entry]) -> list[str]:
    """Each reason once, with the devices or counters that it holds for."""
    sensors: dict[str, list[str]] = {}
    counters: dict[str, list[str]] = {}
    for entry in entries:
        for sensor in entry.sensors:
            if sensor.reason is not None:
                sensors.setdefault(sensor.reason, []).append(entry.device.id)
    for name, reason in next((entry.counters for entry in entries if entry.counters), {}).items():
        counters.setdefault(reason or "work", []).append(name)
    return [
        *(f"{', '.join(ids)}: {reason}" for reason, ids in sensors.items()),
        *(f"CPU counters {', '.join(names)}: {reason}" for reason, names in counters.items()),
    ]
