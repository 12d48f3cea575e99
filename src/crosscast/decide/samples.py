"""Sample runs: where a kernel is run first, runs at a configuration joined, and files of runs."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.configuration import Configuration, Setting, setting_text
from crosscast.data.files import csv_rows, whole_file
from crosscast.data.schema import DEVICE_COLUMN, KERNEL, POWER, TIME, TIMES, domain_column
from crosscast.decide.power_cap import highest, lowest
from crosscast.errors import InputError
from crosscast.measure.regions.file import is_history, read_history
from crosscast.measure.regions.samples import samples_of
from crosscast.predict.configuration.artefact import ConfigurationCard
from crosscast.predict.configuration.data import KernelAt, Observed, Space, Surfaces, total_power

_TOTAL = ""
"""Name under which the power of the whole is averaged."""

_TOLERANCE = 1e-6
"""Share by which a number may differ from a known setting, as decimals are cut."""

_MOST_BYTES = 16 << 20

Sampler = Callable[[Surfaces, int], tuple[int, ...]]
"""Chooses the sample configurations by the training kernels and a seed."""

_Row = Mapping[str, str | float]


@dataclass
class Aggregate:
    """Runs of one kernel at one configuration: means of times and counters, and energy over time."""

    runs: int = 0
    time_s: float = 0.0  # Mean
    powers: dict[str, float] = field(default_factory=dict)  # By domain, of the runs that tell them
    counters: dict[str, float] = field(default_factory=dict)
    _weights: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(
        self,
        time_s: float,
        power_w: float | None,
        domains: Mapping[str, float],
        counters: Mapping[str, float],
    ) -> None:
        """Add a run; the mean of one value is that value, to the last bit."""
        self.runs += 1
        self.time_s += (time_s - self.time_s) / self.runs
        powers = domains if power_w is None else {_TOTAL: power_w, **domains}
        for kind, means, values, weight in (
            ("power", self.powers, powers, time_s),
            ("counter", self.counters, counters, 1.0),
        ):
            for name, value in values.items():
                whole = self._weights[kind, name] = self._weights.get((kind, name), 0.0) + weight
                before = means.get(name, 0.0)
                means[name] = before + (value - before) * (weight / whole)

    @property
    def power_w(self) -> float | None:
        """Mean power in watts, if any run told it."""
        return self.powers.get(_TOTAL)


def observed_of(
    aggregates: Mapping[int, Aggregate],
    domains: Sequence[str] | None = None,
    counters: Sequence[str] | None = None,
) -> Observed:
    """What a model is given of a kernel: its configurations with both time and power, by their numbers."""
    numbers = sorted(number for number, each in aggregates.items() if each.power_w is not None)
    at = [aggregates[number] for number in numbers]
    if domains is None:
        domains = sorted({name for each in aggregates.values() for name in each.powers} - {_TOTAL})
    if counters is None:
        counters = sorted({name for each in aggregates.values() for name in each.counters})
    return Observed(
        np.array(numbers, np.int64),
        np.array([each.time_s for each in at]),
        np.array([each.powers[_TOTAL] for each in at]),
        {name: np.array([each.powers.get(name, math.nan) for each in at]) for name in domains},
        {name: np.array([each.counters.get(name, math.nan) for each in at]) for name in counters},
    )


@dataclass(frozen=True)
class SettingColumns:
    """The columns that tell the configurations of a space apart."""

    space: Space

    @cached_property
    def known(self) -> tuple[str, ...]:
        """All settings that a configuration has, sorted."""
        return tuple(sorted({name for each in self.space.configurations for name in each.settings}))

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Columns that must be there: the device if there are several, and the settings that vary on one."""
        device = (DEVICE_COLUMN,) if len(self.space.devices) > 1 else ()
        return (*device, *sorted({*self.space.knobs, *self.space.words}))

    def cells(self, number: int) -> dict[str, str]:
        """What the needed columns, and the device, hold for a configuration."""
        configuration = self.space.configurations[number]
        columns = {
            name: configuration.settings.get(name, "") for name in self.needed if name != DEVICE_COLUMN
        }
        return {DEVICE_COLUMN: configuration.device} | {name: _text(value) for name, value in columns.items()}

    def number(self, cells: _Row, where: str) -> int:
        """Number of the configuration of a row."""
        device = self._device(cells, where)
        own = [each for each in self.space.configurations if each.device == device]
        told = {name: cells[name] for name in self.known if _there(cells, name)}
        fitting = [
            each
            for each in own
            if all(
                name in each.settings and _equals(each.settings[name], cell, f"{where}: {name}")
                for name, cell in told.items()
            )
        ]
        # Where knobs are not on all configurations, nothing may stand for one that does not have it.
        exact = [each for each in fitting if {*told} & {*self.needed} == {*each.settings} & {*self.needed}]
        if len(fitting) == 1 or len(exact) == 1:
            return self.space.number_of((exact or fitting)[0])
        if fitting:
            varying = [name for name in self.needed if len({each.settings.get(name) for each in fitting}) > 1]
            lacking = ", ".join(name for name in varying if name not in told)
            raise InputError(
                f"{where}: {lacking}: expected what it was set to, found several configurations "
                f"that it may be, such as {fitting[0]} and {fitting[1]}"
            )
        found = ", ".join(f"{name} {setting_text(value)}" for name, value in told.items()) or "no setting"
        raise InputError(
            f"{where}: expected one of the {len(own)} configurations of {device} that the model knows, such "
            f"as {own[0]}; found {found}"
        )

    def _device(self, cells: _Row, where: str) -> str:
        devices = self.space.devices
        if not _there(cells, DEVICE_COLUMN) and len(devices) == 1:
            return devices[0]
        if cells.get(DEVICE_COLUMN, "") not in devices:
            found = cells.get(DEVICE_COLUMN) or "nothing"
            raise InputError(f"{where}: {DEVICE_COLUMN}: expected one of {', '.join(devices)}, found {found}")
        return str(cells[DEVICE_COLUMN])


