"""What learns from features of members how they do on parts, and what it has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.stored import State

__all__ = ["Amount", "Learned", "Learner", "Rows", "some_rows"]


@dataclass(frozen=True)
class Amount:
    """How much work a fit may be.

    Parameters
    ----------
    trees
        Trees of a forest.
    tree_rows, ridge_rows
        Members that trees and kernels learn from, drawn at random where there are more.
    """

    trees: int
    tree_rows: int
    ridge_rows: int


@dataclass(frozen=True, eq=False)
class Rows:
    """Members to learn from.

    Parameters
    ----------
    features
        Of shape ``(r, f)``; see `crosscast.predict.corun.partition.features`.
    levels
        Levels of MPS that these are of.
    alone
        Relative times on parts, of shape ``(r, s)``.
    """

    features: Reals
    levels: int
    alone: Reals


class Learned(Protocol):
    """What was learned: a function of features."""

    @property
    def form(self) -> str:
        """What it is kept as."""
        ...

    def predict(self, features: Reals) -> Reals:
        """Relative times on parts, of shape ``(r, s)``."""
        ...

    def state(self) -> State:
        """Arrays that it is kept as."""
        ...


class Learner(Protocol):
    """A way to learn, with choices that are made by what it does on members it has not seen."""

    @property
    def name(self) -> str:
        """Name of the model on the command line, and in tables."""
        ...

    @property
    def choices(self) -> int:
        """Among how many ways there is to choose."""
        ...

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int) -> Learned:
        """Learn in one of the ways."""
        ...

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """Learn in all of the ways, and predict others: of shape ``(choices, r, s)``."""
        ...


def some_rows(rows: Rows, most: int, seed: int) -> Rows:
    """At most so many of the rows, drawn at random."""
    count = len(rows.features)
    if count <= most:
        return rows
    chosen = np.sort(np.random.default_rng(seed).choice(count, most, replace=False))
    return Rows(rows.features[chosen], rows.levels, rows.alone[chosen])
