"""A sparse Gaussian process over kernels and configurations, and its conditioning on a kernel's runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.serialization import Array, Nested, Stored


@dataclass(frozen=True, eq=False)
class Covariance(Stored):
    """A covariance of two parts, both Matérn with smoothness 5/2.

    One is shared by kernels with similar features, the other is of each kernel alone over the settings.
    """

    lengths: Annotated[Reals, Array("d", above=0)]  # Of the shared part, over f features and s settings
    variance: Annotated[float, Array(above=0)]  # Of the shared part
    own_lengths: Annotated[Reals, Array("s", above=0)]  # Of a kernel's own part, over the settings
    own_variance: Annotated[float, Array(above=0)]
    noise: Annotated[float, Array(above=0)]  # Variance of a single value

    def shared(self, ones: Reals, others: Reals) -> Reals:
        """Shared part ``(p, q)`` between points of shapes ``(p, f + s)`` and ``(q, f + s)``."""
        return self.variance * matern(squares(ones / self.lengths, others / self.lengths))

    def own(self, ones: Reals, others: Reals) -> Reals:
        """A kernel's own part ``(p, q)`` between configurations with settings ``(p, s)`` and ``(q, s)``."""
        return self.own_variance * matern(squares(ones / self.own_lengths, others / self.own_lengths))


def squares(ones: Reals, others: Reals) -> Reals:
    """Squared distances ``(p, q)`` between points of shapes ``(p, d)`` and ``(q, d)``."""
    distances: Reals = ones @ (-2 * others.T)
    distances += (ones**2).sum(axis=1)[:, None]
    distances += (others**2).sum(axis=1)
    return np.maximum(distances, 0.0, out=distances)


def matern(squared: Reals) -> Reals:
    """Matérn correlation of smoothness 5/2 by squared distances in lengths."""
    distance = np.sqrt(5 * squared)
    correlation: Reals = np.exp(-distance)
    # In place, as most of the time of a forecast is spent here.
    polynomial = distance / 3
    polynomial += 1
    polynomial *= distance
    polynomial += 1
    correlation *= polynomial
    return correlation


def matern_slope(squared: Reals) -> Reals:
    """Derivative of `matern` by the squared distance."""
    distance = np.sqrt(5 * squared)
    return -5 / 6 * (1 + distance) * np.exp(-distance)


_START_LENGTH = 2.0
_START_NOISE = 0.02
_START_OWN = 0.1
_LENGTH_DEVIATION = 1.5  # Standard deviation of the prior of a length's logarithm about its start
_RANGE = 5.0  # Largest change of a logarithm from its start
_LEAST_VARIANCE = 1e-8
_STEPS = 25


class _Likelihood(NamedTuple):
    """Inputs of the likelihood of ``n`` values, constant over the steps."""

    squared: Reals  # (d, n, n) squared differences in each coordinate; settings come last
    same: Reals  # (n, n) 1 where both values are of one kernel
    values: Reals
    features: int

    def covariance(self, logarithms: Reals) -> Covariance:
        """The covariance with these parameters, which are logarithms."""
        d, parameters = len(self.squared), np.exp(logarithms)
        variance, own_variance, noise = parameters[-3:].tolist()
        return Covariance(
            parameters[:d], variance, parameters[d : 2 * d - self.features], own_variance, noise
        )

    def cost(self, logarithms: Reals) -> tuple[float, Reals]:
        """Negative logarithm of likelihood times prior, and its gradient."""
        from scipy.linalg import cho_factor, cho_solve

        n = len(self.values)
        covariance = self.covariance(logarithms)
        weights, own_weights = covariance.lengths**-2.0, covariance.own_lengths**-2.0
        settings = self.squared[self.features :]
        distances = np.tensordot(weights, self.squared, 1)
        own_distances = np.tensordot(own_weights, settings, 1)
        shared = covariance.variance * matern(distances)
        within = covariance.own_variance * matern(own_distances) * self.same
        total = shared + within + (covariance.noise + _LEAST_VARIANCE) * np.eye(n)
        factor = cho_factor(total, lower=True)
        solved = cho_solve(factor, self.values)
        # Derivative of the cost by each element of the covariance.
        slope = 0.5 * (cho_solve(factor, np.eye(n)) - np.outer(solved, solved))
        by_distance = slope * covariance.variance * matern_slope(distances)
        by_own = slope * covariance.own_variance * matern_slope(own_distances) * self.same
        gradient = np.concatenate(
            [
                -2 * weights * np.tensordot(self.squared, by_distance, 2),
                -2 * own_weights * np.tensordot(settings, by_own, 2),
                [(slope * shared).sum(), (slope * within).sum(), covariance.noise * np.trace(slope)],
            ]
        )
        lengths = logarithms[:-3] - np.log(_START_LENGTH)
        gradient[:-3] += lengths / _LENGTH_DEVIATION**2
        cost = 0.5 * self.values @ solved + np.log(np.diag(factor[0])).sum()
        return float(cost + 0.5 * (lengths**2).sum() / _LENGTH_DEVIATION**2), gradient


