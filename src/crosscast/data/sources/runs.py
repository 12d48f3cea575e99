"""Runs on configurations, published or in tables of users: each with one time and one power."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from crosscast.data.configuration import Configuration, Setting
from crosscast.data.dataset import Dataset
from crosscast.data.files import csv_rows, number_of_text
from crosscast.data.schema import (
    DEVICE_COLUMN,
    DEVICES,
    ENERGY,
    KERNEL,
    NODE,
    POWER,
    RECORDS,
    SESSIONS,
    TIME,
    TIMES,
    Schema,
    device_domains,
    domain_column,
    json_text,
)
from crosscast.data.sources.source import SourceContents
from crosscast.data.table import table_of
from crosscast.devices.catalogue import catalogue
from crosscast.errors import InputError

DEFAULT_SIZE = "default"
"""Size of programs that were run with one input only."""


@dataclass(frozen=True)
class RunPower:
    """Mean power of a run's domain, in watts, and the sensor that measured it."""

    sensor: str
    domain: str
    watts: float


@dataclass(frozen=True)
class ConfiguredRun:
    """A row of the source."""

    application: str  # Application, kernel and problem size
    kernel: str
    size: str
    configuration: Configuration  # Device and settings
    time_s: float  # Time in seconds; the mean if the source has means
    powers: Sequence[RunPower] = ()  # Mean power of each domain during the run
    runs: int | None = None  # Number of runs that the source averaged; `None` if not known
    counters: Mapping[str, float] = field(default_factory=dict)  # Counters of a run, by name
    repeat: int = 0  # Number of the run among those of the same application, size and configuration
    # Whether the powers were measured for the kernel alone; else for the whole application
    is_alone: bool = False


def with_separate_sessions(runs: Iterable[ConfiguredRun]) -> list[ConfiguredRun]:
    """Number the runs so that each is a separate session.

    Counters belong to a session, which kernels of one application at the same size and configuration would
    share. Kernels that were counted separately get different repeat numbers.
    """
    repeats: defaultdict[tuple[object, ...], int] = defaultdict(int)
    numbered = []
    for run in runs:
        session = (run.application, run.size, run.configuration)
        numbered.append(replace(run, repeat=repeats[session]))
        repeats[session] += 1
    return numbered


def device_row(device: str, source: str, **facts: object) -> dict[str, object]:
    """Make a row of the table of devices with facts from one source."""
    return {"device": device, **facts, "sources": dict.fromkeys(facts, source)}


def dataset_of(
    label: str,
    devices: Iterable[Mapping[str, object]],
    runs: Sequence[ConfiguredRun],
    notes: Mapping[str, Mapping[str, str]],
) -> Dataset:
    """Make a dataset: a record and a session for each run, and a row of energy for each of its powers."""
    rows: dict[Schema, list[Mapping[str, object]]] = {
        DEVICES: [*devices],
        RECORDS: [],
        ENERGY: [],
        SESSIONS: [],
    }
    for run in runs:
        key = {
            "application": run.application,
            "size": run.size,
            "device": run.configuration.device,
            "configuration": json_text(dict(run.configuration.settings)),
            "repeat": run.repeat,
        }
        rows[RECORDS].append({**key, "kernel": run.kernel, "run": 0, "time_s": [run.time_s]})
        counted = {"runs": run.runs, "counters": dict(run.counters) or None}
        rows[SESSIONS].append({**key, "kernels": [run.kernel], **counted})
        watched = {"kernel": run.kernel if run.is_alone else None, "run": 0, "runs": 1}
        for power in run.powers:
            energy = {"energy_j": power.watts * run.time_s, "duration_s": run.time_s}
            rows[ENERGY].append({**key, **watched, "sensor": power.sensor, "domain": power.domain, **energy})
    return Dataset(label, **{s.table: table_of(s, rows[s], notes.get(s.table)) for s in rows})


