"""Forecasts of models that do not know how sure they are."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from crosscast.predict.configuration.surfaces import Observed

__all__ = ["plain_forecast"]

_NONE = np.empty(0)


def plain_forecast(time_s: Reals, power_w: Reals, observed: Observed) -> SurfaceForecast:
    """What was predicted, and what was measured where it was.

    Parameters
    ----------
    time_s, power_w
        ``(c,)`` Predicted time and power of each configuration; they stay as they are.
    observed
        The kernel's runs.

    Returns
    -------
    SurfaceForecast
        Its spreads are 0 where a run tells the value, and NaN elsewhere.
    """
    measured = np.zeros(len(time_s), np.bool_)
    measured[observed.numbers] = True
    spread = np.where(measured, 0.0, np.nan)
    time, power = time_s.copy(), power_w.copy()
    time[observed.numbers] = observed.time_s
    power[observed.numbers] = observed.power_w
    return SurfaceForecast(Quantity(time, spread, _NONE), Quantity(power, spread, _NONE), measured)
