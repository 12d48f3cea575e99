"""Members of bags as rows: which application it is, and how often each is among those beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.predict.grid import Integers, Reals
from crosscast.tables.corun.solo import Solo

__all__ = ["MemberRows", "distinct"]


@dataclass(frozen=True, eq=False)
class MemberRows:
    """``n`` members of bags of ``s`` applications.

    Parameters
    ----------
    own
        Place of each member's application, of shape ``(n,)``.
    beside
        How often each application is among the others of its bag, of shape ``(n, s)``.
    bag
        Place of its bag, of shape ``(n,)``.
    """

    own: Integers
    beside: Reals
    bag: Integers

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.own)

    @property
    def members(self) -> Reals:
        """Members of each row's bag, of shape ``(n,)``."""
        count: Reals = 1.0 + self.beside.sum(axis=1)
        return count

    @classmethod
    def of(cls, bags: Sequence[tuple[Solo, ...]], places: dict[tuple[str, ...], int]) -> MemberRows:
        """Rows of bags.

        Parameters
        ----------
        bags
            The bags.
        places
            Place of each application by its key, as `distinct` gives them.
        """
        own: list[int] = []
        bag: list[int] = []
        pairs: list[tuple[int, int]] = []
        for number, solos in enumerate(bags):
            found = [places[solo.key] for solo in solos]
            for place, application in enumerate(found):
                pairs.extend((len(own), other) for k, other in enumerate(found) if k != place)
                own.append(application)
                bag.append(number)
        beside = np.zeros((len(own), len(places)))
        if pairs:
            np.add.at(beside, tuple(np.array(pairs).T), 1.0)
        return cls(np.array(own, dtype=np.int64), beside, np.array(bag, dtype=np.int64))


def distinct(bags: Sequence[tuple[Solo, ...]]) -> tuple[list[Solo], dict[tuple[str, ...], int]]:
    """The applications of bags, each once, sorted by their keys, and the place of each."""
    found: dict[tuple[str, ...], Solo] = {solo.key: solo for bag in bags for solo in bag}
    keys = sorted(found)
    return [found[key] for key in keys], {key: place for place, key in enumerate(keys)}
