"""Clusters: machines, jobs that a scheduler places, queues and runs, policies, and schedules."""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.fields import Fields
from crosscast.data.files import atomic_file, csv_rows, read_bytes
from crosscast.errors import InputError, expect_known
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.results import Column


@dataclass(frozen=True)
class Jobs:
    """``n`` jobs in the order of submission; ties keep the given order.

    Times of a job are per machine, of shape ``(n, m)``, or ``(n, 1)`` if all machines are alike.
    """

    number: Integers  # Number of each job in its trace, of shape `(n,)`, for people and files
    # Time of submission in seconds from any origin, of shape `(n,)`; ascending
    submit_s: Reals
    # Processors (or nodes, as the machines) of each job, of shape `(n,)`; at least 1
    procs: Integers
    run_s: Reals  # Run time in seconds; infinite on a machine that cannot run the job
    estimate_s: Reals  # Run time that the scheduler expects, in seconds
    # Index of each job's user in `users`, of shape `(n,)`; `None` if users are unknown
    user: Integers | None = None
    users: tuple[str, ...] = field(default=())  # Names of users
    # Power of each job while it runs, in watts, of shape `(n,)`; NaN where it is the machine's `active_w`;
    # `None` if it is for all
    power_w: Reals | None = None
    # Run time in the fastest configuration, of the shape of `run_s`; `None` if that is `run_s`
    fastest_s: Reals | None = None

    def __post_init__(self) -> None:
        count = len(self.number)
        for name in ("submit_s", "procs", "power_w"):
            values = getattr(self, name)
            if values is not None and values.shape != (count,):
                raise InputError.of(
                    where="jobs", field=name, expected=f"{count} numbers", found=f"{values.shape}"
                )
        for name in ("run_s", "estimate_s"):
            times = getattr(self, name)
            if times.ndim != 2 or len(times) != count:
                raise InputError.of(
                    where="jobs",
                    field=name,
                    expected=f"shape ({count}, machines)",
                    found=f"{times.shape}",
                )
            # Negated, so that NaN is refused as well.
            self._refuse(~(times.min(axis=1) >= 0), name, "times of at least 0 s")
        self._refuse(np.isinf(self.run_s.min(axis=1)), "run_s", "a machine on which it runs")
        self._refuse(~np.isfinite(self.submit_s), "submit_s", "a time")
        self._refuse(np.diff(self.submit_s, prepend=-np.inf) < 0, "submit_s", "no time before the last one's")
        self._refuse(self.procs < 1, "procs", "at least 1")
        if self.power_w is not None:
            self._refuse((self.power_w < 0) | np.isinf(self.power_w), "power_w", "watts of at least 0")

    def __len__(self) -> int:
        return len(self.number)

    def _refuse(self, wrong: Flags, name: str, expected: str) -> None:
        if (row := first_row(wrong)) is not None:
            raise InputError.of(
                where="jobs",
                problem=(
                    f"job {self.number[row]}: {name}: expected {expected}, found {getattr(self, name)[row]}"
                ),
            )

    def taken(self, order: Integers, submit_s: Reals) -> Jobs:
        """Return the jobs in another order, submitted at these times."""
        arrays = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "users"}
        taken: dict[str, Any] = {
            name: None if values is None else values[order] for name, values in arrays.items()
        }
        return replace(self, **taken | {"submit_s": submit_s})

    def killed_at_estimate(self) -> Jobs:
        """Return the jobs with run times cut at the estimates, at which they are killed."""
        return replace(self, run_s=np.minimum(self.run_s, self.estimate_s))


def first_row(wrong: Flags | np.bool_) -> int | None:
    """Return the first row of which something is wrong."""
    return int(np.argmax(wrong)) if wrong.any() else None


