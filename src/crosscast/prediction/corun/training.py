"""Training of the process: its evidence, its posterior, and what it would say of a group it had not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Bag
from crosscast.errors import InputError, importing
from crosscast.prediction.corun.features import (
    CoRunnerRows,
    FeatureMatrix,
    Traits,
    applications_of,
    leaves_memory_idle,
    surroundings,
)
from crosscast.prediction.corun.slowdowns import LINKS, Covariance, KernelSizes, Scale, SlowdownProcess
from crosscast.prediction.trees import Trees, trees_of_forest


@dataclass(frozen=True, eq=False)
class Posterior:
    """A process that knows what was measured in ``n`` rows."""

    values: Reals  # (n,), what was measured, of mean 0
    inverse: Reals  # (n, n), inverse of the covariance of the rows with noise
    weights: Reals  # (n,), what each row adds to a prediction, for a covariance of 1 with it

    @classmethod
    def of(cls, covariance: Reals, noise: float, values: Reals) -> Posterior:
        """Let a process know what was measured."""
        inverse, _ = inverse_of(covariance, noise)
        return cls(values, inverse, inverse @ values)

    def without(self, rows: Integers) -> Reals:
        """What is predicted of some rows by the others alone, of shape (rows,).

        In closed form: the same as a fit to the others with these sizes.
        """
        part = np.linalg.solve(self.inverse[np.ix_(rows, rows)], self.weights[rows])
        return np.asarray(self.values[rows] - part)


def inverse_of(covariance: Reals, noise: float) -> tuple[Reals, float]:
    """Inverse of a covariance with noise, and the logarithm of its determinant.

    By Cholesky, at a third of the cost of what works for any matrix. The noise, which is bounded from below,
    keeps it apart from singular ones, however alike rows are.
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


def fitted_sizes(covariance: Covariance, values: Reals) -> KernelSizes:
    """Sizes of the largest evidence times prior."""
    from scipy.optimize import minimize

    start = KernelSizes.unfitted(covariance.features.near.shape[1])
    centre, spread = start.vector, start.prior_spread

    def loss(vector: Reals) -> tuple[float, Reals]:
        sizes = start.moved(vector)
        products = covariance.products(sizes)
        inverse, log_determinant = inverse_of(np.tensordot(sizes.variances, products, 1), sizes.noise)
        weighted = inverse @ values
        away = (vector - centre) / spread
        evidence = values @ weighted + log_determinant
        gap = inverse - np.outer(weighted, weighted)
        slope = np.append(covariance.slope(sizes, products, gap), sizes.noise * np.trace(gap))
        return float(evidence + away @ away) / 2, slope / 2 + away / spread

    bounds = [(each - _LIMIT, each + _LIMIT) for each in centre]
    found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS})
    return start.moved(found.x)


_TREES, _LEAF = 150, 5
_HARDLY = 0.25
"""An application in fewer mixes than this share of the median of all is hardly known."""


@dataclass(frozen=True)
class Hyperparameters:
    """What takes long to find, for fits to parts of the same mixes.

    It says nothing of a part of which the applications have other traits in common.
    """

    link: str
    traits: tuple[str, ...]
    sizes: KernelSizes


def fit_slowdowns(
    mixes: Sequence[Bag], seed: int, *, trees: bool = True, found: Hyperparameters | None = None
) -> SlowdownProcess:
    """Fit a process to the slowdowns of mixes.

    Sizes and trees come from mixes whose applications are all known from enough mixes. What was measured of
    others moves the predictions of what is like it (kriging), those of the trees too.
    """
    runs, places = applications_of([mix.solos for mix in mixes])
    rows = CoRunnerRows.of(places, len(runs))
    slowdown = np.array([member.slowdown for mix in mixes for member in mix.members], dtype=np.float64)
    there = applications_in(mixes)
    base = ~_hardly_known(there)[rows.mix]
    traits = Traits.of([runs[place] for place in sorted(set(rows.own[base].tolist()))])
    if found is not None and found.traits != traits.names:
        found = None
    idle = leaves_memory_idle(runs)[rows.own]
    # What no other one slows down says nothing of those that are.
    kept = ~idle if 2 * idle.sum() < len(idle) else np.ones(len(idle), dtype=np.bool_)
    of_idle = float(np.median(slowdown[base & idle])) if (base & ~kept).any() else np.nan
    groups = there[rows.mix][kept]
    problem = _Problem(traits.matrix(runs), rows.where(kept), slowdown[kept], base[kept], groups)
    # Traits tell of shares by themselves, so that there is no choice.
    links = (found.link,) if found else ("logarithm",) if traits.names else tuple(LINKS)
    fits = [problem.on_scale(link, found) for link in links]
    _, scale, sizes = min(fits, key=lambda each: each[0])
    alone, beside, lines, forest = problem.weighted(scale, sizes, trees and bool(traits.names), seed)
    scale, largest = replace(scale, idle=of_idle), int(problem.rows.members.max())
    return SlowdownProcess(traits, scale, sizes, problem.features, alone, beside, lines, forest, largest)


