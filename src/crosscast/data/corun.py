"""Co-running: applications alone, and mixes of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.table import Table
from crosscast.errors import InputError


@dataclass(frozen=True)
class IsolatedRun:
    """An application at a size, alone on a device."""

    application: str  # Name of the application: what is left out when benchmarks are left out
    size: str  # Name of its problem size, or another label of its input
    device: str  # Key of the device
    time_s: float | None  # Time of a job, in seconds; `None` where it is not known
    configuration: str = "{}"  # Settings of the device as JSON; `{}` for its defaults
    runs: int = 1  # Runs of the application in a job
    power_w: float | None = None  # Mean power of the device during the job, in watts
    memory_bytes: int | None = None  # Device memory that it occupies
    # Further features, finite numbers by name; unknown ones are absent
    features: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Application and size, for people."""
        return f"{self.application} {self.size}"

    @property
    def qualified_name(self) -> str:
        """Application and size, in the form of options and JSON."""
        return f"{self.application}/{self.size}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Key of the isolated run: application, size, device and configuration."""
        return self.application, self.size, self.device, self.configuration


@dataclass(frozen=True)
class Member:
    """An application of a mix."""

    isolated_run: IsolatedRun  # The application alone on the same device
    # Time of a job while the whole mix runs, over its time alone; `None` where it is not known
    slowdown: float | None = None
    failure: str | None = None  # Why it failed; `None` if it did not


@dataclass(frozen=True)
class MeasuredMix:
    """Applications at the same time on one device."""

    name: str  # Its name
    device: str  # Key of the device
    members: tuple[Member, ...]  # The applications; one may occur twice
    configuration: str = "{}"  # Settings of the device, and how it is shared, as JSON
    repeat: int = 0  # Number of the measurement among those of the same mix
    fits: bool | None = None  # Whether all fit on the device together; `None` where it is not known
    # Time from the common start of a job of each to the end of the last, in seconds
    time_s: float | None = None
    overlap: float | None = None  # Share of that time in which all run
    power_w: float | None = None  # Mean power of the device while all run, in watts

    @property
    def isolated_runs(self) -> tuple[IsolatedRun, ...]:
        """Isolated runs of the members."""
        return tuple(member.isolated_run for member in self.members)

    @property
    def applications(self) -> frozenset[str]:
        """Names of its applications."""
        return frozenset(member.isolated_run.application for member in self.members)

    @property
    def failed(self) -> bool:
        """Whether a member failed."""
        return any(member.failure is not None for member in self.members)


_Key = tuple[str, str, str, str]


class _MixRow(NamedTuple):
    """A row of the table of mixes; its key comes first."""

    mix: str
    device: str
    configuration: str
    repeat: int
    position: int
    application: str
    size: str
    fits: int | None
    slowdown: float | None
    mix_time_s: float | None
    overlap: float | None
    power_w: float | None
    failure: str | None


@dataclass(frozen=True, eq=False)
class CoRuns:
    """Isolated runs and mixes."""

    label: str  # Their source, for messages
    isolated_runs: tuple[
        IsolatedRun, ...
    ]  # Applications alone, in the order of their keys; those that failed are left out
    mixes: tuple[MeasuredMix, ...]  # Mixes, in the order of their keys, those with a member that failed too

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications of the mixes, sorted."""
        return tuple(sorted({name for mix in self.mixes for name in mix.applications}))


def co_runs(dataset: Dataset) -> CoRuns:
    """Return the isolated runs and mixes of a dataset.

    A co-runner's isolated run is the one with its configuration, or with the defaults where there is none, as
    an application that runs alone does not share its device in any way. A co-runner without one gets an
    isolated run with unknown time and power.
    """
    isolated_runs: dict[_Key, IsolatedRun] = {}
    for number, row in enumerate(dataset.isolated_runs.to_pylist(), start=1):
        if row["failure"] is None:
            isolated_run = _isolated_run(TableRow(row), f"{dataset.label}: isolated_runs: row {number}")
            isolated_runs[isolated_run.key] = isolated_run
    columns = [_cells(dataset.mixes, name) for name in _MixRow._fields]
    rows = sorted(map(_MixRow._make, zip(*columns, strict=True)), key=lambda row: row[:5])
    member = _members(dict(isolated_runs))
    mixes = tuple(_mix(list(members), member) for _, members in groupby(rows, key=lambda row: row[:4]))
    return CoRuns(
        dataset.label, tuple(isolated_run for _, isolated_run in sorted(isolated_runs.items())), mixes
    )


def _cells(mixes: Table, name: str) -> list[object]:
    """Cells of a column; equal cells share one object to save memory."""
    cells = mixes.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
    values = cells.dictionary.to_pylist()
    return [values[index] for index in cells.indices.to_pylist()]


def _isolated_run(row: TableRow, where: str) -> IsolatedRun:
    features = json.loads(row.text("features"))
    if not isinstance(features, dict) or not all(_is_finite(value) for value in features.values()):
        raise InputError(f"{where}: column 'features': expected finite numbers by name, found others")
    return IsolatedRun(
        row.text("application"),
        row.text("size"),
        row.text("device"),
        row.number_or_none("time_s"),
        row.text("configuration"),
        row.integer_or_none("runs") or 1,
        row.number_or_none("power_w"),
        row.integer_or_none("memory_bytes"),
        {name: float(value) for name, value in sorted(features.items())},
    )


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _mix(rows: Sequence[_MixRow], member: Callable[[_MixRow], Member]) -> MeasuredMix:
    first = rows[0]
    return MeasuredMix(
        first.mix,
        first.device,
        tuple(map(member, rows)),
        first.configuration,
        first.repeat,
        None if first.fits is None else bool(first.fits),
        first.mix_time_s,
        first.overlap,
        first.power_w,
    )


def _members(isolated_runs: dict[_Key, IsolatedRun]) -> Callable[[_MixRow], Member]:
    """Return a function that makes a member from its row; equal isolated runs share one object."""

    def isolated_run(row: _MixRow) -> IsolatedRun:
        key = row.application, row.size, row.device, row.configuration
        if key not in isolated_runs:
            default = row.application, row.size, row.device, "{}"
            isolated_runs[key] = isolated_runs.setdefault(
                default, IsolatedRun(row.application, row.size, row.device, None)
            )
        return isolated_runs[key]

    return lambda row: Member(isolated_run(row), row.slowdown, row.failure)
