"""Runs with made-up counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosscast.predict.relative.data import Observations


def runs_with(
    *counters: Mapping[str, float],
    sources: Sequence[str] | None = None,
    settings: Sequence[Mapping[str, float]] | None = None,
) -> Observations:
    """A run for each mapping of counters; on ``cpu`` by default."""
    names = tuple(dict.fromkeys(name for each in counters for name in each))
    told = settings or [{} for _ in counters]
    configuration = tuple(dict.fromkeys(name for each in told for name in each))
    texts = tuple(f"app{number}" for number in range(len(counters)))
    return Observations(
        application=texts,
        kernel=texts,
        size=("default",) * len(counters),
        scale=("default",) * len(counters),
        source=tuple(sources or ["cpu"] * len(counters)),
        names=names,
        counters=np.array([[float(each.get(name, np.nan)) for name in names] for each in counters]).reshape(
            len(counters), len(names)
        ),
        configuration=configuration,
        settings=np.array([[each.get(name, np.nan) for name in configuration] for each in told]).reshape(
            len(counters), len(configuration)
        ),
        time_s=np.ones(len(counters)),
    )
