"""Summary of a dataset: its contents, gaps and noise, and warnings about its times."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.configuration import Configuration, Setting
from crosscast.data.corun import CoRunContents, contents_of
from crosscast.data.dataset import TABLES, Dataset
from crosscast.data.fields import TableRow
from crosscast.data.library import pa, pc
from crosscast.data.merge import hosts_of
from crosscast.data.schema import SESSIONS, SIZES, size_order
from crosscast.data.table import Table, distinct, key_numbers, notes_of
from crosscast.data.views import cells_of, least_times, of_successful_sessions
from crosscast.errors import InputError
from crosscast.units import format_seconds


@dataclass(frozen=True)
class DeviceConfigurations:
    """The configurations of a device that have records."""

    device: str  # Key of the device
    configurations: int  # Number of configurations
    # Values of each knob by name: numbers (in SI units) in order, then words
    settings: Mapping[str, tuple[Setting, ...]]
    domains: tuple[str, ...]  # Domains whose power was measured, sorted


def configurations_of(records: Table, energy: Table) -> tuple[DeviceConfigurations, ...]:
    """Find the configurations of each device that has records, in the order of the devices."""
    configurations: defaultdict[str, list[str]] = defaultdict(list)
    for row in distinct(records, ("device", "configuration"))[0].to_pylist():
        configurations[row["device"]].append(row["configuration"])
    energy = energy.filter(pc.fill_null(pc.greater(energy.column("duration_s"), 0), False))
    domains: defaultdict[str, list[str]] = defaultdict(list)
    for row in distinct(energy, ("device", "domain"))[0].to_pylist():
        domains[row["device"]].append(row["domain"])
    return tuple(
        DeviceConfigurations(device, len(texts), _settings(device, texts), tuple(sorted(domains[device])))
        for device, texts in sorted(configurations.items())
    )


def _settings(device: str, texts: list[str]) -> dict[str, tuple[Setting, ...]]:
    values: defaultdict[str, set[Setting]] = defaultdict(set)
    for text in texts:
        try:
            configuration = Configuration.of(device, text)
        except InputError:
            # A table may hold any JSON; configurations without knobs are counted, too.
            continue
        for name, value in configuration.settings.items():
            values[name].add(value)
    return {name: tuple(sorted(settings, key=_order)) for name, settings in sorted(values.items())}


def _order(value: Setting) -> tuple[float, str]:
    return (float("inf"), value) if isinstance(value, str) else (value, "")


MOST_SPREAD = 0.10
"""Largest standard deviation of a cell's run means, over their mean, without a warning."""
LEAST_TICKS = 100
"""Least mean time of an invocation, over the resolution of the device's timer."""
MOST_CLOCK_CHANGE = 0.05
"""Largest change of the clock during a session, over the clock before."""
MOST_LOAD = 0.5
"""Most other processes ready to run, before or after a session."""
LEAST_RUNS = 50
"""Fewest recorded runs of a session."""
LEAST_LOOP_S = 2.0
"""Shortest time of all recorded runs of a session."""

_NO_SETTINGS = "{}"

_CELL = attrgetter("application", "size", "device", "configuration")

Rule = Literal["spread", "resolution", "ticks", "clock", "load", "runs", "loop"]


@dataclass(frozen=True)
class RecordWarning:
    """A reason to doubt some times."""

    rule: Rule  # The violated rule
    warning: str  # The finding, as a sentence
    application: str  # Cell of the times; the configuration as JSON
    size: str
    device: str
    configuration: str
    kernel: str | None = None  # The kernel, where it is about one
    repeat: int | None = None  # Number of the process, where it is about one


def warnings_of(records: Table, sessions: Table) -> list[RecordWarning]:
    """Check times of one or many sessions against the rules.

    Sessions that failed, and their records, are left out. A rule whose facts are missing is skipped. The
    number of runs is not checked for imported sessions with settings (they have no `environment`), as sweeps
    over configurations have few runs of each.
    """
    records = of_successful_sessions(records, sessions)
    sessions = sessions.filter(pc.is_null(sessions.column("failure")))
    warnings = [*_cell_warnings(records, sessions), *_few_runs(records, sessions)]
    for row in sessions.to_pylist():
        warnings += _session_warnings(TableRow(row))
    return sorted(warnings, key=lambda each: (_CELL(each), each.kernel or "", each.repeat or 0, each.rule))


