"""What models learn from and are asked about: profiles of kernels, and the grid of their times on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.profile import METRICS, Profile

_PLACES = {each.name: place for place, each in enumerate(METRICS)}


@dataclass(frozen=True)
class Profiles:
    """Profiles of ``n`` kernels, each at a size: all that a model is told of them."""

    application: tuple[str, ...]  # Names, of length `n`. Models do not look at them; splits and tables do
    kernel: tuple[str, ...]
    size: tuple[str, ...]
    # Metrics in the order of `crosscast.profile.METRICS`, of shape `(n, len(METRICS))`; not a number where a
    # metric is not defined or not known. Of a kernel launched more than once, their means over the
    # invocations
    metrics: Reals
    # How often each was launched in the run that its metrics are of, of shape `(n,)`; by default once
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
    """Times of ``n`` kernels on ``d`` devices, a cell each."""

    profiles: Profiles  # The kernels
    devices: tuple[Device, ...]  # The devices
    # Natural logarithm of the median time in seconds, of shape `(n, d)`; not a number where the kernel was
    # not measured on the device
    log_time: Reals
    # Standard deviation of the logarithms of single runs, of shape `(n, d)`; not a number where fewer than
    # two runs tell it
    spread: Reals
    runs: Integers  # Runs in which the cell was measured, of shape `(n, d)`

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
    """A metric of all profiles, of shape ``(n,)``."""
    column: Reals = profiles.metrics[:, _PLACES[name]]
    return column


def kinds_of(devices: Sequence[Device]) -> Integers:
    """A number for each device, from 0, equal where they are of one type and vendor. Of shape ``(d,)``."""
    kinds = [(device.type, device.vendor) for device in devices]
    order = {kind: place for place, kind in enumerate(sorted(set(kinds)))}
    return np.array([order[kind] for kind in kinds], dtype=np.int64)


def application_weights(profiles: Profiles, power: float = 0.75) -> Reals:
    """Weights with mean 1 that keep an application of many kernels from outweighing the others. Of shape
    ``(n,)``.
    """
    groups = profiles.groups("application")
    weights = np.bincount(groups)[groups].astype(np.float64) ** -power
    scaled: Reals = weights / weights.mean()
    return scaled


@dataclass(frozen=True)
class Filled:
    """Times of ``n`` kernels on ``d`` devices."""

    profiles: Profiles  # The kernels
    log_time: Reals  # Natural logarithms of times in seconds, of shape `(n, d)`; finite


def filled(grid: Grid) -> Filled:
    """Leave out kernels without any time, and fill the cells that are left without one.

    The logarithm of a time is taken as a kernel's effect plus a device's, by least squares over the measured
    cells (`device_effects`). Measured cells stay as they are.
    """
    known = np.isfinite(grid.log_time)
    there = np.count_nonzero(known, axis=0)
    if not known.any():
        raise InputError("grid: expected kernels with times, found none")
    lacking = [each.key for each, timed in zip(grid.devices, there, strict=True) if not timed]
    if lacking:
        raise InputError(f"grid: expected times on every device, found none on {', '.join(lacking)}")
    measured = grid.take(np.flatnonzero(np.count_nonzero(known, axis=1)))
    times = measured.log_time
    effects = device_effects(times)
    level = np.nanmean(times - effects, axis=1, keepdims=True)
    return Filled(measured.profiles, np.where(np.isfinite(times), times, level + effects))


def device_effects(log_time: Reals) -> Reals:
    """How much slower each device is, by the kernels that were measured on several of them. Effects with
    mean 0, of shape ``(d,)``; where devices fall apart into sets that share no kernel, with mean 0
    within each set.
    """
    known = np.isfinite(log_time)
    counts = known.sum(axis=1)
    centred = np.where(known, log_time - np.nanmean(log_time, axis=1, keepdims=True), 0.0)
    # Normal equations after elimination of the rows' effects: a Laplacian, singular by one constant a set.
    shares = known / counts[:, None]
    laplacian = np.diag(known.sum(axis=0).astype(np.float64)) - known.T.astype(np.float64) @ shares
    effects: Reals = np.linalg.pinv(laplacian, hermitian=True) @ centred.sum(axis=0)
    return effects


_OF_THE_PROGRAM = ("-D", "-U", "-I", "-W", "-w", "-cl-kernel-arg-info", "-cl-std=")


@dataclass(frozen=True, order=True)
class Toolchain:
    """A compiler, or a tool that brings its own, and what it was told about optimizing."""

    compiler: str  # Name and version; empty where not known
    # Options that change the instructions of a given program, such as `-O0` or `-cl-fast-relaxed-math`
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name and options, for people."""
        return " ".join([self.compiler or "an unknown compiler", *self.options])


def toolchain_of(program: Mapping[str, Any]) -> Toolchain:
    """The toolchain that a profile's program was counted with."""
    compiler = program.get("compiler") or program.get("tool") or ""
    return Toolchain(str(compiler), _optimizing(program.get("options") or ()))


def _optimizing(options: Sequence[Any]) -> tuple[str, ...]:
    """Those that say how to compile, and not what: in order, as the last of some holds."""
    kept = []
    argument = False
    for option in map(str, options):
        # `-D NAME` may be two words.
        if not (argument or option.startswith(_OF_THE_PROGRAM)):
            kept.append(option)
        argument = option in ("-D", "-U", "-I")
    return tuple(kept)


@dataclass(frozen=True)
class Asked:
    """Kernels that a model is asked about."""

    profiles: Profiles  # Their profiles
    toolchains: tuple[tuple[Toolchain, ...], ...]  # For each, what its profiles were made with


def kernels_of(profiles: Sequence[Profile], *, invocations: int | None = None) -> Asked:
    """Put the launches of each kernel together.

    Metrics are means over a kernel's launches in which they are defined, as `crosscast.join` has them.
    """
    if not profiles:
        raise InputError("profiles: expected at least one, found none")
    if invocations is not None and invocations < 1:
        raise InputError(f"invocations: expected at least 1, found {invocations}")
    launches: dict[tuple[str, str, str, str], list[Profile]] = {}
    for each in profiles:
        program = str(each.program.get("sha256") or "")
        key = (each.application or "", each.kernel, each.size or "", program)
        launches.setdefault(key, []).append(each)
    counts = [invocations or len(group) for group in launches.values()]
    return Asked(
        Profiles(
            tuple(key[0] for key in launches),
            tuple(key[1] for key in launches),
            tuple(key[2] for key in launches),
            np.stack([_means(group) for group in launches.values()]),
            np.array(counts, dtype=np.int64),
        ),
        tuple(tuple(sorted({toolchain_of(each.program) for each in group})) for group in launches.values()),
    )


def _means(launches: Sequence[Profile]) -> Reals:
    values = np.array(
        [[_number(each, metric.name) for metric in METRICS] for each in launches], dtype=np.float64
    )
    defined = ~np.isnan(values)
    sums, counts = np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0)
    means: Reals = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def _number(profile: Profile, name: str) -> float:
    value = profile.metrics.get(name)
    return np.nan if value is None else float(value)
