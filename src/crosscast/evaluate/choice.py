"""What a forecast is for: which device to take, and in which order the devices come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluate.outcome import Outcome

__all__ = ["NEAR", "Choices", "choices"]

NEAR = 1.1
"""Slowdown up to which a choice is near the best."""


@dataclass(frozen=True)
class Choices:
    """How the choice of a device went, for each of ``n`` kernels.

    All of shape ``(n,)``, and not a number where fewer than two devices were measured.

    Parameters
    ----------
    slowdown
        Measured time on the chosen device over the least measured time.
    fastest, within_10
        1 where the slowdown is 1, or at most `NEAR`, and 0 elsewhere.
    kendall_tau
        Kendall's tau-b of forecasts and measurements over the devices whose cells are scored; not a number
        also where either is the same on all of them.
    """

    slowdown: Reals
    fastest: Reals
    within_10: Reals
    kendall_tau: Reals


def choices(outcome: Outcome) -> Choices:
    """Choose, for each kernel, the device with the least time.

    Times are the predicted ones, or the measured one where the model was told it. Only devices on which
    the kernel was measured can be chosen, as the choice could not be judged otherwise.
    """
    there = np.isfinite(outcome.measured)
    expected = np.where(outcome.known, outcome.measured, outcome.centre)
    chosen = np.argmin(np.where(there & ~np.isnan(expected), expected, np.inf), axis=1)
    least = np.where(there, outcome.measured, np.inf).min(axis=1)
    taken = np.take_along_axis(outcome.measured, chosen[:, None], axis=1)[:, 0]
    slowdown = np.exp(taken - least)
    slowdown[there.sum(axis=1) < 2] = np.nan
    return Choices(slowdown, _flags(slowdown, 1.0), _flags(slowdown, NEAR), _kendall(outcome))


def _flags(slowdown: Reals, most: float) -> Reals:
    return np.where(np.isnan(slowdown), np.nan, slowdown <= most)


def _kendall(outcome: Outcome) -> Reals:
    """Kendall's tau-b of each row.

    `scipy.stats.kendalltau` takes one row at a time, and there are thousands with probes.
    """
    expected = np.where(outcome.counted, outcome.centre, np.nan)
    orders = [_pair_order(times) for times in (expected, np.where(outcome.counted, outcome.measured, np.nan))]
    there = ~np.isnan(orders[0] + orders[1])
    first, second = (np.where(there, order, 0.0) for order in orders)
    agreement = (first * second).sum(axis=1)
    untied = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    tau = np.full(len(agreement), np.nan)
    np.divide(agreement, untied, out=tau, where=untied > 0)
    return tau


def _pair_order(times: Reals) -> Reals:
    """For each row and each pair of devices, -1, 0 or 1 as the first is faster, equal or slower."""
    first, second = np.triu_indices(times.shape[1], 1)
    order: Reals = np.sign(times[:, first] - times[:, second])
    return order
