"""State of the general simulator: free processors and power over time, and when a job fits into them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster import BY_TIME, Order, PlacedJobs, Policy
from crosscast.cluster.resources import Resources, milliwatts
from crosscast.cluster.rules import NO_RULES, Learning, Rules, Sharing
from crosscast.cluster.simulator import NO_INTEGERS, NO_REALS, Heap, compiled, integers_of, start_heap
from crosscast.cluster.simulator.engine import keys_of
from crosscast.cluster.simulator.ranking import (
    JobRanking,
    Walltimes,
    charge,
    hold,
    start_ranking,
    start_walltimes,
)


class Availability(NamedTuple):
    """Free amounts of ``r`` resources, piecewise constant over time; the last piece has no end.

    Later changes of capacity are added when a query reaches their time.
    """

    time: Reals  # Start of each piece, ascending
    left: Integers  # Free amounts in each piece, of shape `(pieces, r)`
    size: Integers  # Number of pieces, of shape `(1,)`


class Seats(NamedTuple):
    """Seats of ``n`` jobs of ``c`` kinds; without jobs if nothing is shared."""

    most: int  # Most jobs on a seat; 1 if nothing is shared
    limit: float  # Limit on the expected slowdown of a job, relative to running alone
    least_gain: float  # Least gain of a job in the summed speed of its seat
    by_gain: bool  # Whether the seat with the highest gain is taken, or the first
    kind: Integers  # Kind of each job, of shape `(n,)`
    true: Reals  # Slowdown of each kind (row) beside each, of shape `(c, c)`
    believed: Reals  # Slowdown that the scheduler expects; infinite where kinds may not share
    cap: Integers  # Milliwatts above idle to which the processors of each job are capped, of shape `(n,)`
    most_draw: Integers  # Milliwatts above idle that jobs on these processors draw together at most
    left: Reals  # Remaining run time of each job alone, in seconds, as of `since`; of shape `(n,)`
    believed_left: Reals
    since: Reals
    rate: Reals  # Current slowdown of each job
    believed_rate: Reals
    seat: Integers  # Seat of each job
    members: Integers  # Jobs of each seat, of shape `(n, most)`
    size: Integers  # Number of jobs of each seat
    taken: Integers  # The first `seats` entries are the seats with jobs, in any order
    position: Integers  # Position of each of these in `taken`
    seats: Integers
    # Changes of the speeds of jobs that share: the first `changes` entries; without rows if no power counts
    changed: Integers
    changed_s: Reals
    speed: Reals
    changes: Integers


class LearningTables(NamedTuple):
    """Configurations of ``c`` kinds of ``n`` jobs that are learned; without jobs if there are none."""

    kind: Integers  # As in `Learning`
    slowdown: Reals
    hold: Integers  # True milliwatts of a processor above idle, of shape `(c, k)`
    run: Reals  # Times of each job at a slowdown of 1, of shape `(n,)`
    estimate: Reals
    option: Integers  # Current choice for each kind, as in `KindChoices`
    expected: Reals
    need: Integers  # In milliwatts
    taken: Integers  # Configuration of each job
    measured: Flags  # Configurations in which a job has ended, of shape `(c, k)`
    tried: Flags  # Others in which a job has started


NEXT, STEP, WAITING, BLOCKED, RUNNING, STOPPED, CUT, AHEAD, LEARNED = range(9)
"""Positions in `SchedulePlan.at`: next job to submit; current step of the capacities; number of waiting jobs;
whether reservations are invalid; number of running jobs; number of jobs preempted at this time; number of
preempted runs since `SchedulePlan.cut` was emptied; first step that is not in `SchedulePlan.availability`;
whether a job has tried or measured a configuration, and no choice was made since."""


class SchedulePlan(NamedTuple):
    """State of a simulation of ``n`` jobs that need ``r`` resources: processors of machines, and power."""

    submit: Reals  # Of shape `(n,)`, as in `Jobs`
    run: Reals
    estimate: Reals
    needs: Integers  # Planned amount of each of a job's resources, of shape `(n, k)`
    holds: Integers  # Amount while it runs, of shape `(n, k)`: differs if power is measured
    measures: bool  # Whether it is
    shared: int  # Number of leading resources that jobs on a seat hold together: processors
    resource: Integers  # Indices of these resources, of shape `(n, k)`, padded with −1
    # Equal for jobs of equal processors, machine and partition, of shape `(n,)`; empty without sharing
    alike: Integers
    key: Reals  # Key of each job in the order R1, and in the order R2
    pass_key: Reals
    key_scale: Reals  # Factors of the time in these keys; without rows for orders without time
    pass_scale: Reals
    step_s: Reals  # Times at which capacities change, of shape `(s,)`; the first is minus infinity
    capacity: Integers  # Capacity of each resource from then on, of shape `(s, r)`
    ranking: JobRanking
    walltimes: Walltimes
    learning: LearningTables
    kind: Integers  # Kinds of jobs, and which kinds each may preempt; without rows if none
    preempts: Flags
    every_job: bool  # Whether each job has a reservation, or only the head
    backfills: bool
    at: Integers  # Positions, see `NEXT`
    clock: Reals  # Now, and 1 if a job ended early before a choice, of shape `(2,)`
    start: Reals  # As in `Schedule`, NaN until known
    end: Reals
    due: Reals  # Expected end of each running job
    reserved: Reals  # As in `Schedule`
    over: Integers  # 1 for jobs that have ended
    planned: Reals  # Planned start of each waiting job; infinite if it has none
    waiting: Integers  # Waiting jobs in the order R1, and in the order R2
    passing: Integers
    running: Integers  # The first `at[RUNNING]` entries are the running jobs, in any order
    position: Integers  # Position of each of these in `running`
    stopped: Integers  # The first `at[STOPPED]` entries are the jobs preempted at this time
    cut: Integers  # The first `at[CUT]` entries are the jobs of preempted runs; starts and ends of these
    cut_s: Reals
    free: Integers  # Free amount of each resource now, of shape `(r,)`
    ends: Heap  # Running jobs by end, and by expected end
    dues: Heap
    availability: Availability
    seats: Seats


def start_plan(
    placed: PlacedJobs,
    resources: Resources,
    policy: Policy,
    sharing: Sharing | None = None,
    rules: Rules = NO_RULES,
) -> SchedulePlan:
    """Return the state before the first submission."""
    # Every change of a seat pushes another end.
    changes = 1 if sharing is None else 2 * sharing.most
    # Preempted runs and corrections leave stale ends behind.
    heaps = 1 if rules.preempts is None and rules.forecast_s is None else 2
    jobs, count = placed.jobs, len(placed.jobs)
    estimate, run = (placed.on_machine(each).astype(np.float64) for each in (jobs.estimate_s, jobs.run_s))

    def keys(order: Order, times: Reals) -> Reals:
        # Priorities are computed at each point in time.
        initial: Order = "fcfs" if order == "multifactor" else order
        return np.array(keys_of(initial, jobs, times[:, None]).reshape(-1), dtype=np.float64)

    def scales(order: Order | None) -> Reals:
        return keys(order, np.ones(count)) if order in BY_TIME else NO_REALS

    passing: Order = policy.backfill or "fcfs"
    key = keys(policy.queue, estimate)
    pass_key = key if passing == "multifactor" else keys(passing, estimate)
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
    at = np.zeros(9, np.int64)
    at[AHEAD] = 1
    unknown: dict[str, Any] = {
        name: np.full(count, np.nan) for name in ("start", "end", "due", "reserved", "planned")
    }
    return SchedulePlan(
        submit=np.array(jobs.submit_s, dtype=np.float64),
        run=run,
        estimate=estimate,
        needs=np.ascontiguousarray(resources.needs, dtype=np.int64),
        holds=np.ascontiguousarray(resources.holds, dtype=np.int64),
        measures=rules.measured_w is not None or (rules.learning is not None and rules.learning.measured),
        shared=shared,
        alike=NO_INTEGERS if sharing is None else _alike(resources, shared),
        resource=np.ascontiguousarray(resources.resource, dtype=np.int64),
        key=key,
        pass_key=pass_key,
        key_scale=scales(policy.queue),
        pass_scale=scales(policy.backfill),
        ranking=start_ranking(rules, count),
        walltimes=start_walltimes(rules, jobs, estimate),
        learning=start_learning(rules.learning, run, estimate),
        kind=integers_of(rules.kind),
        preempts=np.zeros((0, 0), np.bool_) if rules.preempts is None else np.array(rules.preempts),
        step_s=np.array(resources.step_s, dtype=np.float64),
        capacity=capacity,
        every_job=policy.conservative,
        backfills=backfills,
        at=at,
        clock=np.full(2, -np.inf),
        over=np.zeros(count, np.int64),
        waiting=np.empty(count, np.int64),
        passing=np.empty(count if backfills else 0, np.int64),
        running=np.empty(count, np.int64),
        position=np.empty(count, np.int64),
        stopped=np.empty(stops, np.int64),
        cut=np.empty(stops, np.int64),
        cut_s=np.empty((stops, 2)),
        free=capacity[0].copy(),
        ends=start_heap(heaps * changes * count),
        dues=start_heap(heaps * count),
        availability=availability,
        seats=start_seats(sharing, count, resources),
        **unknown,
    )


def start_learning(learning: Learning | None, run: Reals, estimate: Reals) -> LearningTables:
    """Return the tables before the first choice."""
    slowdown, extra_w = (np.zeros((0, 1)),) * 2 if learning is None else (learning.slowdown, learning.extra_w)
    kinds, jobs = len(slowdown), 0 if learning is None else len(run)
    return LearningTables(
        kind=NO_INTEGERS if learning is None else np.array(learning.kind, np.int64),
        slowdown=np.array(slowdown, np.float64),
        hold=milliwatts(np.nan_to_num(extra_w)),
        run=run[:jobs].copy(),
        estimate=estimate[:jobs].copy(),
        option=np.zeros(kinds, np.int64),
        expected=np.zeros(kinds),
        need=np.zeros(kinds, np.int64),
        taken=np.zeros(jobs, np.int64),
        measured=np.zeros(slowdown.shape, np.bool_),
        tried=np.zeros(slowdown.shape, np.bool_),
    )


def start_seats(sharing: Sharing | None, jobs: int, resources: Resources) -> Seats:
    """Return seats without jobs."""
    if sharing is None:
        one = np.ones((1, 1))
        sharing, jobs, most = Sharing(NO_INTEGERS, one, one), 0, 1
    else:
        most = sharing.most
    power = resources.power
    changes = 0 if power is None else 2 * most * jobs
    reals = ("left", "believed_left", "since", "rate", "believed_rate")
    zeros: dict[str, Any] = {name: np.zeros(jobs) for name in reals}
    zeros |= {name: np.zeros(jobs, np.int64) for name in ("seat", "size", "taken", "position")}
    return Seats(
        most=most,
        limit=float(sharing.limit),
        least_gain=float(sharing.least_gain),
        by_gain=sharing.by_gain,
        kind=np.array(sharing.kind, np.int64),
        true=np.array(sharing.true, np.float64),
        believed=np.array(sharing.believed, np.float64),
        cap=integers_of(None if power is None else power.cap),
        most_draw=integers_of(None if power is None else power.most_draw),
        members=np.zeros((jobs, most), np.int64),
        seats=np.zeros(1, np.int64),
        changed=np.empty(changes, np.int64),
        changed_s=np.empty(changes),
        speed=np.empty(changes),
        changes=np.zeros(1, np.int64),
        **zeros,
    )


def _alike(resources: Resources, shared: int) -> Integers:
    """Label jobs that are equal in the resources and amounts that jobs on a seat hold together."""
    wanted = np.hstack([resources.resource[:, :shared], resources.needs[:, :shared]])
    return np.unique(wanted, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


@compiled
def piece(availability: Availability, time: float) -> int:
    """Return the index of the piece that begins at a time, splitting another one if necessary."""
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
    for index in range(size[0], low, -1):
        times[index] = times[index - 1]
        for row in range(left.shape[1]):
            left[index, row] = left[index - 1, row]
    times[low] = time
    for row in range(left.shape[1]):
        left[low, row] = left[low - 1, row]
    size[0] += 1
    return low


@compiled
def look_further(plan: SchedulePlan) -> bool:
    """Append the next change of capacities as a piece; return whether there was one."""
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
    """Append all changes of capacities until a time."""
    while plan.at[AHEAD] < len(plan.step_s) and plan.step_s[plan.at[AHEAD]] <= time:
        look_further(plan)


@compiled
def amount_of(plan: SchedulePlan, job: int, need: int) -> int:
    """Return how much a job takes of one of its resources: what it holds if it runs and that is measured."""
    runs = plan.measures and not np.isnan(plan.start[job])
    amount: int = plan.holds[job, need] if runs else plan.needs[job, need]
    return amount


@compiled
def take_need(plan: SchedulePlan, job: int, need: int, start: float, end: float, times: int) -> None:
    """Take one resource of a job in an interval of time; with −1 times, give it back."""
    take_amount(plan, plan.resource[job, need], times * amount_of(plan, job, need), start, end)


@compiled
def take_amount(plan: SchedulePlan, resource: int, amount: int, start: float, end: float) -> None:
    """Take an amount of a resource, none with an index below 0, in an interval of time."""
    if resource < 0 or not start < end:
        return
    availability = plan.availability
    # An interval without end also applies to all later capacities.
    look_until(plan, start if end == np.inf else end)
    first = piece(availability, start)
    last = availability.size[0] if end == np.inf else piece(availability, end)
    for index in range(first, last):
        availability.left[index, resource] -= amount


@compiled
def take(plan: SchedulePlan, job: int, start: float, end: float, times: int) -> None:
    """Take all resources of a job in an interval of time; with −1 times, give them back."""
    for need in range(plan.resource.shape[1]):
        take_need(plan, job, need, start, end, times)


@compiled
def fits(plan: SchedulePlan, job: int, index: int) -> bool:
    """Whether a job fits into a piece."""
    for need in range(plan.resource.shape[1]):
        resource = plan.resource[job, need]
        if resource >= 0 and plan.availability.left[index, resource] < plan.needs[job, need]:
            return False
    return True


@compiled
def has_room(free: Integers, resources: Integers, needs: Integers, job: int) -> bool:
    """Whether a job's resources are free now."""
    # Passing the whole plan takes longer than this check.
    for need in range(resources.shape[1]):
        resource = resources[job, need]
        if resource >= 0 and free[resource] < needs[job, need]:
            return False
    return True


