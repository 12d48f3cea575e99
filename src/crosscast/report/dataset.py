"""Devices on a terminal."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.data.description import (
    CellNoise,
    CoRunContents,
    CoRunFailure,
    Description,
    DeviceConfigurations,
    Failure,
    RecordWarning,
    warnings_of,
)
from crosscast.data.schema import ENERGY, RECORDS, SESSIONS, Schema
from crosscast.data.table import table_of
from crosscast.measure.inventory import KernelSummary, summaries
from crosscast.report.numbers import plural
from crosscast.report.text import console_on, setting_range
from crosscast.units import format_bytes, format_count, format_hertz, format_seconds

if TYPE_CHECKING:
    from crosscast.measure.inventory import Entry


def print_devices(entries: Sequence[Entry], stream: TextIO) -> None:
    """Print a table of devices, and below it why sensors and counters do not work."""
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


def contents_lines(contents: CoRunContents) -> list[str]:
    """A line for the solo runs of each device, and one for its bags of each size; none if there are none."""
    solos = [
        f"{solo.device}: {plural(solo.solos, 'solo run')}{_but([(solo.failed, 'failed')])}"
        for solo in contents.solos
    ]
    bags = [
        f"{bag.device}: {plural(bag.bags, 'bag')} of {bag.members}{_configurations(bag.configurations)}"
        f"{_but([(bag.not_fitting, 'did not fit'), (bag.failed, 'failed')])}"
        for bag in contents.bags
    ]
    return [*solos, *bags]


def failure_lines(contents: CoRunContents) -> list[str]:
    """A line for each application that failed, alone or in a bag."""
    return [f"{_place(failure)}: {failure.reason}" for failure in contents.failed]


def _place(failure: CoRunFailure) -> str:
    settings = "" if failure.configuration == "{}" else f" {failure.configuration}"
    where = f"{failure.application} {failure.size} on {failure.device}{settings}"
    if failure.bag is None:
        return f"{where}, alone"
    again = f", repeat {failure.repeat}" if failure.repeat else ""
    return f"{where}, in the bag {failure.bag}{again}"


def _configurations(number: int) -> str:
    return "" if number == 1 else f" in {format_count(number)} configurations"


def _but(parts: list[tuple[int, str]]) -> str:
    found = [f"{format_count(number)} {what}" for number, what in parts if number]
    return f", of which {' and '.join(found)}" if found else ""


_SHOWN = 3
"""Failures, and warnings of a rule, that are spelled out; the JSON form has all."""
_MOST_SIZES = 8
"""Sizes that have a column each; of more, the page has their sum."""
_NONE = "—"


def print_description(description: Description, stream: TextIO) -> None:
    """Print a page about a dataset."""
    console = console_on(stream)
    for line in _counts(description):
        console.print(Text(line, style="bold"))
    for device in description.configurations:
        if device.settings:
            console.print(Text(_description_configurations(device)), soft_wrap=True)
    if description.kernels:
        _print_grid(console, description)
    if description.devices and not _has_only_corun(description):
        _print_devices(console, description)
    if lines := contents_lines(description.corun):
        console.print()
        for line in lines:
            console.print(Text(line), soft_wrap=True)
    _print_failures(console, description)
    if description.corun.failed:
        console.print()
        console.print(Text(f"{_count(len(description.corun.failed), 'application')} failed", style="bold"))
        _print_first(console, failure_lines(description.corun))
    _print_warnings(console, description)
    _print_notes(console, description)


def _has_only_corun(description: Description) -> bool:
    """Whether nothing was measured or profiled but applications alone and in bags."""
    return bool(description.corun.solos or description.corun.bags) and not (
        description.kernels or description.records or description.energy
    )


def _counts(description: Description) -> Iterator[str]:
    only_corun = _has_only_corun(description)
    yield ", ".join(
        _count(len(names), noun)
        for names, noun in (
            (description.applications, "application"),
            (description.kernels, "kernel"),
            (description.sizes, "size"),
            (description.devices, "device"),
        )
        if noun != "kernel" or not only_corun
    )
    if only_corun:
        return
    rows = [
        _count(description.cells, "cell"),
        _count(description.records, "record"),
        _count(description.profiles, "profile"),
        _count(description.sessions, "session"),
        f"{format_count(len(description.failed))} failed",
    ]
    if description.energy:
        rows.append(_count(description.energy, "row of energy", "rows of energy"))
    yield ", ".join(rows)


def _description_configurations(device: DeviceConfigurations) -> str:
    settings = ", ".join(setting_range(name, values) for name, values in device.settings.items())
    power = f"power of {', '.join(device.domains)}" if device.domains else "no power"
    return f"{device.device}: {_count(device.configurations, 'configuration')}: {settings}; {power}"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{format_count(number)} {noun if number == 1 else plural or f'{noun}s'}"


def _print_grid(console: Console, description: Description) -> None:
    kernels = Counter(map(_application, description.kernels))
    there = Counter(
        (_application(name), size) for name, own in description.kernel_sizes.items() for size in own
    )
    lacking = Counter((gap.application or "", gap.size, gap.lacks) for gap in description.missing)
    devices = len(description.devices)
    table = Table(box=None, pad_edge=False)
    table.add_column("application")
    table.add_column("kernels", justify="right")
    groups = _size_groups(description.sizes)
    for heading in groups:
        table.add_column(heading, justify="right")
    for application, number in sorted(kernels.items()):
        row = [application or _NONE, format_count(number)]
        for sizes in groups.values():
            whole = sum(there[application, size] for size in sizes)
            unprofiled, unmeasured = (
                sum(lacking[application, size, what] for size in sizes) for what in ("profile", "records")
            )
            profiled = _share(whole, unprofiled)
            measured = _share(whole * devices, unmeasured) if devices else ""
            if not description.profiles:
                row.append(measured or _NONE)
            elif {measured, profiled} <= {_NONE, ""}:
                row.append(_NONE)
            else:
                row.append(f"{measured} ({profiled})".strip())
        table.add_row(*map(Text, row))
    console.print()
    console.print(table)
    parts = ["cells measured, of all kernels on all devices"] if devices else []
    if description.profiles:
        parts.append("kernels profiled, of all, in brackets")
    console.print(Text("; ".join([*parts, _missing(description)])), soft_wrap=True)


def _application(kernel: str) -> str:
    return kernel.rpartition("/")[0]


def _size_groups(sizes: Sequence[str]) -> dict[str, Sequence[str]]:
    """Sizes of each column of the grid, by its heading."""
    if len(sizes) > _MOST_SIZES:
        return {f"all {format_count(len(sizes))} sizes": sizes}
    return {size: [size] for size in sizes}


def _share(whole: int, lacking: int) -> str:
    return f"{format_count(whole - lacking)}/{format_count(whole)}" if whole > lacking else _NONE


def _missing(description: Description) -> str:
    lacking = Counter(gap.lacks for gap in description.missing)
    if not lacking:
        return "nothing is missing"
    cells, profiles = _count(lacking["records"], "cell"), _count(lacking["profile"], "profile")
    return f"{cells} and {profiles} are missing (--json names them)"


def _print_devices(console: Console, description: Description) -> None:
    noise: defaultdict[str, list[CellNoise]] = defaultdict(list)
    for cell in description.noise:
        noise[cell.device].append(cell)
    table = Table(box=None, pad_edge=False)
    table.add_column("device")
    table.add_column("cells", justify="right")
    spreads = any(cell.relative_sd is not None for cell in description.noise)
    if spreads:
        table.add_column("median spread", justify="right")
        table.add_column("largest", justify="right")
        table.add_column("which is that of")
    for device in description.devices:
        row = _device_cells(device, noise[device])
        table.add_row(*map(Text, row if spreads else row[:2]))
    console.print()
    console.print(table)
    if spreads:
        console.print(Text("spread: standard deviation of a cell's run means over their mean"))


def _device_cells(device: str, cells: Sequence[CellNoise]) -> list[str]:
    spreads = [(cell.relative_sd, cell) for cell in cells if cell.relative_sd is not None]
    if not spreads:
        return [device, format_count(len(cells)), _NONE, _NONE, ""]
    largest, worst = max(spreads, key=lambda pair: pair[0])
    middle = median(spread for spread, _ in spreads)
    place = _description_place(worst.application, worst.kernel, worst.size)
    return [device, format_count(len(cells)), f"{middle:.1%}", f"{largest:.1%}", place]


def _description_place(*names: str | None) -> str:
    return " ".join(filter(None, names))


def _print_failures(console: Console, description: Description) -> None:
    if not description.failed:
        return
    console.print()
    console.print(Text(f"{_count(len(description.failed), 'session')} failed", style="bold"))
    lines = (
        f"{_description_place(failure.application, failure.size)} on {_where(failure)}"
        f"{_process(description, failure.repeat)}: {failure.reason}"
        for failure in description.failed
    )
    _print_first(console, list(lines))


def _print_warnings(console: Console, description: Description) -> None:
    by_rule: defaultdict[str, list[str]] = defaultdict(list)
    for warning in description.warnings:
        place = _description_place(warning.application, warning.kernel, warning.size)
        process = _process(description, warning.repeat)
        by_rule[warning.rule].append(f"{place} on {_where(warning)}{process}: {warning.warning}")
    for rule, lines in sorted(by_rule.items()):
        console.print()
        console.print(Text(f"{_count(len(lines), 'warning')} by the rule {rule}", style="bold"))
        _print_first(console, lines)


def _where(found: Failure | RecordWarning) -> str:
    """Device, with its settings if it has any."""
    return found.device if found.configuration == "{}" else f"{found.device} {found.configuration}"


def _process(description: Description, repeat: int | None) -> str:
    return "" if repeat is None or (repeat == 0 and description.repeats < 2) else f", process {repeat}"


def _print_first(console: Console, lines: Sequence[str]) -> None:
    """Some lines, and how many there are beside them."""
    for line in lines[:_SHOWN]:
        console.print(Text(f"  {line}"), soft_wrap=True)
    if len(lines) > _SHOWN:
        console.print(Text(f"  and {format_count(len(lines) - _SHOWN)} more (--json names them)"))


def _print_notes(console: Console, description: Description) -> None:
    for name, text, tables in _notes(description):
        console.print()
        console.print(Text(f"note on {tables}: {name}", style="bold"))
        console.print(Text(text))


def _notes(description: Description) -> Iterable[tuple[str, str, str]]:
    """Name, text and tables of each note; one that several tables have comes once."""
    tables: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for table, notes in description.notes.items():
        for name, text in notes.items():
            tables[name, text].append(table)
    return [(name, text, ", ".join(found)) for (name, text), found in tables.items()]


@dataclass(frozen=True)
class Measurement:
    """Sessions that measured the same, with what they say."""

    device: str  # Id of the device
    device_name: str  # Its name
    sessions: Sequence[Mapping[str, Any]]  # Rows of the table of sessions, one for each process
    records: Sequence[Mapping[str, Any]]  # Rows of the table of records, of all of them
    energy: Sequence[Mapping[str, Any]]  # Rows of the table of energy, of all of them
    kernels: Sequence[KernelSummary]  # Summary of each kernel over all of them
    warnings: Sequence[str]  # What makes the times doubtful, and what went wrong, as sentences
    sensor: str = "auto"  # Sensor of energy that was asked for

    @classmethod
    def of(
        cls, device: str, device_name: str, answers: Sequence[Mapping[str, Any]], sensor: str = "auto"
    ) -> Measurement:
        """Put the answers of processes together."""
        sessions = [answer["session"] for answer in answers]
        records = [record for answer in answers for record in answer["records"]]
        table = table_of(RECORDS, records)
        warnings = warnings_of(table, table_of(SESSIONS, sessions))
        return cls(
            device,
            device_name,
            sessions,
            records,
            energy=[row for answer in answers for row in answer["energy"]],
            kernels=summaries(table),
            warnings=[
                *map(_sentence, warnings),
                *(note for answer in answers for note in answer["notes"]),
            ],
            sensor=sensor,
        )

    @property
    def transfer_median_s(self) -> float:
        """Median over the runs of the time of all copies, in seconds."""
        return float(statistics.median(record["transfer_s"] for record in self._runs()))

    @property
    def host_median_s(self) -> float:
        """Median over the runs of the time of a whole run on the host, in seconds."""
        return float(statistics.median(record["host_s"] for record in self._runs()))

    def _runs(self) -> list[Mapping[str, Any]]:
        """A record of each run: what is of the whole run, the records of all its kernels repeat."""
        return [record for record in self.records if record["kernel"] == self.kernels[0].kernel]

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "device": {"id": self.device, "key": self.sessions[0]["device"], "name": self.device_name},
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "transfer_median_s": self.transfer_median_s,
            "host_median_s": self.host_median_s,
            "sessions": _decoded(SESSIONS, self.sessions),
            "records": _decoded(RECORDS, self.records),
            "energy": _decoded(ENERGY, self.energy),
            "warnings": list(self.warnings),
        }


def _decoded(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose columns of JSON are what it stands for, not text."""
    texts = {column.name for column in schema.columns if column.type == "json"}
    return [
        {name: json.loads(value) if name in texts and value else value for name, value in row.items()}
        for row in rows
    ]