def dataset_of_source(contents: SourceContents, runs: Sequence[ConfiguredRun]) -> Dataset:
    """Make a dataset of a source's runs, with its notes and the devices that have runs."""
    devices = contents.devices_in(run.configuration.device for run in runs)
    return dataset_of(contents.label, devices, runs, contents.notes)


_SENSOR = "unknown"
_SAME = 1e-6
"""Relative difference between a sum of powers and the device's power that rounding of decimals may cause."""

_NOTES = {
    "records": "A run each; repeats of a cell are told apart by their number. ",
    "energy": (
        "Mean power times time, as the runs had powers and not energies. The domain node is the power of the "
        "whole, where it is not the sum of the other domains. "
    ),
}


@dataclass(frozen=True)
class RecordedRun:
    """A run of a user's table."""

    application: str  # Application, kernel and problem size
    kernel: str
    size: str
    configuration: Configuration  # Device and settings
    time_s: float  # Time in seconds, above 0
    # Mean power of the whole device in watts, above 0; none if not known, or if it is the sum of domains
    power_w: float | None
    domains_w: Mapping[str, float]  # Mean power of each domain in watts, by name
    counters: Mapping[str, float]  # Counters, by name
    where: str  # File and line, for messages

    @property
    def has_power(self) -> bool:
        """Whether any power is known."""
        return self.power_w is not None or bool(self.domains_w)


@dataclass(frozen=True)
class RunTable:
    """Runs of a file."""

    runs: Sequence[RecordedRun]
    notes: Sequence[str] = ()  # Sentences about the roles of columns
    left_out: Mapping[str, int] = field(default_factory=dict)  # Number of runs left out, by reason
    expects_power: bool = True  # Whether powers have a place in it, even if all are missing


def dataset_of_tables(label: str, files: Mapping[str, RunTable]) -> tuple[Dataset, tuple[str, ...]]:
    """Make a dataset: each run is a repeat of its cell, with its power and its counters.

    Where power was measured, a run without it is kept if another run of its cell has one, which is used for
    the cell; else it is left out.
    """
    all_runs = list(chain.from_iterable(table.runs for table in files.values()))
    powered = {_cell(run) for run in all_runs if run.has_power}
    expects_power = any(table.expects_power for table in files.values())
    usable = [run for run in all_runs if not expects_power or _cell(run) in powered]
    left_out = Counter({"without power": len(all_runs) - len(usable)})
    for table in files.values():
        left_out.update(table.left_out)
    reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items() if count)
    if not usable:
        raise InputError.of(
            where=label, expected="runs with a power", found=f"none{reasons and f' ({reasons})'}"
        )
    _check_settings(usable)
    by_device: dict[str, list[RecordedRun]] = {}
    for run in usable:
        by_device.setdefault(run.configuration.device, []).append(run)
    with_node = {device for device, runs in by_device.items() if _needs_node(device, runs)}
    numbered = with_separate_sessions(
        _configured(run, run.configuration.device in with_node) for run in usable
    )
    origin = f"Runs of one's own: {', '.join(files)}."
    roles = " ".join(f"{line}." for table in files.values() for line in table.notes)
    notes = {name: {"origin": origin} for name in ("devices", "records", "energy", "sessions")}
    for name, text in _NOTES.items():
        if name == "energy" and not powered:
            continue
        notes[name]["what they are"] = f"{text}{roles}".strip()
    sheets = catalogue()
    devices = [
        sheets.get(name) or device_row(name, origin, name=name, type=NODE) for name in sorted(by_device)
    ]
    return dataset_of(label, devices, numbered, notes), tuple(_summary(usable, by_device, left_out, reasons))


def _cell(run: RecordedRun) -> tuple[object, ...]:
    return run.application, run.kernel, run.size, run.configuration


def _configured(run: RecordedRun, with_node: bool) -> ConfiguredRun:
    node = {NODE: run.power_w} if with_node and run.power_w is not None else {}
    powers = [RunPower(_SENSOR, domain, watts) for domain, watts in {**run.domains_w, **node}.items()]
    what = run.application, run.kernel, run.size, run.configuration
    return ConfiguredRun(*what, run.time_s, powers, 1, run.counters, is_alone=True)


