"""The general simulator: what is left of processors and power over time, and jobs planned into it.

Slower than `crosscast.cluster.simulator.engine`, with the same schedules where both apply; it knows
reservations for every job (conservative backfilling), capacities that change, and a budget of power.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Jobs, Machine, Policy, Schedule
from crosscast.cluster.sharing import Sharing
from crosscast.cluster.simulator.engine import keys_of
from crosscast.cluster.simulator.queues import Heap, compiled, kept, pop, push, start_heap, suited
from crosscast.cluster.simulator.seats import (
    Seats,
    due_beside,
    gain_of,
    leave,
    rate_beside,
    set_rates,
    sit,
    start_seats,
)
from crosscast.cluster.site import NO_SITE, Resources, resources_of


class Availability(NamedTuple):
    """What is left of ``r`` resources over time, in pieces; the last one has no end."""

    time: Reals  # When each piece begins, ascending
    left: Integers  # What is left in each piece, of shape `(pieces, r)`
    size: Integers  # How many pieces there are, of shape `(1,)`


NEXT, STEP, WAITING, BLOCKED = range(4)
"""Of `Plan.at`: the job to be submitted next; the capacities that hold; how many jobs wait; whether a job
could not start when it was planned to."""


class Plan(NamedTuple):
    """A simulation of ``n`` jobs that take parts of ``r`` resources: processors of machines, and power."""

    submit: Reals  # Of shape `(n,)`, as in `Jobs`
    run: Reals
    estimate: Reals
    needs: Integers  # What each job takes of each of its resources, of shape `(n, k)`
    resource: Integers  # Which these are, of shape `(n, k)`; −1 where there are no more
    key: Reals  # Key of each job in the order R1, and in the order R2
    pass_key: Reals
    step_s: Reals  # When capacities change, of shape `(s,)`; the first is minus infinity
    capacity: Integers  # What there is of each resource from then on, of shape `(s, r)`
    every_job: bool  # Whether each job has a reservation, or only the head
    backfills: bool  # Whether jobs may pass the head
    at: Integers  # Positions, see `NEXT`
    clock: Reals  # Now, of shape `(1,)`
    start: Reals  # As in `Schedule`, not a number until known
    end: Reals
    due: Reals  # When each running job is expected to end
    reserved: Reals  # As in `Schedule`
    planned: Reals  # When each waiting job is to start; infinite if nobody knows
    waiting: Integers  # Waiting jobs in the order R1, and in the order R2
    passing: Integers
    free: Integers  # What is left of each resource now, of shape `(r,)`
    ends: Heap  # Running jobs by when they end, and by when they are expected to
    dues: Heap
    availability: Availability
    seats: Seats


@compiled
def _piece(availability: Availability, time: float) -> int:
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
def _take_need(plan: Plan, job: int, need: int, start: float, end: float, times: int) -> None:
    """Take one thing that a job needs out of a span of time; with −1 times, give it back."""
    resource = plan.resource[job, need]
    if resource < 0 or not start < end:
        return
    availability = plan.availability
    first = _piece(availability, start)
    last = availability.size[0] if end == np.inf else _piece(availability, end)
    amount = times * plan.needs[job, need]
    for place in range(first, last):
        availability.left[place, resource] -= amount


@compiled
def _take(plan: Plan, job: int, start: float, end: float, times: int) -> None:
    """Take all that a job needs out of a span of time; with −1 times, give it back."""
    for need in range(plan.resource.shape[1]):
        _take_need(plan, job, need, start, end, times)


@compiled
def _take_seat(plan: Plan, seat: int, more: int, now: float, times: int) -> None:
    """Take what those on a seat, and one more (−1 for none), need until they should end.

    Processors are the same for all; power is everybody's own.
    """
    seats = plan.seats
    last = now
    for place in range(seats.size[seat]):
        job = seats.members[seat, place]
        due = due_beside(seats, job, more, now)
        last = max(last, due)
        for need in range(1, plan.resource.shape[1]):
            _take_need(plan, job, need, now, due, times)
    if more >= 0:
        due = _due_on(plan, more, seat, now)
        last = max(last, due)
        for need in range(1, plan.resource.shape[1]):
            _take_need(plan, more, need, now, due, times)
    _take_need(plan, seat, 0, now, last, times)


@compiled
def _due_on(plan: Plan, job: int, seat: int, now: float) -> float:
    """When a job should end that sits down on a seat now."""
    due: float = now + plan.estimate[job] * rate_beside(plan.seats, plan.seats.believed, job, seat, -1)
    return due


@compiled
def _can_sit(plan: Plan, job: int, seat: int, now: float) -> bool:
    """Whether nothing else has to wait for it if a job sits down on a seat now, if all is as expected."""
    for need in range(1, plan.resource.shape[1]):
        resource = plan.resource[job, need]
        if resource >= 0 and plan.free[resource] < plan.needs[job, need]:
            return False
    seats, availability = plan.seats, plan.availability
    until = _due_on(plan, job, seat, now)
    for place in range(seats.size[seat]):
        until = max(until, due_beside(seats, seats.members[seat, place], job, now))
    _take_seat(plan, seat, -1, now, -1)
    _take_seat(plan, seat, job, now, 1)
    enough = True
    place = 0
    while place < availability.size[0] and availability.time[place] < until:
        for row in range(availability.left.shape[1]):
            enough = enough and availability.left[place, row] >= 0
        place += 1
    _take_seat(plan, seat, job, now, -1)
    _take_seat(plan, seat, -1, now, 1)
    _tidy(plan, now)
    return enough


@compiled
def _seat_for(plan: Plan, job: int, now: float) -> int:
    """Seat on which a job may sit down now: that with the highest gain, or the first; −1 if there is none."""
    seats = plan.seats
    best = -1
    best_gain = -np.inf
    for place in range(seats.seats[0]):
        seat = seats.taken[place]
        if (
            seats.size[seat] == seats.most
            or plan.resource[seat, 0] != plan.resource[job, 0]
            or plan.needs[seat, 0] != plan.needs[job, 0]
        ):
            continue
        gain = gain_of(seats, job, seat)
        if gain == -np.inf:
            continue
        if not seats.by_gain:
            gain = 0.0
        is_better = gain > best_gain or (gain == best_gain and seat < best)
        if is_better and _can_sit(plan, job, seat, now):
            best = seat
            best_gain = gain
    return best


@compiled
def _sit_down(plan: Plan, job: int, now: float) -> bool:
    """Let a job sit down where somebody runs, if there is such a seat; return whether there was."""
    seat = _seat_for(plan, job, now)
    if seat < 0:
        return False
    _take_seat(plan, seat, -1, now, -1)
    for need in range(1, plan.resource.shape[1]):
        if plan.resource[job, need] >= 0:
            plan.free[plan.resource[job, need]] -= plan.needs[job, need]
    plan.start[job] = now
    sit(plan.seats, job, seat, plan.run[job], plan.estimate[job], now)
    set_rates(plan.seats, seat, plan.end, plan.due, plan.ends, now)
    _take_seat(plan, seat, -1, now, 1)
    return True


@compiled
def _fits(plan: Plan, job: int, place: int) -> bool:
    for need in range(plan.resource.shape[1]):
        resource = plan.resource[job, need]
        if resource >= 0 and plan.availability.left[place, resource] < plan.needs[job, need]:
            return False
    return True


@compiled
def _has_room(plan: Plan, job: int) -> bool:
    """Whether a job fits into what is left now."""
    for need in range(plan.resource.shape[1]):
        resource = plan.resource[job, need]
        if resource >= 0 and plan.free[resource] < plan.needs[job, need]:
            return False
    return True


@compiled
def _fits_now(plan: Plan, job: int, now: float) -> bool:
    """Whether a job fits from now until it should end."""
    if not _has_room(plan, job):
        return False
    times = plan.availability.time
    end = now + plan.estimate[job]
    place = 0
    while place < plan.availability.size[0] and times[place] < end:
        if not _fits(plan, job, place):
            return False
        place += 1
    return True


@compiled
def _earliest(plan: Plan, job: int, latest: float) -> float:
    """Earliest time from which on a job fits until it should end; at most `latest`, from when on it does."""
    times, size = plan.availability.time, plan.availability.size[0]
    place = 0
    while place < size:
        if not _fits(plan, job, place):
            place += 1
            continue
        start: float = times[place]
        if start >= latest:
            return latest
        end = min(start + plan.estimate[job], latest)
        place += 1
        while place < size and times[place] < end and _fits(plan, job, place):
            place += 1
        if place == size or times[place] >= end:
            return start
    return latest


@compiled
def _tidy(plan: Plan, now: float) -> None:
    """Forget pieces that are over, and join those with the same left."""
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
def _put(jobs: Integers, count: int, key: Reals, job: int) -> None:
    """Put a job among waiting ones; of equal keys the one that was submitted first comes first."""
    place = count
    while place > 0 and key[jobs[place - 1]] > key[job]:
        jobs[place] = jobs[place - 1]
        place -= 1
    jobs[place] = job


@compiled
def _sift(plan: Plan, jobs: Integers, count: int) -> int:
    """Leave out the jobs that have started; return how many are left."""
    kept = 0
    for place in range(count):
        job = jobs[place]
        if np.isnan(plan.start[job]):
            jobs[kept] = job
            kept += 1
    return kept


@kept
def advance_plan(plan: Plan, most: int) -> bool:
    """Go on by so many points in time at most; return whether all is over."""
    for _ in range(most):
        now = _next_time(plan)
        if now == np.inf:
            return True
        while plan.at[STEP] + 1 < len(plan.step_s) and plan.step_s[plan.at[STEP] + 1] <= now:
            plan.at[STEP] += 1
            for row in range(len(plan.free)):
                plan.free[row] += plan.capacity[plan.at[STEP], row] - plan.capacity[plan.at[STEP] - 1, row]
        plan.clock[0] = now
        early = _end(plan, now)
        _tidy(plan, now)
        while plan.at[NEXT] < len(plan.submit) and plan.submit[plan.at[NEXT]] == now:
            job = plan.at[NEXT]
            _put(plan.waiting, plan.at[WAITING], plan.key, job)
            if plan.backfills:
                _put(plan.passing, plan.at[WAITING], plan.pass_key, job)
            plan.at[WAITING] += 1
            plan.at[NEXT] += 1
        if plan.at[WAITING] > 0:
            if plan.every_job:
                _start_planned(plan, now, early)
            else:
                _start_before_head(plan, now)
    return False


@compiled
def _next_time(plan: Plan) -> float:
    now = np.inf
    if plan.at[NEXT] < len(plan.submit):
        now = plan.submit[plan.at[NEXT]]
    _drop_stale_ends(plan)
    if plan.ends.size[0] > 0:
        now = min(now, plan.ends.keys[0])
    if plan.at[WAITING] > 0:
        if plan.at[STEP] + 1 < len(plan.step_s):
            now = min(now, plan.step_s[plan.at[STEP] + 1])
        if plan.every_job:
            # Who could not start then has to wait for something else to happen.
            for place in range(plan.at[WAITING]):
                job = plan.waiting[place]
                if plan.planned[job] > plan.clock[0]:
                    now = min(now, plan.planned[job])
    return now


@compiled
def _drop_stale_ends(plan: Plan) -> None:
    """Forget when jobs would have ended, had nobody come to their seats or left them."""
    if plan.seats.most == 1:
        return
    while plan.ends.size[0] > 0:
        job = plan.ends.items[0]
        if plan.seats.over[job] == 0 and plan.end[job] == plan.ends.keys[0]:
            return
        pop(plan.ends)


@compiled
def _end(plan: Plan, now: float) -> bool:
    """Free what jobs took that end now; return whether one ended before it was expected to."""
    early = False
    while plan.ends.size[0] > 0 and plan.ends.keys[0] == now:
        job = pop(plan.ends)
        first = 0
        if plan.seats.most > 1:
            seat = plan.seats.seat[job]
            leave(plan.seats, job)
            if plan.seats.size[seat] > 0:
                # The others keep the processors.
                first = 1
                set_rates(plan.seats, seat, plan.end, plan.due, plan.ends, now)
            _drop_stale_ends(plan)
        for need in range(first, plan.resource.shape[1]):
            if plan.resource[job, need] >= 0:
                plan.free[plan.resource[job, need]] += plan.needs[job, need]
        if plan.due[job] > now:
            early = True
            if plan.seats.most == 1:
                _take(plan, job, now, plan.due[job], -1)
    return early


@compiled
def _is_overdue(plan: Plan, now: float) -> bool:
    """Whether a job runs that was expected to have ended."""
    while plan.dues.size[0] > 0 and plan.end[plan.dues.items[0]] <= now:
        pop(plan.dues)
    overdue: bool = plan.dues.size[0] > 0 and plan.dues.keys[0] <= now
    return overdue


@compiled
def _forget_reservations(plan: Plan, now: float) -> None:
    """Leave only what runs, until it should end."""
    availability, first = plan.availability, plan.at[STEP]
    availability.size[0] = len(plan.step_s) - first
    for step in range(first, len(plan.step_s)):
        availability.time[step - first] = plan.step_s[step]
        for row in range(len(plan.free)):
            availability.left[step - first, row] = plan.capacity[step, row]
    if plan.seats.most == 1:
        for place in range(plan.ends.size[0]):
            job = plan.ends.items[place]
            _take(plan, job, now, plan.due[job], 1)
    else:
        for place in range(plan.seats.seats[0]):
            _take_seat(plan, plan.seats.taken[place], -1, now, 1)
    for place in range(plan.at[WAITING]):
        plan.planned[plan.waiting[place]] = np.nan
    _tidy(plan, now)


@compiled
def _start_planned(plan: Plan, now: float, early: bool) -> None:
    """Conservative backfilling: reserve for all in their order, and start who was to start now."""
    count = plan.at[WAITING]
    if plan.seats.most > 1 or plan.at[BLOCKED] or _is_overdue(plan, now):
        # Nothing that was promised holds.
        _forget_reservations(plan, now)
    elif early:
        for place in range(count):
            job = plan.waiting[place]
            planned = plan.planned[job]
            if planned > now:
                start = _earliest(plan, job, planned)
                if start < planned:
                    _take(plan, job, planned, planned + plan.estimate[job], -1)
                    _take(plan, job, start, start + plan.estimate[job], 1)
                    plan.planned[job] = start
    plan.at[BLOCKED] = 0
    started = False
    for place in range(count):
        job = plan.waiting[place]
        if np.isnan(plan.planned[job]):
            start = _earliest(plan, job, np.inf)
            plan.planned[job] = start
            _take(plan, job, start, start + plan.estimate[job], 1)
            if np.isnan(plan.reserved[job]):
                plan.reserved[job] = start
    for place in range(count):
        job = plan.waiting[place]
        if plan.planned[job] <= now:
            if _has_room(plan, job):
                _start(plan, job, now)
                started = True
            else:
                plan.at[BLOCKED] = 1
    if plan.seats.most > 1:
        for place in range(count):
            job = plan.waiting[place]
            if np.isnan(plan.start[job]):
                planned, end = plan.planned[job], plan.planned[job] + plan.estimate[job]
                _take(plan, job, planned, end, -1)
                if _sit_down(plan, job, now):
                    started = True
                else:
                    _take(plan, job, planned, end, 1)
    if started:
        plan.at[WAITING] = _sift(plan, plan.waiting, count)


@compiled
def _start_before_head(plan: Plan, now: float) -> None:
    """EASY: start jobs until one does not fit, and reserve for it; then start who does not delay it."""
    count = plan.at[WAITING]
    if plan.seats.most > 1:
        _forget_reservations(plan, now)
    head = -1
    for place in range(count):
        job = plan.waiting[place]
        if not _starts_now(plan, job, now):
            head = job
            break
    if head >= 0:
        shadow = _earliest(plan, head, np.inf)
        if np.isnan(plan.reserved[head]):
            plan.reserved[head] = shadow
        if plan.backfills:
            # Of a job that should take no time, for a moment.
            end = max(shadow + plan.estimate[head], np.nextafter(shadow, np.inf))
            _take(plan, head, shadow, end, 1)
            for place in range(count):
                job = plan.passing[place]
                if job != head and np.isnan(plan.start[job]):
                    _starts_now(plan, job, now)
            _take(plan, head, shadow, end, -1)
    plan.at[WAITING] = _sift(plan, plan.waiting, count)
    if plan.backfills:
        _sift(plan, plan.passing, count)


@compiled
def _starts_now(plan: Plan, job: int, now: float) -> bool:
    """Start a job if it fits now, or may sit down where another one runs; return whether it did."""
    if _fits_now(plan, job, now):
        _start(plan, job, now)
        _take(plan, job, now, plan.due[job], 1)
        return True
    return plan.seats.most > 1 and _sit_down(plan, job, now)


@compiled
def _start(plan: Plan, job: int, now: float) -> None:
    for need in range(plan.resource.shape[1]):
        if plan.resource[job, need] >= 0:
            plan.free[plan.resource[job, need]] -= plan.needs[job, need]
    plan.start[job] = now
    plan.end[job] = now + plan.run[job]
    plan.due[job] = now + plan.estimate[job]
    push(plan.ends, plan.end[job], job)
    if plan.seats.most > 1:
        sit(plan.seats, job, job, plan.run[job], plan.estimate[job], now)
    else:
        push(plan.dues, plan.due[job], job)


_POINTS = 100_000
"""Points in time between two words about progress, or two chances to interrupt."""
_FEW = 1_000
"""Jobs that are simulated without compiling within about two seconds."""


def load(jobs: int | None, progress: Callable[[str], None] | None) -> None:
    """Load or compile what so many jobs, or any number, are simulated with."""
    if suited(advance_plan, jobs, _FEW, progress) is advance_plan:
        nobody = np.zeros(0, np.int64)
        none = np.zeros((0, 1))
        empty = Jobs(nobody, np.zeros(0), nobody, none, none)
        resources = resources_of(empty, [Machine("any", 1)], nobody, NO_SITE)
        advance_plan(_start_plan(empty, nobody, resources, Policy(conservative=True), None), 1)


def run_plan(
    jobs: Jobs,
    machines: Sequence[Machine],
    machine: Integers,
    resources: Resources,
    policy: Policy,
    sharing: Sharing | None,
    progress: Callable[[str], None] | None,
) -> Schedule:
    """Simulate jobs that are each bound to a machine; what was given is checked."""
    plan = _start_plan(jobs, machine, resources, policy, sharing)
    step = suited(advance_plan, len(jobs), _FEW, progress)
    while not step(plan, _POINTS):
        if progress is not None:
            progress(f"{plan.at[NEXT]:,} of {len(jobs):,} jobs have been submitted")
    return Schedule(jobs, machines, machine, plan.start, plan.end, plan.reserved)


def _start_plan(
    jobs: Jobs, machine: Integers, resources: Resources, policy: Policy, sharing: Sharing | None
) -> Plan:
    # An end for each time that somebody comes to a seat or leaves it.
    changes = 1 if sharing is None else 2 * sharing.most
    count = len(jobs)
    rows = np.arange(count)

    def on(times: Reals) -> Reals:
        return np.ascontiguousarray(times[rows, machine if times.shape[1] > 1 else 0], dtype=np.float64)

    estimate = on(jobs.estimate_s)

    def keys(order: str) -> Reals:
        return np.array(keys_of(order, jobs, estimate[:, None]).reshape(-1), dtype=np.float64)  # type: ignore[arg-type]

    capacity = np.ascontiguousarray(resources.capacity, dtype=np.int64)
    steps = len(resources.step_s)
    backfills = policy.backfill is not None and not policy.conservative
    most = 2 * changes * count + steps + 4
    availability = Availability(
        np.empty(most), np.empty((most, capacity.shape[1]), np.int64), np.array([steps])
    )
    availability.time[:steps] = resources.step_s
    availability.left[:steps] = capacity
    return Plan(
        submit=np.array(jobs.submit_s, dtype=np.float64),
        run=on(jobs.run_s),
        estimate=estimate,
        needs=np.ascontiguousarray(resources.needs, dtype=np.int64),
        resource=np.ascontiguousarray(resources.resource, dtype=np.int64),
        key=keys(policy.queue),
        pass_key=keys(policy.backfill or "fcfs"),
        step_s=np.array(resources.step_s, dtype=np.float64),
        capacity=capacity,
        every_job=policy.conservative,
        backfills=backfills,
        at=np.zeros(4, np.int64),
        clock=np.full(1, -np.inf),
        start=np.full(count, np.nan),
        end=np.full(count, np.nan),
        due=np.full(count, np.nan),
        reserved=np.full(count, np.nan),
        planned=np.full(count, np.nan),
        waiting=np.empty(count, np.int64),
        passing=np.empty(count if backfills else 0, np.int64),
        free=capacity[0].copy(),
        ends=start_heap(changes * count),
        dues=start_heap(count),
        availability=availability,
        seats=start_seats(sharing, count),
    )
