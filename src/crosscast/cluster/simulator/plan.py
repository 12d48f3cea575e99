"""What is left of processors and power over time, and whether and when a job fits into that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster.jobs import BY_TIME, Jobs, Order, Policy
from crosscast.cluster.rules import NO_RULES, Rules
from crosscast.cluster.sharing import Sharing
from crosscast.cluster.simulator.engine import keys_of
from crosscast.cluster.simulator.queues import Heap, compiled, start_heap
from crosscast.cluster.simulator.ranking import (
    JobRanking,
    Walltimes,
    charge,
    hold,
    start_ranking,
    start_walltimes,
)
from crosscast.cluster.site import Resources


class Availability(NamedTuple):
    """What is left of ``r`` resources over time, in pieces; the last one has no end.

    Capacities that change later are not in it until somebody asks about that time.
    """

    time: Reals  # When each piece begins, ascending
    left: Integers  # What is left in each piece, of shape `(pieces, r)`
    size: Integers  # How many pieces there are, of shape `(1,)`


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


NEXT, STEP, WAITING, BLOCKED, RUNNING, STOPPED, CUT, AHEAD = range(8)
"""Of `SchedulePlan.at`: the job to be submitted next; the capacities that hold; how many jobs wait; whether
what was promised does not hold; how many run; how many were stopped just now, and how many runs were since
`SchedulePlan.cut` was emptied; the first capacities that are not in `SchedulePlan.availability` yet."""


class SchedulePlan(NamedTuple):
    """A simulation of ``n`` jobs that take parts of ``r`` resources: processors of machines, and power."""

    submit: Reals  # Of shape `(n,)`, as in `Jobs`
    run: Reals
    estimate: Reals
    needs: Integers  # What each job should take of each of its resources, of shape `(n, k)`
    holds: Integers  # What it takes while it runs, of shape `(n, k)`: what is measured, if that is used
    measures: bool
    shared: int  # How many of its resources, from the first, are one for all who share: processors
    resource: Integers  # Which these are, of shape `(n, k)`; −1 where there are no more
    # Which jobs take as many processors of the same machine and partition, of shape `(n,)`; of no jobs where
    # nobody shares
    alike: Integers
    key: Reals  # Key of each job in the order R1, and in the order R2
    pass_key: Reals
    step_s: Reals  # When capacities change, of shape `(s,)`; the first is minus infinity
    capacity: Integers  # What there is of each resource from then on, of shape `(s, r)`
    ranking: JobRanking
    walltimes: Walltimes
    kind: Integers  # Which jobs each may stop, by their kinds; of no rows if none
    preempts: Flags
    every_job: bool  # Whether each job has a reservation, or only the head
    backfills: bool  # Whether jobs may pass the head
    at: Integers  # Positions, see `NEXT`
    clock: Reals  # Now, of shape `(1,)`
    start: Reals  # As in `Schedule`, not a number until known
    end: Reals
    due: Reals  # When each running job is expected to end
    reserved: Reals  # As in `Schedule`
    over: Integers  # 1 for jobs that have ended
    planned: Reals  # When each waiting job is to start; infinite if nobody knows
    waiting: Integers  # Waiting jobs in the order R1, and in the order R2
    passing: Integers
    running: Integers  # Jobs that run, in any order, of which there are `at[RUNNING]`
    place: Integers  # Where each of these is
    stopped: Integers  # Jobs that were stopped just now, of which there are `at[STOPPED]`
    cut: Integers  # Runs that were stopped, of which there are `at[CUT]`, when each began and ended
    cut_s: Reals
    free: Integers  # What is left of each resource now, of shape `(r,)`
    ends: Heap  # Running jobs by when they end, and by when they are expected to
    dues: Heap
    availability: Availability
    seats: Seats


def start_plan(
    jobs: Jobs,
    machine: Integers,
    resources: Resources,
    policy: Policy,
    sharing: Sharing | None = None,
    rules: Rules = NO_RULES,
) -> SchedulePlan:
    """A simulation before the first job is submitted."""
    # An end for each time that somebody comes to a seat or leaves it.
    changes = 1 if sharing is None else 2 * sharing.most
    # Runs that are stopped leave ends behind, and so do corrections.
    heaps = 1 if rules.preempts is None and rules.forecast_s is None else 2
    count = len(jobs)
    rows = np.arange(count)

    def on(times: Reals) -> Reals:
        return np.ascontiguousarray(times[rows, machine if times.shape[1] > 1 else 0], dtype=np.float64)

    estimate = on(jobs.estimate_s)

    def keys(order: Order, times: Reals) -> Reals:
        # Priorities are found anew again and again.
        known: Order = "fcfs" if order == "multifactor" else order
        return np.array(keys_of(known, jobs, times[:, None]).reshape(-1), dtype=np.float64)

    def scales(order: Order | None) -> Reals:
        return keys(order, np.ones(count)) if order in BY_TIME else np.zeros(0)

    passing: Order = policy.backfill or "fcfs"
    key = keys(policy.queue, estimate)
    pass_key = key if passing == "multifactor" else keys(passing, estimate)
    scale = scales(policy.queue), scales(policy.backfill)
    stops = 0 if rules.preempts is None else count
    shared = 1 if rules.partition is None else 2

    capacity = np.ascontiguousarray(resources.capacity, dtype=np.int64)
    backfills = policy.backfill is not None and not policy.conservative
    most = 2 * changes * count + len(resources.step_s) + 4
    availability = Availability(
        np.empty(most), np.empty((most, capacity.shape[1]), np.int64), np.ones(1, np.int64)
    )
    availability.time[0] = resources.step_s[0]
    availability.left[0] = capacity[0]
    at = np.zeros(8, np.int64)
    at[AHEAD] = 1
    return SchedulePlan(
        submit=np.array(jobs.submit_s, dtype=np.float64),
        run=on(jobs.run_s),
        estimate=estimate,
        needs=np.ascontiguousarray(resources.needs, dtype=np.int64),
        holds=np.ascontiguousarray(resources.holds, dtype=np.int64),
        measures=rules.measured_w is not None,
        shared=shared,
        alike=np.zeros(0, np.int64) if sharing is None else _alike(resources, shared),
        resource=np.ascontiguousarray(resources.resource, dtype=np.int64),
        key=key,
        pass_key=pass_key,
        ranking=start_ranking(rules, count),
        walltimes=start_walltimes(rules, jobs, estimate, *scale),
        kind=np.zeros(0, np.int64) if rules.kind is None else np.array(rules.kind, np.int64),
        preempts=np.zeros((0, 0), np.bool_) if rules.preempts is None else np.array(rules.preempts),
        step_s=np.array(resources.step_s, dtype=np.float64),
        capacity=capacity,
        every_job=policy.conservative,
        backfills=backfills,
        at=at,
        clock=np.full(1, -np.inf),
        start=np.full(count, np.nan),
        end=np.full(count, np.nan),
        due=np.full(count, np.nan),
        reserved=np.full(count, np.nan),
        over=np.zeros(count, np.int64),
        planned=np.full(count, np.nan),
        waiting=np.empty(count, np.int64),
        passing=np.empty(count if backfills else 0, np.int64),
        running=np.empty(count, np.int64),
        place=np.empty(count, np.int64),
        stopped=np.empty(stops, np.int64),
        cut=np.empty(stops, np.int64),
        cut_s=np.empty((stops, 2)),
        free=capacity[0].copy(),
        ends=start_heap(heaps * changes * count),
        dues=start_heap(heaps * count),
        availability=availability,
        seats=start_seats(sharing, count),
    )


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


def _alike(resources: Resources, shared: int) -> Integers:
    """Number of each job's resources and needs among those that are one for all who share."""
    wanted = np.hstack([resources.resource[:, :shared], resources.needs[:, :shared]])
    return np.unique(wanted, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


@compiled
def piece(availability: Availability, time: float) -> int:
    """Place of the piece that begins at a time, which is cut off another one if there is none."""
    times, left, size = availability
    low, high = 0, size[0]
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < size[0] and times[low] == time:
        return low
    for place in range(size[0], low, -1):
        times[place] = times[place - 1]
        for row in range(left.shape[1]):
            left[place, row] = left[place - 1, row]
    times[low] = time
    for row in range(left.shape[1]):
        left[low, row] = left[low - 1, row]
    size[0] += 1
    return low


@compiled
def look_further(plan: SchedulePlan) -> bool:
    """Add the next change of capacities behind the last piece; return whether there was one."""
    step = plan.at[AHEAD]
    if step == len(plan.step_s):
        return False
    times, left, size = plan.availability
    times[size[0]] = plan.step_s[step]
    for row in range(left.shape[1]):
        change = plan.capacity[step, row] - plan.capacity[step - 1, row]
        left[size[0], row] = left[size[0] - 1, row] + change
    size[0] += 1
    plan.at[AHEAD] += 1
    return True


@compiled
def look_until(plan: SchedulePlan, time: float) -> None:
    """Add all changes of capacities until then."""
    while plan.at[AHEAD] < len(plan.step_s) and plan.step_s[plan.at[AHEAD]] <= time:
        look_further(plan)


@compiled
def take_need(plan: SchedulePlan, job: int, need: int, start: float, end: float, times: int) -> None:
    """Take one thing that a job needs out of a span of time; with −1 times, give it back."""
    resource = plan.resource[job, need]
    if resource < 0 or not start < end:
        return
    availability = plan.availability
    # What has no end is taken of all capacities that follow.
    look_until(plan, start if end == np.inf else end)
    first = piece(availability, start)
    last = availability.size[0] if end == np.inf else piece(availability, end)
    runs = plan.measures and not np.isnan(plan.start[job])
    amount = times * (plan.holds[job, need] if runs else plan.needs[job, need])
    for place in range(first, last):
        availability.left[place, resource] -= amount


@compiled
def take(plan: SchedulePlan, job: int, start: float, end: float, times: int) -> None:
    """Take all that a job needs out of a span of time; with −1 times, give it back."""
    for need in range(plan.resource.shape[1]):
        take_need(plan, job, need, start, end, times)


@compiled
def fits(plan: SchedulePlan, job: int, place: int) -> bool:
    """Whether a job fits into a piece."""
    for need in range(plan.resource.shape[1]):
        resource = plan.resource[job, need]
        if resource >= 0 and plan.availability.left[place, resource] < plan.needs[job, need]:
            return False
    return True


@compiled
def has_room(free: Integers, resources: Integers, needs: Integers, job: int, first: int) -> bool:
    """Whether a job fits into what is free now, of its resources from the first of these on."""
    # Not the whole plan, which takes longer to hand over than this to find.
    for need in range(first, resources.shape[1]):
        resource = resources[job, need]
        if resource >= 0 and free[resource] < needs[job, need]:
            return False
    return True


@compiled
def occupy(plan: SchedulePlan, job: int, first: int, times: int) -> None:
    """Take what a running job holds of its resources, from the first of these on; with −1 times, free it."""
    for need in range(first, plan.resource.shape[1]):
        if plan.resource[job, need] >= 0:
            plan.free[plan.resource[job, need]] -= times * plan.holds[job, need]


@compiled
def fits_now(plan: SchedulePlan, job: int, now: float) -> bool:
    """Whether a job fits from now until it should end."""
    if not has_room(plan.free, plan.resource, plan.needs, job, 0):
        return False
    times = plan.availability.time
    end = now + plan.estimate[job]
    look_until(plan, end)
    place = 0
    while place < plan.availability.size[0] and times[place] < end:
        if not fits(plan, job, place):
            return False
        place += 1
    return True


@compiled
def earliest(plan: SchedulePlan, job: int, latest: float) -> float:
    """Earliest time from which on a job fits until it should end; at most `latest`, from when on it does."""
    times, size = plan.availability.time, plan.availability.size
    place = 0
    while place < size[0] or look_further(plan):
        if not fits(plan, job, place):
            place += 1
            continue
        start: float = times[place]
        if start >= latest:
            return latest
        end = min(start + plan.estimate[job], latest)
        look_until(plan, end)
        place += 1
        while place < size[0] and times[place] < end and fits(plan, job, place):
            place += 1
        if place == size[0] or times[place] >= end:
            return start
    return latest


@compiled
def tidy(plan: SchedulePlan, now: float) -> None:
    """Forget pieces that are over, and join those with the same left."""
    look_until(plan, now)
    times, left, size = plan.availability
    first = 0
    while first + 1 < size[0] and times[first + 1] <= now:
        first += 1
    kept = 0
    for place in range(first, size[0]):
        same = kept > 0
        for row in range(left.shape[1]):
            same = same and left[kept - 1, row] == left[place, row]
        if not same:
            if kept < place:
                times[kept] = times[place]
                for row in range(left.shape[1]):
                    left[kept, row] = left[place, row]
            kept += 1
    times[0] = now
    size[0] = kept


@compiled
def note_start(plan: SchedulePlan, job: int) -> None:
    """Count a job among those that run."""
    plan.place[job] = plan.at[RUNNING]
    plan.running[plan.at[RUNNING]] = job
    plan.at[RUNNING] += 1
    charge(plan.ranking, job, plan.needs[job, 0])


@compiled
def leave_running(plan: SchedulePlan, job: int) -> None:
    """Count a job no longer among those that run."""
    plan.at[RUNNING] -= 1
    last = plan.running[plan.at[RUNNING]]
    plan.running[plan.place[job]] = last
    plan.place[last] = plan.place[job]
    charge(plan.ranking, job, -plan.needs[job, 0])
    hold(plan.ranking, job, -1)