@dataclass(frozen=True)
class Machine:
    """A machine with a pool of equal processors (or nodes, as its jobs).

    Parameters
    ----------
    name
        Its name.
    procs
        Number of processors; at least 1.
    has_gpu
        Whether users take it for a GPU machine.
    device
        Device of the dataset whose times hold for jobs on this machine; by default its name.
    idle_w
        Power of a processor that runs no job, in watts.
    active_w
        Power of a processor that runs a job of unknown power, in watts.
    cap_w
        Most power that a processor may draw, in watts; infinite if there is no cap.
    """

    name: str
    procs: int
    has_gpu: bool = False
    device: str | None = None
    idle_w: float = 0.0
    active_w: float | None = None
    cap_w: float = np.inf


EXACT = 2**53
"""Number up to which all whole numbers are exact."""


def check_machines(machines: Sequence[Machine]) -> None:
    """Raise unless machines have distinct names, and processors that can be counted."""
    if not machines:
        raise InputError.of(field="machines", expected="at least one", found="none")
    names = [machine.name for machine in machines]
    for machine in machines:
        if not 1 <= machine.procs <= EXACT:
            expected = "at least 1" if machine.procs < 1 else "at most 2^53"
            raise InputError.of(
                field="machines", problem=f"{machine.name}: procs: expected {expected}, found {machine.procs}"
            )
        if names.count(machine.name) > 1:
            raise InputError.of(
                field="machines", expected="each name once", found=f"{machine.name!r} more than once"
            )


_MOST_BYTES = 1 << 20


def read_machines(path: str | Path) -> list[Machine]:
    """Read a file with machines only."""
    fields = machine_fields(path)
    machines = machines_of(fields)
    fields.finish()
    return machines


def machine_fields(path: str | Path) -> Fields:
    """Read the fields of a file with machines."""
    path = Path(path)
    try:
        content = read_bytes(path, "machines", _MOST_BYTES)
        return Fields(tomllib.loads(content.decode("utf-8")), str(path))
    except RecursionError as error:
        raise InputError.of(
            where=path, expected="machines in TOML", found="lists that are too deep"
        ) from error
    except ValueError as error:
        # Raised for TOML, UTF-8, and numbers with too many digits.
        raise InputError.of(where=path, expected=f"machines in TOML ({error})") from error


def machines_of(fields: Fields) -> list[Machine]:
    """Return the machines in a file's fields."""
    machines = [_machine(table) for table in fields.tables("machine")]
    try:
        check_machines(machines)
    except InputError as error:
        raise InputError.of(where=fields.where, problem=str(error)) from error
    return machines


def required_text(table: Fields, name: str) -> str:
    """Return a text that has to be there."""
    table.require(name, "a text")
    return str(table.text(name))


def procs_or_nodes(table: Fields) -> int | None:
    """Return the number of processors, which may be called nodes."""
    procs, nodes = (table.integer(name, 1) for name in ("procs", "nodes"))
    if procs is not None and nodes is not None:
        raise InputError.of(where=table.where, expected="procs or nodes", found="both")
    return procs or nodes


def _machine(table: Fields) -> Machine:
    name, device, has_gpu = required_text(table, "name"), table.text("device"), table.flag("gpu")
    procs = procs_or_nodes(table)
    idle_w, active_w = table.number("idle_w", ge=0) or 0.0, table.number("active_w", ge=0)
    if active_w is not None and active_w < idle_w:
        raise table.fail("active_w", f"at least the {idle_w:g} W of idle_w")
    cap_w = table.number("cap_w", gt=0) or np.inf
    for what, least_w in (("idle_w", idle_w), ("active_w", active_w)):
        if least_w is not None and cap_w < least_w:
            raise table.fail("cap_w", f"at least the {least_w:g} W of {what}")
    table.finish()
    if procs is None:
        raise InputError.of(where=table.where, expected="procs or nodes", found="neither")
    return Machine(name, procs, has_gpu, device, idle_w, active_w, cap_w)


def texts_of(numbers: Reals, missing: str) -> list[str]:
    """Format numbers: whole ones without a fraction, others as the shortest text that reads back the same.

    >>> import numpy as np
    >>> texts_of(np.array([3.0, 0.1, np.nan]), "-1")
    ['3', '0.1', '-1']
    """
    # Most columns are whole numbers throughout, which is faster at once.
    if ((np.abs(numbers) <= EXACT) & (numbers == np.floor(numbers))).all():
        return list(map(str, numbers.astype(np.int64).tolist()))
    # A zero loses its sign.
    values = (numbers + 0.0).tolist()
    return [missing if math.isnan(value) else repr(value).removesuffix(".0") for value in values]


