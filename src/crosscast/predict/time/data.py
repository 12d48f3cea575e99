"""What models learn from and are asked about: profiles of kernels, and the grid of their times on devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.profile import METRICS, Profile

if TYPE_CHECKING:
    from crosscast.tables.arrow import Table
    from crosscast.tables.dataset import Dataset

_PLACES = {each.name: place for place, each in enumerate(METRICS)}

# Options that choose the program. What is left changes the instructions of a given one, as `-O0` does.
_OF_THE_PROGRAM = ("-D", "-U", "-I", "-W", "-w", "-cl-kernel-arg-info", "-cl-std=")


@dataclass(frozen=True, order=True)
class Toolchain:
    """A compiler, or a tool that brings its own, and what it was told about optimizing."""

    compiler: str  # Name and version; empty where not known
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name and options, for people."""
        return " ".join([self.compiler or "an unknown compiler", *self.options])

    @classmethod
    def of(cls, program: Mapping[str, Any]) -> Toolchain:
        """The toolchain of a profile's program; of its options, in order, those that say how to compile."""
        options, argument = list[str](), False
        for option in map(str, program.get("options") or ()):
            # `-D NAME` may be two words.
            if not (argument or option.startswith(_OF_THE_PROGRAM)):
                options.append(option)
            argument = option in ("-D", "-U", "-I")
        return cls(str(program.get("compiler") or program.get("tool") or ""), tuple(options))


