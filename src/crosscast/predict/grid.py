"""What models learn from and are asked about: profiles of kernels, and the grid of their times on devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.profile import METRICS

__all__ = ["Grid", "Profiles", "metric"]

_PLACES = {each.name: place for place, each in enumerate(METRICS)}


@dataclass(frozen=True)
class Profiles:
    """Profiles of ``n`` kernels, each at a size: all that a model is told of them.

    Parameters
    ----------
    application, kernel, size
        Names, of length ``n``. Models do not look at them; splits and tables do.
    metrics
        Metrics in the order of `crosscast.profile.METRICS`, of shape ``(n, len(METRICS))``; not a number
        where a metric is not defined or not known. Of a kernel launched more than once, their means over
        the invocations.
    invocations
        How often each was launched in the run that its metrics are of, of shape ``(n,)``; by default once.
    """

    application: tuple[str, ...]
    kernel: tuple[str, ...]
    size: tuple[str, ...]
    metrics: Reals
    invocations: Integers = field(default_factory=lambda: np.ones(0, dtype=np.int64))

    def __post_init__(self) -> None:
        """Check the shapes."""
        n = len(self.application)
        if self.invocations.size == 0:
            object.__setattr__(self, "invocations", np.ones(n, dtype=np.int64))
        if self.invocations.shape != (n,):
            raise InputError(
                f"profiles: expected invocations of shape ({n},), found {self.invocations.shape}"
            )
        if not (len(self.kernel) == len(self.size) == n and self.metrics.shape == (n, len(METRICS))):
            raise InputError(
                f"profiles: expected names of one length n and metrics of shape (n, {len(METRICS)}), found "
                f"lengths {n}, {len(self.kernel)} and {len(self.size)} and shape {self.metrics.shape}"
            )

    def __len__(self) -> int:
        """Number of profiles."""
        return len(self.application)

    @property
    def names(self) -> list[tuple[str, str, str]]:
        """Application, kernel and size of each, which together tell it from the others."""
        return list(zip(self.application, self.kernel, self.size, strict=True))

    def take(self, rows: Integers | Flags) -> Profiles:
        """Some of the profiles, by their numbers or by a flag for each."""
        places = np.arange(len(self))[rows].tolist()
        return Profiles(
            tuple(self.application[i] for i in places),
            tuple(self.kernel[i] for i in places),
            tuple(self.size[i] for i in places),
            self.metrics[places],
            self.invocations[places],
        )

    def groups(self, by: Literal["application", "kernel"]) -> Integers:
        """A number for each profile, equal where they are of one application, or of one of its kernels."""
        names = [
            (application, kernel if by == "kernel" else "")
            for application, kernel in zip(self.application, self.kernel, strict=True)
        ]
        order = {name: place for place, name in enumerate(sorted(set(names)))}
        return np.array([order[name] for name in names], dtype=np.int64)


@dataclass(frozen=True)
class Grid:
    """Times of ``n`` kernels on ``d`` devices, a cell each.

    Parameters
    ----------
    profiles
        The kernels.
    devices
        The devices.
    log_time
        Natural logarithm of the median time in seconds, of shape ``(n, d)``; not a number where the
        kernel was not measured on the device.
    spread
        Standard deviation of the logarithms of single runs, of shape ``(n, d)``; not a number where
        fewer than two runs tell it.
    runs
        Runs in which the cell was measured, of shape ``(n, d)``.
    """

    profiles: Profiles
    devices: tuple[Device, ...]
    log_time: Reals
    spread: Reals
    runs: Integers

    def __post_init__(self) -> None:
        """Check the shapes."""
        shape = (len(self.profiles), len(self.devices))
        if not (self.log_time.shape == self.spread.shape == self.runs.shape == shape):
            raise InputError(
                f"grid: expected times, spreads and runs of shape {shape}, found {self.log_time.shape}, "
                f"{self.spread.shape} and {self.runs.shape}"
            )

    def take(self, rows: Integers | Flags) -> Grid:
        """The grid of some of the kernels."""
        return Grid(
            self.profiles.take(rows), self.devices, self.log_time[rows], self.spread[rows], self.runs[rows]
        )

    def on(self, devices: Sequence[int]) -> Grid:
        """The grid of some of the devices, by their numbers."""
        places = list(devices)
        return Grid(
            self.profiles,
            tuple(self.devices[i] for i in places),
            self.log_time[:, places],
            self.spread[:, places],
            self.runs[:, places],
        )


def metric(profiles: Profiles, name: str) -> Reals:
    """A metric of all profiles, of shape ``(n,)``.

    Raises
    ------
    KeyError
        If there is no metric of that name.
    """
    column: Reals = profiles.metrics[:, _PLACES[name]]
    return column
