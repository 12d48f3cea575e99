"""Which devices to measure a kernel on, for the least expected error on the others."""

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
"""Beyond this number of sets, devices are chosen one at a time."""


@dataclass(frozen=True)
class Suggestion:
    """Devices to measure on, and the expected error on the others."""

    devices: tuple[str, ...]
    error: float  # Expected factor between predicted and true times, less 1, from its mean logarithm
    error_before: float  # Without measurements on these devices

    def to_dict(self) -> dict[str, object]:
        """The suggestion, for JSON."""
        return {"devices": list(self.devices), "error": self.error, "error_before": self.error_before}


def suggest_probes(
    predictor: GaussianPredictor,
    count: int,
    *,
    among: Sequence[str] | None = None,
    measured: Sequence[str] = (),
) -> Suggestion:
    """Choose `count` devices to measure a kernel on, beside those where it is measured.

    Errors of the model are drawn from their distribution over the devices (the covariance on held-out
    applications, with large errors that devices of a kind sometimes share). For each set of devices, the
    remaining absolute errors of log times on the others are averaged.

    Parameters
    ----------
    predictor
        The model; its errors have the same distribution for all kernels.
    count
        Number of devices to choose.
    among
        Keys of the devices that can be measured; by default all that the model knows.
    measured
        Devices on which the kernel is measured.

    Raises
    ------
    InputError
        If fewer devices than `count` + 1 are not measured.
    """
    keys = predictor.keys
    candidates = keys if among is None else [key for key in keys if key in set(among)]
    free = [keys.index(key) for key in candidates if key not in measured]
    if not 0 < count < len(free):
        expected = f"from 1 to {len(free) - 1}, as {len(free)} devices are not measured"
        raise InputError.of(where="suggest-probes", expected=expected, found=count)
    draws = _drawn(predictor.scatter)
    known = [keys.index(key) for key in measured]

    def error_left(probes: Sequence[int]) -> float:
        """Mean absolute error over the devices of interest with some measured."""
        given = np.full_like(draws, np.nan)
        columns = [*known, *probes]
        given[:, columns] = draws[:, columns]
        others = [column for column in free if column not in probes]
        sums = np.eye(len(keys))[others]
        mean, _ = predictor.scatter.moments(given, sums)
        return float(np.abs(draws[:, others] - mean).mean(axis=0).sum() / len(free))

    chosen: tuple[int, ...] = ()
    step = count if comb(len(free), count) <= _MOST_SETS else 1
    while len(chosen) < count:
        rest = [column for column in free if column not in chosen]
        chosen = min(((*chosen, *more) for more in combinations(rest, step)), key=error_left)
    remaining = len(free) / (len(free) - count)
    return Suggestion(
        tuple(keys[column] for column in chosen),
        float(np.expm1(error_left(chosen) * remaining)),
        float(np.expm1(error_left(()))),
    )


def _drawn(scatter: Scatter) -> Reals:
    """Errors ``(_DRAWS, d)`` drawn from their distribution."""
    random = np.random.default_rng(0)
    sets, variances, odds = scatter.mixture()
    errors: Reals = random.normal(size=(_DRAWS, len(scatter.covariance)))
    errors = errors @ np.linalg.cholesky(scatter.covariance).T
    shared = random.choice(len(sets), _DRAWS, p=odds / odds.sum())
    return errors + sets[shared] * (np.sqrt(variances)[shared] * random.normal(size=_DRAWS))[:, None]
