"""Orders of jobs as numbers: the less, the earlier; of equal ones the job that was submitted first."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Jobs, Reals
from crosscast.cluster.policy import Order

__all__ = ["keys_of"]


def keys_of(order: Order, jobs: Jobs, estimate_s: Reals) -> Reals:
    """Key of each job in an order, of the shape of the estimates, of which there is a column a machine.

    Where the order takes no notice of estimates, there is one column only.
    """
    submit_s = jobs.submit_s[:, None]
    procs = jobs.procs[:, None]
    if order == "fcfs":
        return submit_s
    if order == "lcfs":
        return -submit_s
    if order in ("narrowest", "widest"):
        return np.multiply(procs, 1.0 if order == "narrowest" else -1.0)
    if order == "shortest":
        return estimate_s
    if order == "longest":
        return -estimate_s
    area = procs * estimate_s
    return area if order == "smallest-area" else -area
