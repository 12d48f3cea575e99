"""Choose the variants to measure, by the forecast conditioned on the measurements so far.

The error of the forecast logarithm of a time is a Gaussian process: a constant, a slope in the forecast and
in the share of each term of the time, and a smooth part over the parameters. A second process ignores the
forecast, for devices on which it misleads. The two are weighted by the likelihood of each measured time given
the others. The next variant is the one with the largest expected improvement on the least measured time
(J. Močkus, On Bayesian methods for seeking the extremum, 1974).

The process over a space is also that of counts of variants (`crosscast.tuning.profiling`).
C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning (2006), sections
2.2, 2.7 and 5.4.2.
Kernel Tuner: B. van Werkhoven, Kernel Tuner: A search-optimizing GPU code auto-tuner (2019).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, importing
from crosscast.prediction.configuration.gaussian_process import matern, matern_slope, squares
from crosscast.tuning import Variants, label_of

_JITTER = 1e-9
_BLOCK = 4096


@dataclass(frozen=True)
class Prior:
    """Log-normal prior of a process's hyperparameters: medians; the deviation of logarithms is 1."""

    constant: float  # Deviation of the part that all variants have in common
    linear: float  # Deviation of the slopes in the features
    smooth: float  # Deviation of the part that is smooth in the coordinates
    noise: float  # Deviation of the noise
    # Length scale of the smooth part in all `p` coordinates or in each, over the root of their number
    length: float | Reals = 2.0


@dataclass(frozen=True, eq=False)
class TuningProcess:
    """A process fitted to ``m`` points with ``k`` values each, which share its hyperparameters."""

    features: Reals  # `(m, q)` In which it is linear
    coordinates: Reals  # `(m, p)` In which it is smooth
    values: Reals  # `(m, k)`
    logs: Reals  # `(4 + p,)` Logarithms of the deviations constant, linear, smooth and noise, and of lengths

    @classmethod
    def fit(
        cls, features: Reals, coordinates: Reals, values: Reals, prior: Prior, start: Reals | None = None
    ) -> TuningProcess:
        """Fit the hyperparameters: those of the largest posterior density.

        The points are `features` ``(m, q)``, `coordinates` ``(m, p)`` and `values` ``(m, k)``. `start` are
        logarithms ``(4 + p,)`` at which the search begins; by default those of the prior.
        """
        # Imported here, so that importing this module does not load scipy.
        from scipy.optimize import minimize

        p = coordinates.shape[1]
        lengths = np.broadcast_to(prior.length, p) * p**0.5
        centre = np.log([prior.constant, prior.linear, prior.smooth, prior.noise, *lengths])
        squared = (coordinates[:, None, :] - coordinates[None, :, :]) ** 2
        products = features @ features.T
        outer = values @ values.T / values.shape[1]

        def loss(logs: Reals) -> tuple[float, Reals]:
            covariance = _covariance(logs, products, squared)
            matrix = covariance.sum
            root = np.linalg.cholesky(matrix)
            inverse = _inverse(matrix)
            z = logs - centre
            total = np.log(np.diag(root)).sum() + 0.5 * (inverse * outer).sum() + 0.5 * z @ z
            gradient: Reals = 0.5 * (inverse - inverse @ outer @ inverse)
            return float(total), covariance.gradient(gradient) + z

        best = minimize(
            loss,
            centre if start is None else start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(c - 4, c + 4) for c in centre],
            options={"maxiter": 60},
        )
        return cls(features, coordinates, values, np.asarray(best.x))

    @cached_property
    def _inverse(self) -> Reals:
        squared = (self.coordinates[:, None, :] - self.coordinates[None, :, :]) ** 2
        return _inverse(_covariance(self.logs, self.features @ self.features.T, squared).sum)

    def leave_one_out(self) -> Reals:
        """Predict the values ``(m, k)`` of each point from all others (eq. 5.12)."""
        means: Reals = self.values - self._inverse @ self.values / np.diag(self._inverse)[:, None]
        return means

    def evidence(self) -> float:
        """Return the logarithm of the likelihood of each point given all others, summed (eq. 5.11)."""
        variance = 1.0 / np.diag(self._inverse)[:, None]
        errors = self._inverse @ self.values * variance
        return float((-0.5 * np.log(2 * np.pi * variance) - 0.5 * errors**2 / variance).sum())

    def predict(self, features: Reals, coordinates: Reals) -> tuple[Reals, Reals]:
        """Predict means ``(n, k)``, and deviations ``(n,)`` without noise, at ``n`` other points."""
        constant, linear, smooth = np.exp(2 * self.logs[:3])
        weights = self._inverse @ self.values
        scale = np.exp(-self.logs[4:])
        fitted = self.coordinates * scale
        means, deviations = [], []
        for first in range(0, len(features), _BLOCK):
            block, points = features[first : first + _BLOCK], coordinates[first : first + _BLOCK] * scale
            cross = constant + linear * block @ self.features.T + smooth * matern(squares(points, fitted))
            means.append(cross @ weights)
            prior_variance = constant + linear * (block**2).sum(1) + smooth
            variance = prior_variance - ((cross @ self._inverse) * cross).sum(1)
            deviations.append(np.sqrt(np.maximum(variance, 1e-12)))
        return np.concatenate(means), np.concatenate(deviations)


