"""What a campaign has to do, piece by piece, and which pieces are done."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from crosscast.data.dataset import TABLES, Dataset, merge_parts, parts, read_dataset, write_part
from crosscast.data.files import locked
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS, Schema
from crosscast.data.table import Table, table_of
from crosscast.errors import CrosscastError, InputError, MissingExtraError
from crosscast.measure.energy import open_sensor
from crosscast.measure.opencl import OpenCLDevice, known_row
from crosscast.measure.processes import CharacterizeJob, DescribeJob, SessionJob, run_job
from crosscast.measure.session import session_row
from crosscast.measure.subjects import Settings, SuiteProblem, fitted, identity
from crosscast.suite.application import Application, Caches, working_set
from crosscast.units import format_count

_SEEDS = 1 << 63
"""What a column of the tables holds."""


@dataclass(frozen=True)
class Plan:
    """The grid of a campaign, and how to fill it."""

    applications: Mapping[str, type[Application]]  # Applications by the name or path that they are found by
    sizes: tuple[str, ...]  # Names of the sizes
    devices: tuple[OpenCLDevice, ...]  # Where to measure
    caches: Caches  # What the sizes must fit
    settings: Settings  # How to measure
    repeats: int = 1  # Processes that measure the same
    seed: int = 0  # Start of the problems' random numbers

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InputError(f"repeats: expected at least 1, found {self.repeats}")
        if not 0 <= self.seed < _SEEDS:
            raise InputError(f"seed: expected a number from 0 to {_SEEDS - 1}, found {self.seed}")

    def problem(self, name: str, size: str) -> SuiteProblem:
        """An application, by the name or path that it is found by, at a size."""
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
    """Check that devices which a dataset has have still the driver that they had."""
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


class Pace:
    """Estimates the time left from the time that pieces of each kind took."""

    def __init__(self, todo: Sequence[object], guess_s: Mapping[str, float]) -> None:
        self._guess_s = guess_s
        self._left: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        for piece in todo:
            kind = type(piece).__name__
            self._left[kind] = self._left.get(kind, 0) + 1

    def took(self, piece: object, seconds: float) -> None:
        """Note a piece that is over."""
        kind = type(piece).__name__
        self._left[kind] -= 1
        self._took.setdefault(kind, []).append(seconds)

    def left_s(self) -> float:
        """Seconds for all that is left."""
        means = {kind: sum(seconds) / len(seconds) for kind, seconds in self._took.items() if seconds}
        return sum(count * means.get(kind, self._guess_s[kind]) for kind, count in self._left.items())


_GUESS_S = {"DescribePiece": 4.0, "CharacterizePiece": 3.0, "MeasurePiece": 2.0}
"""Seconds of a piece of each kind, before one was done; of a measurement, beside its loop."""


@dataclass(frozen=True)
class State:
    """How far a campaign is."""

    done: int  # Pieces of the plan
    total: int
    label: str  # What is being done
    left_s: float  # Seconds that are left, by what the pieces took so far


@dataclass(frozen=True)
class Failure:
    """A piece that failed."""

    piece: Piece  # Which one
    reason: str  # Why, as a sentence


@dataclass
class Outcome:
    """What a campaign did."""

    done: int = 0  # Pieces that were done now
    kept: int = 0  # Pieces that were there already
    failures: list[Failure] = field(default_factory=list)  # Pieces that failed
    notes: list[str] = field(default_factory=list)  # What went wrong without failing


def run_campaign(plan: Plan, folder: Path, report: Callable[[State], None] = lambda state: None) -> Outcome:
    """Do all that a dataset lacks of a plan."""
    for device in plan.devices:
        # One that does not work would fail in every process.
        open_sensor(plan.settings.sensor, device.type, device.pci_bus_id)
    with locked(folder):
        before = _dataset(folder)
        todo = missing(plan, before)
        total = len(pieces(plan))
        outcome = Outcome(kept=total - len(todo), notes=_doubts(plan, before))
        # Asked before anything runs: a device that is lost later answers no more.
        known = {device.key: known_row(device) for device in plan.devices}
        pace = Pace(todo, _GUESS_S | {"MeasurePiece": _GUESS_S["MeasurePiece"] + plan.settings.min_time_s})
        for number, piece in enumerate(todo):
            report(State(outcome.kept + number, total, piece.label, pace.left_s()))
            start = time.perf_counter()
            try:
                written = _done(plan, piece, outcome)
                outcome.done += 1
            except MissingExtraError:
                # No fault of the piece, and the next would lack it too.
                raise
            except CrosscastError as error:
                outcome.failures.append(Failure(piece, str(error)))
                written = _failed(plan, piece, str(error), known)
            # Not in the block above: a disk that is full ends the campaign.
            for part in written:
                write_part(folder, part.schema, part.name, part.table)
            pace.took(piece, time.perf_counter() - start)
        merge_parts(folder)
    return outcome


def _dataset(folder: Path) -> Dataset:
    """What the folder holds; an empty dataset if nothing."""
    there = parts(folder) or any((folder / f"{schema.table}.parquet").exists() for schema in TABLES)
    return read_dataset(folder) if there else Dataset(str(folder))


def _doubts(plan: Plan, dataset: Dataset) -> list[str]:
    """What to tell of sessions that are kept."""
    count, settings = measured_less(plan, dataset), plan.settings
    if not count:
        return []
    kept = "1 session kept that has" if count == 1 else f"{format_count(count)} sessions kept that have"
    return [
        f"{kept} fewer than {settings.min_runs} runs or less than {settings.min_time_s:g} s; measure them "
        "again in another folder"
    ]


@dataclass(frozen=True)
class _Part:
    schema: Schema
    name: str
    table: Table


def _done(plan: Plan, piece: Piece, outcome: Outcome) -> list[_Part]:
    """Do a piece; return what to write, in order."""
    timeout_s = plan.settings.timeout_s
    if isinstance(piece, DescribePiece):
        return [_device_part(piece.device, run_job(DescribeJob(piece.device.id), timeout_s))]
    problem = plan.problem(piece.name, piece.size)
    if isinstance(piece, CharacterizePiece):
        answer = run_job(CharacterizeJob(problem, timeout_s), timeout_s)
        name = f"{piece.application}-{piece.size}"
        return [_Part(PROFILES, name, table_of(PROFILES, answer["profiles"]))]
    answer = run_job(SessionJob(problem, piece.device.id, plan.settings, piece.repeat), timeout_s)
    outcome.notes.extend(f"{piece.label}: {note}" for note in answer["notes"])
    return _session_parts(piece, answer["session"], answer["records"], answer["energy"])


def _failed(plan: Plan, piece: Piece, reason: str, known: Mapping[str, dict[str, Any]]) -> list[_Part]:
    """What to write of a piece that failed: of a measurement, that it did."""
    if isinstance(piece, CharacterizePiece):
        return []
    if isinstance(piece, DescribePiece):
        # Without a row, the records of the device would belong to none.
        return [_device_part(piece.device, known[piece.device.key])]
    subject = identity(plan.problem(piece.name, piece.size))
    row = session_row(subject, piece.device, plan.settings, piece.repeat)
    return _session_parts(piece, row | {"failure": reason}, [], [])


def _device_part(device: OpenCLDevice, row: dict[str, Any]) -> _Part:
    return _Part(DEVICES, device.key, table_of(DEVICES, [row]))


def _session_parts(
    piece: MeasurePiece, session: dict[str, Any], records: list[dict[str, Any]], energy: list[dict[str, Any]]
) -> list[_Part]:
    """Parts of a session, empty ones too: they replace those of an earlier try that was killed.

    The session is last: it tells that the others are whole.
    """
    name = f"{piece.application}-{piece.size}-{piece.device.key}-{piece.repeat}"
    tables = ((RECORDS, records), (ENERGY, energy), (SESSIONS, [session]))
    return [_Part(schema, name, table_of(schema, rows)) for schema, rows in tables]
