"""Which device to take by a forecast, what the next best costs, and how likely that is the better one."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from crosscast.predict.gaussian import GaussianPredictor
from crosscast.predict.grid import Flags, Integers, Reals
from crosscast.predict.model import Forecast

__all__ = ["Choice", "choose", "ranks"]

_NOISE = 0.03
"""Standard deviation of the logarithm of a measured time."""

_MIDDLE = 0.5


@dataclass(frozen=True)
class Choice:
    """The device to take for a kernel.

    Parameters
    ----------
    device
        Key of the device with the least predicted time.
    runner_up
        Key of the next; ``None`` if there is no other.
    factor
        Predicted time of the next over that of the first.
    doubt
        Probability that the next is in truth the faster of the two; ``None`` where it is not known.
    """

    device: str
    runner_up: str | None = None
    factor: float | None = None
    doubt: float | None = None


def ranks(forecast: Forecast) -> Integers:
    """Place of each device in the order of the predicted times, from 1, of shape ``(n, d)``."""
    order = np.argsort(forecast.centre, axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(1, order.shape[1] + 1)[None, :], axis=1)
    return places


def choose(predictor: GaussianPredictor, forecast: Forecast, row: int, measured: Flags) -> Choice:
    """Choose a device.

    Parameters
    ----------
    predictor
        What made the forecast.
    forecast
        The forecast.
    row
        Number of the kernel in it.
    measured
        On which of the predictor's devices the kernel was measured, of shape ``(d,)``.
    """
    order = np.argsort(forecast.centre[row], kind="stable")
    names = [forecast.devices[place] for place in order.tolist()]
    if len(names) < 2:
        return Choice(names[0])
    ratio = float(forecast.centre[row, order[1]] / forecast.centre[row, order[0]])
    return Choice(
        names[0], names[1], ratio, _doubt(predictor, names[0], names[1], float(np.log(ratio)), measured)
    )


def _doubt(
    predictor: GaussianPredictor, first: str, second: str, apart: float, measured: Flags
) -> float | None:
    """Probability that the second is faster, by the errors that the two have in common.

    Errors are taken as normal, and as much wider than the covariance says as they were on held-out
    applications.
    """
    keys = [device.key for device in predictor.devices]
    if not {first, second} <= set(keys):
        return None
    left = _left(predictor.covariance, measured)
    one, other = keys.index(first), keys.index(second)
    variance = left[one, one] + left[other, other] - 2 * left[one, other]
    width = float(predictor.factors(int(measured.sum()), _MIDDLE)) / NormalDist().inv_cdf(0.5 + _MIDDLE / 2)
    return NormalDist().cdf(-apart / (width * float(np.sqrt(max(variance, _NOISE**2)))))


def _left(covariance: Reals, measured: Flags) -> Reals:
    """Covariance of the errors that is left when some devices are measured."""
    across = covariance[:, measured]
    within = covariance[np.ix_(measured, measured)] + _NOISE**2 * np.eye(int(measured.sum()))
    left: Reals = covariance - across @ np.linalg.solve(within, across.T)
    return left
