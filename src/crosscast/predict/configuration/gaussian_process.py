"""How alike a quantity is at two points: a kernel and a configuration each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_reals


@dataclass(frozen=True, eq=False)
class Covariance:
    """A covariance of two parts, both Matérn with smoothness 5/2.

    One part is shared by kernels that resemble each other. The other is of each kernel alone, over the
    settings: what its runs at some configurations say of the rest.
    """

    lengths: Reals  # `(f + s,)` Over which distance in each feature and each setting the shared part changes
    variance: float  # Variance of the shared part
    own_lengths: Reals  # `(s,)` The same of the part that is a kernel's own
    own_variance: float  # Its variance
    noise: float  # Variance of a single value about it

    def shared(self, ones: Reals, others: Reals) -> Reals:
        """``(p, q)`` Shared part between points of shapes ``(p, f + s)`` and ``(q, f + s)``."""
        return self.variance * matern(squares(ones / self.lengths, others / self.lengths))

    def own(self, ones: Reals, others: Reals) -> Reals:
        """``(p, q)`` A kernel's own part between configurations with settings ``(p, s)`` and ``(q, s)``."""
        return self.own_variance * matern(squares(ones / self.own_lengths, others / self.own_lengths))


def squares(ones: Reals, others: Reals) -> Reals:
    """``(p, q)`` Squared distances between points of shapes ``(p, d)`` and ``(q, d)``."""
    found: Reals = ones @ (-2 * others.T)
    found += (ones**2).sum(axis=1)[:, None]
    found += (others**2).sum(axis=1)
    return np.maximum(found, 0.0, out=found)


def matern(squared: Reals) -> Reals:
    """Matérn correlation of smoothness 5/2 by squared distances in lengths."""
    distance = np.sqrt(5 * squared)
    correlation: Reals = np.exp(-distance)
    # In place: this is what most of the time of a forecast goes to.
    polynomial = distance / 3
    polynomial += 1
    polynomial *= distance
    polynomial += 1
    correlation *= polynomial
    return correlation


def matern_slope(squared: Reals) -> Reals:
    """Derivative of `matern` by the squared distance."""
    distance = np.sqrt(5 * squared)
    slope: Reals = -5 / 6 * (1 + distance) * np.exp(-distance)
    return slope


_START_LENGTH = 2.0
_START_NOISE = 0.02
_START_OWN = 0.1
_LENGTH_DEVIATION = 1.5
"""Standard deviation of the logarithm of a length about the first guess, before anything was measured."""

_RANGE = 5.0
"""How far logarithms may go from the first guess."""

_LEAST_VARIANCE = 1e-8
_STEPS = 25


@dataclass(frozen=True, eq=False)
class _Parts:
    """What the likelihood is computed from, the same at each step."""

    squared: Reals
    """``(d, n, n)`` Squared differences in each coordinate; settings come last."""

    same: Reals
    """``(n, n)`` 1 where both values are of one kernel."""

    values: Reals
    features: int


def likeliest(points: Reals, features: int, kernels: Integers, values: Reals) -> Covariance:
    """Climb the likelihood of values, times the prior of lengths."""
    from scipy.optimize import minimize

    parts = _parts(points, features, kernels, values)
    d = points.shape[1]
    variance = max(float(values.var()), _LEAST_VARIANCE)
    start = np.log(
        np.concatenate(
            [
                np.full(2 * d - features, _START_LENGTH),
                [variance, _START_OWN * variance, _START_NOISE * variance],
            ]
        )
    )
    found = minimize(
        _cost,
        start,
        args=(parts,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(each - _RANGE, each + _RANGE) for each in start],
        options={"maxiter": _STEPS},
    )
    return _covariance(found.x, d, features)


def _parts(points: Reals, features: int, kernels: Integers, values: Reals) -> _Parts:
    return _Parts(
        (points.T[:, :, None] - points.T[:, None, :]) ** 2,
        np.equal.outer(kernels, kernels).astype(np.float64),
        values,
        features,
    )


def _covariance(logarithms: Reals, d: int, features: int) -> Covariance:
    found = np.exp(logarithms)
    lengths, own = found[:d], found[d : 2 * d - features]
    variance, own_variance, noise = found[-3:].tolist()
    return Covariance(lengths, variance, own, own_variance, noise)


