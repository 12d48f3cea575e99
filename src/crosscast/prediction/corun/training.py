"""Training of the process of slowdowns: evidence, posterior, and predictions for held-out groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import MeasuredMix
from crosscast.errors import InputError, importing
from crosscast.prediction.corun.features import (
    CoRunnerRows,
    FeatureMatrix,
    Traits,
    applications_of,
    leaves_memory_idle,
    surroundings,
)
from crosscast.prediction.corun.slowdowns import (
    LINKS,
    KernelSizes,
    LearnedRows,
    Scale,
    SlowdownCovariance,
    SlowdownProcess,
)
from crosscast.prediction.trees import trees_of_forest


@dataclass(frozen=True, eq=False)
class SlowdownPosterior:
    """A process conditioned on ``n`` rows."""

    values: Reals  # (n,), measured, of mean 0
    inverse: Reals  # (n, n), inverse of the covariance of the rows with noise
    weights: Reals  # (n,), contribution of each row for a covariance of 1 with it

    @classmethod
    def of(cls, covariance: Reals, noise: float, values: Reals) -> SlowdownPosterior:
        """Condition on measured values."""
        inverse, _ = inverse_of(covariance, noise)
        return cls(values, inverse, inverse @ values)

    def without(self, rows: Integers) -> Reals:
        """Predictions ``(rows,)`` of a fit to the other rows with these hyperparameters, in closed form."""
        part = np.linalg.solve(self.inverse[np.ix_(rows, rows)], self.weights[rows])
        return np.asarray(self.values[rows] - part)


def inverse_of(covariance: Reals, noise: float) -> tuple[Reals, float]:
    """Inverse of a covariance with noise, and the logarithm of its determinant.

    By Cholesky, at a third of the cost; the noise, bounded from below, keeps it regular for equal rows.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.linalg import lapack

    noisy = covariance + noise * np.eye(len(covariance))
    factor, failed = lapack.dpotrf(noisy, lower=1)
    if failed:
        expected, found = "slowdowns and features of usual size", f"a covariance of up to {noisy.max():g}"
        raise InputError.of(where="mixes", expected=expected, found=found)
    lower, _ = lapack.dpotri(factor, lower=1)
    inverse: Reals = np.tril(lower) + np.tril(lower, -1).T
    return inverse, 2 * float(np.log(np.diag(factor)).sum())


_STEPS, _LIMIT = 30, 6.0
_SIZED, _OUT_OF_FOLD = 800, 1600
"""About the numbers of rows for hyperparameters and for errors, whose cost is cubic."""


def fitted_sizes(covariance: SlowdownCovariance, values: Reals) -> KernelSizes:
    """Hyperparameters of the largest evidence times prior."""
    from scipy.optimize import minimize

    start = KernelSizes.unfitted(covariance.features.near.shape[1])
    centre, spread = start.vector, start.prior_spread

    def loss(vector: Reals) -> tuple[float, Reals]:
        sizes = start.from_vector(vector)
        inverse, log_determinant = inverse_of(covariance.matrix(sizes), sizes.noise)
        weighted = inverse @ values
        away = (vector - centre) / spread
        evidence = values @ weighted + log_determinant
        gap = inverse - np.outer(weighted, weighted)
        slope = np.append(covariance.slope(sizes, gap), sizes.noise * np.trace(gap))
        return float(evidence + away @ away) / 2, slope / 2 + away / spread

    bounds = [(each - _LIMIT, each + _LIMIT) for each in centre]
    result = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS})
    return start.from_vector(result.x)


