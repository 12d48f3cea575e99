"""A Gaussian process over kernels and configurations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.configuration.baselines.relative import RelativePredictor, changes_of
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["FittedProcess", "GaussianProcess"]

_DIRECTIONS = 5
"""Principal components of the features: a length for each of a hundred counters cannot be learned."""

_ROWS_FOR_LENGTHS = 250
_MOST_ROWS = 2400
_STARTS = (0.1, 2.0, 0.01)
"""Variance, lengths and noise variance from which likelihood is climbed."""


@dataclass(frozen=True)
class GaussianProcess:
    """How a kernel's logarithms of time and power relative to the sample differ from the mean kernel's.

    The covariance is the product of one of the kernels, over principal components of the sample runs'
    features, and one of the configurations, over their settings; both are squared exponentials. Lengths are
    the likeliest for a part of the runs, as each step costs the cube of their number.
    """

    @property
    def name(self) -> str:
        """Its name."""
        return "gaussian-process"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> RelativePredictor:
        """Fit it to the kernels that ran at all samples; the seed draws runs where there are too many.

        Raises
        ------
        InputError
            If there is no such kernel.
        """
        # Imported here: predicting needs it not.
        from threadpoolctl import threadpool_limits

        known = changes_of(surfaces, samples)
        directions = _principal(known.points)
        kernels, settings = known.points @ directions, _coordinates(surfaces.space)
        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            time, power = (
                _fitted(kernels, settings, values, np.random.default_rng([seed, place]))
                for place, values in enumerate((known.time, known.power))
            )
        learned = FittedProcess(directions, kernels, time, power)
        return RelativePredictor(surfaces.space, tuple(samples), known.features, learned)


@dataclass(frozen=True, eq=False)
class _Quantity:
    """One of time and power.

    Parameters
    ----------
    mean
        ``(c,)`` Mean over the training kernels; NaN where none ran.
    lengths
        ``(r,)`` Length of each component of the features.
    weights
        ``(c, n)`` What a training kernel adds to each configuration, times its covariance with the kernel.
    """

    mean: Reals
    lengths: Reals
    weights: Reals

    def at(self, squares: Reals) -> Reals:
        """``(c,)`` For a kernel whose squared distances in each component are ``(n, r)``."""
        values: Reals = self.mean + self.weights @ np.exp(-0.5 * (squares / self.lengths**2).sum(axis=1))
        return values


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """A fitted process.

    Parameters
    ----------
    directions
        ``(f, r)`` Principal components of the features.
    kernels
        ``(n, r)`` The training kernels in them.
    time, power
        What was learned of each.
    """

    directions: Reals
    kernels: Reals
    time: _Quantity
    power: _Quantity

    def changes(self, point: Reals) -> tuple[Reals, Reals]:
        """Means of the process; see `Learned.changes`."""
        squares = (self.kernels - point @ self.directions) ** 2
        return self.time.at(squares), self.power.at(squares)


def _principal(points: Reals) -> Reals:
    """Directions of most variance, of shape ``(f, at most 5)``, each made to have deviation 1."""
    if not points.size:
        return np.empty((points.shape[1], 0))
    _, sizes, directions = np.linalg.svd(points, full_matrices=False)
    kept = min(_DIRECTIONS, int((sizes > 1e-9 * max(sizes.max(initial=0), 1)).sum()))
    # Which way a direction points is left open: its largest part is made positive.
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    scaled: Reals = (directions * signs[:, None])[:kept].T / sizes[:kept] * np.sqrt(len(points))
    return scaled


def _coordinates(space: Space) -> Reals:
    """Settings of ``c`` configurations, standardised; words and devices by a column for each."""
    columns = [np.where(np.isfinite(values), values, 0.0) for values in space.matrix.T]
    for name in space.words:
        words = np.array([str(each.settings.get(name, "")) for each in space.configurations])
        columns += [(words == word).astype(np.float64) for word in np.unique(words)]
    columns += [(space.device_numbers == number).astype(np.float64) for number in range(len(space.devices))]
    matrix = np.stack(columns, axis=1)
    matrix = matrix[:, np.ptp(matrix, axis=0) > 0]
    scaled: Reals = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    return scaled


def _fitted(kernels: Reals, settings: Reals, values: Reals, rng: np.random.Generator) -> _Quantity:
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    mean = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    kernel, configuration = np.nonzero(known)
    rows = np.hstack([kernels[kernel], settings[configuration]])
    if not rows.size:
        return _Quantity(mean, np.ones(kernels.shape[1]), np.zeros(values.T.shape))
    wanted = (values - mean)[kernel, configuration]
    part = _drawn(len(rows), _ROWS_FOR_LENGTHS, rng)
    covariance = _likeliest(rows[part], wanted[part])
    part = _drawn(len(rows), _MOST_ROWS, rng)
    # Kept apart from scikit-learn: the product of two covariances is summed over configurations beforehand.
    weights = np.zeros(values.shape)
    weights[kernel[part], configuration[part]] = _dual(covariance, rows[part], wanted[part])
    lengths = np.broadcast_to(covariance.k1.k2.length_scale, rows.shape[1:]).astype(np.float64)
    apart = settings / lengths[kernels.shape[1] :]
    alike = np.exp(-0.5 * ((apart[:, None, :] - apart[None, :, :]) ** 2).sum(axis=2))
    return _Quantity(mean, lengths[: kernels.shape[1]], covariance.k1.k1.constant_value * alike @ weights.T)


def _drawn(count: int, most: int, rng: np.random.Generator) -> Any:
    return np.sort(rng.choice(count, most, replace=False)) if count > most else np.arange(count)


def _likeliest(rows: Reals, wanted: Reals) -> Any:
    """The covariance under which the values are likeliest."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    variance, length, noise = _STARTS
    start = ConstantKernel(variance, (1e-6, 1e2)) * RBF(
        np.full(rows.shape[1], length), (0.1, 100.0)
    ) + WhiteKernel(noise, (1e-6, 1.0))
    with warnings.catch_warnings():
        # A length at its bound says that a component does not matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessRegressor(start, alpha=1e-9).fit(rows, wanted).kernel_


def _dual(covariance: Any, rows: Reals, wanted: Reals) -> Reals:
    from sklearn.gaussian_process import GaussianProcessRegressor

    fitted = GaussianProcessRegressor(covariance, alpha=1e-9, optimizer=None).fit(rows, wanted)
    weights: Reals = fitted.alpha_.ravel()
    return weights
