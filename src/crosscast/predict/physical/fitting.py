"""Fitting prices of terms: hierarchical over device, vendor's devices of a type, and all; robust.

Each device has a price for each term. With 15 devices and 37 kernels, single prices are poorly known, so
they are drawn to the mean of their group, and that to the mean of all, by a quadratic penalty (a maximum a
posteriori estimate under normal priors).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals

__all__ = ["Data", "Prices", "fit_prices", "log_sum", "standardized"]

_DEVICE_RIDGE = 0.3
_GROUP_RIDGE = 0.09
_ALL_RIDGE = 1e-3
_BEND_RIDGE = 3.0
_LIMIT = 2.5
_STEPS = 500
_ABSENT = -60.0


@dataclass(frozen=True)
class Data:
    """What the prices are fitted to.

    Parameters
    ----------
    loads
        Logarithms of the terms' quantities, of shape ``(n, t, d)``.
    bends
        Standardized bends, of shape ``(n, b)``.
    masks
        Where the bends act, of shape ``(b, t, d)``.
    log_time
        Logarithms of times, of shape ``(n, d)``; not a number where not known.
    weights
        Weight of each kernel, of shape ``(n,)``.
    groups
        Number of each device's group, of shape ``(d,)``.
    """

    loads: Reals
    bends: Reals
    masks: Reals
    log_time: Reals
    weights: Reals
    groups: Integers


@dataclass(frozen=True)
class Prices:
    """Fitted prices.

    Parameters
    ----------
    terms
        Logarithm of each term's price on each device, of shape ``(t, d)``.
    bends
        Strength of each bend, of shape ``(b,)``.
    """

    terms: Reals
    bends: Reals

    def log_time(self, loads: Reals, bends: Reals, masks: Reals) -> Reals:
        """Logarithms of times, of shape ``(n, d)``."""
        total, _ = log_sum(loads + self.terms + np.tensordot(bends * self.bends, masks, 1))
        return total


def log_sum(parts: Reals) -> tuple[Reals, Reals]:
    """Logarithm of the sum of terms whose logarithms are given, and the terms' shares.

    Parameters
    ----------
    parts
        Of shape ``(n, t, d)``.

    Returns
    -------
    tuple of arrays
        Of shapes ``(n, d)`` and ``(n, t, d)``.
    """
    most = parts.max(axis=1, keepdims=True)
    shares = np.exp(parts - most)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    return (most + np.log(total))[:, 0], shares


def fit_prices(data: Data, robustness: float) -> Prices:
    """Fit prices by penalized pseudo-Huber loss of the logarithms.

    Parameters
    ----------
    data
        What to fit to.
    robustness
        Error from which on the loss grows linearly.
    """
    # Imported here: predicting with fitted prices needs no SciPy.
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    start = _start(data)
    t, d = len(start), len(data.groups)
    known = np.isfinite(data.log_time)
    target = np.where(known, data.log_time, 0.0)
    weights = np.where(known, data.weights[:, None], 0.0)
    bent = data.bends[:, :, None, None] * data.masks
    members: list[Flags] = [data.groups == number for number in np.unique(data.groups)]

    def loss(values: Reals) -> tuple[float, Reals]:
        overall, terms, strengths = _split(values, t, d)
        total, shares = log_sum(data.loads + terms + np.einsum("b,nbtd->ntd", strengths, bent))
        error = total - target
        root = np.sqrt(1 + (error / robustness) ** 2)
        value = float((weights * robustness**2 * (root - 1)).sum())
        slope = shares * (weights * error / root)[:, None, :]
        by_terms = slope.sum(axis=0)
        by_strengths = np.einsum("nbtd,ntd->b", bent, slope)
        by_overall = np.zeros(t)
        for group in members:
            mean = terms[:, group].mean(axis=1)
            apart, away = terms[:, group] - mean[:, None], mean - overall
            value += _DEVICE_RIDGE * float((apart**2).sum()) + _GROUP_RIDGE * float((away**2).sum())
            by_terms[:, group] += 2 * _DEVICE_RIDGE * apart + (2 * _GROUP_RIDGE * away / group.sum())[:, None]
            by_overall -= 2 * _GROUP_RIDGE * away
        value += _ALL_RIDGE * float(((overall - start) ** 2).sum())
        value += _BEND_RIDGE * float((strengths**2).sum())
        by_overall += 2 * _ALL_RIDGE * (overall - start)
        by_strengths = by_strengths + 2 * _BEND_RIDGE * strengths
        return value, np.concatenate([by_overall, by_terms.ravel(), by_strengths])

    first = np.concatenate([start, np.repeat(start, d), np.zeros(data.bends.shape[1])])
    # Threads of BLAS take longer to agree than these small vectors take.
    with threadpool_limits(1):
        best = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    _, terms, strengths = _split(best.x, t, d)
    return Prices(terms, strengths)


def _split(values: Reals, t: int, d: int) -> tuple[Reals, Reals, Reals]:
    return values[:t], values[t : t + t * d].reshape(t, d), values[t + t * d :]


def _start(data: Data) -> Reals:
    """Prices at which each term alone would explain the large kernels, and launches the small ones."""
    times = data.log_time[np.isfinite(data.log_time)]
    prices = np.empty(data.loads.shape[1])
    for term in range(len(prices)):
        load = data.loads[:, term].max(axis=1)
        there = load[load > _ABSENT]
        prices[term] = np.median(times) - (np.quantile(there, 0.9) if there.size else 0.0) - 0.5
    least = np.where(np.isfinite(data.log_time), data.log_time, np.inf).min(axis=1)
    # A kernel that was measured on none of the devices says nothing.
    prices[0] = float(least[np.isfinite(least)].mean())
    return prices


def standardized(values: Reals, centre: Reals, scale: Reals) -> Reals:
    """Bends by how many standard deviations of the training kernels they lie from their mean, limited."""
    return np.clip((values - centre) / scale, -_LIMIT, _LIMIT)
