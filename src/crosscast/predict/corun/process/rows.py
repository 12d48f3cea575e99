"""Members of bags as rows: which application it is, and how often each is among those beside it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.tables.corun.solo import Solo

__all__ = ["Known", "MemberRows", "distinct"]

Known = tuple[Hashable, ...]
"""What tells applications apart: key, time and features, as one may have been profiled twice."""


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
    def of(cls, bags: Sequence[tuple[Solo, ...]], places: Mapping[Known, int]) -> MemberRows:
        """Rows of bags.

        Parameters
        ----------
        bags
            The bags.
        places
            Place of each application by what is known of it, as `distinct` gives them.
        """
        own: list[int] = []
        bag: list[int] = []
        pairs: list[tuple[int, int]] = []
        for number, solos in enumerate(bags):
            found = [places[_known(solo)] for solo in solos]
            for place, application in enumerate(found):
                pairs.extend((len(own), other) for k, other in enumerate(found) if k != place)
                own.append(application)
                bag.append(number)
        beside = np.zeros((len(own), len(places)))
        if pairs:
            np.add.at(beside, tuple(np.array(pairs).T), 1.0)
        return cls(np.array(own, dtype=np.int64), beside, np.array(bag, dtype=np.int64))


def distinct(bags: Sequence[tuple[Solo, ...]]) -> tuple[list[Solo], dict[Known, int]]:
    """The applications of bags, each once, in the order of their keys, and the place of each."""
    found: dict[Known, Solo] = {_known(solo): solo for bag in bags for solo in bag}
    order = sorted(found, key=lambda known: known[:4])
    return [found[known] for known in order], {known: place for place, known in enumerate(order)}


def _known(solo: Solo) -> Known:
    return (*solo.key, solo.time_s, *solo.features.items())
