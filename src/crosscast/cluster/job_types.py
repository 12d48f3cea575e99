"""Types of jobs: applications with measured and predicted times, of which an experiment draws jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.machines import Machine
from crosscast.errors import InputError

__all__ = ["JobTypes", "Texts", "for_machines"]

Texts = tuple[str | None, ...]


@dataclass(frozen=True)
class JobTypes:
    """``n`` types of jobs, with times on ``d`` devices.

    Parameters
    ----------
    devices
        The devices; one may be there several times, for several machines of it.
    application
        Application of each.
    kernel, size, user, source, model
        Texts of each, or ``None`` where there is none.
    procs
        Processors or nodes that a job of each occupies, of shape ``(n,)``.
    uses_gpu
        Whether its users know that it runs on GPUs, of shape ``(n,)``.
    repeats
        Invocations that a job of each is, of shape ``(n,)``.
    submit_s
        When each is submitted, in seconds, of shape ``(n,)``; ``None`` if times are to be drawn.
    times_s
        Measured time of an invocation in seconds, of shape ``(n, d)``; not a number where none was measured.
    predicted
        Predicted time relative to the slowest device, of shape ``(n, d)``; not a number where nothing was
        predicted.
    """

    devices: tuple[str, ...]
    application: tuple[str, ...]
    kernel: Texts
    size: Texts
    procs: Integers
    uses_gpu: npt.NDArray[np.bool_]
    repeats: Integers
    submit_s: Reals | None
    user: Texts
    times_s: Reals
    predicted: Reals
    source: Texts
    model: Texts

    def __len__(self) -> int:
        """Number of types."""
        return len(self.application)

    @property
    def run_s(self) -> Reals:
        """How long a job of each runs on each device, in seconds, of shape ``(n, d)``."""
        return self.times_s * self.repeats[:, None]


def for_machines(types: JobTypes, machines: Sequence[Machine]) -> JobTypes:
    """The types with a column for each machine, in the order of the machines: that of its device.

    Devices without a machine are left out.

    Raises
    ------
    InputError
        If no type has a time on a machine's device, or a type has a time on none of the machines' devices.
    """
    columns = []
    for machine in machines:
        device = machine.device or machine.name
        column = types.devices.index(device) if device in types.devices else None
        if column is None or np.isnan(types.times_s[:, column]).all():
            timed = np.flatnonzero((~np.isnan(types.times_s)).any(axis=0))
            known = ", ".join(types.devices[place] for place in timed)
            raise InputError(
                f"machine {machine.name}: device: expected one on which jobs have times ({known}), "
                f"found {device!r}"
            )
        columns.append(column)
    times = types.times_s[:, columns]
    nowhere = np.isnan(times).all(axis=1)
    if nowhere.any():
        row = int(np.argmax(nowhere))
        measured = ~np.isnan(types.times_s[row])
        there = ", ".join(device for device, has in zip(types.devices, measured, strict=True) if has)
        wanted = ", ".join(types.devices[column] for column in columns)
        raise InputError(
            f"job type {row + 1} ({types.application[row]}): times: expected one on a device of the machines "
            f"({wanted}), found {there or 'none'}"
        )
    devices = tuple(types.devices[column] for column in columns)
    return replace(types, devices=devices, times_s=times, predicted=types.predicted[:, columns])