def _cost(logarithms: Reals, parts: _Parts) -> tuple[float, Reals]:
    """Less the logarithm of likelihood and prior, and its gradient."""
    from scipy.linalg import cho_factor, cho_solve

    d, n = parts.squared.shape[:2]
    covariance = _covariance(logarithms, d, parts.features)
    weights, own_weights = covariance.lengths**-2.0, covariance.own_lengths**-2.0
    settings = parts.squared[parts.features :]
    distances = np.tensordot(weights, parts.squared, 1)
    own_distances = np.tensordot(own_weights, settings, 1)
    shared = covariance.variance * matern(distances)
    own = covariance.own_variance * matern(own_distances) * parts.same
    total = shared + own + (covariance.noise + _LEAST_VARIANCE) * np.eye(n)
    factor = cho_factor(total, lower=True)
    solved = cho_solve(factor, parts.values)
    # How the cost changes with each element of the covariance.
    slope = 0.5 * (cho_solve(factor, np.eye(n)) - np.outer(solved, solved))
    by_distance = slope * covariance.variance * matern_slope(distances)
    by_own = slope * covariance.own_variance * matern_slope(own_distances) * parts.same
    gradient = np.concatenate(
        [
            -2 * weights * np.tensordot(parts.squared, by_distance, 2),
            -2 * own_weights * np.tensordot(settings, by_own, 2),
            [(slope * shared).sum(), (slope * own).sum(), covariance.noise * np.trace(slope)],
        ]
    )
    lengths = logarithms[:-3] - np.log(_START_LENGTH)
    gradient[:-3] += lengths / _LENGTH_DEVIATION**2
    cost = 0.5 * parts.values @ solved + np.log(np.diag(factor[0])).sum()
    return float(cost + 0.5 * (lengths**2).sum() / _LENGTH_DEVIATION**2), gradient


_ALONE = 250_000
"""Multiplications of a matrix product that OpenBLAS does without waking other threads."""


class Posterior(NamedTuple):
    """The logarithm of a quantity at every configuration."""

    mean: Reals  # `(c,)` Mean
    variance: Reals  # `(c,)` Variance of a run about it


@dataclass(frozen=True, eq=False)
class Belief:
    """The logarithm of a quantity at every configuration, before any run of the kernel.

    Of the ``(c, c)`` covariances only those are computed that are asked for.
    """

    mean: Reals  # `(c,)` Mean
    # `(c, r)` What training told, in coordinates: their products are by how much covariances are less
    told: Reals
    covariance: Covariance  # The covariance before training
    points: Reals  # `(c, f + s)` Features of the kernel, and the settings
    features: int  # `f`

    def rows(self, numbers: Integers) -> Reals:
        """``(r, c)`` Covariance of some configurations with all, without noise."""
        points = self.points[numbers]
        settings = self.points[:, self.features :]
        before = self.covariance.shared(points, self.points)
        before += self.covariance.own(settings[numbers], settings)
        return before - small_product(self.told[numbers], self.told.T)

    def given(self, numbers: Integers, values: Reals) -> Posterior:
        """What is known after runs."""
        known = np.isfinite(values)
        at = numbers[known]
        noise = self.covariance.noise
        variance = self.covariance.variance + self.covariance.own_variance - (self.told**2).sum(axis=1)
        mean = self.mean
        if len(at):
            seen = self.rows(at)
            gain = np.linalg.solve(seen[:, at] + noise * np.eye(len(at)), seen)
            mean = mean + (values[known] - mean[at]) @ gain
            variance = variance - (gain * seen).sum(axis=0)
        return Posterior(mean, np.maximum(variance, 0.0) + noise)


