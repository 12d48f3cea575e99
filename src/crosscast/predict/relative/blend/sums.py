"""Times as sums of work: launches, bytes, operations and what one item does by itself, each at its price.

On a device that was not measured, a run takes for each kind of work its amount times a price, and the time is
the sum. Prices are fitted to logarithms of times, robustly, as a few kernels do what no such sum says
(contended atomics, for one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.relative.blend.work import BYTES, ITEMS, LAUNCHES, OPERATIONS, amounts_of
from crosscast.predict.relative.observations import Observations
from crosscast.predict.state import kept_names, kept_reals

__all__ = ["FittedSums", "fit_sums", "terms_of"]

_TERMS = ("launch", "bytes", "operations", "one item")
_ROBUST = 0.5
"""Error of a logarithm from which on the loss grows with the error, and no longer with its square."""

_PULL = 0.2
"""How hard a price is pulled to where its term alone would make a third of the typical time."""

_THIRD = -1.0
_STARTS = (-2.0, -1.0, 0.0)
_LEAST = 1e-30


def terms_of(observations: Observations) -> Reals:
    """Amounts that are priced, of shape ``(r, 4)``: launches, bytes, operations, bytes of an item a launch.

    The last stands for the time that no parallelism shortens. Not a number where counters do not tell; a run
    that does not say how often it launched something is taken as one launch.
    """
    amounts = amounts_of(observations)
    launches = np.where(amounts[LAUNCHES] > 0, amounts[LAUNCHES], 1.0)
    items = np.where(amounts[ITEMS] > 0, amounts[ITEMS], np.nan)
    return np.column_stack([launches, amounts[BYTES], amounts[OPERATIONS], launches * amounts[BYTES] / items])


@dataclass(frozen=True, eq=False)
class FittedSums:
    """Prices of work on ``d`` devices.

    Parameters
    ----------
    devices
        Keys of the devices.
    prices
        Seconds for a unit of each term, of shape ``(4, d)``; 0 of a term that training runs do not have.
    """

    devices: tuple[str, ...]
    prices: Reals

    def log_relative(self, observations: Observations, *, anchored: bool) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``.

        Rows without an amount are not a number.

        Parameters
        ----------
        observations
            ``r`` runs.
        anchored
            Whether to take, on the device that a run was counted on, its own time, if it has one. That is
            right where devices err apart, such as a CPU and a GPU; where they err together, as GPUs of one
            maker do, what is wrong with the sum falls out of the ratio.
        """
        terms = terms_of(observations)
        used = self.prices.any(axis=1)
        times = np.log(np.maximum(terms[:, used] @ self.prices[used], _LEAST))
        for column, device in enumerate(self.devices if anchored else ()):
            own = np.array([source == device for source in observations.source]) & (observations.time_s > 0)
            times[own, column] = np.log(observations.time_s[own])
        centred: Reals = times - times.mean(axis=1, keepdims=True)
        return centred

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"priced_devices": np.array(self.devices, dtype=np.str_), "prices": self.prices}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedSums:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        devices, prices = kept_names(state, "priced_devices"), kept_reals(state, "prices", 2)
        if prices.shape != (len(_TERMS), len(devices)) or (prices < 0).any() or not prices.any(axis=0).all():
            raise InputError(
                f"model: prices: expected {len(_TERMS)} prices from 0 on for each of {len(devices)} devices, "
                f"found shape {prices.shape}"
            )
        return cls(devices, prices)


def fit_sums(
    observations: Observations, devices: tuple[str, ...], log_time: Reals, weights: Reals
) -> FittedSums | None:
    """Fit prices to runs; ``None`` if their counters tell of no work but launches.

    Parameters
    ----------
    observations
        ``r`` runs.
    devices
        Keys of ``d`` devices.
    log_time
        Logarithms of times in seconds, of shape ``(r, d)``.
    weights
        Weight of each run, of shape ``(r,)``.

    Raises
    ------
    MissingExtraError
        If SciPy is not installed.
    """
    terms = terms_of(observations)
    told = np.isfinite(terms).all(axis=0) & (terms > 0).any(axis=0)
    if told.sum() < 2:
        return None
    prices = np.zeros((len(_TERMS), len(devices)))
    root = np.sqrt(weights / weights.mean())
    for column in range(len(devices)):
        prices[told, column] = _prices(terms[:, told], log_time[:, column], root)
    return FittedSums(devices, prices)


def _prices(terms: Reals, log_time: Reals, root: Reals) -> Reals:
    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise MissingExtraError("train", "fitting a model") from error

    typical = np.array([_typical(log_time, column) for column in terms.T])
    scaled = terms * typical

    def errors(prices: Reals) -> Reals:
        found = np.log(np.maximum(scaled @ np.exp(prices), _LEAST)) - log_time
        return np.concatenate([found * root, _PULL * (prices - _THIRD)])

    fits = [
        least_squares(errors, np.full(terms.shape[1], start), loss="soft_l1", f_scale=_ROBUST)
        for start in _STARTS
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    found: Reals = typical * np.exp(best.x)
    return found


def _typical(log_time: Reals, term: Reals) -> float:
    """Price at which the term alone makes the typical time of the runs that have it."""
    has = term > 0
    return float(np.exp(np.median(log_time[has] - np.log(term[has]))))
