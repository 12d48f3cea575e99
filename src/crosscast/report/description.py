"""A dataset on a terminal: what is in it, what is missing, how noisy it is, and what to be careful with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.report.console import console_on
from crosscast.report.corun_contents import contents_lines, failure_lines
from crosscast.report.settings import setting_range
from crosscast.tables.configurations import DeviceConfigurations
from crosscast.tables.description import CellNoise, Description, Failure
from crosscast.tables.warnings_of import RecordWarning
from crosscast.units import format_count

__all__ = ["print_description"]

_SHOWN = 3
"""Failures, and warnings of a rule, that are spelled out; the JSON form has all."""
_MOST_SIZES = 8
"""Sizes that have a column each; of more, the page has their sum."""
_NONE = "—"


def print_description(description: Description, stream: TextIO) -> None:
    """Print a page about a dataset.

    Parameters
    ----------
    description
        What is in it.
    stream
        Where to print.
    """
    console = console_on(stream)
    for line in _counts(description):
        console.print(Text(line, style="bold"))
    for device in description.configurations:
        if device.settings:
            console.print(Text(_configurations(device)), soft_wrap=True)
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


def _configurations(device: DeviceConfigurations) -> str:
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
    place = _place(worst.application, worst.kernel, worst.size)
    return [device, format_count(len(cells)), f"{middle:.1%}", f"{largest:.1%}", place]


def _place(*names: str | None) -> str:
    return " ".join(filter(None, names))


def _print_failures(console: Console, description: Description) -> None:
    if not description.failed:
        return
    console.print()
    console.print(Text(f"{_count(len(description.failed), 'session')} failed", style="bold"))
    lines = (
        f"{_place(failure.application, failure.size)} on {_where(failure)}"
        f"{_process(description, failure.repeat)}: {failure.reason}"
        for failure in description.failed
    )
    _print_first(console, list(lines))


def _print_warnings(console: Console, description: Description) -> None:
    by_rule: defaultdict[str, list[str]] = defaultdict(list)
    for warning in description.warnings:
        place = _place(warning.application, warning.kernel, warning.size)
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
