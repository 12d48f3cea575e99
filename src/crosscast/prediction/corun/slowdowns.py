"""Slowdowns as a Gaussian process over a co-runner and the others of its mix.

The times of mixes follow from the slowdowns of their co-runners, which end one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, expect_known
from crosscast.prediction.corun import Mix
from crosscast.prediction.corun.features import (
    CoRunnerRows,
    FeatureMatrix,
    Traits,
    applications_of,
    leaves_memory_idle,
    surroundings,
)
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.trees import Trees

_SAME = 1e-9
"""Relative difference up to which ends of co-runners are equal."""

SlowdownsOf = Callable[[Integers, Integers], Reals]
"""Function from rows (mixes) and columns (co-runners) to slowdowns ``(rows, columns)``."""


def mix_times(isolated_s: Reals, slowdowns: Reals, slowdowns_of: SlowdownsOf) -> Reals:
    """Times of ``b`` mixes of ``n`` co-runners, (b,), from the common start to the end of the last.

    Until the first ends, slowdowns are `slowdowns`, (b, n); then those of `slowdowns_of`, called once for
    each set of co-runners that still run. NaN where a time or a slowdown is not known.
    """
    count = isolated_s.shape[1]
    work, running = isolated_s.copy(), np.ones(isolated_s.shape, dtype=np.bool_)
    elapsed, bits = np.zeros(len(work)), 1 << np.arange(count)
    while running.any():
        rate = np.where(running.all(axis=1, keepdims=True) & (count > 1), slowdowns, 1.0)
        subset = running @ bits
        for code in np.unique(subset).tolist() if count > 2 else ():
            rows, columns = np.flatnonzero(subset == code), np.flatnonzero(code & bits)
            if 1 < len(columns) < count:
                rate[np.ix_(rows, columns)] = slowdowns_of(rows, columns)
        for name, values in (("isolated times", isolated_s), ("slowdowns", rate)):
            if (values <= 0).any():
                raise InputError.of(where=name, expected="numbers above 0", found=f"{np.nanmin(values):g}")
        ends = np.where(running, work * rate, np.inf)
        # A mix whose co-runners have all ended takes no more time. NaN propagates.
        first = np.where(running.any(axis=1), ends.min(axis=1), 0.0)
        elapsed += first
        work = work - first[:, None] / rate
        running = running & (ends > first[:, None] * (1 + _SAME))
    return elapsed


def with_fewer(slowdown: Reals, members: int, running: int) -> Reals:
    """Approximate slowdown among fewer co-runners: the excess over 1 is proportional to the others."""
    return 1.0 + (slowdown - 1.0) * (running - 1.0) / (members - 1)


def even_slowdown(isolated_s: Reals, times: Reals) -> Reals:
    """Slowdown ``(b,)`` of all co-runners, assumed equal, from the mix's time, which does not determine each.

    Those of fewer co-runners are as in `with_fewer`; 1 where a mix takes no longer than its longest run.
    """
    members = isolated_s.shape[1]
    steps = np.diff(np.sort(isolated_s, axis=1), axis=1, prepend=0.0)
    # With k of n ended, (n - 1 - k) / (n - 1) of the slowdown's excess over 1 remains.
    shared = steps @ ((members - 1 - np.arange(members)) / (members - 1))
    slowdown: Reals = np.maximum(1.0 + (times - isolated_s.max(axis=1)) / shared, 1.0)
    return slowdown


def pairs_added_up(mixes: int, members: int, slowdowns_of: Callable[[int, int], Reals]) -> Reals:
    """Slowdowns ``(mixes, members)`` if the excesses of pairs add up, as in time sharing.

    `slowdowns_of` returns those of the pair of two columns in all mixes, ``(mixes, 2)``.
    """
    added = np.ones((mixes, members))
    for pair in combinations(range(members), 2):
        added[:, pair] += np.maximum(slowdowns_of(*pair) - 1.0, 0.0)
    return added


_MOST = 50.0
"""Largest slowdown."""


class Link(NamedTuple):
    """A scale on which contributions to slowdowns add up: from slowdowns, and back."""

    to: Callable[[Reals], Reals]
    back: Callable[[Reals], Reals]


LINKS: Mapping[str, Link] = {
    "speed": Link(
        lambda slowdown: -1.0 / slowdown, lambda value: np.asarray(1.0 / np.clip(-value, 1.0 / _MOST, None))
    ),
    "logarithm": Link(np.log, lambda value: np.exp(np.minimum(value, np.log(_MOST)))),
}
"""Scales by name: the speed, of which shares add up to the device's, and the logarithm."""

