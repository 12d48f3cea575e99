"""Campaigns: resumable tasks that fill a dataset; and that of ``crosscast dataset build``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, product
from pathlib import Path

from crosscast.data.dataset import (
    TABLES,
    Dataset,
    merge_parts,
    parts,
    read_dataset,
    write_dataset,
    write_part,
)
from crosscast.data.fields import TableRow
from crosscast.data.files import locked
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS, Schema
from crosscast.data.table import table_of
from crosscast.errors import CrosscastError, InputError, MissingExtraError
from crosscast.measure.inventory import LOCAL, JobRunner
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.processes import CharacterizeJob, DescribeJob, Row, SessionJob
from crosscast.measure.sensors import open_sensor
from crosscast.measure.session import session_row
from crosscast.measure.subjects import Identity, Settings, SuiteProblem, identity, problem_of
from crosscast.suite.application import Application, Caches
from crosscast.units import format_count

Say = Callable[[str], None]
"""Called with a label of the current work, for people."""


@dataclass(frozen=True)
class TaskRows:
    """Rows of a task for a table."""

    schema: Schema  # Schema of the table
    name: str  # Name of the task, unique in the table
    rows: Sequence[Mapping[str, object]]  # Cells by column


@dataclass(frozen=True)
class CampaignTask:
    """A task of a campaign."""

    kind: str  # Kind of work in a word; tasks of a kind take about as long
    label: str  # Label for people
    guess_s: float  # Estimated seconds until a task of its kind has ended
    is_done: bool  # Whether the dataset has its rows
    # Do it, and return rows in the order of writing: rows that others refer to come last
    run: Callable[[Say], Sequence[TaskRows]]
    # Rows to write after a failure. It may raise, which ends the campaign
    on_failure: Callable[[CrosscastError], Sequence[TaskRows]] = lambda error: ()


class PartFailure(CrosscastError):
    """A part of a task failed; the rows of the rest are kept."""

    def __init__(self, reason: str, rows: Sequence[TaskRows] = ()) -> None:
        super().__init__(reason)
        self.rows = rows


@dataclass(frozen=True)
class CampaignState:
    """Progress of a campaign."""

    done: int  # Completed tasks
    total: int
    label: str  # Current work
    left_s: float  # Estimated remaining seconds, by the tasks so far


@dataclass(frozen=True)
class TaskFailure:
    """A task that failed."""

    task: CampaignTask
    reason: str  # A sentence


@dataclass
class CampaignOutcome:
    """Outcome of a campaign."""

    done: int = 0  # Tasks completed now
    kept: int = 0  # Tasks completed before
    failures: list[TaskFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # Remarks, and problems that were no failures

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        failed = [{"task": failure.task.label, "reason": failure.reason} for failure in self.failures]
        return {"done": self.done, "kept": self.kept, "failed": failed, "notes": self.notes}


Begin = Callable[[int, float], None]
"""Called with the number of tasks and the estimated seconds."""


def run(
    tasks: Callable[[Dataset, CampaignOutcome], Sequence[CampaignTask]],
    folder: Path,
    report: Callable[[CampaignState], None] = lambda state: None,
    last: Callable[[Say], None] = lambda say: None,
    settle: Callable[[Dataset], Dataset] | None = None,
    begin: Begin = lambda tasks, seconds: None,
    at_once: int = 1,
) -> CampaignOutcome:
    """Do all tasks that the dataset of a folder lacks, and add their rows to its tables.

    `tasks` creates them for the folder's dataset and adds notes to the outcome. `begin` is called first with
    the number of tasks and the estimated seconds, and `last` at the end; `settle` postprocesses the tables.
    `at_once` tasks of one kind run concurrently; rows of a kind may refer to those of the kinds before.
    """
    with locked(folder):
        outcome = CampaignOutcome()
        all_tasks = tasks(_dataset(folder), outcome)
        todo = [task for task in all_tasks if not task.is_done]
        total = len(all_tasks)
        outcome.kept = total - len(todo)
        durations_s: dict[str, list[float]] = {}
        begin(len(todo), _left_s(todo, durations_s) / at_once)
        number = 0

        def say(label: str) -> None:
            report(
                CampaignState(
                    outcome.kept + number, total, label, _left_s(todo[number:], durations_s) / at_once
                )
            )

        for _, kind in groupby(todo, key=lambda task: task.kind):
            with closing(_ended(list(kind), at_once, say)) as ended:
                for task, table_rows, error, spent_s in ended:
                    if error is None:
                        outcome.done += 1
                    else:
                        outcome.failures.append(TaskFailure(task, str(error)))
                        table_rows = error.rows if isinstance(error, PartFailure) else task.on_failure(error)
                    for part in table_rows:
                        write_part(folder, part.schema, part.name, table_of(part.schema, part.rows))
                    durations_s.setdefault(task.kind, []).append(spent_s)
                    number += 1
        last(lambda label: report(CampaignState(total, total, label, 0.0)))
        merge_parts(folder)
        if outcome.done and settle is not None:
            write_dataset(settle(read_dataset(folder)), folder)
    return outcome


_Ended = tuple[CampaignTask, Sequence[TaskRows], CrosscastError | None, float]
"""A task, its rows, its error, and its duration in seconds."""


def _ended(tasks: Sequence[CampaignTask], at_once: int, say: Say) -> Generator[_Ended, None, None]:
    """Run tasks of a kind; yield each as it ends."""
    if at_once == 1:
        for task in tasks:
            say(task.label)
            yield _done(task, say)
        return
    # Threads suffice, as they wait for other machines.
    threads = ThreadPoolExecutor(at_once)
    try:
        waiting = [threads.submit(_done, task, lambda label: None) for task in tasks]
        for future in as_completed(waiting):
            say(future.result()[0].label)
            yield future.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _done(task: CampaignTask, say: Say) -> _Ended:
    start = time.perf_counter()
    rows: Sequence[TaskRows] = ()
    failed: CrosscastError | None = None
    try:
        rows = task.run(say)
    except MissingExtraError:
        # Every task would fail for the missing extra.
        raise
    except CrosscastError as error:
        failed = error
    return task, rows, failed, time.perf_counter() - start


def _left_s(todo: Iterable[CampaignTask], durations_s: dict[str, list[float]]) -> float:
    means = {kind: sum(seconds) / len(seconds) for kind, seconds in durations_s.items()}
    return sum(means.get(task.kind, task.guess_s) for task in todo)


def _dataset(folder: Path) -> Dataset:
    """Read the dataset of a folder; an empty one if it has no tables."""
    exists = parts(folder) or any((folder / f"{schema.table}.parquet").exists() for schema in TABLES)
    return read_dataset(folder) if exists else Dataset(str(folder))


_MEASURED = "launch_overhead_s"
"""Column of the table of devices that is empty if describing the device failed."""
_DESCRIBE_S = 4.0


def describe_tasks(
    devices: Iterable[OpenCLDevice], dataset: Dataset, timeout_s: float, runner: JobRunner | None = None
) -> list[CampaignTask]:
    """Return tasks that describe devices; devices in the dataset must not have changed since."""
    rows = {row["device"]: row for row in dataset.devices.to_pylist()}
    tasks = []
    for device in devices:
        row = rows.get(device.key)
        for what, now in (("driver", device.driver), ("platform", device.platform)):
            if row is not None:
                expect_same(dataset, device.key, f"the OpenCL {what} ", repr(row[what]), repr(now))
        is_done = row is not None and row[_MEASURED] is not None
        tasks.append(_describe_task(device, is_done, timeout_s, runner or LOCAL))
    return tasks


def expect_same(dataset: Dataset, subject: str, what: str, before: str, now: str) -> None:
    """Raise if a subject of the dataset was measured differently before."""
    if before != now:
        raise InputError.of(
            where=dataset.label,
            problem=(
                f"{subject} was measured with {what}{before}, and now has {now}: choose another folder for it"
            ),
        )


def _describe_task(device: OpenCLDevice, is_done: bool, timeout_s: float, runner: JobRunner) -> CampaignTask:
    # Queried before anything runs: a device that is lost later does not answer.
    row_without_measurements = runner.known(device)

    def rows(row: Mapping[str, object]) -> list[TaskRows]:
        return [TaskRows(DEVICES, device.key, [row])]

    return CampaignTask(
        "describe",
        f"describe {device.id}",
        _DESCRIBE_S,
        is_done,
        lambda say: rows(runner.run(DescribeJob(device.id), timeout_s, device)["device"]),
        # The records of the device refer to its row.
        lambda error: rows(row_without_measurements),
    )


_SEEDS = 1 << 63  # Range of a column of the tables
_CHARACTERIZE_S, _MEASURE_S = 3.0, 2.0
"""Estimated seconds of a task; of a measurement, without its loop."""

_Cell = tuple[str, str]
"""Application and size."""

_Origin = dict[str, object]
"""Parameters and seed of a problem, and hash of its source."""


def origin_of(subject: Identity) -> dict[str, object]:
    """Return the properties that distinguish problems of the same name and size."""
    return {
        "parameters": dict(subject.parameters),
        "seed": subject.seed,
        "source_sha256": subject.source_sha256,
    }


@dataclass(frozen=True)
class CampaignPlan:
    """Grid of a campaign, and settings of its measurements."""

    applications: Mapping[str, type[Application]]  # By the given name or path
    sizes: tuple[str, ...]  # Names of the sizes
    devices: tuple[OpenCLDevice, ...]
    caches: Caches  # Caches that the sizes must fit
    settings: Settings
    repeats: int = 1  # Processes that repeat each measurement
    seed: int = 0  # Seed of the problems' random numbers
    runner: JobRunner = LOCAL

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InputError.of(field="repeats", expected="at least 1", found=f"{self.repeats}")
        if not 0 <= self.seed < _SEEDS:
            raise InputError.of(
                field="seed", expected=f"a number from 0 to {_SEEDS - 1}", found=f"{self.seed}"
            )

    def problem(self, name: str, size: str) -> SuiteProblem:
        """Return the problem of an application, by its given name or path, at a size."""
        return problem_of(name, self.applications[name], size, self.caches, self.seed)


def build(
    plan: CampaignPlan,
    folder: Path,
    report: Callable[[CampaignState], None] = lambda state: None,
    begin: Begin = lambda tasks, seconds: None,
) -> CampaignOutcome:
    """Do all tasks of a plan that a dataset lacks."""
    for device in plan.devices if plan.runner is LOCAL else ():
        # A sensor that does not work would fail in every process.
        open_sensor(plan.settings.sensor, device.type, device.pci_bus_id)
    return run(partial(tasks, plan), folder, report, begin=begin, at_once=plan.runner.at_once)


def tasks(plan: CampaignPlan, dataset: Dataset, outcome: CampaignOutcome) -> list[CampaignTask]:
    """Return all tasks of a plan in order; those that failed before are repeated.

    Profiles of another source or other parameters are made anew, if no measurement belongs to them.
    """
    all_tasks = describe_tasks(plan.devices, dataset, plan.settings.timeout_s, plan.runner)
    problems = {
        (name, size): plan.problem(name, size) for size, name in product(plan.sizes, plan.applications)
    }
    identities = [identity(problem) for problem in problems.values()]
    origins = {(subject.name, subject.size): origin_of(subject) for subject in identities}
    _refuse_unlike_sessions(dataset, origins)
    profiled = _profiled(dataset, origins)
    sessions = {
        (row["application"], row["size"], row["device"], row["repeat"]): TableRow(row)
        for row in dataset.sessions.to_pylist()
    }
    shorter = 0
    for (name, size), problem in problems.items():
        application = plan.applications[name].name
        all_tasks.append(_characterize(plan, application, problem, (application, size) in profiled))
    for (name, size), device, repeat in product(problems, plan.devices, range(plan.repeats)):
        application = plan.applications[name].name
        row = sessions.get((application, size, device.key, repeat))
        shorter += row is not None and _is_shorter(row, plan.settings)
        is_done = row is not None and row["failure"] is None
        all_tasks.append(_measure(plan, problems[name, size], application, device, repeat, is_done, outcome))
    if shorter:
        several = f"{format_count(shorter)} sessions kept that have"
        outcome.notes.append(
            f"{'1 session kept that has' if shorter == 1 else several} fewer than "
            f"{plan.settings.min_runs} runs or less than {plan.settings.min_time_s:g} s; measure them again "
            "in another folder"
        )
    return all_tasks


def _characterize(plan: CampaignPlan, application: str, problem: SuiteProblem, is_done: bool) -> CampaignTask:
    timeout_s = plan.settings.timeout_s
    label = f"{application} {problem.size}"

    def characterized(say: object) -> list[TaskRows]:
        answer = plan.runner.run(CharacterizeJob(problem, timeout_s), timeout_s)
        return [TaskRows(PROFILES, f"{application}-{problem.size}", answer["profiles"])]

    return CampaignTask("characterize", f"characterize {label}", _CHARACTERIZE_S, is_done, characterized)


def _measure(
    plan: CampaignPlan,
    problem: SuiteProblem,
    application: str,
    device: OpenCLDevice,
    repeat: int,
    is_done: bool,
    outcome: CampaignOutcome,
) -> CampaignTask:
    label = f"measure {application} {problem.size} on {device.id}"
    settings = plan.settings

    def rows(session: Row, records: Sequence[Row] = (), energy: Sequence[Row] = ()) -> list[TaskRows]:
        """Rows of a session, also empty ones, which replace those of an earlier attempt that was killed.

        The session is last: it marks the others as complete.
        """
        name = f"{application}-{problem.size}-{device.key}-{repeat}"
        return [
            TaskRows(RECORDS, name, records),
            TaskRows(ENERGY, name, energy),
            TaskRows(SESSIONS, name, [session]),
        ]

    def measured(say: object) -> list[TaskRows]:
        job = SessionJob(problem, device.id, settings, repeat)
        answer = plan.runner.run(job, settings.timeout_s, device)
        outcome.notes.extend(f"{label}: {note}" for note in answer["notes"])
        return rows(answer["session"], answer["records"], answer["energy"])

    def failed(error: Exception) -> list[TaskRows]:
        session = session_row(identity(problem), device, settings, repeat)
        session["failure"] = str(error)
        return rows(session)

    return CampaignTask("measure", label, _MEASURE_S + settings.min_time_s, is_done, measured, failed)


def _is_shorter(session: TableRow, settings: Settings) -> bool:
    """Whether a session has fewer runs or less time than the settings."""
    runs, loop_s = session.integer_or_none("runs"), session.number_or_none("loop_s")
    if runs is None or loop_s is None:
        return False
    return runs < settings.min_runs or loop_s < settings.min_time_s


def _profiled(dataset: Dataset, origins: Mapping[_Cell, _Origin]) -> set[_Cell]:
    """Return the cells whose profiles are up to date."""
    known: dict[_Cell, list[_Origin | None]] = {}
    for row in dataset.profiles.select(("application", "size", "launch", "program")).to_pylist():
        problem = json.loads(row["launch"] or "{}").get("problem")
        program = json.loads(row["program"] or "{}").get("sha256")
        origin = problem and {"source_sha256": program, **problem}
        known.setdefault((row["application"], row["size"]), []).append(origin)
    for (application, size), known_origins in known.items():
        if None in known_origins and (application, size) in origins:
            raise InputError.of(
                where=dataset.label,
                problem=(
                    f"the profiles of {application} {size} come from elsewhere: choose another "
                    "folder for those of this build"
                ),
            )
    return {
        cell
        for cell, known_origins in known.items()
        if all(origin == origins.get(cell) for origin in known_origins)
    }


_WORDS = {"parameters": "the parameters", "seed": "the seed", "source_sha256": "the source of hash"}


def _refuse_unlike_sessions(dataset: Dataset, origins: Mapping[_Cell, _Origin]) -> None:
    for row in dataset.sessions.to_pylist():
        now = origins.get((row["application"], row["size"]))
        if now is None or row["failure"] is not None:
            continue
        before = {**row, "parameters": json.loads(row["parameters"] or "null")}
        for name, new in now.items():
            subject = f"{row['application']} {row['size']}"
            expect_same(dataset, subject, f"{_WORDS[name]} ", _text(before[name]), _text(new))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
