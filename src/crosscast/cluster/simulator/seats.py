"""Jobs that share processors: their seats, their speeds, which jobs may join a seat, starts and preemptions.

Jobs that share have the same number of processors: a *seat* is the processors of the first of them, and has
its number.
"""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.cluster.simulator import Heap, compiled, push
from crosscast.cluster.simulator.plan import (
    CUT,
    RUNNING,
    STOPPED,
    SchedulePlan,
    Seats,
    amount_of,
    fits_now,
    leave_running,
    look_until,
    note_start,
    occupy,
    take,
    take_amount,
    take_need,
    tidy,
)


@compiled
def rate_beside(seats: Seats, slowdown: Reals, job: int, seat: int, more: int) -> float:
    """Return the slowdown of a job beside all on a seat, and beside one more (−1 for none)."""
    rate = 1.0
    for index in range(seats.size[seat]):
        other = seats.members[seat, index]
        if other != job:
            rate *= slowdown[seats.kind[job], seats.kind[other]]
    if more >= 0 and more != job:
        rate *= slowdown[seats.kind[job], seats.kind[more]]
    return rate


@compiled
def gain_of(seats: Seats, job: int, seat: int) -> float:
    """Return the gain of a job in the summed speed of a seat; minus infinity if a job would be too slow."""
    gain = 0.0
    for index in range(seats.size[seat]):
        other = seats.members[seat, index]
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
def draw_of(plan: SchedulePlan, seat: int, members: int) -> int:
    """Return the most milliwatts that jobs on a seat, a bit each, draw above idle, until the last has ended.

    A job at a lower speed draws that much less. Those who are left by others draw more, maybe more than all.
    """
    seats = plan.seats
    most = 0.0
    left = members
    while left > 0:
        total = 0.0
        for index in range(seats.most):
            if left >> index & 1:
                job = seats.members[seat, index]
                speed = 1.0
                for other in range(seats.most):
                    if other != index and left >> other & 1:
                        speed /= seats.believed[seats.kind[job], seats.kind[seats.members[seat, other]]]
                total += speed * amount_of(plan, job, plan.resource.shape[1] - 1)
        most = max(most, total)
        # The next of all subsets.
        left = (left - 1) & members
    draw: int = min(int(np.rint(most)), seats.most_draw[seat])
    return draw


@compiled
def occupy_power(plan: SchedulePlan, seat: int, times: int) -> None:
    """Take the power of the jobs on a seat; with −1 times, free it."""
    if len(plan.seats.most_draw) > 0:
        draw = draw_of(plan, seat, (1 << plan.seats.size[seat]) - 1)
        plan.free[plan.resource[seat, -1]] -= times * draw


@compiled
def _has_power(plan: SchedulePlan, job: int, seat: int) -> bool:
    """Whether there is power for a job beside those on a seat, and the cap of the processors allows it."""
    seats = plan.seats
    if len(seats.most_draw) == 0:
        return True
    count = seats.size[seat]
    before = draw_of(plan, seat, (1 << count) - 1)
    seats.members[seat, count] = job
    after = draw_of(plan, seat, (2 << count) - 1)
    enough: bool = after <= seats.cap[seat] and after - before <= plan.free[plan.resource[seat, -1]]
    return enough


@compiled
def due_beside(seats: Seats, job: int, more: int, now: float) -> float:
    """Return the expected end of a job, with one more on its seat (−1 for none)."""
    left = seats.believed_left[job] - (now - seats.since[job]) / seats.believed_rate[job]
    due: float = now + max(left, 0.0) * rate_beside(seats, seats.believed, job, seats.seat[job], more)
    return due


@compiled
def sit(seats: Seats, job: int, seat: int, run: float, estimate: float, now: float) -> None:
    """Put a job on a seat; a new one if the seat has the job's number."""
    if seat == job:
        seats.position[seat] = seats.seats[0]
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
    remaining = 0
    for index in range(seats.size[seat]):
        other = seats.members[seat, index]
        if other != job:
            seats.members[seat, remaining] = other
            remaining += 1
    seats.size[seat] = remaining
    if remaining == 0:
        seats.seats[0] -= 1
        last = seats.taken[seats.seats[0]]
        seats.taken[seats.position[seat]] = last
        seats.position[last] = seats.position[seat]