def _cell_warnings(records: Table, sessions: Table) -> Iterator[RecordWarning]:
    cells = cells_of(records)
    numbers = cells.numbers
    means, deviations = cells.times.mean(), cells.times.sd()
    resolution = _resolution(records, sessions)
    least = least_times(records)
    too_short = np.bincount(numbers, weights=(least <= 0) | (least < resolution), minlength=len(means))
    # Resolution of the coarsest timer of a cell's sessions; NaN if none is known.
    coarsest = np.full(len(means), np.nan)
    np.fmax.at(coarsest, numbers, resolution)
    spread = deviations > MOST_SPREAD * means
    few_ticks = means < LEAST_TICKS * coarsest
    for cell in np.flatnonzero(spread | few_ticks | (too_short > 0)):
        key = cells.keys.slice(cell, 1).to_pylist()[0]
        mean, runs, short = means[cell], cells.times.counts[cell], too_short[cell]
        brackets = "" if np.isnan(coarsest[cell]) else f" ({format_seconds(coarsest[cell])})"
        if spread[cell]:
            text = f"the times of its {runs} runs spread by {_percent(deviations[cell] / mean)} (standard "
            text += f"deviation over mean), more than {_percent(MOST_SPREAD)}"
            yield RecordWarning("spread", text, **key)
        if short:
            text = f"{short:.0f} of its {_runs(runs)} {'has' if short == 1 else 'have'} a time of 0 or under "
            yield RecordWarning("resolution", f"{text}the timer's resolution{brackets}", **key)
        elif few_ticks[cell]:
            text = f"its mean time of {format_seconds(mean)} is less than {LEAST_TICKS} times the timer's "
            yield RecordWarning("ticks", f"{text}resolution{brackets}", **key)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _resolution(records: Table, sessions: Table) -> Reals:
    """Resolution of the session's timer in seconds for each record; NaN where it is not known."""
    wanted, numbers = key_numbers([records, sessions], SESSIONS.key)
    known = np.full(int(max(wanted.max(initial=-1), numbers.max(initial=-1))) + 1, np.nan)
    known[numbers] = sessions.column("timer_resolution_s").to_numpy()
    return known[wanted]


def _few_runs(records: Table, sessions: Table) -> Iterator[RecordWarning]:
    """Warnings about sessions that have records but no row in the table of sessions."""
    wanted, numbers = key_numbers([records, sessions], SESSIONS.key)
    records = records.filter(pa.array(~np.isin(wanted, numbers)))
    # The kernels of a session share its runs.
    runs, _ = distinct(records, (*SESSIONS.key, "run"))
    keys, numbers_of_runs = distinct(runs, SESSIONS.key)
    for key, count in zip(keys.to_pylist(), np.bincount(numbers_of_runs).tolist(), strict=True):
        if count < LEAST_RUNS and key["configuration"] == _NO_SETTINGS:
            yield RecordWarning("runs", _few(count), **key)


def _few(runs: int) -> str:
    return f"its session has {_runs(runs)}, fewer than {LEAST_RUNS}"


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _session_warnings(session: TableRow) -> Iterator[RecordWarning]:
    def warning(rule: Rule, text: str) -> RecordWarning:
        application, size, device, configuration = map(session.text, SESSIONS.key[:-1])
        repeat = session.integer("repeat")
        return RecordWarning(rule, text, application, size, device, configuration, repeat=repeat)

    runs = session.integer_or_none("runs")
    is_of_sweep = session["configuration"] != _NO_SETTINGS and session["environment"] is None
    if runs is not None and runs < LEAST_RUNS and not is_of_sweep:
        yield warning("runs", _few(runs))
    before, after = map(session.number_or_none, ("clock_before_hz", "clock_after_hz"))
    if before and after is not None and abs(after - before) > MOST_CLOCK_CHANGE * before:
        change = f"{(after - before) / before * 100:+.0f} % during its runs"
        yield warning("clock", f"the clock changed by {change}, more than {_percent(MOST_CLOCK_CHANGE)}")
    for when in ("before", "after"):
        load = session.number_or_none(f"load_{when}")
        if load is not None and load > MOST_LOAD:
            others = "1 other process" if f"{load:.2g}" == "1" else f"{load:.2g} other processes"
            yield warning("load", f"{others} wanted to run {when} its runs, more than {MOST_LOAD:g}")
    loop = session.number_or_none("loop_s")
    if loop is not None and loop < LEAST_LOOP_S:
        least = format_seconds(LEAST_LOOP_S)
        yield warning("loop", f"its runs took {format_seconds(loop)}, less than {least}")


