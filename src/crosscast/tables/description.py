"""What is in a dataset, what is missing, how noisy it is, and what to be careful with."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.tables.arrow import Table, notes_of
from crosscast.tables.cells import cells_of, sound
from crosscast.tables.configurations import DeviceConfigurations, configurations_of
from crosscast.tables.corun.contents import BagCount, CoRunContents, CoRunFailure, SoloCount, contents_of
from crosscast.tables.dataset import TABLES, Dataset
from crosscast.tables.library import pc
from crosscast.tables.sessions import SESSIONS
from crosscast.tables.size_order import SIZES, size_order
from crosscast.tables.warnings_of import RecordWarning, warnings_of

__all__ = ["CellNoise", "Description", "Failure", "Missing", "describe"]

_Kernel = tuple[str | None, str]


@dataclass(frozen=True)
class Failure:
    """A session that failed: where (the configuration as JSON), and why."""

    application: str
    size: str
    device: str
    configuration: str
    repeat: int
    reason: str


@dataclass(frozen=True)
class Missing:
    """What a kernel lacks at a size: a profile, or records on a device."""

    application: str | None
    kernel: str
    size: str
    device: str | None
    lacks: str


@dataclass(frozen=True)
class CellNoise:
    """How the run means of a cell spread: deviation over mean (empty for one run), quartiles in seconds."""

    application: str
    kernel: str
    size: str
    device: str
    configuration: str
    runs: int
    relative_sd: float | None
    quartiles_s: tuple[float, float, float]


@dataclass(frozen=True)
class Description:
    """What `describe` finds.

    Parameters
    ----------
    applications, kernels, sizes, devices
        Names, sorted (the known sizes from tiny to large); a kernel's is ``application/kernel``.
    kernel_sizes
        Sizes at which there may be profiles and records of each kernel: those of `SIZES` that any kernel has,
        and its own; another kernel's input says nothing about it.
    repeats
        Most processes (numbers `repeat`) that measured a kernel in the same cell.
    cells
        Number of cells that have records of sessions that did not fail.
    profiles, records, energy, sessions
        Number of rows of each table.
    configurations
        What each device that has records was set to.
    corun
        Solo runs and bags, and what failed of them.
    failed
        Sessions that failed.
    missing
        What is lacking of kernels at their sizes, on all devices.
    warnings
        What makes times doubtful.
    noise
        Spread of each cell.
    notes
        Texts kept with the tables, by table and name.
    """

    applications: tuple[str, ...]
    kernels: tuple[str, ...]
    sizes: tuple[str, ...]
    devices: tuple[str, ...]
    kernel_sizes: Mapping[str, tuple[str, ...]]
    repeats: int
    cells: int
    profiles: int
    records: int
    energy: int
    sessions: int
    configurations: tuple[DeviceConfigurations, ...]
    corun: CoRunContents
    failed: tuple[Failure, ...]
    missing: tuple[Missing, ...]
    warnings: tuple[RecordWarning, ...]
    noise: tuple[CellNoise, ...]
    notes: Mapping[str, Mapping[str, str]]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as the object that ``--json`` prints."""
        return {name: _plain(value) for name, value in vars(self).items()}


_PLACES = (Failure, Missing, CellNoise, RecordWarning, CoRunContents, SoloCount, BagCount, CoRunFailure)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, DeviceConfigurations):
        settings = {name: list(values) for name, values in value.settings.items()}
        return {**vars(value), "settings": settings, "domains": list(value.domains)}
    if isinstance(value, _PLACES):
        return {
            name: json.loads(cell) if name == "configuration" else _plain(cell)
            for name, cell in vars(value).items()
        }
    return value


def describe(dataset: Dataset) -> Description:
    """Describe a valid dataset."""
    records = sound(dataset.records, dataset.sessions)
    sizes = _kernel_sizes(dataset)
    devices = tuple(sorted(dataset.devices.column("device").to_pylist()))
    noise = _noise(records)
    return Description(
        applications=tuple(sorted(_names(dataset, "application"))),
        kernels=tuple(map(_label, sizes)),
        sizes=tuple(sorted(_names(dataset, "size"), key=size_order)),
        devices=devices,
        kernel_sizes={_label(kernel): own for kernel, own in sizes.items()},
        repeats=_repeats(dataset),
        cells=len(noise),
        profiles=dataset.profiles.num_rows,
        records=dataset.records.num_rows,
        energy=dataset.energy.num_rows,
        sessions=dataset.sessions.num_rows,
        configurations=configurations_of(records, sound(dataset.energy, dataset.sessions)),
        corun=contents_of(dataset.solos, dataset.bags),
        failed=_failed(dataset.sessions),
        missing=tuple(_missing(sizes, devices, dataset.profiles, records)),
        warnings=tuple(warnings_of(dataset.records, dataset.sessions)),
        noise=noise,
        notes={schema.table: notes for schema in TABLES if (notes := notes_of(dataset.table(schema)))},
    )


