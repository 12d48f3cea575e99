"""A predictor of bags of one size (paper 004, sections 5.1.3 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.published.kept import Grown, Regressor, kept_regressor
from crosscast.predict.corun.published.member_columns import MemberColumns, own_first
from crosscast.predict.state import kept_integers, kept_reals
from crosscast.predict.stored import arrays_of
from crosscast.predict.trees import Trees, joined
from crosscast.tables.corun.solo import Solo

__all__ = ["TARGETS", "SizePredictor", "Target"]

TARGETS = ("slowdown", "time_s", "power_w")
"""What may be predicted: of each member, and of the bag."""

_FEW = 16
"""So many bags are predicted by the trees of all targets at once: each pass costs more than its rows do."""


@dataclass(frozen=True, eq=False)
class Target:
    """What predicts one of `TARGETS`.

    Parameters
    ----------
    columns
        Columns of a member that it sees, of all members one after the other.
    regressor
        What predicts.
    least
        The least that it learned from. Nothing below it is predicted: a linear function may fall below 0,
        where there are no times.
    """

    columns: Integers
    regressor: Regressor
    least: float

    def places(self, width: int, members: int) -> Integers:
        """Where its features are in rows of the columns of all members, each of a width."""
        return (np.arange(members)[:, None] * width + self.columns).ravel()


@dataclass(frozen=True, eq=False)
class SizePredictor:
    """Predicts bags of ``n`` members.

    Parameters
    ----------
    members
        ``n``.
    columns
        Columns of each member.
    targets
        What predicts each of `TARGETS` that is predicted.
    """

    members: int
    columns: MemberColumns
    targets: Mapping[str, Target]

    def rows(self, bags: Sequence[tuple[Solo, ...]]) -> tuple[Reals, Integers]:
        """Rows of all members' columns, from each member's view: its own, then those of the others.

        The first of a bag is the view of the bag, too: its members in their own order, the longest first.

        Returns
        -------
        tuple
            Rows of shape ``(b, n, n * columns)``, and at which place of its bag the member of each is, of
            shape ``(b, n)``.
        """
        values, order = self.columns.of(bags)
        return values[:, own_first(self.members)].reshape(len(bags), self.members, -1), order

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> dict[str, Reals]:
        """Predict ``b`` bags of its size.

        Returns
        -------
        dict
            By names of `TARGETS`: slowdowns of shape ``(b, n)``, in the order of the bags, and the others of
            shape ``(b,)``.
        """
        rows, order = self.rows(bags)
        result: dict[str, Reals] = {}
        for name, values in self._each(rows).items():
            result[name] = np.maximum(values, self.targets[name].least)
        if "slowdown" in result:
            each = np.empty_like(result["slowdown"])
            np.put_along_axis(each, order, result["slowdown"], axis=1)
            result["slowdown"] = each
        return result

    def _each(self, rows: Reals) -> dict[str, Reals]:
        """What the targets' regressors say: slowdowns of shape ``(b, n)``, the others of shape ``(b,)``."""
        b, n, width = rows.shape
        if b <= _FEW and self._all_trees is not None:
            sums = self._all_trees.sum(rows.reshape(b, n * width))
            slots = np.cumsum([0, *(n if name == "slowdown" else 1 for name in self.targets)])
            found = zip(self.targets, np.split(sums, slots[1:-1], axis=1), strict=True)
            return {name: each if name == "slowdown" else each[:, 0] for name, each in found}
        result = {}
        for name, target in self.targets.items():
            seen = rows[..., target.places(width // n, n)]
            if name == "slowdown":
                result[name] = target.regressor.predict(seen.reshape(b * n, -1)).reshape(b, n)
            else:
                result[name] = target.regressor.predict(seen[:, 0])
        return result

    @cached_property
    def _all_trees(self) -> Trees | None:
        """The trees of all targets on the views of a bag side by side, with an output for each."""
        width, parts = len(self.columns.titles) * self.members, []
        for name, target in self.targets.items():
            if not isinstance(target.regressor, Grown):
                return None
            own = target.places(len(self.columns.titles), self.members)
            views = self.members if name == "slowdown" else 1
            parts += [target.regressor.trees.reading((own + view * width).tolist()) for view in range(views)]
        outputs = np.eye(len(parts))
        return joined([trees.onto(output[None]) for trees, output in zip(parts, outputs, strict=True)])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        result = {**self.columns.state(), "members": np.array([self.members])}
        for name, target in self.targets.items():
            own = {"columns": target.columns, "least": np.array([target.least])}
            for key, array in {**target.regressor.state(), **own}.items():
                result[f"{name}.{key}"] = array
        return result

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> SizePredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or they do not fit each other.
        """
        members = kept_integers(state, "members", 1, (2, 1 << 10))
        if len(members) != 1:
            raise InputError(f"model: members: expected one integer, found {members.tolist()}")
        columns, size = MemberColumns.from_state(state), int(members[0])
        kept = {name: arrays_of(state, name) for name in TARGETS}
        targets = {
            name: _target(arrays, len(columns.titles), size) for name, arrays in kept.items() if arrays
        }
        if not targets:
            raise InputError(f"model: expected arrays of one of {', '.join(TARGETS)}, found none")
        return cls(size, columns, targets)


def _target(state: Mapping[str, npt.NDArray[Any]], width: int, members: int) -> Target:
    columns, least = kept_integers(state, "columns", 1, (0, width)), kept_reals(state, "least", 1)
    if len(columns) == 0 or len(least) != 1:
        raise InputError("model: expected columns and one least value of each target, found others")
    return Target(columns, kept_regressor(state, len(columns) * members), float(least[0]))
