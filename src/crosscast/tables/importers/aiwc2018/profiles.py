"""Profiles of the published data: one for each invocation that was characterized."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.importers.aiwc2018.files import SAME_METRICS, UNLIKE_METRICS
from crosscast.tables.profiles import COLUMNS

__all__ = ["is_stray", "profile_row"]

_STRAY = ("kmeans", "calc_potential_single_step_dev")
_DIVISORS = ("work_items", "total_instruction_count")
_INTEGERS = frozenset(column.name for column in COLUMNS if column.type == "integer")


def is_stray(features: Mapping[str, Any]) -> bool:
    """Whether a row of the features is the one that is filed under the wrong application."""
    return (features["application"], features["kernel"]) == _STRAY


def profile_row(features: Mapping[str, Any], path: Path, number: int) -> dict[str, Any]:
    """Row of the table of profiles.

    Parameters
    ----------
    features
        A row of the source.
    path, number
        Its file and the number of the row, for messages.

    Raises
    ------
    InputError
        If a count is not a whole number, or there are no work-items or instructions.
    """
    metrics: dict[str, Any] = {}
    for name, metric in SAME_METRICS.items():
        metrics[metric] = features[name]
        if metric in _INTEGERS:
            metrics[metric] = _whole(f"{path}: column {name!r}, row {number}", features[name], metric)
    items, instructions = metrics["work_items"], metrics["total_instruction_count"]
    return {
        "application": features["application"],
        "kernel": features["kernel"],
        "size": features["size"],
        "invocation": features["invocation"],
        **metrics,
        "granularity": 1 / items,
        "barriers_per_instruction": (metrics["total_barriers_hit"] + items) / instructions,
        "program": {"tool": "AIWC 2018", "published": {name: features[name] for name in UNLIKE_METRICS}},
    }


def _whole(where: str, value: float, metric: str) -> int:
    if not value.is_integer():
        raise InputError(f"{where}: expected a whole number, found {value:g}")
    if metric in _DIVISORS and value < 1:
        raise InputError(f"{where}: expected at least 1, found {value:g}")
    return int(value)