_TREES, _LEAF = 150, 5
_RARE_SHARE = 0.25
"""Share of the median number of mixes below which an application is rare."""


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters that take long to fit, for fits to parts of the same mixes.

    They do not apply to a part whose applications have other traits in common.
    """

    link: str
    traits: tuple[str, ...]
    sizes: KernelSizes


def fit_slowdowns(
    mixes: Sequence[MeasuredMix], seed: int, *, trees: bool = True, known: Hyperparameters | None = None
) -> SlowdownProcess:
    """Fit a process to the slowdowns of mixes.

    Hyperparameters and trees are fitted to mixes without rare applications. The other mixes only condition
    the process (kriging), also on the errors of the trees.
    """
    runs, indices = applications_of([mix.isolated_runs for mix in mixes])
    rows = CoRunnerRows.of(indices, len(runs))
    slowdown = np.array([member.slowdown for mix in mixes for member in mix.members], dtype=np.float64)
    presence = applications_in(mixes)
    base = ~_with_rare(presence)[rows.mix]
    traits = Traits.of([runs[index] for index in sorted(set(rows.own[base].tolist()))])
    if known is not None and known.traits != traits.names:
        known = None
    idle = leaves_memory_idle(runs)[rows.own]
    # Applications that nothing slows down say nothing about others.
    used = ~idle if 2 * idle.sum() < len(idle) else np.ones(len(idle), dtype=np.bool_)
    of_idle = float(np.median(slowdown[base & idle])) if (base & ~used).any() else np.nan
    groups = presence[rows.mix][used]
    problem = _SlowdownProblem(traits.matrix(runs), rows.where(used), slowdown[used], base[used], groups)
    # With traits, the scale is fixed.
    links = (known.link,) if known else ("logarithm",) if traits.names else tuple(LINKS)
    fits = [problem.on_scale(link, known) for link in links]
    _, scale, sizes, is_better = min(fits, key=lambda each: each[0])
    s, largest = len(runs), int(problem.rows.members.max())
    scale = replace(scale, idle=of_idle)
    empty = SlowdownProcess(
        traits, scale, sizes, problem.features, np.zeros(s), np.zeros((s, s)), np.zeros(s), None, largest
    )
    return problem.conditioned(empty, trees and bool(traits.names), seed) if is_better else empty


def _with_rare(presence: Flags) -> Flags:
    """Mask of the mixes with a rare application; empty if these are most mixes."""
    counts = presence.sum(axis=0)
    mask: Flags = np.any(presence[:, counts < _RARE_SHARE * float(np.median(counts))], axis=1)
    return np.zeros(len(presence), dtype=np.bool_) if 2 * mask.sum() > len(mask) else mask


def applications_in(mixes: Sequence[MeasuredMix]) -> Flags:
    """Mask of the applications in each mix, ``(mixes, applications)``."""
    names = sorted({name for mix in mixes for name in mix.applications})
    return np.array([[name in mix.applications for name in names] for mix in mixes])


@dataclass(frozen=True, eq=False)
class _SlowdownProblem:
    """Rows with their slowdowns, and the mask of those to which hyperparameters are fitted."""

    features: FeatureMatrix
    rows: CoRunnerRows
    slowdown: Reals  # (n,)
    base: Flags  # (n,)
    groups: Flags  # (n, applications), those of the row's mix

    def on_scale(self, link: str, known: Hyperparameters | None) -> tuple[float, Scale, KernelSizes, bool]:
        """Mean error on held-out applications with a scale, and the fitted scale and hyperparameters.

        Last, whether that is better than the mean of the others', on average over applications. No
        significance is required: trees, which are not used here, improve the process, and six applications
        are few.
        """
        scale = _scale(link, self.slowdown[self.base], self.rows.members[self.base])
        values = scale.to(self.slowdown, self.rows.members)
        sizes = known.sizes if known else self._sizes(values)
        sample = self._sample(_OUT_OF_FOLD)
        covariance = SlowdownCovariance(self.features, self.rows.where(sample)).matrix(sizes)
        posterior = SlowdownPosterior.of(covariance, sizes.noise, values[sample])
        parts = self._out_of_fold(sample, scale, posterior)
        by_process, by_mean = (np.concatenate([np.ones(0), *each]) for each in zip(*parts, strict=True))
        factor, of_mean = float(np.median(by_process)), float(np.median(by_mean))
        gains = [np.abs(of_mean / two - 1).mean() - np.abs(factor / one - 1).mean() for one, two in parts]
        is_better = len(gains) < 2 or np.mean(gains) > 0
        error = float(np.abs(factor / by_process - 1).mean())
        return error, replace(scale, factor=factor if is_better else of_mean), sizes, bool(is_better)

    def _sizes(self, values: Reals) -> KernelSizes:
        sample = self._sample(_SIZED)
        return fitted_sizes(SlowdownCovariance(self.features, self.rows.where(sample)), values[sample])

    def _sample(self, most: int) -> Flags:
        """About at most so many rows of `base`: whole mixes, drawn at random."""
        if self.base.sum() <= most:
            return self.base
        mixes = np.unique(self.rows.mix[self.base])
        drawn = np.random.default_rng(0).permutation(mixes)[: round(len(mixes) * most / self.base.sum())]
        return np.asarray(self.base & np.isin(self.rows.mix, drawn))

    def _out_of_fold(
        self, sample: Flags, scale: Scale, posterior: SlowdownPosterior
    ) -> list[tuple[Reals, Reals]]:
        """Measured slowdowns of each held-out application over those of the process, and of the mean."""
        groups, slowdown = self.groups[sample], self.slowdown[sample]
        members = self.rows.members[sample]
        parts = []
        for group in groups.T:
            out = np.flatnonzero(group)
            if 0 < len(out) < len(group):
                mean = np.full(len(out), posterior.values[~group].mean())
                predicted = posterior.without(out), mean
                one, two = (slowdown[out] / scale.back(each, members[out]) for each in predicted)
                parts.append((one, two))
        return parts or [(np.ones(1), np.ones(1))]

    def conditioned(self, process: SlowdownProcess, with_trees: bool, seed: int) -> SlowdownProcess:
        """The process conditioned on these rows, and its trees."""
        rows = self.rows
        values, trees = process.scale.to(self.slowdown, rows.members), None
        if with_trees:
            with importing("train", "fitting a model"):
                from sklearn.ensemble import ExtraTreesRegressor

            columns = surroundings(self.features, rows)
            forest = ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1)
            trees = trees_of_forest(forest.fit(columns[self.base], values[self.base]))
            # The process is also conditioned on errors of the trees at mixes outside of their training, with
            # errors of 0 at all others.
            rest = np.where(self.base, 0.0, values - trees.sum(columns)[:, 0])
            values, trees = (values + rest) / 2, trees.project(np.array([[0.5]]))
        learned = LearnedRows(rows.beside, rows.own, values)
        return with_learned(replace(process, trees=trees), self.features, learned)


def with_learned(process: SlowdownProcess, known: FeatureMatrix, learned: LearnedRows) -> SlowdownProcess:
    """The process conditioned on rows of ``s`` applications, and on no others."""
    rows = CoRunnerRows(learned.own, learned.beside, np.zeros_like(learned.own))
    alone, beside = weights_of(SlowdownCovariance(known, rows), process.sizes, learned.values)
    return replace(
        process, known=known, alone=alone, beside=beside, lines=beside @ known.load, learned=learned
    )


def weights_of(covariance: SlowdownCovariance, sizes: KernelSizes, values: Reals) -> tuple[Reals, Reals]:
    """Weights of applications alone, ``(s,)``, and beside others, ``(s, s)``, given values of rows.

    A row is one of ``s`` applications and a sum of others, so that the covariance of any number of rows has
    the rank of ``s`` times ``s + 1``: the smaller of the two systems is solved. Both are exact.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.linalg import cho_factor, cho_solve

    rows, load = covariance.rows, covariance.features.load
    s, n = len(load), len(rows.own)
    if n <= s * (s + 1):
        noisy = covariance.matrix(sizes)
        noisy.flat[:: n + 1] += sizes.noise
        weights = cho_solve(cho_factor(noisy, lower=True, overwrite_a=True), values)
        chosen = np.eye(s)[rows.own] * weights[:, None]
        return chosen.sum(axis=0), chosen.T @ rows.beside
    by_pair = _by_pairs(covariance, sizes, values).reshape(s, s + 1)
    return by_pair[:, s].copy(), by_pair[:, :s].copy()


