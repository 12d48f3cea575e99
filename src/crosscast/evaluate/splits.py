"""Splits of a grid into what a model learns from and what is held out: always by group, never by cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Integers
from crosscast.errors import InputError
from crosscast.predict.grid import Grid

__all__ = ["DEFAULT", "SPLITS", "Fold", "Split", "split_named"]


@dataclass(frozen=True)
class Fold:
    """One way to hold a group out.

    Parameters
    ----------
    held_out
        Name of the group.
    train_rows, test_rows
        Kernels that the model is fitted to, and those it is asked about.
    train_devices, test_devices
        Devices that the model is fitted on, and those whose cells are scored.
    """

    held_out: str
    train_rows: Integers
    test_rows: Integers
    train_devices: Integers
    test_devices: Integers


@dataclass(frozen=True)
class Split:
    """A way to hold groups out, each once.

    Parameters
    ----------
    name
        Its name on the command line and in tables.
    folds
        The folds of a grid.
    known_elsewhere
        Whether the kernels that are asked about were measured on all devices that are not held out, and
        the model is told those times.
    new_devices
        Whether the devices that are scored are not among those of the fit.
    """

    name: str
    folds: Callable[[Grid], tuple[Fold, ...]]
    known_elsewhere: bool = False
    new_devices: bool = False


def _all(count: int) -> Integers:
    return np.arange(count, dtype=np.int64)


def _places(flags: Flags) -> Integers:
    return np.flatnonzero(flags).astype(np.int64)


def _check_groups(split: str, count: int, noun: str) -> None:
    if count < 2:
        raise InputError(f"{split}: expected at least 2 {noun} to split by, found {count}")


def _leave_rows_out(grid: Grid, split: str, by: Literal["application", "kernel"]) -> tuple[Fold, ...]:
    groups = grid.profiles.groups(by)
    _check_groups(split, len(set(groups.tolist())), f"{by}s")
    devices = _all(len(grid.devices))
    folds = []
    for group in range(int(groups.max()) + 1):
        test = _places(groups == group)
        first = int(test[0])
        application, kernel = grid.profiles.application[first], grid.profiles.kernel[first]
        name = application if by == "application" else f"{application}/{kernel}"
        folds.append(Fold(name, _places(groups != group), test, devices, devices))
    return tuple(folds)


def _leave_device_out(grid: Grid, split: str) -> tuple[Fold, ...]:
    devices, rows = _all(len(grid.devices)), _all(len(grid.profiles))
    _check_groups(split, len(devices), "devices")
    return tuple(
        Fold(device.key, rows, rows, devices[devices != place], devices[devices == place])
        for place, device in enumerate(grid.devices)
    )


def _leave_both_out(grid: Grid, split: str) -> tuple[Fold, ...]:
    applications = _leave_rows_out(grid, split, "application")
    devices = _leave_device_out(grid, split)
    return tuple(
        Fold(
            f"{application.held_out} on {device.held_out}",
            application.train_rows,
            application.test_rows,
            device.train_devices,
            device.test_devices,
        )
        for application in applications
        for device in devices
    )


DEFAULT = "leave-application-out"
"""The split that is used where none is named."""

_KERNEL = "leave-kernel-out"
_DEVICE = "leave-device-out"
_BOTH = "leave-device-and-application-out"

SPLITS: Mapping[str, Split] = MappingProxyType(
    {
        split.name: split
        for split in (
            Split(DEFAULT, lambda grid: _leave_rows_out(grid, DEFAULT, "application")),
            Split(_KERNEL, lambda grid: _leave_rows_out(grid, _KERNEL, "kernel")),
            Split(
                _DEVICE,
                lambda grid: _leave_device_out(grid, _DEVICE),
                known_elsewhere=True,
                new_devices=True,
            ),
            Split(_BOTH, lambda grid: _leave_both_out(grid, _BOTH), new_devices=True),
        )
    }
)
"""The splits by name."""


def split_named(name: str) -> Split:
    """A split.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {name!r}")
    return SPLITS[name]
