"""Campaigns: tasks that fill a dataset, none of them twice; and that of ``crosscast dataset build``."""

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
from crosscast.data.rows import EnergyRow, RecordRow, SessionRow
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS, Schema
from crosscast.data.table import table_of
from crosscast.errors import CrosscastError, InputError, MissingExtraError
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.processes import Answer, CharacterizeJob, DescribeJob, Job, SessionJob, run_job
from crosscast.measure.sensors import open_sensor
from crosscast.measure.session import session_row
from crosscast.measure.subjects import Identity, Settings, SuiteProblem, fitted, identity
from crosscast.suite.application import Application, Caches, working_set
from crosscast.suite.registry import names
from crosscast.units import format_count

Say = Callable[[str], None]
"""Told what is being done, for people."""


@dataclass(frozen=True)
class TaskRows:
    """What a task gives for a table."""

    schema: Schema  # Schema of the table
    name: str  # Name of the task among those of the table
    rows: Sequence[Mapping[str, object]]  # Cells by column


@dataclass(frozen=True)
class CampaignTask:
    """A piece of a campaign."""

    kind: str  # What it does, in a word; tasks of a kind take about as long
    label: str  # What it is, for people
    guess_s: float  # Seconds that it takes, as long as none of its kind is over
    is_done: bool  # Whether the dataset has it
    # Do it, and return what to write, in order. Rows for a table that others refer to come last
    run: Callable[[Say], Sequence[TaskRows]]
    # What to write of it if it failed. It may raise, which ends the campaign
    on_failure: Callable[[CrosscastError], Sequence[TaskRows]] = lambda error: ()


class PartFailure(CrosscastError):
    """A part of what a task does failed; the rest is kept."""

    def __init__(self, reason: str, rows: Sequence[TaskRows] = ()) -> None:
        super().__init__(reason)
        self.rows = rows


@dataclass(frozen=True)
class CampaignState:
    """How far a campaign is."""

    done: int  # Tasks that are done
    total: int
    label: str  # What is being done
    left_s: float  # Seconds that are left, by what the tasks took so far


@dataclass(frozen=True)
class TaskFailure:
    """A task that failed."""

    task: CampaignTask  # Which one
    reason: str  # Why, as a sentence


@dataclass
class CampaignOutcome:
    """What a campaign did."""

    done: int = 0  # Tasks that were done now
    kept: int = 0  # Tasks that were done before
    failures: list[TaskFailure] = field(default_factory=list)  # Tasks that failed
    # What was found on the way, and what went wrong without failing
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """The object that ``--json`` prints."""
        failed = [{"piece": failure.task.label, "reason": failure.reason} for failure in self.failures]
        return {"done": self.done, "kept": self.kept, "failed": failed, "notes": self.notes}


Begin = Callable[[int, float], None]
"""Hears how many tasks are to be done, and how many seconds that will take."""


def run(
    tasks: Callable[[Dataset, CampaignOutcome], Sequence[CampaignTask]],
    folder: Path,
    report: Callable[[CampaignState], None] = lambda state: None,
    last: Callable[[Say], None] = lambda say: None,
    settle: Callable[[Dataset], Dataset] | None = None,
    begin: Begin = lambda tasks, seconds: None,
    at_once: int = 1,
) -> CampaignOutcome:
    """Do all tasks that the dataset of a folder lacks, and put what they give into its tables.

    `tasks` makes them for what the folder holds; notes go to the outcome. `begin` hears first how many are to
    be done, and how long that will take; `last` is done at the end; `settle` makes the tables of what was
    measured. Of one kind, `at_once` tasks are done at a time; rows of a kind may refer to those of the kinds
    before.
    """
    with locked(folder):
        outcome = CampaignOutcome()
        all_tasks = tasks(_dataset(folder), outcome)
        todo = [task for task in all_tasks if not task.is_done]
        total = len(all_tasks)
        outcome.kept = total - len(todo)
        took: dict[str, list[float]] = {}
        begin(len(todo), _left_s(todo, took) / at_once)
        number = 0

        def say(label: str) -> None:
            report(CampaignState(outcome.kept + number, total, label, _left_s(todo[number:], took) / at_once))

        for _, kind in groupby(todo, key=lambda task: task.kind):
            with closing(_ended(list(kind), at_once, say)) as ended:
                for task, found, error, spent_s in ended:
                    if error is None:
                        outcome.done += 1
                    else:
                        outcome.failures.append(TaskFailure(task, str(error)))
                        found = error.rows if isinstance(error, PartFailure) else task.on_failure(error)
                    for part in found:
                        write_part(folder, part.schema, part.name, table_of(part.schema, part.rows))
                    took.setdefault(task.kind, []).append(spent_s)
                    number += 1
        last(lambda label: report(CampaignState(total, total, label, 0.0)))
        merge_parts(folder)
        if outcome.done and settle is not None:
            write_dataset(settle(read_dataset(folder)), folder)
    return outcome


_Ended = tuple[CampaignTask, Sequence[TaskRows], CrosscastError | None, float]
"""A task, what it gave, why it failed, and how long it took in seconds."""


