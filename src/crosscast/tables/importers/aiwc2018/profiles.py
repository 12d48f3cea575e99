"""Profiles of the published data: one for each invocation that was characterized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.importers.aiwc2018.files import SAME_METRICS, UNLIKE_METRICS
from crosscast.tables.profiles import COLUMNS

__all__ = ["is_stray", "profile_row"]

_STRAY = ("kmeans", "calc_potential_single_step_dev")
_INTEGERS = frozenset(column.name for column in COLUMNS if column.type == "integer")


def is_stray(features: Mapping[str, Any]) -> bool:
    """Whether a row of the features is the one that is filed under the wrong application."""
    return (features["application"], features["kernel"]) == _STRAY


def profile_row(features: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Row of the table of profiles.

    Parameters
    ----------
    features
        A row of the source.
    where
        File and row, for messages.

    Raises
    ------
    InputError
        If a count is not a whole number, or there are no work-items or instructions.
    """
    metrics = {metric: _value(metric, features[name], name, where) for name, metric in SAME_METRICS.items()}
    items, instructions = metrics["work_items"], metrics["total_instruction_count"]
    for name, value in (("workitems", items), ("total_instruction_count", instructions)):
        if value < 1:
            raise InputError(f"{where}: column {name!r}: expected at least 1, found {value}")
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


def _value(metric: str, value: float, name: str, where: str) -> int | float:
    if metric not in _INTEGERS:
        return value
    if not value.is_integer():
        raise InputError(f"{where}: column {name!r}: expected a whole number, found {value:g}")
    return int(value)