Order = Literal[
    "fcfs",
    "lcfs",
    "shortest",
    "longest",
    "narrowest",
    "widest",
    "smallest-area",
    "largest-area",
    "multifactor",
]
"""First or last come, first served; by estimated time; by processors; by their product; by a site's
priorities. Ties are first come, first served."""

ORDERS: tuple[str, ...] = get_args(Order)

BY_TIME = ("shortest", "longest", "smallest-area", "largest-area")
"""Orders by estimated time."""


@dataclass(frozen=True)
class Policy:
    """Scheduling policy of a queue."""

    queue: Order = "fcfs"  # Order of the queue, R1
    # Order of backfilling behind the head (EASY), R2; `None` without backfilling
    backfill: Order | None = "fcfs"
    # Whether each job has a reservation, not only the head: conservative backfilling, without R2
    conservative: bool = False


POLICIES = ("fcfs", "easy", "conservative")


def policy_named(name: str, queue: str | None = None, backfill: str | None = None) -> Policy:
    """Return the policy ``fcfs`` (no backfilling), ``easy`` or ``conservative``."""
    expect_known(name, POLICIES, field="policy")
    for argument, order in (("priority", queue), ("backfill", backfill)):
        if order is not None:
            expect_known(order, ORDERS, field=argument)
    if name != "easy" and backfill is not None:
        why = "nobody passes the head" if name == "fcfs" else "all have reservations"
        expected = f"policy easy, as with {name} {why}"
        raise InputError.of(field="backfill", expected=expected, found=repr(backfill))
    first: Order = queue or "fcfs"  # type: ignore[assignment]
    # Priorities also order the backfilling.
    default = "multifactor" if first == "multifactor" else "fcfs"
    second: Order | None = (backfill or default) if name == "easy" else None  # type: ignore[assignment]
    return Policy(first, second, conservative=name == "conservative")


@dataclass(frozen=True)
class PlacedJobs:
    """``n`` jobs on machines."""

    jobs: Jobs
    machines: Sequence[Machine]
    machine: Integers  # Index of each job's machine, of shape `(n,)`

    def of_machine(self, name: str) -> Reals:
        """Return a number of each job's machine, of shape ``(n,)``; NaN where it is not known."""
        of_each: Reals = np.array([getattr(each, name) for each in self.machines], np.float64)
        return of_each[self.machine]

    def on_machine(self, times_s: Reals) -> Reals:
        """Select each job's time on its machine from those of shape ``(n, m)`` or ``(n, 1)``."""
        selected: Reals = times_s[np.arange(len(self.jobs)), self.machine if times_s.shape[1] > 1 else 0]
        return selected


@dataclass(frozen=True)
class Bound:
    """Each job waits for one machine."""

    machine: Integers  # Index of each job's machine, of shape `(n,)`


@dataclass(frozen=True)
class Preferred:
    """Each job starts on the first machine of its list with enough free processors.

    Algorithm 2 of Nichols et al. 2024: if all are full, it waits for the first of its list, on which its
    reservation is made.
    """

    # Indices of machines, the best first, of shape `(n, m)`; −1 at the end of rows of jobs that cannot run on
    # all
    order: Integers


@dataclass(frozen=True)
class Completion:
    """Each job is bound at submission to the machine with the earliest expected completion.

    A machine's wait is the work that is bound to it, waiting or running, in processor-seconds by the same
    predictions, over its processors; the job's own predicted time is added (minimum completion time).
    """

    # Predicted time of each job on each machine in seconds, of shape `(n, m)`; infinite where it cannot run
    predicted_s: Reals


Placement = Bound | Preferred | Completion


@dataclass(frozen=True)
class Cuts:
    """``k`` preempted runs; their jobs were restarted later."""

    job: Integers  # Index of the job, of shape `(k,)`
    start_s: Reals  # Times of its start and of its preemption in seconds, of shape `(k,)`
    end_s: Reals


