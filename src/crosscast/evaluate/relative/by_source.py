"""Which device's counters tell the most: a model for the counters of each device (Figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.evaluate.processes import Progress
from crosscast.evaluate.relative.metrics import RelativeMetrics
from crosscast.evaluate.relative.protocol import evaluate_relative
from crosscast.predict.relative.model import RelativeModel
from crosscast.predict.relative.observations import Vectors

__all__ = ["BySource", "by_source"]


@dataclass(frozen=True)
class BySource:
    """Metrics by model and source.

    Parameters
    ----------
    split
        What was left out within each source.
    sources
        Devices that counted.
    metrics
        For each model, the metrics with each source, all rows weighted the same.
    """

    split: str
    sources: tuple[str, ...]
    metrics: Mapping[str, tuple[RelativeMetrics, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON."""
        results = [
            {"model": model, "source": source, **asdict(metrics)}
            for model, of_model in self.metrics.items()
            for source, metrics in zip(self.sources, of_model, strict=True)
        ]
        return {"split": self.split, "sources": list(self.sources), "results": results}


def by_source(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> BySource:
    """Evaluate models on the rows that each device counted, with no other rows to learn from.

    Paper 003 does not say whether its models learn from the counters of one machine or of all; its mean
    is the same for each machine either way.

    Parameters
    ----------
    vectors, models, split, seed, progress, cache, jobs
        As `evaluate_relative` has them.

    Raises
    ------
    InputError
        As there: among others, if the rows of a source are of a single group.
    """
    rows = np.array(vectors.observations.source)
    sources = tuple(str(source) for source in np.unique(rows))
    found = [
        evaluate_relative(
            vectors.rows(rows == source),
            models,
            split,
            weighting="rows",
            seed=seed,
            progress=progress,
            cache=cache,
            jobs=jobs,
        )
        for source in sources
    ]
    return BySource(
        split,
        sources,
        {
            model.name: tuple(each.results[place].metrics for each in found)
            for place, model in enumerate(models)
        },
    )
