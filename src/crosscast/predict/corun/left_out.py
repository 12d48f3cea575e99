"""Errors of a model of co-running on what it had not seen, and how far intervals reach by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.group_conformal import group_quantile, group_weights
from crosscast.predict.state import kept_integers, kept_names, kept_reals

__all__ = ["LeftOut"]

_LEAST_SHARE = 0.02
"""Least spread over the mean error."""

_FARTHEST = 100.0
"""An interval that reaches so far says nothing; by damaged errors its limits would be no numbers."""


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
    log_value
        Logarithm of each predicted value, of shape ``(n,)``; ``None`` where it says nothing of errors.
    """

    log_error: Reals
    group: Integers
    groups: tuple[str, ...]
    bag: Integers | None = None
    log_value: Reals | None = None

    def reach(self, level: float, log_value: ArrayLike = 0.0) -> Any:
        """How far an interval reaches to both sides of a prediction, in logarithms.

        By the quantile of `crosscast.predict.group_conformal.group_quantile` of errors relative to their
        spread.

        Parameters
        ----------
        level
            Probability that it is to hold.
        log_value
            Logarithm of the predicted value, or of several.

        Returns
        -------
        float or array
            Of the shape of `log_value`.
        """
        if level not in self._reaches:
            relative = np.abs(self.log_error) / self.spread(self._log_values)
            self._reaches[level] = group_quantile(relative, self.group, level)
        return np.minimum(self._reaches[level] * self.spread(np.asarray(log_value)), _FARTHEST)

    def spread(self, log_value: Reals) -> Reals:
        """How large errors are where a value is predicted, up to a factor that is common to all.

        A straight line over the logarithm of the value, level below 0: the more an application is slowed
        down, the less sure it is by how much. Level at 1 where values do not tell.
        """
        start, slope = self._line
        spread: Reals = start + slope * np.maximum(log_value, 0.0)
        return spread

    @property
    def _log_values(self) -> Reals:
        return np.zeros_like(self.log_error) if self.log_value is None else self.log_value

    @cached_property
    def _reaches(self) -> dict[float, float]:
        """Reach relative to the spread by level, for one forecast after the other."""
        return {}

    @cached_property
    def _line(self) -> tuple[float, float]:
        if self.log_value is None or not self.log_error.any():
            return 1.0, 0.0
        weights, errors = group_weights(self.group), np.abs(self.log_error)
        above = np.maximum(self.log_value, 0.0)
        design = np.column_stack([np.ones_like(above), above])
        root = np.sqrt(weights)
        found: list[float] = np.linalg.lstsq(design * root[:, None], errors * root, rcond=None)[0].tolist()
        start, slope = found
        mean = float(weights @ errors)
        if slope < 0:
            return mean, 0.0
        if start < _LEAST_SHARE * mean:
            # Through the least that is allowed: nothing is sure to the last digit.
            start = _LEAST_SHARE * mean
            squares = float((weights * above) @ above)
            slope = float((weights * above) @ (errors - start)) / squares if squares > 0 else 0.0
        return start, max(slope, 0.0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "log_error": self.log_error,
            "group": self.group,
            "groups": np.array(self.groups, dtype=np.str_),
            **({} if self.bag is None else {"bag": self.bag}),
            **({} if self.log_value is None else {"log_value": self.log_value}),
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
            kept_reals(state, "log_value", 1) if "log_value" in state else None,
        )
        if len(found.group) != len(found.log_error) or len(np.unique(found.group)) < len(groups):
            raise InputError("model: group: expected one for each error, and an error of each, found others")
        if not groups:
            raise InputError("model: groups: expected at least one, found none")
        for name, array in (("bag", found.bag), ("log_value", found.log_value)):
            if array is not None and len(array) != len(found.log_error):
                raise InputError(f"model: {name}: expected one for each error, found others")
        return found
