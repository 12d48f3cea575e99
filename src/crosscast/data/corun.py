"""Co-running: applications alone, mixes of them, and what a dataset has of both.

Files of isolated runs are JSON with an application's run alone on a device, and facts about the device.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset
from crosscast.data.fields import STRICT_JSON, TableRow, decode, is_finite
from crosscast.data.files import atomic_file, read_bytes
from crosscast.data.library import pc
from crosscast.data.schema import DEVICES, ISOLATED_RUNS, MIXES, Column, json_text
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
        """Application and size, for people and in names of mixes."""
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
    # Applications alone, in the order of their keys; those that failed are left out
    isolated_runs: tuple[IsolatedRun, ...]
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
    listed = tuple(isolated_runs[key] for key in sorted(isolated_runs))
    columns = [_cells(dataset.mixes, name) for name in _MixRow._fields]
    rows = sorted(map(_MixRow._make, zip(*columns, strict=True)), key=lambda row: row[:5])
    mixes = [_mix(list(of_mix), isolated_runs) for _, of_mix in groupby(rows, key=lambda row: row[:4])]
    return CoRuns(dataset.label, listed, tuple(mixes))


def _cells(mixes: Table, name: str) -> list[object]:
    """Cells of a column; equal cells share one object to save memory."""
    cells = mixes.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
    values = cells.dictionary.to_pylist()
    return [values[index] for index in cells.indices.to_pylist()]


def _isolated_run(row: TableRow, where: str) -> IsolatedRun:
    features = json.loads(row.text("features"))
    if not isinstance(features, dict) or not all(map(is_finite, features.values())):
        raise InputError.of(
            where=where, field="column 'features'", expected="finite numbers by name", found="others"
        )
    return IsolatedRun(
        *(row.text("application"), row.text("size"), row.text("device")),
        row.number_or_none("time_s"),
        row.text("configuration"),
        row.integer_or_none("runs") or 1,
        row.number_or_none("power_w"),
        row.integer_or_none("memory_bytes"),
        {name: float(value) for name, value in sorted(features.items())},
    )


def _mix(rows: Sequence[_MixRow], isolated_runs: dict[_Key, IsolatedRun]) -> MeasuredMix:
    """Make the mix of some rows, and add isolated runs that these lack, which all mixes share."""
    first, members = rows[0], []
    for row in rows:
        cell = row.application, row.size, row.device
        if (key := (*cell, row.configuration)) not in isolated_runs:
            isolated_runs[key] = isolated_runs.setdefault((*cell, "{}"), IsolatedRun(*cell, None))
        members.append(Member(isolated_runs[key], row.slowdown, row.failure))
    fits = None if first.fits is None else bool(first.fits)
    measured = first.mix_time_s, first.overlap, first.power_w
    what = first.mix, first.device, tuple(members), first.configuration, first.repeat
    return MeasuredMix(*what, fits, *measured)


@dataclass(frozen=True)
class IsolatedRunCount:
    """Numbers of isolated runs on a device, and of those that failed."""

    device: str
    isolated_runs: int
    failed: int


@dataclass(frozen=True)
class MixCount:
    """Number of mixes of a given number of applications on a device."""

    device: str  # Key of the device
    members: int  # Applications of each of these mixes
    mixes: int  # Number of these mixes, including repeats and other configurations
    configurations: int  # Number of configurations of the device
    not_fitting: int  # Number of mixes that do not fit on the device
    failed: int  # Number of mixes with an application that failed


@dataclass(frozen=True)
class CoRunFailure:
    """An application that failed, in a mix or alone (``mix`` is ``None``)."""

    application: str
    size: str
    device: str
    configuration: str
    mix: str | None
    repeat: int | None
    reason: str


@dataclass(frozen=True)
class CoRunContents:
    """Isolated runs and mixes of a dataset; empty where it has none."""

    isolated_runs: tuple[IsolatedRunCount, ...]  # Isolated runs by device
    mixes: tuple[MixCount, ...]  # Mixes by device and number of applications
    failed: tuple[CoRunFailure, ...]  # Applications that failed, alone first


def contents_of(isolated_runs: Table, mixes: Table) -> CoRunContents:
    """Count the rows of two valid tables."""
    return CoRunContents(
        tuple(_isolated_run_counts(isolated_runs)),
        tuple(_mix_counts(mixes)),
        (*_failures(isolated_runs), *_failures(mixes)),
    )


def _isolated_run_counts(isolated_runs: Table) -> Iterator[IsolatedRunCount]:
    groups = isolated_runs.group_by("device").aggregate([("application", "count"), ("failure", "count")])
    for row in groups.sort_by("device").to_pylist():
        yield IsolatedRunCount(row["device"], row["application_count"], row["failure_count"])


def _mix_counts(mixes: Table) -> Iterator[MixCount]:
    # `max` of the rows of a mix, which agree in whether they fit.
    rows = [("position", "count"), ("fits", "max"), ("failure", "count")]
    of_mixes = mixes.group_by(list(MIXES.key[:-1])).aggregate(rows).to_pylist()
    groups: defaultdict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in of_mixes:
        groups[row["device"], row["position_count"]].append(row)
    for (device, members), group in sorted(groups.items()):
        configurations = len({row["configuration"] for row in group})
        not_fitting = sum(row["fits_max"] == 0 for row in group)
        failed = sum(row["failure_count"] > 0 for row in group)
        yield MixCount(device, members, len(group), configurations, not_fitting, failed)


def _failures(table: Table) -> Iterator[CoRunFailure]:
    keys = MIXES.key if "mix" in table.column_names else ISOLATED_RUNS.key
    rows = table.filter(pc.is_valid(table.column("failure")))
    for row in rows.sort_by([(name, "ascending") for name in keys]).to_pylist():
        cell = {name: row[name] for name in ISOLATED_RUNS.key}
        yield CoRunFailure(**cell, mix=row.get("mix"), repeat=row.get("repeat"), reason=row["failure"])


FORMAT = "crosscast isolated run"
"""Value of the field ``format``."""
VERSION = 1
"""Rises when a field changes its name, type or meaning."""

_WHAT = "isolated run"
_MOST_BYTES = 1 << 20
_FACTS = {column.name: column for column in DEVICES.columns if column.name not in ("device", "sources")}

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Real = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_AtLeast0 = Annotated[float, Meta(ge=0, le=sys.float_info.max)]


def _kind(column: Column) -> object:
    if column.type == "text":
        return _Name | None
    return (
        Annotated[int, Meta(ge=int(column.ge or 0))] | None if column.type == "integer" else _AtLeast0 | None
    )


_Device: Any = msgspec.defstruct(
    "_Device",
    [("device", _Name), *((name, _kind(column), None) for name, column in _FACTS.items())],
    forbid_unknown_fields=True,
)
"""Facts about a device: the columns of its table."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    application: _Name
    size: _Name
    device: _Device
    configuration: Annotated[dict[_Name, object], Meta(max_length=512)]
    features: Annotated[dict[_Name, _Real], Meta(max_length=512)]
    runs: Annotated[int, Meta(ge=1)] | None = None
    time_s: Annotated[float, Meta(gt=0, le=sys.float_info.max)] | None = None
    power_w: _AtLeast0 | None = None
    memory_bytes: Annotated[int, Meta(ge=0)] | None = None


