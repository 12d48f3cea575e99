"""What makes a forecast doubtful, in words that all questions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crosscast.profile import Profile, doubts

_MOST_NAMED = 5


def format_names(names: Sequence[str], most: int) -> str:
    """The first names with commas between, and how many more there are.

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

    The farthest out comes first.

    >>> outside_training([("opcodes", 99, 6, 15), ("work-items", 64, 1, 1024), ("barriers", 9e6, 0, 1e3)])
    ['outside of what the model was trained on in: barriers 9e+06 (0 to 1000), opcodes 99 (6 to 15)']
    """
    beyond = [
        (_beyond(value, low, high), f"{name} {value:.4g} ({low:.4g} to {high:.4g})")
        for name, value, low, high in features
        if value < low or value > high
    ]
    beyond.sort(key=lambda each: -each[0])
    said = format_names([text for _, text in beyond], _MOST_NAMED)
    return [f"outside of what the model was trained on in: {said}"] if beyond else []


def _beyond(value: float, low: float, high: float) -> float:
    """How far out a value is, in widths of the range; what is trained at one value alone is far."""
    return max(low - value, value - high) / ((high - low) or abs(high) or 1.0)
