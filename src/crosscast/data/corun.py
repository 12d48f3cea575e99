"""Co-running: applications alone, mixes of them, and relative times on shares and parts of a GPU."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.library import pa, pc
from crosscast.data.schema import BAGS, SOLOS
from crosscast.data.table import Table, key_numbers
from crosscast.errors import InputError


@dataclass(frozen=True)
class Solo:
    """An application at a size, alone on a device."""

    application: str  # Name of the application: what is left out when benchmarks are left out
    size: str  # Name of its problem size, or what else tells its inputs apart
    device: str  # Key of the device
    time_s: float | None  # Time of a job, in seconds; `None` where it is not known
    configuration: str = "{}"  # Settings of the device as JSON; `{}` for its defaults
    runs: int = 1  # Runs of the application of which a job consists
    power_w: float | None = None  # Mean power of the device meanwhile, in watts
    memory_bytes: int | None = None  # Memory of the device that it takes
    # What else is known, finite numbers by name; what is not known is not there
    features: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Application and size, for people."""
        return f"{self.application} {self.size}"

    @property
    def qualified_name(self) -> str:
        """The same as people write it in an option, and as JSON has it."""
        return f"{self.application}/{self.size}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from others."""
        return self.application, self.size, self.device, self.configuration


@dataclass(frozen=True)
class Member:
    """An application of a mix."""

    solo: Solo  # The application alone on the same device
    # Time of a job while the whole mix runs over its time alone; `None` where it is not known
    slowdown: float | None = None
    failure: str | None = None  # Why it failed; `None` if it did not


@dataclass(frozen=True)
class Bag:
    """Applications at the same time on one device."""

    name: str  # Its name
    device: str  # Key of the device
    members: tuple[Member, ...]  # The applications; one may be there twice
    configuration: str = "{}"  # Settings of the device, and how it is shared, as JSON
    repeat: int = 0  # Number of the measurement among those of the same mix
    fits: bool | None = None  # Whether all fit on the device together; `None` where it is not known
    # Time from the common start of a job of each to the end of the last, in seconds
    time_s: float | None = None
    overlap: float | None = None  # Share of that time in which all run
    power_w: float | None = None  # Mean power of the device while all run, in watts

    @property
    def solos(self) -> tuple[Solo, ...]:
        """The members alone."""
        return tuple(member.solo for member in self.members)

    @property
    def applications(self) -> frozenset[str]:
        """Names of its applications."""
        return frozenset(member.solo.application for member in self.members)

    @property
    def failed(self) -> bool:
        """Whether a member failed."""
        return any(member.failure is not None for member in self.members)


_COLUMNS = tuple(column.name for column in BAGS.columns if column.name not in ("time_s", "jobs"))
_Key = tuple[str, str, str, str]
_Columns = Mapping[str, list[Any]]


