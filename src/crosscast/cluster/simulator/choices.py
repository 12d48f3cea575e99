"""Placements as the engine takes them: machines that each job can run on, the best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.cluster.jobs import Integers, Jobs, Reals
from crosscast.cluster.machines import Machine
from crosscast.cluster.placement import Bound, Placement, Preferred
from crosscast.errors import InputError

__all__ = ["Choices", "choices_of"]


class Choices(NamedTuple):
    """Machines for ``n`` jobs.

    Parameters
    ----------
    choices
        Places of the machines of each job, the best first, of shape ``(n, k)``, −1 where there are no more;
        −1 for jobs that are bound when they are submitted.
    group
        Place of the set of machines of each job in `members`, of shape ``(n,)``; 0 for the latter.
    members
        1 for the machines of each set, of shape ``(c, m)``; a row for each machine if every job is bound.
    predicted
        Times by which jobs are bound on submission, of shape ``(n, m)``, infinite where they cannot run; of
        no rows if they are not.
    """

    choices: Integers
    group: Integers
    members: Integers
    predicted: Reals


def choices_of(jobs: Jobs, machines: Sequence[Machine], placement: Placement) -> Choices:
    """Check a placement, and leave out the machines on which jobs cannot run.

    Raises
    ------
    InputError
        If the placement does not fit the jobs and machines, or no machine is left for a job.
    """
    if isinstance(placement, Bound):
        return _bound(jobs, machines, placement.machine)
    if isinstance(placement, Preferred):
        return _preferred(jobs, machines, placement.order)
    return _completion(jobs, machines, placement.predicted_s)


def _bound(jobs: Jobs, machines: Sequence[Machine], machine: Integers) -> Choices:
    if machine.shape != (len(jobs),):
        raise InputError(f"placement: machine: expected {len(jobs)} places, found shape {machine.shape}")
    _check_places(jobs, machine, 0, len(machines), "machine")
    _check_runs(jobs, machines, _runs_on(jobs, machines, machine[:, None])[:, 0], machine)
    choices = machine.astype(np.int64).reshape(-1, 1)
    return Choices(choices, choices.reshape(-1), np.eye(len(machines), dtype=np.int64), np.empty((0, 1)))


def _preferred(jobs: Jobs, machines: Sequence[Machine], order: Integers) -> Choices:
    if order.ndim != 2 or len(order) != len(jobs):
        raise InputError(
            f"placement: order: expected shape ({len(jobs)}, {len(machines)}), found {order.shape}"
        )
    _check_places(jobs, order, -1, len(machines), "order")
    usable = _runs_on(jobs, machines, order)
    _check_runs(jobs, machines, np.any(usable, axis=1), None)
    # What is left moves to the front.
    places = np.argsort(~usable, axis=1, kind="stable")
    choices = np.take_along_axis(np.where(usable, order, -1), places, axis=1).astype(np.int64)
    member = np.zeros((len(jobs), len(machines)), np.bool_)
    rows, columns = np.nonzero(choices >= 0)
    member[rows, choices[rows, columns]] = True
    sets, group = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)
    members = np.unpackbits(sets, axis=1, count=len(machines)).astype(np.int64)
    if choices.shape[1] == 1:
        # With one column, the engine takes the machine itself for the set.
        return Choices(choices, choices.reshape(-1), np.eye(len(machines), dtype=np.int64), np.empty((0, 1)))
    return Choices(choices, group.reshape(-1).astype(np.int64), members, np.empty((0, 1)))


def _completion(jobs: Jobs, machines: Sequence[Machine], predicted_s: Reals) -> Choices:
    expected = (len(jobs), len(machines))
    if predicted_s.shape != expected:
        raise InputError(f"placement: predicted_s: expected shape {expected}, found {predicted_s.shape}")
    wrong = ~(predicted_s >= 0).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"placement: predicted_s: job {jobs.number[row]}: expected times of at least 0 s, "
            f"found {predicted_s[row]}"
        )
    everywhere = np.broadcast_to(np.arange(len(machines)), expected)
    usable = _runs_on(jobs, machines, everywhere) & np.isfinite(predicted_s)
    _check_runs(jobs, machines, np.any(usable, axis=1), None)
    choices = np.full((len(jobs), 1), -1, np.int64)
    predicted = np.where(usable, predicted_s, np.inf)
    return Choices(choices, np.zeros(len(jobs), np.int64), np.eye(len(machines), dtype=np.int64), predicted)


def _check_places(jobs: Jobs, places: Integers, least: int, machines: int, name: str) -> None:
    wrong = (places < least) | (places >= machines)
    if wrong.any():
        row, *column = (int(place) for place in np.argwhere(wrong)[0])
        raise InputError(
            f"placement: {name}: job {jobs.number[row]}: expected places from {least} to {machines - 1}, "
            f"found {places[row, *column]}"
        )


def _runs_on(jobs: Jobs, machines: Sequence[Machine], places: Integers) -> npt.NDArray[np.bool_]:
    """Whether each job can run on each of the machines of its row."""
    sizes = np.array([machine.procs for machine in machines])
    usable = (places >= 0) & (jobs.procs[:, None] <= sizes[places])
    if jobs.run_s.shape[1] == 1:
        return usable & np.isfinite(jobs.run_s)
    return usable & np.isfinite(np.take_along_axis(jobs.run_s, places, axis=1))


def _check_runs(
    jobs: Jobs, machines: Sequence[Machine], runs: npt.NDArray[np.bool_], bound: Integers | None
) -> None:
    """Refuse a job that cannot run on any machine of its row, or on the one that it is bound to."""
    if runs.all():
        return
    row = int(np.argmin(runs))
    where = "any machine" if bound is None else machines[bound[row]].name
    widest = max(machine.procs for machine in machines) if bound is None else machines[bound[row]].procs
    if jobs.procs[row] > widest:
        raise InputError(
            f"jobs: job {jobs.number[row]}: procs: expected at most the {widest} of {where}, "
            f"found {jobs.procs[row]}"
        )
    raise InputError(
        f"jobs: job {jobs.number[row]}: expected a machine wide enough on which it runs, found none"
        + (" in its list" if bound is None else f" (it is bound to {where})")
    )
