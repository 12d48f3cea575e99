"""Training rows of bags of one size, and what is fitted to them (paper 004, sections 5.1.3, 5.2 and 5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.corun.published.combinations import Combination
from crosscast.predict.corun.published.member_columns import MemberColumns, own_first
from crosscast.predict.corun.published.size_predictor import TARGETS, SizePredictor, Target
from crosscast.predict.corun.published.table_6 import DEPTH, PERFORMANCE_DEPTH, fit_regressor
from crosscast.tables.corun.bag import Bag

__all__ = ["MOST_PERMUTED", "Recipe", "fit_size"]

MOST_PERMUTED = 3
"""Bags of more members are learned from in one order only."""


@dataclass(frozen=True)
class Recipe:
    """What is fitted.

    Parameters
    ----------
    kind
        Kind of regressor; see `crosscast.predict.corun.published.table_6.KINDS`.
    performance, power
        Features that times and slowdowns, and power, are predicted from.
    permuted
        Whether the members of a training bag are put in every order (section 5.2), or in one.
    """

    kind: str
    performance: Combination
    power: Combination
    permuted: bool

    def features(self, target: str) -> tuple[str, ...]:
        """Features that a target is predicted from."""
        return (self.power if target == "power_w" else self.performance).features

    def depth(self, target: str) -> int:
        """Depth of the trees for a target."""
        return PERFORMANCE_DEPTH if self.kind == "decision-tree" and target != "power_w" else DEPTH


def fit_size(recipe: Recipe, bags: Sequence[Bag], seed: int) -> SizePredictor | None:
    """Fit a predictor of bags of one size; ``None`` if nothing is known of them that it could predict.

    Parameters
    ----------
    recipe
        What is fitted.
    bags
        Bags of ``n`` members each, of which none failed.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If no member has any of the features.
    MissingExtraError
        If scikit-learn is not installed.
    """
    wanted = {name: _known(name, bags) for name in TARGETS}
    kept = {name: values for name, values in wanted.items() if not np.isnan(values).all()}
    told = [name for name in TARGETS if name in kept]
    if not told:
        return None
    rows_of = [
        place for place in range(len(bags)) if any(~np.isnan(kept[name][place]).all() for name in told)
    ]
    solos = [bags[place].solos for place in rows_of]
    names = dict.fromkeys(feature for name in told for feature in recipe.features(name))
    columns = MemberColumns.fit(tuple(names), solos)
    values, order = columns.of(solos)
    targets = {}
    for name in told:
        used = columns.places(recipe.features(name))
        if len(used) == 0:
            continue
        known = kept[name][rows_of]
        known = np.take_along_axis(known, order, axis=1) if name == "slowdown" else known
        rows, aims = _rows(values[:, :, used], known, recipe.permuted)
        finite = ~np.isnan(aims)
        rows, aims = rows[finite], aims[finite]
        regressor = fit_regressor(recipe.kind, rows, aims, seed, depth=recipe.depth(name))
        targets[name] = Target(used, regressor, float(aims.min()))
    return SizePredictor(len(bags[0].members), columns, targets)


def _known(target: str, bags: Sequence[Bag]) -> Reals:
    """What is known of a target: slowdowns of shape ``(b, n)``, the others of shape ``(b,)``."""
    if target == "slowdown":
        return np.array([[member.slowdown for member in bag.members] for bag in bags], dtype=np.float64)
    return np.array([getattr(bag, target) for bag in bags], dtype=np.float64)


def _rows(values: Reals, known: Reals, permuted: bool) -> tuple[Reals, Reals]:
    """Rows to learn from, and what is known of each.

    Parameters
    ----------
    values
        Columns of the members in their own order, of shape ``(b, n, k)``.
    known
        Of each member, of shape ``(b, n)``: its own columns come first then; or of the bag, of shape
        ``(b,)``.
    permuted
        Whether members, or those that come after the first, are put in every order.
    """
    b, n, _ = values.shape
    orders = own_first(n) if known.ndim == 2 else own_first(n)[:1]
    if permuted and n <= MOST_PERMUTED:
        orders = np.concatenate([_permuted(order, 1 if known.ndim == 2 else 0) for order in orders])
    each = known[:, orders[:, 0]] if known.ndim == 2 else np.repeat(known[:, None], len(orders), axis=1)
    return values[:, orders].reshape(b * len(orders), -1), each.ravel()


def _permuted(order: Integers, stays: int) -> Integers:
    """All orders of some places, of which the first few stay."""
    head, tail = order[:stays].tolist(), order[stays:].tolist()
    return np.array([[*head, *each] for each in permutations(tail)], dtype=np.int64)
