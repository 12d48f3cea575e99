"""The models of configurations by name, and baselines that predict the change from a sample run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError, expect_known
from crosscast.prediction.configuration.bailey2014 import PUBLISHED_CLUSTERS, PublishedModel
from crosscast.prediction.configuration.data import (
    ConfigurationModel,
    ConfigurationSpace,
    Observed,
    SurfaceForecast,
    Surfaces,
    plain_forecast,
    reference_samples,
    sample_indices,
)
from crosscast.prediction.configuration.features import SampleFeatures, TrainingRuns, design_of
from crosscast.prediction.configuration.process import ProcessModel
from crosscast.prediction.trained import single_threaded

DEFAULT_MODEL = "model"

MODELS: Mapping[str, Callable[[], ConfigurationModel]] = MappingProxyType(
    {
        "model": ProcessModel,
        "published": PublishedModel,
        f"published-{PUBLISHED_CLUSTERS}": lambda: PublishedModel(PUBLISHED_CLUSTERS),
        "published-log": lambda: PublishedModel(logarithms=True),
    }
)
"""Models that can be trained and stored."""


def model_named(name: str) -> ConfigurationModel:
    """Return a new model of `MODELS`."""
    expect_known(name, MODELS, field="model")
    return MODELS[name]()


Learned = Callable[[Reals], Reals]
"""Function from a kernel's standardised features ``(f,)`` to log ratios ``(c,)`` over the sample run."""


@dataclass(frozen=True, eq=False)
class BaselinePredictor:
    """A fitted baseline; see `ConfigurationPredictor`. It cannot be stored."""

    kind: ClassVar[str] = ""
    fitted: ClassVar[None] = None

    space: ConfigurationSpace
    samples: tuple[int, ...]
    features: SampleFeatures
    time: Learned
    power: Learned

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power; measured values replace predictions where there are runs."""
        indices = sample_indices(self.space, self.samples, observed)
        point = self.features.standardized(self.features.values(observed, indices))
        runs = np.array(indices)[reference_samples(self.space, self.samples)]
        time_s = observed.time_s[runs] * np.exp(self.time(point))
        return plain_forecast(time_s, observed.power_w[runs] * np.exp(self.power(point)), observed)


class Baseline:
    """A model that fits time and power separately, in the same way."""

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> BaselinePredictor:
        """Fit to the kernels that ran at all samples; the seed is of models that draw runs."""
        runs = TrainingRuns.of(surfaces, samples)
        # Synchronizing BLAS threads takes longer than these small matrices do.
        with single_threaded():
            time, power = (
                self.learn(runs, np.log(values / values[:, runs.scaled_from]), [seed, number])
                for number, values in enumerate((runs.surfaces.time_s, runs.surfaces.power_w))
            )
        return BaselinePredictor(surfaces.space, tuple(samples), runs.features, time, power)

    def learn(self, known: TrainingRuns, values: Reals, seed: list[int]) -> Learned:
        """Fit one quantity: log ratios ``(n, c)`` over the sample run; NaN where not known."""
        raise NotImplementedError


_LEAST_DISTANCE = 1e-6


@dataclass(frozen=True)
class NearestKernels(Baseline):
    """Changes of time and power of the nearest training kernels, weighted by inverse distance."""

    count: int = 3  # Number of kernels

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError.of(field="nearest", expected="at least 1 kernel", found=f"{self.count}")

    @property
    def name(self) -> str:
        """``nearest``, with the number of kernels where it is not 3."""
        return "nearest" if self.count == 3 else f"nearest-{self.count}"

    def learn(self, known: TrainingRuns, values: Reals, seed: list[int]) -> Learned:
        """Store the kernels; where none of the nearest ran, all that did are used; NaN where none ran."""
        points = known.features.standardized(known.values)

        def changes(point: Reals) -> Reals:
            distances = np.sqrt(((points - point) ** 2).sum(axis=1))
            weights = 1 / np.maximum(distances, _LEAST_DISTANCE)
            near = np.argsort(distances, kind="stable")[: self.count]
            means = _mean(values[near], weights[near])
            return np.where(np.isnan(means), _mean(values, weights), means)

        return changes


def _mean(values: Reals, weights: Reals) -> Reals:
    """Mean over the first axis of the known values; NaN where none is known."""
    known = np.isfinite(values)
    total = weights @ known
    means: Reals = np.full(len(total), np.nan)
    return np.divide(weights @ np.where(known, values, 0.0), total, out=means, where=total > 0)


_DIRECTIONS = 5
"""Principal components of the features: lengths of a hundred counters cannot be fitted."""

_ROWS_FOR_LENGTHS = 250
_MOST_ROWS = 2400
_STARTS = (0.1, 2.0, 0.01)
"""Variance, lengths and noise variance from which the likelihood is maximised."""


@dataclass(frozen=True)
class GaussianProcess(Baseline):
    """Log ratios of a kernel's time and power over the sample run, less those of the mean kernel.

    The covariance is a product of squared exponentials: over principal components of the features, and
    settings.
    """

    name: str = field(default="gaussian-process", init=False)

    def learn(self, known: TrainingRuns, values: Reals, seed: list[int]) -> Learned:
        """Fit to a random part of the runs where there are too many."""
        points = known.features.standardized(known.values)
        directions = _principal(points)
        kernels, settings = points @ directions, _coordinates(known.surfaces.space)
        mean, lengths, weights = _fit_product(kernels, settings, values, np.random.default_rng(seed))

        def changes(point: Reals) -> Reals:
            squares = (kernels - point @ directions) ** 2
            log_ratios: Reals = mean + weights @ np.exp(-0.5 * (squares / lengths**2).sum(axis=1))
            return log_ratios

        return changes


def _principal(points: Reals) -> Reals:
    """Directions of most variance, of shape ``(f, at most 5)``, each scaled to deviation 1."""
    if not points.size:
        return np.empty((points.shape[1], 0))
    _, sizes, directions = np.linalg.svd(points, full_matrices=False)
    count = min(_DIRECTIONS, int((sizes > 1e-9 * max(sizes.max(initial=0), 1)).sum()))
    # The sign of a direction is arbitrary: its largest component is made positive.
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    scaled: Reals = (directions * signs[:, None])[:count].T / sizes[:count] * np.sqrt(len(points))
    return scaled


def _coordinates(space: ConfigurationSpace) -> Reals:
    """Standardised settings of ``c`` configurations, with an indicator for each text and device."""
    columns = [np.where(np.isfinite(values), values, 0.0) for values in space.matrix.T]
    for name in space.words:
        settings = space.values_of(name)
        columns += [(settings == word).astype(np.float64) for word in np.unique(settings)]
    columns += [(space.device_numbers == number).astype(np.float64) for number in range(len(space.devices))]
    matrix = np.stack(columns, axis=1)
    matrix = matrix[:, np.ptp(matrix, axis=0) > 0]
    scaled: Reals = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    return scaled


def _fit_product(
    kernels: Reals, settings: Reals, values: Reals, rng: np.random.Generator
) -> tuple[Reals, Reals, Reals]:
    """Fit to kernels ``(n, r)`` and settings ``(c, s)``.

    Returns the mean ``(c,)`` over kernels, NaN where none ran; the lengths ``(r,)``; and coefficients of the
    kernels' covariances ``(c, n)``.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    known = np.isfinite(values)
    counts = known.sum(axis=0)
    mean = np.nansum(values, axis=0) / np.where(counts > 0, counts, np.nan)
    kernel, configuration = np.nonzero(known)
    rows = np.hstack([kernels[kernel], settings[configuration]])
    if not rows.size:
        return mean, np.ones(kernels.shape[1]), np.zeros(values.T.shape)
    target = (values - mean)[kernel, configuration]
    variance, length, noise = _STARTS
    lengths = RBF(np.full(rows.shape[1], length), (0.1, 100.0))
    start = ConstantKernel(variance, (1e-6, 1e2)) * lengths + WhiteKernel(noise, (1e-6, 1.0))
    part = _drawn(len(rows), _ROWS_FOR_LENGTHS, rng)
    with warnings.catch_warnings():
        # A length at its bound means that a component does not matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        covariance = GaussianProcessRegressor(start, alpha=1e-9).fit(rows[part], target[part]).kernel_
    part = _drawn(len(rows), _MOST_ROWS, rng)
    fitted = GaussianProcessRegressor(covariance, alpha=1e-9, optimizer=None).fit(rows[part], target[part])
    # Not by scikit-learn: the product of two covariances is summed over configurations beforehand.
    weights = np.zeros(values.shape)
    weights[kernel[part], configuration[part]] = fitted.alpha_.ravel()
    scale = np.broadcast_to(covariance.k1.k2.length_scale, rows.shape[1:]).astype(np.float64)
    scaled = settings / scale[kernels.shape[1] :]
    correlation = np.exp(-0.5 * ((scaled[:, None, :] - scaled[None, :, :]) ** 2).sum(axis=2))
    return mean, scale[: kernels.shape[1]], covariance.k1.k1.constant_value * correlation @ weights.T