def _inverse(matrix: Reals) -> Reals:
    inverse: Reals = np.linalg.inv(matrix).astype(np.float64)
    return inverse


@dataclass(frozen=True, eq=False)
class _Covariance:
    """Covariance of ``m`` points as a sum of parts."""

    constant: float
    linear: Reals  # `(m, m)`
    smooth: Reals  # `(m, m)`
    noise: float
    length_slope: Reals  # `(m, m)` Derivative by the logarithm of a length, over its `scaled`
    scaled: Reals  # `(m, m, p)` Squared distances over squared lengths

    @property
    def sum(self) -> Reals:
        size = len(self.linear)
        return self.constant + self.linear + self.smooth + (self.noise + _JITTER) * np.eye(size)

    def gradient(self, by_matrix: Reals) -> Reals:
        """Return the gradient by the logarithms ``(4 + p,)`` of a function with the gradient `by_matrix`."""
        lengths = np.einsum("ij,ijp->p", by_matrix * self.length_slope, self.scaled)
        deviations = [
            2 * self.constant * by_matrix.sum(),
            2 * (self.linear * by_matrix).sum(),
            2 * (self.smooth * by_matrix).sum(),
            2 * self.noise * np.trace(by_matrix),
        ]
        return np.concatenate([deviations, lengths])


def _covariance(logs: Reals, products: Reals, squared: Reals) -> _Covariance:
    constant, linear, smooth, noise = np.exp(2 * logs[:4])
    scaled = squared * np.exp(-2 * logs[4:])
    distance = scaled.sum(axis=2)
    length_slope = -2 * smooth * matern_slope(distance)
    return _Covariance(
        float(constant), linear * products, smooth * matern(distance), float(noise), length_slope, scaled
    )


_REFIT_EVERY = 10
_LEAST_RUNS, _UNLIKELY = 5, 0.05
_APART_UNTIL, _APART = 12, 3.0
"""Until this number of runs, variants within this squared distance of measured ones are avoided."""
_LEAST_CONSTANT, _VARIANT_DEVIATION = 0.3, 0.4
_LENGTH_OF_PARAMETERS, _LENGTH_OF_SIZES = 0.6, 1.0
_REFIT_ALWAYS_UNTIL = 25
"""After this number of runs, hyperparameters are fitted only every `_REFIT_EVERY` runs."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Forecasts of ``n`` variants on a device, before any is measured."""

    log_time: Reals  # `(n,)` Natural logarithms of seconds; infinite for variants that cannot run
    deviation: Reals  # `(n,)` Of these
    shares: Reals  # `(n, t)` Of the time by term; no columns if the model has no terms
    coordinates: Reals  # `(n, p)` Of the variants in the space
    geometry: Reals  # `(n, g)` Sizes of work-groups, of their code and memory, as further coordinates

    def __len__(self) -> int:
        return len(self.log_time)

    @property
    def cautious(self) -> Reals:
        """Logarithms of times ``(n,)`` one deviation above the forecast, which prefer profiled variants."""
        return self.log_time + self.deviation

    def take(self, rows: Integers) -> Candidates:
        """Return the candidates of some rows."""
        return Candidates(*(getattr(self, each.name)[rows] for each in fields(self)))

    @property
    def points(self) -> Reals:
        """All coordinates ``(n, p + g)`` in which the forecast's error is smooth."""
        return np.concatenate([self.coordinates, self.geometry], axis=1)

    @property
    def features(self) -> Reals:
        """Features ``(n, 1 + t)`` of the forecast's error: the forecast, and the shares of its terms."""
        centred = self.log_time - np.median(self.log_time)
        return np.concatenate([0.5 * centred[:, None], 2.0 * self.shares], axis=1)


@dataclass(frozen=True, eq=False)
class _View:
    """A baseline of times, and the prior of a process of the errors from it."""

    log_time: Reals  # `(n,)` The baseline
    features: Reals  # `(n, q)`
    prior: Prior


