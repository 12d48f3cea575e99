"""Placements of the jobs of a workload on machines, and workloads of job types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster import (
    Bound,
    Completion,
    Jobs,
    Machine,
    Placement,
    Preferred,
    check_machines,
    first_row,
)
from crosscast.cluster.job_types import JobTypes, for_machines, read_gavel, read_job_types
from crosscast.errors import InputError


@dataclass(frozen=True)
class Workload:
    """``n`` jobs, and the ``m`` machines that they may go to."""

    jobs: Jobs
    machines: Sequence[Machine]
    uses_gpu: Flags  # Whether users know each job as one for GPUs, of shape `(n,)`
    # Predicted relative vectors: times on each machine over that on the slowest, of shape `(n, m)`; `None`
    # without predictions
    vector: Reals | None = None
    # Predicted times in seconds, by each job's time on the one machine where it was run, of shape `(n, m)`;
    # `None` without predictions
    predicted_s: Reals | None = None

    def __post_init__(self) -> None:
        check_machines(self.machines)
        if (row := first_row(~self.runs_on.any(axis=1))) is not None:
            raise InputError.of(
                where="jobs",
                problem=(
                    f"job {self.jobs.number[row]}: expected a machine on which it runs that has "
                    f"its {self.jobs.procs[row]} processors, found none of "
                    f"{', '.join(f'{machine.name} ({machine.procs})' for machine in self.machines)}"
                ),
            )

    def __len__(self) -> int:
        return len(self.jobs)

    @cached_property
    def runs_on(self) -> Flags:
        """Whether each job fits on each machine and runs there, of shape ``(n, m)``."""
        procs = np.array([machine.procs for machine in self.machines])
        fits: Flags = self.jobs.procs[:, None] <= procs
        return fits & np.isfinite(self.jobs.run_s)


NEAR = 2.0
"""Limit on the time on a machine over that on the fastest one; jobs wait rather than exceed it."""


def by_time(workload: Workload, time: Reals, *, within: float | None = None) -> Preferred:
    """List the machines on which each job runs, the one with the least time first.

    With `within`, machines on which it takes more than that multiple of its least time are left out.
    """
    times = np.where(workload.runs_on, time, np.inf)
    order = np.argsort(times, axis=1, kind="stable")
    usable = workload.runs_on
    if within is not None:
        usable = usable & (times <= within * times.min(axis=1, keepdims=True))
    in_list = np.arange(len(workload.machines)) < usable.sum(axis=1, keepdims=True)
    return Preferred(np.where(in_list, order, -1))


def _completion(workload: Workload, time_s: Reals) -> Completion:
    return Completion(np.where(workload.runs_on, time_s, np.inf))


def _known(predictions: Reals | None) -> Reals:
    """Return predictions that tables of job types have been checked for, see `NEEDS`."""
    assert predictions is not None
    return predictions


def random_machine(workload: Workload, generator: np.random.Generator) -> Bound:
    """Bind each job to a machine drawn uniformly from those on which it runs (section VII)."""
    allowed = workload.runs_on
    drawn = generator.integers(allowed.sum(axis=1))
    # The allowed machine with the drawn rank.
    return Bound(np.argmax(np.cumsum(allowed, axis=1) > drawn[:, None], axis=1))


def in_turn(allowed: Flags) -> Integers:
    """Return the first machine from ``i mod m`` on that row ``i`` allows (section VII of Nichols 2024).

    >>> in_turn(np.array([[True, True], [True, False], [True, True], [True, True]])).tolist()
    [0, 0, 0, 1]
    """
    rows, machines = allowed.shape
    order = (np.arange(rows)[:, None] + np.arange(machines)) % machines
    first = np.argmax(np.take_along_axis(allowed, order, axis=1), axis=1)
    turn: Integers = order[np.arange(rows), first]
    return turn


def user_round_robin(workload: Workload) -> Bound:
    """Bind GPU jobs to GPU machines round-robin, and other jobs to other machines likewise (section VII).

    A job that runs on no machine of its kind goes to the others in the same way.
    """
    machine = np.zeros(len(workload), dtype=np.int64)
    of_gpu = np.array([each.has_gpu for each in workload.machines])
    for kind in (False, True):
        rows = workload.uses_gpu == kind
        machine[rows] = _of_kind(workload.runs_on[rows], of_gpu == kind)
    return Bound(machine)


def without_choice(types: Workload) -> str | None:
    """Return a sentence if users have no choice, as one kind of machines or types of jobs is missing."""
    for kind, word, other in ((True, "with", "without"), (False, "without", "with")):
        count = int(np.count_nonzero(types.uses_gpu == kind))
        if count and all(machine.has_gpu != kind for machine in types.machines):
            which = f"{count:,} of the {len(types):,} types of jobs"
            return f"user: there is no machine {word} a GPU: {which} go to those {other}"
    if types.uses_gpu.all() or not types.uses_gpu.any():
        kind_of_all = "for GPUs" if types.uses_gpu.any() else "for no GPU"
        return f"user: all jobs are {kind_of_all}: users take no machine of the other kind"
    return None


def _of_kind(runs_on: Flags, kind: Flags) -> Integers:
    """Return a machine of a kind for each row, round-robin; any allowed one if there is none of the kind."""
    machine, of_kind = in_turn(runs_on), np.flatnonzero(kind)
    allowed = runs_on[:, of_kind]
    has_allowed = allowed.any(axis=1)
    if has_allowed.any():
        # Rows without a machine of the kind advance the turn as well.
        machine[has_allowed] = of_kind[in_turn(allowed)[has_allowed]]
    return machine


Place = Callable[[Workload, np.random.Generator], Placement]

PLACEMENTS: Mapping[str, Place] = MappingProxyType(
    {
        "round-robin": lambda jobs, _: Bound(in_turn(jobs.runs_on)),
        "random": random_machine,
        "user": lambda jobs, _: user_round_robin(jobs),
        # Algorithm 2 of Nichols et al. 2024. There a vector's entry is a speed, and the greatest comes first;
        # here it is a time.
        "model": lambda jobs, _: by_time(jobs, _known(jobs.vector)),
        "exact": lambda jobs, _: by_time(jobs, jobs.jobs.run_s),
        # That algorithm fills whichever machine is free, however slow it is for the job at the queue's head.
        "model-near": lambda jobs, _: by_time(jobs, _known(jobs.vector), within=NEAR),
        "exact-near": lambda jobs, _: by_time(jobs, jobs.jobs.run_s, within=NEAR),
        # Weighs the predicted wait on each machine against the predicted time there.
        "completion": lambda jobs, _: _completion(jobs, _known(jobs.predicted_s)),
        "exact-completion": lambda jobs, _: _completion(jobs, jobs.jobs.run_s),
    }
)
"""Placements by name, as functions of the workload and a random generator.

