"""Points of made-up kernels, and values drawn for them."""

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.configuration.gaussian_process import Covariance

FEATURES = 2


def made_covariance(*, own: float = 0.2, noise: float = 0.05) -> Covariance:
    return Covariance(np.array([1.5, 3.0, 0.8, 2.0]), 1.3, np.array([0.7, 1.2]), own, noise)


def made_points(kernels: int = 4, settings: int = 6, seed: int = 0) -> tuple[Reals, Integers]:
    """Points ``(n, 4)`` of kernels with two features, at the same settings each, and their kernels."""
    rng = np.random.default_rng(seed)
    features, places = rng.normal(size=(kernels, FEATURES)), rng.normal(size=(settings, 2))
    points = np.hstack([np.repeat(features, settings, axis=0), np.tile(places, (kernels, 1))])
    return points, np.repeat(np.arange(kernels), settings)
