"""Training data of models of times: grids of datasets, and times with the launches of each.

Tables of launches are those of `benchmarks.training_profiles`: see `crosscast.data.times`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from crosscast.arrays import AnyArray, Flags, Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.library import pc
from crosscast.data.profiles import from_row
from crosscast.data.table import Table, distinct, key_numbers, samples_of
from crosscast.data.times import KernelTime, LaunchTables, read_launch_tables
from crosscast.data.views import CELL, KERNEL_AT_A_SIZE, join, of_successful_sessions, run_means
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.devices.sheets import sheets_of
from crosscast.errors import InputError
from crosscast.prediction.time import Grid, ProfileBatch, Toolchain
from crosscast.prediction.time.counts import work_of
from crosscast.prediction.time.launch_times import bounds, kind_number, side_of
from crosscast.prediction.time.terms import Times, by_device, log_times, terms, weights_of
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


def launch_tables_of(dataset: Dataset, device: Device | None = None) -> LaunchTables:
    """Times of a dataset, each the mean of a kernel's launches at a size, on a device or all it describes.

    Raise InputError if there are no times, or a profile has no counts by sub-groups.
    """
    profiles = tuple(from_row(row) for row in dataset.profiles.to_pylist())
    parts: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for index, profile in enumerate(profiles):
        if profile.launch.get("sub_groups") is None:
            raise InputError.of(
                where=f"{dataset.label}: profiles",
                expected="counts by sub-groups, as crosscast characterize makes them",
                found=f"none in that of {profile.application} {profile.kernel}",
            )
        cell = (profile.application or "", profile.kernel, profile.size or "")
        parts.setdefault(cell, []).append((index, 1.0))
    known = devices_of(dataset)
    rows = tuple(
        KernelTime(
            "measured", *cell, (device or known[key]).key, seconds, "the kernel on the device", total=False
        )
        for cell, times in sorted(recorded_times(dataset).items())
        if cell in parts
        for key, seconds in times.items()
    )
    if not rows:
        raise InputError.of(where=dataset.label, expected="times of kernels with a profile", found="none")
    described = known.values() if device is None else (device,)
    return LaunchTables(dataset.label, profiles, rows, parts, {each.key: each for each in described})


_BY_HOST = ("host", "clFinish")
_LEAST_SHARE = 0.5  # Of the physical lower limit, which data sheets give to a few percent
# Measured over unfitted time: of one, and the median of a source, or its application, on a device
_LONGEST, _LONGEST_USUAL = 3000.0, 100.0


_FURTHER_LAUNCH = 0.3
"""Launch cost of each launch after the first of those that are timed together, over that of the first.

The host enqueues them with events to wait for (E. Bainville, OpenCL FFT library, 2011).
"""


@dataclass(frozen=True, eq=False)
class TrainingTimes:
    """Measured times of ``c`` cells with their launches."""

    times: Times
    rows: tuple[KernelTime, ...]  # Of the cells
    devices: tuple[Device, ...]
    least: Reals  # `(c,)` Physical lower and upper limits in seconds
    most: Reals
    traits: Reals  # `(c, len(TRAITS))` Of the cell's launches, their mean
    toolchains: tuple[Toolchain, ...]  # Of the profiles

    def labels(self, by: str) -> AnyArray:
        """Label of each cell by which cells are held out: ``source``, ``application`` or ``device``."""
        return np.array([getattr(row, by) for row in self.rows])

    @property
    def noted(self) -> Flags:
        """Mask of the cells with a note that the time includes something else."""
        return np.array([bool(row.note) for row in self.rows], dtype=np.bool_)

    @property
    def kinds(self) -> Integers:
        """Number of the kind of each cell's device; see `kind_number`."""
        return np.array([kind_number(device) for device in self.devices])[self.times.device]

    @property
    def sides(self) -> Integers:
        """Row of the deviations of each cell's device."""
        return np.array([side_of(device) for device in self.devices])[self.times.device]

    def take(self, cells: Flags) -> TrainingTimes:
        """The times of some cells."""
        return replace(
            self,
            times=self.times.take(cells),
            rows=tuple(self.rows[k] for k in np.flatnonzero(cells).tolist()),
            least=self.least[cells],
            most=self.most[cells],
            traits=self.traits[cells],
        )


