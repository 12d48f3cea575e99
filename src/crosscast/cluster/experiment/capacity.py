"""How soon machines could be done with jobs at best: a bound that no placement and no scheduler beats."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Integers
from crosscast.cluster.placements.workload import Workload
from crosscast.errors import CrosscastError, MissingExtraError

__all__ = ["least_makespan_s", "least_work_s"]


def least_work_s(types: Workload, counts: Integers) -> float:
    """Least time in which machines could work off jobs that can be cut to pieces, in seconds.

    Each type's jobs are shared out between the machines so that the one with the most work has the least: a
    linear program, in which work is processors times time over the processors of the machine.

    Parameters
    ----------
    types
        A job of each type, ``t`` of them, on ``m`` machines.
    counts
        How many jobs of each type there are, of shape ``(t,)``.

    Raises
    ------
    MissingExtraError
        If SciPy is not installed.
    """
    try:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array
    except ImportError as error:
        raise MissingExtraError("cluster", "the least makespan") from error
    there = np.flatnonzero(counts)
    allowed = types.runs_on[there]
    row, machine = np.nonzero(allowed)
    run_s = np.broadcast_to(types.jobs.run_s, types.runs_on.shape)[there][allowed]
    procs = np.array([each.procs for each in types.machines])
    work_s = counts[there][row] * types.jobs.procs[there][row] * run_s / procs[machine]
    scale = work_s.max(initial=0.0)
    if scale == 0:
        return 0.0
    # Variables: the share of each type on each machine where it runs, and the time, which is made least.
    count = len(row)
    column = np.arange(count)
    loads = csr_array(
        (
            np.concatenate((work_s / scale, np.full(len(procs), -1.0))),
            (
                np.concatenate((machine, np.arange(len(procs)))),
                np.concatenate((column, np.full(len(procs), count))),
            ),
        ),
        shape=(len(procs), count + 1),
    )
    shares = csr_array((np.ones(count), (row, column)), shape=(len(there), count + 1))
    cost = np.zeros(count + 1)
    cost[-1] = 1.0
    found = linprog(
        cost, A_ub=loads, b_ub=np.zeros(len(procs)), A_eq=shares, b_eq=np.ones(len(there)), method="highs"
    )
    if not found.success:
        raise CrosscastError(f"the least makespan was not found ({found.message})")
    return float(found.fun) * float(scale)


def least_makespan_s(types: Workload, counts: Integers) -> float:
    """Least makespan of jobs that are submitted at once, in seconds: of their work, or of the longest job.

    Parameters
    ----------
    types, counts
        As for `least_work_s`.

    Raises
    ------
    MissingExtraError
        If SciPy is not installed.
    """
    shortest_s = np.where(types.runs_on, types.jobs.run_s, np.inf).min(axis=1)[counts > 0]
    return max(least_work_s(types, counts), float(shortest_s.max(initial=0.0)))
