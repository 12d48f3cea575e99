"""What a campaign has to do, piece by piece, and which pieces are done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from crosscast.errors import InputError
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.settings import Settings
from crosscast.suite.application import Application
from crosscast.suite.sizes import Caches, working_set
from crosscast.tables.dataset import Dataset

__all__ = ["CharacterizePiece", "DescribePiece", "MeasurePiece", "Piece", "Plan", "missing", "pieces"]


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

    def parameters(self, name: str, size: str) -> dict[str, int]:
        """Extents of an application at a size."""
        return self.applications[name].fit(working_set(size, self.caches))


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

    Raises
    ------
    InputError
        If the dataset holds some that were made from another source, with other parameters, or on
        another machine: these must not be mixed.
    """
    devices = {row["device"]: row for row in dataset.devices.to_pylist()}
    sessions = {_key(row): row for row in dataset.sessions.to_pylist()}
    profiles = set(
        zip(
            dataset.profiles.column("application").to_pylist(),
            dataset.profiles.column("size").to_pylist(),
            strict=True,
        )
    )
    left: list[Piece] = []
    for piece in pieces(plan):
        if isinstance(piece, DescribePiece):
            row = devices.get(piece.device.key)
            if row is None:
                left.append(piece)
            else:
                _refuse_unlike_device(dataset, piece.device, row)
        elif isinstance(piece, CharacterizePiece):
            if (piece.application, piece.size) not in profiles:
                left.append(piece)
        else:
            row = sessions.get((piece.application, piece.size, piece.device.key, piece.repeat))
            if row is None or row["failure"] is not None:
                left.append(piece)
            else:
                _refuse_unlike_problem(dataset, plan, piece, row)
    return left


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return row["application"], row["size"], row["device"], row["repeat"]


def _refuse_unlike_device(dataset: Dataset, device: OpenCLDevice, row: Mapping[str, Any]) -> None:
    for what, found in (("driver", device.driver), ("platform", device.platform)):
        if row[what] != found:
            raise InputError(
                f"{dataset.label}: {device.key} was measured with {what} {row[what]!r}, and now has "
                f"{found!r}: choose another folder for it"
            )


def _refuse_unlike_problem(dataset: Dataset, plan: Plan, piece: MeasurePiece, row: Mapping[str, Any]) -> None:
    parameters = plan.parameters(piece.name, piece.size)
    if json.loads(row["parameters"]) != parameters or row["seed"] != plan.seed:
        raise InputError(
            f"{dataset.label}: {piece.application} {piece.size} was measured with the parameters "
            f"{row['parameters']} and seed {row['seed']}, and now has {json.dumps(parameters)} and "
            f"{plan.seed}: choose another folder for it"
        )
