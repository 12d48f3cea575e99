"""Records by cell (kernel, size, device, configuration), joined with powers, counters, profiles, devices."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.library import pa, pc
from crosscast.data.schema import (
    DEVICES,
    RECORDS,
    SESSIONS,
    Column,
    Schema,
    counters_of,
    device_domains,
    json_text,
)
from crosscast.data.table import Samples, Table, arrow_schema, distinct, in_order, key_numbers, samples_of
from crosscast.errors import InputError
from crosscast.profile import METRICS

KERNEL_AT_A_SIZE = ("application", "kernel", "size")
"""Columns that identify a problem: the key of a profile, and of a row of a grid."""

CELL = (*KERNEL_AT_A_SIZE, "device", "configuration")
"""Columns that identify a cell."""


@dataclass(frozen=True)
class Cells:
    """The cells of some records."""

    keys: Table  # A row a cell, with the columns of `CELL`
    numbers: Integers  # For each record, the row of its cell
    times: Samples  # The published summary of each run, in seconds, cell by cell


def cells_of(records: Table) -> Cells:
    """Find the cells of records."""
    keys, numbers = distinct(records, CELL)
    return Cells(keys, numbers, samples_of(numbers, run_means(records)))


def of_successful_sessions(records: Table, sessions: Table) -> Table:
    """Remove records of sessions that failed, as the time of a wrong kernel is meaningless."""
    failed = sessions.filter(pc.is_valid(sessions.column("failure")))
    numbers, failed_numbers = key_numbers([records, failed], SESSIONS.key)
    return records.filter(pa.array(~np.isin(numbers, failed_numbers)))


def run_means(records: Table) -> Reals:
    """Mean time of an invocation in the run of each record, in seconds: the published summary."""
    times, starts, counts = _times(records)
    sums: Reals = np.add.reduceat(times, starts) if starts.size else times
    return sums / counts


def least_times(records: Table) -> Reals:
    """Time of the shortest invocation of each record, in seconds."""
    times, starts, _ = _times(records)
    return np.minimum.reduceat(times, starts) if starts.size else times


def _times(records: Table) -> tuple[Reals, Integers, Integers]:
    """Times of all records, and the index of the first time and the number of times of each record."""
    lists = records.column("time_s")
    counts = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return pc.list_flatten(lists).to_numpy(), np.cumsum(counts) - counts, counts


_APPLICATION_CELL = ("application", "size", "device", "configuration")
"""Key of an application's run, whose kernels share readings of a sensor and counters."""

_OF_A_CELL = (
    *(column for name in CELL for column in RECORDS.columns if column.name == name),
    Column("runs", "integer", "count", "runs in which it was timed", required=True, ge=1),
)

CONFIGURED = Schema(
    "configured",
    1,
    (
        *_OF_A_CELL,
        Column(
            "time_s", "real", "s", "mean time of an invocation in a run, median over the runs", required=True
        ),
        Column("power_w", "real", "W", "mean power of the chosen domain; empty where nothing measured it"),
        Column("powers", "json", title="mean power of each domain in watts, by name"),
        Column("counters", "json", title="counters of a run of the whole application, by name"),
    ),
    key=CELL,
)
"""Version 1."""


def configured(dataset: Dataset, *, domain: str | None = None) -> Table:
    """Join times, powers and counters into one row a cell that has records, in the order of the key.

    Sessions that failed are left out. The power of a domain is the sum of the cell's energies over the sum of
    their durations; a kernel without energies of its own gets the power of the whole application. Energy
    without a duration is left out. Counters are divided by the recorded runs of their sessions, as `crosscast
    measure` counts over all of them; where the number of runs is not known, it is taken as one.
    """
    cells = cells_of(of_successful_sessions(dataset.records, dataset.sessions))
    energy = of_successful_sessions(dataset.energy, dataset.sessions)
    domains, watts = _powers(cells.keys, energy)
    if domain is not None and domain not in domains:
        raise InputError.of(
            field="power_domain",
            expected=f"one whose power {dataset.label} has ({', '.join(domains) or 'none'})",
            found=repr(domain),
        )
    chosen = _of_device(cells.keys, domains, watts) if domain is None else watts[:, domains.index(domain)]
    powers = [
        {name: power for name, power in zip(domains, row, strict=True) if power == power}
        for row in watts.tolist()
    ]
    columns = [
        *cells.keys.columns,
        pa.array(cells.times.counts),
        pa.array(cells.times.quantile(0.5)),
        pa.array(chosen, mask=np.isnan(chosen)),
        pa.array([json_text(each) if each else None for each in powers], type=pa.string()),
        pa.array(_counters(cells.keys, dataset), type=pa.string()),
    ]
    return in_order(CONFIGURED, pa.Table.from_arrays(columns, schema=arrow_schema(CONFIGURED)))


