"""Groups of more than two, by a heuristic: exact pairs first, then what makes them worth more.

The best groups of three or more are hard to find (set packing is NP-hard). From the best pairs on, three
steps take turns until none is worth anything: groups are merged, two and two, by an exact matching on what
each merger adds; single jobs move to another group, the moves that add the most first; and a group dissolves
into others, each job where it adds the most. No step is taken that adds nothing, so that groups are never
worth less than the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from crosscast.choose.pairing.bags import PredictedBags
from crosscast.choose.pairing.limits import ALLOWED
from crosscast.choose.pairing.matching import best_matching

__all__ = ["Group", "grown_groups"]

Group = tuple[int, ...]
"""Ascending places of jobs; one that is alone is a group, too."""

_LEAST = 1e-9
"""What a step adds at least, as a share of what all jobs take one after another."""


def grown_groups(bags: PredictedBags, pairs: Iterable[tuple[int, int]], most: int) -> list[Group]:
    """Groups of ``most`` jobs at the most.

    Parameters
    ----------
    bags
        What tells the worth of bags.
    pairs
        Pairs to start from, none with a job of another.
    most
        Most jobs of a group.

    Returns
    -------
    list of tuple
        Groups, each job in one of them, sorted.

    Raises
    ------
    InputError
        If the model cannot predict bags of so many.
    """
    groups: list[Group] = list(pairs)
    groups += [
        (job,) for job in sorted(set(range(len(bags.jobs))) - {job for pair in groups for job in pair})
    ]
    worth = _Worth(bags)
    before: list[Group] = []
    while groups != before:
        before = groups
        groups = _dissolved(worth, _moved(worth, _merged(worth, groups, most), most), most)
    return groups


class _Worth:
    """Worth of groups, each asked once; less than anything where a limit is in the way."""

    def __init__(self, bags: PredictedBags) -> None:
        self._bags = bags
        self._known: dict[Group, float] = {}
        self.least = _LEAST * float(bags.jobs.length_s.sum())

    def ask(self, groups: Iterable[Group]) -> None:
        """Ask the model of groups, those of a size together."""
        new = {group for group in groups if group not in self._known}
        for size in sorted({len(group) for group in new}):
            some = sorted(group for group in new if len(group) == size)
            if size < 2:
                self._known.update(dict.fromkeys(some, 0.0))
                continue
            judged = self._bags.judged(np.array(some))
            worth = np.where(judged.status == ALLOWED, judged.worth, -np.inf)
            self._known.update(zip(some, worth.tolist(), strict=True))

    def __getitem__(self, group: Group) -> float:
        return self._known[group]


def _merged(worth: _Worth, groups: list[Group], most: int) -> list[Group]:
    """Groups two and two together, where that is worth more."""
    while True:
        found = {
            (one, other): tuple(sorted(groups[one] + groups[other]))
            for one in range(len(groups))
            for other in range(one + 1, len(groups))
            if len(groups[one]) + len(groups[other]) <= most
        }
        worth.ask([*groups, *found.values()])
        added = np.zeros((len(groups), len(groups)))
        for (one, other), whole in found.items():
            rise = worth[whole] - worth[groups[one]] - worth[groups[other]]
            added[one, other] = rise if rise > worth.least else 0.0
        pairs = best_matching(added)
        if not pairs:
            return groups
        gone = {place for pair in pairs for place in pair}
        kept = [group for place, group in enumerate(groups) if place not in gone]
        groups = sorted([*kept, *(found[pair] for pair in pairs)])


def _moved(worth: _Worth, groups: list[Group], most: int) -> list[Group]:
    """Groups after all moves of single jobs that are worth something."""
    while True:
        moves = list(_moves(groups, most))
        worth.ask(group for move in moves for group in (move[2], move[3]) if group)
        rises = [_rise(worth, groups, move) for move in moves]
        touched: set[int] = set()
        after = dict(enumerate(groups))
        for place in sorted(range(len(moves)), key=lambda place: (-rises[place], place)):
            source, target, left, joined = moves[place]
            if rises[place] <= worth.least:
                break
            if not touched & {source, target}:
                touched |= {source, target}
                after[source], after[target] = left, joined
        if not touched:
            return groups
        groups = sorted(group for group in after.values() if group)


_Move = tuple[int, int, Group, Group]


def _moves(groups: list[Group], most: int) -> Iterator[_Move]:
    """From which group, to which, and what becomes of both."""
    for source, group in enumerate(groups):
        for job in group:
            left = tuple(each for each in group if each != job)
            for target, other in enumerate(groups):
                if target != source and len(other) < most:
                    yield source, target, left, tuple(sorted((*other, job)))


def _rise(worth: _Worth, groups: list[Group], move: _Move) -> float:
    source, target, left, joined = move
    after = (worth[left] if left else 0.0) + worth[joined]
    return after - worth[groups[source]] - worth[groups[target]]


def _dissolved(worth: _Worth, groups: list[Group], most: int) -> list[Group]:
    """Groups after the first of them that is worth less than what its jobs add to others has dissolved."""
    ways: dict[int, list[tuple[int, Group]]] = {}
    for source, target, _, joined in _moves(groups, most):
        ways.setdefault(source, []).append((target, joined))
    worth.ask(joined for way in ways.values() for _, joined in way)
    for source, group in enumerate(groups):
        added = sorted(
            (worth[groups[target]] - worth[joined], target, joined) for target, joined in ways.get(source, ())
        )
        left, after, rise = set(group), dict(enumerate(groups)), -worth[group]
        del after[source]
        for lost, target, joined in added:
            (job,) = set(joined) - set(groups[target])
            if job in left and after[target] == groups[target] and lost < 0:
                left.remove(job)
                after[target], rise = joined, rise - lost
        if rise > worth.least:
            return sorted([*after.values(), *((job,) for job in left)])
    return groups
