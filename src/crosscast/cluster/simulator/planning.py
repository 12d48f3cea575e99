"""The general simulator: jobs planned into the free processors and power over time.

Slower than `crosscast.cluster.simulator.engine`, with the same schedules where both apply; it supports
reservations for every job (conservative backfilling), capacities that change, a budget of power, sharing, and
the rules of a site: priorities, limits, preemption and predicted times.

At each point in time, in this order: capacities change; jobs end; predicted times that were too short are
corrected; jobs are submitted; priorities are updated; jobs start, and preempt others. If some were preempted,
they wait again, and the last step is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster import Cuts, Machine, PlacedJobs, Policy, Schedule, Speeds
from crosscast.cluster.resources import MILLIWATTS, Resources, milliwatts, resources_of
from crosscast.cluster.rules import Learning, Rules, Sharing
from crosscast.cluster.simulator import Heap, compiled, jit_cached, pop, push, suited
from crosscast.cluster.simulator.engine import NO_JOBS
from crosscast.cluster.simulator.plan import (
    AHEAD,
    BLOCKED,
    CUT,
    LEARNED,
    NEXT,
    RUNNING,
    STEP,
    STOPPED,
    WAITING,
    SchedulePlan,
    earliest,
    fits_now,
    has_room,
    leave_running,
    occupy,
    set_estimate,
    set_option,
    start_plan,
    take,
    tidy,
)
from crosscast.cluster.simulator.ranking import (
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
    leave,
    make_heaps_fit,
    occupy_power,
    set_rates,
    sit_down,
    start_job,
    stop_for,
    take_seat,
)
from crosscast.cluster.site import NO_SITE
from crosscast.errors import InputError


@jit_cached
def advance_plan(plan: SchedulePlan, most: int) -> bool:
    """Advance by at most `most` points in time; return whether all jobs have ended."""
    for _ in range(most):
        if len(plan.cut) - plan.at[CUT] < min(plan.at[RUNNING], len(plan.cut)):
            return False
        if plan.at[LEARNED] == 0:
            now = _next_time(plan)
            if now == np.inf:
                return True
            early = _pass_time(plan, now)
            if plan.at[LEARNED] == 1:
                plan.clock[1] = 1.0 if early else 0.0
                return False
        else:
            # The choice has been made.
            now, early = plan.clock[0], plan.clock[1] == 1.0
            _choose_again(plan)
        while plan.at[NEXT] < len(plan.submit) and plan.submit[plan.at[NEXT]] == now:
            job = plan.at[NEXT]
            if len(plan.walltimes.request) > 0:
                set_estimate(plan, job, predict(plan.walltimes, job))
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
            for index in range(plan.at[STOPPED]):
                _wait(plan, plan.stopped[index])
            plan.at[STOPPED] = 0
        if plan.at[LEARNED] == 1:
            plan.clock[1] = 0.0
            return False
    return False


@compiled
def _pass_time(plan: SchedulePlan, now: float) -> bool:
    """Change capacities, end jobs, and correct predictions; return whether a job ended early."""
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
    return early


@compiled
def _wait(plan: SchedulePlan, job: int) -> None:
    """Insert a job into both queues."""
    if len(plan.learning.kind) > 0:
        set_option(plan, job)
    put(plan.ranking, plan.waiting, plan.at[WAITING], plan.key, job)
    if plan.backfills:
        put(plan.ranking, plan.passing, plan.at[WAITING], plan.pass_key, job)
    plan.at[WAITING] += 1


@compiled
def _order(plan: SchedulePlan, now: float) -> None:
    """Sort waiting jobs by their current priorities, if these change."""
    if len(plan.ranking.fixed) == 0:
        return
    count = plan.at[WAITING]
    set_keys(plan.ranking, plan.waiting, count, plan.submit, plan.key, now)
    sort_jobs(plan.ranking, plan.waiting, count, plan.key)
    if plan.backfills:
        sort_jobs(plan.ranking, plan.passing, count, plan.pass_key)


@compiled
def _choose_again(plan: SchedulePlan) -> None:
    """Give waiting jobs the new choice of their kind, which invalidates all reservations."""
    plan.at[LEARNED] = 0
    count = plan.at[WAITING]
    for index in range(count):
        set_option(plan, plan.waiting[index])
        plan.at[BLOCKED] = 1
    if len(plan.key_scale) > 0:
        sort_jobs(plan.ranking, plan.waiting, count, plan.key)
    if plan.backfills and len(plan.pass_scale) > 0:
        sort_jobs(plan.ranking, plan.passing, count, plan.pass_key)


@compiled
def _measure(plan: SchedulePlan, job: int) -> None:
    """Record what an ended job has measured."""
    learning = plan.learning
    kind, option = learning.kind[job], learning.taken[job]
    if not learning.measured[kind, option]:
        learning.measured[kind, option] = True
        learning.tried[kind, option] = False
        plan.at[LEARNED] = 1


@compiled
def _correct(plan: SchedulePlan, now: float) -> None:
    """Postpone the expected ends of overdue jobs, which invalidates all reservations."""
    if not _is_overdue(plan, now):
        return
    for index in range(plan.at[RUNNING]):
        job = plan.running[index]
        due = corrected(plan.walltimes, job, plan.start[job], plan.due[job], now)
        if due != plan.due[job]:
            plan.due[job] = due
            make_heaps_fit(plan)
            push(plan.dues, due, job)
            take(plan, job, now, due, 1)
            plan.at[BLOCKED] = 1


@compiled
def _next_time(plan: SchedulePlan) -> float:
    now = np.inf
    if plan.at[NEXT] < len(plan.submit):
        now = plan.submit[plan.at[NEXT]]
    _drop_stale(plan.ends, plan.over, plan.end)
    if plan.ends.size[0] > 0:
        now = min(now, plan.ends.keys[0])
    if plan.at[WAITING] > 0:
        if plan.at[STEP] + 1 < len(plan.step_s):
            now = min(now, plan.step_s[plan.at[STEP] + 1])
        if len(plan.walltimes.request) > 0:
            now = min(now, _next_correction(plan))
        if plan.every_job:
            # A job that could not start at its planned time waits for another event.
            for index in range(plan.at[WAITING]):
                job = plan.waiting[index]
                if plan.planned[job] > plan.clock[0]:
                    now = min(now, plan.planned[job])
    return now


@compiled
def _next_correction(plan: SchedulePlan) -> float:
    """Return the next expected end that may be corrected."""
    first = np.inf
    for index in range(plan.at[RUNNING]):
        job = plan.running[index]
        if plan.due[job] < plan.start[job] + plan.walltimes.request[job]:
            first = min(first, plan.due[job])
    return first


@compiled
def _drop_stale(heap: Heap, over: Integers, times: Reals) -> None:
    """Drop ends, or expected ones, of jobs that have ended, were preempted, or changed their seat."""
    while heap.size[0] > 0:
        job = heap.items[0]
        if over[job] == 0 and times[job] == heap.keys[0]:
            return
        pop(heap)


@compiled
def _end(plan: SchedulePlan, now: float) -> bool:
    """End jobs and free their resources; return whether one ended before its expected end."""
    early = False
    while plan.ends.size[0] > 0 and plan.ends.keys[0] == now:
        job = pop(plan.ends)
        plan.over[job] = 1
        leave_running(plan, job)
        if len(plan.walltimes.request) > 0:
            learn(plan.walltimes, job, plan.run[job])
        if len(plan.learning.kind) > 0:
            _measure(plan, job)
        held = plan.resource.shape[1]
        if plan.seats.most > 1:
            seat = plan.seats.seat[job]
            take_seat(plan, seat, -1, now, -1)
            occupy_power(plan, seat, -1)
            leave(plan.seats, job)
            held = plan.shared
            if plan.seats.size[seat] > 0:
                # The other jobs on the seat keep the processors.
                held = 0
                set_rates(plan.seats, seat, plan.end, plan.due, plan.ends, now)
                occupy_power(plan, seat, 1)
                take_seat(plan, seat, -1, now, 1)
        _drop_stale(plan.ends, plan.over, plan.end)
        occupy(plan, job, held, -1)
        if plan.due[job] > now:
            early = True
            if plan.seats.most == 1:
                take(plan, job, now, plan.due[job], -1)
    return early


@compiled
def _is_overdue(plan: SchedulePlan, now: float) -> bool:
    """Whether a running job, the first of `dues`, is past its expected end."""
    _drop_stale(plan.dues, plan.over, plan.due)
    overdue: bool = plan.dues.size[0] > 0 and plan.dues.keys[0] <= now
    return overdue


@compiled
def _forget_reservations(plan: SchedulePlan, now: float) -> None:
    """Drop all reservations; only running jobs take resources, until their expected ends."""
    availability, first = plan.availability, plan.at[STEP]
    availability.size[0] = 1
    plan.at[AHEAD] = first + 1
    availability.time[0] = plan.step_s[first]
    for row in range(len(plan.free)):
        availability.left[0, row] = plan.capacity[first, row]
    if plan.seats.most == 1:
        for index in range(plan.at[RUNNING]):
            job = plan.running[index]
            take(plan, job, now, plan.due[job], 1)
    else:
        for index in range(plan.seats.seats[0]):
            take_seat(plan, plan.seats.taken[index], -1, now, 1)
    for index in range(plan.at[WAITING]):
        job = plan.waiting[index]
        if not np.isnan(plan.planned[job]):
            hold(plan.ranking, job, -1)
            plan.planned[job] = np.nan
    tidy(plan, now)


@compiled
def _start_planned(plan: SchedulePlan, now: float, early: bool) -> None:
    """Conservative backfilling: reserve for all jobs in order, and start those that are due now."""
    count = plan.at[WAITING]
    stops = len(plan.preempts) > 0
    # Sharing, preemption and measured power invalidate all reservations.
    if plan.seats.most > 1 or stops or plan.measures or plan.at[BLOCKED] or _is_overdue(plan, now):
        _forget_reservations(plan, now)
    elif early:
        for index in range(count):
            job = plan.waiting[index]
            planned = plan.planned[job]
            if planned > now:
                start = earliest(plan, job, planned)
                if start < planned:
                    take(plan, job, planned, planned + plan.estimate[job], -1)
                    take(plan, job, start, start + plan.estimate[job], 1)
                    plan.planned[job] = start
    plan.at[BLOCKED] = 0
    started = False
    for index in range(count):
        job = plan.waiting[index]
        if np.isnan(plan.planned[job]) and may_run(plan.ranking, job):
            start = earliest(plan, job, np.inf)
            if (
                stops
                and (start > now or not has_room(plan.free, plan.resource, plan.needs, job))
                and stop_for(plan, job, now)
            ):
                start = now
            hold(plan.ranking, job, 1)
            plan.planned[job] = start
            take(plan, job, start, start + plan.estimate[job], 1)
            if np.isnan(plan.reserved[job]):
                plan.reserved[job] = start
            if stops and start <= now and has_room(plan.free, plan.resource, plan.needs, job):
                # Before the next job looks for jobs to preempt.
                _start_as_planned(plan, job, now)
                started = True
    for index in range(count):
        job = plan.waiting[index]
        if plan.planned[job] <= now and np.isnan(plan.start[job]):
            if has_room(plan.free, plan.resource, plan.needs, job):
                _start_as_planned(plan, job, now)
                started = True
                if plan.at[LEARNED] == 1:
                    break
            else:
                plan.at[BLOCKED] = 1
    if plan.seats.most > 1:
        for index in range(count):
            job = plan.waiting[index]
            planned = plan.planned[job]
            if np.isnan(plan.start[job]) and not np.isnan(planned):
                end = planned + plan.estimate[job]
                take(plan, job, planned, end, -1)
                if sit_down(plan, job, now):
                    started = True
                else:
                    take(plan, job, planned, end, 1)
    if started:
        plan.at[WAITING] = _sift(plan, plan.waiting, count)


@compiled
def _start_as_planned(plan: SchedulePlan, job: int, now: float) -> None:
    """Start a job whose planned resources are taken already."""
    if plan.measures:
        planned = plan.planned[job]
        take(plan, job, planned, planned + plan.estimate[job], -1)
        start_job(plan, job, now)
        take(plan, job, now, plan.due[job], 1)
    else:
        start_job(plan, job, now)


@compiled
def _start_before_head(plan: SchedulePlan, now: float) -> None:
    """EASY: start jobs until one does not fit, reserve for it, then backfill."""
    count = plan.at[WAITING]
    head = -1
    for index in range(count):
        job = plan.waiting[index]
        if may_run(plan.ranking, job) and not _starts_now(plan, job, now):
            head = job
            break
        if plan.at[LEARNED] == 1:
            # The next jobs may have another configuration now.
            break
    if head >= 0:
        shadow = earliest(plan, head, np.inf)
        if np.isnan(plan.reserved[head]):
            plan.reserved[head] = shadow
        if plan.backfills:
            # A job of no expected time reserves for a moment.
            end = max(shadow + plan.estimate[head], np.nextafter(shadow, np.inf))
            take(plan, head, shadow, end, 1)
            # Quick check, as most have no room; jobs that share or preempt need no free resources.
            needs_room = plan.seats.most == 1 and len(plan.preempts) == 0
            for index in range(count):
                job = plan.passing[index]
                if job == head or not np.isnan(plan.start[job]):
                    continue
                if needs_room and not has_room(plan.free, plan.resource, plan.needs, job):
                    continue
                if may_run(plan.ranking, job):
                    _starts_now(plan, job, now)
                if plan.at[LEARNED] == 1:
                    break
            take(plan, head, shadow, end, -1)
    plan.at[WAITING] = _sift(plan, plan.waiting, count)
    if plan.backfills:
        _sift(plan, plan.passing, count)


@compiled
def _starts_now(plan: SchedulePlan, job: int, now: float) -> bool:
    """Start a job if it fits now, may preempt others, or may join a seat; return whether it started."""
    if fits_now(plan, job, now) or (len(plan.preempts) > 0 and stop_for(plan, job, now)):
        hold(plan.ranking, job, 1)
        start_job(plan, job, now)
        take(plan, job, now, plan.due[job], 1)
        return True
    if plan.seats.most > 1 and sit_down(plan, job, now):
        hold(plan.ranking, job, 1)
        return True
    return False


@compiled
def _sift(plan: SchedulePlan, jobs: Integers, count: int) -> int:
    """Remove the jobs that have started; return the number of remaining ones."""
    remaining = 0
    for index in range(count):
        job = jobs[index]
        if np.isnan(plan.start[job]):
            jobs[remaining] = job
            remaining += 1
    return remaining


_POINTS = 100_000
"""Points in time between two reports of progress, and two chances to interrupt."""
_FEW = 1_000
"""Jobs that are simulated within about two seconds without compiling."""


def load(jobs: int | None, progress: Callable[[str], None] | None) -> None:
    """Load or compile the simulator for a number of jobs; `None` for any number."""
    if suited(advance_plan, jobs, _FEW, progress) is advance_plan:
        placed = PlacedJobs(NO_JOBS, [Machine("any", 1)], NO_JOBS.number)
        advance_plan(start_plan(placed, resources_of(placed, NO_SITE), Policy(conservative=True)), 1)


def run_plan(
    placed: PlacedJobs,
    resources: Resources,
    policy: Policy,
    sharing: Sharing | None,
    rules: Rules,
    progress: Callable[[str], None] | None,
) -> Schedule:
    """Simulate jobs that are each bound to a machine; the arguments have been checked."""
    jobs = placed.jobs
    plan = start_plan(placed, resources, policy, sharing, rules)
    step = suited(advance_plan, len(jobs), _FEW, progress)
    cuts: list[tuple[Integers, Reals]] = []
    learning = rules.learning
    if learning is not None:
        _choose(plan, learning)
    while not step(plan, _POINTS):
        if learning is not None and plan.at[LEARNED]:
            _choose(plan, learning)
            continue
        cuts.append(_taken_cuts(plan))
        if progress is not None:
            progress(f"{plan.at[NEXT]:,} of {len(jobs):,} jobs have been submitted")
    cuts.append(_taken_cuts(plan))
    stopped = np.concatenate([job for job, _ in cuts])
    times = np.concatenate([times for _, times in cuts])
    cut = Cuts(stopped, times[:, 0], times[:, 1]) if rules.preempts is not None else None
    if learning is not None:
        idle_w = placed.of_machine("idle_w")
        extra_w = learning.extra_w[learning.kind, plan.learning.taken]
        jobs = replace(
            jobs,
            run_s=plan.run[:, None],
            estimate_s=plan.estimate[:, None],
            power_w=jobs.procs * (idle_w + extra_w),
            fastest_s=jobs.run_s,
        )
    seat = plan.seats.seat if sharing is not None else None
    machines, machine = placed.machines, placed.machine
    return Schedule(jobs, machines, machine, plan.start, plan.end, plan.reserved, cut, seat, _speeds(plan))


def _speeds(plan: SchedulePlan) -> Speeds | None:
    seats = plan.seats
    if not len(seats.changed):
        return None
    count = seats.changes[0]
    return Speeds(seats.changed[:count].copy(), seats.changed_s[:count].copy(), seats.speed[:count].copy())


def _choose(plan: SchedulePlan, learning: Learning) -> None:
    """Choose the configurations in which jobs start from now on."""
    tables = plan.learning
    choices = learning.choose(tables.measured.copy(), tables.tried.copy())
    tables.option[:], tables.expected[:] = choices.option, choices.slowdown
    tables.need[:] = milliwatts(choices.extra_w)
    needs, left = plan.needs[:, 0] * tables.need[learning.kind], plan.capacity[-1, -1]
    if (needs > left).any():
        expected = f"at most the {left / MILLIWATTS:g} W that the budget leaves beside idle processors"
        found = f"{needs.max() / MILLIWATTS:g} W for a job"
        raise InputError.of(where="learning", field="extra_w", expected=expected, found=found)


def _taken_cuts(plan: SchedulePlan) -> tuple[Integers, Reals]:
    """Return and clear the recorded preempted runs."""
    count = plan.at[CUT]
    plan.at[CUT] = 0
    return plan.cut[:count].copy(), plan.cut_s[:count].copy()
