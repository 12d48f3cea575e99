"""A profile as a JSON object that is embedded, and back."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypeGuard

from crosscast.data.profiles import COLUMNS
from crosscast.profile import METRICS, MetricValue, Profile

__all__ = ["profile_of", "to_entry"]

_WHOLE = frozenset(column.name for column in COLUMNS if column.type == "integer")
_MOST = (1 << 63) - 1
"""Largest number that a table of profiles holds."""

_FACTS = ("launch", "program", "environment")


def to_entry(profile: Profile) -> dict[str, Any]:
    """Make the object of a profile.

    It holds what is the same each time that the launch is characterized: no times, and nothing that the
    kernel printed. Of the program's path the name stays, as the file will be read elsewhere.
    """
    path = profile.program.get("path")
    return {
        "application": profile.application,
        "size": profile.size,
        "kernel": profile.kernel,
        "invocation": profile.invocation,
        "metrics": dict(profile.metrics),
        "launch": dict(profile.launch),
        "program": {**profile.program, "path": PurePath(path).name if path else None},
        "environment": dict(profile.environment),
    }


def profile_of(entry: Any, number: int) -> Profile:
    """Make the profile of an object.

    Parameters
    ----------
    entry
        A JSON value.
    number
        Its place in the list of profiles, from 0, for messages.

    Raises
    ------
    ValueError
        If something in it is missing or wrong; says what.
    """
    where = f"profiles[{number}]"
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where}: expected an object")
    kernel, invocation = entry.get("kernel"), entry.get("invocation")
    if not isinstance(kernel, str) or not kernel:
        raise ValueError(f"{where}.kernel: expected a name, found {reprlib.repr(kernel)}")
    if not _is_whole(invocation) or not 0 <= invocation <= _MOST:
        raise ValueError(
            f"{where}.invocation: expected a whole number of at least 0, found {reprlib.repr(invocation)}"
        )
    for name in ("application", "size"):
        if not isinstance(entry.get(name), str | None):
            raise ValueError(f"{where}.{name}: expected a text, found {reprlib.repr(entry[name])}")
    for name in ("metrics", *_FACTS):
        if not isinstance(entry.get(name), Mapping):
            raise ValueError(f"{where}.{name}: expected an object")
    return Profile(
        kernel=kernel,
        invocation=invocation,
        metrics=_metrics(entry["metrics"], where),
        timing_s={},
        **{name: entry[name] for name in _FACTS},
        application=entry.get("application"),
        size=entry.get("size"),
    )


def _metrics(values: Mapping[str, Any], where: str) -> dict[str, MetricValue]:
    names = {metric.name for metric in METRICS}
    if values.keys() != names:
        wrong = min(values.keys() ^ names)
        found = "one more" if wrong in values else "none"
        raise ValueError(f"{where}.metrics: expected Crosscast's, found {found} called {reprlib.repr(wrong)}")
    for name, value in values.items():
        if value is None:
            continue
        number = _is_whole(value) or (isinstance(value, float) and name not in _WHOLE)
        if not number or not 0 <= value <= _MOST:
            kind = "whole number" if name in _WHOLE else "number"
            found = reprlib.repr(value)
            raise ValueError(f"{where}.metrics.{name}: expected a {kind} of at least 0, found {found}")
    return {metric.name: values[metric.name] for metric in METRICS}


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
