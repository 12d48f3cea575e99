"""Which variant to measure next: the forecast, conditioned on the variants that were measured.

What the logarithm of a measured time is off by is a Gaussian process: what all variants have in common, a
slope in the forecast and in the share of each term of the time, and what is smooth over the parameters.
Beside it stands a process of the parameters alone, for devices on which the forecast misleads; each counts
by how likely it makes each measured time given the others. The next variant is the one whose time is
expected to improve most on the least that was measured (J. Močkus, On Bayesian methods for seeking the
extremum, 1974).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.tuning.process import Prior, TuningProcess

_REFIT_EVERY = 10
_LEAST_RUNS, _UNLIKELY = 5, 0.05
_LEAST_SPREAD, _SPREAD_OF_VARIANTS = 0.3, 0.4
_SURE_AFTER = 25
"""From so many runs on the deviations are fitted again only every few."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Forecasts of ``n`` variants on a device, before any is measured."""

    log_time: Reals  # `(n,)` Natural logarithms of seconds
    deviation: Reals  # `(n,)` Of these
    shares: Reals  # `(n, t)` Of the time by term; of no columns where the model says none
    coordinates: Reals  # `(n, p)` Of the parameters

    def __len__(self) -> int:
        return len(self.log_time)

    @property
    def cautious(self) -> Reals:
        """Logarithms of times ``(n,)`` one deviation above: what was counted comes before what was said."""
        return self.log_time + self.deviation

    def take(self, rows: Integers) -> Candidates:
        """Some of them."""
        return Candidates(
            self.log_time[rows], self.deviation[rows], self.shares[rows], self.coordinates[rows]
        )

    @property
    def features(self) -> Reals:
        """What an error of the forecast may go with: the forecast itself, and shares of its terms."""
        centred = self.log_time - np.median(self.log_time)
        return np.concatenate([0.5 * centred[:, None], 2.0 * self.shares], axis=1)


@dataclass(frozen=True, eq=False)
class _View:
    """What a process is about: errors of a forecast by its features and the parameters, or times alone."""

    log_time: Reals  # `(n,)` From which it tells how far times are
    features: Reals  # `(n, q)`
    prior: Prior


def _views(candidates: Candidates) -> tuple[_View, _View]:
    """With the forecast and without."""
    spread, n = float(np.median(candidates.deviation)), len(candidates)
    aided = Prior(
        constant=spread, linear=0.5 * spread, smooth=0.6 * spread, noise=0.03, length=1.0, spread=0.7
    )
    plain = Prior(
        constant=max(spread, _LEAST_SPREAD),
        linear=1e-3,
        smooth=_SPREAD_OF_VARIANTS,
        noise=0.03,
        length=1.0,
        spread=0.7,
    )
    return (
        _View(candidates.log_time, candidates.features, aided),
        _View(np.full(n, float(np.median(candidates.log_time))), np.zeros((n, 1)), plain),
    )


