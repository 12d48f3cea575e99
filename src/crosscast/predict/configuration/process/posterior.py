"""What is known of one kernel: before and after its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.configuration.process.covariance import Covariance

__all__ = ["Belief", "Posterior", "small_product", "total_of"]

_ALONE = 250_000
"""Multiplications of a matrix product that OpenBLAS does without waking other threads."""


class Posterior(NamedTuple):
    """The logarithm of a quantity at every configuration.

    Parameters
    ----------
    mean
        ``(c,)`` Mean.
    variance
        ``(c,)`` Variance of a run about it.
    """

    mean: Reals
    variance: Reals


@dataclass(frozen=True, eq=False)
class Belief:
    """The logarithm of a quantity at every configuration, before any run of the kernel.

    Of the ``(c, c)`` covariances only those are computed that are asked for.

    Parameters
    ----------
    mean
        ``(c,)`` Mean.
    told
        ``(c, r)`` What training told, in coordinates: their products are by how much covariances are less.
    covariance
        The covariance before training.
    points
        ``(c, f + s)`` Features of the kernel, and the settings.
    features
        ``f``.
    """

    mean: Reals
    told: Reals
    covariance: Covariance
    points: Reals
    features: int

    def rows(self, numbers: Integers) -> Reals:
        """``(r, c)`` Covariance of some configurations with all, without noise."""
        points = self.points[numbers]
        settings = self.points[:, self.features :]
        before = self.covariance.shared(points, self.points)
        before += self.covariance.own(settings[numbers], settings)
        return before - small_product(self.told[numbers], self.told.T)

    def given(self, numbers: Integers, values: Reals) -> Posterior:
        """What is known after runs.

        Parameters
        ----------
        numbers
            ``(r,)`` Configurations of the runs.
        values
            ``(r,)`` Logarithms of what was measured; NaN is left out.
        """
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
