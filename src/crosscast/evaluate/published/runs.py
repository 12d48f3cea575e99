"""The rows of the published study: one a run, with the features of the kernel's first invocation."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.cell_trees import Rows
from crosscast.predict.grid import Grid
from crosscast.predict.observed import grid_of
from crosscast.predict.published_forest import device_codes
from crosscast.profile import METRICS
from crosscast.tables.arrow import Table
from crosscast.tables.cells import KERNEL_AT_A_SIZE, run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import key_numbers
from crosscast.tables.library import pa
from crosscast.units import microseconds

__all__ = ["Runs", "runs_of"]


@dataclass(frozen=True)
class Runs:
    """Runs of ``n`` kernels at a size on ``d`` devices.

    A *cell* is a kernel at a size on a device; its number is ``kernel * d + device``.

    Parameters
    ----------
    grid
        The kernels and the devices, with a median a cell.
    columns
        Names of the ``p`` features of kernels.
    features
        Features of each kernel, of shape ``(n, p)``; 0 where not defined, as in the published scripts.
    kernel, device
        Number of each run's kernel and device, of shape ``(rows,)``.
    log_us
        Natural logarithm of the run's time in microseconds, of shape ``(rows,)``.
    """

    grid: Grid
    columns: tuple[str, ...]
    features: Reals
    kernel: Integers
    device: Integers
    log_us: Reals

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.log_us)

    @property
    def cell(self) -> Integers:
        """Number of each run's cell."""
        return self.kernel * len(self.grid.devices) + self.device

    @property
    def cells(self) -> int:
        """Number of cells, measured or not."""
        return len(self.features) * len(self.grid.devices)

    def take(self, runs: Integers | Flags) -> Runs:
        """Some of the runs; kernels and devices stay."""
        return replace(self, kernel=self.kernel[runs], device=self.device[runs], log_us=self.log_us[runs])

    def rows(self) -> Rows:
        """The runs for a forest: features of the kernel, then the device as one feature."""
        d = len(self.grid.devices)
        codes = device_codes(self.device, self.log_us, d)
        features = np.column_stack([np.repeat(self.features, d, axis=0), np.tile(codes, len(self.features))])
        return Rows(features, self.cell, self.log_us)

    def kernel_names(self) -> tuple[str, ...]:
        """Names of the kernels, whatever their size, sorted: those of the table of omitted kernels."""
        return tuple(sorted(set(self.grid.profiles.kernel)))

    def of_kernels(self, names: frozenset[str] | set[str]) -> Flags:
        """For each run, whether its kernel has one of the names."""
        named = np.array([name in names for name in self.grid.profiles.kernel])
        flags: Flags = named[self.kernel]
        return flags

    def sample(self, per_cell: int, seed: int) -> Runs:
        """At most so many runs of each cell, drawn without replacement."""
        order = np.random.default_rng(seed).permutation(len(self))
        cell = self.cell[order]
        by_cell = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=self.cells)
        place = np.arange(len(self)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.take(np.sort(order[by_cell[place < per_cell]]))

    def digest(self) -> str:
        """A hash of all that is in it."""
        digest = hashlib.sha256()
        profiles = self.grid.profiles
        names = [profiles.application, profiles.kernel, profiles.size, self.columns]
        digest.update(json.dumps([names, [device.key for device in self.grid.devices]]).encode())
        for array in (self.features, self.kernel, self.device, self.log_us):
            digest.update(array.tobytes())
        return digest.hexdigest()


def runs_of(dataset: Dataset) -> Runs:
    """The runs of a dataset.

    Features are the metrics of invocation 0; where profiles hold metrics by the published tool's own
    definitions, those as well, and in place of ours of the same name.

    Raises
    ------
    InputError
        If no kernel has both a profile and a record, there are fewer than two kernels, or a device has
        more than one configuration.
    """
    grid = grid_of(dataset, invocations="first")
    if len(set(grid.profiles.kernel)) < 2:
        raise InputError(f"{dataset.label}: expected at least 2 kernels with profiles and records, found 1")
    columns, features = _features(dataset, grid)
    records = sound(dataset.records, dataset.sessions)
    kernel = _kernel_numbers(records, grid)
    devices = {device.key: place for place, device in enumerate(grid.devices)}
    device = np.array([devices.get(key, -1) for key in records.column("device").to_pylist()])
    there = kernel >= 0
    log_us = np.log(run_means(records) / microseconds(1.0))
    return Runs(grid, columns, features, kernel[there], device[there], log_us[there])


def _kernel_numbers(records: Table, grid: Grid) -> Integers:
    """For each record, the number of its kernel in the grid; -1 where it is not there."""
    names = [pa.array(getattr(grid.profiles, name)) for name in KERNEL_AT_A_SIZE]
    wanted, known = key_numbers([records, pa.table(names, names=list(KERNEL_AT_A_SIZE))], KERNEL_AT_A_SIZE)
    places = np.full(int(max(wanted.max(), known.max())) + 1, -1)
    places[known] = np.arange(len(known))
    numbers: Integers = places[wanted]
    return numbers


def _features(dataset: Dataset, grid: Grid) -> tuple[tuple[str, ...], Reals]:
    metrics = grid.profiles.metrics
    defined = np.flatnonzero(np.isfinite(metrics).any(axis=0)).tolist()
    table = {METRICS[place].name: metrics[:, place] for place in defined}
    table |= _published_metrics(dataset, grid)
    features = np.column_stack(list(table.values()))
    return tuple(table), np.where(np.isfinite(features), features, 0.0)


def _published_metrics(dataset: Dataset, grid: Grid) -> dict[str, Reals]:
    """Metrics by the published tool's definitions, where all kernels have them."""
    first: dict[tuple[str, str, str], dict[str, float]] = {}
    names = (*KERNEL_AT_A_SIZE, "invocation", "program")
    for application, kernel, size, invocation, program in zip(
        *(dataset.profiles.column(name).to_pylist() for name in names), strict=True
    ):
        if invocation == 0:
            first[application, kernel, size] = json.loads(program or "{}").get("published", {})
    rows = [first.get(key, {}) for key in grid.profiles.names]
    common = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in common}
