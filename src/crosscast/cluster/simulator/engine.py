"""Runs a simulation from its inputs to its schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.cluster.jobs import Integers, Jobs, Reals
from crosscast.cluster.machines import Machine
from crosscast.cluster.placement import Placement
from crosscast.cluster.policy import Order, Policy
from crosscast.cluster.schedule import Schedule
from crosscast.cluster.simulator.binding import start_binding
from crosscast.cluster.simulator.choices import Choices, choices_of
from crosscast.cluster.simulator.compiled import is_kept
from crosscast.cluster.simulator.core import advance
from crosscast.cluster.simulator.heap import start_heap
from crosscast.cluster.simulator.keys import keys_of
from crosscast.cluster.simulator.running import start_running
from crosscast.cluster.simulator.state import NEXT, State
from crosscast.cluster.simulator.trees import start_trees

__all__ = ["run"]

_POINTS = 1_000_000
"""Points in time between two words about progress, or two chances to interrupt: about a second."""


def run(
    jobs: Jobs,
    machines: Sequence[Machine],
    policy: Policy,
    placement: Placement,
    progress: Callable[[str], None] | None,
) -> Schedule:
    """Simulate; see `crosscast.cluster.simulate.simulate`, which has checked all but the placement.

    Raises
    ------
    InputError
        If the placement does not fit, or a job can run nowhere.
    """
    state = _start_state(jobs, machines, policy, choices_of(jobs, machines, placement))
    if progress is not None and not is_kept(advance):
        progress("compiling the simulator: this is done once, and takes some seconds")
    while not advance(state, _POINTS):
        if progress is not None:
            progress(f"{state.at[NEXT]:,} of {len(jobs):,} jobs have been submitted")
    return Schedule(jobs, machines, state.machine, state.start, state.end, state.reserved)


def _start_state(jobs: Jobs, machines: Sequence[Machine], policy: Policy, choices: Choices) -> State:
    """The state before the first job is submitted."""
    count = len(jobs)
    size = np.array([machine.procs for machine in machines], np.int64)
    procs = _plain(jobs.procs, np.int64)
    bound = None if len(choices.predicted) or choices.choices.shape[1] > 1 else choices.choices
    run_s = _on(_plain(jobs.run_s, np.float64), bound)
    estimate_s = run_s
    if jobs.estimate_s is not jobs.run_s:
        estimate_s = _on(_plain(jobs.estimate_s, np.float64), bound)
    queue, queue_on = _keys(policy.queue, jobs, estimate_s, choices)
    passing, passing_on = _keys(policy.backfill, jobs, estimate_s, choices)
    widths = np.unique(procs)
    if policy.queue == "fcfs":
        queue = np.empty(0)
    tree = np.empty(0, np.int64)
    if len(passing):
        # Faster than np.unique's inverse, which sorts.
        tree = choices.group * len(widths) + np.searchsorted(widths, procs)
    return State(
        submit=_plain(jobs.submit_s, np.float64),
        procs=procs,
        run=run_s,
        estimate=estimate_s,
        choices=choices.choices,
        members=choices.members,
        widths=widths,
        at=np.zeros(3, np.int64),
        start=np.full(count, np.nan),
        end=np.full(count, np.nan),
        reserved=np.full(count, np.nan),
        machine=np.full(count, -1, np.int64),
        ends=start_heap(min(count, int(size.sum()))),
        queue=start_heap(len(queue)),
        queue_key=queue,
        running=start_running(size, count),
        trees=start_trees(passing, estimate_s, tree, len(choices.members) * len(widths)),
        binding=start_binding(choices.predicted, queue_on, passing_on, size),
    )


def _plain(array: npt.NDArray[Any], kind: type[np.float64] | type[np.int64]) -> npt.NDArray[Any]:
    # The engine is compiled for such arrays; for read-only ones, say, it would be again.
    return np.require(array, kind, ["C", "W", "A"])


def _on(times: Reals, machine: Integers | None) -> Reals:
    """Times on the machine that each job is bound to, if each is and they differ."""
    if machine is None or times.shape[1] == 1:
        return times
    return np.take_along_axis(times, machine, axis=1)


def _keys(order: Order | None, jobs: Jobs, estimate_s: Reals, choices: Choices) -> tuple[Reals, Reals]:
    """Keys of jobs, of shape ``(n,)``, and if jobs get them when they are bound, those on each machine."""
    none = np.empty((0, 1))
    if order is None:
        return np.empty(0), none
    keys = keys_of(order, jobs, estimate_s)
    if keys.shape[1] > 1:
        if len(choices.predicted):
            return np.empty(len(jobs)), _plain(keys, np.float64)
        keys = np.take_along_axis(keys, choices.choices[:, :1], axis=1)
    return _plain(keys.reshape(-1), np.float64), none