def _there(row: _Row, name: str) -> bool:
    return row.get(name, "") != ""


def _equals(setting: Setting, cell: str | float, where: str) -> bool:
    if isinstance(setting, str):
        return str(cell) == setting
    try:
        value = float(cell)
    except ValueError:
        raise InputError(f"{where}: expected a number such as {setting:g}, found {cell!r}") from None
    return math.isclose(value, setting, rel_tol=_TOLERANCE, abs_tol=0)


def _text(setting: Setting) -> str:
    if isinstance(setting, str):
        return setting
    return str(int(setting)) if setting.is_integer() and abs(setting) < 1e15 else repr(setting)


_RIDGE = 0.1
_COMMON = 0.9
"""Share of the kernels of the pair that most have run at that other pairs must have."""


def two_samples(surfaces: Surfaces, seed: int = 0) -> tuple[int, ...]:
    """Choose two sample configurations by the training kernels.

    On one device the highest configuration and the lowest are taken: what a kernel does without limits, and
    how much they cost it. Of several devices, two are taken, and the highest or lowest configuration of each:
    those from whose times and powers a linear regression predicts best what a kernel takes elsewhere, each
    training kernel left out, among pairs at which most kernels have run. (The paper has two devices, and
    takes one configuration of each: Bailey et al. 2014, table II.)
    """
    known = surfaces.known
    space = surfaces.space
    ran: Flags = np.any(known, axis=0)
    devices = [
        device for number, device in enumerate(space.devices) if ran[space.device_numbers == number].any()
    ]
    # On a device, configurations that few kernels ran at are no samples.
    common = _common(surfaces)
    high = [highest(space, common, device) for device in devices]
    low = [lowest(space, common, device) for device in devices]
    if len(devices) == 1:
        pairs = [(high[0], low[0])] if high != low else []
    else:
        corners = [
            (number, corner) for number, pair in enumerate(zip(high, low, strict=True)) for corner in pair
        ]
        pairs = [
            (a, b)
            for (one, a), (other, b) in combinations(dict.fromkeys(corners), 2)
            if one != other and (known[:, a] & known[:, b]).any()
        ]
    if not pairs:
        raise InputError(f"{surfaces.label}: expected two configurations at which kernels ran, found fewer")
    if len(pairs) == 1:
        return pairs[0]
    counts = np.array([(known[:, a] & known[:, b]).sum() for a, b in pairs])
    frequent = [pair for pair, count in zip(pairs, counts, strict=True) if count >= _COMMON * counts.max()]
    return min(frequent, key=lambda pair: (_error(surfaces, pair), pair))


def _common(surfaces: Surfaces) -> Flags:
    counts = surfaces.known.sum(axis=0)
    numbers = surfaces.space.device_numbers
    most = np.array([counts[numbers == number].max() for number in range(len(surfaces.space.devices))])
    common: Flags = (counts >= _COMMON * most[numbers]) & (counts > 0)
    return common


def _error(surfaces: Surfaces, pair: tuple[int, int]) -> float:
    """Mean squared error of the logarithms of time and power elsewhere, each kernel left out."""
    columns = list(pair)
    told = surfaces.known[:, columns].all(axis=1)
    if told.sum() < 2:
        return np.inf
    time, power = np.log(surfaces.time_s[told]), np.log(surfaces.power_w[told])
    inputs = np.hstack([time[:, columns], power[:, columns]])
    errors = [_left_out(inputs, time - time[:, columns[:1]]), _left_out(inputs, power)]
    return float(np.nanmean(np.concatenate(errors, axis=1)))


