"""Model: where a job should run fastest, of the machines with room (Algorithm 2), or of those near it."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Reals
from crosscast.cluster.placement import Preferred
from crosscast.cluster.placements.workload import Workload
from crosscast.errors import InputError

__all__ = ["NEAR", "by_time", "model_near_order", "model_order"]

NEAR = 2.0
"""Jobs wait rather than run so many times as long as on their fastest machine."""


def model_order(workload: Workload) -> Preferred:
    """List machines by the predicted vector, least first: Algorithm 2 of Nichols et al. 2024.

    There a vector's entry is a speed, and the greatest comes first; here it is a time.

    Raises
    ------
    InputError
        If there is no prediction.
    """
    return by_time(workload, _vector_of(workload, "model"))


def model_near_order(workload: Workload) -> Preferred:
    """The same, without machines on which a job should take more than `NEAR` times its least time.

    Algorithm 2 fills whichever machine is free, however slow it is for the job at the head of the queue.

    Raises
    ------
    InputError
        If there is no prediction.
    """
    return by_time(workload, _vector_of(workload, "model-near"), within=NEAR)


def _vector_of(workload: Workload, name: str) -> Reals:
    if workload.vector is None:
        raise InputError(f"placement: {name}: expected jobs with predicted vectors, found none")
    return workload.vector


def by_time(workload: Workload, time: Reals, *, within: float | None = None) -> Preferred:
    """List the machines on which each job runs, the one with the least time first.

    Parameters
    ----------
    workload
        The jobs.
    time
        Time of each job on each machine, in any unit, of shape ``(n, m)``. Of equal ones the first machine
        comes first.
    within
        Leave out machines with more than so many times the least time of the job; at least 1. By default
        none is left out.
    """
    known = np.where(workload.runs_on, time, np.inf)
    order = np.argsort(known, axis=1, kind="stable")
    taken = workload.runs_on
    if within is not None:
        taken = taken & (known <= within * known.min(axis=1, keepdims=True))
    listed = np.arange(len(workload.machines)) < taken.sum(axis=1, keepdims=True)
    return Preferred(np.where(listed, order, -1))
