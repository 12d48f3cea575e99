"""The weight of each pair of jobs in the matching: what it is worth to let them share the device."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.choose.pairing.gain import pair_gain

__all__ = ["AT_ONCE", "LIKELY", "drawn_gains", "may_share", "turned_out"]

LIKELY = 0.5
"""Bags that fit with a lower probability are not proposed."""

AT_ONCE = 1 << 14
"""So many gains are computed at once: more would not stay in the cache."""


def drawn_gains(lengths: Reals, slowdowns: Reals, spreads: Reals, relative: Reals, chosen: Integers) -> Reals:
    """Gains of pairs by errors of the model, of shape ``(k, p)``.

    Parameters
    ----------
    lengths, slowdowns
        Times of the jobs alone, and predicted slowdowns, of shape ``(p, 2)``.
    spreads
        How large errors of these slowdowns are, see `crosscast.predict.corun.left_out.LeftOut.spread`, of
        shape ``(p, 2)``.
    relative
        Sets of relative errors, as `crosscast.choose.pairing.draws.ErrorBags.drawn` draws them, of shape
        ``(sets, k, 2)``.
    chosen
        Which set each pair's errors are from, of shape ``(p,)``.
    """
    gains = np.empty((relative.shape[1], len(lengths)))
    step = max(1, AT_ONCE // max(1, len(lengths)))
    for start in range(0, len(gains), step):
        some = slice(start, start + step)
        errors = relative[:, some].swapaxes(0, 1)[:, chosen]
        gains[some] = pair_gain(lengths, turned_out(slowdowns, spreads, errors))
    return gains


def turned_out(slowdowns: Reals, spreads: Reals, relative: Reals) -> Reals:
    """True slowdowns, if predictions err so; arrays of shapes that fit each other.

    A bag makes nobody faster than alone, but for what was not measured well.
    """
    true: Reals = np.maximum(slowdowns * np.exp(-relative * spreads), 1.0)
    return true


def may_share(gains: Reals, fits: Reals) -> Flags:
    """Bags that gain something on average, and are no more likely not to fit than to fit, of shape ``(b,)``.

    Parameters
    ----------
    gains
        Gains by errors of the model, of shape ``(k, b)``.
    fits
        Probability that they fit; not a number where it is not known, of shape ``(b,)``.
    """
    allowed: Flags = (gains.mean(axis=0) > 0) & ~(fits < LIKELY)
    return allowed