The exact ones use the true run times, as of a perfect model. They are no bound: a rule that errs may be
luckier.
"""

NEEDS: Mapping[str, str] = MappingProxyType(
    {"model": "vector", "model-near": "vector", "completion": "predicted_s"}
)
"""Fields of the workload that placements by predictions need."""


def type_workload(
    types: JobTypes, machines: Sequence[Machine], needs: frozenset[str] = frozenset()
) -> Workload:
    """Return a job of each type, in the order of the table, with exact estimates.

    Predicted times are the predicted vector scaled by the measured time on the source of the prediction: the
    one profiled run is all that is known of a job. `needs` are those of `NEEDS` that each type must have.
    """
    on_machines = for_machines(types, machines)
    run_s = np.where(np.isnan(on_machines.run_s), np.inf, on_machines.run_s)
    runs = np.isfinite(run_s)
    vector = on_machines.predicted
    columns = {device: column for column, device in enumerate(types.devices)}
    column = np.array([columns.get(str(device), -1) for device in types.source])
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (types.run_s / types.predicted)[np.arange(len(types)), column]
        predicted_s = vector * np.where(column < 0, np.nan, scale)[:, None]
    has_vector = np.where(runs, np.isfinite(vector), True).all(axis=1)
    has_seconds = np.where(runs, np.isfinite(predicted_s), True).all(axis=1)
    source = "source: expected a device on which it has a time and a prediction above 0, as of --job-source"
    for need, known, expected in (
        ("vector", has_vector, "predicted: expected a prediction for each machine on which it runs"),
        ("predicted_s", has_seconds, source),
    ):
        if need in needs and (row := first_row(~known)) is not None:
            raise InputError.of(
                where=f"job type {row + 1} ({types.application[row]})", problem=f"{expected}, found none"
            )
    user, users = _users(types.user)
    jobs = Jobs(
        number=np.arange(1, len(types) + 1),
        submit_s=np.zeros(len(types)),
        procs=on_machines.procs,
        run_s=run_s,
        estimate_s=run_s,
        user=user,
        users=users,
    )
    return Workload(
        jobs,
        tuple(machines),
        uses_gpu=on_machines.uses_gpu,
        vector=vector if has_vector.all() else None,
        predicted_s=predicted_s if has_seconds.all() else None,
    )


def _users(names: Sequence[str | None]) -> tuple[Integers | None, tuple[str, ...]]:
    if None in names:
        return None, ()
    index: dict[str, int] = {}
    user = np.array([index.setdefault(str(name), len(index)) for name in names])
    return user, tuple(index)


def drawn(types: Workload, indices: Integers, submit_s: Reals) -> Workload:
    """Return jobs of these types, numbered from 1, submitted at these times."""
    jobs = replace(types.jobs.taken(indices, submit_s), number=np.arange(1, len(indices) + 1))
    return replace(
        types,
        jobs=jobs,
        uses_gpu=types.uses_gpu[indices],
        vector=None if types.vector is None else types.vector[indices],
        predicted_s=None if types.predicted_s is None else types.predicted_s[indices],
    )


@dataclass(frozen=True)
class JobTable:
    """Types of jobs on machines."""

    label: str  # Name for people
    types: Workload  # A job of each type
    # Times of submission in seconds, ascending; `None` if the file has none
    submit_s: Reals | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)  # Number left out, by the reason

    @property
    def placements(self) -> list[str]:
        """Placements for which these types have the data."""
        return [
            name for name in PLACEMENTS if name not in NEEDS or getattr(self.types, NEEDS[name]) is not None
        ]


def read_job_table(
    path: Path,
    machines: Sequence[Machine],
    speeds: Path | None,
    placements: Sequence[str] | None,
    *,
    predicted: bool = False,
) -> JobTable:
    """Read a table of job types (Parquet), or a trace of Gavel with its speeds."""
    uses = {f"placement {name}": NEEDS[name] for name in placements or () if name in NEEDS}
    if predicted:
        uses["--estimates predicted"] = "predicted_s"
    if speeds is not None:
        for what in uses:
            raise InputError.of(
                where=path, expected=f"predicted times for {what}", found="a trace of Gavel, without any"
            )
        return _of_gavel(path, speeds, machines)
    types = read_job_types(path)
    submit_s = types.submit_s
    workload = type_workload(types, machines, frozenset(uses.values()))
    if submit_s is not None:
        order = np.argsort(submit_s, kind="stable")
        submit_s = submit_s[order]
        workload = drawn(workload, order, np.zeros(len(order)))
    return JobTable(path.stem, workload, submit_s)


def _of_gavel(path: Path, speeds: Path, machines: Sequence[Machine]) -> JobTable:
    trace = read_gavel(path, speeds)
    columns = []
    for machine in machines:
        kind = machine.device or machine.name
        if kind not in trace.kinds:
            raise InputError.of(
                where=f"machine {machine.name}",
                field="device",
                expected=f"one of {', '.join(trace.kinds)}",
                found=repr(kind),
            )
        columns.append(trace.kinds.index(kind))
    run_s = trace.jobs.run_s[:, columns]
    jobs = replace(trace.jobs, run_s=run_s, estimate_s=run_s)
    types = Workload(jobs, tuple(machines), uses_gpu=np.ones(len(jobs), dtype=np.bool_))
    return JobTable(path.stem, types, jobs.submit_s, trace.left_out)
