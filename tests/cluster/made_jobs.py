"""Small random workloads with many ties, zero times and wrong estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.cluster.jobs import (
    ORDERS,
    Bound,
    Completion,
    Jobs,
    Machine,
    Order,
    Placement,
    Policy,
    Preferred,
)


@dataclass(frozen=True)
class Case:
    jobs: Jobs
    machines: list[Machine]
    policy: Policy
    placement: Placement


def made_case(seed: int, *, most_jobs: int = 25, exact: bool | None = None) -> Case:
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
    exact = bool(rng.random() < 0.3) if exact is None else exact
    estimate_s = run_s if exact else _estimates(rng, run_s, len(machines))
    jobs = Jobs(np.arange(count) + 1, submit_s, procs, run_s, estimate_s)
    orders: tuple[Order, ...] = ORDERS  # type: ignore[assignment]
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
