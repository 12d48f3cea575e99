"""Campaigns: tasks that fill a dataset, of which those that are done are not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosscast.data.dataset import (
    TABLES,
    Dataset,
    merge_parts,
    parts,
    read_dataset,
    write_dataset,
    write_part,
)
from crosscast.data.files import locked
from crosscast.data.schema import DEVICES, Schema
from crosscast.data.table import table_of
from crosscast.errors import CrosscastError, InputError, MissingExtraError
from crosscast.measure.opencl import OpenCLDevice, known_row
from crosscast.measure.processes import DescribeJob, run_job

Say = Callable[[str], None]
"""Told what is being done, for people."""


@dataclass(frozen=True)
class Rows:
    """What a task gives for a table."""

    schema: Schema  # Schema of the table
    name: str  # Name of the task among those of the table
    rows: Sequence[dict[str, Any]]  # Cells by column


@dataclass(frozen=True)
class Task:
    """A piece of a campaign."""

    kind: str  # What it does, in a word; tasks of a kind take about as long
    label: str  # What it is, for people
    guess_s: float  # Seconds that it takes, as long as none of its kind is over
    is_done: bool  # Whether the dataset has it
    # Do it, and return what to write, in order. Rows for a table that others refer to come last
    run: Callable[[Say], Sequence[Rows]]
    # What to write of it if it failed. It may raise, which ends the campaign
    on_failure: Callable[[CrosscastError], Sequence[Rows]] = lambda error: ()


class PartFailure(CrosscastError):
    """A part of what a task does failed; the rest is kept."""

    def __init__(self, reason: str, rows: Sequence[Rows] = ()) -> None:
        super().__init__(reason)
        self.rows = rows


@dataclass(frozen=True)
class State:
    """How far a campaign is."""

    done: int  # Tasks that are done
    total: int
    label: str  # What is being done
    left_s: float  # Seconds that are left, by what the tasks took so far


@dataclass(frozen=True)
class Failure:
    """A task that failed."""

    task: Task  # Which one
    reason: str  # Why, as a sentence


@dataclass
class Outcome:
    """What a campaign did."""

    done: int = 0  # Tasks that were done now
    kept: int = 0  # Tasks that were done before
    failures: list[Failure] = field(default_factory=list)  # Tasks that failed
    # What was found on the way, and what went wrong without failing
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        failed = [{"piece": failure.task.label, "reason": failure.reason} for failure in self.failures]
        return {"done": self.done, "kept": self.kept, "failed": failed, "notes": self.notes}


def run(
    tasks: Callable[[Dataset, Outcome], Sequence[Task]],
    folder: Path,
    report: Callable[[State], None] = lambda state: None,
    last: Callable[[Say], None] = lambda say: None,
    settle: Callable[[Dataset], Dataset] | None = None,
) -> Outcome:
    """Do all tasks that the dataset of a folder lacks, and put what they give into its tables.

    `tasks` makes them for what the folder holds; notes go to the outcome. `last` is
    done at the end; `settle` makes the tables of what was measured.
    """
    with locked(folder):
        outcome = Outcome()
        all_tasks = tasks(_dataset(folder), outcome)
        todo = [task for task in all_tasks if not task.is_done]
        total = len(all_tasks)
        outcome.kept = total - len(todo)
        took: dict[str, list[float]] = {}
        for number, task in enumerate(todo):

            def say(label: str, number: int = number) -> None:
                report(State(outcome.kept + number, total, label, _left_s(todo[number:], took)))

            say(task.label)
            start = time.perf_counter()
            try:
                found = task.run(say)
                outcome.done += 1
            except MissingExtraError:
                # No fault of the task, and the next would lack it too.
                raise
            except CrosscastError as error:
                outcome.failures.append(Failure(task, str(error)))
                found = error.rows if isinstance(error, PartFailure) else task.on_failure(error)
            # Not in the block above: a disk that is full ends the campaign.
            for part in found:
                write_part(folder, part.schema, part.name, table_of(part.schema, part.rows))
            took.setdefault(task.kind, []).append(time.perf_counter() - start)
        last(lambda label: report(State(total, total, label, 0.0)))
        merge_parts(folder)
        if outcome.done and settle is not None:
            write_dataset(settle(read_dataset(folder)), folder)
    return outcome


def _left_s(todo: Iterable[Task], took: dict[str, list[float]]) -> float:
    means = {kind: sum(seconds) / len(seconds) for kind, seconds in took.items()}
    return sum(means.get(task.kind, task.guess_s) for task in todo)


def _dataset(folder: Path) -> Dataset:
    """What the folder holds; an empty dataset if nothing."""
    there = parts(folder) or any((folder / f"{schema.table}.parquet").exists() for schema in TABLES)
    return read_dataset(folder) if there else Dataset(str(folder))


_MEASURED = "launch_overhead_s"
"""Column of the table of devices that is empty if measuring what describes the device failed."""
_DESCRIBE_S = 4.0


def describe_tasks(devices: Iterable[OpenCLDevice], dataset: Dataset, timeout_s: float) -> list[Task]:
    """Tasks that measure what describes devices; those that the dataset has must be as they were then."""
    rows = {row["device"]: row for row in dataset.devices.to_pylist()}
    tasks = []
    for device in devices:
        row = rows.get(device.key)
        for what, now in (("driver", device.driver), ("platform", device.platform)):
            if row is not None and row[what] != now:
                raise InputError(
                    f"{dataset.label}: {device.key} was measured with the OpenCL {what} {row[what]!r}, and "
                    f"now has {now!r}: choose another folder for it"
                )
        tasks.append(_describe_task(device, row is not None and row[_MEASURED] is not None, timeout_s))
    return tasks


def _describe_task(device: OpenCLDevice, is_done: bool, timeout_s: float) -> Task:
    # Asked before anything runs: a device that is lost later answers no more.
    known = known_row(device)

    def rows(row: dict[str, Any]) -> list[Rows]:
        return [Rows(DEVICES, device.key, [row])]

    return Task(
        "describe",
        f"describe {device.id}",
        _DESCRIBE_S,
        is_done,
        lambda say: rows(run_job(DescribeJob(device.id), timeout_s)),
        # Without a row, the records of the device would belong to none.
        lambda error: rows(known),
    )
