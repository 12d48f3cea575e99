"""The time on a device by the times on devices like it: a mean that weights them by how alike they are.

Weights are positive, so that the mean never leaves what was measured; what they depend on is chosen by how
well each of the devices is predicted from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.descriptors import Pairs

__all__ = ["Likeness", "fit_likeness"]

_MEANS = np.array([2.0, 1.0, 1.0, 2.0, 0.5, 0.4])
_SPREADS = np.array([2.0, 1.0, 1.0, 1.5, 1.0, 0.4])
_DRAWS = 300
_KEPT = 10


@dataclass(frozen=True)
class Likeness:
    """Several ways to weight, whose mean is used: so few devices do not tell which is best.

    Parameters
    ----------
    ways
        For each way, how much lighter (in logarithms) a device weighs that is of another type, vendor or
        series, for each standard deviation between the numbers, and for each square of it; and the power of
        clock and peak rate with which times are brought from one device to another. Of shape ``(m, 6)``.
    """

    WIDTH: ClassVar[int] = len(_MEANS)

    ways: Reals

    def weights(self, pairs: Pairs) -> tuple[Reals, float]:
        """Weights of all devices but the last for the last, of shape ``(d - 1,)``, and what is added."""
        weights = _weights(self.ways, pairs)[:, -1, :-1]
        added = self.ways[:, 5] * (pairs.trend[-1] - weights @ pairs.trend[:-1])
        return weights.mean(axis=0), float(added.mean())


def fit_likeness(pairs: Pairs, log_time: Reals, kernels: Reals, seed: int) -> Likeness:
    """Choose ways to weight among many that are drawn, by the mean absolute error on devices left out.

    Parameters
    ----------
    pairs
        How alike the ``d`` devices are.
    log_time
        Logarithms of times, of shape ``(n, d)``.
    kernels
        Weight of each kernel, of shape ``(n,)``.
    seed
        Start of the random numbers.
    """
    ways = np.abs(np.random.default_rng(seed).normal(_MEANS, _SPREADS, (_DRAWS, len(_MEANS))))
    losses = []
    # One after the other, as the errors of all would need much memory where kernels are many.
    for weights, power in zip(_weights(ways, pairs), ways[:, 5], strict=True):
        scaled = log_time - power * pairs.trend
        losses.append(kernels @ np.abs(scaled @ weights.T - scaled).sum(axis=1))
    return Likeness(ways[np.argsort(losses, kind="stable")[:_KEPT]])


def _weights(ways: Reals, pairs: Pairs) -> Reals:
    """Weights for each device (second axis) of the others (third axis), of shape ``(m, d, d)``."""
    apart = [1 - pairs.types, 1 - pairs.vendors, 1 - pairs.series, np.sqrt(pairs.squares), pairs.squares]
    logs = -np.tensordot(ways[:, :5], np.stack(apart), 1)
    logs[:, np.arange(len(pairs)), np.arange(len(pairs))] = -np.inf
    weights = np.exp(logs - logs.max(axis=2, keepdims=True))
    shares: Reals = weights / weights.sum(axis=2, keepdims=True)
    return shares
