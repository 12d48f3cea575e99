"""The joined view: a row a cell, with its times, its kernel's metrics and its device's descriptors."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from crosscast.errors import InputError
from crosscast.profile import METRICS
from crosscast.tables.arrow import Table, arrow_schema, in_order
from crosscast.tables.cells import CELL, KERNEL_AT_A_SIZE, cells_of, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.keys import key_numbers
from crosscast.tables.library import pa, pc
from crosscast.tables.records import RECORDS
from crosscast.tables.samples import Reals
from crosscast.tables.schema import Column, Schema

__all__ = ["JOINED", "join"]

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
        *(column for name in CELL for column in RECORDS.columns if column.name == name),
        Column("runs", "integer", "count", "runs in which it was timed", required=True, least=1),
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
        Metrics of a kernel that was launched more than once: their mean over the invocations in which
        they are defined, or those of invocation 0.

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
        raise InputError(f"invocations: expected mean or first, found {invocations!r}")
    cells = cells_of(sound(dataset.records, dataset.sessions))
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
    size = int(max(wanted.max(initial=-1), numbers.max(initial=-1))) + 1
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
    rows = np.full(int(max(wanted.max(initial=-1), numbers.max(initial=-1))) + 1, -1)
    rows[numbers] = np.arange(devices.num_rows)
    places = pa.array(rows[wanted], mask=rows[wanted] < 0)
    return [devices.column(column.name).take(places) for column in _DESCRIPTORS]
