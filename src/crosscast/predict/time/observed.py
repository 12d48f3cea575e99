"""The grid of a dataset: one row a kernel at a size, one column a device."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.time.data import Grid, Profiles
from crosscast.profile import METRICS
from crosscast.tables.arrow import Table
from crosscast.tables.cells import CELL, KERNEL_AT_A_SIZE, run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.joined import join
from crosscast.tables.keys import distinct, key_numbers
from crosscast.tables.library import pa, pc
from crosscast.tables.samples import samples_of

_TEXTS = ("name", "vendor", "type", "series")


def devices_of(dataset: Dataset) -> dict[str, Device]:
    """The devices of a dataset, by key."""
    found = {}
    for row in dataset.devices.to_pylist():
        numbers = {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        texts = {name: row[name] or "" for name in _TEXTS}
        found[row["device"]] = Device(row["device"], **texts, numbers=numbers)
    return found


def grid_of(dataset: Dataset, *, invocations: Literal["mean", "first"] = "mean") -> Grid:
    """Collapse the records of a dataset into a cell each, and put the cells into a grid.

    Kernels without a profile are left out.
    """
    joined = join(dataset, invocations=invocations)
    joined = joined.filter(_profiled(joined))
    if joined.num_rows == 0:
        raise InputError(f"{dataset.label}: expected a kernel with a profile and records, found none")
    _check_configurations(dataset.label, joined)
    kernels, rows = distinct(joined, KERNEL_AT_A_SIZE)
    names, columns = distinct(joined, ("device",))
    devices = devices_of(dataset)
    shape = (kernels.num_rows, names.num_rows)
    log_time, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    runs = np.zeros(shape, dtype=np.int64)
    metrics = np.full((kernels.num_rows, len(METRICS)), np.nan)
    log_time[rows, columns] = np.log(joined.column("time_median_s").to_numpy())
    runs[rows, columns] = joined.column("runs").to_numpy()
    spread[rows, columns] = _log_spreads(dataset, joined)
    for place, each in enumerate(METRICS):
        metrics[rows, place] = joined.column(each.name).to_numpy()
    texts = [tuple(kernels.column(name).to_pylist()) for name in KERNEL_AT_A_SIZE]
    return Grid(
        Profiles(texts[0], texts[1], texts[2], metrics, _invocations(kernels, dataset.profiles)),
        tuple(devices[key] for key in names.column("device").to_pylist()),
        log_time,
        spread,
        runs,
    )


def recorded_times(dataset: Dataset) -> dict[tuple[str, str, str], dict[str, float]]:
    """Median times in seconds, by application, kernel and size, and by device."""
    joined = join(dataset)
    if joined.num_rows:
        _check_configurations(dataset.label, joined)
    columns = [joined.column(name).to_pylist() for name in (*KERNEL_AT_A_SIZE, "device", "time_median_s")]
    times: dict[tuple[str, str, str], dict[str, float]] = {}
    for application, kernel, size, device, time in zip(*columns, strict=True):
        times.setdefault((application, kernel, size), {})[device] = time
    return times


def _profiled(joined: Table) -> pa.Array:
    return pc.is_valid(joined.column("total_instruction_count"))


def _check_configurations(label: str, joined: Table) -> None:
    pairs, _ = distinct(joined, ("device", "configuration"))
    (numbers,) = key_numbers([pairs], ("device",))
    counts = np.bincount(numbers)
    if counts.max() > 1:
        device = pairs.column("device")[int(np.argmax(counts[numbers] > 1))].as_py()
        raise InputError(
            f"{label}: records: expected one configuration a device, found {counts.max()} of {device!r}"
        )


def _log_spreads(dataset: Dataset, joined: Table) -> Reals:
    """For each row of the joined view, the standard deviation of the logarithms of its runs' times."""
    records = sound(dataset.records, dataset.sessions)
    keys, numbers = distinct(records, CELL)
    spreads = samples_of(numbers, np.log(run_means(records))).sd()
    wanted, known = key_numbers([joined, keys], CELL)
    by_number = np.full(int(max(wanted.max(), known.max())) + 1, np.nan)
    by_number[known] = spreads
    spread: Reals = by_number[wanted]
    return spread


def _invocations(kernels: Table, profiles: Table) -> Integers:
    """For each kernel at a size, of how many invocations there is a profile."""
    wanted, found = key_numbers([kernels, profiles], KERNEL_AT_A_SIZE)
    counts: Integers = np.bincount(found, minlength=int(wanted.max()) + 1)[wanted]
    return counts