@compiled
def set_rates(seats: Seats, seat: int, end: Reals, due: Reals, ends: Heap, now: float) -> None:
    """Update the rates and ends of all jobs on a seat after a change of its members."""
    for index in range(seats.size[seat]):
        job = seats.members[seat, index]
        elapsed = now - seats.since[job]
        seats.left[job] = max(seats.left[job] - elapsed / seats.rate[job], 0.0)
        seats.believed_left[job] = max(seats.believed_left[job] - elapsed / seats.believed_rate[job], 0.0)
        seats.since[job] = now
        seats.rate[job] = rate_beside(seats, seats.true, job, seat, -1)
        seats.believed_rate[job] = rate_beside(seats, seats.believed, job, seat, -1)
        if len(seats.changed) > 0:
            change = seats.changes[0]
            seats.changed[change] = job
            seats.changed_s[change] = now
            seats.speed[change] = 1.0 / seats.rate[job]
            seats.changes[0] += 1
        end[job] = now + seats.left[job] * seats.rate[job]
        due[job] = now + seats.believed_left[job] * seats.believed_rate[job]
        push(ends, end[job], job)


@compiled
def take_seat(plan: SchedulePlan, seat: int, more: int, now: float, times: int) -> None:
    """Take the resources of the jobs on a seat, and of one more (−1 for none), until their expected ends.

    Processors are held together, and power by those who are left after each expected end.
    """
    seats = plan.seats
    count = seats.size[seat]
    if more >= 0:
        seats.members[seat, count] = more
        count += 1
    since = now
    left = (1 << count) - 1
    while left > 0:
        first = -1
        until = np.inf
        for index in range(count):
            if left >> index & 1:
                due = _due_with(plan, seats.members[seat, index], seat, more, now)
                if first < 0 or due < until:
                    first = index
                    until = due
        until = max(until, since)
        if len(seats.most_draw) > 0:
            take_amount(plan, plan.resource[seat, -1], times * draw_of(plan, seat, left), since, until)
        since = until
        left ^= 1 << first
    for need in range(plan.shared):
        take_need(plan, seat, need, now, since, times)


@compiled
def _due_with(plan: SchedulePlan, job: int, seat: int, more: int, now: float) -> float:
    """Return the expected end of a job on a seat, or of one more, if that joins now (−1 for none)."""
    if more < 0:
        due: float = plan.due[job]
        return due
    return _due_on(plan, job, seat, now) if job == more else due_beside(plan.seats, job, more, now)


@compiled
def _due_on(plan: SchedulePlan, job: int, seat: int, now: float) -> float:
    """Return the expected end of a job that joins a seat now."""
    due: float = now + plan.estimate[job] * rate_beside(plan.seats, plan.seats.believed, job, seat, -1)
    return due


@compiled
def _can_sit(plan: SchedulePlan, job: int, seat: int, now: float) -> bool:
    """Whether a job can join a seat now without delaying any other job, if all is as expected."""
    seats, availability = plan.seats, plan.availability
    until = _due_on(plan, job, seat, now)
    for index in range(seats.size[seat]):
        until = max(until, due_beside(seats, seats.members[seat, index], job, now))
    take_seat(plan, seat, -1, now, -1)
    take_seat(plan, seat, job, now, 1)
    look_until(plan, until)
    enough = True
    index = 0
    while index < availability.size[0] and availability.time[index] < until:
        for row in range(availability.left.shape[1]):
            enough = enough and availability.left[index, row] >= 0
        index += 1
    take_seat(plan, seat, job, now, -1)
    take_seat(plan, seat, -1, now, 1)
    if 2 * availability.size[0] > len(availability.time):
        tidy(plan, now)
    return enough


@compiled
def _seat_for(plan: SchedulePlan, job: int, now: float) -> int:
    """Return the seat that a job may join now, with the highest gain or the first; −1 if there is none."""
    seats = plan.seats
    best = -1
    best_gain = -np.inf
    for index in range(seats.seats[0]):
        seat = seats.taken[index]
        if plan.alike[job] != plan.alike[seat] or seats.size[seat] == seats.most:
            continue
        gain = gain_of(seats, job, seat)
        if gain == -np.inf:
            continue
        if not seats.by_gain:
            gain = 0.0
        is_better = gain > best_gain or (gain == best_gain and seat < best)
        if is_better and _has_power(plan, job, seat) and _can_sit(plan, job, seat, now):
            best = seat
            best_gain = gain
    return best


