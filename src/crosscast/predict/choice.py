"""Which device to take by a forecast, what the next best costs, and how likely that is the better one."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.conditioning import Scatter, shared_shifts, spread
from crosscast.predict.gaussian import GaussianPredictor
from crosscast.predict.model import Forecast

__all__ = ["Choice", "choose", "ranks"]

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


def choose(predictor: GaussianPredictor, forecast: Forecast, row: int, errors: Reals) -> Choice:
    """Choose a device.

    Parameters
    ----------
    predictor
        What made the forecast.
    forecast
        The forecast.
    row
        Number of the kernel in it.
    errors
        Measured less predicted logarithm of the kernel's time on each of the predictor's devices, of shape
        ``(d,)``; not a number where it was not measured.
    """
    order = np.argsort(forecast.centre[row], kind="stable")
    names = [forecast.devices[place] for place in order.tolist()]
    if len(names) < 2:
        return Choice(names[0])
    first, second = forecast.centre[row, order[:2]]
    doubt = _doubt(predictor, names[0], names[1], float(np.log(second / first)), errors)
    return Choice(names[0], names[1], float(second / first), doubt)


def _doubt(
    predictor: GaussianPredictor, first: str, second: str, apart: float, errors: Reals
) -> float | None:
    """Probability that the second is faster, by the errors that the two do not share.

    Errors are taken as normal, and as much wider than the covariance says as they were on held-out
    applications.
    """
    keys = [device.key for device in predictor.devices]
    if not {first, second} <= set(keys):
        return None
    difference = np.zeros((1, len(keys)))
    difference[0, keys.index(first)], difference[0, keys.index(second)] = -1.0, 1.0
    scatter = Scatter(predictor.covariance, shared_shifts(predictor.devices))
    sd = float(spread(scatter, errors[None, :], difference)[0, 0])
    probes = int(np.isfinite(errors).sum())
    width = float(predictor.factors(probes, _MIDDLE)) / NormalDist().inv_cdf(0.5 + _MIDDLE / 2)
    return NormalDist().cdf(-apart / (width * sd))
