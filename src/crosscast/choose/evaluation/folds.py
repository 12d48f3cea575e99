"""Which programs are left out at a time: each alone, and those that are nearly the same together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, takewhile

from crosscast.errors import InputError

__all__ = ["duplicates", "folds_together"]

_LEAST = 3
"""Letters that names must at least have in common."""


def duplicates(
    programs: Sequence[str], together: Sequence[Sequence[str]] = ()
) -> tuple[tuple[str, ...], ...]:
    """Programs that are probably variants of each other.

    Names of variants begin alike: with at least 3 letters in common, and at least half of the shorter name
    (``cfd`` and ``cfd_double``; ``busspeeddownload`` and ``busspeedreadback``). Case does not matter. Groups
    that share a program are one.

    Parameters
    ----------
    programs
        Their names.
    together
        Groups that belong together whatever their names; names that are not of `programs` do not matter.

    Returns
    -------
    tuple
        Groups of at least two names, sorted.
    """
    pairs = [pair for pair in combinations(sorted(programs), 2) if _begin_alike(*pair)]
    groups: list[set[str]] = []
    for near in [*pairs, *together]:
        joined = set(near) & set(programs)
        apart = [group for group in groups if not group & joined]
        groups = [*apart, joined.union(*(group for group in groups if group & joined))]
    return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))


def _begin_alike(one: str, other: str) -> bool:
    letters = zip(one.lower(), other.lower(), strict=False)
    common = len(list(takewhile(lambda pair: pair[0] == pair[1], letters)))
    return common >= _LEAST and 2 * common >= min(len(one), len(other))


def folds_together(programs: Sequence[str], groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """What is left out at a time when groups are left out together, and all other programs alone.

    Raises
    ------
    InputError
        If nothing is left to learn from.
    """
    grouped = {name for group in groups for name in group}
    folds = sorted([*((name,) for name in programs if name not in grouped), *map(tuple, groups)])
    if len(folds) < 2:
        raise InputError(f"together: expected programs left to learn from, found all in {'+'.join(folds[0])}")
    return tuple(folds)
