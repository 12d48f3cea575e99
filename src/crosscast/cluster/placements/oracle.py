"""Oracle: what a model that is never wrong would do; the bound of `model`."""

from __future__ import annotations

from crosscast.cluster.placement import Preferred
from crosscast.cluster.placements.model import by_time
from crosscast.cluster.placements.workload import Workload

__all__ = ["oracle_order"]


def oracle_order(workload: Workload) -> Preferred:
    """List machines by the times that jobs really run, least first."""
    return by_time(workload, workload.jobs.run_s)
