"""Covariance of the slowdowns of members: sums of products of kernels, with sizes that are fitted.

The neighbours of a member add up: a kernel of what is beside two members is the sum over all pairs of
neighbours, so that bags of any size have one covariance, which does not depend on the order of members.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.corun.process.likeness import (
    AKIN,
    KIN,
    LINE,
    NEAR,
    ONE,
    TERMS,
    Between,
    Kernels,
)
from crosscast.predict.corun.process.rows import MemberRows
from crosscast.predict.corun.process.traits import Traited

__all__ = ["Sizes", "Training"]

_VARIANCE, _VARIANCE_SPREAD = np.log(0.1), 2.0
_LENGTH_SPREAD = 1.0


@dataclass(frozen=True, eq=False)
class Sizes:
    """Sizes of the parts of a covariance.

    Parameters
    ----------
    terms
        Names of the kernels of each of ``t`` terms: of the member, and of those beside it.
    variances
        Variance of each term, of shape ``(t,)``.
    lengths
        Lengths of the traits of the member, and of those beside it, of shape ``(2, f)``.
    noise
        Variance of what no term explains.
    """

    terms: tuple[tuple[str, str], ...]
    variances: Reals
    lengths: Reals
    noise: float

    @classmethod
    def unfitted(cls, traits: int) -> Sizes:
        """Sizes before anything was measured: the centres of their priors.

        Where applications have traits, these tell what they have in common; else their names, batches and
        loads do.
        """
        left_out = {KIN, LINE} if traits else {NEAR}
        terms = tuple(term for term in TERMS if not left_out & set(term))
        return cls(terms, np.full(len(terms), 0.1), np.ones((2, traits)), 0.1)

    @property
    def vector(self) -> Reals:
        """All as one vector of logarithms."""
        parts = (np.log(self.variances), np.log(self.lengths).ravel(), np.log([self.noise]))
        return np.concatenate(parts)

    def moved(self, vector: Reals) -> Sizes:
        """Sizes of another vector."""
        t = len(self.terms)
        lengths = np.exp(vector[t:-1]).reshape(self.lengths.shape)
        return Sizes(self.terms, np.exp(vector[:t]), lengths, float(np.exp(vector[-1])))

    @property
    def prior_spread(self) -> Reals:
        """Standard deviations of the priors of the vector."""
        t, lengths = len(self.terms), self.lengths.size
        spreads = (_VARIANCE_SPREAD, _LENGTH_SPREAD, _VARIANCE_SPREAD)
        return np.repeat(spreads, (t, lengths, 1))


class Training:
    """Rows of one set of applications, between which covariances are asked for again and again.

    Parameters
    ----------
    traited
        The applications.
    rows
        The rows.
    """

    def __init__(self, traited: Traited, rows: MemberRows) -> None:
        self.traited, self.rows = traited, rows
        self._between = Between(traited, traited)

    def covariance(self, sizes: Sizes) -> Reals:
        """Covariance between all rows, without noise, of shape ``(n, n)``."""
        total: Reals = np.tensordot(sizes.variances, self.products(sizes), 1)
        return total

    def products(self, sizes: Sizes) -> Reals:
        """Product of kernels of each term, of shape ``(t, n, n)``."""
        own, beside = self._kernels(sizes)
        mine = {name: self._of_own(own[name]) for name in {first for first, _ in sizes.terms}}
        theirs = {name: self._of_beside(name, beside) for name in {second for _, second in sizes.terms}}
        return np.stack([mine[first] * theirs[second] for first, second in sizes.terms])

    def slope(self, sizes: Sizes, products: Reals, weights: Reals) -> Reals:
        """Slope of ``(weights * covariance).sum()`` by the logarithms of variances and lengths.

        Parameters
        ----------
        sizes
            Where.
        products
            Of `products` there.
        weights
            A symmetric matrix of shape ``(n, n)``.
        """
        by_variance = sizes.variances * np.tensordot(products, weights, 2)
        by_length = np.zeros(sizes.lengths.shape)
        if not sizes.lengths.size:
            return by_variance
        own, beside = self._kernels(sizes)
        terms = list(zip(sizes.variances.tolist(), sizes.terms, strict=True))
        # The derivative of a kernel by the logarithm of a length is the kernel times squares over lengths
        # squared: the sum over rows becomes one over pairs of applications.
        for name in (NEAR, AKIN):
            theirs = {second: size for size, (first, second) in terms if first == name}
            if theirs:
                rest = weights * sum(size * self._of_beside(each, beside) for each, size in theirs.items())
                by_length[0] += self._by_squares(self._gathered_own(rest) * own[name])
            mine = {first: size for size, (first, second) in terms if second == name}
            if mine:
                rest = weights * sum(size * self._of_own(own[each]) for each, size in mine.items())
                by_length[1] += self._by_squares(self.rows.beside.T @ rest @ self.rows.beside * beside[name])
        return np.concatenate([by_variance, (by_length / sizes.lengths**2).ravel()])

    def _by_squares(self, pairs: Reals) -> Reals:
        found: Reals = np.tensordot(self._between.squares, pairs, 2)
        return found

    def _kernels(self, sizes: Sizes) -> tuple[Kernels, Kernels]:
        own, beside = sizes.lengths
        return self._between.kernels(own), self._between.kernels(beside)

    def _of_own(self, kernel: Reals) -> Reals:
        found: Reals = kernel[np.ix_(self.rows.own, self.rows.own)]
        return found

    def _of_beside(self, name: str, kernels: Kernels) -> Reals:
        if name == ONE:
            return np.ones((len(self.rows), len(self.rows)))
        if name == LINE:
            load = self.rows.beside @ self.traited.load
            return np.outer(load, load)
        found: Reals = self.rows.beside @ kernels[name] @ self.rows.beside.T
        return found

    def _gathered_own(self, matrix: Reals) -> Reals:
        """Sums over the rows of each pair of applications."""
        count = len(self.traited)
        chosen = np.zeros((len(self.rows), count))
        chosen[np.arange(len(self.rows)), self.rows.own] = 1.0
        gathered: Reals = chosen.T @ matrix @ chosen
        return gathered