def _names(dataset: Dataset, column: str) -> set[str]:
    tables = (dataset.profiles, dataset.records, dataset.sessions, dataset.solos, dataset.bags)
    return {name for table in tables for name in pc.unique(table.column(column)).to_pylist()} - {None}


def _label(kernel: _Kernel) -> str:
    return "/".join(filter(None, kernel))


def _kernel_sizes(dataset: Dataset) -> dict[_Kernel, tuple[str, ...]]:
    """Kernels in the order of their names, each with its sizes in theirs."""
    found = _distinct(dataset.profiles, "application", "kernel", "size")
    found |= _distinct(dataset.records, "application", "kernel", "size")
    for application, kernels, size in _distinct(dataset.sessions, "application", "kernels", "size"):
        found |= {(application, kernel, size) for kernel in json.loads(kernels)}
    sizes: defaultdict[_Kernel, set[str]] = defaultdict(set)
    for application, kernel, size in found:
        sizes[application, kernel] |= {size} - {None}
    shared = set(SIZES) & set().union(*sizes.values())
    return {
        kernel: tuple(sorted(sizes[kernel] | shared, key=size_order))
        for kernel in sorted(sizes, key=lambda kernel: (kernel[0] or "", kernel[1]))
    }


def _repeats(dataset: Dataset) -> int:
    # Of each kernel: where it has sessions of its own, the numbers of an application's are not its repeats.
    cell = ("application", "size", "device", "configuration", "repeat")
    found = _distinct(dataset.records, "kernel", *cell)
    for kernels, *place in _distinct(dataset.sessions, "kernels", *cell):
        found |= {(kernel, *place) for kernel in json.loads(kernels)}
    return max(Counter(place[:-1] for place in found).values(), default=0)


def _distinct(table: Table, *columns: str) -> set[tuple[Any, ...]]:
    rows = table.group_by(list(columns)).aggregate([]).to_pylist()
    return {tuple(row[column] for column in columns) for row in rows}


def _failed(sessions: Table) -> tuple[Failure, ...]:
    rows = sessions.filter(pc.is_valid(sessions.column("failure"))).to_pylist()
    failures = [Failure(**{name: row[name] for name in SESSIONS.key}, reason=row["failure"]) for row in rows]
    return tuple(sorted(failures, key=lambda f: (f.application, f.size, f.device, f.configuration, f.repeat)))


def _missing(
    kernel_sizes: Mapping[_Kernel, tuple[str, ...]],
    devices: tuple[str, ...],
    profiles: Table,
    records: Table,
) -> Iterable[Missing]:
    profiled = _distinct(profiles, "application", "kernel", "size")
    measured = _distinct(records, "application", "kernel", "size", "device")
    for kernel, sizes in kernel_sizes.items():
        for size in sizes:
            if (*kernel, size) not in profiled:
                yield Missing(*kernel, size, None, "profile")
            for device in devices:
                if (*kernel, size, device) not in measured:
                    yield Missing(*kernel, size, device, "records")


def _noise(records: Table) -> tuple[CellNoise, ...]:
    cells = cells_of(records)
    times = cells.times
    means, deviations = times.mean(), times.sd()
    known = np.isfinite(deviations) & (means > 0)
    relative = np.divide(deviations, means, out=np.zeros_like(means), where=known)
    quartiles = np.stack([times.quantile(share) for share in (0.25, 0.5, 0.75)], axis=1)
    noise = [
        CellNoise(
            **cell,
            runs=int(times.counts[place]),
            relative_sd=float(relative[place]) if known[place] else None,
            quartiles_s=tuple(quartiles[place].tolist()),
        )
        for place, cell in enumerate(cells.keys.to_pylist())
    ]
    return tuple(sorted(noise, key=lambda n: (n.application, n.kernel, n.size, n.device, n.configuration)))
