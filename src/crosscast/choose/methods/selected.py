"""Any model of configurations as a method: it forecasts from the sample runs and chooses once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crosscast.arrays import Flags
from crosscast.choose.methods.fits import fitted
from crosscast.choose.selection import probability_under, select
from crosscast.choose.walk import Chooser, Walk
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.model import ConfigurationModel, ConfigurationPredictor
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["SelectedModel", "least_bad"]


@dataclass(frozen=True)
class SelectedModel:
    """Takes the best configuration by the forecast of a model, open loop (Bailey et al. 2014, section III-C).

    Where none is likely enough to keep to the cap, it takes what `least_bad` says.

    Parameters
    ----------
    model
        The model.
    name
        Name of the method.
    confidence
        Probability with which the cap must be kept; see `crosscast.choose.selection.select`.
    baseline
        Whether other methods are compared with it.
    tolerance
        Share of the cap by which a predicted power may be above it, without a confidence; none, as published.
    """

    model: ConfigurationModel
    name: str
    confidence: float | None = None
    baseline: bool = False
    tolerance: float = 0.0

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Fit the model; see `Method.fit`."""
        predictor = fitted(self.model, surfaces, samples, seed)
        return _SelectedChooser(predictor, self.confidence, self.tolerance)


def least_bad(forecast: SurfaceForecast, power_cap: float, available: Flags) -> int:
    """What to take where nothing is likely enough to keep to a cap.

    Parameters
    ----------
    forecast
        What was predicted.
    power_cap
        The cap, in watts.
    available
        ``(c,)`` Configurations that may be taken.

    Returns
    -------
    int
        The configuration that is most likely to keep to it; of those that are as likely, the one with the
        least predicted power.
    """
    known = available & np.isfinite(forecast.power.centre)
    probability = np.where(known, probability_under(forecast, power_cap, known), 0.0)
    power = np.where(known, forecast.power.centre, np.inf)
    return int(np.lexsort((power, -probability, ~known, ~available))[0])


@dataclass(frozen=True)
class _SelectedChooser:
    predictor: ConfigurationPredictor
    confidence: float | None
    tolerance: float
    latest: list[tuple[Observed, SurfaceForecast]] = field(default_factory=list)
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        forecast = self._forecast(observed)
        chosen = select(
            forecast,
            power_cap,
            confidence=self.confidence,
            tolerance=self.tolerance,
            available=available,
        )
        yield least_bad(forecast, power_cap, available) if chosen is None else chosen

    def _forecast(self, observed: Observed) -> SurfaceForecast:
        """The forecast, which is the same whatever the cap: a new cap needs no new one."""
        if not self.latest or self.latest[0][0] is not observed:
            self.latest[:] = [(observed, self.predictor.forecast(observed))]
        return self.latest[0][1]
