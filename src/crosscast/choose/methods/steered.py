"""A model that learns from each run under the cap, and says whether another is worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.choose.methods.fits import fitted
from crosscast.choose.methods.selected import least_bad
from crosscast.choose.selection import Objective, merit, probability_under
from crosscast.choose.walk import Chooser, Walk
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.process.model import ProcessModel
from crosscast.predict.configuration.process.predictor import ProcessPredictor
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["WORTH", "Steered", "next_number"]

WORTH = 0.03
"""Share of the best performance expected that a change of configuration must bring on average."""

_QUANTILES = np.linspace(0.02, 0.98, 25)
"""Quantiles of time over which a gain is averaged."""


@dataclass(frozen=True)
class Steered:
    """The model with limiting: each run corrects the forecast, and the next configuration is chosen by it.

    The first configuration is the one with the best expected performance, where it is worth nothing over the
    cap. After each run the configuration is tried that is expected to gain most over the best that was
    measured within the cap (the expected improvement of Mockus 1975, times the probability of keeping to the
    cap), as long as that is `WORTH` a change. It ends at the best that was measured within the cap. The last
    change that is left is spent on what is best without another.

    Parameters
    ----------
    model
        The model.
    name
        Name of the method.
    worth
        Share of the best performance expected that a change must bring.
    """

    model: ProcessModel = field(default_factory=ProcessModel)
    name: str = "model+fl"
    worth: float = WORTH

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Fit the model; see `Method.fit`."""
        return _SteeredChooser(fitted(self.model, surfaces, samples, seed), self.worth)


@dataclass(frozen=True)
class _SteeredChooser:
    predictor: ProcessPredictor
    worth: float
    uses_budget: bool = True

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        prior = self.predictor.prior(observed)
        current: int | None = None
        left = budget + 1
        while left > 0:
            forecast = prior.forecast(observed)
            number = next_number(forecast, power_cap, available, current=current, left=left, worth=self.worth)
            if number == current:
                return
            current, left = number, left - 1
            run = yield number
            observed = observed.and_run(run)


def next_number(
    forecast: SurfaceForecast,
    power_cap: float,
    available: Flags,
    *,
    current: int | None,
    left: int,
    worth: float = WORTH,
    objective: Objective = "performance",
) -> int:
    """Which configuration to take next.

    Parameters
    ----------
    forecast
        What is known of the kernel after its runs.
    power_cap
        The cap, in watts.
    available
        ``(c,)`` Configurations that may be taken.
    current
        The configuration that it runs at; ``None`` before the first choice.
    left
        Changes that are left, at least 1; the first choice is one.
    worth
        Share of the best objective expected that a change must bring.
    objective
        What is to be as good as possible.

    Returns
    -------
    int
        Its number; `current`, if no change is worth it.
    """
    within = probability_under(forecast, power_cap, available)
    worths = merit(forecast.time.centre, forecast.power.centre, objective)
    expected = np.where(available & np.isfinite(worths), within * worths, 0.0)
    if not expected.any():
        # Nothing is thought to keep to the cap.
        return least_bad(forecast, power_cap, available)
    needed = worth * expected.max()
    if current is None:
        # What turns out to be over the cap can be left for what is best without, if a change is left.
        rescued = (1 - within) * (expected.max() - needed) if left > 1 else 0.0
        return int(np.argmax(np.where(expected > 0, expected + rescued, -1.0)))
    kept = np.where(forecast.measured, expected, -1.0)
    best = int(np.argmax(kept))
    if left == 1:
        number = int(np.argmax(expected))
        return number if expected[number] > expected[current] + needed else current
    gains = _gains(forecast, within, worths, max(kept[best], 0.0), objective)
    number = int(np.argmax(np.where(available & ~forecast.measured, gains, -1.0)))
    if gains[number] > needed and not forecast.measured[number]:
        return number
    return best if kept[best] > expected[current] else current


def _gains(
    forecast: SurfaceForecast, within: Reals, worths: Reals, best: float, objective: Objective
) -> Reals:
    """``(c,)`` By how much each configuration is expected to be better than the best that is measured."""
    times = np.stack([forecast.time.quantile(share) for share in _QUANTILES])
    values = merit(times, forecast.power.centre, objective)
    better: Reals = within * np.maximum(values - best, 0.0).mean(axis=0)
    return np.where(np.isfinite(worths), better, 0.0)