def _powers(cells: Table, energy: Table) -> tuple[list[str], Reals]:
    """Domains, sorted, and watts of shape ``(cells, domains)``, NaN where not measured."""
    energy = energy.filter(pc.fill_null(pc.greater(energy.column("duration_s"), 0), False))
    domains = sorted(pc.unique(energy.column("domain")).to_pylist())
    of_application = pc.is_null(energy.column("kernel"))
    watts = _watts(cells, energy.filter(pc.invert(of_application)), domains, CELL)
    application_watts = _watts(cells, energy.filter(of_application), domains, _APPLICATION_CELL)
    return domains, np.where(np.isnan(watts), application_watts, watts)


def _of_device(cells: Table, domains: list[str], watts: Reals) -> Reals:
    """Power of the whole device in each cell: the sum over its domains."""
    chosen = np.full(len(watts), np.nan)
    (devices,) = key_numbers([cells], ("device",))
    for device in range(int(devices.max(initial=-1)) + 1):
        rows = devices == device
        measured = ~np.isnan(watts[rows]).all(axis=0)
        columns = {name: column for column, name in enumerate(domains) if measured[column]}
        if columns:
            counted = [columns[name] for name in device_domains(columns)]
            chosen[rows] = watts[np.ix_(rows, counted)].sum(axis=1)
    return chosen


def _watts(cells: Table, energy: Table, domains: list[str], names: tuple[str, ...]) -> Reals:
    """Energy over time, by cell and domain, from rows that agree with the cell in the columns `names`."""
    wanted, numbers = key_numbers([cells, energy], names)
    column = pc.index_in(energy.column("domain"), value_set=pa.array(domains, type=pa.string()))
    shape = (_size(wanted, numbers), len(domains))
    bins = numbers * len(domains) + column.to_numpy().astype(np.int64)
    joules, seconds = (
        np.bincount(bins, weights=energy.column(name).to_numpy(), minlength=shape[0] * shape[1]).reshape(
            shape
        )
        for name in ("energy_j", "duration_s")
    )
    watts = np.divide(joules, seconds, out=np.full(shape, np.nan), where=seconds > 0)
    of_cells: Reals = watts[wanted]
    return of_cells


def _size(wanted: Integers, numbers: Integers) -> int:
    return int(max(wanted.max(initial=-1), numbers.max(initial=-1))) + 1


def _counters(cells: Table, dataset: Dataset) -> list[str | None]:
    """Counters of one run, as JSON, for each cell."""
    sessions = dataset.sessions
    counted = sessions.filter(
        pc.and_(pc.is_valid(sessions.column("counters")), pc.is_null(sessions.column("failure")))
    )
    wanted, numbers = key_numbers([cells, counted], _APPLICATION_CELL)
    by_cell: defaultdict[tuple[int, str], list[TableRow]] = defaultdict(list)
    rows = counted.select([*SESSIONS.key, "kernels", "runs", "counters"]).to_pylist()
    for number, row in zip(numbers.tolist(), rows, strict=True):
        # Counters of a session do not cover kernels that it did not run.
        for kernel in json.loads(row["kernels"]):
            by_cell[number, kernel].append(TableRow(row))
    texts = {cell: _counters_of_run(rows, dataset.label) for cell, rows in by_cell.items()}
    kernels = cells.column("kernel").to_pylist()
    return [texts.get(cell) for cell in zip(wanted.tolist(), kernels, strict=True)]


