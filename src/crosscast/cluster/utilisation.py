"""How much of machines is occupied: in all, and at each moment."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Reals
from crosscast.cluster.schedule import Schedule
from crosscast.cluster.steps import Steps, steps_of

__all__ = ["occupied", "processor_seconds"]


def processor_seconds(schedule: Schedule) -> Reals:
    """Processor-seconds that jobs occupied on each machine, of shape ``(m,)``."""
    used: Reals = np.bincount(
        schedule.machine, weights=schedule.jobs.procs * schedule.ran_s, minlength=len(schedule.machines)
    ).astype(np.float64)
    return used


def occupied(schedule: Schedule, machine: int | None = None) -> Steps:
    """Processors that are occupied at each moment, on one machine or on all.

    Parameters
    ----------
    schedule
        The schedule.
    machine
        Place of the machine; ``None`` for all.
    """
    own = slice(None) if machine is None else schedule.machine == machine
    procs = schedule.jobs.procs[own]
    return steps_of(
        np.concatenate((schedule.start_s[own], schedule.end_s[own])), np.concatenate((procs, -procs))
    )