def small_product(ones: Reals, others: Reals) -> Reals:
    """``(p, r)`` Product of matrices ``(p, q)`` and ``(q, r)``, some rows at a time.

    Threads that BLAS wakes for a larger product take longer to agree than it takes, if there is other work.
    """
    step = max(_ALONE // max(others.size, 1), 1)
    if step >= len(ones):
        product: Reals = ones @ others
        return product
    return np.concatenate([ones[start : start + step] @ others for start in range(0, len(ones), step)])


def total_of(parts: Mapping[str, Posterior]) -> Posterior:
    """Logarithm of a sum, from the logarithms of its parts.

    Parts are taken to be wrong independently, and the variance is that of the sum's linear approximation.
    """
    sizes = {name: np.exp(part.mean) for name, part in parts.items()}
    total = sum(sizes.values(), np.zeros(1))
    variance = sum(((sizes[name] / total) ** 2 * part.variance for name, part in parts.items()), np.zeros(1))
    return Posterior(np.log(total), variance)


_JITTER = 1e-8


@dataclass(frozen=True, eq=False)
class SparseProcess:
    """What is known of a quantity after training: a mean and a covariance at any points.

    The points that it remembers stand for all (deterministic training conditional: Quiñonero-Candela and
    Rasmussen 2005), so that a prediction costs the same however much it was fitted to.
    """

    covariance: Covariance  # The covariance before anything was measured
    points: Reals  # `(m, f + s)` The points that are remembered
    weights: Reals  # `(m,)` What each adds to the mean, times its covariance
    # `(m, r)` Makes covariances with them into coordinates; the product of two points' coordinates is by how
    # much their covariance is less after training
    known: Reals

    def at(self, points: Reals, features: int) -> Belief:
        """What is known of one kernel's values, without noise."""
        near = self.covariance.shared(points, self.points)
        found = small_product(near, self._columns)
        return Belief(found[:, -1], found[:, :-1], self.covariance, points, features)

    @cached_property
    def _columns(self) -> Reals:
        """``(m, r + 1)``."""
        return np.column_stack([self.known, self.weights])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        covariance = self.covariance
        return {
            "lengths": covariance.lengths,
            "own_lengths": covariance.own_lengths,
            "variances": np.array([covariance.variance, covariance.own_variance, covariance.noise]),
            "points": self.points,
            "weights": self.weights,
            "known": self.known,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> SparseProcess:
        """Make it from its arrays."""
        lengths, own = kept_reals(state, "lengths", 1), kept_reals(state, "own_lengths", 1)
        variances, points = kept_reals(state, "variances", 1), kept_reals(state, "points", 2)
        weights, known = kept_reals(state, "weights", 1), kept_reals(state, "known", 2)
        m, d = points.shape
        shapes = [*lengths.shape, *variances.shape, *weights.shape, len(known)]
        if shapes != [d, 3, m, m] or len(own) > d:
            raise InputError(
                f"model: points: expected arrays of {m} points with {d} coordinates, found shapes {shapes}"
            )
        if not (lengths > 0).all() or not (own > 0).all() or not (variances > 0).all():
            raise InputError("model: lengths: expected lengths and variances above 0, found others")
        return cls(Covariance(lengths, variances[0], own, variances[1], variances[2]), points, weights, known)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Covariances of training values with the points that are remembered; any part can be left out."""

    covariance: Covariance  # The covariance
    points: Reals  # `(m, f + s)` The points that are remembered
    remembered: Integers  # `(m,)` Which of the training points they are
    near: Reals  # `(n, m)` Shared part between the training points and these

    @classmethod
    def of(cls, covariance: Covariance, points: Reals, remembered: Integers) -> Weighed:
        """Those of training points ``(n, f + s)``, of which some are remembered."""
        kept = points[remembered]
        return cls(covariance, kept, remembered, covariance.shared(points, kept))

    def fitted(self, values: Reals, used: Flags) -> SparseProcess:
        """The process after some of the training values."""
        from scipy.linalg import solve_triangular

        kept = np.flatnonzero(used[self.remembered])
        near = self.near[:, kept]
        inner = near[self.remembered[kept]] + _JITTER * self.covariance.variance * np.eye(len(kept))
        # Makes covariances with the points into coordinates of variance 1.
        whitening = solve_triangular(np.linalg.cholesky(inner), np.eye(len(kept)), lower=True).T
        # What a kernel has for itself is noise to all others.
        noise = self.covariance.noise + self.covariance.own_variance
        rows = near[used] @ whitening
        told, axes = np.linalg.eigh(rows.T @ rows / noise)
        told = np.maximum(told, 0.0)
        whitened = whitening @ axes
        mean = (axes.T @ (rows.T @ values[used])) / (noise * (1 + told))
        return SparseProcess(
            self.covariance, self.points[kept], whitened @ mean, whitened * np.sqrt(told / (1 + told))
        )


def pivots(covariance: Covariance, points: Reals, most: int) -> Integers:
    """Which points tell most of all: each is the one of which those before it tell least."""
    n = len(points)
    left = np.full(n, covariance.variance)
    rows = np.empty((min(most, n), n))
    chosen: list[int] = []
    for place in range(len(rows)):
        pivot = int(np.argmax(left))
        if left[pivot] <= _JITTER * covariance.variance:
            break
        row = covariance.shared(points[pivot : pivot + 1], points)[0]
        row -= rows[:place, pivot] @ rows[:place]
        rows[place] = row / np.sqrt(left[pivot])
        left = np.maximum(left - rows[place] ** 2, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen, np.int64)