ONE, NEAR, AKIN, KIN, SAME, LINE = "one", "near", "akin", "kin", "same", "line"
"""Kernels: constant; by traits; within an application by traits, or by batch without traits; within an
application; within an application at one size; and the product of loads."""

TERMS: tuple[tuple[str, str], ...] = (
    *((ONE, ONE), (NEAR, ONE), (ONE, NEAR), (NEAR, NEAR), (AKIN, ONE), (ONE, AKIN)),
    *((AKIN, NEAR), (NEAR, AKIN), (AKIN, AKIN), (KIN, ONE), (ONE, KIN), (KIN, KIN)),
    *((AKIN, KIN), (KIN, AKIN), (SAME, ONE), (ONE, SAME), (ONE, LINE), (SAME, LINE)),
)
"""Terms of the covariance: a kernel of the co-runners times one of the others in their mixes."""

_BATCH_LENGTH = 1.5

Kernels = Mapping[str, Reals]
"""Kernels by name, each of shape (a, b)."""


class Similarity:
    """Kernels between two sets of applications, ``a`` and ``b`` of them, for any lengths."""

    def __init__(self, first: FeatureMatrix, second: FeatureMatrix) -> None:
        self.squares: Reals = (first.near.T[:, :, None] - second.near.T[:, None, :]) ** 2  # (f, a, b)
        kin = (first.application[:, None] == second.application[None, :]).astype(np.float64)
        same = (first.name[:, None] == second.name[None, :]).astype(np.float64)
        self._kernels = {ONE: np.ones_like(kin), KIN: kin, SAME: same}
        differences = (first.batch[:, None] - second.batch[None, :]) / _BATCH_LENGTH
        # Traits include the effect of the batch.
        self._batch = kin if len(self.squares) else kin * np.exp(-0.5 * differences**2)

    def kernels(self, lengths: Reals) -> tuple[Kernels, Kernels]:
        """Kernels except `LINE`, a product of loads: with the lengths of co-runners, and of the others."""
        near = [np.exp(-0.5 * np.tensordot(each**-2.0, self.squares, 1)) for each in lengths]
        of_itself, beside = ({**self._kernels, NEAR: each, AKIN: self._batch * each} for each in near)
        return of_itself, beside


# Prior of variances: median, and standard deviation of the logarithm; and that of lengths.
_VARIANCE, _VARIANCE_SPREAD, _LENGTH_SPREAD = 0.1, 2.0, 1.0


@dataclass(frozen=True, eq=False)
class KernelSizes(Stored):
    """Hyperparameters of a covariance of ``t`` terms."""

    variances: Annotated[Reals, Array("t", low=0)]  # Variance of each term
    lengths: Annotated[Reals, Array("2 f", above=0)]  # Lengths of traits of a co-runner, and of the others
    noise: Annotated[float, Array(low=0)]  # Variance of the noise

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """Names of the kernels of each term: of the co-runner, and of the others.

        Traits replace names, batches and loads of applications where there are traits.
        """
        left_out = {KIN, LINE} if self.lengths.shape[1] else {NEAR}
        return tuple(term for term in TERMS if not left_out & set(term))

    @classmethod
    def unfitted(cls, traits: int) -> KernelSizes:
        """Medians of the priors."""
        lengths = np.ones((2, traits))
        terms = cls(np.empty(0), lengths, _VARIANCE).terms
        return cls(np.full(len(terms), _VARIANCE), lengths, _VARIANCE)

    @property
    def vector(self) -> Reals:
        """All hyperparameters as one vector of logarithms."""
        return np.concatenate([np.log(self.variances), np.log(self.lengths).ravel(), np.log([self.noise])])

    def from_vector(self, vector: Reals) -> KernelSizes:
        """Hyperparameters from another vector."""
        t = len(self.variances)
        lengths = np.exp(vector[t:-1]).reshape(self.lengths.shape)
        return KernelSizes(np.exp(vector[:t]), lengths, float(np.exp(vector[-1])))

    @property
    def prior_spread(self) -> Reals:
        """Standard deviations of the priors of the vector."""
        spreads = (_VARIANCE_SPREAD, _LENGTH_SPREAD, _VARIANCE_SPREAD)
        return np.repeat(spreads, (len(self.variances), self.lengths.size, 1))


