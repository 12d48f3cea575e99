"""Running jobs of each machine, by when they are expected to end, and the reservation that follows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.simulator.compiled import compiled

__all__ = ["Running", "add", "drop", "reservation", "start_running"]


class Running(NamedTuple):
    """What runs on ``m`` machines.

    Parameters
    ----------
    free
        Processors free on each machine, of shape ``(m,)``.
    first, jobs
        Where the running jobs of each machine begin in the arrays below, and how many they are.
    due, procs
        When jobs are expected to end, ascending on each machine, and their processors.
    """

    free: Integers
    first: Integers
    jobs: Integers
    due: Reals
    procs: Integers


def start_running(size: Integers, jobs: int) -> Running:
    """Machines of sizes in processors on which none of so many jobs runs yet."""
    most = np.minimum(size, jobs)
    total = int(most.sum())
    return Running(
        size.copy(), np.cumsum(most) - most, np.zeros_like(size), np.empty(total), np.empty(total, np.int64)
    )


@compiled
def add(running: Running, machine: int, due: float, procs: int) -> None:
    """Note that a job starts on a machine and is expected to end then."""
    first = running.first[machine]
    place = first + running.jobs[machine]
    while place > first and running.due[place - 1] > due:
        running.due[place] = running.due[place - 1]
        running.procs[place] = running.procs[place - 1]
        place -= 1
    running.due[place] = due
    running.procs[place] = procs
    running.jobs[machine] += 1
    running.free[machine] -= procs


@compiled
def drop(running: Running, machine: int, due: float, procs: int) -> None:
    """Note that a job has ended that was expected to end then."""
    place = running.first[machine]
    last = place + running.jobs[machine] - 1
    high = last
    while place < high:
        middle = (place + high) >> 1
        if running.due[middle] < due:
            place = middle + 1
        else:
            high = middle
    # Jobs of one width that are due at one time are the same here.
    while running.procs[place] != procs:
        place += 1
    while place < last:
        running.due[place] = running.due[place + 1]
        running.procs[place] = running.procs[place + 1]
        place += 1
    running.jobs[machine] -= 1
    running.free[machine] += procs


@compiled
def reservation(running: Running, machine: int, procs: int, now: float) -> tuple[float, int]:
    """When so many processors should be free on a machine, and how many more than those then.

    A job that has run longer than it was expected to may end at any moment: it counts as ending now. All
    jobs that are expected to end at the time found count.
    """
    free = running.free[machine]
    place = running.first[machine]
    end = place + running.jobs[machine]
    shadow = now
    while place < end and (free < procs or running.due[place] <= shadow):
        shadow = max(shadow, running.due[place])
        free += running.procs[place]
        place += 1
    return shadow, free - procs
