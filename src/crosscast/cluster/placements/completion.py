"""Completion: the machine where a job should be finished first, its queue included."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.placement import Completion
from crosscast.cluster.placements.workload import Workload
from crosscast.errors import InputError

__all__ = ["completion", "oracle_completion"]


def completion(workload: Workload) -> Completion:
    """Weigh the predicted wait on each machine against the predicted time there.

    Raises
    ------
    InputError
        If there is no prediction in seconds.
    """
    if workload.predicted_s is None:
        raise InputError("placement: completion: expected jobs with predicted times, found none")
    return Completion(np.where(workload.runs_on, workload.predicted_s, np.inf))


def oracle_completion(workload: Workload) -> Completion:
    """The same with the times that jobs really run: what a model that is never wrong would do."""
    return Completion(np.where(workload.runs_on, workload.jobs.run_s, np.inf))