def _drawn(count: int, most: int, rng: np.random.Generator) -> Integers:
    return np.sort(rng.choice(count, most, replace=False)) if count > most else np.arange(count)


_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class GlobalRegression(Baseline):
    """Ridge regression on the settings, products of two of them, and products of these with the features.

    The penalty has the least error when each training application is held out in turn.
    """

    name: str = field(default="regression", init=False)

    def learn(self, known: TrainingRuns, values: Reals, seed: list[int]) -> Learned:
        """Fit the regression; NaN where no training kernel ran."""
        from sklearn.linear_model import Ridge, RidgeCV
        from sklearn.model_selection import LeaveOneGroupOut

        settings = design_of(known.surfaces.space).with_constants
        points = known.features.standardized(known.values)
        kernel, configuration = np.nonzero(np.isfinite(values))
        terms = np.hstack([np.ones((len(points), 1)), points])
        products = terms[kernel][:, :, None] * settings[configuration][:, None, :]
        rows, groups = products.reshape(len(kernel), -1), known.groups[kernel]
        if len(np.unique(groups)) > 1:
            folds = list(LeaveOneGroupOut().split(rows, groups=groups))
            model = RidgeCV(_PENALTIES, fit_intercept=False, cv=folds, scoring="neg_mean_squared_error")
        else:
            model = Ridge(1.0, fit_intercept=False)
        coefficients = model.fit(rows, values[kernel, configuration]).coef_
        # (1 + f, c) Contribution of a unit of each feature; the first row is the constant.
        contributions = coefficients.reshape(terms.shape[1], settings.shape[1]) @ settings.T
        contributions = np.where(np.isfinite(values).any(axis=0), contributions, np.nan)
        return lambda point: np.concatenate(([1.0], point)) @ contributions


BASELINES: Mapping[str, Callable[[], ConfigurationModel]] = MappingProxyType(
    {"nearest": NearestKernels, "regression": GlobalRegression, "gaussian-process": GaussianProcess}
)
"""Baselines besides the published models."""
