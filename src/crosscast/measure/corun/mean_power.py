"""Mean power while all members of a bag ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.measure.corun.window import Span
from crosscast.measure.sensors.sensor import Reading

__all__ = ["powers"]


def powers(readings: Sequence[Reading], started_s: float, time: Span) -> dict[str, float]:
    """Mean power in a time, in watts, by domain.

    Energy grows on the straight line between two readings. Before the first and after the last nothing is
    known: the mean is that of the part of the time which the sensor watched.

    Parameters
    ----------
    readings
        What the sensor saw.
    started_s
        When it began, by the clock of `time`.
    time
        The time.
    """
    found = {}
    for reading in readings:
        times_s = started_s + np.asarray(reading.times_s)
        start, end = np.clip(time, times_s[0], times_s[-1])
        if end > start:
            before, after = np.interp((start, end), times_s, reading.energies_j)
            found[reading.domain] = float((after - before) / (end - start))
    return found