def _left_out(inputs: Reals, values: Reals) -> Reals:
    """``(n, c)`` Squared errors of a ridge regression at each kernel that it is not fitted to."""
    squared = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        there = np.isfinite(values[:, column])
        if there.sum() < 2:
            continue
        rows = inputs[there]
        spread = rows.std(axis=0)
        rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        wanted = values[there, column] - values[there, column].mean()
        inner = rows.T @ rows + _RIDGE * len(rows) * np.eye(rows.shape[1])
        hat = rows @ np.linalg.solve(inner, rows.T) + 1 / len(rows)
        squared[there, column] = ((wanted - hat @ wanted) / (1 - np.diag(hat))) ** 2
    return squared


@dataclass(frozen=True)
class SampledKernel:
    """A kernel that was run."""

    name: str  # What it is called
    names: tuple[str, ...]  # What it may be asked for by
    observed: Observed  # Its runs; several at one configuration are averaged
    runs: tuple[int, ...]  # How many there were at each of them

    def configurations(self, card: ConfigurationCard) -> tuple[Configuration, ...]:
        """Where it was run."""
        return tuple(card.space.configurations[number] for number in self.observed.numbers)


@dataclass(frozen=True)
class SampleFile:
    """What a file holds."""

    kernels: tuple[SampledKernel, ...]  # The kernels, in the order of their first rows
    notes: tuple[str, ...]  # Sentences about columns that nobody knows, or that the model misses


def read_samples(path: str | Path, card: ConfigurationCard) -> SampleFile:
    """Read runs of kernels.

    A row is a run: ``device`` (where there are several), what each setting that varies was set to, ``time_s``
    (or ``runtime_s``) in seconds, ``power_w`` or the powers ``<domain>_w`` that make it up, in watts, and
    counters by their names; with ``application``, ``kernel``, ``size`` for several kernels in a file. Rows at
    other configurations than the samples are welcome. Several rows at one configuration are repeats: their
    times are averaged, and their powers are energy over time.
    """
    path = Path(path)
    columns = SettingColumns(card.space)
    kernels: dict[str, _Read] = {}
    unknown: dict[str, None] = {}
    rows = _history(path) if is_history(path, "samples") else _csv(path, columns)
    for where, row in rows:
        number = columns.number(row, where)
        device = card.space.configurations[number].device
        name, names = _kernel(row, path)
        kernel = kernels.setdefault(name, _Read(names))
        kernel.aggregates.setdefault(number, Aggregate()).add(*_measured(row, where, card, device))
        kernel.lines[number] = where
        known = {*columns.known, *KERNEL, *TIMES, DEVICE_COLUMN, POWER, *card.counters}
        known.update(map(domain_column, _domains(card, device)))
        unknown.update(dict.fromkeys(name for name in row if name not in known))
    if not kernels:
        raise InputError(f"{path}: expected a row for each run, found none")
    found = []
    for name, kernel in kernels.items():
        _check_runs(kernel, f"{path}: {name}" if len(kernels) > 1 else str(path), card)
        observed = observed_of(kernel.aggregates, card.domains, card.counters)
        runs = tuple(kernel.aggregates[number].runs for number in observed.numbers.tolist())
        found.append(SampledKernel(name, kernel.names, observed, runs))
    notes = [f"columns that the model does not know: {', '.join(unknown)}"] if unknown else []
    return SampleFile(tuple(found), tuple(f"{path}: {note}" for note in [*notes, *_missed(found, card)]))


@dataclass
class _Read:
    """What was read of a kernel: its runs, and the last line of each configuration."""

    names: tuple[str, ...]
    aggregates: dict[int, Aggregate] = field(default_factory=dict)
    lines: dict[int, str] = field(default_factory=dict)


def _domains(card: ConfigurationCard, device: str) -> tuple[str, ...]:
    """Those that the model knows, and those that make up the power of a device."""
    return tuple(dict.fromkeys((*card.domains, *(name for names in card.totals[device] for name in names))))


