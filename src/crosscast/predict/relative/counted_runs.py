"""Runs whose counters a dataset has: a row for each kernel of each session that counted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.configuration import Configuration, Setting
from crosscast.errors import InputError
from crosscast.predict.relative.observations import Observations
from crosscast.predict.relative.scale import SCALE, scale_of
from crosscast.tables.arrow import Table
from crosscast.tables.cells import run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import distinct
from crosscast.tables.library import pc
from crosscast.tables.samples import samples_of
from crosscast.tables.session_counters import counters_of
from crosscast.tables.sessions import SESSIONS

__all__ = ["counted_runs", "has_counters"]

_RUN = (*SESSIONS.key, "kernel")


def has_counters(dataset: Dataset) -> bool:
    """Whether a session that did not fail has counters."""
    return bool(_counted(dataset).num_rows)


def counted_runs(dataset: Dataset) -> Observations:
    """Runs with counters, in the order of the sessions' key.

    Counters are divided by the recorded runs of their session, as `crosscast measure` counts over all of
    them; where a session does not say how many it had, they are those of one. Kernels of one session share
    them. The time is the median over the session's runs. Settings that are numbers, but for the scale, are
    the configuration.

    Raises
    ------
    InputError
        If no session has counters, or those of one are not numbers by name, or its settings are not numbers
        and words by name.
    """
    rows = _counted(dataset).select([*SESSIONS.key, "kernels", "runs", "counters"]).to_pylist()
    if not rows:
        raise InputError(f"{dataset.label}: expected sessions with counters, found none")
    settings = [_settings(row) for row in rows]
    runs = [(number, kernel) for number, row in enumerate(rows) for kernel in json.loads(row["kernels"])]
    of_rows = np.array([number for number, _ in runs], dtype=np.int64)
    counts = [
        {name: total / (row["runs"] or 1) for name, total in counters_of(row, dataset.label).items()}
        for row in rows
    ]
    names, counters = _matrix(counts)
    numbers = [
        {name: value for name, value in each.items() if not isinstance(value, str) and name != SCALE}
        for each in settings
    ]
    configuration, set_to = _matrix(numbers)
    times = _times(dataset)
    return Observations(
        application=tuple(rows[number]["application"] for number, _ in runs),
        kernel=tuple(kernel for _, kernel in runs),
        size=tuple(rows[number]["size"] for number, _ in runs),
        scale=tuple(scale_of(settings[number], rows[number]["size"]) for number, _ in runs),
        source=tuple(rows[number]["device"] for number, _ in runs),
        names=names,
        counters=counters[of_rows],
        configuration=configuration,
        settings=set_to[of_rows],
        time_s=np.array(
            [
                times.get((*(rows[number][key] for key in SESSIONS.key), kernel), np.nan)
                for number, kernel in runs
            ],
            dtype=np.float64,
        ),
    )


def _counted(dataset: Dataset) -> Table:
    sessions = dataset.sessions
    return sessions.filter(
        pc.and_(pc.is_valid(sessions.column("counters")), pc.is_null(sessions.column("failure")))
    )


def _settings(row: Mapping[str, Any]) -> Mapping[str, Setting]:
    return Configuration.of(row["device"], row["configuration"]).settings


def _matrix(rows: Sequence[Mapping[str, float]]) -> tuple[tuple[str, ...], Reals]:
    """All names, sorted, and the values by row and name; not a number where a row has none."""
    names = tuple(sorted({name for row in rows for name in row}))
    places = {name: place for place, name in enumerate(names)}
    values = np.full((len(rows), len(names)), np.nan)
    for number, row in enumerate(rows):
        values[number, [places[name] for name in row]] = list(row.values())
    return names, values


def _times(dataset: Dataset) -> dict[tuple[Any, ...], float]:
    """Median time in seconds of each kernel in each session."""
    records = sound(dataset.records, dataset.sessions)
    keys, numbers = distinct(records, _RUN)
    medians = samples_of(numbers, run_means(records)).quantile(0.5).tolist()
    columns = [keys.column(name).to_pylist() for name in _RUN]
    return dict(zip(zip(*columns, strict=True), medians, strict=True))
