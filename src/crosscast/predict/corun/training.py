"""Training of the process: its evidence, its posterior, and what it would say of a group it had not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Bag
from crosscast.errors import InputError
from crosscast.predict.corun.features import (
    CoRunnerRows,
    FeatureMatrix,
    Traits,
    distinct,
    leaves_memory_idle,
    surroundings,
)
from crosscast.predict.corun.slowdowns import (
    LINKS,
    Covariance,
    KernelSizes,
    Scale,
    SlowdownProcess,
    links_for,
)
from crosscast.predict.trees import Trees, trees_of_forest


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
        predicted: Reals = self.values[rows] - part
        return predicted


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
        raise InputError(
            "mixes: expected slowdowns and features of usual size, found a covariance of up to "
            f"{noisy.max():g}"
        )
    lower, _ = lapack.dpotri(factor, lower=1)
    inverse: Reals = np.tril(lower) + np.tril(lower, -1).T
    return inverse, 2 * float(np.log(np.diag(factor)).sum())


_STEPS = 30
_LIMIT = 6.0


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
    if len(mixes) < 3:
        raise InputError(f"mixes: expected at least 3 with slowdowns to learn from, found {len(mixes)}")
    runs, places = distinct([mix.solos for mix in mixes])
    rows = CoRunnerRows.of([mix.solos for mix in mixes], places)
    slowdown = np.array([member.slowdown for mix in mixes for member in mix.members], dtype=np.float64)
    base = ~_hardly_known(mixes)[rows.mix]
    traits = Traits.of([runs[place] for place in sorted(set(rows.own[base].tolist()))])
    if found is not None and found.traits != traits.names:
        found = None
    idle = leaves_memory_idle(runs)[rows.own]
    # What no other one slows down says nothing of those that are.
    kept = ~idle if 2 * idle.sum() < len(idle) else np.ones(len(idle), dtype=np.bool_)
    of_idle = float(np.median(slowdown[base & idle])) if (base & ~kept).any() else np.nan
    problem = _Problem(
        traits.matrix(runs),
        rows.where(kept),
        slowdown[kept],
        base[kept],
        _applications(mixes)[rows.mix][kept],
    )
    links = (found.link,) if found else links_for(traits.names)
    best = min((problem.fit(link, found) for link in links), key=lambda each: each.error)
    process = problem.process(best, traits, trees and bool(traits.names), seed)
    return replace(process, scale=replace(process.scale, idle=of_idle))


def _hardly_known(mixes: Sequence[Bag]) -> Flags:
    """Mixes with an application that is hardly known."""
    there = _applications(mixes)
    counts = there.sum(axis=0)
    found: Flags = np.any(there[:, counts < _HARDLY * float(np.median(counts))], axis=1)
    return np.zeros(len(mixes), dtype=np.bool_) if 2 * found.sum() > len(found) else found


def _applications(mixes: Sequence[Bag]) -> Flags:
    """Which applications are in each mix, of shape (mixes, applications)."""
    names = sorted({name for mix in mixes for name in mix.applications})
    return np.array([[name in mix.applications for name in names] for mix in mixes])


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit on one scale."""

    scale: Scale
    sizes: KernelSizes
    values: Reals
    error: float


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows with their slowdowns, and which of them sizes are fitted to."""

    features: FeatureMatrix
    rows: CoRunnerRows
    slowdown: Reals  # (n,)
    base: Flags  # (n,)
    groups: Flags  # (n, applications), those of the row's mix

    def fit(self, link: str, found: Hyperparameters | None) -> _Fit:
        scale = _scale(link, self.slowdown[self.base], self.rows.members[self.base])
        values = scale.to(self.slowdown, self.rows.members)
        covariance = Covariance(self.features, self.rows.where(self.base))
        sizes = fitted_sizes(covariance, values[self.base]) if found is None else found.sizes
        posterior = Posterior.of(covariance.matrix(sizes), sizes.noise, values[self.base])
        ratio = self._out_of_fold(scale, posterior)
        scale = replace(scale, factor=float(np.median(ratio)))
        return _Fit(scale, sizes, values, float(np.abs(scale.factor / ratio - 1).mean()))

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

    def process(self, fit: _Fit, traits: Traits, with_trees: bool, seed: int) -> SlowdownProcess:
        covariance, noise = Covariance(self.features, self.rows).matrix(fit.sizes), fit.sizes.noise
        weights = Posterior.of(covariance, noise, fit.values).weights
        trees = None
        if with_trees:
            columns = surroundings(self.features, self.rows)
            trees = _trees(columns[self.base], fit.values[self.base], seed)
            rest = fit.values - trees.sum(columns)[:, 0]
            weights = (weights + _moving(covariance, noise, self.base, rest)) / 2
            trees = trees.onto(np.array([[0.5]]))
        rows = self.rows
        chosen = np.eye(len(self.features))[rows.own] * weights[:, None]
        return SlowdownProcess(
            traits,
            fit.scale,
            fit.sizes,
            self.features,
            chosen.sum(axis=0),
            chosen.T @ rows.beside,
            chosen.T @ (rows.beside @ self.features.load),
            trees,
            int(rows.members.max()),
        )


def _scale(link: str, slowdown: Reals, members: Reals) -> Scale:
    numbers = LINKS[link].to(slowdown)
    rising = np.log(members / 2)
    slope = 0.0
    if np.ptp(rising) > 0:
        slope = float(np.cov(rising, numbers, bias=True)[0, 1] / rising.var())
    rest = numbers - slope * rising
    spread = float(rest.std())
    return Scale(link, float(rest.mean()), slope, spread if spread > 1e-9 else 1.0)


def _trees(columns: Reals, values: Reals, seed: int) -> Trees:
    from crosscast.predict.scikit import ExtraTreesRegressor

    forest = ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1)
    return trees_of_forest(forest.fit(columns, values))


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
