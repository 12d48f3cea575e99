"""A campaign: fill a dataset with profiles and records, piece by piece.

Each finished piece is a part of the dataset on disk, so that a campaign that was stopped in any way
goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosscast.errors import CrosscastError, MissingExtraError
from crosscast.measure.child import run_job
from crosscast.measure.jobs import CharacterizeJob, DescribeJob, SessionJob
from crosscast.measure.opencl.describe import known_row
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.pace import Pace
from crosscast.measure.plan import (
    CharacterizePiece,
    DescribePiece,
    MeasurePiece,
    Piece,
    Plan,
    measured_less,
    missing,
    pieces,
)
from crosscast.measure.sensors.available import open_sensor
from crosscast.measure.session import session_row
from crosscast.measure.subjects import identity
from crosscast.tables.arrow import Table, table_of
from crosscast.tables.dataset import TABLES, Dataset, locked, merge_parts, parts, read_dataset, write_part
from crosscast.tables.devices import DEVICES
from crosscast.tables.energy import ENERGY
from crosscast.tables.profiles import PROFILES
from crosscast.tables.records import RECORDS
from crosscast.tables.schema import Schema
from crosscast.tables.sessions import SESSIONS
from crosscast.units import format_count

__all__ = ["Failure", "Outcome", "State", "run_campaign"]

_GUESS_S = {"DescribePiece": 4.0, "CharacterizePiece": 3.0, "MeasurePiece": 2.0}
"""Seconds of a piece of each kind, before one was done; of a measurement, beside its loop."""


@dataclass(frozen=True)
class State:
    """How far a campaign is.

    Parameters
    ----------
    done, total
        Pieces of the plan.
    label
        What is being done.
    left_s
        Seconds that are left, by what the pieces took so far.
    """

    done: int
    total: int
    label: str
    left_s: float


@dataclass(frozen=True)
class Failure:
    """A piece that failed.

    Parameters
    ----------
    piece
        Which one.
    reason
        Why, as a sentence.
    """

    piece: Piece
    reason: str


@dataclass
class Outcome:
    """What a campaign did.

    Parameters
    ----------
    done
        Pieces that were done now.
    kept
        Pieces that were there already.
    failures
        Pieces that failed.
    notes
        What went wrong without failing.
    """

    done: int = 0
    kept: int = 0
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run_campaign(plan: Plan, folder: Path, report: Callable[[State], None] = lambda state: None) -> Outcome:
    """Do all that a dataset lacks of a plan.

    Parameters
    ----------
    plan
        What to do.
    folder
        The dataset's folder, which is made if need be.
    report
        Told what is being done.

    Raises
    ------
    InputError
        If the folder is in use, cannot be written, or holds what must not be mixed with the plan, or
        there is no such sensor.
    EnvironmentFault
        If the sensor does not work here.
    MissingExtraError
        If an optional part that the work needs is not installed.
    """
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
