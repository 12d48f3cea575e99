"""Sample runs: the sample configurations, averages of runs at a configuration, and files of runs."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.data.configuration import Configuration, Setting, settings_text
from crosscast.data.files import atomic_file, csv_rows, number_of_text
from crosscast.data.schema import DEVICE_COLUMN, KERNEL, POWER, TIME, TIMES, domain_column
from crosscast.decide import highest, lowest
from crosscast.errors import InputError
from crosscast.measure.regions import SUFFIX, read_history, samples_of
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    KernelAt,
    Observed,
    Surfaces,
    total_power,
)
from crosscast.prediction.configuration.artefact import ConfigurationCard
from crosscast.prediction.trained import UnsuitedError

_TOTAL = ""
"""Name under which the total power is averaged."""

_TOLERANCE = 1e-6
"""Relative tolerance of numbers for known settings, as files round decimals."""

_MOST_BYTES = 16 << 20
_MOST = 1e9
"""Most seconds or watts of a run."""

Sampler = Callable[[Surfaces, int], tuple[int, ...]]
"""Chooses the sample configurations by the training kernels and a seed."""

_Row = Mapping[str, str | float]


@dataclass
class Aggregate:
    """Runs of one kernel at one configuration: means of times and counters, and energy over time."""

    runs: int = 0
    time_s: float = 0.0  # Mean
    powers: dict[str, float] = field(default_factory=dict)  # By domain, of the runs with powers
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
                total = self._weights[kind, name] = self._weights.get((kind, name), 0.0) + weight
                before = means.get(name, 0.0)
                means[name] = before + (value - before) * (weight / total)

    @property
    def power_w(self) -> float | None:
        """Mean power in watts, if any run has it."""
        return self.powers.get(_TOTAL)


def observed_of(
    aggregates: Mapping[int, Aggregate],
    domains: Sequence[str] | None = None,
    counters: Sequence[str] | None = None,
) -> Observed:
    """Return the observations of a kernel: its configurations with both time and power, by their numbers."""
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
    """The columns that identify the configurations of a space."""

    space: ConfigurationSpace

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Required columns: the device if there are several, and the settings that vary on one."""
        device = (DEVICE_COLUMN,) if len(self.space.devices) > 1 else ()
        return (*device, *sorted({*self.space.knobs, *self.space.words}))

    def cells(self, number: int) -> dict[str, str]:
        """Return the cells of the device and the required columns for a configuration."""
        configuration = self.space.configurations[number]
        names, settings = (name for name in self.needed if name != DEVICE_COLUMN), configuration.settings
        return {DEVICE_COLUMN: configuration.device} | {name: _text(settings.get(name, "")) for name in names}

    def number(self, cells: _Row, where: str) -> int:
        """Return the number of the configuration of a row."""
        devices = self.space.devices
        device = cells.get(DEVICE_COLUMN) or (devices[0] if len(devices) == 1 else "nothing")
        if device not in devices:
            expected = f"one of {', '.join(devices)}"
            raise UnsuitedError.of(where=where, field=DEVICE_COLUMN, expected=expected, found=device)
        on_device = [each for each in self.space.configurations if each.device == device]
        names = {name for each in self.space.configurations for name in each.settings}
        settings = {name: cells[name] for name in sorted(names) if cells.get(name, "") != ""}
        fitting = [
            each
            for each in on_device
            if all(
                name in each.settings and _equals(each.settings[name], cell, f"{where}: {name}")
                for name, cell in settings.items()
            )
        ]
        # Where some configurations lack a knob, an empty cell matches those.
        needed = {*self.needed}
        exact = [each for each in fitting if {*settings} & needed == {*each.settings} & needed]
        if len(fitting) == 1 or len(exact) == 1:
            return self.space.number_of((exact or fitting)[0])
        if fitting:
            varying = [name for name in self.needed if len({each.settings.get(name) for each in fitting}) > 1]
            lacking = ", ".join(name for name in varying if name not in settings)
            found = f"several configurations that it may be, such as {fitting[0]} and {fitting[1]}"
            raise InputError.of(where=where, field=lacking, expected="what it was set to", found=found)
        given = settings_text({name: _setting(cell) for name, cell in settings.items()})
        several = f"{len(on_device)} configurations of {device} that the model knows, such as {on_device[0]}"
        raise UnsuitedError.of(where=where, expected=f"one of the {several}; found {given or 'no setting'}")