_Kernel = tuple[str | None, str]


@dataclass(frozen=True)
class Failure:
    """A session that failed, with the configuration as JSON, and the reason."""

    application: str
    size: str
    device: str
    configuration: str
    repeat: int
    reason: str


@dataclass(frozen=True)
class Missing:
    """A profile that a kernel lacks at a size, or records that it lacks on a device."""

    application: str | None
    kernel: str
    size: str
    device: str | None
    lacks: str


@dataclass(frozen=True)
class CellNoise:
    """Spread of a cell's run means: deviation over mean (empty for one run), quartiles in seconds."""

    application: str
    kernel: str
    size: str
    device: str
    configuration: str
    runs: int
    relative_sd: float | None
    quartiles_s: tuple[float, float, float]


@dataclass(frozen=True)
class Description:
    """Summary of a dataset, as `describe` makes it."""

    # Names, sorted (the known sizes from tiny to large); a kernel's is `application/kernel`
    applications: tuple[str, ...]
    kernels: tuple[str, ...]
    sizes: tuple[str, ...]
    devices: tuple[str, ...]
    hosts: Mapping[str, tuple[str, ...]]  # Machines on which each device was measured, as far as known
    # Sizes at which profiles and records of each kernel are expected: those of `SIZES` that any kernel has,
    # and the kernel's other inputs
    kernel_sizes: Mapping[str, tuple[str, ...]]
    repeats: int  # Largest number of processes (`repeat`) that measured a kernel in the same cell
    cells: int  # Number of cells with records of sessions that did not fail
    profiles: int  # Number of rows of each table
    records: int
    energy: int
    sessions: int
    configurations: tuple[DeviceConfigurations, ...]  # Configurations of each device that has records
    corun: CoRunContents  # Isolated runs and mixes, and their failures
    failed: tuple[Failure, ...]  # Sessions that failed
    missing: tuple[Missing, ...]  # Missing profiles and records of kernels at their sizes, on all devices
    warnings: tuple[RecordWarning, ...]  # Reasons to doubt times
    noise: tuple[CellNoise, ...]  # Spread of each cell
    notes: Mapping[str, Mapping[str, str]]  # Texts stored with the tables, by table and name

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return {name: _plain(value) for name, value in vars(self).items()}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        cells = vars(value).items()
        return {name: json.loads(cell) if name == "configuration" else _plain(cell) for name, cell in cells}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value


def describe(dataset: Dataset) -> Description:
    """Describe a valid dataset."""
    records = of_successful_sessions(dataset.records, dataset.sessions)
    sizes = _kernel_sizes(dataset)
    devices = tuple(sorted(dataset.devices.column("device").to_pylist()))
    noise = _noise(records)
    return Description(
        applications=tuple(sorted(_names(dataset, "application"))),
        kernels=tuple(map(_label, sizes)),
        sizes=tuple(sorted(_names(dataset, "size"), key=size_order)),
        devices=devices,
        hosts={device: tuple(hosts) for device, hosts in hosts_of(dataset.sessions.to_pylist()).items()},
        kernel_sizes={_label(kernel): sizes_of for kernel, sizes_of in sizes.items()},
        repeats=_repeats(dataset),
        cells=len(noise),
        profiles=dataset.profiles.num_rows,
        records=dataset.records.num_rows,
        energy=dataset.energy.num_rows,
        sessions=dataset.sessions.num_rows,
        configurations=configurations_of(records, of_successful_sessions(dataset.energy, dataset.sessions)),
        corun=contents_of(dataset.isolated_runs, dataset.mixes),
        failed=_failed(dataset.sessions),
        missing=tuple(_missing(sizes, devices, dataset.profiles, records)),
        warnings=tuple(warnings_of(dataset.records, dataset.sessions)),
        noise=noise,
        notes={schema.table: notes for schema in TABLES if (notes := notes_of(dataset.table(schema)))},
    )


