"""Speeds of the training jobs of Gavel's traces on its kinds of GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.csv_rows import csv_rows

__all__ = ["GavelSpeeds", "read_speeds"]

_COLUMNS = ("file", "gpu", "job", "gpus", "steps_per_s")
_FILE = "simulation_throughputs"
"""Of the two that Gavel has: the other, of its physical cluster, contradicts itself."""
_APART = "_unconsolidated"
"""End of the name of GPUs that are not in one server."""
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class GavelSpeeds:
    """Speeds of types of jobs.

    Parameters
    ----------
    kinds
        Kinds of GPU.
    types
        Types of jobs that have a speed with any number of GPUs.
    by_job
        Steps per second on each kind, by type and number of GPUs; 0 where it does not fit.
    """

    kinds: tuple[str, ...]
    types: frozenset[str]
    by_job: dict[tuple[str, int], tuple[float, ...]]


def read_speeds(path: str | Path) -> GavelSpeeds:
    """Read speeds.

    Parameters
    ----------
    path
        A CSV file with columns ``file``, ``gpu``, ``job``, ``gpus`` and ``steps_per_s``. Rows of other files
        than ``simulation_throughputs``, and of GPUs in several servers (``…_unconsolidated``), are passed
        over.

    Raises
    ------
    InputError
        If the file cannot be read, has no such rows, a cell holds what it must not, or a row is there twice.
        Names the line.
    """
    path = Path(path)
    where, header, rows = csv_rows(path, "speeds", " and ".join(_COLUMNS), _MOST_BYTES)
    for name in _COLUMNS:
        if name not in header:
            raise InputError(f"{where}: expected a column {name}, found {', '.join(header)[:200]}")
    speeds: dict[tuple[str, int], dict[str, float]] = {}
    kinds: dict[str, None] = {}
    for place, row in rows:
        kind = row["gpu"]
        if row["file"] != _FILE or kind.endswith(_APART):
            continue
        gpus, speed = _number(place, "gpus", row["gpus"]), _number(place, "steps_per_s", row["steps_per_s"])
        if gpus < 1 or not gpus.is_integer():
            raise InputError(
                f"{place}: gpus: expected a whole number of at least 1, found {row['gpus'][:60]}"
            )
        known = speeds.setdefault((row["job"], int(gpus)), {})
        if kind in known:
            raise InputError(
                f"{place}: expected each speed once, found {row['job']} on {int(gpus)} {kind} again"
            )
        known[kind] = speed
        kinds[kind] = None
    if not speeds:
        raise InputError(f"{path}: expected rows of {_FILE}, found none")
    by_job = {job: tuple(known.get(kind, 0.0) for kind in kinds) for job, known in speeds.items()}
    return GavelSpeeds(tuple(kinds), frozenset(name for name, _ in by_job), by_job)


def _number(place: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e15:
        raise InputError(f"{place}: {name}: expected a number of at least 0, found {text[:60]!r}")
    return value
