"""Jobs that share processors: who is where, how fast each is, and which company a policy accepts.

Jobs that share have equally many processors: a *seat* is what the first of them took, and is named by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.sharing import Sharing
from crosscast.cluster.simulator.queues import Heap, compiled, push


class Seats(NamedTuple):
    """Seats of ``n`` jobs of ``c`` kinds; of no jobs where nothing is shared."""

    most: int  # How many jobs may share a seat; 1 where nothing is shared
    limit: float  # Most that a job is expected to slow down, by as much as it would alone
    least_gain: float  # Least that the speeds of all on a seat must add up to above what they do
    by_gain: bool  # Whether the seat with the highest gain is taken, or the first
    kind: Integers  # Kind of each job, of shape `(n,)`
    true: Reals  # Slowdown of each kind (row) beside each, of shape `(c, c)`
    believed: Reals  # The same, as the scheduler expects it; infinite where they may not share
    left: Reals  # Seconds that each job has left, if it ran alone, as of `since`; of shape `(n,)`
    believed_left: Reals
    since: Reals
    rate: Reals  # How many times slower than alone each job is now
    believed_rate: Reals
    seat: Integers  # Seat of each job
    members: Integers  # Jobs of each seat, of shape `(n, most)`
    size: Integers  # How many these are
    taken: Integers  # Seats with jobs, in any order, of which there are `seats`
    place: Integers  # Where each of these is
    seats: Integers


def start_seats(sharing: Sharing | None, jobs: int) -> Seats:
    """Seats without jobs."""
    if sharing is None:
        one, nobody = np.ones((1, 1)), np.zeros(0, np.int64)
        sharing, jobs, most = Sharing(nobody, one, one), 0, 1
    else:
        most = sharing.most
    return Seats(
        most=most,
        limit=float(sharing.limit),
        least_gain=float(sharing.least_gain),
        by_gain=sharing.by_gain,
        kind=np.array(sharing.kind, np.int64),
        true=np.array(sharing.true, np.float64),
        believed=np.array(sharing.believed, np.float64),
        left=np.zeros(jobs),
        believed_left=np.zeros(jobs),
        since=np.zeros(jobs),
        rate=np.zeros(jobs),
        believed_rate=np.zeros(jobs),
        seat=np.zeros(jobs, np.int64),
        members=np.zeros((jobs, most), np.int64),
        size=np.zeros(jobs, np.int64),
        taken=np.zeros(jobs, np.int64),
        place=np.zeros(jobs, np.int64),
        seats=np.zeros(1, np.int64),
    )


@compiled
def rate_beside(seats: Seats, slowdown: Reals, job: int, seat: int, more: int) -> float:
    """How many times slower than alone a job is beside all on a seat, and beside one more (−1 for none)."""
    rate = 1.0
    for place in range(seats.size[seat]):
        other = seats.members[seat, place]
        if other != job:
            rate *= slowdown[seats.kind[job], seats.kind[other]]
    if more >= 0 and more != job:
        rate *= slowdown[seats.kind[job], seats.kind[more]]
    return rate


@compiled
def gain_of(seats: Seats, job: int, seat: int) -> float:
    """What a job on a seat adds to the speeds there; minus infinity if one would be too slow."""
    gain = 0.0
    for place in range(seats.size[seat]):
        other = seats.members[seat, place]
        rate = rate_beside(seats, seats.believed, other, seat, job)
        if not rate <= seats.limit:
            return -np.inf
        gain += 1.0 / rate - 1.0 / seats.believed_rate[other]
    rate = rate_beside(seats, seats.believed, job, seat, -1)
    if not rate <= seats.limit:
        return -np.inf
    gain += 1.0 / rate
    return gain if gain >= seats.least_gain else -np.inf


@compiled
def due_beside(seats: Seats, job: int, more: int, now: float) -> float:
    """When a job should end, with one more on its seat (−1 for none)."""
    left = seats.believed_left[job] - (now - seats.since[job]) / seats.believed_rate[job]
    due: float = now + max(left, 0.0) * rate_beside(seats, seats.believed, job, seats.seat[job], more)
    return due


@compiled
def sit(seats: Seats, job: int, seat: int, run: float, estimate: float, now: float) -> None:
    """Put a job on a seat; its own if the seat has no job yet."""
    if seat == job:
        seats.place[seat] = seats.seats[0]
        seats.taken[seats.seats[0]] = seat
        seats.seats[0] += 1
    seats.seat[job] = seat
    seats.members[seat, seats.size[seat]] = job
    seats.size[seat] += 1
    seats.left[job] = run
    seats.believed_left[job] = estimate
    seats.since[job] = now
    seats.rate[job] = 1.0
    seats.believed_rate[job] = 1.0


@compiled
def leave(seats: Seats, job: int) -> None:
    """Take a job that has ended off its seat."""
    seat = seats.seat[job]
    kept = 0
    for place in range(seats.size[seat]):
        other = seats.members[seat, place]
        if other != job:
            seats.members[seat, kept] = other
            kept += 1
    seats.size[seat] = kept
    if kept == 0:
        seats.seats[0] -= 1
        last = seats.taken[seats.seats[0]]
        seats.taken[seats.place[seat]] = last
        seats.place[last] = seats.place[seat]


@compiled
def set_rates(seats: Seats, seat: int, end: Reals, due: Reals, ends: Heap, now: float) -> None:
    """After somebody has come or gone: how fast all on a seat are from now on, and when they end."""
    for place in range(seats.size[seat]):
        job = seats.members[seat, place]
        elapsed = now - seats.since[job]
        seats.left[job] = max(seats.left[job] - elapsed / seats.rate[job], 0.0)
        seats.believed_left[job] = max(seats.believed_left[job] - elapsed / seats.believed_rate[job], 0.0)
        seats.since[job] = now
        seats.rate[job] = rate_beside(seats, seats.true, job, seat, -1)
        seats.believed_rate[job] = rate_beside(seats, seats.believed, job, seat, -1)
        end[job] = now + seats.left[job] * seats.rate[job]
        due[job] = now + seats.believed_left[job] * seats.believed_rate[job]
        push(ends, end[job], job)
