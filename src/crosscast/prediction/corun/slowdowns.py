"""Slowdowns as a Gaussian process over a co-runner and those beside it: scales, covariance, prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.corun.features import (
    CoRunnerRows,
    FeatureMatrix,
    Traits,
    applications_of,
    leaves_memory_idle,
    surroundings,
)
from crosscast.prediction.corun.forecast import Mix
from crosscast.prediction.corun.mix_times import pairs_added_up
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.trees import Trees

_MOST = 50.0
"""A slowdown beyond what anything measured says nothing more."""


class Link(NamedTuple):
    """A scale on which slowdowns add up: from slowdowns, and back."""

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
"""Kernels: all are alike; by traits; within an application by traits, or by batch where there are none;
within an application; the same application at the same size; and in proportion to loads."""

TERMS: tuple[tuple[str, str], ...] = (
    *((ONE, ONE), (NEAR, ONE), (ONE, NEAR), (NEAR, NEAR), (AKIN, ONE), (ONE, AKIN)),
    *((AKIN, NEAR), (NEAR, AKIN), (AKIN, AKIN), (KIN, ONE), (ONE, KIN), (KIN, KIN)),
    *((AKIN, KIN), (KIN, AKIN), (SAME, ONE), (ONE, SAME), (ONE, LINE), (SAME, LINE)),
)
"""Terms of the covariance: a kernel of the co-runners times one of those that they share the device with."""

_BATCH_LENGTH = 1.5

Kernels = Mapping[str, Reals]
"""Kernels by name, each of shape (a, b)."""


class Similarity:
    """How alike two sets of applications are, ``a`` and ``b`` of them, at lengths that are tried."""

    def __init__(self, first: FeatureMatrix, second: FeatureMatrix) -> None:
        self.squares: Reals = (first.near.T[:, :, None] - second.near.T[:, None, :]) ** 2  # (f, a, b)
        kin = (first.application[:, None] == second.application[None, :]).astype(np.float64)
        same = (first.name[:, None] == second.name[None, :]).astype(np.float64)
        self._kernels = {ONE: np.ones_like(kin), KIN: kin, SAME: same}
        apart = (first.batch[:, None] - second.batch[None, :]) / _BATCH_LENGTH
        # Where traits are known, they tell what the batch does.
        self._batch = kin if len(self.squares) else kin * np.exp(-0.5 * apart**2)

    def kernels(self, lengths: Reals) -> tuple[Kernels, Kernels]:
        """All kernels but `LINE`, a product of loads: by the lengths of co-runners, and of those beside."""
        near = [np.exp(-0.5 * np.tensordot(each**-2.0, self.squares, 1)) for each in lengths]
        own, beside = ({**self._kernels, NEAR: each, AKIN: self._batch * each} for each in near)
        return own, beside


# Variance and standard deviations of logarithms of variances and lengths before anything was measured.
_VARIANCE, _VARIANCE_SPREAD, _LENGTH_SPREAD = 0.1, 2.0, 1.0


@dataclass(frozen=True, eq=False)
class KernelSizes(Stored):
    """Sizes of the ``t`` terms of a covariance."""

    variances: Annotated[Reals, Array("t", low=0)]  # Variance of each term
    lengths: Annotated[Reals, Array("2 f", above=0)]  # Lengths of traits of a co-runner, and of those beside
    noise: Annotated[float, Array(low=0)]  # Variance of what no term explains

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """Names of the kernels of each term: of the co-runner, and of those beside it.

        Where applications have traits, these tell what they have in common; else their names, batches and
        loads do.
        """
        left_out = {KIN, LINE} if self.lengths.shape[1] else {NEAR}
        return tuple(term for term in TERMS if not left_out & set(term))

    @classmethod
    def unfitted(cls, traits: int) -> KernelSizes:
        """Sizes before anything was measured: the centres of their priors."""
        lengths = np.ones((2, traits))
        terms = cls(np.empty(0), lengths, _VARIANCE).terms
        return cls(np.full(len(terms), _VARIANCE), lengths, _VARIANCE)

    @property
    def vector(self) -> Reals:
        """All as one vector of logarithms."""
        return np.concatenate([np.log(self.variances), np.log(self.lengths).ravel(), np.log([self.noise])])

    def moved(self, vector: Reals) -> KernelSizes:
        """Sizes of another vector."""
        t = len(self.variances)
        lengths = np.exp(vector[t:-1]).reshape(self.lengths.shape)
        return KernelSizes(np.exp(vector[:t]), lengths, float(np.exp(vector[-1])))

    @property
    def prior_spread(self) -> Reals:
        """Standard deviations of the priors of the vector."""
        spreads = (_VARIANCE_SPREAD, _LENGTH_SPREAD, _VARIANCE_SPREAD)
        return np.repeat(spreads, (len(self.variances), self.lengths.size, 1))


def _by_second(sizes: KernelSizes) -> Mapping[str, list[tuple[int, str]]]:
    """Places of terms and their kernels of co-runners, by the kernel of those beside."""
    found: dict[str, list[tuple[int, str]]] = {}
    for place, (first, second) in enumerate(sizes.terms):
        found.setdefault(second, []).append((place, first))
    return found


class SlowdownCovariance:
    """Covariances between rows of one set of applications, asked for again and again."""

    def __init__(self, features: FeatureMatrix, rows: CoRunnerRows) -> None:
        self.features, self.rows = features, rows
        self._similarity = Similarity(features, features)

    def matrix(self, sizes: KernelSizes) -> Reals:
        """Covariance between all rows, without noise, of shape (n, n)."""
        own, beside = self._similarity.kernels(sizes.lengths)
        total = np.zeros((len(self.rows.own), len(self.rows.own)))
        for second, terms in _by_second(sizes).items():
            block = self._of_own(sum(sizes.variances[place] * own[first] for place, first in terms))
            if second != ONE:
                block *= self._of_beside(second, beside)
            total += block
        return total

    def of_pairs(self, sizes: KernelSizes) -> Reals:
        """Covariance between pairs of an application and one beside it, or none, last.

        Of shape (s (s + 1), s (s + 1)): it says the same of all rows, which are sums of pairs.
        """
        own, beside = self._similarity.kernels(sizes.lengths)
        load = self.features.load
        s = len(load)
        total = np.zeros((s, s + 1, s, s + 1))
        for second, terms in _by_second(sizes).items():
            mine = sum(sizes.variances[place] * own[first] for place, first in terms)
            if second == ONE:
                total[:, s, :, s] += mine
            else:
                theirs = np.outer(load, load) if second == LINE else beside[second]
                total[:, :s, :, :s] += np.multiply.outer(mine, theirs).transpose(0, 2, 1, 3)
        return total.reshape(s * (s + 1), s * (s + 1))

    def slope(self, sizes: KernelSizes, weights: Reals) -> Reals:
        """Slope of ``(weights * matrix).sum()`` by the logarithms of variances and lengths.

        Many rows are of the same application: what is summed over them first makes all terms with the same
        kernel of those beside at once.
        """
        own, beside = self._similarity.kernels(sizes.lengths)
        squares = self._similarity.squares
        chosen = np.eye(len(self.features.load))[self.rows.own]
        by_variance, by_length = np.zeros(len(sizes.variances)), np.zeros(sizes.lengths.shape)
        for second, terms in _by_second(sizes).items():
            rest = weights if second == ONE else weights * self._of_beside(second, beside)
            gathered = (chosen.T @ rest) @ chosen
            for place, first in terms:
                part = sizes.variances[place] * own[first] * gathered
                by_variance[place] = part.sum()
                # The derivative of a kernel by the logarithm of a length is the kernel times squares over
                # lengths squared.
                if first in (NEAR, AKIN):
                    by_length[0] += np.tensordot(squares, part, 2)
            if second in (NEAR, AKIN):
                mine = self._of_own(sum(sizes.variances[place] * own[first] for place, first in terms))
                mine *= weights
                pairs = (self.rows.beside.T @ mine) @ self.rows.beside * beside[second]
                by_length[1] += np.tensordot(squares, pairs, 2)
        return np.concatenate([by_variance, (by_length / sizes.lengths**2).ravel()])

    def _of_own(self, kernel: Reals) -> Reals:
        found: Reals = kernel[self.rows.own][:, self.rows.own]
        return found

    def _of_beside(self, name: str, kernels: Kernels) -> Reals:
        if name == LINE:
            load = self.rows.beside @ self.features.load
            return np.outer(load, load)
        found: Reals = self.rows.beside @ kernels[name] @ self.rows.beside.T
        return found


@dataclass(frozen=True)
class Scale(Stored):
    """From slowdowns to numbers of mean 0 and variance 1, and back."""

    link: str  # Which of `LINKS`
    # Mean on that scale of mixes of two, and by how much it rises with the logarithm of the co-runners
    centre: float
    per_log_member: float
    spread: Annotated[float, Array(above=0)]  # Standard deviation
    # What predicted slowdowns are multiplied by, as their median error on what was left out says
    factor: float = 1.0
    # Slowdown of those that leave the memory system idle; NaN where there were none
    idle: Annotated[float, Array(nan=True)] = np.nan

    def to(self, slowdown: Reals, members: Reals) -> Reals:
        """Numbers of slowdowns in mixes of so many."""
        mean = self.centre + self.per_log_member * np.log(members / 2)
        numbers: Reals = (LINKS[self.link].to(slowdown) - mean) / self.spread
        return numbers

    def back(self, numbers: Reals, members: Reals) -> Reals:
        """Slowdowns of numbers."""
        mean = self.centre + self.per_log_member * np.log(members / 2)
        slowdown: Reals = LINKS[self.link].back(numbers * self.spread + mean) * self.factor
        return slowdown


@dataclass(frozen=True, eq=False)
class LearnedRows(Stored):
    """``n`` co-runners of mixes of ``s`` applications that a process has learned from."""

    # How often each application is among the others of its mix
    beside: Annotated[Reals, Array("n s", low=0)]
    own: Annotated[Integers, Array("n", low=0, below="s")]  # Place of each one's application
    values: Annotated[Reals, Array("n")]  # What the process was told of each, of mean 0 and variance 1


@dataclass(frozen=True, eq=False)
class SlowdownProcess(Stored):
    """Predicts slowdowns.

    What it learned from its rows of ``s`` applications is a matrix: how much each pair of an application and
    one beside it adds, for a covariance of 1.
    """

    traits: Traits  # How applications become numbers
    scale: Scale  # How slowdowns become numbers
    sizes: Annotated[KernelSizes, Nested(flat=True)]  # Sizes of the covariance
    known: Annotated[FeatureMatrix, Nested(flat=True)]  # The applications
    alone: Annotated[Reals, Array("s")]  # Weights of applications as co-runners
    beside: Annotated[Reals, Array("s s")]  # Weights of applications (rows) beside others (columns)
    lines: Annotated[Reals, Array("s")]  # Weights of applications times the load beside them
    trees: Trees | None  # Trees on `surroundings`, whose sum is added; `None` without
    largest: Annotated[int, Array(low=2)]  # Co-runners of the largest mixes that it learned from
    # What it learned from; `None` where the mean was better, and in models of earlier versions
    learned: LearnedRows | None = None

    def check(self) -> None:
        """Refuse another link, and parts of other terms, applications or traits."""
        link, terms, variances = self.scale.link, len(self.sizes.terms), len(self.sizes.variances)
        if link not in LINKS:
            raise InputError.of(field="link", expected=f"one of {', '.join(LINKS)}", found=repr(link))
        if variances != terms:
            raise InputError.of(field="variances", expected=str(terms), found=variances)
        traits = len(self.traits.names)
        found = len(self.known.load), self.known.near.shape[1], self.sizes.lengths.shape[1]
        expected = len(self.alone), traits, traits
        if found != expected:
            wanted = f"(applications, traits, traits) {expected}"
            raise InputError.of(field="near and lengths", expected=wanted, found=found)
        if self.trees is not None:
            self.trees.check_width(3 * traits + 1, 1)
        if self.learned is not None and self.learned.beside.shape[1] != found[0]:
            wanted, width = f"a column for each of {found[0]} applications", self.learned.beside.shape[1]
            raise InputError.of(field="learned.beside", expected=wanted, found=width)

    def of_mixes(self, mixes: Sequence[Mix]) -> tuple[MixSlowdowns, list[list[int]]]:
        """What it says of the applications of mixes, and the mixes by the places of these."""
        runs, places = applications_of(mixes)
        there = self.traits.matrix(runs)
        own, beside = Similarity(there, self.known).kernels(self.sizes.lengths)
        # What stands before the same kernel of those beside is summed first.
        mine: dict[str, Reals] = {}
        for variance, (first, second) in zip(self.sizes.variances.tolist(), self.sizes.terms, strict=True):
            mine[second] = mine.get(second, 0.0) + variance * own[first]
        alone = mine.pop(ONE) @ self.alone
        line = mine.pop(LINE) @ self.lines if LINE in mine else None
        by_pair = np.zeros((len(runs), len(runs)))
        for second, each in mine.items():
            by_pair += each @ self.beside @ beside[second].T
        return MixSlowdowns(self, there, alone, line, by_pair, leaves_memory_idle(runs)), places


@dataclass(frozen=True, eq=False)
class MixSlowdowns:
    """What a process says of ``s`` applications, from which slowdowns of all mixes of them follow."""

    process: SlowdownProcess
    features: FeatureMatrix
    alone: Reals  # (s,), what each has whatever is beside it
    line: Reals | None  # (s,), what each has by the load beside it; `None` where loads do not tell
    by_pair: Reals  # (s, s), what each (row) has by each other one beside it
    idle: Flags  # (s,), whether each leaves the memory system idle

    def slowdowns(self, mixes: Sequence[Sequence[int]]) -> tuple[Reals, ...]:
        """Slowdowns of the co-runners of each mix of applications, named by places, each (co-runners,).

        In mixes that are larger than those that it learned from they are at least what those of pairs add up
        to, as where co-runners take turns: nothing was measured of more of them.
        """
        found = self._of_rows(mixes)
        ends = np.cumsum([len(mix) for mix in mixes]).tolist()
        each = [found[end - len(mix) : end] for mix, end in zip(mixes, ends, strict=True)]
        for members in {len(mix) for mix in mixes if len(mix) > self.process.largest}:
            places = [place for place, mix in enumerate(mixes) if len(mix) == members]
            some = np.array([mixes[place] for place in places])
            added = pairs_added_up(
                len(some),
                members,
                lambda *pair, some=some: self._of_rows(some[:, pair].tolist()).reshape(-1, 2),
            )
            for place, least in zip(places, added, strict=True):
                each[place] = np.maximum(each[place], least)
        return tuple(each)

    def _of_rows(self, mixes: Sequence[Sequence[int]]) -> Reals:
        process, rows = self.process, CoRunnerRows.of(mixes, len(self.alone))
        numbers = self.alone[rows.own]
        if self.line is not None:
            numbers += self.line[rows.own] * (rows.beside @ self.features.load)
        numbers += (self.by_pair[rows.own] * rows.beside).sum(axis=1)
        if process.trees is not None:
            numbers += process.trees.sum(surroundings(self.features, rows))[:, 0]
        found = process.scale.back(numbers, 1.0 + rows.beside.sum(axis=1))
        if np.isfinite(process.scale.idle):
            found = np.where(self.idle[rows.own], process.scale.idle, found)
        return found