def _equals(setting: Setting, cell: str | float, where: str) -> bool:
    if isinstance(setting, str):
        return str(cell) == setting
    try:
        return math.isclose(float(cell), setting, rel_tol=_TOLERANCE, abs_tol=0)
    except ValueError:
        expected = f"a number such as {setting:g}"
        raise InputError.of(where=where, expected=expected, found=repr(cell)) from None


def _setting(cell: str | float) -> Setting:
    try:
        return float(cell)
    except ValueError:
        return str(cell)


def _text(setting: Setting) -> str:
    if isinstance(setting, str):
        return setting
    return str(int(setting)) if setting.is_integer() and abs(setting) < 1e15 else repr(setting)


_RIDGE = 0.1
_COMMON = 0.9
"""Least number of kernels of a pair, relative to the pair with most."""


def two_samples(surfaces: Surfaces, seed: int = 0) -> tuple[int, ...]:
    """Choose two sample configurations: on one device the highest and the lowest; of several, corners of two.

    Bailey et al. 2014, table II, take one of each device. Among the pairs with most kernels, it is the one by
    which a regression predicts best.
    """
    known, space = surfaces.known, surfaces.space
    ran = known.sum(axis=0)
    most = np.array([ran[space.device_numbers == number].max() for number in range(len(space.devices))])
    # On a device, configurations with few kernels are no samples.
    common: Flags = (ran >= _COMMON * most[space.device_numbers]) & (ran > 0)
    devices = [device for device, count in zip(space.devices, most, strict=True) if count]
    corners = [(highest(space, common, device), lowest(space, common, device)) for device in devices]
    if len(devices) == 1:
        pairs = [pair for pair in corners if pair[0] != pair[1]]
    else:
        each = [(number, corner) for number, pair in enumerate(corners) for corner in pair]
        pairs = [
            (a, b)
            for (one, a), (other, b) in combinations(dict.fromkeys(each), 2)
            if one != other and (known[:, a] & known[:, b]).any()
        ]
    if not pairs:
        expected = "two configurations at which kernels ran"
        raise InputError.of(where=surfaces.label, expected=expected, found="fewer")
    if len(pairs) == 1:
        return pairs[0]
    counts = np.array([(known[:, a] & known[:, b]).sum() for a, b in pairs])
    frequent = [pair for pair, count in zip(pairs, counts, strict=True) if count >= _COMMON * counts.max()]
    return min(frequent, key=lambda pair: (_error(surfaces, pair), pair))


def _error(surfaces: Surfaces, pair: tuple[int, int]) -> float:
    """Return the leave-one-kernel-out mean squared error of log time and log power elsewhere."""
    columns = list(pair)
    complete = surfaces.known[:, columns].all(axis=1)
    if complete.sum() < 2:
        return np.inf
    time, power = np.log(surfaces.time_s[complete]), np.log(surfaces.power_w[complete])
    inputs = np.hstack([time[:, columns], power[:, columns]])
    errors = [_left_out(inputs, time - time[:, columns[:1]]), _left_out(inputs, power)]
    return float(np.nanmean(np.concatenate(errors, axis=1)))


def _left_out(inputs: Reals, values: Reals) -> Reals:
    """Return ``(n, c)`` leave-one-out squared errors of a ridge regression."""
    squared = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        known = np.isfinite(values[:, column])
        if known.sum() < 2:
            continue
        rows = inputs[known]
        spread = rows.std(axis=0)
        rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        wanted = values[known, column] - values[known, column].mean()
        inner = rows.T @ rows + _RIDGE * len(rows) * np.eye(rows.shape[1])
        hat = rows @ np.linalg.solve(inner, rows.T) + 1 / len(rows)
        squared[known, column] = ((wanted - hat @ wanted) / (1 - np.diag(hat))) ** 2
    return squared


