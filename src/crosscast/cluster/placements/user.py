"""User+RR: what users do who know which of their jobs run on GPUs."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Integers
from crosscast.cluster.placement import Bound
from crosscast.cluster.placements.round_robin import in_turn
from crosscast.cluster.placements.workload import Flags, Workload

__all__ = ["user_round_robin", "without_choice"]


def user_round_robin(workload: Workload) -> Bound:
    """Bind GPU jobs to GPU machines by turns, and the others to other machines by turns (section VII).

    A job that runs on no machine of its kind, or where there is none, goes to the others by the same turns.
    """
    machine = np.zeros(len(workload), dtype=np.int64)
    of_gpu = np.array([each.has_gpu for each in workload.machines])
    for kind in (False, True):
        rows = workload.uses_gpu == kind
        machine[rows] = _of_kind(workload.runs_on[rows], of_gpu == kind)
    return Bound(machine)


def without_choice(workload: Workload) -> str | None:
    """A sentence where users have nothing to choose between, as one kind of machines or jobs is missing."""
    for kind, (with_or_without, others) in {
        True: ("with", "those without"),
        False: ("without", "those with"),
    }.items():
        jobs = int(np.count_nonzero(workload.uses_gpu == kind))
        if jobs and all(machine.has_gpu != kind for machine in workload.machines):
            return f"user: there is no machine {with_or_without} a GPU: {jobs:,} jobs go to {others}"
    if workload.uses_gpu.all() or not workload.uses_gpu.any():
        kind_of_all = "for GPUs" if workload.uses_gpu.any() else "for no GPU"
        return f"user: all jobs are {kind_of_all}: users take no machine of the other kind"
    return None


def _of_kind(runs_on: Flags, kind: Flags) -> Integers:
    """A machine of a kind for each row, by turns among these; any where none of the kind is allowed."""
    machine = in_turn(runs_on) if len(runs_on) else np.zeros(0, dtype=np.int64)
    places = np.flatnonzero(kind)
    if not len(places):
        return machine
    own = runs_on[:, places]
    has_own = own.any(axis=1)
    if has_own.any():
        # The turns go on where a job of the kind runs on another.
        machine[has_own] = places[in_turn(own)[has_own]]
    return machine