@dataclass(frozen=True, eq=False)
class IsolatedRunProfile:
    """Contents of a file."""

    isolated_run: IsolatedRun  # The application alone; its `device` is the key of the device
    # Facts about the device: cells by column of the table of devices, `device` and `type` among them,
    # without their sources
    device: Mapping[str, object]


def write_profile(isolated_run: IsolatedRun, device: Mapping[str, object], path: str | Path) -> None:
    """Write an isolated run to a file, replacing it; equal runs give equal bytes."""
    path = Path(path)
    content = _content(isolated_run, device, path)
    _profile(content, str(path))
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    if len(text) >= _MOST_BYTES:
        raise InputError.of(
            where=path, expected=f"a file of at most {_MOST_BYTES >> 20} MiB", found="a larger one"
        )
    with atomic_file(path, _WHAT) as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")


def _content(isolated_run: IsolatedRun, device: Mapping[str, object], path: Path) -> dict[str, object]:
    if device.get("device", isolated_run.device) != isolated_run.device:
        raise InputError.of(
            where=path, field="device", expected=repr(isolated_run.device), found=repr(device["device"])
        )
    try:
        Configuration.of(isolated_run.device, isolated_run.configuration)
    except InputError as error:
        raise InputError.of(where=path, problem=str(error)) from error
    facts = {name: device[name] for name in _FACTS if device.get(name) not in (None, "")}
    cells = {name: value for name, value in vars(isolated_run).items() if value is not None}
    return cells | {
        "format": FORMAT,
        "version": VERSION,
        "device": {"device": isolated_run.device, **facts},
        # Parsed from the text, as `Configuration` would turn whole numbers into real ones.
        "configuration": json.loads(isolated_run.configuration),
        "features": {name: float(value) for name, value in isolated_run.features.items()},
    }


def read_profile(path: str | Path) -> IsolatedRunProfile:
    """Read an isolated run of an application, as ``crosscast corun profile`` writes it.

    Parameters
    ----------
    path
        The file, JSON.

    Returns
    -------
    IsolatedRunProfile
        `isolated_run` is the isolated run (seconds, watts, features), `device` the row of its device.

    Raises
    ------
    InputError
        If it cannot be read, is no such file or one of a newer version, is larger than 1 MiB, or a field is
        missing, unknown or wrong.
    """
    path = Path(path)
    try:
        content = STRICT_JSON.decode(read_bytes(path, _WHAT, _MOST_BYTES).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=path, expected=f"an isolated run in JSON ({error})") from error
    return profile_from(content, str(path))


def profile_from(content: object, where: str) -> IsolatedRunProfile:
    """Read an isolated run from the JSON value of a file; messages begin with `where`."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError.of(
            where=where, expected="an isolated run, as crosscast corun profile writes it", found="other JSON"
        )
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InputError.of(
            where=where,
            expected=f"an isolated run of version {VERSION} or older",
            found=f"version {version}: a newer Crosscast wrote it",
        )
    return _profile(content, where)


def _profile(content: Mapping[str, object], where: str) -> IsolatedRunProfile:
    file = decode(_File, content, where)
    device = {name: cell for name, cell in msgspec.structs.asdict(file.device).items() if cell is not None}
    try:
        Configuration.of_values(device["device"], file.configuration)
    except InputError as error:
        raise InputError.of(where=where, problem=str(error)) from error
    for name, value in file.features.items():
        if name.startswith("slowdown_") and value <= 0:
            raise InputError.of(
                where=where, field=f"features.{name}", expected="a number above 0", found=f"{value:g}"
            )
    cell = file.application, file.size, device["device"], file.time_s, json_text(file.configuration)
    features = dict(sorted(file.features.items()))
    isolated_run = IsolatedRun(*cell, file.runs or 1, file.power_w, file.memory_bytes, features)
    return IsolatedRunProfile(isolated_run, MappingProxyType(device))