def _measured(
    row: _Row, where: str, card: ConfigurationCard, device: str
) -> tuple[float, float | None, dict[str, float], dict[str, float]]:
    """Time, power, powers of domains and counters of a run."""
    counters = {name: _number(row, name, where) for name in card.counters if _there(row, name)}
    columns = {name: domain_column(name) for name in _domains(card, device)}
    domains = {
        name: _number(row, column, where, "watts of at least 0", 0.0)
        for name, column in columns.items()
        if _there(row, column)
    }
    time_s = next((_positive(row, name, where) for name in TIMES if _there(row, name)), None)
    if time_s is None:
        raise InputError(f"{where}: {TIME}: expected seconds above 0, found nothing")
    power_w = total_power(card.totals[device], domains)
    if power_w is None and _there(row, POWER):
        power_w = _positive(row, POWER, where)
    if power_w is not None and not power_w > 0:
        raise InputError(f"{where}: {POWER}: expected watts above 0, found a sum of {power_w:g}")
    return time_s, power_w, domains, counters


def _check_runs(kernel: _Read, where: str, card: ConfigurationCard) -> None:
    """Refuse a kernel that lacks a run at a sample, or whose power is not known somewhere."""
    for number in card.numbers:
        if number not in kernel.aggregates:
            raise InputError(
                f"{where}: expected a run at {card.space.configurations[number]}, which the model needs, "
                "found none"
            )
    for number, aggregate in kernel.aggregates.items():
        if aggregate.power_w is None:
            device = card.space.configurations[number].device
            sets = [" and ".join(map(domain_column, names)) for names in card.totals[device]]
            instead = f" (or {', or '.join(sets)})" if sets else ""
            line = kernel.lines[number]
            raise InputError(f"{line}: {POWER}: expected watts above 0{instead}, found nothing")


def _wholes(card: ConfigurationCard) -> set[str]:
    """Domains that are the whole: the column of the whole stands for theirs."""
    return {names[0] for sets in card.totals.values() for names in sets if len(names) == 1}


def _missed(kernels: Sequence[SampledKernel], card: ConfigurationCard) -> Iterator[str]:
    powers = [name for name in card.domains if name not in _wholes(card)]
    for what, names, values in (
        ("powers", powers, [each.observed.domains for each in kernels]),
        ("counters", card.counters, [each.observed.counters for each in kernels]),
    ):
        missed = [name for name in names if any(not math.isfinite(sum(each[name])) for each in values)]
        if missed:
            yield (
                f"{what} that the model has learned from are not in every row, so it is less sure: "
                f"{', '.join(missed)}"
            )


def _history(path: Path) -> Iterator[tuple[str, _Row]]:
    history = read_history(path)
    keys = history.keys()
    for key in keys:
        for row in samples_of(history, key):
            yield f"{path}: {key}", {"kernel": str(key), **row}


def _csv(path: Path, columns: SettingColumns) -> Iterator[tuple[str, _Row]]:
    where, header, rows = csv_rows(path, "samples", f"{TIME} and {POWER}", _MOST_BYTES)
    for name in columns.needed:
        if name not in header:
            found = ", ".join(header)
            raise InputError(f"{where}: expected a column {name}, found {found[:200]}")
    if not any(name in header for name in TIMES):
        raise InputError(f"{where}: expected a column {TIME}, found {', '.join(header)[:200]}")
    yield from rows


def _number(row: _Row, name: str, where: str, expected: str = "a number", least: float = -math.inf) -> float:
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= least):
        raise InputError(f"{where}: {name}: expected {expected}, found {str(row[name])[:60]}")
    return value


def _positive(row: _Row, name: str, where: str) -> float:
    return _number(row, name, where, f"{'watts' if name == POWER else 'seconds'} above 0", math.ulp(0.0))


def _kernel(row: _Row, path: Path) -> tuple[str, tuple[str, ...]]:
    """Name of the kernel of a row, and what it may be asked for by."""
    application, kernel, size = (str(row.get(name, "")) for name in KERNEL)
    if not (application or kernel):
        name = f"{path.stem} {size}".strip()
        return name, (name,)
    full = str(KernelAt(application or kernel, kernel or application, size)).strip()
    return full, tuple(dict.fromkeys(name for name in (full, kernel, application) if name))


def template_columns(card: ConfigurationCard) -> tuple[str, ...]:
    """What is to be filled in for each run: time, power, the power of each domain, counters."""
    domains = [domain_column(name) for name in card.domains if name not in _wholes(card)]
    return (TIME, POWER, *domains, *card.counters)


def write_template(path: Path, card: ConfigurationCard) -> None:
    """Write a CSV file with a row for each sample configuration, whose measurements are to be filled in.

    A file that is there is left as it is: it may have been filled in.
    """
    if path.is_file():
        raise InputError(f"{path}: expected no such file, as it may have been filled in; found one")
    columns = SettingColumns(card.space)
    rows = [columns.cells(number) for number in card.numbers]
    names = [*rows[0], *template_columns(card)]
    try:
        with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise InputError(f"{path}: cannot write the template ({error.strerror or error})") from error
