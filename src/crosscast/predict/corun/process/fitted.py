"""A fitted process: what it says of rows, and of the rows of a group if it had not seen them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError

__all__ = ["Conditioned", "conditioned", "inverse_of"]


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A process that knows what was measured in some of the rows.

    Parameters
    ----------
    values
        What was measured, of mean 0, of shape ``(n,)``.
    inverse
        Inverse of the covariance of the rows with noise, of shape ``(n, n)``.
    weights
        What each row adds to a prediction, for a covariance of 1 with it, of shape ``(n,)``.
    """

    values: Reals
    inverse: Reals
    weights: Reals

    def without(self, rows: Integers) -> Reals:
        """What is predicted of some rows by the others alone, of shape ``(rows,)``.

        In closed form: the same as a fit to the others with these sizes.
        """
        part = np.linalg.solve(self.inverse[np.ix_(rows, rows)], self.weights[rows])
        predicted: Reals = self.values[rows] - part
        return predicted


def conditioned(covariance: Reals, noise: float, values: Reals) -> Conditioned:
    """Let a process know what was measured.

    Parameters
    ----------
    covariance
        Covariance of the rows without noise, of shape ``(n, n)``.
    noise
        Variance of the noise.
    values
        What was measured, of mean 0, of shape ``(n,)``.
    """
    inverse, _ = inverse_of(covariance, noise)
    return Conditioned(values, inverse, inverse @ values)


def inverse_of(covariance: Reals, noise: float) -> tuple[Reals, float]:
    """Inverse of a covariance with noise, and the logarithm of its determinant.

    By Cholesky, at a third of the cost of what works for any matrix. The noise, which is bounded from below,
    keeps it apart from singular ones, however alike rows are.

    Parameters
    ----------
    covariance
        Covariance of the rows without noise, of shape ``(n, n)``.
    noise
        Variance of the noise.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.linalg import lapack

    noisy = covariance + noise * np.eye(len(covariance))
    factor, failed = lapack.dpotrf(noisy, lower=1)
    if failed:
        raise InputError(
            "bags: expected slowdowns and features of usual size, found a covariance of up to "
            f"{noisy.max():g}"
        )
    lower, _ = lapack.dpotri(factor, lower=1)
    inverse: Reals = np.tril(lower) + np.tril(lower, -1).T
    return inverse, 2 * float(np.log(np.diag(factor)).sum())