@compiled
def occupy(plan: SchedulePlan, job: int, count: int, times: int) -> None:
    """Take what a running job holds of its first `count` resources; with −1 times, free it."""
    for need in range(count):
        if plan.resource[job, need] >= 0:
            plan.free[plan.resource[job, need]] -= times * plan.holds[job, need]


@compiled
def fits_now(plan: SchedulePlan, job: int, now: float) -> bool:
    """Whether a job fits from now until its expected end."""
    if not has_room(plan.free, plan.resource, plan.needs, job):
        return False
    times = plan.availability.time
    end = now + plan.estimate[job]
    look_until(plan, end)
    index = 0
    while index < plan.availability.size[0] and times[index] < end:
        if not fits(plan, job, index):
            return False
        index += 1
    return True


@compiled
def earliest(plan: SchedulePlan, job: int, latest: float) -> float:
    """Return the earliest start with room until a job's expected end; at most `latest`, where it fits."""
    times, size = plan.availability.time, plan.availability.size
    index = 0
    while index < size[0] or look_further(plan):
        if not fits(plan, job, index):
            index += 1
            continue
        start: float = times[index]
        if start >= latest:
            return latest
        end = min(start + plan.estimate[job], latest)
        look_until(plan, end)
        index += 1
        while index < size[0] and times[index] < end and fits(plan, job, index):
            index += 1
        if index == size[0] or times[index] >= end:
            return start
    return latest