def _by_pairs(covariance: SlowdownCovariance, sizes: KernelSizes, values: Reals) -> Reals:
    """Weights as one vector of pairs of an application and another one or none, ``(s (s + 1),)``.

    With the covariance ``C`` of pairs, and rows as sums ``R`` of pairs, it is the solution ``w`` of
    ``(noise + R' R C) w = R' values`` (Woodbury's identity).
    """
    from scipy.linalg import solve
    from scipy.sparse import csr_array

    rows, s = covariance.rows, len(covariance.features.load)
    beside = np.column_stack([rows.beside, np.ones(len(rows.own))])
    row, column = np.nonzero(beside)
    pairs = rows.own[row] * (s + 1) + column
    sums = csr_array((beside[row, column], (row, pairs)), shape=(len(rows.own), s * (s + 1)))
    system = (sums.T @ sums) @ covariance.of_pairs(sizes)
    system.flat[:: len(system) + 1] += sizes.noise
    return np.asarray(solve(system, sums.T @ values, overwrite_a=True, check_finite=False))


def _scale(link: str, slowdown: Reals, members: Reals) -> Scale:
    numbers = LINKS[link].to(slowdown)
    rising = np.log(members / 2)
    slope = 0.0
    if np.ptp(rising) > 0:
        slope = float(np.cov(rising, numbers, bias=True)[0, 1] / rising.var())
    without_slope = numbers - slope * rising
    spread = float(without_slope.std())
    return Scale(link, float(without_slope.mean()), slope, spread if spread > 1e-9 else 1.0)
