"""Times of kernels for training: their source, what was timed, and the launches that they cover."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from crosscast.data.profiles import read_parquet
from crosscast.data.schema import CONFIGURATION, DEVICE, Column, Schema
from crosscast.data.table import read_table
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.profile import Profile

APPLICATION = Column("application", "text", title="kernels that are held out together", required=True)
KERNEL = Column("kernel", "text", title="kernel, or the region of a program that was timed", required=True)
LAUNCH = Column("launch", "text", title="what tells its launches apart: sizes and parameters", required=True)

TIMES = Schema(
    "times",
    1,
    (
        Column("source", "text", title="table that it is from, as importers name it", required=True),
        APPLICATION,
        KERNEL,
        LAUNCH,
        DEVICE,
        CONFIGURATION,
        Column("time_s", "real", "s", "time, of all its launches if `total` is 1", required=True, gt=0),
        Column("statistic", "text", title="what the time is of the runs, such as median", required=True),
        Column("timed", "text", title="what was timed, such as the kernel on the device", required=True),
        Column("total", "integer", "", "1: time of all launches together; 0: mean of them", required=True),
        Column("runs", "integer", "count", "runs that the statistic is of", ge=1),
        Column("note", "text", title="what else is in the time, such as what a driver does once"),
        Column("left_out", "text", title="why nothing is trained on it; empty for a time of a kernel"),
    ),
    key=("source", "application", "kernel", "launch", "device", "configuration"),
)
"""Version 1. A kernel that two sources timed has rows of both, with one application and kernel."""

PARTS = Schema(
    "parts",
    1,
    (
        APPLICATION,
        KERNEL,
        LAUNCH,
        Column("part", "integer", "count", "number of the part, from 0", required=True, ge=0),
        Column("profile_kernel", "text", title="kernel of its profile", required=True),
        Column("profile_size", "text", title="size of its profile", required=True),
        Column("profile_invocation", "integer", "count", "invocation of its profile", required=True, ge=0),
        Column("launches", "real", "count", "launches that the profile stands for", required=True, gt=0),
    ),
    key=("application", "kernel", "launch", "part"),
)
"""Version 1. The launches of a time; profiles are those of the table of profiles of the same application."""


class KernelTime(NamedTuple):
    """A row of the table of times that is the time of a kernel."""

    source: str  # Table that it is from
    application: str
    kernel: str
    launch: str
    device: str  # Key of the device
    time_s: float
    timed: str  # Timed operation, such as the kernel on the device
    total: bool  # Whether it is the time of all launches together, else their mean
    note: str = ""  # Other work in the time

    @property
    def cell(self) -> tuple[str, str, str]:
        """Application, kernel and launch, by which `LaunchTables.parts` has the timed launches."""
        return self.application, self.kernel, self.launch


@dataclass(frozen=True, eq=False)
class LaunchTables:
    """Times for training, with the launches that each covers, and their profiles."""

    label: str  # Where they are from, such as their folder, for messages
    profiles: tuple[Profile, ...]
    times: tuple[KernelTime, ...]
    parts: Mapping[tuple[str, str, str], Sequence[tuple[int, float]]]  # Numbers of profiles, and launches
    # Devices that are not those of the catalogue, by their keys
    devices: Mapping[str, Device] = field(default_factory=dict)

    def without(self, applications: Sequence[str]) -> LaunchTables:
        """Drop the times of some applications."""
        known = sorted({row.application for row in self.times})
        for name in applications:
            if name not in known:
                expected = f"applications of {self.label} ({', '.join(known)})"
                raise InputError.of(where="without", expected=expected, found=repr(name))
        times = tuple(row for row in self.times if row.application not in applications)
        if not times:
            raise InputError.of(where="without", expected="some applications that stay", found="all")
        return replace(self, times=times)


def has_launch_times(folder: str | Path) -> bool:
    """Whether a folder has tables of times with their launches."""
    return (Path(folder) / f"{TIMES.table}.parquet").exists()


def read_launch_tables(folder: str | Path) -> LaunchTables:
    """Read ``times.parquet``, ``parts.parquet`` and ``profiles.parquet`` of a folder.

    Devices that no catalogue has are those of ``devices.json``, if there is one.

    Raises
    ------
    InputError
        If a table is missing or damaged, a time is of a launch without a profile, or a profile has no counts
        by sub-groups.
    """
    folder = Path(folder)
    paths = (folder / f"{name}.parquet" for name in ("profiles", TIMES.table, PARTS.table))
    profiles_path, times_path, parts_path = paths
    profiles = tuple(read_parquet(profiles_path))
    numbers = {(p.application, p.kernel, p.size, p.invocation): number for number, p in enumerate(profiles)}
    launches: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for row in read_table(parts_path, PARTS).to_pylist():
        key = (row["application"], row["profile_kernel"], row["profile_size"], row["profile_invocation"])
        if key not in numbers:
            missing = " ".join(map(str, key))
            raise InputError.of(where=parts_path, expected="launches with a profile", found=missing)
        cell = (row["application"], row["kernel"], row["launch"])
        launches.setdefault(cell, []).append((numbers[key], row["launches"]))
    names = ("source", "application", "kernel", "launch", "device", "time_s", "timed")
    times = tuple(
        KernelTime(**{name: row[name] for name in names}, total=row["total"] == 1, note=row["note"] or "")
        for row in read_table(times_path, TIMES).to_pylist()
        if not row["left_out"]
    )
    if not times:
        raise InputError.of(where=times_path, expected="times of kernels", found="none")
    for time in times:
        if time.cell not in launches:
            expected = f"times whose launches are in {parts_path.name}"
            raise InputError.of(where=times_path, expected=expected, found=" ".join(time.cell))
        for profile in (profiles[number] for number, _ in launches[time.cell]):
            if not profile.launch.get("sub_groups"):
                raise InputError.of(
                    where=profiles_path,
                    expected="profiles with counts by sub-groups, as crosscast characterize makes them",
                    found=f"none in that of {profile.application} {profile.kernel}",
                )
    return LaunchTables(str(folder), profiles, times, launches, _own_devices(folder / "devices.json"))


def _own_devices(path: Path) -> dict[str, Device]:
    if not path.is_file():
        return {}
    try:
        devices = msgspec.json.decode(path.read_bytes(), type=list[Device])
    except msgspec.DecodeError as error:
        raise InputError.of(where=path, expected="a list of devices", found=str(error)) from error
    for device in devices:
        for name, value in {**device.numbers, **device.measured}.items():
            if not 0 < value < math.inf:
                field_name = f"{name} of {device.key}"
                raise InputError.of(where=path, field=field_name, expected="a number above 0", found=value)
    return {device.key: device for device in devices}
