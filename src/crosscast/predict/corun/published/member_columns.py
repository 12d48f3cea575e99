"""Numbers of the members of bags of one size, scaled and without gaps (paper 004, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.published.fairness_choice import FairnessChoice
from crosscast.predict.corun.published.features import FAIRNESS, value_of
from crosscast.predict.state import kept_integers, kept_names, kept_reals
from crosscast.tables.corun.solo import Solo

__all__ = ["MemberColumns", "own_first"]

_BEYOND = 1e30
"""Scaled features further from 0 than this are taken to be this: trees compare in single precision."""


@dataclass(frozen=True, eq=False)
class MemberColumns:
    """What makes ``k`` features, and a flag for those that may be missing, of each member of a bag.

    Parameters
    ----------
    names
        Names of the ``k`` features.
    dropped
        Features that were asked for, and that no training member has.
    choice
        What chooses the fairness.
    usual
        What stands in for a feature that is missing: the training median, of shape ``(k,)``.
    flagged
        Places of features that were missing of some training members: each has a column that is 1 where it
        is missing, and 0 elsewhere.
    low, span
        The least value among the training members, and how far the largest is above it, or 1 if they are
        all the same: features are scaled so that they go from 0 to 1 (section 5.3), of shape ``(k,)``.
    """

    names: tuple[str, ...]
    dropped: tuple[str, ...]
    choice: FairnessChoice
    usual: Reals
    flagged: Integers
    low: Reals
    span: Reals

    @classmethod
    def fit(cls, names: Sequence[str], bags: Sequence[tuple[Solo, ...]]) -> MemberColumns:
        """Fit it to training bags of one size, at least one.

        Parameters
        ----------
        names
            Features of `crosscast.predict.corun.published.features`, or of the solo runs.
        bags
            The bags.

        Raises
        ------
        InputError
            If no member has any of the features.
        """
        choice = FairnessChoice.fit(bags)
        values = _values(names, choice, bags)
        missing = np.isnan(values).reshape(-1, len(names))
        known = np.flatnonzero(~missing.all(axis=0)).tolist()
        if len(known) == 0:
            raise InputError(f"features: expected at least one of {', '.join(names)}, found none in the bags")
        values = values.reshape(-1, len(names))[:, known]
        usual = np.nanmedian(values, axis=0)
        complete = np.where(np.isnan(values), usual, values)
        low, high = complete.min(axis=0), complete.max(axis=0)
        return cls(
            tuple(names[place] for place in known),
            tuple(name for place, name in enumerate(names) if place not in known),
            choice,
            usual,
            np.flatnonzero(missing[:, known].any(axis=0)),
            low,
            np.where(high > low, high - low, 1.0),
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of all columns: the features, then the flags."""
        return *self.names, *(f"{self.names[place]} missing" for place in self.flagged)

    def places(self, names: Sequence[str]) -> Integers:
        """Columns of some features, with their flags."""
        wanted = [self.names.index(name) for name in names if name in self.names]
        flags = [len(self.names) + at for at, place in enumerate(self.flagged.tolist()) if place in wanted]
        return np.array([*wanted, *flags], dtype=np.int64)

    def of(self, bags: Sequence[tuple[Solo, ...]]) -> tuple[Reals, Integers]:
        """Columns of the members of ``b`` bags of ``n``.

        The members of each bag come in an order that is that of the bag in no way: the longest job alone
        first, and among jobs of one length by the columns.

        Returns
        -------
        tuple
            The columns, of shape ``(b, n, columns)``, and at which place of its bag each of these members
            is, of shape ``(b, n)``.
        """
        values = _values(self.names, self.choice, bags)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.usual, values) - self.low) / self.span
        scaled = np.clip(scaled, -_BEYOND, _BEYOND)
        columns = np.concatenate([scaled, missing[:, :, self.flagged]], axis=2)
        times = np.array([[value_of(solo, "GPU_time") for solo in bag] for bag in bags])
        # The last key of `lexsort` is the first that it sorts by. Unknown times come last.
        keys = np.concatenate([columns[:, :, ::-1], -times[:, :, None]], axis=2)
        order = np.lexsort(np.moveaxis(keys, 2, 0), axis=-1)
        return np.take_along_axis(columns, order[:, :, None], axis=1), order

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            **self.choice.state(),
            "columns": np.array(self.names),
            "dropped": np.array(self.dropped, dtype=np.str_),
            "usual": self.usual,
            "flagged": self.flagged,
            "low": self.low,
            "span": self.span,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> MemberColumns:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        names = kept_names(state, "columns")
        usual, low, span = (kept_reals(state, name, 1) for name in ("usual", "low", "span"))
        if not names or not len(usual) == len(low) == len(span) == len(names) or (span <= 0).any():
            raise InputError("model: columns: expected a usual value, a least one and a span of each")
        flagged = kept_integers(state, "flagged", 1, (0, len(names)))
        return cls(
            names,
            kept_names(state, "dropped"),
            FairnessChoice.from_state(state),
            usual,
            flagged,
            low,
            span,
        )


def own_first(members: int) -> Integers:
    """For each member of a bag, the places of itself and then of the others, of shape ``(n, n)``."""
    return np.array(
        [[own, *(place for place in range(members) if place != own)] for own in range(members)],
        dtype=np.int64,
    )


def _values(names: Sequence[str], choice: FairnessChoice, bags: Sequence[tuple[Solo, ...]]) -> Reals:
    """Features as they are, of shape ``(b, n, len(names))``."""
    each = {id(solo): solo for bag in bags for solo in bag}
    alone = {
        key: [np.nan if name == FAIRNESS else value_of(solo, name) for name in names]
        for key, solo in each.items()
    }
    values = np.array([[alone[id(solo)] for solo in bag] for bag in bags], dtype=np.float64)
    if FAIRNESS in names:
        values[:, :, list(names).index(FAIRNESS)] = choice.fairness(bags)
    return values