def _hardly_known(there: Flags) -> Flags:
    """Mixes with an application that is hardly known."""
    counts = there.sum(axis=0)
    found: Flags = np.any(there[:, counts < _HARDLY * float(np.median(counts))], axis=1)
    return np.zeros(len(there), dtype=np.bool_) if 2 * found.sum() > len(found) else found


def applications_in(mixes: Sequence[Bag]) -> Flags:
    """Which applications are in each mix, of shape (mixes, applications)."""
    names = sorted({name for mix in mixes for name in mix.applications})
    return np.array([[name in mix.applications for name in names] for mix in mixes])


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows with their slowdowns, and which of them sizes are fitted to."""

    features: FeatureMatrix
    rows: CoRunnerRows
    slowdown: Reals  # (n,)
    base: Flags  # (n,)
    groups: Flags  # (n, applications), those of the row's mix

    def on_scale(self, link: str, found: Hyperparameters | None) -> tuple[float, Scale, KernelSizes]:
        """Mean error on applications that are left out on a scale, and the scale and sizes that are found."""
        scale = _scale(link, self.slowdown[self.base], self.rows.members[self.base])
        values = scale.to(self.slowdown, self.rows.members)[self.base]
        covariance = Covariance(self.features, self.rows.where(self.base))
        sizes = fitted_sizes(covariance, values) if found is None else found.sizes
        ratio = self._out_of_fold(scale, Posterior.of(covariance.matrix(sizes), sizes.noise, values))
        scale = replace(scale, factor=float(np.median(ratio)))
        return float(np.abs(scale.factor / ratio - 1).mean()), scale, sizes

    def _out_of_fold(self, scale: Scale, posterior: Posterior) -> Reals:
        """Measured over predicted slowdowns, each application left out in turn."""
        groups, slowdown = self.groups[self.base], self.slowdown[self.base]
        members = self.rows.members[self.base]
        parts = []
        for group in groups.T:
            out = np.flatnonzero(group)
            if 0 < len(out) < len(group):
                parts.append(slowdown[out] / scale.back(posterior.without(out), members[out]))
        return np.concatenate(parts) if parts else np.ones(1)

    def weighted(
        self, scale: Scale, sizes: KernelSizes, with_trees: bool, seed: int
    ) -> tuple[Reals, Reals, Reals, Trees | None]:
        """Weights of applications alone, (s,), beside others, (s, s), and by load, (s,), and the trees."""
        covariance, rows = Covariance(self.features, self.rows).matrix(sizes), self.rows
        values = scale.to(self.slowdown, rows.members)
        weights, trees = Posterior.of(covariance, sizes.noise, values).weights, None
        if with_trees:
            with importing("train", "fitting a model"):
                from sklearn.ensemble import ExtraTreesRegressor

            columns = surroundings(self.features, rows)
            forest = ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1)
            trees = trees_of_forest(forest.fit(columns[self.base], values[self.base]))
            rest = values - trees.sum(columns)[:, 0]
            weights = (weights + _moving(covariance, sizes.noise, self.base, rest)) / 2
            trees = trees.onto(np.array([[0.5]]))
        chosen = np.eye(len(self.features.load))[rows.own] * weights[:, None]
        loads = rows.beside @ self.features.load
        return chosen.sum(axis=0), chosen.T @ rows.beside, chosen.T @ loads, trees


def _scale(link: str, slowdown: Reals, members: Reals) -> Scale:
    numbers = LINKS[link].to(slowdown)
    rising = np.log(members / 2)
    slope = 0.0
    if np.ptp(rising) > 0:
        slope = float(np.cov(rising, numbers, bias=True)[0, 1] / rising.var())
    rest = numbers - slope * rising
    spread = float(rest.std())
    return Scale(link, float(rest.mean()), slope, spread if spread > 1e-9 else 1.0)


def _moving(covariance: Reals, noise: float, base: Flags, rest: Reals) -> Reals:
    """Weights of rows by which errors of trees at mixes that they did not see move what is like these."""
    weights = np.zeros(len(rest))
    known, probes = np.flatnonzero(base), np.flatnonzero(~base)
    if len(probes):
        inside = covariance[np.ix_(known, known)] + noise * np.eye(len(known))
        across = np.linalg.solve(inside, covariance[np.ix_(known, probes)])
        left = covariance[np.ix_(probes, probes)] - covariance[np.ix_(probes, known)] @ across
        found = np.linalg.solve(left + noise * np.eye(len(probes)), rest[probes])
        weights[probes] = found
        weights[known] = -across @ found
    return weights
