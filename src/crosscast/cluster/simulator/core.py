"""One point in time after another: ends, submissions, then jobs that may start."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.cluster.simulator.binding import best_machine, note_start
from crosscast.cluster.simulator.candidate import first_candidate, machine_with_room
from crosscast.cluster.simulator.compiled import compiled, kept
from crosscast.cluster.simulator.heap import pop, push
from crosscast.cluster.simulator.running import add, drop, reservation
from crosscast.cluster.simulator.state import HEAD, INDEXED, NEXT, State
from crosscast.cluster.simulator.trees import insert, remove

__all__ = ["advance"]


@kept
def advance(state: State, most: int) -> bool:
    """Go on by so many points in time at most; return whether all jobs have ended."""
    for _ in range(most):
        now = np.inf
        if state.at[NEXT] < len(state.submit):
            now = state.submit[state.at[NEXT]]
        if state.ends.size[0] > 0:
            now = min(now, state.ends.keys[0])
        if now == np.inf:
            return True
        _end_jobs(state, now)
        _submit_jobs(state, now)
        _start_jobs(state, now)
    return False


@compiled
def _end_jobs(state: State, now: float) -> None:
    while state.ends.size[0] > 0 and state.ends.keys[0] == now:
        job = pop(state.ends)
        machine = state.machine[job]
        estimate = state.estimate[job, machine if state.estimate.shape[1] > 1 else 0]
        drop(state.running, machine, state.start[job] + estimate, state.procs[job])


@compiled
def _submit_jobs(state: State, now: float) -> None:
    binding = state.binding
    while state.at[NEXT] < len(state.submit) and state.submit[state.at[NEXT]] == now:
        job = state.at[NEXT]
        if len(binding.predicted) > 0:
            machine = best_machine(binding, state.procs, state.machine, job, now - state.submit[0])
            state.choices[job, 0] = machine
            if len(state.trees.tree) > 0:
                state.trees.tree[job] += machine * len(state.widths)
            if len(binding.queue_keys) > 0:
                state.queue_key[job] = binding.queue_keys[job, machine]
            if len(binding.pass_keys) > 0:
                state.trees.key[job] = binding.pass_keys[job, machine]
        if len(state.queue_key) > 0:
            push(state.queue, state.queue_key[job], job)
        state.at[NEXT] += 1


@compiled
def _head(state: State) -> int:
    """First waiting job in the order R1; −1 if none waits."""
    if len(state.queue_key) > 0:
        while state.queue.size[0] > 0 and state.machine[state.queue.items[0]] >= 0:
            pop(state.queue)
        return state.queue.items[0] if state.queue.size[0] > 0 else -1
    while state.at[HEAD] < state.at[NEXT] and state.machine[state.at[HEAD]] >= 0:
        state.at[HEAD] += 1
    return state.at[HEAD] if state.at[HEAD] < state.at[NEXT] else -1


@compiled
def _start_jobs(state: State, now: float) -> None:
    """Start jobs from the head on until one has no room; reserve for it, then start who does not delay it."""
    # Plain integers have a type of their own, for which what they are given to would be compiled once more.
    host: Any = np.int64(-1)
    extra: Any = np.int64(0)
    shadow = now
    while True:
        job = _head(state) if host < 0 else first_candidate(state, host, shadow, extra, now)
        if job < 0:
            return
        machine = machine_with_room(state, job, host, shadow, extra, now)
        if machine >= 0:
            column = machine if state.estimate.shape[1] > 1 else 0
            due = now + state.estimate[job, column]
            if machine == host and due > shadow:
                extra -= state.procs[job]
            _start(state, job, machine, now, due)
            continue
        # Only the head can be without room here.
        if len(state.trees.key) == 0 and not np.isnan(state.reserved[job]):
            return
        host = state.choices[job, 0]
        shadow, extra = reservation(state.running, host, state.procs[job], now)
        if np.isnan(state.reserved[job]):
            state.reserved[job] = shadow
        if len(state.trees.key) == 0:
            return
        # Not before: most jobs of a machine that is not full never get here.
        while state.at[INDEXED] < state.at[NEXT]:
            if state.machine[state.at[INDEXED]] < 0:
                insert(state.trees, state.at[INDEXED])
            state.at[INDEXED] += 1


@compiled
def _start(state: State, job: int, machine: int, now: float, due: float) -> None:
    if job < state.at[INDEXED]:
        remove(state.trees, job)
    end = now + state.run[job, machine if state.run.shape[1] > 1 else 0]
    state.start[job] = now
    state.end[job] = end
    state.machine[job] = machine
    add(state.running, machine, due, state.procs[job])
    push(state.ends, end, job)
    if len(state.binding.predicted) > 0:
        since = now - state.submit[0]
        note_start(state.binding, state.procs[job], machine, job, since, end - state.submit[0])
