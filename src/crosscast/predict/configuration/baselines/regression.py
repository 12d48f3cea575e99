"""One regression for all kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.configuration.baselines.relative import Changes, RelativePredictor, changes_of
from crosscast.predict.configuration.published.design import design_of
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["FittedRegression", "GlobalRegression"]

_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class GlobalRegression:
    """Ridge regression of the logarithms of time and power relative to the sample.

    On the settings, products of two of them, and products of these with the features of the sample runs. The
    penalty is that of the least error when each training application is left out in turn.
    """

    @property
    def name(self) -> str:
        """Its name."""
        return "regression"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> RelativePredictor:
        """Fit it to the kernels that ran at all samples. Nothing is random, so the seed is not used.

        Raises
        ------
        InputError
            If there is none.
        """
        # Imported here: predicting needs it not.
        from threadpoolctl import threadpool_limits

        known = changes_of(surfaces, samples)
        settings = design_of(surfaces.space).with_constants
        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            coefficients = [_fitted(known, values, settings) for values in (known.time, known.power)]
        unknown = ~np.isfinite(known.time).any(axis=0)
        time, power = (np.where(unknown, np.nan, each @ settings.T) for each in coefficients)
        return RelativePredictor(
            surfaces.space, tuple(samples), known.features, FittedRegression(time, power)
        )


@dataclass(frozen=True, eq=False)
class FittedRegression:
    """What each feature adds to the logarithms at ``c`` configurations.

    Parameters
    ----------
    time, power
        ``(1 + f, c)`` The first row is added whatever the features; NaN where no training kernel ran.
    """

    time: Reals
    power: Reals

    def changes(self, point: Reals) -> tuple[Reals, Reals]:
        """See `Learned.changes`."""
        terms = np.concatenate(([1.0], point))
        return terms @ self.time, terms @ self.power


def _fitted(known: Changes, values: Reals, settings: Reals) -> Reals:
    """Coefficients of the settings for each feature, of shape ``(1 + f, p)``."""
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.model_selection import LeaveOneGroupOut

    kernel, configuration = np.nonzero(np.isfinite(values))
    terms = np.hstack([np.ones((len(known.points), 1)), known.points])
    products = terms[kernel][:, :, None] * settings[configuration][:, None, :]
    rows, wanted = products.reshape(len(kernel), -1), values[kernel, configuration]
    groups = known.groups[kernel]
    if len(np.unique(groups)) > 1:
        folds = list(LeaveOneGroupOut().split(rows, groups=groups))
        model = RidgeCV(_PENALTIES, fit_intercept=False, cv=folds, scoring="neg_mean_squared_error")
    else:
        model = Ridge(1.0, fit_intercept=False)
    coefficients: Reals = model.fit(rows, wanted).coef_.reshape(terms.shape[1], settings.shape[1])
    return coefficients
