"""How one model did in one split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crosscast.arrays import Integers, Reals
from crosscast.evaluate.confidence import Confidence
from crosscast.evaluate.relative.metrics import RelativeMetrics
from crosscast.evaluate.relative.weighting import Weighting

__all__ = ["RelativeResult"]


@dataclass(frozen=True, eq=False)
class RelativeResult:
    """How one model did in one split.

    Parameters
    ----------
    model
        Its name.
    split
        Name of the split.
    baseline
        Whether other models are compared with it.
    weighting
        How rows are weighted in `metrics` and `sure`.
    by_weighting
        The metrics with each way to weight rows.
    per_group
        The metrics of the rows of each group, all weighted the same; the groups are those that are held out,
        or applications or kernels where rows or sizes are.
    sure
        Intervals of the metrics, and differences from the best baseline.
    validation_mae
        Mean over the folds within the training rows of their MAE; ``None`` where the split has none.
    rows
        Rows that were predicted, of shape ``(m,)``, rising.
    predicted
        What was predicted for them, of shape ``(m, d)``.
    """

    model: str
    split: str
    baseline: bool
    weighting: Weighting
    by_weighting: Mapping[Weighting, RelativeMetrics]
    per_group: Mapping[str, RelativeMetrics]
    sure: Confidence
    validation_mae: float | None
    rows: Integers
    predicted: Reals

    @property
    def metrics(self) -> RelativeMetrics:
        """The metrics, with rows weighted by `weighting`."""
        return self.by_weighting[self.weighting]

    def to_dict(self) -> dict[str, Any]:
        """Everything but predictions, as an object of JSON."""
        return {
            "model": self.model,
            "split": self.split,
            "weights": self.weighting,
            **asdict(self.metrics),
            "validation_mae": self.validation_mae,
            "baseline": self.baseline,
            **self.sure.to_dict(),
            "by_weights": {name: asdict(metrics) for name, metrics in self.by_weighting.items()},
            "per_group": {name: asdict(metrics) for name, metrics in self.per_group.items()},
        }
