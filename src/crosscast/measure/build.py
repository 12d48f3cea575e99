"""The campaign of ``crosscast dataset build``: profiles and records of applications on devices."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import ENERGY, RECORDS, SESSIONS
from crosscast.errors import InputError
from crosscast.measure.campaign import Outcome, Rows, State, Task, describe_tasks, run
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.processes import CharacterizeJob, SessionJob, run_job
from crosscast.measure.sensors import open_sensor
from crosscast.measure.session import session_row
from crosscast.measure.subjects import Settings, SuiteProblem, fitted, identity
from crosscast.suite.application import Application, Caches, working_set
from crosscast.units import format_count

_SEEDS = 1 << 63
"""What a column of the tables holds."""
_CHARACTERIZE_S, _MEASURE_S = 3.0, 2.0
"""Seconds of a task before one was done; of a measurement, beside its loop."""

_Cell = tuple[str, str]
"""Application and size."""

_Origin = tuple[Any, ...]
"""Parameters and seed of a problem, and hash of its source."""

_ORIGIN = ("the parameters", "the seed", "the source of hash")


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


def build(plan: Plan, folder: Path, report: Callable[[State], None] = lambda state: None) -> Outcome:
    """Do all that a dataset lacks of a plan."""
    for device in plan.devices:
        # One that does not work would fail in every process.
        open_sensor(plan.settings.sensor, device.type, device.pci_bus_id)
    return run(lambda dataset, outcome: tasks(plan, dataset, outcome), folder, report)


def tasks(plan: Plan, dataset: Dataset, outcome: Outcome) -> list[Task]:
    """All tasks of a plan, in the order in which they are done; what failed before is tried again.

    Profiles of another source or other parameters are made again, if no measurement goes with them.
    """
    found = describe_tasks(plan.devices, dataset, plan.settings.timeout_s)
    problems = {
        (name, size): plan.problem(name, size) for size, name in product(plan.sizes, plan.applications)
    }
    origins: dict[_Cell, _Origin] = {}
    for problem in problems.values():
        subject = identity(problem)
        origins[subject.name, subject.size] = (
            dict(subject.parameters),
            subject.seed,
            subject.source_sha256,
        )
    _refuse_unlike_sessions(dataset, origins)
    profiled = _profiled(dataset, origins)
    sessions = {_key(row): row for row in dataset.sessions.to_pylist()}
    kept_with_less = 0
    for (name, size), problem in problems.items():
        application = plan.applications[name].name
        found.append(_characterize(plan, application, problem, (application, size) in profiled))
    for (name, size), device, repeat in product(problems, plan.devices, range(plan.repeats)):
        application = plan.applications[name].name
        row = sessions.get((application, size, device.key, repeat))
        kept_with_less += row is not None and _has_less(row, plan.settings)
        is_done = row is not None and row["failure"] is None
        found.append(_measure(plan, problems[name, size], application, device, repeat, is_done, outcome))
    if kept_with_less:
        kept = "1 session kept that has" if kept_with_less == 1 else None
        outcome.notes.append(
            f"{kept or f'{format_count(kept_with_less)} sessions kept that have'} fewer than "
            f"{plan.settings.min_runs} runs or less than {plan.settings.min_time_s:g} s; measure them again "
            "in another folder"
        )
    return found


def _characterize(plan: Plan, application: str, problem: SuiteProblem, is_done: bool) -> Task:
    timeout_s = plan.settings.timeout_s
    label = f"{application} {problem.size}"

    def characterized(say: object) -> list[Rows]:
        answer = run_job(CharacterizeJob(problem, timeout_s), timeout_s)
        return [Rows(PROFILES, f"{application}-{problem.size}", answer["profiles"])]

    return Task("characterize", f"characterize {label}", _CHARACTERIZE_S, is_done, characterized)


def _measure(
    plan: Plan,
    problem: SuiteProblem,
    application: str,
    device: OpenCLDevice,
    repeat: int,
    is_done: bool,
    outcome: Outcome,
) -> Task:
    label = f"measure {application} {problem.size} on {device.id}"
    settings = plan.settings

    def rows(session: Mapping[str, Any], records: Any = (), energy: Any = ()) -> list[Rows]:
        """Parts of a session, empty ones too: they replace those of an earlier try that was killed.

        The session is last: it tells that the others are whole.
        """
        name = f"{application}-{problem.size}-{device.key}-{repeat}"
        tables = ((RECORDS, records), (ENERGY, energy), (SESSIONS, [dict(session)]))
        return [Rows(schema, name, list(cells)) for schema, cells in tables]

    def measured(say: object) -> list[Rows]:
        answer = run_job(SessionJob(problem, device.id, settings, repeat), settings.timeout_s)
        outcome.notes.extend(f"{label}: {note}" for note in answer["notes"])
        return rows(answer["session"], answer["records"], answer["energy"])

    def failed(error: Exception) -> list[Rows]:
        session = session_row(identity(problem), device, settings, repeat)
        return rows(session | {"failure": str(error)})

    return Task("measure", label, _MEASURE_S + settings.min_time_s, is_done, measured, failed)


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return row["application"], row["size"], row["device"], row["repeat"]


def _has_less(session: Mapping[str, Any], settings: Settings) -> bool:
    """Whether a session has fewer runs or less time than is wanted now."""
    runs, loop_s = session["runs"], session["loop_s"]
    return None not in (runs, loop_s) and (runs < settings.min_runs or loop_s < settings.min_time_s)


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