def _ended(tasks: Sequence[CampaignTask], at_once: int, say: Say) -> Generator[_Ended, None, None]:
    """Do tasks of a kind; each, as it ends."""
    if at_once == 1:
        for task in tasks:
            say(task.label)
            yield _done(task, say)
        return
    # They wait for other machines.
    threads = ThreadPoolExecutor(at_once)
    try:
        waiting = [threads.submit(_done, task, lambda label: None) for task in tasks]
        for each in as_completed(waiting):
            say(each.result()[0].label)
            yield each.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _done(task: CampaignTask, say: Say) -> _Ended:
    start = time.perf_counter()
    found: Sequence[TaskRows] = ()
    failed: CrosscastError | None = None
    try:
        found = task.run(say)
    except MissingExtraError:
        # No fault of the task, and the next would lack it too.
        raise
    except CrosscastError as error:
        failed = error
    return task, found, failed, time.perf_counter() - start


def _left_s(todo: Iterable[CampaignTask], took: dict[str, list[float]]) -> float:
    means = {kind: sum(seconds) / len(seconds) for kind, seconds in took.items()}
    return sum(means.get(task.kind, task.guess_s) for task in todo)


def _dataset(folder: Path) -> Dataset:
    """What the folder holds; an empty dataset if nothing."""
    there = parts(folder) or any((folder / f"{schema.table}.parquet").exists() for schema in TABLES)
    return read_dataset(folder) if there else Dataset(str(folder))


_MEASURED = "launch_overhead_s"
"""Column of the table of devices that is empty if measuring what describes the device failed."""
_DESCRIBE_S = 4.0


def describe_tasks(
    devices: Iterable[OpenCLDevice], dataset: Dataset, timeout_s: float, place: Place | None = None
) -> list[CampaignTask]:
    """Tasks that measure what describes devices; those that the dataset has must be as they were then."""
    rows = {row["device"]: row for row in dataset.devices.to_pylist()}
    tasks = []
    for device in devices:
        row = rows.get(device.key)
        for what, now in (("driver", device.driver), ("platform", device.platform)):
            if row is not None:
                expect_same(dataset, device.key, f"the OpenCL {what} ", repr(row[what]), repr(now))
        is_done = row is not None and row[_MEASURED] is not None
        tasks.append(_describe_task(device, is_done, timeout_s, place or HERE))
    return tasks


def expect_same(dataset: Dataset, subject: str, what: str, before: str, now: str) -> None:
    """Refuse to add to a dataset what was measured otherwise before."""
    if before != now:
        raise InputError(
            f"{dataset.label}: {subject} was measured with {what}{before}, and now has {now}: choose another "
            "folder for it"
        )


def _describe_task(device: OpenCLDevice, is_done: bool, timeout_s: float, place: Place) -> CampaignTask:
    # Asked before anything runs: a device that is lost later answers no more.
    known = place.known(device)

    def rows(row: Mapping[str, object]) -> list[TaskRows]:
        return [TaskRows(DEVICES, device.key, [row])]

    return CampaignTask(
        "describe",
        f"describe {device.id}",
        _DESCRIBE_S,
        is_done,
        lambda say: rows(place.run(DescribeJob(device.id), timeout_s, device)["device"]),
        # Without a row, the records of the device would belong to none.
        lambda error: rows(known),
    )


_SEEDS = 1 << 63
"""What a column of the tables holds."""
_CHARACTERIZE_S, _MEASURE_S = 3.0, 2.0
"""Seconds of a task before one was done; of a measurement, beside its loop."""

_Cell = tuple[str, str]
"""Application and size."""

_Origin = dict[str, object]
"""Parameters and seed of a problem, and hash of its source."""


def origin_of(subject: Identity) -> dict[str, object]:
    """What tells a problem from another one of the same name and size."""
    return {
        "parameters": dict(subject.parameters),
        "seed": subject.seed,
        "source_sha256": subject.source_sha256,
    }


class Place:
    """Where a campaign's jobs run: here, one at a time."""

    at_once = 1

    def run(self, job: Job, timeout_s: float, device: OpenCLDevice | None = None) -> Answer:
        """Run a job, on a machine that has the device if one is given, and return its answer."""
        return run_job(job, timeout_s)

    def known(self, device: OpenCLDevice) -> TableRow:
        """The row of a device without what has to be measured."""
        return known_row(device)


HERE = Place()


@dataclass(frozen=True)
class CampaignPlan:
    """The grid of a campaign, and how to fill it."""

    applications: Mapping[str, type[Application]]  # Applications by the name or path that they are found by
    sizes: tuple[str, ...]  # Names of the sizes
    devices: tuple[OpenCLDevice, ...]  # Where to measure
    caches: Caches  # What the sizes must fit
    settings: Settings  # How to measure
    repeats: int = 1  # Processes that measure the same
    seed: int = 0  # Start of the problems' random numbers
    place: Place = HERE  # Where

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InputError.of(field="repeats", expected="at least 1", found=f"{self.repeats}")
        if not 0 <= self.seed < _SEEDS:
            raise InputError.of(
                field="seed", expected=f"a number from 0 to {_SEEDS - 1}", found=f"{self.seed}"
            )

    def problem(self, name: str, size: str) -> SuiteProblem:
        """An application, by the name or path that it is found by, at a size."""
        nbytes = working_set(size, self.caches)
        return SuiteProblem(name, size, fitted(self.applications[name], nbytes), self.seed, nbytes)


