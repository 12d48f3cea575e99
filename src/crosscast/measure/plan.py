"""What a campaign has to do, piece by piece, and which pieces are done."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from crosscast.errors import InputError
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.settings import Settings
from crosscast.measure.subjects import SuiteProblem, fitted, identity
from crosscast.suite.application import Application
from crosscast.suite.sizes import Caches, working_set
from crosscast.tables.dataset import Dataset

__all__ = [
    "CharacterizePiece",
    "DescribePiece",
    "MeasurePiece",
    "Piece",
    "Plan",
    "is_described",
    "measured_less",
    "missing",
    "pieces",
    "refuse_unlike_devices",
]


_SEEDS = 1 << 63
"""What a column of the tables holds."""


@dataclass(frozen=True)
class Plan:
    """The grid of a campaign, and how to fill it.

    Parameters
    ----------
    applications
        Applications by the name or path that they are found by.
    sizes
        Names of the sizes.
    devices
        Where to measure.
    caches
        What the sizes must fit.
    settings
        How to measure.
    repeats
        Processes that measure the same.
    seed
        Start of the problems' random numbers.
    """

    applications: Mapping[str, type[Application]]
    sizes: tuple[str, ...]
    devices: tuple[OpenCLDevice, ...]
    caches: Caches
    settings: Settings
    repeats: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InputError(f"repeats: expected at least 1, found {self.repeats}")
        if not 0 <= self.seed < _SEEDS:
            raise InputError(f"seed: expected a number from 0 to {_SEEDS - 1}, found {self.seed}")

    def problem(self, name: str, size: str) -> SuiteProblem:
        """An application, by the name or path that it is found by, at a size.

        Raises
        ------
        InputError
            If its driver fails to fit the size.
        """
        nbytes = working_set(size, self.caches)
        return SuiteProblem(name, size, fitted(self.applications[name], nbytes), self.seed, nbytes)


@dataclass(frozen=True)
class DescribePiece:
    """Measure what describes a device."""

    device: OpenCLDevice

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"describe {self.device.id}"


@dataclass(frozen=True)
class CharacterizePiece:
    """Characterize an application at a size."""

    name: str
    application: str
    size: str

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"characterize {self.application} {self.size}"


@dataclass(frozen=True)
class MeasurePiece:
    """Measure an application at a size on a device, in one process."""

    name: str
    application: str
    size: str
    device: OpenCLDevice
    repeat: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"measure {self.application} {self.size} on {self.device.id}"


Piece = DescribePiece | CharacterizePiece | MeasurePiece


def pieces(plan: Plan) -> list[Piece]:
    """All pieces of a plan, in the order in which they are done."""
    names = {name: kind.name for name, kind in plan.applications.items()}
    return [
        *(DescribePiece(device) for device in plan.devices),
        *(CharacterizePiece(name, names[name], size) for size, name in product(plan.sizes, names)),
        *(
            MeasurePiece(name, names[name], size, device, repeat)
            for size, name, device, repeat in product(plan.sizes, names, plan.devices, range(plan.repeats))
        ),
    ]


def missing(plan: Plan, dataset: Dataset) -> list[Piece]:
    """Pieces that a dataset lacks; what failed before is tried again.

    Profiles of another source or other parameters are made again, if no measurement goes with them.

    Raises
    ------
    InputError
        If the dataset holds some that were made from another source, with other parameters, or on
        another machine: these must not be mixed.
    """
    refuse_unlike_devices(plan.devices, dataset)
    origins = _origins(plan)
    _refuse_unlike_sessions(dataset, origins)
    profiled = _profiled(dataset, origins)
    measured = {_key(row) for row in dataset.sessions.to_pylist() if row["failure"] is None}

    def is_done(piece: Piece) -> bool:
        if isinstance(piece, DescribePiece):
            return is_described(piece.device, dataset)
        if isinstance(piece, CharacterizePiece):
            return (piece.application, piece.size) in profiled
        return (piece.application, piece.size, piece.device.key, piece.repeat) in measured

    return [piece for piece in pieces(plan) if not is_done(piece)]


def measured_less(plan: Plan, dataset: Dataset) -> int:
    """Sessions of a plan that a dataset holds with fewer runs or less time than the plan wants."""
    wanted = {
        (piece.application, piece.size, piece.device.key, piece.repeat)
        for piece in pieces(plan)
        if isinstance(piece, MeasurePiece)
    }
    settings = plan.settings
    return sum(
        row["runs"] < settings.min_runs or row["loop_s"] < settings.min_time_s
        for row in dataset.sessions.to_pylist()
        if _key(row) in wanted and None not in (row["runs"], row["loop_s"])
    )


def is_described(device: OpenCLDevice, dataset: Dataset) -> bool:
    """Whether a dataset has what describes a device, also what has to be measured."""
    rows = dataset.devices.to_pylist()
    return any(row["device"] == device.key and row[_MEASURED] is not None for row in rows)


_MEASURED = "launch_overhead_s"
"""Column of the table of devices that is empty if measuring what describes the device failed."""

_Cell = tuple[str, str]
"""Application and size."""

_Origin = tuple[Any, ...]
"""Parameters and seed of a problem, and hash of its source."""

_ORIGIN = ("the parameters", "the seed", "the source of hash")


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return row["application"], row["size"], row["device"], row["repeat"]


def _origins(plan: Plan) -> dict[_Cell, _Origin]:
    found: dict[_Cell, _Origin] = {}
    for name, size in product(plan.applications, plan.sizes):
        subject = identity(plan.problem(name, size))
        found[subject.name, size] = (dict(subject.parameters), subject.seed, subject.source_sha256)
    return found


def _profiled(dataset: Dataset, origins: Mapping[_Cell, _Origin]) -> set[_Cell]:
    """Cells whose profiles are those that would be made now."""
    columns = dataset.profiles.select(("application", "size", "launch", "program"))
    there: dict[_Cell, list[_Origin | None]] = {}
    for row in columns.to_pylist():
        problem = json.loads(row["launch"] or "{}").get("problem")
        program = json.loads(row["program"] or "{}").get("sha256")
        sha256 = problem and problem.get("source_sha256", program)
        origin = (problem["parameters"], problem["seed"], sha256) if problem else None
        there.setdefault((row["application"], row["size"]), []).append(origin)
    for (application, size), found in there.items():
        if None in found and (application, size) in origins:
            raise InputError(
                f"{dataset.label}: the profiles of {application} {size} come from elsewhere: choose another "
                "folder for those of this build"
            )
    return {cell for cell, found in there.items() if all(origin == origins.get(cell) for origin in found)}


def refuse_unlike_devices(now_there: Iterable[OpenCLDevice], dataset: Dataset) -> None:
    """Check that devices which a dataset has have still the driver that they had.

    Raises
    ------
    InputError
        If one has not.
    """
    devices = {row["device"]: row for row in dataset.devices.to_pylist()}
    for device in now_there:
        row = devices.get(device.key)
        for what, now in (("driver", device.driver), ("platform", device.platform)):
            if row is not None and row[what] != now:
                raise InputError(
                    f"{dataset.label}: {device.key} was measured with the OpenCL {what} {row[what]!r}, and "
                    f"now has {now!r}: choose another folder for it"
                )


def _refuse_unlike_sessions(dataset: Dataset, origins: Mapping[_Cell, _Origin]) -> None:
    for row in dataset.sessions.to_pylist():
        now = origins.get((row["application"], row["size"]))
        if now is None or row["failure"] is not None:
            continue
        before = (json.loads(row["parameters"] or "null"), row["seed"], row["source_sha256"])
        for what, old, new in zip(_ORIGIN, before, now, strict=True):
            if old != new:
                raise InputError(
                    f"{dataset.label}: {row['application']} {row['size']} was measured with {what} "
                    f"{_text(old)}, and now has {_text(new)}: choose another folder for it"
                )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
