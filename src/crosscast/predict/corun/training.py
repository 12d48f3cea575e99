"""A fitted process: what it says of rows, and of the rows of a group if it had not seen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.features import MemberRows, Traited, Traits, distinct, neighbourhood
from crosscast.predict.corun.slowdowns import LINKS, Scale, Sizes, SlowdownProcess, Training, links_for
from crosscast.predict.trees import Trees, trees_of_forest
from crosscast.tables.corun.bag import Bag


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A process that knows what was measured in some of the rows."""

    values: Reals  # What was measured, of mean 0, of shape `(n,)`
    inverse: Reals  # Inverse of the covariance of the rows with noise, of shape `(n, n)`
    weights: Reals  # What each row adds to a prediction, for a covariance of 1 with it, of shape `(n,)`

    def without(self, rows: Integers) -> Reals:
        """What is predicted of some rows by the others alone, of shape ``(rows,)``.

        In closed form: the same as a fit to the others with these sizes.
        """
        part = np.linalg.solve(self.inverse[np.ix_(rows, rows)], self.weights[rows])
        predicted: Reals = self.values[rows] - part
        return predicted


def conditioned(covariance: Reals, noise: float, values: Reals) -> Conditioned:
    """Let a process know what was measured."""
    inverse, _ = inverse_of(covariance, noise)
    return Conditioned(values, inverse, inverse @ values)


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
            "bags: expected slowdowns and features of usual size, found a covariance of up to "
            f"{noisy.max():g}"
        )
    lower, _ = lapack.dpotri(factor, lower=1)
    inverse: Reals = np.tril(lower) + np.tril(lower, -1).T
    return inverse, 2 * float(np.log(np.diag(factor)).sum())


_STEPS = 30
_LIMIT = 6.0


def fitted_sizes(training: Training, values: Reals) -> Sizes:
    """Fit the sizes."""
    # Imported here: predicting with fitted sizes needs no SciPy.
    from scipy.optimize import minimize

    start = Sizes.unfitted(training.traited.near.shape[1])
    centre, spread = start.vector, start.prior_spread

    def loss(vector: Reals) -> tuple[float, Reals]:
        sizes = start.moved(vector)
        products = training.products(sizes)
        covariance = np.tensordot(sizes.variances, products, 1)
        inverse, log_determinant = inverse_of(covariance, sizes.noise)
        weighted = inverse @ values
        away = (vector - centre) / spread
        likelihood = values @ weighted + log_determinant
        gap = inverse - np.outer(weighted, weighted)
        slope = np.append(training.slope(sizes, products, gap), sizes.noise * np.trace(gap))
        return float(likelihood + away @ away) / 2, slope / 2 + away / spread

    bounds = [(each - _LIMIT, each + _LIMIT) for each in centre]
    found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS})
    return start.moved(found.x)


_TREES, _LEAF = 150, 5
_HARDLY = 0.25
"""An application in fewer bags than this share of the median of all is hardly known."""


@dataclass(frozen=True)
class Found:
    """What takes long to find: the scale's link and the sizes, for fits to parts of the same bags.

    It says nothing of a part of which the applications have other traits in common.
    """

    link: str
    traits: tuple[str, ...]
    sizes: Sizes


def fit_slowdowns(
    bags: Sequence[Bag], seed: int, *, trees: bool = True, found: Found | None = None
) -> tuple[SlowdownProcess, Found]:
    """Fit a process to the slowdowns of bags.

    Sizes and trees come from bags whose applications are all known from enough bags. What was measured of
    others moves the predictions of what is like it (kriging), those of the trees too.
    """
    if len(bags) < 3:
        raise InputError(f"bags: expected at least 3 with slowdowns to learn from, found {len(bags)}")
    solos, places = distinct([bag.solos for bag in bags])
    rows = MemberRows.of([bag.solos for bag in bags], places)
    slowdown = np.array([member.slowdown for bag in bags for member in bag.members], dtype=np.float64)
    base = ~_probed(bags)[rows.bag]
    traits = Traits.of([solos[place] for place in sorted(set(rows.own[base].tolist()))])
    if found is not None and found.traits != traits.names:
        found = None
    there = traits.traited(solos)
    idle = there.idle[rows.own]
    # What no neighbour slows down says nothing of those that are.
    kept = ~idle if 2 * idle.sum() < len(idle) else np.ones(len(idle), dtype=np.bool_)
    rest = float(np.median(slowdown[base & idle])) if (base & ~kept).any() else np.nan
    problem = _Problem(there, _some(rows, kept), slowdown[kept], base[kept], _groups(bags, rows)[kept])
    links = (found.link,) if found else links_for(traits.names)
    fits = [problem.fit(link, found) for link in links]
    best = min(fits, key=lambda each: each.error)
    process = problem.process(best, traits, trees and bool(traits.names), seed)
    if np.isfinite(rest):
        process = replace(process, scale=replace(process.scale, idle=rest))
    return process, Found(best.scale.link, traits.names, best.sizes)


