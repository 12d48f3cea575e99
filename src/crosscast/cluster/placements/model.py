"""Model: the machine where a job should run fastest, of those with room (Algorithm 2)."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Reals
from crosscast.cluster.placement import Preferred
from crosscast.cluster.placements.workload import Workload
from crosscast.errors import InputError

__all__ = ["by_time", "model_order"]


def model_order(workload: Workload) -> Preferred:
    """List machines by the predicted vector, least first: Algorithm 2 of Nichols et al. 2024.

    There a vector's entry is a speed, and the greatest comes first; here it is a time.

    Raises
    ------
    InputError
        If there is no prediction.
    """
    if workload.vector is None:
        raise InputError("placement: model: expected jobs with predicted vectors, found none")
    return by_time(workload, workload.vector)


def by_time(workload: Workload, time: Reals) -> Preferred:
    """List the machines on which each job runs, the one with the least time first.

    Parameters
    ----------
    workload
        The jobs.
    time
        Time of each job on each machine, in any unit, of shape ``(n, m)``. Of equal ones the first machine
        comes first.
    """
    order = np.argsort(np.where(workload.runs_on, time, np.inf), axis=1, kind="stable")
    listed = np.arange(len(workload.machines)) < workload.runs_on.sum(axis=1, keepdims=True)
    return Preferred(np.where(listed, order, -1))
