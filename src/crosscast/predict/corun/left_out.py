"""Errors of a model of co-running on what it had not seen, and how far intervals reach by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError
from crosscast.predict.grid import Integers, Reals
from crosscast.predict.group_conformal import group_reach, most_level
from crosscast.predict.state import kept_integers, kept_names, kept_reals

__all__ = ["LeftOut"]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Errors of one quantity.

    Parameters
    ----------
    log_error
        Logarithm of the predicted over the true value, of shape ``(n,)``, with ``n`` at least 1.
    group
        Number of the group that was left out, in ``groups``, of shape ``(n,)``.
    groups
        Names of the groups; each of them has an error.
    bag
        Number of the bag of each, of shape ``(n,)``: errors of members of one bag belong together. ``None``
        where they do not tell. A bag that several groups leave out has a number in each.
    """

    log_error: Reals
    group: Integers
    groups: tuple[str, ...]
    bag: Integers | None = None

    def reach(self, level: float) -> float:
        """How far an interval reaches to both sides of a prediction, in logarithms.

        Parameters
        ----------
        level
            Probability that it is to hold; see `crosscast.predict.group_conformal.group_reach`.
        """
        return float(group_reach(np.abs(self.log_error)[:, None], self.group, level)[0])

    def reached(self, level: float) -> float:
        """Probability that such an interval has: less than asked for where there are too few groups."""
        return min(level, most_level(len(self.groups)))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "log_error": self.log_error,
            "group": self.group,
            "groups": np.array(self.groups, dtype=np.str_),
            **({} if self.bag is None else {"bag": self.bag}),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> LeftOut:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        groups = kept_names(state, "groups")
        found = cls(
            kept_reals(state, "log_error", 1),
            kept_integers(state, "group", 1, (0, len(groups))),
            groups,
            kept_integers(state, "bag", 1, (0, 1 << 31)) if "bag" in state else None,
        )
        if len(found.group) != len(found.log_error) or len(np.unique(found.group)) < len(groups):
            raise InputError("model: group: expected one for each error, and an error of each, found others")
        if not groups:
            raise InputError("model: groups: expected at least one, found none")
        if found.bag is not None and len(found.bag) != len(found.log_error):
            raise InputError("model: bag: expected one for each error, found others")
        return found