def _probed(bags: Sequence[Bag]) -> Flags:
    """Bags with an application that is hardly known."""
    counts: dict[str, int] = {}
    for bag in bags:
        for name in bag.applications:
            counts[name] = counts.get(name, 0) + 1
    least = _HARDLY * float(np.median(list(counts.values())))
    hardly = {name for name, count in counts.items() if count < least}
    found = np.array([bool(bag.applications & hardly) for bag in bags])
    return np.zeros(len(bags), dtype=np.bool_) if 2 * found.sum() > len(bags) else found


def _groups(bags: Sequence[Bag], rows: MemberRows) -> Reals:
    """For each row, which applications are in its bag, of shape ``(n, applications)``."""
    names = sorted({name for bag in bags for name in bag.applications})
    there = np.array([[name in bag.applications for name in names] for bag in bags], dtype=np.float64)
    groups: Reals = there[rows.bag]
    return groups


def _some(rows: MemberRows, chosen: Flags) -> MemberRows:
    return MemberRows(rows.own[chosen], rows.beside[chosen], rows.bag[chosen])


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit on one scale."""

    scale: Scale
    sizes: Sizes
    values: Reals
    error: float


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows with their slowdowns, and which of them sizes are fitted to."""

    there: Traited
    rows: MemberRows
    slowdown: Reals
    base: Flags
    groups: Reals

    def fit(self, link: str, found: Found | None) -> _Fit:
        scale = _scale(link, self.slowdown[self.base], self.rows.members[self.base])
        values = scale.to(self.slowdown, self.rows.members)
        training = Training(self.there, _some(self.rows, self.base))
        sizes = fitted_sizes(training, values[self.base]) if found is None else found.sizes
        known = conditioned(training.covariance(sizes), sizes.noise, values[self.base])
        ratio = self._left_out(scale, known)
        scale = replace(scale, factor=float(np.median(ratio)))
        return _Fit(scale, sizes, values, float(np.abs(scale.factor / ratio - 1).mean()))

    def _left_out(self, scale: Scale, known: Conditioned) -> Reals:
        """Measured over predicted slowdowns, each application left out in turn."""
        groups, slowdown = self.groups[self.base], self.slowdown[self.base]
        members = self.rows.members[self.base]
        parts = []
        for group in groups.T:
            out = np.flatnonzero(group)
            if 0 < len(out) < len(group):
                parts.append(slowdown[out] / scale.back(known.without(out), members[out]))
        return np.concatenate(parts) if parts else np.ones(1)

    def process(self, fit: _Fit, traits: Traits, with_trees: bool, seed: int) -> SlowdownProcess:
        training = Training(self.there, self.rows)
        covariance = training.covariance(fit.sizes)
        noise = fit.sizes.noise
        weights = conditioned(covariance, noise, fit.values).weights
        trees = None
        if with_trees:
            features = neighbourhood(self.there, self.rows)
            trees = _trees(features[self.base], fit.values[self.base], seed)
            rest = fit.values - trees.sum(features)[:, 0]
            weights = (weights + _moving(covariance, noise, self.base, rest)) / 2
            trees = trees.onto(np.array([[0.5]]))
        rows, count = self.rows, len(self.there)
        chosen = np.zeros((len(rows), count))
        chosen[np.arange(len(rows)), rows.own] = weights
        return SlowdownProcess(
            traits,
            fit.scale,
            fit.sizes,
            self.there,
            chosen.sum(axis=0),
            chosen.T @ rows.beside,
            chosen.T @ (rows.beside @ self.there.load),
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


def _trees(features: Reals, values: Reals, seed: int) -> Trees:
    from crosscast.predict.scikit import ExtraTreesRegressor

    forest = ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1)
    return trees_of_forest(forest.fit(features, values))


def _moving(covariance: Reals, noise: float, base: Flags, rest: Reals) -> Reals:
    """Weights of rows by which errors of trees at bags that they did not see move what is like these."""
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