def _names(dataset: Dataset, column: str) -> set[str]:
    tables = (dataset.profiles, dataset.records, dataset.sessions, dataset.isolated_runs, dataset.mixes)
    return {name for table in tables for name in pc.unique(table.column(column)).to_pylist()} - {None}


def _label(kernel: _Kernel) -> str:
    return "/".join(filter(None, kernel))


def _kernel_sizes(dataset: Dataset) -> dict[_Kernel, tuple[str, ...]]:
    """Kernels in the order of their names, each with its sizes in increasing order."""
    columns = ("application", "size")
    sizes: defaultdict[_Kernel, set[str]] = defaultdict(set)
    for kernel, application, size in _distinct(dataset.profiles, "kernel", *columns) | _timed(
        dataset, *columns
    ):
        sizes[application, kernel] |= {size} - {None}
    shared = set(SIZES) & set().union(*sizes.values())
    return {
        kernel: tuple(sorted(sizes[kernel] | shared, key=size_order))
        for kernel in sorted(sizes, key=lambda kernel: (kernel[0] or "", kernel[1]))
    }


def _repeats(dataset: Dataset) -> int:
    # Counted by kernel: kernels of one application may have separate sessions, which are not repeats.
    measured = _timed(dataset, "application", "size", "device", "configuration", "repeat")
    return max(Counter(row[:-1] for row in measured).values(), default=0)


def _timed(dataset: Dataset, *columns: str) -> set[tuple[Any, ...]]:
    """Kernels of records and of sessions, each with what the columns say of it."""
    timed = _distinct(dataset.records, "kernel", *columns)
    for kernels, *others in _distinct(dataset.sessions, "kernels", *columns):
        timed |= {(kernel, *others) for kernel in json.loads(kernels)}
    return timed


def _distinct(table: Table, *columns: str) -> set[tuple[Any, ...]]:
    rows = table.group_by(list(columns)).aggregate([]).to_pylist()
    return {tuple(row[column] for column in columns) for row in rows}


def _failed(sessions: Table) -> tuple[Failure, ...]:
    rows = sessions.filter(pc.is_valid(sessions.column("failure"))).to_pylist()
    failures = [Failure(**{name: row[name] for name in SESSIONS.key}, reason=row["failure"]) for row in rows]
    return tuple(sorted(failures, key=lambda each: (_CELL(each), each.repeat)))


def _missing(
    kernel_sizes: Mapping[_Kernel, tuple[str, ...]], devices: tuple[str, ...], profiles: Table, records: Table
) -> Iterable[Missing]:
    profiled = _distinct(profiles, "application", "kernel", "size")
    measured = _distinct(records, "application", "kernel", "size", "device")
    for kernel, sizes in kernel_sizes.items():
        for size in sizes:
            if (*kernel, size) not in profiled:
                yield Missing(*kernel, size, None, "profile")
            for device in devices:
                if (*kernel, size, device) not in measured:
                    yield Missing(*kernel, size, device, "records")


def _noise(records: Table) -> tuple[CellNoise, ...]:
    cells = cells_of(records)
    times = cells.times
    means, deviations = times.mean().tolist(), times.sd().tolist()
    quartiles = np.stack([times.quantile(share) for share in (0.25, 0.5, 0.75)], axis=1).tolist()
    noise = [
        CellNoise(
            **cell,
            runs=int(times.counts[number]),
            relative_sd=deviation / mean if math.isfinite(deviation) and mean > 0 else None,
            quartiles_s=tuple(quartiles[number]),
        )
        for number, (cell, mean, deviation) in enumerate(
            zip(cells.keys.to_pylist(), means, deviations, strict=True)
        )
    ]
    return tuple(sorted(noise, key=lambda n: (n.application, n.kernel, n.size, n.device, n.configuration)))