def _needs_node(device: str, runs: Sequence[RecordedRun]) -> bool:
    """Whether the device's power must be stored, as it is not the sum of the domains in all runs."""
    powered = [run for run in runs if run.has_power]
    has_total = any(run.power_w is not None for run in powered)
    domains = device_domains(sorted({name for run in powered for name in run.domains_w}))
    for run in powered:
        of_domains = [domain_column(name) for name in domains if name not in run.domains_w]
        if lacking := [POWER] * (run.power_w is None) if has_total else of_domains:
            expected = f"watts, as in other runs on {device}"
            raise InputError.of(where=run.where, field=lacking[0], expected=expected, found="nothing")
    return has_total and not all(
        math.isclose(
            run.power_w or 0.0,
            math.fsum(run.domains_w.get(name, math.nan) for name in domains),
            rel_tol=_SAME,
        )
        for run in powered
    )


def _check_settings(runs: Sequence[RecordedRun]) -> None:
    kinds: dict[str, type] = {}
    for run in runs:
        for name, value in run.configuration.settings.items():
            if kinds.setdefault(name, type(value)) is not type(value):
                raise InputError.of(
                    where=run.where, field=name, expected="numbers or words throughout", found="both"
                )


def _summary(
    runs: Sequence[RecordedRun], devices: Mapping[str, object], left_out: Mapping[str, int], reasons: str
) -> Iterator[str]:
    applications = len({run.application for run in runs})
    configurations = len({run.configuration for run in runs})
    cells = len({_cell(run) for run in runs})
    yield (
        f"runs: {len(runs):,}, cells: {cells:,}, applications: {applications:,}, "
        f"configurations: {configurations:,} ({', '.join(devices)})"
    )
    if reasons:
        yield f"runs left out: {sum(left_out.values()):,} ({reasons})"
    alike = len(runs) - len({(_cell(run), run.time_s, run.power_w, *run.domains_w.items()) for run in runs})
    if alike:
        yield f"runs with the time and power of another of their cell, to the last digit: {alike:,}"
    for column, names in (("application", {run.application for run in runs}), ("device", set(devices))):
        spellings: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(names):
            spellings[name.casefold()].append(name)
        if several := [", ".join(each) for each in spellings.values() if len(each) > 1]:
            yield f"{column}: names that differ in capitals alone stay apart: {'; '.join(several)}"


_SETTING = re.compile(r"(.+_)?((cap|limit)_w|clock_hz)|cores|threads")
_WORDS = ("cluster", "scheduling", "governor")
_BOOKKEEPING = ("run", "repeat", "started_s")
_DOMAIN = re.compile(r"(.+)_w")
_POWER_WORDS = re.compile("power|watt", re.IGNORECASE)
_OTHER_UNIT = re.compile(r".+_(us|ms|[kmg]hz|[mk]w|kj|mj|wh)", re.IGNORECASE)
_KNOWN = (*KERNEL, DEVICE_COLUMN, *TIMES, POWER)
_MOST_COLUMNS = 1000
_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class ColumnRoles:
    """Columns by their role, each in the order of the file."""

    settings: tuple[str, ...]  # Settings of a run
    domains: tuple[str, ...]  # Names of the domains with a power
    counters: tuple[str, ...]  # All other columns
    # Columns that repeat others, such as energies and numbers of runs, or that are named like a setting where
    # the caller named the settings
    ignored: tuple[str, ...]

    def sentences(self, header: Sequence[str]) -> Iterator[str]:
        """Describe the roles, a line for each."""
        yield f"settings: {', '.join(self.settings) or 'none'}"
        powers = [name for name in header if name == POWER]
        yield f"powers: {', '.join([*powers, *(f'{name}_w' for name in self.domains)]) or 'none'}"
        if self.counters:
            yield f"counters: {', '.join(self.counters)}"
        if self.ignored:
            yield f"passed over: {', '.join(self.ignored)}"


