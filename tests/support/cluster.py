"""Jobs and schedules that tests make up: by hand, at random with many ties, and as traces."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from crosscast.cluster import (
    ORDERS,
    Bound,
    Completion,
    Jobs,
    Machine,
    Order,
    Placement,
    Policy,
    Preferred,
    Schedule,
)
from crosscast.cluster.simulate import simulate
from crosscast.cluster.traces import NAMES, JobTrace, SwfHeader


def jobs_of(*rows: tuple[float, ...], **more: Any) -> Jobs:
    """Jobs of (submission, processors, time), and of an estimate if it is not exact, with more arrays."""
    submit_s, procs, run_s, *others = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    times, estimates = run_s[:, None], others[0][:, None] if others else run_s[:, None]
    return Jobs(np.arange(len(rows)) + 1, submit_s, procs.astype(np.int64), times, estimates, **more)


USERS = ("ada", "bob", "cyd")


def schedule_of(
    rows: Sequence[tuple[float, float, float, int]],
    *,
    machine: Sequence[int] | None = None,
    sizes: Sequence[int] = (4,),
    user: Sequence[int] | None = None,
) -> Schedule:
    """A schedule of jobs (submitted, started, ended, processors), in the order of their submission."""
    users: dict[str, Any] = {} if user is None else {"user": np.array(user), "users": USERS}
    jobs = jobs_of(*[(submit, procs, end - start) for submit, start, end, procs in rows], **users)
    start_s, end_s = (np.array([row[column] for row in rows], np.float64) for column in (1, 2))
    machines = [Machine(f"m{place}", size) for place, size in enumerate(sizes)]
    places = np.zeros(len(rows), dtype=np.int64) if machine is None else np.array(machine)
    return Schedule(jobs, machines, places, start_s, end_s, np.full(len(rows), np.nan))


STATIC_ORDERS: tuple[Order, ...] = tuple(each for each in ORDERS if each != "multifactor")  # type: ignore[misc]
"""Those that do not change with time."""


@dataclass(frozen=True)
class Case:
    jobs: Jobs
    machines: list[Machine]
    policy: Policy
    placement: Placement


def made_case(seed: int, *, most_jobs: int = 25) -> Case:
    """A case for a seed: one to three machines, any policy, any placement; estimates exact or not."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, most_jobs + 1))
    machines = [Machine(f"m{place}", int(rng.integers(1, 9))) for place in range(int(rng.integers(1, 4)))]
    widest = max(machine.procs for machine in machines)
    procs = rng.integers(1, widest + 1, count)
    submit_s = np.cumsum(rng.integers(0, rng.choice([1, 3, 8]), count)).astype(float)
    columns = 1 if rng.random() < 0.3 else len(machines)
    run_s = rng.integers(0, rng.choice([3, 12]), (count, columns)).astype(float)
    if columns > 1:
        cannot = rng.random(run_s.shape) < 0.1
        cannot[procs > machines[0].procs] = False
        cannot[:, 0] = False
        run_s[cannot] = np.inf
    estimate_s = run_s if rng.random() < 0.3 else _estimates(rng, run_s, len(machines))
    jobs = Jobs(np.arange(count) + 1, submit_s, procs, run_s, estimate_s)
    orders = STATIC_ORDERS
    queue = orders[int(rng.integers(len(orders)))] if rng.random() < 0.5 else "fcfs"
    backfill = None if rng.random() < 0.15 else orders[int(rng.integers(len(orders)))]
    if backfill is not None and rng.random() < 0.3:
        backfill = "fcfs"
    return Case(jobs, machines, Policy(queue, backfill), _placement(rng, jobs, machines))


def _estimates(rng: np.random.Generator, run_s: np.ndarray, machines: int) -> np.ndarray:
    known = np.where(np.isfinite(run_s), run_s, 7.0)
    if rng.random() < 0.3:
        known = known[:, :1]
    elif rng.random() < 0.3:
        known = np.broadcast_to(known, (len(known), machines))
    wrong = np.maximum(known + rng.integers(-3, 6, known.shape), 0.0)
    return np.where(rng.random(known.shape) < 0.02, np.inf, wrong)


def _placement(rng: np.random.Generator, jobs: Jobs, machines: list[Machine]) -> Placement:
    sizes = np.array([machine.procs for machine in machines])
    runs = np.broadcast_to(np.isfinite(jobs.run_s), (len(jobs), len(machines)))
    usable = (jobs.procs[:, None] <= sizes) & runs
    kind = rng.choice(["bound", "preferred", "completion"])
    # A machine on which each job can run stays where it is.
    one = np.array([rng.choice(np.flatnonzero(row)) if row.any() else np.argmax(sizes) for row in usable])
    if kind == "bound":
        return Bound(one)
    if kind == "completion":
        predicted = rng.integers(0, 12, usable.shape).astype(float)
        hidden = rng.random(usable.shape) < 0.1
        hidden[np.arange(len(jobs)), one] = False
        return Completion(np.where(hidden, np.inf, predicted))
    order = np.array([rng.permutation(len(machines)) for _ in range(len(jobs))])
    for row, best in zip(order, one, strict=True):
        kept = int(rng.integers(1, len(machines) + 1))
        row[kept:] = -1
        if best not in row:
            row[kept - 1] = best
    return Preferred(order)


def made_schedule(seed: int) -> Schedule:
    """A schedule of up to 15 jobs of users, which take as long on each machine."""
    case = made_case(seed, most_jobs=15)
    user = np.random.default_rng(seed).integers(0, len(USERS), len(case.jobs))
    run_s, estimate_s = case.jobs.run_s[:, :1], case.jobs.estimate_s[:, :1]
    jobs = replace(case.jobs, run_s=run_s, estimate_s=estimate_s, user=user, users=USERS)
    return simulate(jobs, case.machines, policy=case.policy, placement=case.placement)


schedules = st.integers(0, 2**31).map(made_schedule)


def sound_line(job: int = 1, submit: float = 0) -> str:
    return f"{job} {submit} 5 100 4 -1 -1 4 200 -1 1 7 1 -1 -1 -1 -1 -1"


def written(folder: Path, *lines: str, name: str = "made.swf") -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def trace_of_kinds(folder: Path, jobs: int, kinds: int = 1, *, asked_s: int = 600) -> Path:
    """A trace of jobs of 600 s on 2 processors, of each kind in turn."""
    line = "{job} {submit} -1 600 2 -1 -1 2 {asked} -1 1 1 -1 {kind} -1 -1 -1 -1"
    rows = [(job, job, 1 + job % kinds) for job in range(1, jobs + 1)]
    lines = (line.format(job=job, submit=submit, asked=asked_s, kind=kind) for job, submit, kind in rows)
    return written(folder, *lines, name="jobs.swf")


def trace_with(*, header: dict[str, str] | None = None, **columns: list[float]) -> JobTrace:
    """A trace of these columns; the others hold what sound lines do, or nothing."""
    count = len(next(iter(columns.values())))
    sound = {"submit_s": 0.0, "run_s": 100.0, "procs": 4.0, "requested_s": 200.0, "status": 1.0}
    filled = {name: np.full(count, sound.get(name, np.nan)) for name in NAMES}
    filled["job"] = np.arange(1.0, count + 1)
    filled |= {name: np.array(cells, dtype=np.float64) for name, cells in columns.items()}
    return JobTrace("made", SwfHeader(header or {}), filled)