@dataclass(frozen=True, eq=False)
class ProfileBatch:
    """Profiles of ``n`` kernels, each at a size: all that a model is told of them."""

    application: tuple[str, ...]  # Models do not look at names; folds and tables do
    kernel: tuple[str, ...]
    size: tuple[str, ...]
    # `(n, len(METRICS))`, means over a kernel's launches; not a number where not defined or not known
    metrics: Reals
    # `(n,)` How often each was launched in the run that its metrics are of; by default once
    invocations: Integers = field(default_factory=lambda: np.ones(0, dtype=np.int64))
    toolchains: tuple[tuple[Toolchain, ...], ...] = ()  # What each was profiled with; empty where not known

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

    @classmethod
    def of(cls, profiles: Iterable[Profile], *, invocations: int | None = None) -> ProfileBatch:
        """Group launches to kernels; metrics are means over the launches in which they are defined."""
        if invocations is not None and invocations < 1:
            raise InputError(f"invocations: expected at least 1, found {invocations}")
        launches: dict[tuple[str, str, str, str], list[Profile]] = {}
        for each in profiles:
            program = str(each.program.get("sha256") or "")
            key = (each.application or "", each.kernel, each.size or "", program)
            launches.setdefault(key, []).append(each)
        if not launches:
            raise InputError("profiles: expected at least one, found none")
        means = []
        for group in launches.values():
            rows = [[each.metrics.get(metric.name) for metric in METRICS] for each in group]
            values = np.array(rows, dtype=np.float64)
            defined = ~np.isnan(values)
            sums, counts = np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0)
            means.append(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0))
        return cls(
            tuple(key[0] for key in launches),
            tuple(key[1] for key in launches),
            tuple(key[2] for key in launches),
            np.stack(means),
            np.array([invocations or len(group) for group in launches.values()], dtype=np.int64),
            tuple(
                tuple(sorted({Toolchain.of(each.program) for each in group})) for group in launches.values()
            ),
        )

    def __len__(self) -> int:
        """Number of kernels at a size."""
        return len(self.application)

    @property
    def names(self) -> list[tuple[str, str, str]]:
        """Application, kernel and size of each, which together tell it from the others."""
        return list(zip(self.application, self.kernel, self.size, strict=True))

    def metric(self, name: str) -> Reals:
        """A metric of all profiles, of shape ``(n,)``."""
        column: Reals = self.metrics[:, _PLACES[name]]
        return column

    def take(self, rows: Integers | Flags) -> ProfileBatch:
        """Some of the profiles, by their numbers or by a flag for each."""
        places = np.arange(len(self))[rows].tolist()
        return ProfileBatch(
            tuple(self.application[i] for i in places),
            tuple(self.kernel[i] for i in places),
            tuple(self.size[i] for i in places),
            self.metrics[places],
            self.invocations[places],
            tuple(self.toolchains[i] for i in places) if self.toolchains else (),
        )

    def groups(self, by: Literal["application", "kernel"]) -> Integers:
        """A number for each profile, equal where they are of one application, or of one of its kernels."""
        names = [
            (application, kernel if by == "kernel" else "")
            for application, kernel in zip(self.application, self.kernel, strict=True)
        ]
        order = {name: place for place, name in enumerate(sorted(set(names)))}
        return np.array([order[name] for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Grid:
    """Times of ``n`` kernels on ``d`` devices, a cell each; arrays are of shape ``(n, d)``."""

    profiles: ProfileBatch
    devices: tuple[Device, ...]
    log_time: Reals  # Natural logarithm of the median time in seconds; not a number where not measured
    spread: Reals  # Standard deviation of the logarithms of single runs; not a number with fewer than two
    runs: Integers  # Runs in which the cell was measured

    def __post_init__(self) -> None:
        """Check the shapes."""
        shape = (len(self.profiles), len(self.devices))
        if not (self.log_time.shape == self.spread.shape == self.runs.shape == shape):
            raise InputError(
                f"grid: expected times, spreads and runs of shape {shape}, found {self.log_time.shape}, "
                f"{self.spread.shape} and {self.runs.shape}"
            )

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications, sorted: the order in which scores weight them."""
        return tuple(sorted(set(self.profiles.application)))

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


def device_groups(devices: Sequence[Device]) -> Integers:
    """A number for each device, from 0, equal where they are of one type and vendor. Of shape ``(d,)``."""
    kinds = [(device.type, device.vendor) for device in devices]
    order = {kind: place for place, kind in enumerate(sorted(set(kinds)))}
    return np.array([order[kind] for kind in kinds], dtype=np.int64)


def application_weights(profiles: ProfileBatch, power: float = 0.75) -> Reals:
    """Weights ``(n,)`` of mean 1 that keep an application of many kernels from outweighing the others."""
    groups = profiles.groups("application")
    weights = np.bincount(groups)[groups].astype(np.float64) ** -power
    scaled: Reals = weights / weights.mean()
    return scaled


def impute(grid: Grid) -> Grid:
    """Leave out kernels without any time, and fill the cells that are left without one.

    The logarithm of a time is taken as a kernel's effect plus a device's, by least squares over the measured
    cells (`device_effects`). Measured cells stay as they are.
    """
    known = np.isfinite(grid.log_time)
    if not known.any():
        raise InputError("grid: expected kernels with times, found none")
    lacking = [grid.devices[place].key for place in np.flatnonzero(~known.any(axis=0))]
    if lacking:
        raise InputError(f"grid: expected times on every device, found none on {', '.join(lacking)}")
    measured = grid.take(np.flatnonzero(known.any(axis=1)))
    times = measured.log_time
    effects = device_effects(times)
    level = np.nanmean(times - effects, axis=1, keepdims=True)
    return replace(measured, log_time=np.where(np.isfinite(times), times, level + effects))


def device_effects(log_time: Reals) -> Reals:
    """How much slower each device is, by the kernels that were measured on several of them.

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


def devices_of(dataset: Dataset) -> dict[str, Device]:
    """The devices of a dataset, by key."""
    found = {}
    for row in dataset.devices.to_pylist():
        numbers = {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        texts = {name: row[name] or "" for name in ("name", "vendor", "type", "series")}
        found[row["device"]] = Device(row["device"], **texts, numbers=numbers)
    return found


def grid_of(dataset: Dataset, *, invocations: Literal["mean", "first"] = "mean") -> Grid:
    """The grid of a dataset's kernels that have a profile, with the records of a cell put together."""
    # Imported here and below: predicting needs no pyarrow.
    from crosscast.tables.cells import KERNEL_AT_A_SIZE
    from crosscast.tables.joined import join
    from crosscast.tables.keys import distinct, key_numbers
    from crosscast.tables.library import pc

    joined = join(dataset, invocations=invocations)
    joined = joined.filter(pc.is_valid(joined.column("total_instruction_count")))
    if joined.num_rows == 0:
        raise InputError(f"{dataset.label}: expected a kernel with a profile and records, found none")
    _check_configurations(dataset.label, joined)
    kernels, rows = distinct(joined, KERNEL_AT_A_SIZE)
    names, columns = distinct(joined, ("device",))
    devices = devices_of(dataset)
    shape = (kernels.num_rows, names.num_rows)
    log_time, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    runs = np.zeros(shape, dtype=np.int64)
    metrics = np.full((kernels.num_rows, len(METRICS)), np.nan)
    log_time[rows, columns] = np.log(joined.column("time_median_s").to_numpy())
    runs[rows, columns] = joined.column("runs").to_numpy()
    spread[rows, columns] = _log_spreads(dataset, joined)
    for place, each in enumerate(METRICS):
        metrics[rows, place] = joined.column(each.name).to_numpy()
    # Of each kernel at a size, as many invocations as there are profiles.
    wanted, found = key_numbers([kernels, dataset.profiles], KERNEL_AT_A_SIZE)
    counts = np.bincount(found, minlength=int(wanted.max()) + 1)[wanted]
    texts = [tuple(kernels.column(name).to_pylist()) for name in KERNEL_AT_A_SIZE]
    return Grid(
        ProfileBatch(texts[0], texts[1], texts[2], metrics, counts),
        tuple(devices[key] for key in names.column("device").to_pylist()),
        log_time,
        spread,
        runs,
    )


def recorded_times(dataset: Dataset) -> dict[tuple[str, str, str], dict[str, float]]:
    """Median times in seconds, by application, kernel and size, and by device."""
    from crosscast.tables.cells import KERNEL_AT_A_SIZE
    from crosscast.tables.joined import join

    joined = join(dataset)
    if joined.num_rows:
        _check_configurations(dataset.label, joined)
    columns = [joined.column(name).to_pylist() for name in (*KERNEL_AT_A_SIZE, "device", "time_median_s")]
    times: dict[tuple[str, str, str], dict[str, float]] = {}
    for application, kernel, size, device, time in zip(*columns, strict=True):
        times.setdefault((application, kernel, size), {})[device] = time
    return times


def _check_configurations(label: str, joined: Table) -> None:
    from crosscast.tables.keys import distinct, key_numbers

    pairs, _ = distinct(joined, ("device", "configuration"))
    (numbers,) = key_numbers([pairs], ("device",))
    counts = np.bincount(numbers)
    if counts.max() > 1:
        device = pairs.column("device")[int(np.argmax(counts[numbers] > 1))].as_py()
        raise InputError(
            f"{label}: records: expected one configuration a device, found {counts.max()} of {device!r}"
        )


def _log_spreads(dataset: Dataset, joined: Table) -> Reals:
    """For each row of the joined view, the standard deviation of the logarithms of its runs' times."""
    from crosscast.tables.cells import CELL, run_means, sound
    from crosscast.tables.keys import distinct, key_numbers
    from crosscast.tables.samples import samples_of

    records = sound(dataset.records, dataset.sessions)
    keys, numbers = distinct(records, CELL)
    spreads = samples_of(numbers, np.log(run_means(records))).sd()
    wanted, known = key_numbers([joined, keys], CELL)
    by_number = np.full(int(max(wanted.max(), known.max())) + 1, np.nan)
    by_number[known] = spreads
    spread: Reals = by_number[wanted]
    return spread
