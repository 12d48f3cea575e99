"""Simulations and how long they take, without what is done only once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from crosscast.cluster.jobs import Jobs
from crosscast.cluster.machines import Machine
from crosscast.cluster.placement import Placement
from crosscast.cluster.policy import Policy
from crosscast.cluster.schedule import Schedule
from crosscast.cluster.simulate import simulate

__all__ = ["prepare", "timed"]


def prepare(progress: Callable[[str], None] | None = None) -> float:
    """Have the simulator compiled, which takes a while once; return how long it took, in seconds.

    Parameters
    ----------
    progress
        Told that it is being compiled.

    Raises
    ------
    MissingExtraError
        If Numba is not installed.
    """
    one = np.ones((1, 1))
    jobs = Jobs(np.array([1]), np.zeros(1), np.array([1]), one, one)
    return timed(jobs, [Machine("any", 1)], Policy(), None, progress)[1]


def timed(
    jobs: Jobs,
    machines: Sequence[Machine],
    policy: Policy,
    placement: Placement | None,
    progress: Callable[[str], None] | None = None,
) -> tuple[Schedule, float]:
    """Simulate; return the schedule, and how long the simulation took, in seconds."""
    start_s = time.perf_counter()
    schedule = simulate(jobs, machines, policy=policy, placement=placement, progress=progress)
    return schedule, time.perf_counter() - start_s
