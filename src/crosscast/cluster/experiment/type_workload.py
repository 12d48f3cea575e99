"""The jobs of a table of types on machines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.cluster.job_types import JobTypes, for_machines
from crosscast.cluster.jobs import Integers, Jobs, Reals
from crosscast.cluster.machines import Machine
from crosscast.cluster.placements.workload import Workload
from crosscast.errors import InputError

__all__ = ["Needs", "type_workload"]

Needs = frozenset[str]
"""What is asked of each type: ``vector`` and ``seconds``, where a placement or estimates need it."""


def type_workload(types: JobTypes, machines: Sequence[Machine], needs: Needs = frozenset()) -> Workload:
    """A job of each type, in the order of the table, with exact estimates.

    Predicted times are the predicted vector scaled so that it has, on the source of the prediction, the time
    that was measured there: the one run that was profiled is all that is known of a job.

    Parameters
    ----------
    types
        The table.
    machines
        Where they run.
    needs
        What must be there in all rows.

    Raises
    ------
    InputError
        If a machine's device is not in the table, a type runs on no machine, or has not what is needed.
    """
    here = for_machines(types, machines)
    run_s = np.where(np.isnan(here.run_s), np.inf, here.run_s)
    runs = np.isfinite(run_s)
    vector = here.predicted
    with np.errstate(divide="ignore", invalid="ignore"):
        predicted_s = vector * _scale(types)[:, None]
    has_vector = np.where(runs, np.isfinite(vector), True).all(axis=1)
    has_seconds = np.where(runs, np.isfinite(predicted_s), True).all(axis=1)
    for need, known, expected in (
        ("vector", has_vector, "predicted: expected a prediction for each machine on which it runs"),
        ("seconds", has_seconds, "source: expected a device on which it has a time and a prediction above 0"),
    ):
        if need in needs and not known.all():
            row = int(np.argmin(known))
            raise InputError(f"job type {row + 1} ({types.application[row]}): {expected}, found none")
    user, users = _users(types.user)
    jobs = Jobs(
        number=np.arange(1, len(types) + 1),
        submit_s=np.zeros(len(types)),
        procs=here.procs,
        run_s=run_s,
        estimate_s=run_s,
        user=user,
        users=users,
    )
    return Workload(
        jobs,
        tuple(machines),
        uses_gpu=here.uses_gpu,
        vector=vector if has_vector.all() else None,
        predicted_s=predicted_s if has_seconds.all() else None,
    )


def _scale(types: JobTypes) -> Reals:
    """Seconds of 1 in each type's vector, of shape ``(t,)``; not a number where nothing says."""
    scale = np.full(len(types), np.nan)
    run_s = types.run_s
    columns = {device: column for column, device in enumerate(types.devices)}
    for row, source in enumerate(types.source):
        if source in columns:
            column = columns[source]
            scale[row] = run_s[row, column] / types.predicted[row, column]
    return scale


def _users(names: Sequence[str | None]) -> tuple[Integers | None, tuple[str, ...]]:
    if None in names:
        return None, ()
    users = tuple(dict.fromkeys(str(name) for name in names))
    places = {name: place for place, name in enumerate(users)}
    return np.array([places[str(name)] for name in names]), users
