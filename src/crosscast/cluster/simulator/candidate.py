"""Who may start now without delaying the head, and where."""

from __future__ import annotations

from crosscast.cluster.simulator.compiled import compiled
from crosscast.cluster.simulator.state import State
from crosscast.cluster.simulator.trees import comes_before, first_of, first_until

__all__ = ["first_candidate", "machine_with_room"]


@compiled
def machine_with_room(state: State, job: int, host: int, shadow: float, extra: int, now: float) -> int:
    """First machine of a job's list on which it can start now; −1 if there is none.

    Parameters
    ----------
    state
        The simulation.
    job
        Place of the job.
    host
        Machine with a reservation from the time `shadow` on that leaves `extra` processors; −1 if none has.
    shadow, extra
        See `host`.
    now
        The time.
    """
    procs = state.procs[job]
    for choice in range(state.choices.shape[1]):
        machine: int = state.choices[job, choice]
        if machine < 0:
            break
        if procs <= state.running.free[machine]:
            column = machine if state.estimate.shape[1] > 1 else 0
            if machine != host or procs <= extra or now + state.estimate[job, column] <= shadow:
                return machine
    return -1


@compiled
def first_candidate(state: State, host: int, shadow: float, extra: int, now: float) -> int:
    """First job in the order R2 for which there is room (see `machine_with_room`); −1 if there is none."""
    best = -1
    trees, widths, free = state.trees, state.widths, state.running.free
    column = host if trees.low.shape[1] > 1 else 0
    for group in range(len(state.members)):
        # A job that is no wider than this has room; one up to `in_time` has it if it ends in time.
        anyway = 0
        in_time = 0
        for machine in range(len(free)):
            if state.members[group, machine]:
                if machine == host:
                    in_time = free[machine]
                    anyway = max(anyway, min(free[machine], extra))
                else:
                    anyway = max(anyway, free[machine])
        for place in range(len(widths)):
            if widths[place] > anyway and widths[place] > in_time:
                break
            tree = group * len(widths) + place
            if trees.roots[tree] >= 0:
                if widths[place] <= anyway:
                    job = first_of(trees, tree)
                else:
                    job = first_until(trees, tree, column, now, shadow)
                if job >= 0 and (best < 0 or comes_before(trees, job, best)):
                    best = job
    return best
