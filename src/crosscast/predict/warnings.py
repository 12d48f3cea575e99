"""Names in a sentence, as many as one reads."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int) -> str:
    """The first names with commas between, and how many more there are.

    >>> listed(["a", "b"], 2), listed(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
