"""Which devices to compare where not all work was timed on all of them."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Flags

__all__ = ["full_devices"]


def full_devices(known: Flags) -> list[int]:
    """Devices that make the largest full table: the most of devices times work that all of them have.

    They are taken in the order of how much work each has, so that one with gaps does not cost the others
    theirs; of two tables with as many times, that with more devices.

    Parameters
    ----------
    known
        Whether there is a time, by work and device, of shape ``(w, d)``.

    Returns
    -------
    list of int
        Numbers of the devices, in order; none if no work has times on two devices.

    Examples
    --------
    >>> full_devices(np.array([[True, True, False], [True, True, False], [True, True, True]]))
    [0, 1]
    """
    order = np.argsort(-known.sum(axis=0), kind="stable")
    # Column k: whether a piece of work has times on the k + 1 fullest devices.
    shared = np.logical_and.accumulate(known[:, order], axis=1).sum(axis=0)
    times = shared * np.arange(1, len(order) + 1)
    times[:1] = 0
    if not times.any():
        return []
    best = len(order) - 1 - int(np.argmax(times[::-1]))
    return sorted(order[: best + 1].tolist())