def build(
    plan: CampaignPlan,
    folder: Path,
    report: Callable[[CampaignState], None] = lambda state: None,
    begin: Begin = lambda tasks, seconds: None,
) -> CampaignOutcome:
    """Do all that a dataset lacks of a plan."""
    for device in plan.devices if plan.place is HERE else ():
        # One that does not work would fail in every process.
        open_sensor(plan.settings.sensor, device.type, device.pci_bus_id)
    made = partial(tasks, plan)
    return run(made, folder, report, begin=begin, at_once=plan.place.at_once)


def tasks(plan: CampaignPlan, dataset: Dataset, outcome: CampaignOutcome) -> list[CampaignTask]:
    """All tasks of a plan, in the order in which they are done; what failed before is tried again.

    Profiles of another source or other parameters are made again, if no measurement goes with them.
    """
    found = describe_tasks(plan.devices, dataset, plan.settings.timeout_s, plan.place)
    problems = {
        (name, size): plan.problem(name, size) for size, name in product(plan.sizes, plan.applications)
    }
    known = [identity(problem) for problem in problems.values()]
    origins = {(subject.name, subject.size): origin_of(subject) for subject in known}
    _refuse_unlike_sessions(dataset, origins)
    profiled = _profiled(dataset, origins)
    sessions = {
        (row["application"], row["size"], row["device"], row["repeat"]): TableRow(row)
        for row in dataset.sessions.to_pylist()
    }
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
        many = f"{format_count(kept_with_less)} sessions kept that have"
        outcome.notes.append(
            f"{'1 session kept that has' if kept_with_less == 1 else many} fewer than "
            f"{plan.settings.min_runs} runs or less than {plan.settings.min_time_s:g} s; measure them again "
            "in another folder"
        )
    return found


def suite_s(sizes: int) -> float:
    """Seconds that it takes to characterize the suite at so many sizes, and measure it on a device."""
    per_application = _CHARACTERIZE_S + _MEASURE_S + Settings().min_time_s
    return _DESCRIBE_S + sizes * len(names()) * per_application


def _characterize(plan: CampaignPlan, application: str, problem: SuiteProblem, is_done: bool) -> CampaignTask:
    timeout_s = plan.settings.timeout_s
    label = f"{application} {problem.size}"

    def characterized(say: object) -> list[TaskRows]:
        answer = plan.place.run(CharacterizeJob(problem, timeout_s), timeout_s)
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

    def rows(
        session: SessionRow, records: Sequence[RecordRow] = (), energy: Sequence[EnergyRow] = ()
    ) -> list[TaskRows]:
        """Parts of a session, empty ones too: they replace those of an earlier try that was killed.

        The session is last: it tells that the others are whole.
        """
        name = f"{application}-{problem.size}-{device.key}-{repeat}"
        return [
            TaskRows(RECORDS, name, records),
            TaskRows(ENERGY, name, energy),
            TaskRows(SESSIONS, name, [session]),
        ]

    def measured(say: object) -> list[TaskRows]:
        job = SessionJob(problem, device.id, settings, repeat)
        answer = plan.place.run(job, settings.timeout_s, device)
        outcome.notes.extend(f"{label}: {note}" for note in answer["notes"])
        return rows(answer["session"], answer["records"], answer["energy"])

    def failed(error: Exception) -> list[TaskRows]:
        session = session_row(identity(problem), device, settings, repeat)
        session["failure"] = str(error)
        return rows(session)

    return CampaignTask("measure", label, _MEASURE_S + settings.min_time_s, is_done, measured, failed)


def _has_less(session: TableRow, settings: Settings) -> bool:
    """Whether a session has fewer runs or less time than is wanted now."""
    runs, loop_s = session.integer_or_none("runs"), session.number_or_none("loop_s")
    if runs is None or loop_s is None:
        return False
    return runs < settings.min_runs or loop_s < settings.min_time_s


def _profiled(dataset: Dataset, origins: Mapping[_Cell, _Origin]) -> set[_Cell]:
    """Cells whose profiles are those that would be made now."""
    there: dict[_Cell, list[_Origin | None]] = {}
    for row in dataset.profiles.select(("application", "size", "launch", "program")).to_pylist():
        problem = json.loads(row["launch"] or "{}").get("problem")
        program = json.loads(row["program"] or "{}").get("sha256")
        origin = problem and {"source_sha256": program, **problem}
        there.setdefault((row["application"], row["size"]), []).append(origin)
    for (application, size), found in there.items():
        if None in found and (application, size) in origins:
            raise InputError(
                f"{dataset.label}: the profiles of {application} {size} come from elsewhere: choose another "
                "folder for those of this build"
            )
    return {cell for cell, found in there.items() if all(origin == origins.get(cell) for origin in found)}


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
