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
    """A process that knows what was measured in ``n`` rows."""

    values: Reals  # (n,), what was measured, of mean 0
    inverse: Reals  # (n, n), inverse of the covariance of the rows with noise
    weights: Reals  # (n,), what each row adds to a prediction, for a covariance of 1 with it

    @classmethod
    def of(cls, covariance: Reals, noise: float, values: Reals) -> SlowdownPosterior:
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
_SIZED, _OUT_OF_FOLD = 800, 1600
"""About so many rows tell the two dozen sizes, and how wrong predictions are, at a cost of their cube."""


def fitted_sizes(covariance: SlowdownCovariance, values: Reals) -> KernelSizes:
    """Sizes of the largest evidence times prior."""
    from scipy.optimize import minimize

    start = KernelSizes.unfitted(covariance.features.near.shape[1])
    centre, spread = start.vector, start.prior_spread

    def loss(vector: Reals) -> tuple[float, Reals]:
        sizes = start.moved(vector)
        inverse, log_determinant = inverse_of(covariance.matrix(sizes), sizes.noise)
        weighted = inverse @ values
        away = (vector - centre) / spread
        evidence = values @ weighted + log_determinant
        gap = inverse - np.outer(weighted, weighted)
        slope = np.append(covariance.slope(sizes, gap), sizes.noise * np.trace(gap))
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
    problem = _SlowdownProblem(traits.matrix(runs), rows.where(kept), slowdown[kept], base[kept], groups)
    # Traits tell of shares by themselves, so that there is no choice.
    links = (found.link,) if found else ("logarithm",) if traits.names else tuple(LINKS)
    fits = [problem.on_scale(link, found) for link in links]
    _, scale, sizes, is_better = min(fits, key=lambda each: each[0])
    s, largest = len(runs), int(problem.rows.members.max())
    scale = replace(scale, idle=of_idle)
    empty = SlowdownProcess(
        traits, scale, sizes, problem.features, np.zeros(s), np.zeros((s, s)), np.zeros(s), None, largest
    )
    return problem.told(empty, trees and bool(traits.names), seed) if is_better else empty


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
class _SlowdownProblem:
    """Rows with their slowdowns, and which of them sizes are fitted to."""

    features: FeatureMatrix
    rows: CoRunnerRows
    slowdown: Reals  # (n,)
    base: Flags  # (n,)
    groups: Flags  # (n, applications), those of the row's mix

    def on_scale(self, link: str, found: Hyperparameters | None) -> tuple[float, Scale, KernelSizes, bool]:
        """Mean error on applications that are left out on a scale, and the scale and sizes that are found.

        Last whether that is better than the mean of the others', on average over applications. More is not
        asked for: trees, which are not tried here, add to the process, and six applications tell little.
        """
        scale = _scale(link, self.slowdown[self.base], self.rows.members[self.base])
        values = scale.to(self.slowdown, self.rows.members)
        sizes = found.sizes if found else self._sizes(values)
        some = self._some(_OUT_OF_FOLD)
        covariance = SlowdownCovariance(self.features, self.rows.where(some)).matrix(sizes)
        parts = self._out_of_fold(some, scale, SlowdownPosterior.of(covariance, sizes.noise, values[some]))
        by_process, by_mean = (np.concatenate([np.ones(0), *each]) for each in zip(*parts, strict=True))
        factor, of_mean = float(np.median(by_process)), float(np.median(by_mean))
        gains = [np.abs(of_mean / two - 1).mean() - np.abs(factor / one - 1).mean() for one, two in parts]
        is_better = len(gains) < 2 or np.mean(gains) > 0
        error = float(np.abs(factor / by_process - 1).mean())
        return error, replace(scale, factor=factor if is_better else of_mean), sizes, bool(is_better)

    def _sizes(self, values: Reals) -> KernelSizes:
        some = self._some(_SIZED)
        return fitted_sizes(SlowdownCovariance(self.features, self.rows.where(some)), values[some])

    def _some(self, most: int) -> Flags:
        """At most about so many rows of those that sizes are fitted to: whole mixes, drawn at random."""
        if self.base.sum() <= most:
            return self.base
        mixes = np.unique(self.rows.mix[self.base])
        drawn = np.random.default_rng(0).permutation(mixes)[: round(len(mixes) * most / self.base.sum())]
        return np.asarray(self.base & np.isin(self.rows.mix, drawn))

    def _out_of_fold(
        self, some: Flags, scale: Scale, posterior: SlowdownPosterior
    ) -> list[tuple[Reals, Reals]]:
        """Measured over predicted slowdowns of some rows, each application left out in turn.

        Predicted by the process, and as the mean of the others.
        """
        groups, slowdown = self.groups[some], self.slowdown[some]
        members = self.rows.members[some]
        parts = []
        for group in groups.T:
            out = np.flatnonzero(group)
            if 0 < len(out) < len(group):
                mean = np.full(len(out), posterior.values[~group].mean())
                predicted = posterior.without(out), mean
                one, two = (slowdown[out] / scale.back(each, members[out]) for each in predicted)
                parts.append((one, two))
        return parts or [(np.ones(1), np.ones(1))]

    def told(self, process: SlowdownProcess, with_trees: bool, seed: int) -> SlowdownProcess:
        """A process that knows these rows, and its trees."""
        rows = self.rows
        values, trees = process.scale.to(self.slowdown, rows.members), None
        if with_trees:
            with importing("train", "fitting a model"):
                from sklearn.ensemble import ExtraTreesRegressor

            columns = surroundings(self.features, rows)
            forest = ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1)
            trees = trees_of_forest(forest.fit(columns[self.base], values[self.base]))
            # Errors of trees at mixes that they did not see move what is like these: what the process knows
            # of its own errors is that they are 0 at all others.
            rest = np.where(self.base, 0.0, values - trees.sum(columns)[:, 0])
            values, trees = (values + rest) / 2, trees.onto(np.array([[0.5]]))
        learned = LearnedRows(rows.beside, rows.own, values)
        return with_learned(replace(process, trees=trees), self.features, learned)


