"""What comes along or is to be fetched: data sheets of devices, and sources of datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crosscast.data.schema import DEVICES
from crosscast.report.document import Heading, Report, Table, Text
from crosscast.units import format_bytes, format_bytes_per_second, format_count, format_hertz

_WRITERS: dict[str, Callable[[float], str]] = {
    "Hz": format_hertz,
    "B": lambda value: format_bytes(int(value)),
    "B/s": format_bytes_per_second,
    "flop/s": lambda value: f"{value / 1e12:.4g} Tflop/s",
    "W": lambda value: f"{value:g} W",
    "count": lambda value: format_count(int(value)),
}
_UNITS = {column.name: column.unit for column in DEVICES.columns}
_TITLES = {column.name: column.title for column in DEVICES.columns}
_SHORT = {
    "units": "compute_units",
    "cores": "cores",
    "clock": "clock_hz",
    "peak": "peak_flop_per_s",
    "bandwidth": "bandwidth_bytes_per_s",
    "memory": "memory_bytes",
    "power": "tdp_w",
}


def data_sheets_report(rows: Sequence[Mapping[str, Any]]) -> Report:
    """A table of the catalogue of devices."""
    columns = {
        "device": lambda row: row["device"],
        "name": lambda row: row["name"],
        "vendor": lambda row: row["vendor"],
        "type": lambda row: row["type"],
        "series": lambda row: row["series"],
        **{heading: _getter(name) for heading, name in _SHORT.items()},
    }
    return Report(
        [
            Table.of(rows, columns, words=range(5)),
            "",
            "Where each number is from: crosscast devices --catalogue NAME.",
            "A forecast for one: crosscast predict FILE --devices NAME.",
        ]
    )


def _getter(name: str) -> Any:
    return lambda row: _written(name, row.get(name))


def _written(name: str, value: Any) -> str | None:
    writer = None if isinstance(value, str) else _WRITERS.get(_UNITS[name])
    return value if value is None or writer is None else writer(value)


def data_sheet_report(row: Mapping[str, Any]) -> Report:
    """One data sheet, with the source of each cell."""
    cells = [name for name in row["sources"] if name != "device"]
    columns = {
        "column": lambda name: name,
        "value": lambda name: _written(name, row[name]),
        "what it is": lambda name: _TITLES[name],
        "source": lambda name: row["sources"][name],
    }
    return Report([Heading(f"{row['name']} ({row['device']})", 1), Table.of(cells, columns, words=(0, 2, 3))])


def sources_report(sources: Sequence[Mapping[str, Any]]) -> Report:
    """What can be imported: what it is, its licence, where it is from and which files are wanted."""
    parts: list[Any] = []
    for source in sources:
        facts = [f"licence: {source['licence']}", f"origin: {source['origin']}"]
        wanted = [
            f"file: {' or '.join(file['names'])}{'' if file['required'] else ' (optional)'}"
            + (f", columns {', '.join(file['columns'])}" if file["columns"] else "")
            for file in source["files"]
        ]
        parts += [
            Heading(source["name"]),
            source["about"],
            Text([*facts, f"path: {source['path']}", *wanted], "list"),
        ]
    return Report(
        [
            *parts,
            "",
            "To import one: crosscast dataset import NAME PATH --out FOLDER; --help says what PATH is.",
        ]
    )
