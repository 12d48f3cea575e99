"""What is known of one kernel: before and after its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crosscast.predict.grid import Integers, Reals

__all__ = ["Posterior", "total_of"]


@dataclass(frozen=True, eq=False)
class Posterior:
    """The logarithm of a quantity at every configuration.

    Parameters
    ----------
    mean
        ``(c,)`` Mean.
    covariance
        ``(c, c)`` Covariance, without noise.
    noise
        Variance of a run about it.
    """

    mean: Reals
    covariance: Reals
    noise: float

    def given(self, numbers: Integers, values: Reals) -> Posterior:
        """What is known after runs.

        Parameters
        ----------
        numbers
            ``(r,)`` Configurations of the runs.
        values
            ``(r,)`` Logarithms of what was measured; NaN is left out.
        """
        told = np.isfinite(values)
        at = numbers[told]
        seen = self.covariance[at]
        inner = seen[:, at] + self.noise * np.eye(len(at))
        gain = np.linalg.solve(inner, seen).T
        return Posterior(
            self.mean + gain @ (values[told] - self.mean[at]), self.covariance - gain @ seen, self.noise
        )

    @property
    def variance(self) -> Reals:
        """``(c,)`` Variance of a run at each configuration."""
        return np.maximum(np.diag(self.covariance), 0.0) + self.noise


def total_of(parts: Mapping[str, Posterior]) -> tuple[Reals, Reals]:
    """Logarithm of a sum ``(c,)``, and its variance ``(c,)``, from the logarithms of its parts.

    Parts are taken to be wrong independently, and the variance is that of the sum's linear approximation.
    """
    sizes = {name: np.exp(part.mean) for name, part in parts.items()}
    total = sum(sizes.values(), np.zeros(1))
    variance = sum(((sizes[name] / total) ** 2 * part.variance for name, part in parts.items()), np.zeros(1))
    return np.log(total), variance
