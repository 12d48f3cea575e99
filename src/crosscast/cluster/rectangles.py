"""Which processors of a machine each job occupies, and when: what a picture of a schedule needs."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.schedule import Schedule

__all__ = ["Rectangles", "rectangles"]


@dataclass(frozen=True)
class Rectangles:
    """``k`` rectangles of time and processors; a job has several if its processors are not side by side.

    Parameters
    ----------
    job
        Place of the job, of shape ``(k,)``.
    start_s, end_s
        From when until when, in seconds, of shape ``(k,)``.
    first, procs
        The first processor, from 0, and how many there are, of shape ``(k,)``.
    """

    job: Integers
    start_s: Reals
    end_s: Reals
    first: Integers
    procs: Integers

    def __len__(self) -> int:
        """Number of rectangles."""
        return len(self.job)


def rectangles(schedule: Schedule, machine: int, from_s: float = -np.inf, to_s: float = np.inf) -> Rectangles:
    """Give each job of a machine the first processors side by side that are free, or else the first ones.

    A schedule says how many processors a job has, not which: any that are free will do.

    Parameters
    ----------
    schedule
        The schedule; no job needs more processors than are free.
    machine
        Place of the machine.
    from_s, to_s
        Jobs that run at some time in between are taken, in seconds.
    """
    start_s, end_s = schedule.start_s, schedule.end_s
    runs = (schedule.machine == machine) & (end_s > start_s) & (end_s > from_s) & (start_s < to_s)
    jobs = np.flatnonzero(runs)
    jobs = jobs[np.argsort(start_s[jobs], kind="stable")]
    free = np.ones(schedule.machines[machine].procs, dtype=np.bool_)
    running: list[tuple[float, int]] = []
    held: dict[int, Integers] = {}
    found: list[tuple[int, int, int]] = []
    for job, start, end, procs in zip(
        jobs.tolist(),
        start_s[jobs].tolist(),
        end_s[jobs].tolist(),
        schedule.jobs.procs[jobs].tolist(),
        strict=True,
    ):
        while running and running[0][0] <= start:
            free[held.pop(heapq.heappop(running)[1])] = True
        taken = _take(free, procs)
        free[taken] = False
        held[job] = taken
        heapq.heappush(running, (end, job))
        found += [(job, first, count) for first, count in _pieces(taken)]
    columns = np.array(found, dtype=np.int64).reshape(-1, 3)
    place = columns[:, 0]
    return Rectangles(place, start_s[place], end_s[place], columns[:, 1], columns[:, 2])


def _take(free: npt.NDArray[np.bool_], procs: int) -> Integers:
    """The first free processors side by side, else the first free ones."""
    places = np.flatnonzero(free)
    # Those that are followed by as many free ones as are needed.
    fits = places[procs - 1 :] - places[: len(places) - procs + 1] == procs - 1
    at = int(np.argmax(fits)) if fits.any() else 0
    return places[at : at + procs]


def _pieces(places: Integers) -> list[tuple[int, int]]:
    """First and number of those side by side."""
    cuts = np.flatnonzero(np.diff(places) > 1) + 1
    firsts = [0, *cuts.tolist()]
    ends = [*cuts.tolist(), len(places)]
    return [(int(places[first]), end - first) for first, end in zip(firsts, ends, strict=True)]