def _by_second(sizes: KernelSizes) -> Mapping[str, list[tuple[int, str]]]:
    """Indices of terms and their kernels of co-runners, by the kernel of the others."""
    terms: dict[str, list[tuple[int, str]]] = {}
    for index, (first, second) in enumerate(sizes.terms):
        terms.setdefault(second, []).append((index, first))
    return terms


class SlowdownCovariance:
    """Covariances between rows of one set of applications, for any hyperparameters."""

    def __init__(self, features: FeatureMatrix, rows: CoRunnerRows) -> None:
        self.features, self.rows = features, rows
        self._similarity = Similarity(features, features)

    def matrix(self, sizes: KernelSizes) -> Reals:
        """Covariance between all rows, without noise, ``(n, n)``."""
        of_itself, beside = self._similarity.kernels(sizes.lengths)
        total = np.zeros((len(self.rows.own), len(self.rows.own)))
        for second, terms in _by_second(sizes).items():
            block = self._of_own(sum(sizes.variances[index] * of_itself[first] for index, first in terms))
            if second != ONE:
                block *= self._of_beside(second, beside)
            total += block
        return total

    def of_pairs(self, sizes: KernelSizes) -> Reals:
        """Covariance ``(s (s + 1), s (s + 1))`` of pairs of an application and another one, or none (last).

        It determines that of rows, which are sums of pairs.
        """
        of_itself, beside = self._similarity.kernels(sizes.lengths)
        load = self.features.load
        s = len(load)
        total = np.zeros((s, s + 1, s, s + 1))
        for second, terms in _by_second(sizes).items():
            first_kernel = sum(sizes.variances[index] * of_itself[first] for index, first in terms)
            if second == ONE:
                total[:, s, :, s] += first_kernel
            else:
                second_kernel = np.outer(load, load) if second == LINE else beside[second]
                total[:, :s, :, :s] += np.multiply.outer(first_kernel, second_kernel).transpose(0, 2, 1, 3)
        return total.reshape(s * (s + 1), s * (s + 1))

    def slope(self, sizes: KernelSizes, weights: Reals) -> Reals:
        """Derivative of ``(weights * matrix).sum()`` by the logarithms of variances and lengths.

        Many rows are of the same application: summing over these first handles all terms with the same kernel
        of the others at once.
        """
        of_itself, beside = self._similarity.kernels(sizes.lengths)
        squares = self._similarity.squares
        chosen = np.eye(len(self.features.load))[self.rows.own]
        by_variance, by_length = np.zeros(len(sizes.variances)), np.zeros(sizes.lengths.shape)
        for second, terms in _by_second(sizes).items():
            remaining_weights = weights if second == ONE else weights * self._of_beside(second, beside)
            gathered = (chosen.T @ remaining_weights) @ chosen
            for index, first in terms:
                part = sizes.variances[index] * of_itself[first] * gathered
                by_variance[index] = part.sum()
                # The derivative of a kernel by the logarithm of a length is the kernel times squares over
                # lengths squared.
                if first in (NEAR, AKIN):
                    by_length[0] += np.tensordot(squares, part, 2)
            if second in (NEAR, AKIN):
                first_kernel = sum(sizes.variances[index] * of_itself[first] for index, first in terms)
                weighted = self._of_own(first_kernel) * weights
                pairs = (self.rows.beside.T @ weighted) @ self.rows.beside * beside[second]
                by_length[1] += np.tensordot(squares, pairs, 2)
        return np.concatenate([by_variance, (by_length / sizes.lengths**2).ravel()])

    def _of_own(self, kernel: Reals) -> Reals:
        return kernel[self.rows.own][:, self.rows.own]

    def _of_beside(self, name: str, kernels: Kernels) -> Reals:
        if name == LINE:
            load = self.rows.beside @ self.features.load
            return np.outer(load, load)
        return self.rows.beside @ kernels[name] @ self.rows.beside.T