@dataclass(frozen=True)
class SampledKernel:
    """A kernel with sample runs."""

    name: str
    names: tuple[str, ...]  # Names for requests
    observed: Observed  # Its runs; several at one configuration are averaged
    runs: tuple[int, ...]  # Number at each of them

    def configurations(self, card: ConfigurationCard) -> tuple[Configuration, ...]:
        """Return the configurations of its runs."""
        return tuple(card.space.configurations[number] for number in self.observed.numbers)


@dataclass(frozen=True)
class SampleFile:
    """The kernels of a file, and notes on its columns."""

    kernels: tuple[SampledKernel, ...]  # The kernels, in the order of their first rows
    notes: tuple[str, ...]  # Sentences about unknown columns, and about those that the model lacks


def read_samples(path: str | Path, card: ConfigurationCard) -> SampleFile:
    """Read runs of kernels, a row each; docs/choosing.md describes the columns.

    Times of repeats at one configuration are averaged, and powers are energy over time.
    """
    path = Path(path)
    rows = _history(path) if path.suffix == SUFFIX else _csv(path, SettingColumns(card.space))
    return kernels_of_rows(rows, path, card)


def kernels_of_rows(rows: Iterable[tuple[str, _Row]], path: Path, card: ConfigurationCard) -> SampleFile:
    """Aggregate rows, each with its position for messages, by kernel; one without a name gets the path's."""
    columns = SettingColumns(card.space)
    settings = {name for each in card.space.configurations for name in each.settings}
    known = {*settings, *KERNEL, *TIMES, DEVICE_COLUMN, POWER, *card.counters}
    known.update(domain_column(name) for device in card.power.totals for name in _domains(card, device))
    kernels: dict[str, _Read] = {}
    unknown: dict[str, None] = {}
    for where, row in rows:
        number = columns.number(row, where)
        name, names = _kernel(row, path)
        kernel = kernels.setdefault(name, _Read(names))
        cells = {name: cell for name, cell in row.items() if cell != ""}
        device = card.space.configurations[number].device
        kernel.aggregates.setdefault(number, Aggregate()).add(*_measured(cells, where, card, device))
        kernel.lines[number] = where
        unknown.update(dict.fromkeys(name for name in row if name not in known))
    if not kernels:
        raise InputError.of(where=path, expected="a row for each run", found="none")
    sampled = []
    for name, kernel in kernels.items():
        _check_runs(kernel, f"{path}: {name}" if len(kernels) > 1 else str(path), card)
        observed = observed_of(kernel.aggregates, card.domains, card.counters)
        runs = tuple(kernel.aggregates[number].runs for number in observed.numbers.tolist())
        sampled.append(SampledKernel(name, kernel.names, observed, runs))
    notes = [f"columns that the model does not know: {', '.join(unknown)}"] if unknown else []
    for what, wanted, values in (
        ("powers", _parts(card), [each.observed.domains for each in sampled]),
        ("counters", card.counters, [each.observed.counters for each in sampled]),
    ):
        lacking = [name for name in wanted if any(not math.isfinite(sum(each[name])) for each in values)]
        note = f"{what} that the model has learned from are not in every row, so it is less sure"
        notes += [f"{note}: {', '.join(lacking)}"] if lacking else []
    return SampleFile(tuple(sampled), tuple(f"{path}: {note}" for note in notes))


@dataclass
class _Read:
    """The runs of a kernel, and the last line of each configuration."""

    names: tuple[str, ...]
    aggregates: dict[int, Aggregate] = field(default_factory=dict)
    lines: dict[int, str] = field(default_factory=dict)


def _domains(card: ConfigurationCard, device: str) -> tuple[str, ...]:
    """Return the domains of the model, and those that add up to the power of a device."""
    return tuple(dict.fromkeys(chain(card.domains, *card.power.totals[device])))


def _parts(card: ConfigurationCard) -> list[str]:
    """Return the domains except totals, which have the column of the power."""
    wholes = {names[0] for sets in card.power.totals.values() for names in sets if len(names) == 1}
    return [name for name in card.domains if name not in wholes]