def _views(candidates: Candidates) -> tuple[_View, _View]:
    """Return the view with the forecast as baseline, and the one with a constant."""
    deviation, n = float(np.median(candidates.deviation)), len(candidates)
    # Errors change faster with a parameter than with sizes, whose effect the forecast knows.
    columns = candidates.coordinates.shape[1], candidates.geometry.shape[1]
    lengths = np.repeat([_LENGTH_OF_PARAMETERS, _LENGTH_OF_SIZES], columns)
    with_forecast = Prior(
        constant=deviation,
        linear=0.5 * deviation,
        smooth=0.6 * deviation,
        noise=0.03,
        length=lengths,
    )
    without_forecast = Prior(
        constant=max(deviation, _LEAST_CONSTANT),
        linear=1e-3,
        smooth=_VARIANT_DEVIATION,
        noise=0.03,
        length=lengths,
    )
    return (
        _View(candidates.log_time, candidates.features, with_forecast),
        _View(np.full(n, float(np.median(candidates.log_time))), np.zeros((n, 1)), without_forecast),
    )


@dataclass(eq=False)
class Search:
    """A search with its measured times; `next` chooses the variants to measure."""

    candidates: Candidates
    log_times: dict[int, float] = field(default_factory=dict)  # Measured, by row of the candidates
    failed: set[int] = field(default_factory=set)  # Rows of variants that did not run
    _logs: tuple[Reals, ...] | None = None  # Hyperparameters of the last fit, by view
    _fitted: int = 0  # Number of measured times at the last fit

    def __post_init__(self) -> None:
        times = self.candidates.log_time
        can_run = np.isfinite(times)
        self.failed |= set(np.flatnonzero(~can_run).tolist())
        # The process needs a number for all: the median, which this leaves as it is.
        finite = np.where(can_run, times, np.median(times[can_run]) if can_run.any() else 0.0)
        self.candidates = replace(self.candidates, log_time=finite)

    def add(self, times: Mapping[int, float | None]) -> None:
        """Add measured seconds by row; ``None`` for a variant that did not run."""
        for row, seconds in times.items():
            if seconds is None:
                self.failed.add(row)
            else:
                self.log_times[row] = math.log(seconds)

    @property
    def done(self) -> int:
        """Number of variants that were measured or did not run."""
        return len(self.log_times) + len(self.failed)

    def _remaining(self) -> Flags:
        remaining = np.ones(len(self.candidates), dtype=np.bool_)
        remaining[[*self.log_times, *self.failed]] = False
        return remaining

    def posterior(self) -> tuple[Reals, Reals]:
        """Return the logarithms of all times and their deviations ``(n,)``, given the measurements."""
        if not self.log_times:
            return self.candidates.log_time, self.candidates.deviation
        means, deviations, weights = self._posteriors()
        mean = weights @ means
        variance = weights @ (deviations**2 + means**2) - mean**2
        return mean, np.sqrt(np.maximum(variance, (deviations**2).min(axis=0)))

    def _posteriors(self) -> tuple[Reals, Reals, Reals]:
        """Return logarithms of times and their deviations by view, ``(2, n)``, and the views' weights."""
        candidates, rows = self.candidates, list(self.log_times)
        coordinates = candidates.points
        measured, count = np.array([self.log_times[row] for row in rows]), len(rows)
        refit = self._logs is None or count <= _REFIT_ALWAYS_UNTIL or count >= self._fitted + _REFIT_EVERY
        processes, means, deviations = [], [], []
        for index, view in enumerate(_views(candidates)):
            errors = (measured - view.log_time[rows])[:, None]
            points = view.features[rows], coordinates[rows], errors
            logs = None if self._logs is None else self._logs[index]
            if refit or logs is None:
                process = TuningProcess.fit(*points, view.prior, logs)
            else:
                process = TuningProcess(*points, logs)
            mean, deviation = process.predict(view.features, coordinates)
            mean = view.log_time + mean[:, 0]
            # Noise is mostly a property of the variant, not of the measurement, so a time may be less by it.
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
        """Return the rows of the variants to measure next, best first; none if all are measured."""
        remaining = self._remaining()
        count = min(count, int(remaining.sum()))
        if not self.log_times:
            order = np.argsort(np.where(remaining, self.candidates.cautious, np.inf), kind="stable")
            return order[:count]
        best = min(self.log_times.values())
        gains = [
            expected_gain(mean, deviation, best) + math.log(max(weight, 1e-12))
            for mean, deviation, weight in zip(*self._posteriors(), strict=True)
        ]
        gain = np.where(remaining, np.logaddexp(*gains), -np.inf)
        if len(self.log_times) < _APART_UNTIL:
            # The first errors say little more than that all forecasts near them are wrong.
            for row in self.log_times:
                gain = gain + self._apart(row, _APART)
        # One of each neighbourhood, as its time informs those of its neighbours.
        chosen: list[int] = []
        while len(chosen) < count:
            chosen.append(int(np.argmax(gain)))
            gain = gain + self._apart(chosen[-1])
            gain[chosen[-1]] = -np.inf
        return np.array(chosen, dtype=np.int64)

    def _apart(self, row: int, square: float = 1.0) -> Reals:
        """Logarithms ``(n,)`` of factors that are small within a squared distance of a row, else 1."""
        points = self.candidates.points
        distance = ((points - points[row]) ** 2).sum(axis=1)
        logs: Reals = np.log1p(-0.999 * np.exp(-distance / square))
        return logs

    def is_over(self, within: float) -> bool:
        """Return whether no other variant is likely to be faster than the best by this share of the time."""
        return len(self.log_times) >= _LEAST_RUNS and self.likely_better(within) < _UNLIKELY

    def likely_better(self, within: float) -> float:
        """Return the largest probability of a variant to be faster than the best by more than `within`.

        `within` is a share of the time, such as 0.02.
        """
        remaining = self._remaining()
        if not self.log_times or not remaining.any():
            return float(remaining.any())
        log_time, deviation = self.posterior()
        bound = min(self.log_times.values()) + math.log1p(-within)
        z = (bound - log_time[remaining]) / deviation[remaining]
        return float(_normal(z).max())


