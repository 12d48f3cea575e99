"""Slowdowns of members of bags, predicted by a process alone or beside trees, kept as small arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.corun.process.covariance import Sizes
from crosscast.predict.corun.process.likeness import LINE, ONE, TERMS, Between
from crosscast.predict.corun.process.links import LINKS
from crosscast.predict.corun.process.neighbourhood import neighbourhood
from crosscast.predict.corun.process.rows import MemberRows, distinct
from crosscast.predict.corun.process.traits import Traited, Traits
from crosscast.predict.state import kept_integers, kept_names, kept_reals
from crosscast.predict.trees import Trees
from crosscast.tables.corun.solo import Solo

__all__ = ["Scale", "SlowdownProcess"]


@dataclass(frozen=True)
class Scale:
    """From slowdowns to numbers of mean 0 and variance 1, and back.

    Parameters
    ----------
    link
        Name of the scale on which slowdowns add up.
    centre, per_log_member
        Mean on that scale of bags of two, and by how much it rises with the logarithm of the members.
    spread
        Standard deviation.
    factor
        What predicted slowdowns are multiplied by, as their median error on what was left out says.
    idle
        Slowdown of members that leave the memory system idle; not a number where there were none.
    """

    link: str
    centre: float
    per_log_member: float
    spread: float
    factor: float = 1.0
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

    Parameters
    ----------
    traits
        How applications become numbers.
    scale
        How slowdowns become numbers.
    sizes
        Sizes of the covariance.
    known
        The ``s`` applications.
    alone
        Weights of applications as members, of shape ``(s,)``.
    beside
        Weights of applications as members (rows) beside others (columns), of shape ``(s, s)``.
    lines
        Weights of applications as members times the load beside them, of shape ``(s,)``.
    trees
        Trees on `neighbourhood`, whose sum is added; ``None`` without.
    largest
        Members of the largest bags that it learned from.
    """

    traits: Traits
    scale: Scale
    sizes: Sizes
    known: Traited
    alone: Reals
    beside: Reals
    lines: Reals
    trees: Trees | None
    largest: int

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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or they do not fit together.
        """
        from crosscast.predict.corun.process.neighbourhood import width
        from crosscast.predict.stored import arrays_of

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
            Trees.from_state(trees, width(f)) if trees else None,
            int(largest[0]),
        )
