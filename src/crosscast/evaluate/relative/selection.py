"""How few features suffice: those of the most gain, chosen within the training rows of each fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosscast.evaluate.processes import Progress
from crosscast.evaluate.relative.metrics import RelativeMetrics
from crosscast.evaluate.relative.protocol import evaluate_relative
from crosscast.predict.relative.observations import Vectors
from crosscast.predict.relative.published.xgboost import PublishedXGBoost

__all__ = ["COUNTS", "Selection", "selection"]

COUNTS = (1, 2, 4, 8, 16, 32)
"""Numbers of features that are tried, as far as there are more."""


@dataclass(frozen=True)
class Selection:
    """Metrics by number of features.

    Parameters
    ----------
    split
        What was left out.
    counts
        Numbers of features, rising; the last is that of all.
    metrics
        The metrics with each, all rows weighted the same.
    """

    split: str
    counts: tuple[int, ...]
    metrics: tuple[RelativeMetrics, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON."""
        results = [
            {"features": count, **asdict(each)} for count, each in zip(self.counts, self.metrics, strict=True)
        ]
        return {"split": self.split, "results": results}


def selection(
    vectors: Vectors,
    split: str,
    *,
    counts: Sequence[int] = COUNTS,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Selection:
    """Fit XGBoost again to the features of the most gain (section VI-B), for several numbers of them.

    Parameters
    ----------
    vectors, split, seed, progress, cache, jobs
        As `evaluate_relative` has them.
    counts
        Numbers of features, rising.

    Raises
    ------
    InputError
        As there.
    """
    whole = PublishedXGBoost()
    every = len(whole.features.fit(vectors.observations).names)
    fewer = [count for count in counts if count < every]
    found = evaluate_relative(
        vectors,
        [*(PublishedXGBoost(selected=count) for count in fewer), whole],
        split,
        weighting="rows",
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    return Selection(split, (*fewer, every), tuple(result.metrics for result in found.results))
