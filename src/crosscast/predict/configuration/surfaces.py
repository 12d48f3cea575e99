"""Times and powers of kernels over the configurations of a machine: what models learn from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.predict.configuration.space import Space

if TYPE_CHECKING:
    from crosscast.tables.arrow import Table

__all__ = ["KernelAt", "Observed", "Surfaces", "machines_of"]


class KernelAt(NamedTuple):
    """A kernel at a problem size."""

    application: str
    kernel: str
    size: str

    def __str__(self) -> str:
        """Application, kernel where it has another name, and size."""
        names = (self.application, self.kernel) if self.kernel != self.application else (self.application,)
        return " ".join(("/".join(names), self.size))


@dataclass(frozen=True)
class Observed:
    """Runs of one kernel.

    Parameters
    ----------
    numbers
        ``(r,)`` Configuration of each run, by its place in the space; each at most once.
    time_s, power_w
        ``(r,)`` Time in seconds and mean power in watts.
    domains
        ``(r,)`` Power of each domain that a sensor tells apart, in watts; NaN where it does not.
    counters
        ``(r,)`` Counters of each run by name; NaN where there is none.
    """

    numbers: np.ndarray[tuple[int], np.dtype[np.int64]]
    time_s: Reals
    power_w: Reals
    domains: Mapping[str, Reals] = field(default_factory=dict)
    counters: Mapping[str, Reals] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.numbers)

    def and_run(self, run: Observed) -> Observed:
        """These runs and others, which replace those at the same configurations.

        A domain or counter that one side does not know is NaN there.
        """
        kept = ~np.isin(self.numbers, run.numbers)
        return Observed(
            np.concatenate([self.numbers[kept], run.numbers]),
            np.concatenate([self.time_s[kept], run.time_s]),
            np.concatenate([self.power_w[kept], run.power_w]),
            _joined(self.domains, run.domains, kept, len(run)),
            _joined(self.counters, run.counters, kept, len(run)),
        )

    def place(self, number: int) -> int | None:
        """Which run is that of a configuration, if there is one."""
        found = np.flatnonzero(self.numbers == number)
        return int(found[0]) if found.size else None


def _joined(
    ones: Mapping[str, Reals], others: Mapping[str, Reals], kept: Flags, count: int
) -> dict[str, Reals]:
    before, after = np.full(len(kept), np.nan), np.full(count, np.nan)
    return {
        name: np.concatenate([ones.get(name, before)[kept], others.get(name, after)])
        for name in dict.fromkeys([*ones, *others])
    }


@dataclass(frozen=True)
class Surfaces:
    """Times and powers of kernels over one space of configurations.

    Parameters
    ----------
    label
        What it is from, for messages.
    kernels
        ``n`` kernels at their sizes.
    space
        ``c`` configurations.
    time_s, power_w
        ``(n, c)`` Time in seconds and mean power in watts; both NaN where a kernel did not run.
    domains
        ``(n, c)`` Power of each domain in watts, by name; NaN where it is not known.
    counters
        ``(n, c)`` Counters by name; NaN where they are not known.
    """

    label: str
    kernels: tuple[KernelAt, ...]
    space: Space
    time_s: Reals
    power_w: Reals
    domains: Mapping[str, Reals] = field(default_factory=dict)
    counters: Mapping[str, Reals] = field(default_factory=dict)

    @property
    def known(self) -> Flags:
        """``(n, c)`` Where a kernel ran."""
        return np.isfinite(self.time_s)

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications, sorted."""
        return tuple(sorted({each.application for each in self.kernels}))

    def rows_of(self, applications: Sequence[str]) -> Flags:
        """``(n,)`` Which kernels are of some applications."""
        return np.array([each.application in applications for each in self.kernels], np.bool_)

    def take(self, rows: Flags | np.ndarray[tuple[int], np.dtype[np.int64]]) -> Surfaces:
        """Some of the kernels alone, with all configurations."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Surfaces(
            self.label,
            tuple(self.kernels[row] for row in chosen),
            self.space,
            self.time_s[chosen],
            self.power_w[chosen],
            {name: values[chosen] for name, values in self.domains.items()},
            {name: values[chosen] for name, values in self.counters.items()},
        )

    def observed(self, row: int, numbers: Sequence[int]) -> Observed:
        """The runs of one kernel at some configurations; those where it did not run are left out."""
        there = np.array([each for each in numbers if self.known[row, each]], np.int64)
        return Observed(
            there,
            self.time_s[row, there],
            self.power_w[row, there],
            {name: values[row, there] for name, values in self.domains.items()},
            {name: values[row, there] for name, values in self.counters.items()},
        )


def machines_of(runs: Table, label: str, devices: Sequence[str] | None = None) -> tuple[Surfaces, ...]:
    """Surfaces of each machine: of the devices that have a kernel in common, directly or through others.

    Parameters
    ----------
    runs
        A table of `crosscast.tables.configured.CONFIGURED`; rows without a time and a power above 0 are left
        out.
    label
        Where it is from, for messages.
    devices
        Keys of the devices to choose from; all by default.

    Returns
    -------
    tuple
        The machines, by their first devices; kernels by application, kernel and size.

    Raises
    ------
    InputError
        If no row has both time and power, or a device has none.
    """
    rows = [row for row in runs.to_pylist() if row["time_s"] > 0 and (row["power_w"] or 0) > 0]
    if not rows:
        raise InputError(f"{label}: expected runs with time and power, found none")
    if devices is not None:
        known = sorted({row["device"] for row in rows})
        for device in devices:
            if device not in known:
                raise InputError(f"{label}: device: expected one of {', '.join(known)}, found {device!r}")
        rows = [row for row in rows if row["device"] in devices]
    kernels: dict[str, set[KernelAt]] = {}
    for row in rows:
        kernels.setdefault(row["device"], set()).add(_kernel(row))
    return tuple(
        _surfaces([row for row in rows if row["device"] in machine], label) for machine in _connected(kernels)
    )


def _kernel(row: Mapping[str, str]) -> KernelAt:
    return KernelAt(row["application"], row["kernel"], row["size"])


def _connected(kernels: Mapping[str, set[KernelAt]]) -> list[set[str]]:
    """Devices, put together where they share a kernel."""
    groups: list[tuple[set[str], set[KernelAt]]] = []
    for device in sorted(kernels):
        near = [group for group in groups if group[1] & kernels[device]]
        joined = (
            {device}.union(*(group[0] for group in near)),
            kernels[device].union(*(group[1] for group in near)),
        )
        groups = [group for group in groups if group not in near] + [joined]
    return sorted((group[0] for group in groups), key=min)


def _surfaces(rows: Sequence[Mapping[str, str]], label: str) -> Surfaces:
    at = [Configuration.of(row["device"], row["configuration"]) for row in rows]
    space = Space(tuple(dict.fromkeys(at)))
    kernels = tuple(sorted({_kernel(row) for row in rows}))
    places = {kernel: place for place, kernel in enumerate(kernels)}
    cells = np.array([places[_kernel(row)] for row in rows]), np.array([space.number_of(c) for c in at])
    shape = (len(kernels), len(space))
    (kernel, number), count = Counter(zip(*(each.tolist() for each in cells), strict=True)).most_common(1)[0]
    if count > 1:
        # Numbers of two forms, such as 1 and 1.0, are two keys of a table.
        at_it = space.configurations[number]
        raise InputError(f"{label}: expected each kernel once at {at_it}, found {kernels[kernel]} again")
    domains = [json.loads(row["powers"] or "{}") for row in rows]
    counters = [json.loads(row["counters"] or "{}") for row in rows]
    return Surfaces(
        label,
        kernels,
        space,
        _spread([row["time_s"] for row in rows], cells, shape),
        _spread([row["power_w"] for row in rows], cells, shape),
        _by_name(domains, cells, shape),
        _by_name(counters, cells, shape),
    )


_Cells = tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]


def _spread(values: Sequence[object], cells: _Cells, shape: tuple[int, int]) -> Reals:
    spread = np.full(shape, np.nan)
    spread[cells] = np.array(values, np.float64)
    return spread


def _by_name(found: Sequence[Mapping[str, float]], cells: _Cells, shape: tuple[int, int]) -> dict[str, Reals]:
    names = sorted({name for each in found for name in each})
    return {name: _spread([each.get(name, np.nan) for each in found], cells, shape) for name in names}
