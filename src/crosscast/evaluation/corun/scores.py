"""Scores of predictions of co-running: of slowdowns, times and powers of mixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Required, TypedDict

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.results import Tabular


@dataclass(frozen=True, eq=False)
class ScoredValues:
    """``n`` values of a quantity that were predicted and measured."""

    true: Reals  # (n,), measured
    centre: Reals  # (n,), predicted
    low: Reals  # (n,), limits of the interval; NaN where there is none
    high: Reals
    group: Integers  # (n,), number of the fold
    bag_size: Integers  # (n,), co-runners of the mix

    def where(self, chosen: Flags) -> ScoredValues:
        """Some of the values."""
        return ScoredValues(*(each[chosen] for each in vars(self).values()))


@dataclass(frozen=True, eq=False)
class CoRunResult:
    """How good a model is at a quantity; ``None`` for what does not apply."""

    model: str  # Name of the model
    baseline: bool  # Whether others are compared with it
    split: str  # What was held out
    probes: int  # Mixes with what was held out that were known
    bag_size: int | None  # Co-runners of the mixes; `None` for all of them
    quantity: str  # One of `crosscast.evaluation.corun.evaluation.QUANTITIES`, or `FITS`
    rows: int  # How many values were predicted
    mape: float | None = None  # Mean absolute relative error, a fraction
    mae: float | None = None  # Mean absolute error in the unit of the quantity
    coverage: float | None = None  # Share of the intervals that hold what was measured
    width: float | None = None  # Mean width of the intervals, in the unit of the quantity
    log_width: float | None = None  # The same of logarithms; `None` where intervals reach to 0
    worst_coverage: float | None = None  # Least share among what was held out, and its name
    worst: str | None = None
    auc: float | None = None  # Area under the receiver's operating curve, of probabilities
    by_group: dict[str, float] | None = None  # Mean absolute relative error of each group that was held out
    coverage_by_group: dict[str, float] | None = None  # Coverage of each
    scored: ScoredValues | None = None  # The values themselves; `None` of probabilities

    def to_dict(self) -> dict[str, object]:
        """Everything but the values, as an object of JSON; what is not known is null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "scored"
        }


class ScoreTable(Tabular):
    """An evaluation as a table: a row for each of its results."""

    results: Sequence[CoRunResult]

    def columns(self) -> dict[str, list[object]]:
        """The results but for those by group, by column."""
        rows = [each.to_dict() for each in self.results]
        names = [name for name in rows[0] if not name.endswith("by_group")] if rows else []
        return {name: [row[name] for row in rows] for name in names}


class ScoreFields(TypedDict, total=False):
    """Fields of a `CoRunResult` that values tell."""

    rows: Required[int]
    mape: float
    mae: float
    coverage: float
    width: float
    log_width: float
    worst_coverage: float
    worst: str
    auc: float
    by_group: dict[str, float]
    coverage_by_group: dict[str, float]
    scored: ScoredValues


class ResultFields(ScoreFields):
    """The same, and which values they are of."""

    bag_size: int | None
    quantity: str


def scores_of(scored: ScoredValues, held_out: Sequence[str]) -> ScoreFields:
    """Fields of a `CoRunResult` that values tell; groups are named by what was held out.

    Errors are relative to the true value (Equation 1 of Moolchandani et al. 2022).

    >>> true, centre, ones, zeros = np.array([1.0, 2.0]), np.array([1.5, 2.0]), np.ones(2), np.zeros(2, int)
    >>> found = scores_of(ScoredValues(true, centre, ones, ones, zeros, zeros), ["a"])
    >>> found["mape"], found["mae"], found["coverage"]
    (0.25, 0.25, 0.5)
    """
    errors = np.abs(scored.centre - scored.true)
    relative = errors / scored.true
    groups = {number: scored.group == number for number in np.unique(scored.group).tolist()}
    found: ScoreFields = {
        "rows": len(errors),
        "mape": float(relative.mean()),
        "mae": float(errors.mean()),
        "by_group": {held_out[number]: float(relative[own].mean()) for number, own in groups.items()},
        "scored": scored,
    }
    if np.isfinite(scored.low).any():
        inside = (scored.low <= scored.true) & (scored.true <= scored.high)
        held = np.where(np.isfinite(scored.low), inside, np.nan)
        shares = {held_out[number]: float(held[own].mean()) for number, own in groups.items()}
        known = {name: share for name, share in shares.items() if np.isfinite(share)}
        worst = min(known, key=lambda name: known[name])
        found["coverage"] = float(np.nanmean(held))
        found["width"] = float(np.nanmean(scored.high - scored.low))
        found["worst_coverage"], found["worst"], found["coverage_by_group"] = known[worst], worst, known
        if not (scored.low <= 0).any():
            found["log_width"] = float(np.nanmean(np.log(scored.high / scored.low)))
    return found