@compiled
def tidy(plan: SchedulePlan, now: float) -> None:
    """Drop past pieces, and merge neighbours with equal free amounts."""
    look_until(plan, now)
    times, left, size = plan.availability
    first = 0
    while first + 1 < size[0] and times[first + 1] <= now:
        first += 1
    count = 0
    for index in range(first, size[0]):
        same = count > 0
        for row in range(left.shape[1]):
            same = same and left[count - 1, row] == left[index, row]
        if not same:
            if count < index:
                times[count] = times[index]
                for row in range(left.shape[1]):
                    left[count, row] = left[index, row]
            count += 1
    times[0] = now
    size[0] = count


@compiled
def set_estimate(plan: SchedulePlan, job: int, estimate: float) -> None:
    """Set the expected time of a waiting job, and its keys by time."""
    plan.estimate[job] = estimate
    if len(plan.key_scale) > 0:
        plan.key[job] = plan.key_scale[job] * estimate
    if len(plan.pass_scale) > 0:
        plan.pass_key[job] = plan.pass_scale[job] * estimate


@compiled
def set_option(plan: SchedulePlan, job: int) -> None:
    """Give a waiting job the current configuration of its kind; power is its last resource."""
    learning = plan.learning
    kind = learning.kind[job]
    option = learning.option[kind]
    learning.taken[job] = option
    plan.run[job] = learning.run[job] * learning.slowdown[kind, option]
    set_estimate(plan, job, learning.estimate[job] * learning.expected[kind])
    plan.needs[job, -1] = plan.needs[job, 0] * learning.need[kind]
    plan.holds[job, -1] = plan.needs[job, -1]
    if plan.measures:
        plan.holds[job, -1] = plan.needs[job, 0] * learning.hold[kind, option]


@compiled
def note_start(plan: SchedulePlan, job: int) -> None:
    """Add a job to the running ones."""
    plan.position[job] = plan.at[RUNNING]
    plan.running[plan.at[RUNNING]] = job
    plan.at[RUNNING] += 1
    if len(plan.learning.kind) > 0:
        learning = plan.learning
        kind, option = learning.kind[job], learning.taken[job]
        if not learning.measured[kind, option] and not learning.tried[kind, option]:
            learning.tried[kind, option] = True
            plan.at[LEARNED] = 1
    charge(plan.ranking, job, plan.needs[job, 0])


@compiled
def leave_running(plan: SchedulePlan, job: int) -> None:
    """Remove a job from the running ones."""
    plan.at[RUNNING] -= 1
    last = plan.running[plan.at[RUNNING]]
    plan.running[plan.position[job]] = last
    plan.position[last] = plan.position[job]
    charge(plan.ranking, job, -plan.needs[job, 0])
    hold(plan.ranking, job, -1)