def with_learned(process: SlowdownProcess, known: FeatureMatrix, learned: LearnedRows) -> SlowdownProcess:
    """A process that learned from rows of ``s`` applications, and from no others."""
    rows = CoRunnerRows(learned.own, learned.beside, np.zeros_like(learned.own))
    alone, beside = weights_of(SlowdownCovariance(known, rows), process.sizes, learned.values)
    return replace(
        process, known=known, alone=alone, beside=beside, lines=beside @ known.load, learned=learned
    )


def weights_of(covariance: SlowdownCovariance, sizes: KernelSizes, values: Reals) -> tuple[Reals, Reals]:
    """Weights of applications alone, (s,), and beside others, (s, s), after values of rows.

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
    found = _by_pairs(covariance, sizes, values).reshape(s, s + 1)
    return found[:, s].copy(), found[:, :s].copy()


def _by_pairs(covariance: SlowdownCovariance, sizes: KernelSizes, values: Reals) -> Reals:
    """The same as one vector of applications times those beside them and none, (s (s + 1),).

    With the covariance ``C`` of pairs, and rows as sums ``R`` of pairs, it is the solution ``w`` of
    ``(noise + R' R C) w = R' values`` (Woodbury's identity).
    """
    from scipy.linalg import solve
    from scipy.sparse import csr_array

    rows, s = covariance.rows, len(covariance.features.load)
    beside = np.column_stack([rows.beside, np.ones(len(rows.own))])
    row, column = np.nonzero(beside)
    places = rows.own[row] * (s + 1) + column
    sums = csr_array((beside[row, column], (row, places)), shape=(len(rows.own), s * (s + 1)))
    system = (sums.T @ sums) @ covariance.of_pairs(sizes)
    system.flat[:: len(system) + 1] += sizes.noise
    return np.asarray(solve(system, sums.T @ values, overwrite_a=True, check_finite=False))


def _scale(link: str, slowdown: Reals, members: Reals) -> Scale:
    numbers = LINKS[link].to(slowdown)
    rising = np.log(members / 2)
    slope = 0.0
    if np.ptp(rising) > 0:
        slope = float(np.cov(rising, numbers, bias=True)[0, 1] / rising.var())
    rest = numbers - slope * rising
    spread = float(rest.std())
    return Scale(link, float(rest.mean()), slope, spread if spread > 1e-9 else 1.0)