@dataclass(frozen=True)
class Scale(Stored):
    """Transformation of slowdowns to numbers of mean 0 and variance 1, and back."""

    link: str  # One of `LINKS`
    # Mean on that scale of mixes of two, and its slope by the logarithm of the co-runners
    centre: float
    per_log_member: float
    spread: Annotated[float, Array(above=0)]  # Standard deviation
    # Factor of predicted slowdowns, from their median error on held-out mixes
    factor: float = 1.0
    # Slowdown of applications that leave the memory system idle; NaN without any
    idle: Annotated[float, Array(nan=True)] = np.nan

    def to(self, slowdown: Reals, members: Reals) -> Reals:
        """Transform slowdowns in mixes of `members` co-runners."""
        mean = self.centre + self.per_log_member * np.log(members / 2)
        return (LINKS[self.link].to(slowdown) - mean) / self.spread

    def back(self, numbers: Reals, members: Reals) -> Reals:
        """Slowdowns from transformed numbers."""
        mean = self.centre + self.per_log_member * np.log(members / 2)
        return LINKS[self.link].back(numbers * self.spread + mean) * self.factor

    def noise_factor(self, slowdown: Reals, deviation: float) -> Reals:
        """Factor by which slowdowns are larger with noise of a deviation on that scale."""
        link = LINKS[self.link]
        return np.asarray(link.back(link.to(slowdown) + deviation * self.spread) / slowdown)


@dataclass(frozen=True, eq=False)
class LearnedRows(Stored):
    """Training rows of a process: ``n`` co-runners of mixes of ``s`` applications."""

    # Occurrences of each application among the others of its mix
    beside: Annotated[Reals, Array("n s", low=0)]
    own: Annotated[Integers, Array("n", low=0, below="s")]  # Index of each one's application
    values: Annotated[Reals, Array("n")]  # Transformed slowdowns, of mean 0 and variance 1


