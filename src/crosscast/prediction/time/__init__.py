"""Profiles of kernels as a batch, and the grid of their times on devices: the input of models of times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.profile import METRICS, Profile, compiler_options

_COLUMN = {metric.name: column for column, metric in enumerate(METRICS)}

# Options that choose the program. All others change the instructions of a given one, as `-O0` does.
_OF_THE_PROGRAM = ("-D", "-U", "-I", "-W", "-w", "-cl-kernel-arg-info", "-cl-std=")


@dataclass(frozen=True, order=True)
class Toolchain:
    """A compiler, or a tool with a compiler of its own, and its options for optimization."""

    compiler: str  # Name and version; empty where not known
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.compiler or "an unknown compiler", *self.options])

    @classmethod
    def of(cls, program: Mapping[str, object]) -> Toolchain:
        """Toolchain of a profile's program, with its options for the compiler, in order."""
        options, argument = list[str](), False
        for option in compiler_options(program):
            # `-D NAME` may be two words.
            if not (argument or option.startswith(_OF_THE_PROGRAM)):
                options.append(option)
            argument = option in ("-D", "-U", "-I")
        return cls(str(program.get("compiler") or program.get("tool") or ""), tuple(options))


def kernel_key(profile: Profile) -> tuple[str, str, str, str]:
    """Key of a kernel at one size: its launches are one row of a batch."""
    program = str(profile.program.get("sha256") or "")
    return profile.application or "", profile.kernel, profile.size or "", program


def _recorded(profile: Profile) -> float:
    """Launches of a recorded program that a profile stands for; 1 for any other."""
    recorded = profile.launch.get("recorded") or {}
    return float(recorded.get("stands_for") or recorded.get("launches") or 1)


