"""Scales on which slowdowns add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_integers, kept_names, kept_reals
from crosscast.predict.corun.features import MemberRows, Traited, Traits, distinct, neighbourhood
from crosscast.predict.trees import Trees, kept_trees
from crosscast.tables.corun.solo import Solo

_MOST = 50.0
"""A slowdown beyond what anything measured says nothing more."""


class Link(NamedTuple):
    """A scale: from slowdowns, and back."""

    to: Callable[[Reals], Reals]
    back: Callable[[Reals], Reals]


def _to_inverse(slowdown: Reals) -> Reals:
    value: Reals = -1.0 / slowdown
    return value


def _from_inverse(value: Reals) -> Reals:
    slowdown: Reals = 1.0 / np.clip(-value, 1.0 / _MOST, None)
    return slowdown


def _from_log(value: Reals) -> Reals:
    slowdown: Reals = np.exp(np.minimum(value, np.log(_MOST)))
    return slowdown


LINKS: Mapping[str, Link] = {
    "speed": Link(_to_inverse, _from_inverse),
    "logarithm": Link(np.log, _from_log),
}
"""Scales by name: the speed, of which shares add up to the device's, and the logarithm."""


def links_for(traits: Sequence[str]) -> tuple[str, ...]:
    """Names of the scales to choose from: traits tell of shares by themselves, so that there is no choice."""
    return ("logarithm",) if traits else tuple(LINKS)


ONE, NEAR, AKIN, KIN, SAME, LINE = "one", "near", "akin", "kin", "same", "line"
"""Kernels: all are alike; by traits; within an application by traits, or by batch where there are none;
within an application; the same application at the same size; and in proportion to loads."""

TERMS: tuple[tuple[str, str], ...] = (
    (ONE, ONE),
    (NEAR, ONE),
    (ONE, NEAR),
    (NEAR, NEAR),
    (AKIN, ONE),
    (ONE, AKIN),
    (AKIN, NEAR),
    (NEAR, AKIN),
    (AKIN, AKIN),
    (KIN, ONE),
    (ONE, KIN),
    (KIN, KIN),
    (AKIN, KIN),
    (KIN, AKIN),
    (SAME, ONE),
    (ONE, SAME),
    (ONE, LINE),
    (SAME, LINE),
)
"""Terms of the covariance: a kernel of the members times one of those that they share the device with."""

_BATCH_LENGTH = 1.5

Kernels = Mapping[str, Reals]
"""Kernels by name, each of shape ``(a, b)``."""


class Between:
    """How alike two sets of applications are, ``a`` and ``b`` of them, at lengths that are tried."""

    def __init__(self, first: Traited, second: Traited) -> None:
        self.squares: Reals = (first.near.T[:, :, None] - second.near.T[:, None, :]) ** 2
        """Squared distances in each trait, of shape ``(f, a, b)``."""
        kin = (first.application[:, None] == second.application[None, :]).astype(np.float64)
        same = (first.name[:, None] == second.name[None, :]).astype(np.float64)
        self._kernels = {ONE: np.ones_like(kin), KIN: kin, SAME: same}
        apart = (first.batch[:, None] - second.batch[None, :]) / _BATCH_LENGTH
        # Where traits are known, they tell what the batch does.
        self._batch = kin if len(self.squares) else kin * np.exp(-0.5 * apart**2)

    def kernels(self, lengths: Reals) -> Kernels:
        """All kernels but `LINE`, which is a product of loads."""
        near = np.exp(-0.5 * np.tensordot(lengths**-2.0, self.squares, 1))
        return {**self._kernels, NEAR: near, AKIN: self._batch * near}


_VARIANCE, _VARIANCE_SPREAD = np.log(0.1), 2.0
_LENGTH_SPREAD = 1.0


@dataclass(frozen=True, eq=False)
class Sizes:
    """Sizes of the parts of a covariance."""

    # Names of the kernels of each of `t` terms: of the member, and of those beside it
    terms: tuple[tuple[str, str], ...]
    variances: Reals  # Variance of each term, of shape `(t,)`
    lengths: Reals  # Lengths of the traits of the member, and of those beside it, of shape `(2, f)`
    noise: float  # Variance of what no term explains

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
    """Rows of one set of applications, between which covariances are asked for again and again."""

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
        """Slope of ``(weights * covariance).sum()`` by the logarithms of variances and lengths."""
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


