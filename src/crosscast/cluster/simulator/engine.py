"""Event-driven simulator: orders of jobs, choices of machines, and the state over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import AnyArray, Flags, Integers, Reals
from crosscast.cluster import (
    Bound,
    Jobs,
    Machine,
    Order,
    Placement,
    Policy,
    Preferred,
    Schedule,
    first_row,
)
from crosscast.cluster.simulator import (
    NO_INTEGERS,
    NO_REALS,
    Heap,
    QueueTrees,
    Running,
    add,
    comes_before,
    compiled,
    drop,
    first_of,
    first_until,
    insert,
    jit_cached,
    pop,
    push,
    remove,
    reservation,
    start_heap,
    start_running,
    start_trees,
    suited,
)
from crosscast.errors import InputError

_REVERSED: dict[Order, Order] = {
    "lcfs": "fcfs",
    "longest": "shortest",
    "widest": "narrowest",
    "largest-area": "smallest-area",
}


def keys_of(order: Order, jobs: Jobs, estimate_s: Reals) -> Reals:
    """Return the sort key of each job in an order, of the shape of the estimates.

    Lower keys come first; ties go to the job that was submitted first. Orders that do not depend on estimates
    have a single column.
    """
    if order in _REVERSED:
        return -keys_of(_REVERSED[order], jobs, estimate_s)
    procs = jobs.procs[:, None]
    if order == "fcfs":
        return jobs.submit_s[:, None]
    if order == "narrowest":
        return procs.astype(np.float64)
    if order == "shortest":
        return estimate_s
    if order == "smallest-area":
        return procs * estimate_s
    raise InputError.of(
        where="policy", field="multifactor", expected="the general simulator, as priorities change"
    )


class PlacementChoices(NamedTuple):
    """Machines for ``n`` jobs."""

    # Indices of the machines of each job, the best first, of shape `(n, k)`, padded with −1; −1 for jobs that
    # are bound at submission
    choices: Integers
    # Index of the set of machines of each job in `members`, of shape `(n,)`; 0 for the latter
    group: Integers
    # 1 for the machines of each set, of shape `(c, m)`; a row for each machine if every job is bound
    members: Integers
    # Times by which jobs are bound at submission, of shape `(n, m)`, infinite where they cannot run; without
    # rows for other placements
    predicted: Reals = np.empty((0, 1))


def choices_of(jobs: Jobs, machines: Sequence[Machine], placement: Placement) -> PlacementChoices:
    """Check a placement, and drop the machines on which jobs cannot run."""
    if isinstance(placement, Bound):
        _check_shape("machine", placement.machine, (len(jobs),))
        return _listed(jobs, machines, placement.machine[:, None], placement.machine)
    if isinstance(placement, Preferred):
        order = placement.order
        _check_shape("order", order, (len(jobs), order.shape[1] if order.ndim == 2 else len(machines)))
        return _listed(jobs, machines, order, None)
    return _completion(jobs, machines, placement.predicted_s)


def _one_each(choices: Integers, machines: Sequence[Machine]) -> PlacementChoices:
    """Return a column of machines, or of −1 until they are chosen, each of which is a set of its own."""
    return PlacementChoices(choices, np.maximum(choices[:, 0], 0), np.eye(len(machines), dtype=np.int64))


def _listed(
    jobs: Jobs, machines: Sequence[Machine], order: Integers, bound: Integers | None
) -> PlacementChoices:
    """Return the machines of each job's list, which is the one that it is bound to if it is."""
    name, least = ("order", -1) if bound is None else ("machine", 0)
    wrong = (order < least) | (order >= len(machines))
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        where, expected = f"placement: {name}", f"indices from {least} to {len(machines) - 1}"
        field, found = f"job {jobs.number[row]}", f"{order[row, column]}"
        raise InputError.of(where=where, field=field, expected=expected, found=found)
    usable = _runs_on(jobs, machines, order)
    _check_runs(jobs, machines, np.any(usable, axis=1), bound)
    # Usable machines move to the front.
    columns_by_use = np.argsort(~usable, axis=1, kind="stable")
    choices = np.take_along_axis(np.where(usable, order, -1), columns_by_use, axis=1).astype(np.int64)
    if choices.shape[1] == 1:
        # With one column, the engine takes the machine itself for the set.
        return _one_each(choices, machines)
    member = np.zeros((len(jobs), len(machines)), np.bool_)
    rows, columns = np.nonzero(choices >= 0)
    member[rows, choices[rows, columns]] = True
    sets, group = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)
    members = np.unpackbits(sets, axis=1, count=len(machines)).astype(np.int64)
    return PlacementChoices(choices, group.reshape(-1).astype(np.int64), members)