@dataclass(eq=False)
class Search:
    """A search that knows some measured times; `next` says which variants to measure."""

    candidates: Candidates
    log_times: dict[int, float] = field(default_factory=dict)  # Measured, by number of the variant
    failed: set[int] = field(default_factory=set)
    _logs: tuple[Reals, ...] | None = None
    _fitted: int = 0

    def add(self, times: Mapping[int, float | None]) -> None:
        """Take measured seconds; ``None`` for a variant that did not run."""
        for row, seconds in times.items():
            if seconds is None:
                self.failed.add(row)
            else:
                self.log_times[row] = math.log(seconds)

    @property
    def done(self) -> int:
        """How many variants were tried."""
        return len(self.log_times) + len(self.failed)

    def best(self) -> int:
        """The variant with the least time, measured, or forecast where none is."""
        if self.log_times:
            return min(self.log_times, key=lambda row: (self.log_times[row], row))
        return int(np.argmin(np.where(self._left(), self.candidates.cautious, np.inf)))

    def _left(self) -> Flags:
        left = np.ones(len(self.candidates), dtype=np.bool_)
        left[[*self.log_times, *self.failed]] = False
        return left

    def posterior(self) -> tuple[Reals, Reals]:
        """Logarithms of all times and deviations ``(n,)``, given those that were measured."""
        if not self.log_times:
            return self.candidates.log_time, self.candidates.deviation
        means, deviations, weights = self._beliefs()
        mean = weights @ means
        variance = weights @ (deviations**2 + means**2) - mean**2
        return mean, np.sqrt(np.maximum(variance, (deviations**2).min(axis=0)))

    def _beliefs(self) -> tuple[Reals, Reals, Reals]:
        """Logarithms of times and deviations with the forecast and without, ``(2, n)``, and their weights."""
        known, rows = self.candidates, list(self.log_times)
        measured, count = np.array([self.log_times[row] for row in rows]), len(rows)
        refit = self._logs is None or count <= _SURE_AFTER or count >= self._fitted + _REFIT_EVERY
        processes, means, deviations = [], [], []
        for place, view in enumerate(_views(known)):
            errors = (measured - view.log_time[rows])[:, None]
            part = view.features[rows], known.coordinates[rows], errors
            before = None if self._logs is None else self._logs[place]
            if refit or before is None:
                process = TuningProcess.fit(*part, view.prior, before)
            else:
                process = TuningProcess(*part, before)
            mean, deviation = process.predict(view.features, known.coordinates)
            mean = view.log_time + mean[:, 0]
            # Noise is more of the variant itself than of the measurement, so one may be the faster by it.
            noise = float(np.exp(process.logs[3]))
            deviation = np.hypot(deviation, noise)
            mean[rows], deviation[rows] = measured, noise
            processes.append(process)
            means.append(mean)
            deviations.append(deviation)
        if refit:
            self._logs, self._fitted = tuple(process.logs for process in processes), count
        evidence = np.array([process.evidence() for process in processes])
        weights = np.exp(evidence - evidence.max())
        return np.stack(means), np.stack(deviations), weights / weights.sum()

    def next(self, count: int = 1) -> Integers:
        """The variants to measure next, the first first; none if all are measured."""
        left = self._left()
        count = min(count, int(left.sum()))
        if not self.log_times:
            order = np.argsort(np.where(left, self.candidates.cautious, np.inf), kind="stable")
            return order[:count]
        best = min(self.log_times.values())
        gains = [
            expected_gain(mean, deviation, best) + math.log(max(weight, 1e-12))
            for mean, deviation, weight in zip(*self._beliefs(), strict=True)
        ]
        gain = np.where(left, np.logaddexp(*gains), -np.inf)
        # One of each neighbourhood, as the time of the first tells that of its neighbours.
        chosen: list[int] = []
        points = self.candidates.coordinates
        while len(chosen) < count:
            chosen.append(int(np.argmax(gain)))
            near = ((points - points[chosen[-1]]) ** 2).sum(axis=1)
            gain = np.where(np.isfinite(gain), gain + np.log1p(-0.999 * np.exp(-near)), gain)
            gain[chosen[-1]] = -np.inf
        return np.array(chosen, dtype=np.int64)

    def is_over(self, within: float) -> bool:
        """Whether no variant that is left is likely to be so much better than the best."""
        return len(self.log_times) >= _LEAST_RUNS and self.likely_better(within) < _UNLIKELY

    def likely_better(self, within: float) -> float:
        """Probability that the variant most likely to be so much better than the best is.

        `within` is a share of the time, such as 0.02.
        """
        left = self._left()
        if not self.log_times or not left.any():
            return float(left.any())
        log_time, deviation = self.posterior()
        bound = min(self.log_times.values()) + math.log1p(-within)
        z = (bound - log_time[left]) / deviation[left]
        return float(_normal(z).max())


def expected_gain(log_time: Reals, deviation: Reals, best: float) -> Reals:
    """Logarithms of the expected improvements of the logarithm on the best."""
    z = (best - log_time) / deviation
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    gain = z * _normal(z) + density
    # Far below, by its asymptote, as the difference is lost in rounding.
    far = -0.5 * z * z - 0.5 * math.log(2 * math.pi) - 2 * np.log(np.maximum(-z, 1.0))
    found: Reals = np.log(deviation) + np.where(z > -5, np.log(np.maximum(gain, 1e-300)), far)
    return found


def _normal(z: Reals) -> Reals:
    # Imported here: `crosscast.tuning` is looked at without it.
    from scipy.special import ndtr

    return np.asarray(ndtr(z), dtype=np.float64)
