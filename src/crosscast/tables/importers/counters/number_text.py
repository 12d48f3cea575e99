"""Numbers as counter tools print them, with separators or without."""

from __future__ import annotations

import math
import re

__all__ = ["number_of"]

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d{6}")
_MOST_CHARACTERS = 100


def number_of(text: str) -> float | None:
    """The number; ``None`` if it is none, or not finite.

    Commas separate thousands; a single one before six digits is where perf puts a locale's decimal point.

    Examples
    --------
    >>> number_of("1,234,567.5"), number_of("3805,723968"), number_of("n/a")
    (1234567.5, 3805.723968, None)
    """
    text = text.strip()
    if len(text) > _MOST_CHARACTERS or "_" in text:
        return None
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
