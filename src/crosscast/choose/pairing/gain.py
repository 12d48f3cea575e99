"""What is gained when jobs share a device: the time that they take one after another less that together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.predict.corun.overlap import bag_times

__all__ = ["bag_gain", "expected_gain", "pair_gain"]


def pair_gain(lengths: Reals, slowdowns: Reals) -> Reals:
    """Gain of pairs, in the unit of the lengths; below 0 where they take longer together.

    Until the first ends, after ``t = min(La sa, Lb sb)``, they do ``t (1/sa + 1/sb)`` of work instead of
    ``t``; what is left of the other then runs alone. It is `bag_gain` of two members, and quicker.

    Parameters
    ----------
    lengths, slowdowns
        Times of the jobs alone, and slowdowns of both while both run, of shapes that fit each other and end
        with 2.

    Examples
    --------
    >>> round(float(pair_gain(np.array([1.0, 2.0]), np.array([1.5, 1.5]))), 6)
    0.5
    >>> float(pair_gain(np.array([1.0, 1.0]), np.array([2.0, 2.0])))
    0.0
    """
    ends = lengths * slowdowns
    first = np.minimum(ends[..., 0], ends[..., 1])
    gain: Reals = first * (1.0 / slowdowns[..., 0] + 1.0 / slowdowns[..., 1] - 1.0)
    return gain


def bag_gain(lengths: Reals, slowdowns: Reals, slowdowns_left: Callable[[Flags], Reals]) -> Reals:
    """Gain of ``b`` bags of ``n`` members each, of shape ``(b,)``.

    Parameters
    ----------
    lengths
        Times of the jobs alone, of shape ``(b, n)``.
    slowdowns, slowdowns_left
        Slowdowns in the whole bags, and of those that still run; see
        `crosscast.predict.corun.overlap.bag_times`.

    Raises
    ------
    InputError
        If a length or slowdown is not above 0.
    """
    gain: Reals = lengths.sum(axis=1) - bag_times(lengths, slowdowns, slowdowns_left).time_s
    return gain


def expected_gain(gains: Reals, fits: Reals) -> Reals:
    """What bags are worth before they run: the gain to be expected of those that are broken up if they lose.

    Bags that turn out to be slower than one job after another, or do not fit, are run one after another: they
    gain nothing. The mean of gains above 0 is not the gain of the mean: what is not known of a bag is a
    chance, too, as losses are cut off.

    Parameters
    ----------
    gains
        Gains by errors of the model, drawn as `crosscast.choose.pairing.draws` does, of shape ``(k, b)``.
    fits
        Probability that each bag fits on the device; not a number where it is not known, which is taken for
        certain, of shape ``(b,)``.

    Returns
    -------
    array
        Of shape ``(b,)``.
    """
    worth: Reals = np.maximum(gains, 0.0).mean(axis=0) * np.where(np.isnan(fits), 1.0, fits)
    return worth