@dataclass(frozen=True, eq=False)
class CoRuns:
    """Isolated runs and mixes."""

    label: str  # Where they are from, for messages
    solos: tuple[Solo, ...]  # Applications alone, in the order of their keys; those that failed are left out
    bags: tuple[Bag, ...]  # Mixes, in the order of their keys, those with a member that failed too

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications of the mixes, sorted."""
        return tuple(sorted({name for bag in self.bags for name in bag.applications}))


def co_runs(dataset: Dataset) -> CoRuns:
    """The isolated runs and mixes of a dataset.

    A co-runner's isolated run is that of its configuration, or of the defaults where there is none, as a way
    of sharing a device is nothing that an application alone has. A co-runner without one gets an isolated run
    of which nothing is known.
    """
    solos: dict[_Key, Solo] = {}
    for number, row in enumerate(dataset.solos.to_pylist(), start=1):
        if row["failure"] is None:
            solo = _solo(row, f"{dataset.label}: solos: row {number}")
            solos[solo.key] = solo
    columns = {name: _cells(dataset.bags, name) for name in _COLUMNS}
    keys = list(zip(*(columns[name] for name in BAGS.key), strict=True))
    rows = sorted(range(len(keys)), key=keys.__getitem__)
    member = _members(columns, dict(solos))
    bags = tuple(
        _bag(columns, list(found), member) for _, found in groupby(rows, key=lambda row: keys[row][:-1])
    )
    return CoRuns(dataset.label, tuple(solo for _, solo in sorted(solos.items())), bags)


def _cells(bags: Table, name: str) -> list[Any]:
    """Cells of a column; equal ones are one object, as there may be many rows."""
    cells = bags.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
    values = cells.dictionary.to_pylist()
    return [values[number] for number in cells.indices.to_pylist()]


def _solo(row: Mapping[str, Any], place: str) -> Solo:
    features = json.loads(row["features"])
    if not isinstance(features, dict) or not all(_is_finite(value) for value in features.values()):
        raise InputError(f"{place}: column 'features': expected finite numbers by name, found others")
    return Solo(
        row["application"],
        row["size"],
        row["device"],
        row["time_s"],
        row["configuration"],
        row["runs"] or 1,
        row["power_w"],
        row["memory_bytes"],
        {name: float(value) for name, value in sorted(features.items())},
    )


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _bag(columns: _Columns, rows: Sequence[int], member: Callable[[int], Member]) -> Bag:
    first = {name: cells[rows[0]] for name, cells in columns.items()}
    return Bag(
        first["bag"],
        first["device"],
        tuple(map(member, rows)),
        first["configuration"],
        first["repeat"],
        None if first["fits"] is None else bool(first["fits"]),
        first["bag_time_s"],
        first["overlap"],
        first["power_w"],
    )


def _members(columns: _Columns, solos: dict[_Key, Solo]) -> Callable[[int], Member]:
    """Members of mixes by their rows, with one isolated run for all that have the same."""

    def alone(row: int) -> Solo:
        application, size, device, configuration = (columns[name][row] for name in SOLOS.key)
        key = application, size, device, configuration
        if key not in solos:
            default = application, size, device, "{}"
            solos[key] = solos.setdefault(default, Solo(application, size, device, None))
        return solos[key]

    return lambda row: Member(alone(row), columns["slowdown"][row], columns["failure"][row])


DUMMY = "dummy"
"""Name of the application that fills mixes up: it shares the device, and is not judged."""

_LEVEL, _PART = "mps_percent", "mig_gpcs"
_BAG = ("device", "bag", "repeat")
_DIGITS = 6
_MOST_MEMBERS, _MOST_SIZES = 64, 64


@dataclass(frozen=True, eq=False)
class Mixes:
    """``n`` mixes of ``k`` members, at ``l`` levels of MPS and on ``s`` sizes of parts."""

    label: str  # Where they are from, for messages
    device: str  # Key of the device
    levels: tuple[float, ...]  # Percentages of the threads that a member may take, the highest first
    slices: tuple[float, ...]  # Slices of the parts, the most first
    jobs: tuple[str, ...]  # Names of the applications, sorted
    job: Integers  # Number of each member among `jobs`, of shape `(n, k)`
    # Relative time of each member while the whole mix runs, of shape `(n, k, l)`: its time at a level over
    # that at its slowest level, above 0 and at most 1
    shared: Reals
    # Relative time of each member alone on a part of each size, of shape `(n, k, s)`: over that on the part
    # on which it is slowest
    alone: Reals

    def __len__(self) -> int:
        """Number of mixes."""
        return len(self.job)

    @property
    def judged(self) -> Flags:
        """Whether each member is an application and no dummy, of shape ``(n, k)``."""
        return np.array([name != DUMMY for name in self.jobs], dtype=np.bool_)[self.job]

    @property
    def job_set(self) -> Integers:
        """A number for each mix, from 0, equal where the members are the same, of shape ``(n,)``."""
        return _numbers_of(np.sort(self.job, axis=1))

    def where(self, chosen: Flags | Integers) -> Mixes:
        """Some of the mixes."""
        return replace(self, job=self.job[chosen], shared=self.shared[chosen], alone=self.alone[chosen])

    def without_copies(self) -> Mixes:
        """The first of those mixes that differ in the order of their members alone."""
        n, k = self.job.shape
        members = np.concatenate([self.job[..., None], self.shared, self.alone], axis=2).round(_DIGITS)
        number = _numbers_of(members.reshape(n * k, -1)).reshape(n, k)
        first = np.unique(np.sort(number, axis=1), axis=0, return_index=True)[1]
        return self.where(np.sort(first))


def has_mixes(bags: Table) -> bool:
    """Whether mixes were run at levels of MPS and their members on parts of the GPU."""
    return {_LEVEL, _PART} <= {name for name, _ in _settings(bags).values()}


def mixes_of(dataset: Dataset, device: str | None = None) -> Mixes:
    """The mixes of a dataset in which all numbers are known, in the order of its rows.

    Rows stay in Arrow's columns: as objects, half a million of them would take gigabytes.
    """
    place = f"{dataset.label}: bags"
    settings = _settings(dataset.bags)
    table = _where(dataset.bags, "configuration", settings)
    device = _device(table, device, place)
    table = _where(table, "device", [device])
    settings = {text: settings[text] for text in pc.unique(table.column("configuration")).to_pylist()}
    wanted = [
        sorted((number for name, number in settings.values() if name == kind), reverse=True)
        for kind in (_LEVEL, _PART)
    ]
    if not all(wanted):
        raise InputError(
            f"{place}: expected mixes at levels of MPS (mps_percent) and on parts (mig_gpcs) of {device}, "
            f"found {', '.join(sorted(settings))}"
        )
    if len(settings) > _MOST_SIZES:
        raise InputError(f"{place}: expected at most {_MOST_SIZES} levels and parts, found {len(settings)}")
    places = {
        text: (len(wanted[0]) if name == _PART else 0) + wanted[name == _PART].index(number)
        for text, (name, number) in settings.items()
    }
    jobs, job, values = _placed(table, places, place)
    levels = len(wanted[0])
    whole: Flags = np.asarray(np.isfinite(values).all(axis=(1, 2)))
    if not whole.any():
        raise InputError(f"{place}: expected mixes with a number at each level and part, found none")
    found = Mixes(
        dataset.label, device, tuple(wanted[0]), tuple(wanted[1]), jobs, job,
        values[..., :levels], values[..., levels:],
    ).where(whole)  # fmt: skip
    if (most := float(found.alone.max())) > 1:
        raise InputError(
            f"{place}: column 'slowdown': expected relative times of at most 1 on parts, found {most:g}"
        )
    return found


def _placed(table: Table, places: Mapping[str, int], place: str) -> tuple[tuple[str, ...], Integers, Reals]:
    """Names of the applications; the number of each member, ``(n, k)``; its numbers, ``(n, k, l + s)``."""
    (mix,) = key_numbers([table], _BAG)
    position = table.column("position").to_numpy()
    n, k = int(mix.max()) + 1, int(position.max()) + 1
    last = np.zeros(n, dtype=np.int64)
    np.maximum.at(last, mix, position)
    if k > _MOST_MEMBERS or (last < k - 1).any():
        raise InputError(
            f"{place}: expected mixes of one number of members, at most {_MOST_MEMBERS}, found "
            f"{last.min() + 1} to {k}"
        )
    configuration, at = _codes(table, "configuration")
    application, number = _codes(table, "application")
    jobs = sorted(application)
    number = np.array([jobs.index(name) for name in application], dtype=np.int64)[number]
    values = np.full((n, k, len(places)), np.nan)
    column = np.array([places[text] for text in configuration], dtype=np.int64)[at]
    values[mix, position, column] = table.column("slowdown").to_numpy()
    job = np.zeros((n, k), dtype=np.int64)
    job[mix, position] = number
    other = np.flatnonzero(job[mix, position] != number)
    if len(other):
        bag = table.column("bag")[int(other[0])].as_py()
        raise InputError(
            f"{place}: mix {bag!r}, position {position[other[0]]}: expected the same application at all "
            "levels and parts, found others"
        )
    return tuple(jobs), job, values


def _settings(bags: Table) -> dict[str, tuple[str, float]]:
    """What is set by those configurations that set a level or a part and nothing else."""
    found = {}
    for text in pc.unique(bags.column("configuration")).to_pylist():
        content = json.loads(text)
        if isinstance(content, dict) and len(content) == 1:
            ((name, value),) = content.items()
            if name in (_LEVEL, _PART) and isinstance(value, int | float):
                found[text] = name, float(value)
    return found


def _where(table: Table, column: str, values: Iterable[str]) -> Table:
    return table.filter(pc.is_in(table.column(column), value_set=pa.array(list(values), pa.string())))


def _device(table: Table, device: str | None, place: str) -> str:
    counts = pc.value_counts(table.column("device")).to_pylist()
    found: dict[str, int] = {each["values"]: each["counts"] for each in counts}
    if not found or (device is not None and device not in found):
        raise InputError(
            f"{place}: expected mixes at levels of MPS and on parts on {device or 'a device'}, found "
            f"those on {', '.join(sorted(found)) or 'none'}"
        )
    return device if device is not None else max(sorted(found), key=lambda name: found[name])


def _codes(table: Table, name: str) -> tuple[list[str], Integers]:
    encoded = table.column(name).combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def _numbers_of(rows: npt.NDArray[Any]) -> Integers:
    """A number for each row, equal where rows are, from 0."""
    number: Integers = np.unique(rows, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return number
