"""Names from files, as they are, in pictures."""

from __future__ import annotations

__all__ = ["plain_text"]


def plain_text(text: str) -> str:
    """Text that matplotlib takes for no formula.

    Examples
    --------
    >>> plain_text("cost in $ and $")
    'cost in \\\\$ and \\\\$'
    """
    return text.replace("$", r"\$")