def _measured(
    row: _Row, where: str, card: ConfigurationCard, device: str
) -> tuple[float, float | None, dict[str, float], dict[str, float]]:
    """Return time, power, powers of domains and counters of a run."""

    def number(
        name: str, expected: str = "a number", least: float = -math.inf, most: float = math.inf
    ) -> float:
        value = number_of_text(str(row[name]))
        if value > most:
            expected += f" and at most {most:g}"
        if not least <= value <= most:
            raise InputError.of(where=where, field=name, expected=expected, found=str(row[name])[:60])
        return value

    above_0 = math.ulp(0.0)
    counters = {name: number(name) for name in card.counters if name in row}
    columns = {name: domain_column(name) for name in _domains(card, device)}
    domains = {
        name: number(column, "watts of at least 0", 0.0, _MOST)
        for name, column in columns.items()
        if column in row
    }
    times = {name: number(name, "seconds above 0", above_0, _MOST) for name in TIMES if name in row}
    if not times:
        raise InputError.of(where=where, field=TIME, expected="seconds above 0", found="nothing")
    time_s = next(iter(times.values()))
    for name, other_s in times.items():
        if not math.isclose(other_s, time_s, rel_tol=_TOLERANCE):
            expected = f"the same time as in {TIME}, {time_s:g} s, or no such column"
            raise InputError.of(where=where, field=name, expected=expected, found=f"{other_s:g} s")
    power_w = total_power(card.power.totals[device], domains)
    if power_w is None and POWER in row:
        power_w = number(POWER, "watts above 0", above_0, _MOST)
    if power_w is not None and not power_w > 0:
        found = f"a sum of {power_w:g}"
        raise InputError.of(where=where, field=POWER, expected="watts above 0", found=found)
    return time_s, power_w, domains, counters


def _check_runs(kernel: _Read, where: str, card: ConfigurationCard) -> None:
    """Refuse a kernel that lacks a run at a sample, or a power."""
    for number, at in zip(card.numbers, card.sample_configurations, strict=True):
        if number not in kernel.aggregates:
            raise InputError.of(where=where, expected=f"a run at {at}, which the model needs", found="none")
    for number, aggregate in kernel.aggregates.items():
        if aggregate.power_w is None:
            device = card.space.configurations[number].device
            sets = [" and ".join(map(domain_column, names)) for names in card.power.totals[device]]
            instead = f" (or {', or '.join(sets)})" if sets else ""
            expected = f"watts above 0{instead}"
            raise InputError.of(where=kernel.lines[number], field=POWER, expected=expected, found="nothing")


def _history(path: Path) -> Iterator[tuple[str, _Row]]:
    history = read_history(path)
    for key in history.keys():  # noqa: SIM118 - it is no mapping
        for row in samples_of(history, key):
            yield f"{path}: {key}", {"kernel": str(key), **row}


def _csv(path: Path, columns: SettingColumns) -> Iterator[tuple[str, _Row]]:
    where, header, rows = csv_rows(path, "samples", f"{TIME} and {POWER}", _MOST_BYTES)
    time = next((name for name in TIMES if name in header), TIME)
    for name in (*columns.needed, time):
        if name not in header:
            # Columns of times are the same for all models.
            error = InputError if name == time else UnsuitedError
            raise error.of(where=where, expected=f"a column {name}", found=", ".join(header)[:200])
    yield from rows


def _kernel(row: _Row, path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the name of the kernel of a row, and its names for requests."""
    application, kernel, size = (str(row.get(name, "")) for name in KERNEL)
    if not (application or kernel):
        name = f"{path.stem} {size}".strip()
        return name, (name,)
    full = str(KernelAt(application or kernel, kernel or application, size)).strip()
    return full, tuple(dict.fromkeys(name for name in (full, kernel, application) if name))


def template_columns(card: ConfigurationCard) -> tuple[str, ...]:
    """Return the columns to fill in for each run: time, power, the power of each domain, counters."""
    return (TIME, POWER, *map(domain_column, _parts(card)), *card.counters)


def write_template(path: Path, card: ConfigurationCard) -> None:
    """Write a CSV file with a row to fill in for each sample; an existing file is refused."""
    if path.is_file():
        raise InputError.of(where=path, expected="no such file, as it may have been filled in; found one")
    if path.is_dir():
        raise InputError.of(where=path, expected="a file to write the template to", found="a folder")
    columns = SettingColumns(card.space)
    rows = [columns.cells(number) for number in card.numbers]
    names = [*rows[0], *template_columns(card)]
    with (
        atomic_file(path, "template") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
