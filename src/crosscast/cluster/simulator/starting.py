"""Jobs that start, and that are stopped for others."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.simulator.plan import (
    CUT,
    RUNNING,
    STOPPED,
    SchedulePlan,
    fits_now,
    leave_running,
    note_start,
    occupy,
    take,
)
from crosscast.cluster.simulator.queues import compiled, push
from crosscast.cluster.simulator.seats import sit


@compiled
def start_job(plan: SchedulePlan, job: int, now: float) -> None:
    """Start a job that fits now; what it takes until it should end is taken by the caller."""
    occupy(plan, job, 0, 1)
    plan.start[job] = now
    plan.end[job] = now + plan.run[job]
    plan.due[job] = now + plan.estimate[job]
    # Only where runs are stopped, or expected to end later.
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
    """Clear away what stopped runs and corrections have left behind, when there is no room for more."""
    for heap, time in ((plan.ends, plan.end), (plan.dues, plan.due)):
        if heap.size[0] == len(heap.keys):
            heap.size[0] = 0
            for place in range(plan.at[RUNNING]):
                job = plan.running[place]
                push(heap, time[job], job)


@compiled
def stop_for(plan: SchedulePlan, job: int, now: float) -> bool:
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
        leave_running(plan, victim)
        plan.start[victim] = np.nan
        plan.end[victim] = np.nan
        plan.due[victim] = np.nan
    return enough


@compiled
def _free(plan: SchedulePlan, job: int, now: float, times: int) -> None:
    """Give back what a running job takes from now on; with −1 times, let it have it again."""
    occupy(plan, job, 0, -times)
    take(plan, job, now, plan.due[job], -times)