def fit_covariance(points: Reals, features: int, kernels: Integers, values: Reals) -> Covariance:
    """Maximise the likelihood of values, times the prior of lengths."""
    from scipy.optimize import minimize

    likelihood = _Likelihood(
        (points.T[:, :, None] - points.T[:, None, :]) ** 2,
        np.equal.outer(kernels, kernels).astype(np.float64),
        values,
        features,
    )
    variance = max(float(values.var()), _LEAST_VARIANCE)
    lengths = np.full(2 * points.shape[1] - features, _START_LENGTH)
    start = np.log(np.concatenate([lengths, [variance, _START_OWN * variance, _START_NOISE * variance]]))
    result = minimize(
        likelihood.cost,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(each - _RANGE, each + _RANGE) for each in start],
        options={"maxiter": _STEPS},
    )
    return likelihood.covariance(result.x)


class Marginals(NamedTuple):
    """The logarithm of a quantity at every configuration."""

    mean: Reals  # (c,)
    variance: Reals  # (c,) of a run about the mean


_ALONE = 250_000
"""Largest number of multiplications for which OpenBLAS uses one thread."""


def small_product(ones: Reals, others: Reals) -> Reals:
    """Product ``(p, r)`` of matrices ``(p, q)`` and ``(q, r)``, by parts, so that no threads wait."""
    step = max(_ALONE // max(others.size, 1), 1)
    if step >= len(ones):
        product: Reals = ones @ others
        return product
    return np.concatenate([ones[start : start + step] @ others for start in range(0, len(ones), step)])


@dataclass(frozen=True, eq=False)
class QuantityPosterior:
    """One kernel's logarithms of a quantity after training, before any run of the kernel."""

    mean: Reals  # (c,)
    explained: Reals  # (c, r) products of rows are the reductions of covariances by training
    covariance: Covariance  # Before training
    points: Reals  # (c, f + s) features of the kernel, and the settings
    features: int  # f

    def rows(self, numbers: Integers) -> Reals:
        """Covariance ``(r, c)`` of some configurations with all, without noise."""
        settings = self.points[:, self.features :]
        before = self.covariance.shared(self.points[numbers], self.points)
        before += self.covariance.own(settings[numbers], settings)
        return before - small_product(self.explained[numbers], self.explained.T)

    def condition_on(self, numbers: Integers, values: Reals) -> Marginals:
        """Marginals given runs at some configurations; values that are NaN are ignored."""
        known = np.isfinite(values)
        indices = numbers[known]
        noise = self.covariance.noise
        variance = self.covariance.variance + self.covariance.own_variance - (self.explained**2).sum(axis=1)
        mean = self.mean
        if len(indices):
            covariances = self.rows(indices)
            gain = np.linalg.solve(covariances[:, indices] + noise * np.eye(len(indices)), covariances)
            mean = mean + (values[known] - mean[indices]) @ gain
            variance = variance - (gain * covariances).sum(axis=0)
        return Marginals(mean, np.maximum(variance, 0.0) + noise)


def sum_of_parts(parts: Mapping[str, Marginals]) -> Marginals:
    """Logarithm of a sum of parts with independent errors; its variance is linearised."""
    sizes = {name: np.exp(part.mean) for name, part in parts.items()}
    total = sum(sizes.values(), np.zeros(1))
    variance = sum(((sizes[name] / total) ** 2 * part.variance for name, part in parts.items()), np.zeros(1))
    return Marginals(np.log(total), variance)


_JITTER = 1e-8


@dataclass(frozen=True, eq=False)
class SparseProcess(Stored):
    """A process after training: a mean and a covariance at any points.

    It uses inducing points (deterministic training conditional: Quiñonero-Candela and Rasmussen 2005).
    """

    covariance: Annotated[Covariance, Nested(flat=True)]  # Prior
    points: Annotated[Reals, Array("m d")]  # The inducing points
    weights: Annotated[Reals, Array("m")]  # Coefficients of the covariances in the mean
    # (m, r) Maps covariances with the inducing points to coordinates; the product of two points' coordinates
    # is the reduction of their covariance by training
    known: Annotated[Reals, Array("m r")]

    def check(self) -> None:
        """Raise InputError unless lengths and points have the same coordinates."""
        d = self.points.shape[1]
        lengths, own_lengths = len(self.covariance.lengths), len(self.covariance.own_lengths)
        if lengths != d or own_lengths > d:
            raise InputError.of(
                field="lengths", expected=f"those of {d} coordinates", found=[lengths, own_lengths]
            )

    def at(self, points: Reals, features: int) -> QuantityPosterior:
        """Posterior of one kernel's values, without noise."""
        covariances = self.covariance.shared(points, self.points)
        products = small_product(covariances, self._columns)
        return QuantityPosterior(products[:, -1], products[:, :-1], self.covariance, points, features)

    @cached_property
    def _columns(self) -> Reals:  # (m, r + 1)
        return np.column_stack([self.known, self.weights])


@dataclass(frozen=True, eq=False)
class TrainingCovariances:
    """Covariances of training values with the inducing points; any of the values can be left out."""

    covariance: Covariance
    points: Reals  # (m, f + s) the inducing points
    inducing: Integers  # (m,) their indices in the training points
    near: Reals  # (n, m) shared part between the training points and these

    @classmethod
    def of(cls, covariance: Covariance, points: Reals, inducing: Integers) -> TrainingCovariances:
        """Compute those of training points ``(n, f + s)``, with the inducing points among them."""
        chosen = points[inducing]
        return cls(covariance, chosen, inducing, covariance.shared(points, chosen))

    def condition_on(self, values: Reals, used: Flags) -> SparseProcess:
        """The process given some of the training values."""
        from scipy.linalg import solve_triangular

        chosen = np.flatnonzero(used[self.inducing])
        near = self.near[:, chosen]
        inner = near[self.inducing[chosen]] + _JITTER * self.covariance.variance * np.eye(len(chosen))
        # Maps covariances with the points to coordinates of variance 1.
        whitening = solve_triangular(np.linalg.cholesky(inner), np.eye(len(chosen)), lower=True).T
        # A kernel's own part is noise for all others.
        noise = self.covariance.noise + self.covariance.own_variance
        rows = near[used] @ whitening
        ratios, axes = np.linalg.eigh(rows.T @ rows / noise)
        ratios = np.maximum(ratios, 0.0)
        whitened = whitening @ axes
        mean = (axes.T @ (rows.T @ values[used])) / (noise * (1 + ratios))
        known = whitened * np.sqrt(ratios / (1 + ratios))
        return SparseProcess(self.covariance, self.points[chosen], whitened @ mean, known)


def inducing_points(covariance: Covariance, points: Reals, most: int) -> Integers:
    """Choose points by a pivoted Cholesky decomposition: each has the largest remaining variance."""
    n = len(points)
    remaining = np.full(n, covariance.variance)
    rows = np.empty((min(most, n), n))
    chosen: list[int] = []
    for step in range(len(rows)):
        pivot = int(np.argmax(remaining))
        if remaining[pivot] <= _JITTER * covariance.variance:
            break
        row = covariance.shared(points[pivot : pivot + 1], points)[0]
        row -= rows[:step, pivot] @ rows[:step]
        rows[step] = row / np.sqrt(remaining[pivot])
        remaining = np.maximum(remaining - rows[step] ** 2, 0.0)
        remaining[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen, np.int64)