def is_positive_setting(name: str) -> bool:
    """Whether a setting is a positive number: a cap, a clock, a number of cores."""
    return _SETTING.fullmatch(name) is not None


def roles_of(header: Sequence[str], settings: Sequence[str] | None, where: str) -> ColumnRoles:
    """Find the role of each column."""
    _check_names(header, where)
    for name in settings or ():
        if name in _KNOWN or name not in header:
            names = ", ".join(column for column in header if column not in _KNOWN)[:200]
            raise InputError.of(
                where=where, field="settings", expected=f"columns out of {names or 'none'}", found=f"{name}"
            )
    usual = [name for name in header if is_positive_setting(name) or name in _WORDS]
    chosen = usual if settings is None else [name for name in header if name in settings]
    others = [name for name in header if name not in (*_KNOWN, *chosen)]
    ignored = [name for name in others if name in (*usual, *_BOOKKEEPING) or name.endswith("_j")]
    rest = [name for name in others if name not in ignored]
    for name in rest:
        if _OTHER_UNIT.fullmatch(name):
            raise InputError.of(
                where=where,
                field=name,
                expected=(
                    f"seconds, hertz, watts or joules in columns (as in {TIME}, core_clock_hz, gpu_cap_w)"
                ),
                found="another unit",
            )
    domains = [name.removesuffix("_w") for name in rest if _DOMAIN.fullmatch(name)]
    if POWER in header and NODE in domains:
        raise InputError.of(
            where=where, expected=f"{POWER} or {NODE}_w, the power of the whole", found="both"
        )
    meant = [name for name in rest if _POWER_WORDS.search(name)]
    if POWER not in header and not domains and meant:
        raise InputError.of(
            where=where, expected=f"a column {POWER}, or powers of domains such as cpu_w", found=f"{meant[0]}"
        )
    counters = [name for name in rest if not _DOMAIN.fullmatch(name)]
    return ColumnRoles(tuple(chosen), tuple(domains), tuple(counters), tuple(ignored))


def _check_names(header: Sequence[str], where: str) -> None:
    if len(header) > _MOST_COLUMNS:
        raise InputError.of(where=where, expected=f"{_MOST_COLUMNS} columns at most", found=len(header))
    for name in header:
        if not 0 < len(name) <= _MOST_CHARACTERS or not name.isprintable():
            expected = f"columns with names of 1 to {_MOST_CHARACTERS} characters"
            raise InputError.of(where=where, expected=expected, found=repr(name[:60]))
    for names in (KERNEL[:1], TIMES):
        if not any(name in header for name in names):
            raise InputError.of(
                where=where, expected=f"a column {names[0]}", found=f"{', '.join(header)[:200]}"
            )


DEFAULT_DEVICE = "machine"
"""Device of runs without a device."""

_MOST_BYTES = 256 << 20

_Row = tuple[str, Mapping[str, str]]


def read_run_table(path: Path, settings: Sequence[str] | None = None) -> RunTable:
    """Read a table with a row for each run.

    Columns: ``application``; optionally ``kernel``, ``size`` and ``device``; ``time_s`` in seconds;
    ``power_w``, or the powers ``<domain>_w`` that sum to it, or both, in watts; settings and counters, which
    `roles_of` distinguishes. An empty cell is a missing value.
    """
    where, header, lines = csv_rows(path, "runs", f"{KERNEL[0]}, {TIME} and {POWER}", _MOST_BYTES)
    roles = roles_of(header, settings, where)
    rows = list(lines)
    if not rows:
        raise InputError.of(where=path, expected="a row for each run", found="none")
    words = {name for name in roles.settings if _holds_words(name, rows)}
    runs = [_run(row, roles, words) for row in rows]
    notes = [f"{path.name}: {line}" for line in roles.sentences(header)]
    return RunTable(runs, notes, expects_power=POWER in header or bool(roles.domains))


