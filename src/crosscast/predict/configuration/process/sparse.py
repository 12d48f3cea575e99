"""A Gaussian process that remembers a few points in the place of all that it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.process.covariance import Covariance
from crosscast.predict.configuration.process.posterior import Belief, small_product
from crosscast.predict.state import kept_reals

__all__ = ["SparseProcess", "Weighed", "pivots"]

_JITTER = 1e-8


@dataclass(frozen=True, eq=False)
class SparseProcess:
    """What is known of a quantity after training: a mean and a covariance at any points.

    The points that it remembers stand for all (deterministic training conditional: Quiñonero-Candela and
    Rasmussen 2005), so that a prediction costs the same however much it was fitted to.

    Parameters
    ----------
    covariance
        The covariance before anything was measured.
    points
        ``(m, f + s)`` The points that are remembered.
    weights
        ``(m,)`` What each adds to the mean, times its covariance.
    known
        ``(m, r)`` Makes covariances with them into coordinates; the product of two points' coordinates is by
        how much their covariance is less after training.
    """

    covariance: Covariance
    points: Reals
    weights: Reals
    known: Reals

    def at(self, points: Reals, features: int) -> Belief:
        """What is known of one kernel's values, without noise.

        Parameters
        ----------
        points
            ``(p, f + s)`` The kernel's features, and settings; the features are the same throughout.
        features
            ``f``.
        """
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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
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
    """Covariances of training values with the points that are remembered; any part can be left out.

    Parameters
    ----------
    covariance
        The covariance.
    points
        ``(m, f + s)`` The points that are remembered.
    remembered
        ``(m,)`` Which of the training points they are.
    near
        ``(n, m)`` Shared part between the training points and these.
    """

    covariance: Covariance
    points: Reals
    remembered: Integers
    near: Reals

    @classmethod
    def of(cls, covariance: Covariance, points: Reals, remembered: Integers) -> Weighed:
        """Those of training points ``(n, f + s)``, of which some are remembered."""
        kept = points[remembered]
        return cls(covariance, kept, remembered, covariance.shared(points, kept))

    def fitted(self, values: Reals, used: Flags) -> SparseProcess:
        """The process after some of the training values.

        Parameters
        ----------
        values
            ``(n,)`` The values; those that are not used do not matter.
        used
            ``(n,)`` Which of them are used. Of the points only these are remembered, as it would be if there
            were no others: else it would be surer of those left out than of kernels that are new.
        """
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
    """Which points tell most of all: each is the one of which those before it tell least.

    Parameters
    ----------
    covariance
        The covariance, of which the shared part counts.
    points
        ``(n, f + s)`` The points.
    most
        How many are wanted; fewer, where these tell all.
    """
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
