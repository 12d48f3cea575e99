"""What runs of a region have in common: its name, the kind of its arguments, and where it was called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crosscast.measure.regions.argument import described

__all__ = ["MOST_ARGUMENTS", "RegionKey", "arguments_of"]

MOST_ARGUMENTS = 64
"""Arguments that a key tells of; there may be more."""


class RegionKey(NamedTuple):
    """Runs with equal keys do the same work in the same place.

    Input sizes and calling contexts are told apart by it (paper 002, section VI).

    Parameters
    ----------
    name
        Name of the region.
    arguments
        What each argument is, such as ``float64[64x64]``.
    site
        Where the region was entered, such as ``model.step:12`` for line 12 in the function ``step`` of the
        module ``model``; then who called that, and so on, as far as was asked for.
    """

    name: str
    arguments: tuple[str, ...] = ()
    site: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The call, and the place of it."""
        where = f" at {self.site[0]}" if self.site else ""
        return f"{self.name}({', '.join(self.arguments)}){where}"


def arguments_of(values: Iterable[object]) -> tuple[str, ...]:
    """Tell of each argument what it is; all after the 64th are one."""
    found = tuple(map(described, values))
    if len(found) <= MOST_ARGUMENTS:
        return found
    rest = len(found) - MOST_ARGUMENTS + 1
    return (*found[: MOST_ARGUMENTS - 1], f"{rest} more")