@compiled
def sit_down(plan: SchedulePlan, job: int, now: float) -> bool:
    """Let a job join the seat of a running job; return whether there was one."""
    seat = _seat_for(plan, job, now)
    if seat < 0:
        return False
    take_seat(plan, seat, -1, now, -1)
    occupy_power(plan, seat, -1)
    plan.start[job] = now
    note_start(plan, job)
    sit(plan.seats, job, seat, plan.run[job], plan.estimate[job], now)
    occupy_power(plan, seat, 1)
    set_rates(plan.seats, seat, plan.end, plan.due, plan.ends, now)
    take_seat(plan, seat, -1, now, 1)
    return True


@compiled
def start_job(plan: SchedulePlan, job: int, now: float) -> None:
    """Start a job that fits now; the caller takes its resources over time."""
    occupy(plan, job, plan.resource.shape[1], 1)
    plan.start[job] = now
    plan.end[job] = now + plan.run[job]
    plan.due[job] = now + plan.estimate[job]
    # Stale entries arise from preemptions and corrections only.
    if plan.seats.most == 1:
        make_heaps_fit(plan)
    note_start(plan, job)
    push(plan.ends, plan.end[job], job)
    if plan.seats.most > 1:
        sit(plan.seats, job, job, plan.run[job], plan.estimate[job], now)
    else:
        push(plan.dues, plan.due[job], job)


@compiled
def make_heaps_fit(plan: SchedulePlan) -> None:
    """Rebuild full heaps without the stale entries of preempted runs and corrections."""
    for heap, time in ((plan.ends, plan.end), (plan.dues, plan.due)):
        if heap.size[0] == len(heap.keys):
            heap.size[0] = 0
            for index in range(plan.at[RUNNING]):
                job = plan.running[index]
                push(heap, time[job], job)


@compiled
def stop_for(plan: SchedulePlan, job: int, now: float) -> bool:
    """Preempt jobs that a job may preempt, if it can start then; return whether it can.

    The job that started last is preempted first, until the job fits; then those of which the preemption was
    not necessary resume, in the same order.
    """
    first = plan.at[STOPPED]
    while not fits_now(plan, job, now):
        victim = -1
        for index in range(plan.at[RUNNING]):
            other = plan.running[index]
            if not plan.preempts[plan.kind[job], plan.kind[other]] or plan.planned[other] == -np.inf:
                continue
            if victim < 0 or (plan.start[other], other) > (plan.start[victim], victim):
                victim = other
        if victim < 0:
            break
        # Marks the victim until all are chosen.
        plan.planned[victim] = -np.inf
        plan.stopped[plan.at[STOPPED]] = victim
        plan.at[STOPPED] += 1
        _free(plan, victim, now, 1)
    enough = fits_now(plan, job, now)
    count = first
    for index in range(first, plan.at[STOPPED]):
        victim = plan.stopped[index]
        plan.planned[victim] = np.nan
        _free(plan, victim, now, -1)
        if enough and not fits_now(plan, job, now):
            _free(plan, victim, now, 1)
            plan.stopped[count] = victim
            count += 1
    plan.at[STOPPED] = count
    for index in range(first, count):
        victim = plan.stopped[index]
        if plan.start[victim] < now:
            plan.cut[plan.at[CUT]] = victim
            plan.cut_s[plan.at[CUT], 0] = plan.start[victim]
            plan.cut_s[plan.at[CUT], 1] = now
            plan.at[CUT] += 1
        leave_running(plan, victim)
        plan.start[victim] = np.nan
        plan.end[victim] = np.nan
        plan.due[victim] = np.nan
    return enough


@compiled
def _free(plan: SchedulePlan, job: int, now: float, times: int) -> None:
    """Give back what a running job takes from now on; with −1 times, take it again."""
    occupy(plan, job, plan.resource.shape[1], -times)
    take(plan, job, now, plan.due[job], -times)
