"""Workloads that are drawn from job types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosscast.cluster.jobs import Integers, Jobs, Reals
from crosscast.cluster.placements.workload import Workload
from crosscast.errors import InputError

__all__ = ["MOST_JOBS", "PUBLISHED_JOBS", "draw_types", "drawn", "submissions"]

MOST_JOBS = 100_000_000
"""Most jobs of a workload."""

PUBLISHED_JOBS = 50_000
"""Jobs of the workload in section VII of Nichols et al. 2024."""


def draw_types(types: int, count: int, generator: np.random.Generator) -> Integers:
    """Draw the type of each job, with replacement, all types equally often.

    Parameters
    ----------
    types
        How many types there are.
    count
        How many jobs to draw.
    generator
        Where chance comes from.

    Raises
    ------
    InputError
        If there is no type, or no job, or too many are asked for.
    """
    if types < 1:
        raise InputError("types: expected at least one type of job, found none")
    if not 1 <= count <= MOST_JOBS:
        raise InputError(f"count: expected 1 to {MOST_JOBS:,} jobs, found {count:,}")
    return generator.integers(types, size=count)


def submissions(count: int, interarrival_s: float, generator: np.random.Generator) -> Reals:
    """When jobs are submitted: the first at 0 s, the next ones after exponential times (a Poisson process).

    Parameters
    ----------
    count
        How many jobs there are.
    interarrival_s
        Mean time between two, in seconds; 0 if all are submitted at once.
    generator
        Where chance comes from.

    Raises
    ------
    InputError
        If the mean time is negative or no number.
    """
    if not (interarrival_s >= 0 and np.isfinite(interarrival_s)):
        raise InputError(f"interarrival: expected a time of at least 0 s, found {interarrival_s}")
    between = generator.exponential(interarrival_s, size=count)
    between[:1] = 0.0
    return np.cumsum(between)


def drawn(types: Workload, places: Integers, submit_s: Reals) -> Workload:
    """Jobs of these types, submitted at these times.

    Parameters
    ----------
    types
        A job of each type.
    places
        Place of each job's type, of shape ``(n,)``.
    submit_s
        When each is submitted, ascending, of shape ``(n,)``.
    """
    one = types.jobs
    jobs = Jobs(
        number=np.arange(1, len(places) + 1),
        submit_s=submit_s,
        procs=one.procs[places],
        run_s=one.run_s[places],
        estimate_s=one.estimate_s[places],
        user=None if one.user is None else one.user[places],
        users=one.users,
    )
    return replace(
        types,
        jobs=jobs,
        uses_gpu=types.uses_gpu[places],
        vector=None if types.vector is None else types.vector[places],
        predicted_s=None if types.predicted_s is None else types.predicted_s[places],
    )
