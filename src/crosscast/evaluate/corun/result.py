"""Results of an evaluation of co-running: a row for each model, split, size of bags and quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.evaluate.corun.metrics import Scored

__all__ = ["CoRunResult"]


@dataclass(frozen=True, eq=False)
class CoRunResult:
    """How good a model is at a quantity; ``None`` for what does not apply.

    Parameters
    ----------
    model
        Name of the model.
    baseline
        Whether others are compared with it.
    split
        What was held out.
    probes
        Bags with what was held out that were known.
    bag_size
        Members of the bags; ``None`` for all of them.
    quantity
        ``slowdown`` or ``speed`` of members, ``time`` or ``power`` of bags, or whether a bag ``fits``.
    rows
        How many values were predicted.
    mape
        Mean absolute percentage error, in per cent.
    mae
        Mean absolute error in the unit of the quantity.
    coverage
        Share of the intervals that hold what was measured.
    width
        Mean width of the intervals, in the unit of the quantity.
    worst_coverage, worst
        Least share among what was held out, and its name.
    auc
        Area under the receiver's operating curve, of probabilities.
    by_group
        Mean absolute percentage error of each group that was held out.
    scored
        The rows themselves; ``None`` of probabilities.
    """

    model: str
    baseline: bool
    split: str
    probes: int
    bag_size: int | None
    quantity: str
    rows: int
    mape: float | None = None
    mae: float | None = None
    coverage: float | None = None
    width: float | None = None
    worst_coverage: float | None = None
    worst: str | None = None
    auc: float | None = None
    by_group: dict[str, float] | None = None
    scored: Scored | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows, as an object of JSON; what is not known is null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "scored"
        }
