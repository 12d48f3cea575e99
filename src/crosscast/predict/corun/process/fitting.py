"""Sizes of a covariance that make what was measured most likely, under priors (maximum a posteriori)."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.corun.process.covariance import Sizes, Training
from crosscast.predict.corun.process.fitted import inverse_of

__all__ = ["fitted_sizes"]

_STEPS = 30
_LIMIT = 6.0


def fitted_sizes(training: Training, values: Reals) -> Sizes:
    """Fit the sizes.

    Parameters
    ----------
    training
        The rows.
    values
        What was measured of each, of mean 0 and about variance 1, of shape ``(n,)``.
    """
    # Imported here: predicting with fitted sizes needs no SciPy.
    from scipy.optimize import minimize

    start = Sizes.unfitted(training.traited.near.shape[1])
    centre, spread = start.vector, start.prior_spread

    def loss(vector: Reals) -> tuple[float, Reals]:
        sizes = start.moved(vector)
        products = training.products(sizes)
        covariance = np.tensordot(sizes.variances, products, 1)
        inverse, log_determinant = inverse_of(covariance, sizes.noise)
        weighted = inverse @ values
        away = (vector - centre) / spread
        likelihood = values @ weighted + log_determinant
        gap = inverse - np.outer(weighted, weighted)
        slope = np.append(training.slope(sizes, products, gap), sizes.noise * np.trace(gap))
        return float(likelihood + away @ away) / 2, slope / 2 + away / spread

    bounds = [(each - _LIMIT, each + _LIMIT) for each in centre]
    found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS})
    return start.moved(found.x)
