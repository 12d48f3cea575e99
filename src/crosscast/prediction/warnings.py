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

    >>> outside_training([("opcode", 99, 6, 15), ("work_items", 64, 1, 1024)])
    ['outside of what the model was trained on: opcode 99 (trained on 6 to 15)']
    """
    beyond = [
        f"{name} {value:.4g} (trained on {low:.4g} to {high:.4g})"
        for name, value, low, high in features
        if value < low or value > high
    ]
    return (
        [f"outside of what the model was trained on: {format_names(beyond, _MOST_NAMED)}"] if beyond else []
    )
