"""Report on a dataset: what it holds and lacks, noise, failures and warnings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from crosscast.data.corun import CoRunContents, CoRunFailure
from crosscast.data.description import (
    CellNoise,
    Description,
    DeviceConfigurations,
    Failure,
    RecordWarning,
)
from crosscast.report.document import NONE, Heading, Part, Report, Table
from crosscast.report.fields import plural, setting_range, table_of, writer_of
from crosscast.units import format_count


def contents_lines(contents: CoRunContents) -> list[str]:
    """Make a line for the isolated runs of each device, and one for its mixes of each size."""
    isolated_runs = [
        f"{each.device}: {plural(each.isolated_runs, 'isolated run')}{_but([(each.failed, 'failed')])}"
        for each in contents.isolated_runs
    ]
    mixes = [
        f"{mix.device}: {plural(mix.mixes, 'mix', 'mixes')} of {mix.members}"
        f"{'' if mix.configurations == 1 else f' in {format_count(mix.configurations)} configurations'}"
        f"{_but([(mix.not_fitting, 'did not fit'), (mix.failed, 'failed')])}"
        for mix in contents.mixes
    ]
    return [*isolated_runs, *mixes]


def failure_lines(contents: CoRunContents) -> list[str]:
    """Make a line for each application that failed, alone or in a mix."""
    return [f"{_corun_label(failure)}: {failure.reason}" for failure in contents.failed]


def _corun_label(failure: CoRunFailure) -> str:
    settings = "" if failure.configuration == "{}" else f" {failure.configuration}"
    where = f"{failure.application} {failure.size} on {failure.device}{settings}"
    if failure.mix is None:
        return f"{where}, alone"
    repeat = f", repeat {failure.repeat}" if failure.repeat else ""
    return f"{where}, in the mix {failure.mix}{repeat}"


def _but(parts: list[tuple[int, str]]) -> str:
    nonzero = [f"{format_count(number)} {what}" for number, what in parts if number]
    return f", of which {' and '.join(nonzero)}" if nonzero else ""


_SHOWN = 3
"""Largest number of failures, and of warnings of a rule, that are listed; the JSON form has all."""
_MOST_SIZES = 8
"""Largest number of sizes with separate columns; more are summed."""


def description_report(description: Description) -> Report:
    """Describe a dataset."""
    first, *others = _counts(description)
    parts: list[Part] = [Heading(first, 1), *others]
    parts += [_configured(device) for device in description.configurations if device.settings]
    if description.kernels:
        parts += ["", *_grid(description)]
    if description.devices and not _has_only_corun(description):
        parts += ["", *_devices(description)]
    if lines := contents_lines(description.corun):
        parts += ["", *lines]
    if description.failed:
        lines = [
            f"{_joined(failure.application, failure.size)} on {_where(failure)}"
            f"{_process(description, failure.repeat)}: {failure.reason}"
            for failure in description.failed
        ]
        parts += _first(f"{plural(len(lines), 'session')} failed", lines)
    if description.corun.failed:
        lines = failure_lines(description.corun)
        parts += _first(f"{plural(len(lines), 'application')} failed", lines)
    for rule, lines in _by_rule(description).items():
        parts += _first(f"{plural(len(lines), 'warning')} by the rule {rule}", lines)
    for name, text, tables in _notes(description):
        parts += [Heading(f"note on {tables}: {name}", 3), text]
    return Report(parts)


def _has_only_corun(description: Description) -> bool:
    """Whether a dataset has isolated runs and mixes only."""
    return bool(description.corun.isolated_runs or description.corun.mixes) and not (
        description.kernels or description.records or description.energy
    )


def _counts(description: Description) -> Iterator[str]:
    only_corun = _has_only_corun(description)
    yield ", ".join(
        plural(len(names), noun)
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
        plural(description.cells, "measurement point"),
        plural(description.records, "record"),
        plural(description.profiles, "profile"),
        plural(description.sessions, "session"),
        f"{format_count(len(description.failed))} failed",
    ]
    if description.energy:
        rows.append(plural(description.energy, "row of energy", "rows of energy"))
    yield ", ".join(rows)


def _configured(device: DeviceConfigurations) -> str:
    settings = ", ".join(setting_range(name, values) for name, values in device.settings.items())
    power = f"power of {', '.join(device.domains)}" if device.domains else "no power"
    return f"{device.device}: {plural(device.configurations, 'configuration')}: {settings}; {power}"


def _grid(description: Description) -> list[Part]:
    """Make the table of measured and profiled kernels by application and size."""
    kernels = Counter(map(_application, description.kernels))
    expected = Counter(
        (_application(name), size) for name, sizes in description.kernel_sizes.items() for size in sizes
    )
    missing = Counter((gap.application or "", gap.size, gap.lacks) for gap in description.missing)
    devices = len(description.devices)
    groups = {size: [size] for size in description.sizes}
    if len(groups) > _MOST_SIZES:
        groups = {f"all {format_count(len(groups))} sizes": list(description.sizes)}
    rows = []
    for application, number in sorted(kernels.items()):
        row = [application or NONE, format_count(number)]
        for sizes in groups.values():
            total = sum(expected[application, size] for size in sizes)
            unprofiled, unmeasured = (
                sum(missing[application, size, what] for size in sizes) for what in ("profile", "records")
            )
            profiled = _share(total, unprofiled)
            measured = _share(total * devices, unmeasured) if devices else ""
            if not description.profiles:
                row.append(measured or NONE)
            elif {measured, profiled} <= {NONE, ""}:
                row.append(NONE)
            else:
                row.append(f"{measured} ({profiled})".strip())
        rows.append(row)
    parts = ["points measured, of all kernels on all devices"] if devices else []
    if description.profiles:
        parts.append("kernels profiled, of all, in brackets")
    return [Table(["application", "kernels", *groups], rows), "; ".join([*parts, _missing(description)])]


def _application(kernel: str) -> str:
    return kernel.rpartition("/")[0]


def _share(total: int, missing: int) -> str:
    return f"{format_count(total - missing)}/{format_count(total)}" if total > missing else NONE


def _missing(description: Description) -> str:
    missing = Counter(gap.lacks for gap in description.missing)
    if not missing:
        return "nothing is missing"
    cells, profiles = plural(missing["records"], "measurement point"), plural(missing["profile"], "profile")
    return f"{cells} and {profiles} are missing (--json names them)"


def _devices(description: Description) -> list[Part]:
    noise: defaultdict[str, list[CellNoise]] = defaultdict(list)
    for cell in description.noise:
        noise[cell.device].append(cell)
    rows: list[dict[str, object]] = []
    for device in description.devices:
        spreads = {cell: cell.relative_sd for cell in noise[device] if cell.relative_sd is not None}
        rows.append({"device": device, "points": len(noise[device])})
        if spreads:
            worst = max(spreads, key=lambda cell: spreads[cell])
            largest = {"spread": spreads[worst], "cell": _joined(worst.application, worst.kernel, worst.size)}
            rows[-1] |= {"middle": median(spreads.values()), **largest}
    hosts = [
        f"{device} was measured on {', '.join(names)}"
        for device, names in sorted(description.hosts.items())
        if len(names) > 1
    ]
    columns = {"device": "device", "points": "points"}
    if all(cell.relative_sd is None for cell in description.noise):
        return [table_of(rows, columns), *hosts]
    columns |= {"median spread": "middle", "largest": "spread", "which is that of": "cell"}
    legend = "spread: standard deviation of a measurement point's run means over their mean"
    return [table_of(rows, columns, formats={"median spread": writer_of("spread")}), legend, *hosts]


def _joined(*names: str | None) -> str:
    return " ".join(filter(None, names))


def _by_rule(description: Description) -> dict[str, list[str]]:
    """Warnings as sentences, by their rule."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for warning in sorted(description.warnings, key=lambda warning: warning.rule):
        name = _joined(warning.application, warning.kernel, warning.size)
        process = _process(description, warning.repeat)
        lines[warning.rule].append(f"{name} on {_where(warning)}{process}: {warning.warning}")
    return lines


def _where(cell: Failure | RecordWarning) -> str:
    """Device, with its settings if it has any."""
    return cell.device if cell.configuration == "{}" else f"{cell.device} {cell.configuration}"


def _process(description: Description, repeat: int | None) -> str:
    return "" if repeat is None or (repeat == 0 and description.repeats < 2) else f", process {repeat}"


def _first(title: str, lines: Sequence[str]) -> list[Part]:
    """The first lines below a heading, and the number of further ones."""
    hidden = len(lines) - _SHOWN
    more = [f"  and {format_count(hidden)} more (--json names them)"] if hidden > 0 else []
    return [Heading(title, 3), *(f"  {line}" for line in lines[:_SHOWN]), *more]


def _notes(description: Description) -> Iterable[tuple[str, str, str]]:
    """Name, text and tables of each distinct note."""
    tables: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for table, notes in description.notes.items():
        for name, text in notes.items():
            tables[name, text].append(table)
    return [(name, text, ", ".join(names)) for (name, text), names in tables.items()]
