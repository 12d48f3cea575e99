"""Grids of times from datasets, whose tables need pyarrow."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np

from crosscast.data.dataset import Dataset
from crosscast.data.library import pc
from crosscast.data.table import Table, distinct, key_numbers, samples_of
from crosscast.data.views import CELL, KERNEL_AT_A_SIZE, join, of_successful_sessions, run_means
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.time.data import Grid, ProfileBatch
from crosscast.profile import METRICS


def devices_of(dataset: Dataset) -> dict[str, Device]:
    """The devices of a dataset, by key."""
    devices = {}
    for row in dataset.devices.to_pylist():
        numbers = {name: float(value) for name, value in row.items() if type(value) in (int, float)}
        name, vendor, kind, series = (row[text] or "" for text in ("name", "vendor", "type", "series"))
        devices[row["device"]] = Device(row["device"], name, vendor, kind, series, numbers)
    return devices


def grid_of(dataset: Dataset, *, invocations: Literal["mean", "first"] = "mean") -> Grid:
    """The grid of a dataset's kernels that have a profile, with the records of a cell combined."""
    joined = join(dataset, invocations=invocations)
    joined = joined.filter(pc.is_valid(joined.column("total_instruction_count")))
    if joined.num_rows == 0:
        raise InputError.of(where=dataset.label, expected="a kernel with a profile and records", found="none")
    _check_configurations(dataset.label, joined)
    kernels, rows = distinct(joined, KERNEL_AT_A_SIZE)
    names, columns = distinct(joined, ("device",))
    log_time, spread = np.full((2, kernels.num_rows, names.num_rows), np.nan)
    runs = np.zeros(log_time.shape, dtype=np.int64)
    log_time[rows, columns] = np.log(joined.column("time_median_s").to_numpy())
    runs[rows, columns] = joined.column("runs").to_numpy()
    records = of_successful_sessions(dataset.records, dataset.sessions)
    cells, of_cell = distinct(records, CELL)
    # Each cell of the joined view is one of these.
    joined_key, cell_key = key_numbers([joined, cells], CELL)
    spreads = np.empty(len(cell_key))
    spreads[cell_key] = samples_of(of_cell, np.log(run_means(records))).sd()
    spread[rows, columns] = spreads[joined_key]
    metrics = np.empty((kernels.num_rows, len(METRICS)))
    for column, metric in enumerate(METRICS):
        metrics[rows, column] = joined.column(metric.name).to_numpy()
    # Of each kernel at a size, as many invocations as there are profiles.
    kernel_index, profile_kernel = key_numbers([kernels, dataset.profiles], KERNEL_AT_A_SIZE)
    counts = np.bincount(profile_kernel, minlength=int(kernel_index.max()) + 1)[kernel_index]
    application, kernel, size = (tuple(kernels.column(name).to_pylist()) for name in KERNEL_AT_A_SIZE)
    by_key = devices_of(dataset)
    devices = tuple(by_key[key] for key in names.column("device").to_pylist())
    profiles = ProfileBatch(application, kernel, size, metrics, counts)
    return Grid(profiles, devices, log_time, spread, runs)


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


def _check_configurations(label: str, joined: Table) -> None:
    pairs, _ = distinct(joined, ("device", "configuration"))
    device, count = Counter(pairs.column("device").to_pylist()).most_common(1)[0]
    if count > 1:
        found = f"{count} of {device!r}"
        raise InputError.of(where=f"{label}: records", expected="one configuration a device", found=found)