@dataclass(frozen=True)
class Speeds:
    """``k`` changes of the speeds of jobs that share processors, in the order of time."""

    job: Integers  # Index of the job, of shape `(k,)`
    time_s: Reals
    speed: Reals  # From then on: 1 over the slowdown


@dataclass(frozen=True)
class Schedule(PlacedJobs, Tabular):
    """A schedule of ``n`` jobs."""

    start_s: Reals  # Times of start and end in seconds, of shape `(n,)`
    end_s: Reals
    # Latest start by the reservation that each job first had at the head of the queue; NaN for jobs without
    # one
    reserved_s: Reals
    cuts: Cuts | None = None  # Preempted runs; `None` without preemption
    # Index of the job whose processors each job took or shared, of shape `(n,)`; `None` without sharing
    seat: Integers | None = None
    speeds: Speeds | None = None  # With sharing and a budget of power; jobs start at a speed of 1

    @property
    def wait_s(self) -> Reals:
        """Wait time of each job, in seconds."""
        return self.start_s - self.jobs.submit_s

    @property
    def ran_s(self) -> Reals:
        """Run time of each job, in seconds."""
        return self.end_s - self.start_s

    @property
    def alone_s(self) -> Reals:
        """Run time of each job alone, in its fastest configuration on its fastest machine, in seconds."""
        times = self.jobs.run_s if self.jobs.fastest_s is None else self.jobs.fastest_s
        if times.shape[1] == 1:
            return times[:, 0]
        fits = self.jobs.procs[:, None] <= np.array([machine.procs for machine in self.machines])
        alone_s: Reals = np.where(fits, times, np.inf).min(axis=1)
        return alone_s

    def columns(self) -> Mapping[str, Column]:
        """Columns with a row for each job, in the order of submission."""
        return {
            "job": self.jobs.number,
            "submit_s": self.jobs.submit_s,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "machine": [self.machines[index].name for index in self.machine.tolist()],
            "procs": self.jobs.procs,
        }

    def caption(self) -> str:
        """Summarise the schedule in a line."""
        names = ", ".join(machine.name for machine in self.machines)
        return f"Schedule of {len(self.jobs.number)} jobs on {names}"


_MOST_SCHEDULE_BYTES = 4 << 30

COLUMNS = ("job", "submit", "start", "end", "machine", "procs")
"""Number of the job, three times in seconds, name of the machine, and processors of the job."""


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule, a row for each job in the order of their submission."""
    path = Path(path)
    names = [machine.name for machine in schedule.machines]
    jobs = schedule.jobs
    columns = (
        jobs.number.tolist(),
        *(texts_of(times, "") for times in (jobs.submit_s, schedule.start_s, schedule.end_s)),
        [names[index] for index in schedule.machine.tolist()],
        jobs.procs.tolist(),
    )
    with (
        atomic_file(path, "schedule") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(zip(*columns, strict=True))


def read_schedule_times(path: str | Path) -> tuple[Integers, Reals, Reals, Reals]:
    """Read numbers of jobs, and times of submission, start and end in seconds, as `write_schedule` wrote.

    Raises
    ------
    InputError
        If the file cannot be read, or a row is not as expected.
    """
    expected = ", ".join(COLUMNS)
    _, header, rows = csv_rows(Path(path), "schedule", expected, _MOST_SCHEDULE_BYTES)
    if tuple(header) != COLUMNS:
        raise InputError.of(where=path, expected=f"columns {expected}", found=", ".join(header))
    numbers, times = [], []
    for where, cells in rows:
        try:
            numbers.append(int(cells["job"]))
            times.append([float(cells[name]) for name in ("submit", "start", "end")])
        except ValueError:
            expected, found = "a whole number of the job and three times", ",".join(cells.values())
            raise InputError.of(where=where, expected=expected, found=found) from None
    submit_s, start_s, end_s = np.array(times, np.float64).reshape(-1, 3).T
    return np.array(numbers, np.int64), submit_s, start_s, end_s
