"""How numbers are written for people, on a terminal and on a page."""

from __future__ import annotations

import math

from crosscast.units import format_seconds

NONE = "—"
"""What is not known."""

_LONGEST_S = 1e9
_LARGEST_EXPONENT = 700.0


def percent(share: float | None) -> str:
    """A share, such as 0.39, as a percentage without decimals."""
    if share is None:
        return NONE
    return f"{100 * share:,.0f} %" if share < 100 else "> 9,999 %"


def factor(ratio: float | None) -> str:
    """A ratio, such as 1.13, with its sign of multiplication."""
    if ratio is None or math.isnan(ratio):
        return NONE
    if ratio >= 10_000:
        return "> 9,999×"
    return f"{ratio:.2f}×" if ratio < 100 else f"{ratio:,.0f}×"


def of_log(log_time: float) -> str:
    """The time whose logarithm (of seconds) this is."""
    if math.isnan(log_time):
        return NONE
    seconds = math.exp(min(log_time, _LARGEST_EXPONENT))
    return format_seconds(seconds) if seconds < _LONGEST_S else f"{seconds:.2g} s"


def plural(number: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "device"), plural(1560, "cell")
    ('1 device', '1,560 cells')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def three_digits(number: float) -> str:
    """A number with three digits, or all of those before its point.

    >>> three_digits(0.12345), three_digits(12345.6)
    ('0.123', '12,346')
    """
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"