def expected_gain(log_time: Reals, deviation: Reals, best: float) -> Reals:
    """Return the logarithm of each variant's expected improvement on `best`, the logarithm of the least time.

    `log_time` and `deviation` are logarithms of times and their deviations, ``(n,)``.
    """
    z = (best - log_time) / deviation
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    gain = z * _normal(z) + density
    # By its asymptote far below, where the difference is lost in rounding.
    asymptote = -0.5 * z * z - 0.5 * math.log(2 * math.pi) - 2 * np.log(np.maximum(-z, 1.0))
    log_gain: Reals = np.log(deviation) + np.where(z > -5, np.log(np.maximum(gain, 1e-300)), asymptote)
    return log_gain


def _normal(z: Reals) -> Reals:
    # Imported here, so that importing this module does not load scipy.
    from scipy.special import ndtr

    return np.asarray(ndtr(z), dtype=np.float64)


class Strategy:
    """Crosscast's forecasts and search as a strategy of Kernel Tuner.

    Pass it as ``strategy`` to ``kernel_tuner.tune_kernel``. It measures the variants that are most likely to
    be the fastest given the forecast and the runs so far, until ``strategy_options["max_fevals"]`` were run
    or none is likely to be faster by more than `within`.

    Parameters
    ----------
    variants
        The kernel's variants.
    candidates
        Their forecasts on the device.
    within
        Share of the time, such as 0.02.
    """

    def __init__(self, variants: Variants, candidates: Candidates, within: float = 0.02) -> None:
        self.variants, self.candidates, self.within = variants, candidates, within

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> Any:
        """Measure variants, and return the results; called by Kernel Tuner."""
        with importing("tune", "Kernel Tuner"):
            from kernel_tuner.strategies.common import CostFunc
            from kernel_tuner.util import StopCriterionReached

        if lacking := set(self.variants.names) - set(searchspace.param_names):
            found = f"none for {', '.join(sorted(lacking))}"
            raise InputError.of(where="tune_params", expected="values of the space's parameters", found=found)
        rows = {label: row for row, label in enumerate(self.variants.labels)}
        configurations = {}
        for each in searchspace.list:
            named = dict(zip(searchspace.param_names, each, strict=True))
            row = rows.get(label_of({name: named[name] for name in self.variants.names}))
            if row is not None:
                configurations[row] = tuple(each)
        evaluate = CostFunc(searchspace, tuning_options, runner, scaling=False, snap=False)
        search = Search(self.candidates)
        search.failed |= set(range(len(self.variants))) - set(configurations)
        most = tuning_options.get("max_fevals") or len(configurations)
        with contextlib.suppress(StopCriterionReached):
            while search.log_times.keys() | search.failed != set(range(len(self.variants))):
                if len(search.log_times) >= most or search.is_over(self.within):
                    break
                (row,) = search.next().tolist()
                seconds = float(evaluate(configurations[row], check_restrictions=False)) * 1e-3
                search.add({row: seconds if 0 < seconds < 1e15 else None})
        return evaluate.results