@dataclass(frozen=True, eq=False)
class ProfileBatch:
    """Profiles of ``n`` kernels, each at a size."""

    application: tuple[str, ...]  # Names are for folds and tables, not for models
    kernel: tuple[str, ...]
    size: tuple[str, ...]
    # `(n, len(METRICS))`, means over a kernel's launches; NaN where not defined or not known
    metrics: Reals
    # `(n,)` Launches of each in the run of its metrics; by default one
    invocations: Integers = field(default_factory=lambda: np.ones(0, dtype=np.int64))
    toolchains: tuple[tuple[Toolchain, ...], ...] = ()  # Of each profile; empty where not known
    # Profiles of each kernel's launches; empty where only metrics are known
    launches: tuple[tuple[Profile, ...], ...] = ()

    def __post_init__(self) -> None:
        n = len(self.application)
        if self.invocations.size == 0:
            object.__setattr__(self, "invocations", np.ones(n, dtype=np.int64))
        lengths = {"kernels": len(self.kernel), "sizes": len(self.size), "invocations": len(self.invocations)}
        for name, length in lengths.items():
            if length != n:
                expected = f"{n}, one a profile"
                raise InputError.of(where="profiles", field=name, expected=expected, found=length)
        shape = self.metrics.shape
        if shape != (n, len(METRICS)):
            expected = f"shape ({n}, {len(METRICS)})"
            raise InputError.of(where="profiles", field="metrics", expected=expected, found=shape)

    @classmethod
    def of(cls, profiles: Iterable[Profile], *, invocations: int | None = None) -> ProfileBatch:
        """Group launches by kernel and size; metrics are means over launches in which they are defined."""
        if invocations is not None and invocations < 1:
            raise InputError.of(where="invocations", expected="at least 1", found=invocations)
        launches: dict[tuple[str, str, str, str], list[Profile]] = {}
        for each in profiles:
            launches.setdefault(kernel_key(each), []).append(each)
        if not launches:
            raise InputError.of(where="profiles", expected="at least one", found="none")
        means = []
        for group in launches.values():
            rows = [[each.metrics.get(metric.name) for metric in METRICS] for each in group]
            values = np.array(rows, dtype=np.float64)
            counts = (~np.isnan(values)).sum(axis=0)
            sums = np.nansum(values, axis=0)
            means.append(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0))
        applications, kernels, sizes, _ = zip(*launches, strict=True)
        counts = np.array(
            [invocations or max(1, round(sum(map(_recorded, group)))) for group in launches.values()],
            dtype=np.int64,
        )
        toolchains = [{Toolchain.of(each.program) for each in group} for group in launches.values()]
        toolchain_rows = tuple(tuple(sorted(row)) for row in toolchains)
        launch_rows = tuple(map(tuple, launches.values()))
        return cls(applications, kernels, sizes, np.stack(means), counts, toolchain_rows, launch_rows)

    def mean_of_launches(self, values: Reals) -> Reals:
        """Means over the launches of each kernel, of values with a row for each launch in their order."""
        if len(values) == len(self):
            return values
        counts = np.array([len(launches) for launches in self.launches])
        sums: Reals = np.add.reduceat(values, np.cumsum(counts) - counts)
        means: Reals = sums / counts.reshape(-1, *(1,) * (values.ndim - 1))
        return means

    @classmethod
    def joined(cls, batches: Sequence[ProfileBatch]) -> ProfileBatch:
        """All kernels of several batches, of which there is at least one, in their order."""
        names = ("application", "kernel", "size", "toolchains", "launches")
        application, kernel, size, toolchains, launches = (
            tuple(each for batch in batches for each in getattr(batch, name)) for name in names
        )
        metrics = np.concatenate([batch.metrics for batch in batches])
        invocations = np.concatenate([batch.invocations for batch in batches])
        all_launches = launches if len(launches) == len(application) else ()
        return cls(application, kernel, size, metrics, invocations, toolchains, all_launches)

    def __len__(self) -> int:
        return len(self.application)

    @property
    def names(self) -> list[tuple[str, str, str]]:
        """Application, kernel and size of each, which together are unique."""
        return list(zip(self.application, self.kernel, self.size, strict=True))

    def metric(self, name: str) -> Reals:
        """A metric of all profiles, of shape ``(n,)``."""
        return self.metrics[:, _COLUMN[name]]

    def take(self, rows: Integers | Flags) -> ProfileBatch:
        """The profiles of these rows, by index or by mask."""
        indices = np.arange(len(self))[rows].tolist()
        labels = (self.application, self.kernel, self.size)
        application, kernel, size = (tuple(names[i] for i in indices) for names in labels)
        toolchains = tuple(self.toolchains[i] for i in indices) if self.toolchains else ()
        launches = tuple(self.launches[i] for i in indices) if self.launches else ()
        metrics, invocations = self.metrics[indices], self.invocations[indices]
        return ProfileBatch(application, kernel, size, metrics, invocations, toolchains, launches)

    def groups(self, by: Literal["application", "kernel", "run"]) -> Integers:
        """Group number of each profile: equal for profiles of one application, kernel or run.

        A run is an application at a size, or a recorded program.
        """
        parts = {"application": slice(1), "kernel": slice(2), "run": slice(0, 3, 2)}[by]
        keys = [name[parts] for name in self.names]
        if by == "run" and self.launches:
            keys = [
                key[:1] if any("recorded" in each.launch for each in launches) else key
                for key, launches in zip(keys, self.launches, strict=True)
            ]
        numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
        return np.array([numbers[key] for key in keys], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Grid:
    """Times of ``n`` kernels on ``d`` devices; arrays are of shape ``(n, d)``."""

    profiles: ProfileBatch
    devices: tuple[Device, ...]
    log_time: Reals  # Natural logarithm of the median time in seconds; NaN where not measured
    spread: Reals  # Standard deviation of the logarithms of single runs; NaN with fewer than two
    runs: Integers  # Runs in which the cell was measured

    def __post_init__(self) -> None:
        shape = (len(self.profiles), len(self.devices))
        for name in ("log_time", "spread", "runs"):
            array_shape = getattr(self, name).shape
            if array_shape != shape:
                raise InputError.of(where="grid", field=name, expected=f"shape {shape}", found=array_shape)

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications, sorted: the order in which scores weight them."""
        return tuple(sorted(set(self.profiles.application)))

    def take(self, rows: Integers | Flags) -> Grid:
        """The grid of some of the kernels, by index or by mask."""
        cells = (self.log_time[rows], self.spread[rows], self.runs[rows])
        return Grid(self.profiles.take(rows), self.devices, *cells)

    def on(self, devices: Sequence[int]) -> Grid:
        """The grid of some of the devices, by index."""
        columns = list(devices)
        cells = (self.log_time[:, columns], self.spread[:, columns], self.runs[:, columns])
        return Grid(self.profiles, tuple(self.devices[column] for column in columns), *cells)


def device_groups(devices: Sequence[Device]) -> Integers:
    """A number for each device, from 0, equal where they are of one type and vendor. Of shape ``(d,)``."""
    groups = [(device.type, device.vendor) for device in devices]
    return np.array([sorted(set(groups)).index(group) for group in groups], dtype=np.int64)


_GROUP_POWER = 0.75
"""Exponent of an application's number of kernels in the weights of its kernels."""


def application_weights(profiles: ProfileBatch) -> Reals:
    """Weights ``(n,)`` of mean 1 that keep an application of many kernels from outweighing the others."""
    groups = profiles.groups("application")
    weights = np.bincount(groups)[groups].astype(np.float64) ** -_GROUP_POWER
    scaled: Reals = weights / weights.mean()
    return scaled


def impute(grid: Grid) -> Grid:
    """Drop kernels without any time, and fill the missing cells of the others.

    The logarithm of a time is taken as a kernel's effect plus a device's, by least squares over the measured
    cells (`device_effects`). Measured cells stay as they are.
    """
    known = np.isfinite(grid.log_time)
    if not known.any():
        raise InputError.of(where="grid", expected="kernels with times", found="none")
    lacking = [grid.devices[column].key for column in np.flatnonzero(~known.any(axis=0))]
    if lacking:
        found = f"none on {', '.join(lacking)}"
        raise InputError.of(where="grid", expected="times on every device", found=found)
    measured = grid.take(np.flatnonzero(known.any(axis=1)))
    times = measured.log_time
    effects = device_effects(times)
    level = np.nanmean(times - effects, axis=1, keepdims=True)
    return replace(measured, log_time=np.where(np.isfinite(times), times, level + effects))


def device_effects(log_time: Reals) -> Reals:
    """Mean logarithm of each device's slowness, from the kernels that were measured on several devices.

    Effects ``(d,)`` with mean 0; where devices fall apart into sets that share no kernel, with mean 0 within
    each set.
    """
    known = np.isfinite(log_time)
    counts = known.sum(axis=1)
    centred = np.where(known, log_time - np.nanmean(log_time, axis=1, keepdims=True), 0.0)
    # Normal equations after elimination of the rows' effects: a Laplacian, singular by one constant a set.
    shares = known / counts[:, None]
    laplacian = np.diag(known.sum(axis=0).astype(np.float64)) - known.T.astype(np.float64) @ shares
    effects: Reals = np.linalg.pinv(laplacian, hermitian=True) @ centred.sum(axis=0)
    return effects
