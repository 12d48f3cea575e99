"""The time of one mix, by a function of who still runs."""

from collections.abc import Callable, Sequence

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.prediction.corun.slowdowns import mix_times


def mix_time(
    isolated_s: Sequence[float], slowdowns_of: Callable[[tuple[int, ...]], Sequence[float]]
) -> float:
    """Time of one mix."""

    def asked(_: Integers, places: Integers) -> Reals:
        return np.array([slowdowns_of(tuple(places.tolist()))], dtype=np.float64)

    times = np.array([isolated_s], dtype=np.float64)
    whole = asked(np.zeros(1, np.int64), np.arange(len(isolated_s))) if len(isolated_s) > 1 else times
    return float(mix_times(times, whole, asked)[0])
