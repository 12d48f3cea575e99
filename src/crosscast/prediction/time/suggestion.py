"""Which devices to measure a kernel on: those that let expect the least error on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.time.gaussian import GaussianPredictor, Scatter

_DRAWS = 4000
_MOST_SETS = 500
"""Of more sets than that the first devices are chosen alone, then the next."""


@dataclass(frozen=True)
class Suggestion:
    """Devices to measure on, and how wrong predictions on the others are expected to be then."""

    devices: tuple[str, ...]
    error: float  # Expected factor between predicted and true times, less 1: its mean logarithm's
    error_before: float  # The same with what is measured so far

    def to_dict(self) -> dict[str, object]:
        """All of it, for JSON."""
        return {"devices": list(self.devices), "error": self.error, "error_before": self.error_before}


def suggest_probes(
    predictor: GaussianPredictor,
    count: int,
    *,
    among: Sequence[str] | None = None,
    measured: Sequence[str] = (),
    seed: int = 0,
) -> Suggestion:
    """Choose `count` devices to measure a kernel on, beside those where it is measured.

    Errors of the model are drawn from how they scatter over the devices (their covariance on applications
    that were left out, with the errors that devices of a kind share now and then). Of each set of devices,
    the absolute errors of the logarithm that are left on the others are averaged.

    Parameters
    ----------
    predictor
        The model; it does not matter which kernel is asked for, as its errors are alike on all.
    count
        How many devices to choose.
    among
        Devices that can be measured on and are of interest, by key; by default all that the model knows.
    measured
        Devices on which the kernel is measured.

    Raises
    ------
    InputError
        If there are not more devices than are to be measured.
    """
    keys = predictor.keys
    asked = keys if among is None else [key for key in keys if key in set(among)]
    free = [keys.index(key) for key in asked if key not in measured]
    if not 0 < count < len(free):
        expected = f"from 1 to {len(free) - 1}, as {len(free)} devices are not measured"
        raise InputError.of(where="suggest-probes", expected=expected, found=count)
    draws = _drawn(predictor.scatter, seed)
    known = [keys.index(key) for key in measured]

    def left(probes: Sequence[int]) -> float:
        """Mean absolute error over the devices of interest with some measured."""
        given = np.full_like(draws, np.nan)
        places = [*known, *probes]
        given[:, places] = draws[:, places]
        rest = [place for place in free if place not in probes]
        sums = np.eye(len(keys))[rest]
        mean, _ = predictor.scatter.moments(given, sums)
        return float(np.abs(draws[:, rest] - mean).mean(axis=0).sum() / len(free))

    chosen: tuple[int, ...] = ()
    step = count if comb(len(free), count) <= _MOST_SETS else 1
    while len(chosen) < count:
        rest = [place for place in free if place not in chosen]
        chosen = min(((*chosen, *more) for more in combinations(rest, step)), key=left)
    remaining = len(free) / (len(free) - count)
    return Suggestion(
        tuple(keys[place] for place in chosen),
        float(np.expm1(left(chosen) * remaining)),
        float(np.expm1(left(()))),
    )


def _drawn(scatter: Scatter, seed: int) -> Reals:
    """Errors ``(_DRAWS, d)`` as they scatter."""
    random = np.random.default_rng(seed)
    sets, variances, odds = scatter.mixture()
    errors: Reals = random.normal(size=(_DRAWS, len(scatter.covariance)))
    errors = errors @ np.linalg.cholesky(scatter.covariance).T
    shared = random.choice(len(sets), _DRAWS, p=odds / odds.sum())
    return errors + sets[shared] * (np.sqrt(variances)[shared] * random.normal(size=_DRAWS))[:, None]
