"""How alike kernels are to some that are known, by what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals

__all__ = ["Neighbours"]

_LIMIT = 3.0
_LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class Neighbours:
    """Known kernels in a space of features.

    Parameters
    ----------
    centre, scale
        Mean and standard deviation of each feature over the known kernels, of shape ``(f,)``.
    points
        The features of the ``n`` known kernels, standardized, of shape ``(n, f)``.
    """

    centre: Reals
    scale: Reals
    points: Reals

    @classmethod
    def of(cls, features: Reals) -> Neighbours:
        """Know kernels by their features, of shape ``(n, f)``."""
        centre, scale = features.mean(axis=0), features.std(axis=0) + _LEAST_SCALE
        return cls(centre, scale, _standardized(features, centre, scale))

    def alike(self, features: Reals) -> Reals:
        """Likeness of ``m`` kernels to the known ones: 1 where all features are equal, near 0 far away.

        Matern's covariance with a smoothness of 3/2, of the root mean square of the differences between
        standardized features; these are limited, so that nothing is stranger than three standard deviations.

        Returns
        -------
        array
            Of shape ``(m, n)``.
        """
        asked = _standardized(features, self.centre, self.scale)
        squares = (asked**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1) - 2 * asked @ self.points.T
        far = np.sqrt(np.maximum(squares, 0.0) * (3 / len(self.centre)))
        likeness: Reals = (1 + far) * np.exp(-far)
        return likeness


def _standardized(features: Reals, centre: Reals, scale: Reals) -> Reals:
    return np.clip((features - centre) / scale, -_LIMIT, _LIMIT)