def read_training(tables: str | Path | LaunchTables, *, counted: bool = True) -> TrainingTimes:
    """Read the training data of a model from tables, or from the tables of a folder.

    Without `counted` the work is estimated from the metrics of the profiles alone. Raise InputError as
    `crosscast.data.times.read_launch_tables`, or if times are of an unknown device, or cannot be seconds.
    """
    if not isinstance(tables, LaunchTables):
        tables = read_launch_tables(tables)
    profiles, parts, rows = tables.profiles, tables.parts, tables.times
    if not counted:
        profiles = tuple(replace(profile, launch={}) for profile in profiles)
    work = work_of(profiles)
    keys = sorted({row.device for row in rows})
    devices = tuple(tables.devices[key] if key in tables.devices else device_named(key) for key in keys)
    sheets = sheets_of(devices)
    by_host = terms(work, sheets)
    on_device, limits_s = by_device(by_host), bounds(work, sheets)
    seconds, share, cell, of_cells = list[Reals](), list[float](), list[int](), list[list[float]]()
    columns = [keys.index(row.device) for row in rows]
    for number, (row, column) in enumerate(zip(rows, columns, strict=True)):
        of_cell = parts[row.cell]
        count = sum(launches for _, launches in of_cell)
        divisor = 1.0 if row.total else count
        of_cells.append([sum(each[k, column] * n for k, n in of_cell) / divisor for each in limits_s])
        # Launches that are timed together wait for each other on the device, and in part for the host.
        launch_share = 1.0 / count if row.total else 1.0
        launch_share += _FURTHER_LAUNCH * (1.0 - launch_share)
        first_terms = by_host if any(word in row.timed for word in _BY_HOST) else on_device
        for profile, launches in of_cell:
            first, others = first_terms[profile, column], on_device[profile, column]
            seconds.append(launch_share * first + (1.0 - launch_share) * others)
            share.append(launches / divisor)
            cell.append(number)
    groups = [
        (row.application, devices[column].type == "gpu") for row, column in zip(rows, columns, strict=True)
    ]
    weights = weights_of([row.source for row in rows], groups)
    log_time = np.log([row.time_s for row in rows])
    of_rows = np.array(share), np.array(cell), np.array(columns), log_time, weights
    times = Times(np.array(seconds), *of_rows)
    least, most = np.array(of_cells).T
    _refuse_other_units(tables.label, rows, times, least)
    traits = {
        each: np.average(work.traits[[k for k, _ in of_cell]], axis=0, weights=[n for _, n in of_cell])
        for each, of_cell in parts.items()
    }
    return TrainingTimes(
        times,
        rows,
        devices,
        least,
        most,
        np.stack([traits[row.cell] for row in rows]),
        tuple(sorted({Toolchain.of(profile.program) for profile in profiles})),
    )


def check_seconds(dataset: Dataset) -> None:
    """Raise InputError for times that are not in seconds, as far as counts and data sheets tell."""
    launches = [from_row(row).launch for row in dataset.profiles.to_pylist()]
    if not all(launch.get("sub_groups") for launch in launches):
        return
    tables = launch_tables_of(dataset)
    on_paper = {key for key, device in tables.devices.items() if "bandwidth_bytes_per_s" in device.numbers}
    rows = tuple(row for row in tables.times if row.device in on_paper)
    if rows:
        read_training(replace(tables, times=rows))


def _medians(values: Reals, labels: Sequence[str]) -> Reals:
    """The median of the values that share a label, for each."""
    medians = {name: np.median(values[np.array(labels) == name]) for name in set(labels)}
    return np.array([medians[name] for name in labels])


def _refuse_other_units(label: str, cells: Sequence[KernelTime], times: Times, least: Reals) -> None:
    """Raise InputError for times that physics forbids, and for those too long to be in seconds."""
    unfitted, _ = log_times(times, np.zeros((len(cells), times.seconds.shape[1])))
    ratio = np.exp(times.log_time - unfitted)
    labels = [f"{row.source} on {row.device}" for row in cells]
    parts = [f"{row.application} of {label}" for row, label in zip(cells, labels, strict=True)]
    median_ratio = np.max([_medians(ratio, labels), _medians(ratio, parts)], axis=0)
    short = np.exp(times.log_time) < _LEAST_SHARE * least
    for invalid, expected in (
        (short, "seconds, and no less than moving its bytes takes"),
        ((ratio > _LONGEST) | (median_ratio > _LONGEST_USUAL), "seconds"),
    ):
        if invalid.any():
            index = int(np.argmax(invalid))
            row = cells[index]
            cell = f"{row.kernel} {row.launch} of {labels[index]}"
            raise InputError.of(
                where=f"{label}: times",
                field="time_s",
                expected=f"{expected} (about {np.exp(unfitted[index]):.2g} for {cell})",
                found=f"{row.time_s:.2g}",
            )
