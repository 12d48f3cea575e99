"""How many jobs wait at each moment."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.schedule import Schedule
from crosscast.cluster.steps import Steps, steps_of

__all__ = ["queue_length"]


def queue_length(schedule: Schedule) -> Steps:
    """Jobs that are submitted and have not started; one that starts at once never waits."""
    submit_s = schedule.jobs.submit_s
    one = np.ones(len(submit_s), dtype=np.int64)
    return steps_of(np.concatenate((submit_s, schedule.start_s)), np.concatenate((one, -one)))
