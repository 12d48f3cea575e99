"""How good a schedule is, for those who own machines and those who wait for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.cluster.jobs import Reals
from crosscast.cluster.schedule import Schedule
from crosscast.cluster.utilisation import processor_seconds
from crosscast.errors import InputError

__all__ = ["TAU_S", "Metrics", "bounded_slowdown", "metrics_of"]

TAU_S = 10.0
"""Shorter jobs count as this long in slowdowns, in seconds (section VII-A of Nichols et al. 2024)."""


@dataclass(frozen=True)
class Metrics:
    """Metrics of a schedule; less is better in all but `utilisation`.

    Parameters
    ----------
    jobs
        How many jobs ran.
    makespan_s
        From the first submission to the last end, in seconds.
    average_bounded_slowdown
        Mean of `bounded_slowdown` over the jobs.
    mean_wait_s, median_wait_s, wait_p95_s
        Mean, median and 95th percentile of waits, in seconds.
    utilisation
        Processor-seconds that jobs occupied over those that the machines had in the makespan; ``None`` if
        that is 0 s.
    """

    jobs: int
    makespan_s: float
    average_bounded_slowdown: float
    mean_wait_s: float
    median_wait_s: float
    wait_p95_s: float
    utilisation: float | None


def bounded_slowdown(wait_s: Reals, ran_s: Reals) -> Reals:
    """How many times longer jobs took than without a wait, very short ones not counted as such.

    The formula of section VII-A of Nichols et al. 2024: ``max((wait + run) / max(run, TAU_S), 1)``.

    Parameters
    ----------
    wait_s, ran_s
        How long each job waited and ran, in seconds, of any one shape.

    Examples
    --------
    >>> bounded_slowdown(np.array([0.0, 9.0, 30.0]), np.array([2.0, 11.0, 30.0])).tolist()
    [1.0, 1.8181818181818181, 2.0]
    """
    slowdown: Reals = np.maximum((wait_s + ran_s) / np.maximum(ran_s, TAU_S), 1.0)
    return slowdown


def metrics_of(schedule: Schedule) -> Metrics:
    """Metrics over all jobs and machines.

    Parameters
    ----------
    schedule
        What `crosscast.simulate` gives.

    Returns
    -------
    Metrics
        Makespan and waits in seconds, slowdowns as ratios, and the share of processors in use.

    Raises
    ------
    InputError
        If there is no job, or times are too large to be added up.
    """
    if not len(schedule.jobs):
        raise InputError("schedule: expected at least one job, found none")
    wait_s = schedule.wait_s
    makespan_s = float(schedule.end_s.max() - schedule.jobs.submit_s[0])
    capacity = makespan_s * sum(machine.procs for machine in schedule.machines)
    work = float(processor_seconds(schedule).sum())
    if not np.isfinite(capacity + work + float(wait_s.sum())):
        raise InputError("schedule: expected times that can be added up, found ones that are too large")
    median_s, p95_s = np.quantile(wait_s, (0.5, 0.95)).tolist()
    return Metrics(
        jobs=len(schedule.jobs),
        makespan_s=makespan_s,
        average_bounded_slowdown=float(bounded_slowdown(wait_s, schedule.ran_s).mean()),
        mean_wait_s=float(wait_s.mean()),
        median_wait_s=median_s,
        wait_p95_s=p95_s,
        utilisation=work / capacity if capacity > 0 else None,
    )
