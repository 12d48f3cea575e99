"""Warnings of forecasts that all questions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crosscast.profile import Profile, doubts

_MOST_NAMED = 5


def format_names(names: Sequence[str], most: int) -> str:
    """The first names separated by commas, and the number of the others.

    >>> format_names(["a", "b"], 2), format_names(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def of_counts(launches: Iterable[Profile]) -> list[str]:
    """Warnings of a kernel's launches whose counts are doubtful."""
    return list(dict.fromkeys(sentence for each in launches for sentence in doubts(each.launch)))


def outside_training(features: Iterable[tuple[str, float, float, float]]) -> list[str]:
    """A warning of features (name, value, least and greatest value of the training) that are out of range.

    The farthest comes first.

    >>> outside_training([("opcodes", 99, 6, 15), ("work-items", 64, 1, 1024), ("barriers", 9e6, 0, 1e3)])
    ['outside of what the model was trained on in: barriers 9e+06 (0 to 1000), opcodes 99 (6 to 15)']
    """
    beyond = [
        (_beyond(value, low, high), f"{name} {value:.4g} ({low:.4g} to {high:.4g})")
        for name, value, low, high in features
        if value < low or value > high
    ]
    beyond.sort(key=lambda each: -each[0])
    listed = format_names([text for _, text in beyond], _MOST_NAMED)
    return [f"outside of what the model was trained on in: {listed}"] if beyond else []


def _beyond(value: float, low: float, high: float) -> float:
    """Distance of a value from the range, in widths of it; large for a range of a single value."""
    return max(low - value, value - high) / ((high - low) or abs(high) or 1.0)