def _counters_of_run(sessions: list[TableRow], label: str) -> str | None:
    """Mean counters of a run, over the runs of all sessions that have them."""
    totals: defaultdict[str, float] = defaultdict(float)
    runs: defaultdict[str, int] = defaultdict(int)
    for session in sessions:
        for name, value in counters_of(session, label).items():
            totals[name] += value
            runs[name] += session.integer_or_none("runs") or 1
    return json_text({name: total / runs[name] for name, total in totals.items()}) if totals else None


_TIMES = {
    "time_median_s": "median over the runs",
    "time_mean_s": "mean over the runs",
    "time_min_s": "least of the runs",
    "time_max_s": "greatest of the runs",
    "time_sd_s": "standard deviation over the runs; empty for one run",
}
_DESCRIPTORS = tuple(column for column in DEVICES.columns if column.name not in ("device", "sources"))

JOINED = Schema(
    "joined",
    1,
    (
        *_OF_A_CELL,
        *(
            Column(name, "real", "s", f"mean time of an invocation in a run, {title}")
            for name, title in _TIMES.items()
        ),
        *(Column(metric.name, "real", metric.unit, metric.title) for metric in METRICS),
        *(replace(column, name=f"device_{column.name}") for column in _DESCRIPTORS),
    ),
    key=CELL,
)
"""Version 1; the metrics are means over invocations, or those of invocation 0."""


def join(dataset: Dataset, *, invocations: Literal["mean", "first"] = "mean") -> Table:
    """Join the tables of a dataset into one row a cell that has records, in the order of the key.

    Records of sessions that failed are left out. Metrics are empty where the kernel has no profile at
    that size.

    Parameters
    ----------
    dataset
        A valid dataset.
    invocations
        For kernels launched more than once: ``mean`` takes the mean of a metric over the invocations in which
        it is defined, ``first`` the metrics of invocation 0.

    Returns
    -------
    Table
        A table of `JOINED`.

    Raises
    ------
    InputError
        If `invocations` is another word.
    """
    if invocations not in ("mean", "first"):
        raise InputError.of(field="invocations", expected="mean or first", found=repr(invocations))
    cells = cells_of(of_successful_sessions(dataset.records, dataset.sessions))
    times = cells.times
    columns = [
        *cells.keys.columns,
        pa.array(times.counts),
        *map(_array, (times.quantile(0.5), times.mean(), times.least(), times.most(), times.sd())),
        *_metrics(cells.keys, dataset.profiles, invocations),
        *_descriptors(cells.keys, dataset.devices),
    ]
    return in_order(JOINED, pa.Table.from_arrays(columns, schema=arrow_schema(JOINED)))


def _array(values: Reals) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _metrics(cells: Table, profiles: Table, invocations: Literal["mean", "first"]) -> list[pa.Array]:
    if invocations == "first":
        profiles = profiles.filter(pc.equal(profiles.column("invocation"), 0))
    wanted, numbers = key_numbers([cells, profiles], KERNEL_AT_A_SIZE)
    size = _size(wanted, numbers)
    means = []
    for metric in METRICS:
        cell = profiles.column(metric.name).cast(pa.float64(), safe=False).to_numpy()
        defined = ~np.isnan(cell)
        sums = np.bincount(numbers, weights=np.where(defined, cell, 0.0), minlength=size)
        counts = np.bincount(numbers, weights=defined, minlength=size)
        mean = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
        means.append(_array(mean[wanted]))
    return means


def _descriptors(cells: Table, devices: Table) -> list[pa.ChunkedArray]:
    wanted, numbers = key_numbers([cells, devices], DEVICES.key)
    rows = np.full(_size(wanted, numbers), -1)
    rows[numbers] = np.arange(devices.num_rows)
    indices = pa.array(rows[wanted], mask=rows[wanted] < 0)
    return [devices.column(column.name).take(indices) for column in _DESCRIPTORS]