@dataclass(frozen=True)
class Scale:
    """From slowdowns to numbers of mean 0 and variance 1, and back."""

    link: str  # Name of the scale on which slowdowns add up
    # Mean on that scale of bags of two, and by how much it rises with the logarithm of the members
    centre: float
    per_log_member: float
    spread: float  # Standard deviation
    # What predicted slowdowns are multiplied by, as their median error on what was left out says
    factor: float = 1.0
    # Slowdown of members that leave the memory system idle; not a number where there were none
    idle: float = np.nan

    def to(self, slowdown: Reals, members: Reals) -> Reals:
        """Numbers of slowdowns in bags of so many members."""
        numbers: Reals = (LINKS[self.link].to(slowdown) - self._mean(members)) / self.spread
        return numbers

    def back(self, numbers: Reals, members: Reals) -> Reals:
        """Slowdowns of numbers."""
        slowdown: Reals = LINKS[self.link].back(numbers * self.spread + self._mean(members)) * self.factor
        return slowdown

    def _mean(self, members: Reals) -> Reals:
        mean: Reals = self.centre + self.per_log_member * np.log(members / 2)
        return mean


@dataclass(frozen=True, eq=False)
class SlowdownProcess:
    """Predicts slowdowns.

    What it learned from ``n`` rows of ``s`` applications is a matrix: how much each pair of an application
    and one beside it adds, for a covariance of 1.
    """

    traits: Traits  # How applications become numbers
    scale: Scale  # How slowdowns become numbers
    sizes: Sizes  # Sizes of the covariance
    known: Traited  # The `s` applications
    alone: Reals  # Weights of applications as members, of shape `(s,)`
    beside: Reals  # Weights of applications as members (rows) beside others (columns), of shape `(s, s)`
    lines: Reals  # Weights of applications as members times the load beside them, of shape `(s,)`
    trees: Trees | None  # Trees on `neighbourhood`, whose sum is added; `None` without
    largest: int  # Members of the largest bags that it learned from

    def slowdowns(self, bags: Sequence[tuple[Solo, ...]]) -> tuple[Reals, ...]:
        """Slowdowns of the members of each bag, each of shape ``(members,)``.

        In bags that are larger than those that it learned from they are at least what those of pairs add up
        to, as where members take turns: nothing was measured of more neighbours.
        """
        found = list(self._slowdowns(bags))
        for place in [place for place, bag in enumerate(bags) if len(bag) > self.largest]:
            found[place] = np.maximum(found[place], self._added_up(bags[place]))
        return tuple(found)

    def _added_up(self, bag: tuple[Solo, ...]) -> Reals:
        """Slowdowns of members if what each neighbour alone costs them adds up."""
        pairs = list(combinations(range(len(bag)), 2))
        more = np.zeros(len(bag))
        for pair, slow in zip(pairs, self._slowdowns([(bag[i], bag[j]) for i, j in pairs]), strict=True):
            more[list(pair)] += np.maximum(slow - 1.0, 0.0)
        return 1.0 + more

    def _slowdowns(self, bags: Sequence[tuple[Solo, ...]]) -> tuple[Reals, ...]:
        solos, places = distinct(bags)
        rows = MemberRows.of(bags, places)
        there = self.traits.traited(solos)
        numbers = self._process(there, rows)
        if self.trees is not None:
            numbers += self.trees.sum(neighbourhood(there, rows))[:, 0]
        found = self.scale.back(numbers, rows.members)
        if np.isfinite(self.scale.idle):
            found = np.where(there.idle[rows.own], self.scale.idle, found)
        ends = np.cumsum([len(bag) for bag in bags]).tolist()
        return tuple(found[end - len(bag) : end] for bag, end in zip(bags, ends, strict=True))

    def _process(self, there: Traited, rows: MemberRows) -> Reals:
        between = Between(there, self.known)
        own, beside = (between.kernels(lengths) for lengths in self.sizes.lengths)
        # What stands before the same kernel of those beside is summed first.
        mine: dict[str, Reals] = {}
        for variance, (first, second) in zip(self.sizes.variances.tolist(), self.sizes.terms, strict=True):
            mine[second] = mine.get(second, 0.0) + variance * own[first]
        numbers: Reals = (mine.pop(ONE) @ self.alone)[rows.own]
        if LINE in mine:
            numbers += (mine.pop(LINE) @ self.lines)[rows.own] * (rows.beside @ there.load)
        by_pair = np.zeros((len(there), len(there)))
        for second, each in mine.items():
            by_pair += each @ self.beside @ beside[second].T
        numbers += (by_pair[rows.own] * rows.beside).sum(axis=1)
        return numbers

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        scale = self.scale
        known_idle = bool(np.isfinite(scale.idle))
        return {
            **{f"traits.{name}": array for name, array in self.traits.state().items()},
            "link": np.array([scale.link], dtype=np.str_),
            "scale": np.array(
                [
                    scale.centre,
                    scale.per_log_member,
                    scale.spread,
                    scale.factor,
                    *([scale.idle] if known_idle else []),
                ]
            ),
            "variances": self.sizes.variances,
            "lengths": self.sizes.lengths,
            "largest": np.array([self.largest]),
            "noise": np.array([self.sizes.noise]),
            "application": self.known.application,
            "name": self.known.name,
            "near": self.known.near,
            "batch": self.known.batch,
            "load": self.known.load,
            "alone": self.alone,
            "beside": self.beside,
            "lines": self.lines,
            **(
                {}
                if self.trees is None
                else {f"trees.{name}": array for name, array in self.trees.state().items()}
            ),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> SlowdownProcess:
        """Make it from its arrays."""
        from crosscast.predict.artefact import arrays_of
        from crosscast.predict.corun.features import width

        traits = Traits.from_state(arrays_of(state, "traits"))
        link, scale = kept_names(state, "link"), kept_reals(state, "scale", 1)
        variances, lengths = kept_reals(state, "variances", 1), kept_reals(state, "lengths", 2)
        application, name = kept_names(state, "application"), kept_names(state, "name")
        near, beside = kept_reals(state, "near", 2), kept_reals(state, "beside", 2)
        batch, load, alone, lines, noise = (
            kept_reals(state, each, 1) for each in ("batch", "load", "alone", "lines", "noise")
        )
        largest = kept_integers(state, "largest", 1, (2, 1 << 16))
        s, f = len(application), len(traits.names)
        terms = Sizes.unfitted(f).terms
        shapes = (
            (len(name),) == (s,)
            and near.shape == (s, f)
            and beside.shape == (s, s)
            and all(len(each) == s for each in (batch, load, alone, lines))
            and len(variances) == len(terms)
            and lengths.shape == (2, f)
            and len(noise) == len(link) == len(largest) == 1
            and len(scale) in (4, 5)
        )
        if not shapes or link[0] not in LINKS or scale[2] <= 0 or (lengths <= 0).any():
            raise InputError(
                f"model: expected arrays of a process of {s} applications with {f} traits and "
                f"{len(TERMS)} terms at most, found others"
            )
        trees = arrays_of(state, "trees")
        known = Traited(np.array(application), np.array(name), near, batch, load, np.zeros(s, dtype=np.bool_))
        return cls(
            traits,
            Scale(link[0], *scale.tolist()),
            Sizes(terms, variances, lengths, float(noise[0])),
            known,
            alone,
            beside,
            lines,
            kept_trees(trees, width(f)) if trees else None,
            int(largest[0]),
        )


_FEW = 64
"""So many parts of bags are predicted at once: one by one each would take nearly as long as all."""


class Running:
    """Slowdowns of those that run."""

    def __init__(self, process: SlowdownProcess, bags: Sequence[tuple[Solo, ...]]) -> None:
        self._process, self._bags = process, bags
        # By the number of a bag, and the places of its members that run.
        self._known: dict[tuple[int, ...], Reals] = {}
        few = sum(2 ** len(bag) for bag in bags) <= _FEW
        self._ask(
            [
                (number, *places)
                for number, bag in enumerate(bags)
                for members in range(min(2, len(bag)) if few else len(bag), len(bag) + 1)
                for places in combinations(range(len(bag)), members)
            ]
        )

    @property
    def whole(self) -> tuple[Reals, ...]:
        """Slowdowns in each whole bag, of shape ``(members,)``."""
        return tuple(self._known[(number, *range(len(bag)))] for number, bag in enumerate(self._bags))

    def left(self, bags: Sequence[int], running: Flags) -> Reals:
        """Slowdowns of those that still run, where these are two or more; 1 elsewhere."""
        keys = [(number, *np.flatnonzero(runs).tolist()) for number, runs in zip(bags, running, strict=True)]
        several = [(row, key) for row, key in enumerate(keys) if len(key) > 2]
        self._ask([key for _, key in several if key not in self._known])
        found = np.ones(running.shape)
        for row, key in several:
            found[row, list(key[1:])] = self._known[key]
        return found

    def _ask(self, keys: Sequence[tuple[int, ...]]) -> None:
        if keys:
            parts = [tuple(self._bags[number][place] for place in places) for number, *places in keys]
            self._known.update(zip(keys, self._process.slowdowns(parts), strict=True))
