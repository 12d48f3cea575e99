"""What is known of a kernel by its sample runs, and after others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from crosscast.predict.configuration.process.posterior import Belief, Posterior, total_of
from crosscast.predict.configuration.process.quantities import TIME, powers_of
from crosscast.predict.configuration.process.sparse import SparseProcess
from crosscast.predict.configuration.surfaces import Observed

__all__ = ["FittedQuantity", "Prior", "positive"]


@dataclass(frozen=True, eq=False)
class FittedQuantity:
    """What was learned of time, or of the power of one domain.

    Its logarithm relative to the sample run from which a configuration is scaled is `mean` plus the process.

    Parameters
    ----------
    mean
        ``(c,)`` Mean over the training programs.
    process
        How kernels differ from it.
    """

    mean: Reals
    process: SparseProcess

    def prior(self, points: Reals, features: int, references: Reals) -> Belief:
        """What is known of a kernel by its features alone.

        Parameters
        ----------
        points
            ``(c, f + s)`` Its features, and the settings.
        features
            ``f``.
        references
            ``(c,)`` Logarithm of the sample run from which each configuration is scaled.
        """
        relative = self.process.at(points, features)
        return replace(relative, mean=self.mean + relative.mean + references)


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of a kernel by the features that its sample runs give it.

    Parameters
    ----------
    quantities
        Time and the parts of the power, by name.
    errors
        Standardised errors on left-out programs of time and of power.
    """

    quantities: Mapping[str, Belief]
    errors: tuple[Reals, Reals]

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """What is known after runs; see `ConfigurationPredictor.forecast`."""
        parts = tuple(name for name in self.quantities if name != TIME)
        powers = powers_of(parts, observed.power_w, observed.domains)
        with np.errstate(divide="ignore", invalid="ignore"):
            told = {name: np.log(values) for name, values in {TIME: observed.time_s, **powers}.items()}
        after = {name: each.given(observed.numbers, told[name]) for name, each in self.quantities.items()}
        time = after.pop(TIME)
        power = total_of(after)
        sound = positive(observed.time_s) & positive(observed.power_w)
        measured = np.zeros(len(power.mean), np.bool_)
        measured[observed.numbers[sound]] = True
        return SurfaceForecast(
            _quantity(time, self.errors[0], observed, observed.time_s),
            _quantity(power, self.errors[1], observed, observed.power_w),
            measured,
        )


def _quantity(logarithm: Posterior, errors: Reals, observed: Observed, values: Reals) -> Quantity:
    centre, spread = np.exp(logarithm.mean), np.sqrt(logarithm.variance)
    known = positive(values)
    centre[observed.numbers[known]] = values[known]
    spread[observed.numbers[known]] = 0.0
    return Quantity(centre, spread, errors)


def positive(values: Reals) -> Flags:
    """What can have been measured: finite numbers above 0, which a sensor that fails does not return."""
    found: Flags = (values > 0) & np.isfinite(values)
    return found
