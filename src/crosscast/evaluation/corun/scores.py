"""Scores of predictions of co-runs: slowdowns, times and powers of mixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.results import Tabular, columns_of


@dataclass(frozen=True, eq=False)
class ScoredValues:
    """Predicted and measured values of a quantity, ``n`` of each."""

    true: Reals  # (n,), measured
    centre: Reals  # (n,), predicted
    low: Reals  # (n,), limits of the interval; NaN where there is none
    high: Reals
    group: Integers  # (n,), number of the fold
    mix_size: Integers  # (n,), co-runners of the mix

    def where(self, chosen: Flags) -> ScoredValues:
        """The values of a mask."""
        return ScoredValues(*(each[chosen] for each in vars(self).values()))


@dataclass(frozen=True, eq=False)
class CoRunResult:
    """Scores of a model for a quantity; ``None`` for scores that do not apply."""

    model: str
    baseline: bool  # Whether others are compared with it
    split: str  # Name of the folds
    probes: int  # Measured mixes with the held-out application
    mix_size: int | None = None  # Co-runners of the mixes; `None` for all of them
    quantity: str = ""  # One of `crosscast.evaluation.corun.evaluation.QUANTITIES`, or `FITS`
    rows: int = 0  # Number of predicted values
    mape: float | None = None  # Mean absolute relative error, a fraction
    mae: float | None = None  # Mean absolute error in the unit of the quantity
    coverage: float | None = None  # Share of the measured values within their intervals
    width: float | None = None  # Mean width of the intervals, in the unit of the quantity
    log_width: float | None = None  # Of logarithms; `None` where intervals reach to 0
    worst_coverage: float | None = None  # Least coverage of a held-out group, and its name
    worst: str | None = None
    auc: float | None = None  # Area under the receiver's operating curve, of probabilities
    by_group: dict[str, float] | None = None  # Mean absolute relative error of each held-out group
    coverage_by_group: dict[str, float] | None = None  # Of each held-out group
    scored: ScoredValues | None = None  # `None` for probabilities

    def to_dict(self) -> dict[str, object]:
        """All but the values, as an object of JSON; unknown values are null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "scored"
        }


class ScoreTable(Tabular):
    """An evaluation as a table: a row for each of its results."""

    results: Sequence[CoRunResult]

    def columns(self) -> dict[str, list[object]]:
        """The results without those by group, by column."""
        rows = [each.to_dict() for each in self.results]
        return {name: each for name, each in columns_of(rows).items() if not name.endswith("by_group")}


def with_scores(result: CoRunResult, scored: ScoredValues, held_out: Sequence[str]) -> CoRunResult:
    """A result with the scores of its values; groups are named by `held_out`.

    Errors are relative to the true value (Equation 1 of Moolchandani et al. 2022).

    >>> true, centre, ones, zeros = np.array([1.0, 2.0]), np.array([1.5, 2.0]), np.ones(2), np.zeros(2, int)
    >>> result = CoRunResult("model", False, "leave-mix-out", 0, None, "time")
    >>> result = with_scores(result, ScoredValues(true, centre, ones, ones, zeros, zeros), ["a"])
    >>> result.mape, result.mae, result.coverage
    (0.25, 0.25, 0.5)
    """
    errors = np.abs(scored.centre - scored.true)
    relative = errors / scored.true
    groups = {number: scored.group == number for number in np.unique(scored.group).tolist()}
    result = replace(
        result,
        rows=len(errors),
        mape=float(relative.mean()),
        mae=float(errors.mean()),
        by_group={held_out[number]: float(relative[mask].mean()) for number, mask in groups.items()},
        scored=scored,
    )
    if not np.isfinite(scored.low).any():
        return result
    inside = (scored.low <= scored.true) & (scored.true <= scored.high)
    covered = np.where(np.isfinite(scored.low), inside, np.nan)
    shares = {held_out[number]: float(covered[mask].mean()) for number, mask in groups.items()}
    known = {name: share for name, share in shares.items() if np.isfinite(share)}
    worst = min(known, key=lambda name: known[name])
    reaches_0 = bool((scored.low <= 0).any())
    return replace(
        result,
        coverage=float(np.nanmean(covered)),
        width=float(np.nanmean(scored.high - scored.low)),
        log_width=None if reaches_0 else float(np.nanmean(np.log(scored.high / scored.low))),
        worst_coverage=known[worst],
        worst=worst,
        coverage_by_group=known,
    )