def print_measurement(measurement: Measurement, stream: TextIO) -> None:
    """Print the summary of each kernel, then transfers, energy and warnings."""
    console = console_on(stream)
    processes = len(measurement.sessions)
    title = f"{measurement.sessions[0]['application']} on {measurement.device} ({measurement.device_name})"
    console.print(Text(title, style="bold"))
    table = Table(box=None, pad_edge=False)
    table.add_column("kernel")
    for heading in ("runs", "invocations", "median", "mean", "least", "most", "spread"):
        table.add_column(heading, justify="right")
    for kernel in measurement.kernels:
        table.add_row(*map(Text, _measurement_cells(kernel)))
    console.print(table)
    for line in _lines(measurement):
        console.print(Text(line), soft_wrap=True)
    count = f"{processes} processes" if processes > 1 else "one process"
    console.print(
        Text(
            f"Times are per invocation, by the device's timer, over the runs of {count}; spread is sd/mean."
        ),
        soft_wrap=True,
    )


def _measurement_cells(kernel: KernelSummary) -> list[str]:
    times = (kernel.median_s, kernel.mean_s, kernel.min_s, kernel.max_s)
    spread = "" if kernel.spread is None else f"{100 * kernel.spread:.1f} %"
    counts = (format_count(kernel.runs), format_count(kernel.invocations))
    return [kernel.kernel, *counts, *map(format_seconds, times), spread]


def _lines(measurement: Measurement) -> list[str]:
    copies, host = map(format_seconds, (measurement.transfer_median_s, measurement.host_median_s))
    expected = not measurement.energy and measurement.sensor != "none"
    return [
        f"copies {copies} a run; whole run on the host {host} (medians)",
        *(
            f"energy {row['energy_j'] / row['runs']:.4g} J a run ({row['sensor']} {row['domain']}, "
            f"{row['samples']} samples in {format_seconds(row['duration_s'])})"
            for row in measurement.energy
        ),
        *(["energy: no sensor (crosscast devices says why)"] if expected else []),
        *(f"warning: {warning}" for warning in measurement.warnings),
    ]


def _sentence(warning: RecordWarning) -> str:
    return warning.warning if warning.kernel is None else f"{warning.kernel}: {warning.warning}"
