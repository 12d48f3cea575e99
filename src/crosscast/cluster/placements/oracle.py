"""Oracle: what a model that is never wrong would do; what `model` and `model-near` aim at."""

from __future__ import annotations

from crosscast.cluster.placement import Preferred
from crosscast.cluster.placements.model import NEAR, by_time
from crosscast.cluster.placements.workload import Workload

__all__ = ["oracle_near_order", "oracle_order"]


def oracle_order(workload: Workload) -> Preferred:
    """List machines by the times that jobs really run, least first."""
    return by_time(workload, workload.jobs.run_s)


def oracle_near_order(workload: Workload) -> Preferred:
    """The same, without machines on which a job runs more than `NEAR` times its least time."""
    return by_time(workload, workload.jobs.run_s, within=NEAR)
