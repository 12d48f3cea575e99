"""The Pareto frontier over power and performance."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals

__all__ = ["pareto_frontier"]


def pareto_frontier(time_s: Reals, power_w: Reals) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Configurations than which no other is as fast at as little power.

    Of configurations that agree in both, the first is taken.

    Parameters
    ----------
    time_s, power_w
        ``(c,)`` Time and power of each configuration; those that are not finite do not count.

    Returns
    -------
    ndarray
        Numbers of the configurations on the frontier, by rising power, and thus by falling time
        (Bailey et al. 2014, section III-B).

    Examples
    --------
    >>> pareto_frontier(np.array([4.0, 2.0, 3.0]), np.array([10.0, 30.0, 40.0])).tolist()
    [0, 1]
    """
    known = np.flatnonzero(np.isfinite(time_s) & np.isfinite(power_w))
    rising = known[np.lexsort((time_s[known], power_w[known]))]
    if not rising.size:
        return rising
    least = np.minimum.accumulate(time_s[rising])
    better = np.concatenate(([True], time_s[rising[1:]] < least[:-1]))
    return rising[better]