def _completion(jobs: Jobs, machines: Sequence[Machine], predicted_s: Reals) -> PlacementChoices:
    shape = (len(jobs), len(machines))
    _check_shape("predicted_s", predicted_s, shape)
    if (row := first_row(~(predicted_s >= 0).all(axis=1))) is not None:
        where, field = "placement: predicted_s", f"job {jobs.number[row]}"
        found = f"{predicted_s[row]}"
        raise InputError.of(where=where, field=field, expected="times of at least 0 s", found=found)
    everywhere = np.broadcast_to(np.arange(len(machines)), shape)
    usable = _runs_on(jobs, machines, everywhere) & np.isfinite(predicted_s)
    _check_runs(jobs, machines, np.any(usable, axis=1), None)
    predicted = np.where(usable, predicted_s, np.inf)
    return _one_each(np.full((len(jobs), 1), -1, np.int64), machines)._replace(predicted=predicted)


def _check_shape(name: str, values: AnyArray, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        expected = f"shape {shape}"
        raise InputError.of(where="placement", field=name, expected=expected, found=f"{values.shape}")


def _runs_on(jobs: Jobs, machines: Sequence[Machine], indices: Integers) -> Flags:
    """Whether each job can run on each of the machines of its row."""
    sizes = np.array([machine.procs for machine in machines])
    usable = (indices >= 0) & (jobs.procs[:, None] <= sizes[indices])
    if jobs.run_s.shape[1] == 1:
        return usable & np.isfinite(jobs.run_s)
    return usable & np.isfinite(np.take_along_axis(jobs.run_s, indices, axis=1))


def _check_runs(jobs: Jobs, machines: Sequence[Machine], runs: Flags, bound: Integers | None) -> None:
    """Raise for a job that cannot run on any machine of its row, or on the one that it is bound to."""
    row = first_row(~runs)
    if row is None:
        return
    where = "any machine" if bound is None else machines[bound[row]].name
    widest = max(machine.procs for machine in machines) if bound is None else machines[bound[row]].procs
    if jobs.procs[row] > widest:
        raise InputError.of(
            where="jobs",
            problem=(
                f"job {jobs.number[row]}: procs: expected at most the {widest} of {where}, "
                f"found {jobs.procs[row]}"
            ),
        )
    raise InputError(
        f"jobs: job {jobs.number[row]}: expected a machine wide enough on which it runs, found none"
        + (" in its list" if bound is None else f" (it is bound to {where})")
    )


_WAITING_WORK, _WAITING, _RUNNING_WORK, _RUNNING_PROCS, _RUNNING = range(5)


class Binding(NamedTuple):
    """State for binding ``n`` jobs to ``m`` machines at submission."""

    # Predicted times, of shape `(n, m)`, infinite where a job cannot run; without rows if no job is bound
    predicted: Reals
    # Keys of jobs in the orders R1 and R2 on each machine, of shape `(n, m)`; without rows if machines do not
    # matter
    queue_keys: Reals
    pass_keys: Reals
    size: Integers  # Processors of each machine
    # Of each machine, of shape `(m, 5)`: processor-seconds waiting, jobs waiting, processor-seconds from the
    # first submission to the predicted ends of running jobs, their processors, and their number
    load: Reals
    leaving: Heap  # Running jobs by predicted or actual end, in seconds since the first submission
    work: Reals  # Processor-seconds of each running job from the first submission to its predicted end


def start_binding(predicted: Reals, queue_keys: Reals, pass_keys: Reals, size: Integers) -> Binding:
    """Return the state of machines without jobs."""
    count = len(predicted)
    load = np.zeros((len(size), 5))
    return Binding(predicted, queue_keys, pass_keys, size, load, start_heap(count), np.empty(count))


@compiled
def best_machine(binding: Binding, procs: Integers, machine: Integers, job: int, since: float) -> int:
    """Bind a job that is submitted `since` seconds after the first one; return its machine.

    Relative to the first submission, times stay small, and their sums exact.
    """
    load = binding.load
    while binding.leaving.size[0] > 0 and binding.leaving.keys[0] <= since:
        ended = pop(binding.leaving)
        load[machine[ended], _RUNNING_WORK] -= binding.work[ended]
        load[machine[ended], _RUNNING_PROCS] -= procs[ended]
        load[machine[ended], _RUNNING] -= 1
        if load[machine[ended], _RUNNING] == 0:
            # Drop accumulated rounding errors.
            load[machine[ended], _RUNNING_WORK] = 0.0
    best = -1
    best_s = np.inf
    for candidate in range(len(binding.size)):
        predicted = binding.predicted[job, candidate]
        if predicted < np.inf:
            waiting = max(load[candidate, _WAITING_WORK], 0.0)
            running = max(load[candidate, _RUNNING_WORK] - since * load[candidate, _RUNNING_PROCS], 0.0)
            done_s = (waiting + running) / binding.size[candidate] + predicted
            if best < 0 or done_s < best_s:
                best = candidate
                best_s = done_s
    load[best, _WAITING_WORK] += procs[job] * binding.predicted[job, best]
    load[best, _WAITING] += 1
    return best


@compiled
def note_start(binding: Binding, procs: int, machine: int, job: int, since: float, end: float) -> None:
    """Move the work of a job from waiting to running; times since the first submission."""
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
    # A job's remaining work is 0 from its predicted or actual end on.
    push(binding.leaving, min(since + predicted, end), job)


NEXT, HEAD, INDEXED = range(3)
"""Positions in `SimulationState.at`: next job to submit; in order of submission, first job that may wait;
next job to insert into the trees."""


class SimulationState(NamedTuple):
    """State of a simulation of ``n`` jobs on ``m`` machines."""

    submit: Reals  # As in `Jobs`
    procs: Integers
    run: Reals  # Times of shape `(n, m)`, or `(n, 1)` if they are the same on all machines that matter
    estimate: Reals
    # Indices of the machines of each job, the best first, of shape `(n, k)`, padded with −1; with `k` = 1,
    # the one that it is bound to, once known
    choices: Integers
    members: Integers  # 1 for the machines of each set, of shape `(c, m)`
    # Distinct numbers of processors of jobs, ascending; the trees of a set of machines are by width
    widths: Integers
    at: Integers  # Positions, see `NEXT`
    start: Reals  # As in `Schedule`; NaN (−1) until known
    end: Reals
    reserved: Reals
    machine: Integers
    ends: Heap  # Running jobs by when they end
    queue: Heap  # Waiting jobs in the order R1, and some that were backfilled
    queue_key: Reals  # Key of each job in that order; without rows for first come, first served
    # Trees without keys: no backfilling. Binding without predictions: no job is bound
    running: Running
    trees: QueueTrees
    binding: Binding


@compiled
def machine_with_room(
    state: SimulationState, job: int, host: int, shadow: float, extra: int, now: float
) -> int:
    """Return the first machine of a job's list on which it can start now, or −1."""
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
def first_candidate(state: SimulationState, host: int, shadow: float, extra: int, now: float) -> int:
    """Return the first job in the order R2 that can start (see `machine_with_room`), or −1."""
    best = -1
    trees, widths, free = state.trees, state.widths, state.running.free
    column = host if trees.low.shape[1] > 1 else 0
    for group in range(len(state.members)):
        # Jobs up to this width can start; those up to `in_time` if they end by the shadow time.
        anyway = 0
        in_time = 0
        for machine in range(len(free)):
            if state.members[group, machine]:
                if machine == host:
                    in_time = free[machine]
                    anyway = max(anyway, min(free[machine], extra))
                else:
                    anyway = max(anyway, free[machine])
        for width_index in range(len(widths)):
            if widths[width_index] > anyway and widths[width_index] > in_time:
                break
            tree = group * len(widths) + width_index
            if trees.roots[tree] >= 0:
                if widths[width_index] <= anyway:
                    job = first_of(trees, tree)
                else:
                    job = first_until(trees, tree, column, now, shadow)
                if job >= 0 and (best < 0 or comes_before(trees, job, best)):
                    best = job
    return best


@jit_cached
def advance(state: SimulationState, most: int) -> bool:
    """Advance by at most `most` points in time; return whether all jobs have ended."""
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
def _end_jobs(state: SimulationState, now: float) -> None:
    while state.ends.size[0] > 0 and state.ends.keys[0] == now:
        job = pop(state.ends)
        machine = state.machine[job]
        estimate = state.estimate[job, machine if state.estimate.shape[1] > 1 else 0]
        drop(state.running, machine, state.start[job] + estimate, state.procs[job])


@compiled
def _submit_jobs(state: SimulationState, now: float) -> None:
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
def _head(state: SimulationState) -> int:
    """Return the first waiting job in the order R1, or −1."""
    if len(state.queue_key) > 0:
        while state.queue.size[0] > 0 and state.machine[state.queue.items[0]] >= 0:
            pop(state.queue)
        return state.queue.items[0] if state.queue.size[0] > 0 else -1
    while state.at[HEAD] < state.at[NEXT] and state.machine[state.at[HEAD]] >= 0:
        state.at[HEAD] += 1
    return state.at[HEAD] if state.at[HEAD] < state.at[NEXT] else -1


@compiled
def _start_jobs(state: SimulationState, now: float) -> None:
    """Start jobs from the head on until one has no room; reserve for it, then backfill."""
    # Literal integers have another Numba type, for which called functions would be compiled again.
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
        # Deferred until here: most jobs of a machine that is not full are never inserted.
        while state.at[INDEXED] < state.at[NEXT]:
            if state.machine[state.at[INDEXED]] < 0:
                insert(state.trees, state.at[INDEXED])
            state.at[INDEXED] += 1


@compiled
def _start(state: SimulationState, job: int, machine: int, now: float, due: float) -> None:
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


NO_JOBS = Jobs(NO_INTEGERS, NO_REALS, NO_INTEGERS, np.zeros((0, 1)), np.zeros((0, 1)))

_POINTS = 1_000_000
"""Points in time between two reports of progress, and two chances to interrupt: about a second."""
_FEW = 10_000
"""Jobs that are simulated within about two seconds without compiling."""


def load(jobs: int | None, progress: Callable[[str], None] | None) -> None:
    """Load or compile the simulator for a number of jobs; `None` for any number."""
    if suited(advance, jobs, _FEW, progress) is advance:
        machines = [Machine("any", 1)]
        choices = choices_of(NO_JOBS, machines, Bound(NO_JOBS.number))
        advance(_start_state(NO_JOBS, machines, Policy(), choices), 1)


def run(
    jobs: Jobs,
    machines: Sequence[Machine],
    policy: Policy,
    placement: Placement,
    progress: Callable[[str], None] | None,
) -> Schedule:
    """Simulate arguments that `crosscast.cluster.simulate.simulate` has checked, except the placement."""
    state = _start_state(jobs, machines, policy, choices_of(jobs, machines, placement))
    step = suited(advance, len(jobs), _FEW, progress)
    while not step(state, _POINTS):
        if progress is not None:
            progress(f"{state.at[NEXT]:,} of {len(jobs):,} jobs have been submitted")
    return Schedule(jobs, machines, state.machine, state.start, state.end, state.reserved)


def _start_state(
    jobs: Jobs, machines: Sequence[Machine], policy: Policy, choices: PlacementChoices
) -> SimulationState:
    """Return the state before the first submission."""
    count = len(jobs)
    size = np.array([machine.procs for machine in machines], np.int64)
    procs = _plain(jobs.procs, np.int64)
    bound = None if len(choices.predicted) or choices.choices.shape[1] > 1 else choices.choices
    run_s = _on(_plain(jobs.run_s, np.float64), bound)
    estimate_s = run_s
    if jobs.estimate_s is not jobs.run_s:
        estimate_s = _on(_plain(jobs.estimate_s, np.float64), bound)
    queue, queue_on = _keys(policy.queue, jobs, estimate_s, choices)
    passing, passing_on = _keys(policy.backfill, jobs, estimate_s, choices)
    widths = np.unique(procs)
    if policy.queue == "fcfs":
        queue = NO_REALS
    tree = NO_INTEGERS
    if len(passing):
        # np.unique's inverse sorts, which is slower.
        tree = choices.group * len(widths) + np.searchsorted(widths, procs)
    return SimulationState(
        submit=_plain(jobs.submit_s, np.float64),
        procs=procs,
        run=run_s,
        estimate=estimate_s,
        choices=choices.choices,
        members=choices.members,
        widths=widths,
        at=np.zeros(3, np.int64),
        start=np.full(count, np.nan),
        end=np.full(count, np.nan),
        reserved=np.full(count, np.nan),
        machine=np.full(count, -1, np.int64),
        ends=start_heap(min(count, int(size.sum()))),
        queue=start_heap(len(queue)),
        queue_key=queue,
        running=start_running(size, count),
        trees=start_trees(passing, estimate_s, tree, len(choices.members) * len(widths)),
        binding=start_binding(choices.predicted, queue_on, passing_on, size),
    )


_Kind = TypeVar("_Kind", np.float64, np.int64)


def _plain(array: npt.NDArray[_Kind], kind: type[_Kind]) -> npt.NDArray[_Kind]:
    # The engine is compiled for these flags; other ones would compile it again.
    return np.require(array, kind, ["C", "W", "A"])


def _on(times: Reals, machine: Integers | None) -> Reals:
    """Select the times on the machine that each job is bound to, if it is and machines differ."""
    if machine is None or times.shape[1] == 1:
        return times
    return np.take_along_axis(times, machine, axis=1)


def _keys(
    order: Order | None, jobs: Jobs, estimate_s: Reals, choices: PlacementChoices
) -> tuple[Reals, Reals]:
    """Return the keys of jobs, of shape ``(n,)``, and those by machine for jobs bound at submission."""
    none = np.empty((0, 1))
    if order is None:
        return np.empty(0), none
    keys = keys_of(order, jobs, estimate_s)
    if keys.shape[1] > 1:
        if len(choices.predicted):
            return np.empty(len(jobs)), _plain(keys, np.float64)
        keys = np.take_along_axis(keys, choices.choices[:, :1], axis=1)
    return _plain(keys.reshape(-1), np.float64), none