def _holds_words(name: str, rows: Sequence[_Row]) -> bool:
    """Whether a setting is a word in all rows, rather than a number; raise InputError if rows differ."""
    if is_positive_setting(name):
        return False
    values = [(where, cells[name]) for where, cells in rows if cells[name]]
    are_words = [math.isnan(number_of_text(text)) for _, text in values]
    if len(set(are_words)) > 1:
        where, text = values[are_words.index(not are_words[0])]
        expected = "a word" if are_words[0] else "a number"
        raise InputError.of(
            where=where, field=name, expected=f"{expected}, as in the rows before", found=repr(text[:60])
        )
    return any(are_words)


def _run(row: _Row, roles: ColumnRoles, words: set[str]) -> RecordedRun:
    where, cells = row
    application = _text(cells, "application", where)
    if not application:
        raise InputError.of(where=where, field="application", expected="a name", found="nothing")
    time_s = next((_amount(cells, name, where, above=True) for name in TIMES if cells.get(name)), None)
    if time_s is None:
        raise InputError.of(where=where, field=TIME, expected="seconds above 0", found="nothing")
    domains_w = {
        name: _amount(cells, domain_column(name), where)
        for name in roles.domains
        if cells[domain_column(name)]
    }
    power_w = _amount(cells, POWER, where, above=True) if cells.get(POWER) else None
    if power_w is None and domains_w and not any(domains_w[name] for name in device_domains(domains_w)):
        raise InputError.of(
            where=where, expected="powers above 0 watts", found=f"0 in {', '.join(domains_w)}"
        )
    settings = {name: _setting(cells, name, where, name in words) for name in roles.settings if cells[name]}
    counters = {name: _counter(cells, name, where) for name in roles.counters if cells[name]}
    kernel = _text(cells, "kernel", where) or application
    size = _text(cells, "size", where) or DEFAULT_SIZE
    configuration = Configuration(_text(cells, DEVICE_COLUMN, where) or DEFAULT_DEVICE, settings)
    return RecordedRun(application, kernel, size, configuration, time_s, power_w, domains_w, counters, where)


def _text(cells: Mapping[str, str], name: str, where: str) -> str:
    text = cells.get(name, "")
    if len(text) > _MOST_CHARACTERS or not text.isprintable():
        raise InputError.of(
            where=where,
            field=name,
            expected=f"a name of at most {_MOST_CHARACTERS} characters",
            found=repr(text[:60]),
        )
    return text


def _setting(cells: Mapping[str, str], name: str, where: str, is_word: bool) -> Setting:
    if is_word:
        return _text(cells, name, where)
    if is_positive_setting(name):
        value = _amount(cells, name, where, above=True)
        if name.endswith("clock_hz") and value < _LEAST_CLOCK_HZ:
            raise InputError.of(
                where=where, field=name, expected="hertz, such as 1.2e9", found=repr(cells[name][:60])
            )
        return value
    return number_of_text(cells[name])


def _counter(cells: Mapping[str, str], name: str, where: str) -> float:
    value = number_of_text(cells[name])
    if math.isnan(value):
        raise InputError.of(
            where=where,
            field=name,
            expected="the number of a counter",
            found=f"{cells[name][:60]!r} (if the run was set to it, name {name} among the settings)",
        )
    return value


_MOST_AMOUNT = 1e15
"""More than any time in seconds or power in watts; their product, the energy, then is finite."""


_LEAST_CLOCK_HZ = 1e7  # Less than any clock in hertz, and more than any in kHz, MHz or GHz


def _amount(cells: Mapping[str, str], name: str, where: str, *, above: bool = False) -> float:
    value = number_of_text(cells[name])
    if not 0 <= value <= _MOST_AMOUNT or (above and not value):
        most = f" and at most {_MOST_AMOUNT:g}" if value > 0 else ""
        expected = f"a number {'above' if above else 'of at least'} 0{most}"
        raise InputError.of(where=where, field=name, expected=expected, found=repr(cells[name][:60]))
    return value
