"""The general simulator: jobs planned into what is left of processors and power over time.

Slower than `crosscast.cluster.simulator.engine`, with the same schedules where both apply; it knows
reservations for every job (conservative backfilling), capacities that change, a budget of power, sharing, and
the rules of a site: priorities, limits, preemption and predicted times.

At each point in time, in this order: capacities change; jobs end; predicted times that were too short are
corrected; jobs are submitted; priorities are found anew; jobs start, and some are stopped for them. If some
were, they wait again, and jobs are started once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Cuts, Jobs, Machine, Policy, Schedule
from crosscast.cluster.rules import Rules
from crosscast.cluster.sharing import Sharing
from crosscast.cluster.simulator.plan import (
    AHEAD,
    BLOCKED,
    CUT,
    NEXT,
    RUNNING,
    STEP,
    STOPPED,
    WAITING,
    Plan,
    earliest,
    fits_now,
    has_room,
    look_until,
    occupy,
    start_plan,
    take,
    take_need,
    tidy,
)
from crosscast.cluster.simulator.queues import compiled, kept, pop, push, suited
from crosscast.cluster.simulator.ranking import (
    charge,
    corrected,
    count_use,
    hold,
    learn,
    may_run,
    predict,
    put,
    set_keys,
    sort_jobs,
)
from crosscast.cluster.simulator.seats import (
    due_beside,
    gain_of,
    leave,
    rate_beside,
    set_rates,
    sit,
)
from crosscast.cluster.site import NO_SITE, Resources, resources_of


@kept
def advance_plan(plan: Plan, most: int) -> bool:
    """Go on by so many points in time at most; return whether all is over."""
    for _ in range(most):
        if len(plan.cut) - plan.at[CUT] < min(plan.at[RUNNING], len(plan.cut)):
            return False
        now = _next_time(plan)
        if now == np.inf:
            return True
        while plan.at[STEP] + 1 < len(plan.step_s) and plan.step_s[plan.at[STEP] + 1] <= now:
            plan.at[STEP] += 1
            for row in range(len(plan.free)):
                plan.free[row] += plan.capacity[plan.at[STEP], row] - plan.capacity[plan.at[STEP] - 1, row]
        plan.clock[0] = now
        count_use(plan.ranking, now)
        early = _end(plan, now)
        tidy(plan, now)
        if len(plan.walltimes.request) > 0:
            _correct(plan, now)
        while plan.at[NEXT] < len(plan.submit) and plan.submit[plan.at[NEXT]] == now:
            job = plan.at[NEXT]
            if len(plan.walltimes.request) > 0:
                _predict(plan, job)
            _wait(plan, job)
            plan.at[NEXT] += 1
        again = plan.at[WAITING] > 0
        while again:
            _order(plan, now)
            if plan.every_job:
                _start_planned(plan, now, early)
            else:
                _start_before_head(plan, now)
            early = False
            again = plan.at[STOPPED] > 0
            for place in range(plan.at[STOPPED]):
                _wait(plan, plan.stopped[place])
            plan.at[STOPPED] = 0
    return False


@compiled
def _wait(plan: Plan, job: int) -> None:
    """Let a job wait, in its place in both orders."""
    put(plan.ranking, plan.waiting, plan.at[WAITING], plan.key, job)
    if plan.backfills:
        put(plan.ranking, plan.passing, plan.at[WAITING], plan.pass_key, job)
    plan.at[WAITING] += 1


@compiled
def _order(plan: Plan, now: float) -> None:
    """Sort who waits by the priorities that hold now, where they change."""
    if len(plan.ranking.fixed) == 0:
        return
    count = plan.at[WAITING]
    set_keys(plan.ranking, plan.waiting, count, plan.submit, plan.key, now)
    sort_jobs(plan.ranking, plan.waiting, count, plan.key)
    if plan.backfills:
        sort_jobs(plan.ranking, plan.passing, count, plan.pass_key)


@compiled
def _predict(plan: Plan, job: int) -> None:
    """What a job should take, and its keys where these go by that."""
    walltimes = plan.walltimes
    plan.estimate[job] = predict(walltimes, job)
    if len(walltimes.key_scale) > 0:
        plan.key[job] = walltimes.key_scale[job] * plan.estimate[job]
    if len(walltimes.pass_scale) > 0:
        plan.pass_key[job] = walltimes.pass_scale[job] * plan.estimate[job]


@compiled
def _correct(plan: Plan, now: float) -> None:
    """Expect jobs that run longer than predicted to end later: nothing that was promised holds then."""
    if not _is_overdue(plan, now):
        return
    for place in range(plan.at[RUNNING]):
        job = plan.running[place]
        due = corrected(plan.walltimes, job, plan.start[job], plan.due[job], now)
        if due != plan.due[job]:
            plan.due[job] = due
            _make_heaps_fit(plan)
            push(plan.dues, due, job)
            take(plan, job, now, due, 1)
            plan.at[BLOCKED] = 1


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
        if len(plan.walltimes.request) > 0:
            now = min(now, _next_correction(plan))
        if plan.every_job:
            # Who could not start then has to wait for something else to happen.
            for place in range(plan.at[WAITING]):
                job = plan.waiting[place]
                if plan.planned[job] > plan.clock[0]:
                    now = min(now, plan.planned[job])
    return now


@compiled
def _next_correction(plan: Plan) -> float:
    """When the next job should end that may run on then."""
    first = np.inf
    for place in range(plan.at[RUNNING]):
        job = plan.running[place]
        if plan.due[job] < plan.start[job] + plan.walltimes.request[job]:
            first = min(first, plan.due[job])
    return first


@compiled
def _drop_stale_ends(plan: Plan) -> None:
    """Forget when jobs would have ended that were stopped, or had nobody come to their seats or left them."""
    if plan.seats.most == 1 and len(plan.preempts) == 0:
        return
    while plan.ends.size[0] > 0:
        job = plan.ends.items[0]
        if plan.over[job] == 0 and plan.end[job] == plan.ends.keys[0]:
            return
        pop(plan.ends)


@compiled
def _drop_stale_dues(plan: Plan) -> None:
    """Forget when jobs were to end that have, or were stopped."""
    while plan.dues.size[0] > 0:
        job = plan.dues.items[0]
        if plan.over[job] == 0 and plan.due[job] == plan.dues.keys[0]:
            return
        pop(plan.dues)


@compiled
def _end(plan: Plan, now: float) -> bool:
    """Free what jobs took that end now; return whether one ended before it was expected to."""
    early = False
    while plan.ends.size[0] > 0 and plan.ends.keys[0] == now:
        job = pop(plan.ends)
        plan.over[job] = 1
        _leave_running(plan, job)
        if len(plan.walltimes.request) > 0:
            learn(plan.walltimes, job, plan.run[job])
        first = 0
        if plan.seats.most > 1:
            seat = plan.seats.seat[job]
            _take_seat(plan, seat, -1, now, -1)
            leave(plan.seats, job)
            if plan.seats.size[seat] > 0:
                # The others keep the processors.
                first = plan.shared
                set_rates(plan.seats, seat, plan.end, plan.due, plan.ends, now)
                _take_seat(plan, seat, -1, now, 1)
        _drop_stale_ends(plan)
        occupy(plan, job, first, -1)
        if plan.due[job] > now:
            early = True
            if plan.seats.most == 1:
                take(plan, job, now, plan.due[job], -1)
    return early


@compiled
def _is_overdue(plan: Plan, now: float) -> bool:
    """Whether a job runs that was expected to have ended: it is the first of `dues`."""
    _drop_stale_dues(plan)
    overdue: bool = plan.dues.size[0] > 0 and plan.dues.keys[0] <= now
    return overdue


@compiled
def _forget_reservations(plan: Plan, now: float) -> None:
    """Leave only what runs, until it should end."""
    availability, first = plan.availability, plan.at[STEP]
    availability.size[0] = 1
    plan.at[AHEAD] = first + 1
    availability.time[0] = plan.step_s[first]
    for row in range(len(plan.free)):
        availability.left[0, row] = plan.capacity[first, row]
    if plan.seats.most == 1:
        for place in range(plan.at[RUNNING]):
            job = plan.running[place]
            take(plan, job, now, plan.due[job], 1)
    else:
        for place in range(plan.seats.seats[0]):
            _take_seat(plan, plan.seats.taken[place], -1, now, 1)
    for place in range(plan.at[WAITING]):
        job = plan.waiting[place]
        if not np.isnan(plan.planned[job]):
            hold(plan.ranking, job, -1)
            plan.planned[job] = np.nan
    tidy(plan, now)


@compiled
def _start_planned(plan: Plan, now: float, early: bool) -> None:
    """Conservative backfilling: reserve for all in their order, and start who was to start now."""
    count = plan.at[WAITING]
    stops = len(plan.preempts) > 0
    # Nothing that was promised holds where jobs share, are stopped, or may draw more than they should.
    if plan.seats.most > 1 or stops or plan.measures or plan.at[BLOCKED] or _is_overdue(plan, now):
        _forget_reservations(plan, now)
    elif early:
        for place in range(count):
            job = plan.waiting[place]
            planned = plan.planned[job]
            if planned > now:
                start = earliest(plan, job, planned)
                if start < planned:
                    take(plan, job, planned, planned + plan.estimate[job], -1)
                    take(plan, job, start, start + plan.estimate[job], 1)
                    plan.planned[job] = start
    plan.at[BLOCKED] = 0
    started = False
    for place in range(count):
        job = plan.waiting[place]
        if np.isnan(plan.planned[job]) and may_run(plan.ranking, job):
            start = earliest(plan, job, np.inf)
            if (
                stops
                and (start > now or not has_room(plan.free, plan.resource, plan.needs, job, 0))
                and _stop_for(plan, job, now)
            ):
                start = now
            hold(plan.ranking, job, 1)
            plan.planned[job] = start
            take(plan, job, start, start + plan.estimate[job], 1)
            if np.isnan(plan.reserved[job]):
                plan.reserved[job] = start
            if stops and start <= now and has_room(plan.free, plan.resource, plan.needs, job, 0):
                # Before the next one looks for jobs to stop.
                _start_as_planned(plan, job, now)
                started = True
    for place in range(count):
        job = plan.waiting[place]
        if plan.planned[job] <= now and np.isnan(plan.start[job]):
            if has_room(plan.free, plan.resource, plan.needs, job, 0):
                _start_as_planned(plan, job, now)
                started = True
            else:
                plan.at[BLOCKED] = 1
    if plan.seats.most > 1:
        for place in range(count):
            job = plan.waiting[place]
            planned = plan.planned[job]
            if np.isnan(plan.start[job]) and not np.isnan(planned):
                end = planned + plan.estimate[job]
                take(plan, job, planned, end, -1)
                if _sit_down(plan, job, now):
                    started = True
                else:
                    take(plan, job, planned, end, 1)
    if started:
        plan.at[WAITING] = _sift(plan, plan.waiting, count)


@compiled
def _start_as_planned(plan: Plan, job: int, now: float) -> None:
    """Start a job for which everything was taken, if only what it should take."""
    if plan.measures:
        planned = plan.planned[job]
        take(plan, job, planned, planned + plan.estimate[job], -1)
        _start(plan, job, now)
        take(plan, job, now, plan.due[job], 1)
    else:
        _start(plan, job, now)


@compiled
def _start_before_head(plan: Plan, now: float) -> None:
    """EASY: start jobs until one does not fit, and reserve for it; then start who does not delay it."""
    count = plan.at[WAITING]
    head = -1
    for place in range(count):
        job = plan.waiting[place]
        if may_run(plan.ranking, job) and not _starts_now(plan, job, now):
            head = job
            break
    if head >= 0:
        shadow = earliest(plan, head, np.inf)
        if np.isnan(plan.reserved[head]):
            plan.reserved[head] = shadow
        if plan.backfills:
            # Of a job that should take no time, for a moment.
            end = max(shadow + plan.estimate[head], np.nextafter(shadow, np.inf))
            take(plan, head, shadow, end, 1)
            # Most have no room: only who shares or stops others needs no processors to be free.
            first = plan.shared if plan.seats.most > 1 else 0
            stops = len(plan.preempts) > 0
            for place in range(count):
                job = plan.passing[place]
                if job == head or not np.isnan(plan.start[job]):
                    continue
                if not stops and not has_room(plan.free, plan.resource, plan.needs, job, first):
                    continue
                if may_run(plan.ranking, job):
                    _starts_now(plan, job, now)
            take(plan, head, shadow, end, -1)
    plan.at[WAITING] = _sift(plan, plan.waiting, count)
    if plan.backfills:
        _sift(plan, plan.passing, count)


@compiled
def _starts_now(plan: Plan, job: int, now: float) -> bool:
    """Start a job if it fits now, may sit down where another one runs, or others may be stopped for it."""
    if fits_now(plan, job, now) or (len(plan.preempts) > 0 and _stop_for(plan, job, now)):
        hold(plan.ranking, job, 1)
        _start(plan, job, now)
        take(plan, job, now, plan.due[job], 1)
        return True
    if plan.seats.most > 1 and _sit_down(plan, job, now):
        hold(plan.ranking, job, 1)
        return True
    return False


@compiled
def _start(plan: Plan, job: int, now: float) -> None:
    occupy(plan, job, 0, 1)
    plan.start[job] = now
    plan.end[job] = now + plan.run[job]
    plan.due[job] = now + plan.estimate[job]
    # Only where runs are stopped, or expected to end later.
    if plan.seats.most == 1:
        _make_heaps_fit(plan)
    _note_start(plan, job)
    push(plan.ends, plan.end[job], job)
    if plan.seats.most > 1:
        sit(plan.seats, job, job, plan.run[job], plan.estimate[job], now)
    else:
        push(plan.dues, plan.due[job], job)


@compiled
def _note_start(plan: Plan, job: int) -> None:
    """Count a job among those that run."""
    plan.place[job] = plan.at[RUNNING]
    plan.running[plan.at[RUNNING]] = job
    plan.at[RUNNING] += 1
    charge(plan.ranking, job, plan.needs[job, 0])


@compiled
def _leave_running(plan: Plan, job: int) -> None:
    """Count a job no longer among those that run."""
    plan.at[RUNNING] -= 1
    last = plan.running[plan.at[RUNNING]]
    plan.running[plan.place[job]] = last
    plan.place[last] = plan.place[job]
    charge(plan.ranking, job, -plan.needs[job, 0])
    hold(plan.ranking, job, -1)


@compiled
def _make_heaps_fit(plan: Plan) -> None:
    """Clear away what stopped runs and corrections have left behind, when there is no room for more."""
    for heap, time in ((plan.ends, plan.end), (plan.dues, plan.due)):
        if heap.size[0] == len(heap.keys):
            heap.size[0] = 0
            for place in range(plan.at[RUNNING]):
                job = plan.running[place]
                push(heap, time[job], job)


@compiled
def _stop_for(plan: Plan, job: int, now: float) -> bool:
    """Stop jobs that a job may stop, if it can start then; return whether it can.

    The one that started last is stopped first, until the job fits; those that need not have been, in the
    same order, go on.
    """
    first = plan.at[STOPPED]
    while not fits_now(plan, job, now):
        victim = -1
        for place in range(plan.at[RUNNING]):
            other = plan.running[place]
            if not plan.preempts[plan.kind[job], plan.kind[other]] or plan.planned[other] == -np.inf:
                continue
            if victim < 0 or (plan.start[other], other) > (plan.start[victim], victim):
                victim = other
        if victim < 0:
            break
        # A mark, for as long as it is decided.
        plan.planned[victim] = -np.inf
        plan.stopped[plan.at[STOPPED]] = victim
        plan.at[STOPPED] += 1
        _free(plan, victim, now, 1)
    enough = fits_now(plan, job, now)
    kept = first
    for place in range(first, plan.at[STOPPED]):
        victim = plan.stopped[place]
        plan.planned[victim] = np.nan
        _free(plan, victim, now, -1)
        if enough and not fits_now(plan, job, now):
            _free(plan, victim, now, 1)
            plan.stopped[kept] = victim
            kept += 1
    plan.at[STOPPED] = kept
    for place in range(first, kept):
        victim = plan.stopped[place]
        if plan.start[victim] < now:
            plan.cut[plan.at[CUT]] = victim
            plan.cut_s[plan.at[CUT], 0] = plan.start[victim]
            plan.cut_s[plan.at[CUT], 1] = now
            plan.at[CUT] += 1
        _leave_running(plan, victim)
        plan.start[victim] = np.nan
        plan.end[victim] = np.nan
        plan.due[victim] = np.nan
    return enough


@compiled
def _free(plan: Plan, job: int, now: float, times: int) -> None:
    """Give back what a running job takes from now on; with −1 times, let it have it again."""
    occupy(plan, job, 0, -times)
    take(plan, job, now, plan.due[job], -times)


@compiled
def _take_seat(plan: Plan, seat: int, more: int, now: float, times: int) -> None:
    """Take what those on a seat, and one more (−1 for none), need until they should end.

    Processors are the same for all; power is everybody's own.
    """
    seats = plan.seats
    last = now
    for place in range(seats.size[seat]):
        job = seats.members[seat, place]
        due = plan.due[job] if more < 0 else due_beside(seats, job, more, now)
        last = max(last, due)
        for need in range(plan.shared, plan.resource.shape[1]):
            take_need(plan, job, need, now, due, times)
    if more >= 0:
        due = _due_on(plan, more, seat, now)
        last = max(last, due)
        for need in range(plan.shared, plan.resource.shape[1]):
            take_need(plan, more, need, now, due, times)
    for need in range(plan.shared):
        take_need(plan, seat, need, now, last, times)


@compiled
def _due_on(plan: Plan, job: int, seat: int, now: float) -> float:
    """When a job should end that sits down on a seat now."""
    due: float = now + plan.estimate[job] * rate_beside(plan.seats, plan.seats.believed, job, seat, -1)
    return due


@compiled
def _can_sit(plan: Plan, job: int, seat: int, now: float) -> bool:
    """Whether nothing else has to wait for it if a job sits down on a seat now, if all is as expected."""
    seats, availability = plan.seats, plan.availability
    until = _due_on(plan, job, seat, now)
    for place in range(seats.size[seat]):
        until = max(until, due_beside(seats, seats.members[seat, place], job, now))
    _take_seat(plan, seat, -1, now, -1)
    _take_seat(plan, seat, job, now, 1)
    look_until(plan, until)
    enough = True
    place = 0
    while place < availability.size[0] and availability.time[place] < until:
        for row in range(availability.left.shape[1]):
            enough = enough and availability.left[place, row] >= 0
        place += 1
    _take_seat(plan, seat, job, now, -1)
    _take_seat(plan, seat, -1, now, 1)
    if 2 * availability.size[0] > len(availability.time):
        tidy(plan, now)
    return enough


@compiled
def _seat_for(plan: Plan, job: int, now: float) -> int:
    """Seat on which a job may sit down now: that with the highest gain, or the first; −1 if there is none."""
    if not has_room(plan.free, plan.resource, plan.needs, job, plan.shared):
        return -1
    seats = plan.seats
    best = -1
    best_gain = -np.inf
    for place in range(seats.seats[0]):
        seat = seats.taken[place]
        if plan.alike[job] != plan.alike[seat] or seats.size[seat] == seats.most:
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
    occupy(plan, job, plan.shared, 1)
    plan.start[job] = now
    _note_start(plan, job)
    sit(plan.seats, job, seat, plan.run[job], plan.estimate[job], now)
    set_rates(plan.seats, seat, plan.end, plan.due, plan.ends, now)
    _take_seat(plan, seat, -1, now, 1)
    return True


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
        advance_plan(start_plan(empty, nobody, resources, Policy(conservative=True)), 1)


def run_plan(
    jobs: Jobs,
    machines: Sequence[Machine],
    machine: Integers,
    resources: Resources,
    policy: Policy,
    sharing: Sharing | None,
    rules: Rules,
    progress: Callable[[str], None] | None,
) -> Schedule:
    """Simulate jobs that are each bound to a machine; what was given is checked."""
    plan = start_plan(jobs, machine, resources, policy, sharing, rules)
    step = suited(advance_plan, len(jobs), _FEW, progress)
    cuts: list[tuple[Integers, Reals]] = []
    while not step(plan, _POINTS):
        cuts.append(_taken_cuts(plan))
        if progress is not None:
            progress(f"{plan.at[NEXT]:,} of {len(jobs):,} jobs have been submitted")
    cuts.append(_taken_cuts(plan))
    stopped = np.concatenate([job for job, _ in cuts])
    times = np.concatenate([times for _, times in cuts])
    cut = Cuts(stopped, times[:, 0], times[:, 1]) if rules.preempts is not None else None
    return Schedule(jobs, machines, machine, plan.start, plan.end, plan.reserved, cut)


def _taken_cuts(plan: Plan) -> tuple[Integers, Reals]:
    """Runs that were stopped since this was last done."""
    count = plan.at[CUT]
    plan.at[CUT] = 0
    return plan.cut[:count].copy(), plan.cut_s[:count].copy()
