"""Runs of new kernels as people and programs write them: CSV, or the history of a program's regions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosscast.choose.setting_columns import SettingColumns
from crosscast.choose.tally import Tally, observed_of
from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions.reading import is_history, read_history
from crosscast.measure.regions.samples import samples_of
from crosscast.predict.configuration.configuration_card import ConfigurationCard
from crosscast.predict.configuration.power_totals import total_power
from crosscast.predict.configuration.surfaces import KernelAt, Observed
from crosscast.tables.csv_rows import csv_rows
from crosscast.tables.run_columns import DEVICE, KERNEL, POWER, TIME, TIMES, domain_column

__all__ = ["SampleFile", "SampledKernel", "read_samples"]

_MOST_BYTES = 16 << 20

_Row = Mapping[str, str | float]


@dataclass(frozen=True)
class SampledKernel:
    """A kernel that was run.

    Parameters
    ----------
    name
        What it is called.
    names
        What it may be asked for by.
    observed
        Its runs; several at one configuration are averaged.
    runs
        How many there were at each of them.
    """

    name: str
    names: tuple[str, ...]
    observed: Observed
    runs: tuple[int, ...]

    def configurations(self, card: ConfigurationCard) -> tuple[Configuration, ...]:
        """Where it was run."""
        return tuple(card.space.configurations[number] for number in self.observed.numbers)


@dataclass(frozen=True)
class SampleFile:
    """What a file holds.

    Parameters
    ----------
    kernels
        The kernels, in the order of their first rows.
    notes
        Sentences about columns that nobody knows, or that the model misses.
    """

    kernels: tuple[SampledKernel, ...]
    notes: tuple[str, ...]


def read_samples(path: str | Path, card: ConfigurationCard) -> SampleFile:
    """Read runs of kernels.

    A row is a run: ``device`` (where there are several), what each setting that varies was set to, ``time_s``
    (or ``runtime_s``) in seconds, ``power_w`` or the powers ``<domain>_w`` that make it up, in watts, and
    counters by their names; with ``application``, ``kernel``, ``size`` for several kernels in a file. Rows at
    other configurations than the samples are welcome. Several rows at one configuration are repeats: their
    times are averaged, and their powers are energy over time.

    Parameters
    ----------
    path
        The file: CSV, or a history that `crosscast.profiled` wrote.
    card
        Card of the model that is to be asked.

    Raises
    ------
    InputError
        If the file cannot be read, is empty or too large; a column or cell is missing or holds what it must
        not; a row is at a configuration that the model does not know; or a kernel was not run at a sample
        configuration. Names the line.
    """
    path = Path(path)
    reader = _Reader(path, SettingColumns(card.space), card)
    rows = _history(path) if is_history(path, "samples") else _csv(path, reader)
    for where, row in rows:
        reader.add(where, row)
    return reader.finish()


@dataclass
class _Read:
    """What was read of a kernel: its runs, and the last line of each configuration."""

    names: tuple[str, ...]
    tallies: dict[int, Tally] = field(default_factory=dict)
    lines: dict[int, str] = field(default_factory=dict)


@dataclass
class _Reader:
    path: Path
    columns: SettingColumns
    card: ConfigurationCard
    kernels: dict[str, _Read] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)

    def add(self, where: str, row: _Row) -> None:
        """Take note of a run."""
        number = self.columns.number(row, where)
        device = self.card.space.configurations[number].device
        domains = _numbers(row, {name: domain_column(name) for name in self._domains(device)}, where, least=0)
        counters = _numbers(row, {name: name for name in self.card.counters}, where)
        time_s = next((_positive(row, name, where) for name in TIMES if _there(row, name)), None)
        if time_s is None:
            raise InputError(f"{where}: {TIME}: expected seconds above 0, found nothing")
        power_w = total_power(self.card.totals[device], domains)
        if power_w is None and _there(row, POWER):
            power_w = _positive(row, POWER, where)
        if power_w is not None and not power_w > 0:
            raise InputError(f"{where}: {POWER}: expected watts above 0, found a sum of {power_w:g}")
        name, names = _kernel(row, self.path)
        kernel = self.kernels.setdefault(name, _Read(names))
        kernel.tallies.setdefault(number, Tally()).add(time_s, power_w, domains, counters)
        kernel.lines[number] = where
        known = {*self.columns.known, *KERNEL, *TIMES, DEVICE, POWER, *self.card.counters}
        known |= {domain_column(name) for name in (*self.card.domains, *self._domains(device))}
        self.unknown.update(dict.fromkeys(name for name in row if name not in known))

    def _domains(self, device: str) -> tuple[str, ...]:
        totals = (name for names in self.card.totals[device] for name in names)
        return tuple(dict.fromkeys((*self.card.domains, *totals)))

    def finish(self) -> SampleFile:
        """Check that nothing is missing."""
        if not self.kernels:
            raise InputError(f"{self.path}: expected a row for each run, found none")
        found = tuple(self._sampled(name, read) for name, read in self.kernels.items())
        return SampleFile(found, tuple(self._notes(found)))

    def _sampled(self, name: str, read: _Read) -> SampledKernel:
        observed = observed_of(read.tallies, self.card.domains, self.card.counters)
        told = set(observed.numbers.tolist())
        for number in self.card.samples:
            if number not in read.tallies:
                about = f"{name}: " if len(self.kernels) > 1 else ""
                raise InputError(
                    f"{self.path}: {about}expected a run at {self.card.space.configurations[number]}, which "
                    f"the model needs, found none"
                )
        for number in read.tallies:
            if number not in told:
                device = self.card.space.configurations[number].device
                raise InputError(
                    f"{read.lines[number]}: {POWER}: expected watts above 0{self._instead(device)}, found "
                    "nothing"
                )
        runs = tuple(read.tallies[number].runs for number in observed.numbers.tolist())
        return SampledKernel(name, read.names, observed, runs)

    def _instead(self, device: str) -> str:
        sets = [" and ".join(map(domain_column, names)) for names in self.card.totals[device]]
        return f" (or {', or '.join(sets)})" if sets else ""

    def _notes(self, kernels: Sequence[SampledKernel]) -> Iterator[str]:
        if self.unknown:
            yield f"{self.path}: columns that the model does not know: {', '.join(self.unknown)}"
        for what, names, values in (
            ("powers", self.card.domains, [each.observed.domains for each in kernels]),
            ("counters", self.card.counters, [each.observed.counters for each in kernels]),
        ):
            absent = [name for name in names if any(not math.isfinite(sum(each[name])) for each in values)]
            # Where the whole is one domain, its own column is not missed.
            whole = {names[0] for sets in self.card.totals.values() for names in sets if len(names) == 1}
            missed = [name for name in absent if what == "counters" or name not in whole]
            if missed:
                yield (
                    f"{self.path}: {what} that the model has learned from are not in every row, so it is "
                    f"less sure: {', '.join(missed)}"
                )


def _history(path: Path) -> Iterator[tuple[str, _Row]]:
    history = read_history(path)
    keys = history.keys()
    for key in keys:
        for row in samples_of(history, key):
            yield f"{path}: {key}", {"kernel": str(key), **row}


def _csv(path: Path, reader: _Reader) -> Iterator[tuple[str, _Row]]:
    where, header, rows = csv_rows(path, "samples", f"{TIME} and {POWER}", _MOST_BYTES)
    for name in reader.columns.needed:
        if name not in header:
            found = ", ".join(header)
            raise InputError(f"{where}: expected a column {name}, found {found[:200]}")
    if not any(name in header for name in TIMES):
        raise InputError(f"{where}: expected a column {TIME}, found {', '.join(header)[:200]}")
    yield from rows


def _there(row: _Row, name: str) -> bool:
    return row.get(name, "") != ""


def _number(row: _Row, name: str, where: str, expected: str) -> float:
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {name}: expected {expected}, found {str(row[name])[:60]}")
    return value


def _positive(row: _Row, name: str, where: str) -> float:
    unit = "watts" if name == POWER else "seconds"
    value = _number(row, name, where, f"{unit} above 0")
    if not value > 0:
        raise InputError(f"{where}: {name}: expected {unit} above 0, found {row[name]}")
    return value


def _numbers(row: _Row, columns: Mapping[str, str], where: str, least: float = -math.inf) -> dict[str, float]:
    """Those that are there, by name."""
    expected = "a number" if least == -math.inf else "watts of at least 0"
    found = {
        name: _number(row, column, where, expected) for name, column in columns.items() if _there(row, column)
    }
    for name, value in found.items():
        if value < least:
            raise InputError(f"{where}: {columns[name]}: expected {expected}, found {value:g}")
    return found


def _kernel(row: _Row, path: Path) -> tuple[str, tuple[str, ...]]:
    """Name of the kernel of a row, and what it may be asked for by."""
    application, kernel, size = (str(row.get(name, "")) for name in KERNEL)
    if not (application or kernel):
        name = f"{path.stem} {size}".strip()
        return name, (name,)
    full = str(KernelAt(application or kernel, kernel or application, size)).strip()
    return full, tuple(dict.fromkeys(name for name in (full, kernel, application) if name))
