"""Starts and preemptions of jobs."""

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
    """Start a job that fits now; the caller takes its resources over time."""
    occupy(plan, job, 0, 1)
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
    occupy(plan, job, 0, -times)
    take(plan, job, now, plan.due[job], -times)
