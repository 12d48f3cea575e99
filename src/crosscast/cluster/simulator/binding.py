"""Binding jobs, when they are submitted, to the machine where they should be finished first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.simulator.compiled import compiled
from crosscast.cluster.simulator.heap import Heap, pop, push, start_heap

__all__ = ["Binding", "best_machine", "note_start", "start_binding"]

_WAITING_WORK, _WAITING, _RUNNING_WORK, _RUNNING_PROCS, _RUNNING = range(5)


class Binding(NamedTuple):
    """What binding ``n`` jobs to ``m`` machines needs.

    Parameters
    ----------
    predicted
        Predicted times, of shape ``(n, m)``, infinite where a job cannot run; of no rows if nobody is bound.
    queue_keys, pass_keys
        Keys of jobs in the orders R1 and R2 on each machine, of shape ``(n, m)``; of no rows if they are the
        same on all.
    size
        Processors of each machine.
    load
        Of each machine, of shape ``(m, 5)``: processor-seconds waiting, jobs waiting, processor-seconds from
        the first submission to the predicted ends of running jobs, their processors, and their number.
    leaving
        Running jobs by when they no longer count there, in seconds since the first submission.
    work
        Processor-seconds of each running job from the first submission to its predicted end.
    """

    predicted: Reals
    queue_keys: Reals
    pass_keys: Reals
    size: Integers
    load: Reals
    leaving: Heap
    work: Reals


def start_binding(predicted: Reals, queue_keys: Reals, pass_keys: Reals, size: Integers) -> Binding:
    """Machines without jobs."""
    count = len(predicted)
    load = np.zeros((len(size), 5))
    return Binding(predicted, queue_keys, pass_keys, size, load, start_heap(count), np.empty(count))


@compiled
def best_machine(binding: Binding, procs: Integers, machine: Integers, job: int, since: float) -> int:
    """Bind a job that is submitted so long since the first submission; return its machine.

    Counted from there, times stay small, and sums of them exact.
    """
    load = binding.load
    while binding.leaving.size[0] > 0 and binding.leaving.keys[0] <= since:
        left = pop(binding.leaving)
        load[machine[left], _RUNNING_WORK] -= binding.work[left]
        load[machine[left], _RUNNING_PROCS] -= procs[left]
        load[machine[left], _RUNNING] -= 1
        if load[machine[left], _RUNNING] == 0:
            # No rounding error stays behind.
            load[machine[left], _RUNNING_WORK] = 0.0
    best = -1
    best_s = np.inf
    for place in range(len(binding.size)):
        predicted = binding.predicted[job, place]
        if predicted < np.inf:
            waiting = max(load[place, _WAITING_WORK], 0.0)
            running = max(load[place, _RUNNING_WORK] - since * load[place, _RUNNING_PROCS], 0.0)
            done_s = (waiting + running) / binding.size[place] + predicted
            if best < 0 or done_s < best_s:
                best = place
                best_s = done_s
    load[best, _WAITING_WORK] += procs[job] * binding.predicted[job, best]
    load[best, _WAITING] += 1
    return best


@compiled
def note_start(binding: Binding, procs: int, machine: int, job: int, since: float, end: float) -> None:
    """Count the work of a job as running, no longer as waiting; times since the first submission."""
    load = binding.load
    predicted = binding.predicted[job, machine]
    load[machine, _WAITING_WORK] -= procs * predicted
    load[machine, _WAITING] -= 1
    if load[machine, _WAITING] == 0:
        load[machine, _WAITING_WORK] = 0.0
    binding.work[job] = procs * (since + predicted)
    load[machine, _RUNNING_WORK] += binding.work[job]
    load[machine, _RUNNING_PROCS] += procs
    load[machine, _RUNNING] += 1
    # Nothing remains of a job that has ended, and nothing of one that should have.
    push(binding.leaving, min(since + predicted, end), job)