@dataclass(frozen=True, eq=False)
class SlowdownProcess(Stored):
    """A fitted process of slowdowns.

    Its posterior is a matrix of weights for pairs of ``s`` applications: the contribution of each pair for a
    covariance of 1.
    """

    traits: Traits  # Of applications
    scale: Scale  # Of slowdowns
    sizes: Annotated[KernelSizes, Nested(flat=True)]  # Hyperparameters of the covariance
    known: Annotated[FeatureMatrix, Nested(flat=True)]  # The applications
    alone: Annotated[Reals, Array("s")]  # Weights of applications as co-runners
    beside: Annotated[Reals, Array("s s")]  # Weights of applications (rows) beside others (columns)
    lines: Annotated[Reals, Array("s")]  # Weights of applications times the load of the others
    trees: Trees | None  # Trees on `surroundings`, whose sum is added; `None` without
    largest: Annotated[int, Array(low=2)]  # Co-runners of the largest training mixes
    # `None` where the mean was better, and in models of earlier versions
    learned: LearnedRows | None = None

    def check(self) -> None:
        """Raise InputError for an unknown link, or parts of other terms, applications or traits."""
        link, terms, variances = self.scale.link, len(self.sizes.terms), len(self.sizes.variances)
        expect_known(link, LINKS, field="link")
        if variances != terms:
            raise InputError.of(field="variances", expected=str(terms), found=variances)
        traits = len(self.traits.names)
        sizes = len(self.known.load), self.known.near.shape[1], self.sizes.lengths.shape[1]
        expected = len(self.alone), traits, traits
        if sizes != expected:
            wanted = f"(applications, traits, traits) {expected}"
            raise InputError.of(field="near and lengths", expected=wanted, found=sizes)
        if self.trees is not None:
            self.trees.check_width(3 * traits + 1, 1)
        if self.learned is not None and self.learned.beside.shape[1] != sizes[0]:
            wanted, width = f"a column for each of {sizes[0]} applications", self.learned.beside.shape[1]
            raise InputError.of(field="learned.beside", expected=wanted, found=width)

    def of_mixes(self, mixes: Sequence[Mix]) -> tuple[MixSlowdowns, list[list[int]]]:
        """Contributions of the applications of mixes to slowdowns, and the mixes as indices of these."""
        runs, indices = applications_of(mixes)
        features = self.traits.matrix(runs)
        of_itself, beside = Similarity(features, self.known).kernels(self.sizes.lengths)
        # Terms with the same kernel of the others are summed first.
        by_second: dict[str, Reals] = {}
        for variance, (first, second) in zip(self.sizes.variances.tolist(), self.sizes.terms, strict=True):
            by_second[second] = by_second.get(second, 0.0) + variance * of_itself[first]
        alone = by_second.pop(ONE) @ self.alone
        line = by_second.pop(LINE) @ self.lines if LINE in by_second else None
        by_pair = np.zeros((len(runs), len(runs)))
        for second, each in by_second.items():
            by_pair += each @ self.beside @ beside[second].T
        return MixSlowdowns(self, features, alone, line, by_pair, leaves_memory_idle(runs)), indices


@dataclass(frozen=True, eq=False)
class MixSlowdowns:
    """Contributions of ``s`` applications, which determine the slowdowns of all mixes of them."""

    process: SlowdownProcess
    features: FeatureMatrix
    alone: Reals  # (s,), of each, independent of the others
    line: Reals | None  # (s,), of each for a unit of the others' load; `None` without loads
    by_pair: Reals  # (s, s), of each (row) for each other one
    idle: Flags  # (s,), whether each leaves the memory system idle

    def slowdowns(self, mixes: Sequence[Sequence[int]]) -> tuple[Reals, ...]:
        """Slowdowns ``(co-runners,)`` of each mix, given as indices of applications.

        In mixes larger than those of the training they are at least the sum of those of pairs, as in time
        sharing.
        """
        of_rows = self._of_rows(mixes)
        ends = np.cumsum([len(mix) for mix in mixes]).tolist()
        of_mixes = [of_rows[end - len(mix) : end] for mix, end in zip(mixes, ends, strict=True)]
        for members in {len(mix) for mix in mixes if len(mix) > self.process.largest}:
            indices = [index for index, mix in enumerate(mixes) if len(mix) == members]
            of_size = np.array([mixes[index] for index in indices])

            def of_pair(*pair: int, of_size: Integers = of_size) -> Reals:
                return self._of_rows(of_size[:, pair].tolist()).reshape(-1, 2)

            for index, least in zip(indices, pairs_added_up(len(of_size), members, of_pair), strict=True):
                of_mixes[index] = np.maximum(of_mixes[index], least)
        return tuple(of_mixes)

    def _of_rows(self, mixes: Sequence[Sequence[int]]) -> Reals:
        process, rows = self.process, CoRunnerRows.of(mixes, len(self.alone))
        numbers = self.alone[rows.own]
        if self.line is not None:
            numbers += self.line[rows.own] * (rows.beside @ self.features.load)
        numbers += (self.by_pair[rows.own] * rows.beside).sum(axis=1)
        if process.trees is not None:
            numbers += process.trees.sum(surroundings(self.features, rows))[:, 0]
        slowdowns = process.scale.back(numbers, 1.0 + rows.beside.sum(axis=1))
        if np.isfinite(process.scale.idle):
            slowdowns = np.where(self.idle[rows.own], process.scale.idle, slowdowns)
        return slowdowns
