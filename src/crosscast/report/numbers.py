"""Formats of numbers, scores and settings for people, on a terminal and on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crosscast.data.configuration import Setting
from crosscast.units import format_seconds, format_setting, setting_parts

if TYPE_CHECKING:
    from crosscast.prediction.configuration import ConfigurationSpace

NONE = "—"
"""Text for an unknown value."""

_LARGE = 10.0
MARK = "*"
"""Mark of scores better than the best baseline's, where the bootstrap of the difference excludes 0."""

_NUMBER = re.compile(r"\s*(>?)\s*([-+−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([^\W\d_]+(?:/s)?|%)?")
_UNIT_SCALES = dict(
    zip("ns µs ms s min h d".split(), (1e-9, 1e-6, 1e-3, 1.0, 60.0, 3600.0, 86400.0), strict=True)
) | {"kHz": 1e3, "MHz": 1e6, "GHz": 1e9, "%": 0.01, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}


def percent(share: float | None, digits: int = 0) -> str:
    """Write a share as a percentage.

    >>> percent(0.394), percent(0.6912, 1), percent(None), percent(1e6)
    ('39 %', '69.1 %', '—', '> 9,999 %')
    """
    if share is None:
        return NONE
    return f"{100 * share:,.{digits}f} %" if share < 100 else "> 9,999 %"


def share(value: float | None) -> str:
    """Write a share in per cent without the sign, for columns that have it; from 1,000 on without decimals.

    >>> share(0.934), share(12.5), share(None)
    ('93.4', '1,250', '—')
    """
    if value is None:
        return NONE
    return f"{100 * value:.1f}" if value < _LARGE else f"{100 * value:,.0f}"


def level_percent(share: float) -> str:
    """Write a confidence level, or a share, with up to three digits, or more where these would be 100.

    >>> level_percent(0.9), level_percent(0.995), level_percent(0.9999)
    ('90 %', '99.5 %', '99.99 %')
    """
    return f"{100 * share:.{3 if share < 0.9995 else 6}g} %"


def error_percent(share: float | None) -> str:
    """Write an error as a percentage with three digits.

    >>> error_percent(0.0725), error_percent(12.5), error_percent(None)
    ('7.25 %', '1,250 %', '—')
    """
    return NONE if share is None or math.isnan(share) else f"{three_digits(round(100 * share, 4))} %"


def probability(share: float) -> str:
    """Write a probability in per cent, never as 0 or 100, as predictions are not certain."""
    if share < 0.005:
        return "less than 1 %"
    return "more than 99 %" if share > 0.995 else percent(share)


def factor(ratio: float | None) -> str:
    """Write a ratio such as 1.13 with a multiplication sign."""
    if ratio is None or math.isnan(ratio):
        return NONE
    if ratio >= 10_000:
        return "> 9,999×"
    return f"{ratio:.2f}×" if ratio < 100 else f"{ratio:,.0f}×"


def slowdown(value: float | None) -> str:
    """Write a slowdown of jobs, which may be very large.

    >>> slowdown(1.234), slowdown(12345.6), slowdown(None)
    ('1.23', '12,346', '—')
    """
    if value is None:
        return NONE
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def plural(number: int, noun: str, several: str | None = None) -> str:
    """Write a number with its noun.

    >>> plural(1, "device"), plural(1560, "cell"), plural(2, "mix", "mixes")
    ('1 device', '1,560 cells', '2 mixes')
    """
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def three_digits(number: float) -> str:
    """Write a number with three digits, or all digits before the point.

    >>> three_digits(0.12345), three_digits(99.71), three_digits(999.7), three_digits(12345.6)
    ('0.123', '99.7', '1,000', '12,346')
    """
    return f"{number:.3g}" if number < 999.5 else f"{number:,.0f}"


def times(low: float, high: float) -> str:
    """Write an interval of times in seconds."""
    return f"{format_seconds(low)} to {format_seconds(high)}"


def number_in(text: str) -> float | None:
    """Parse the number at the start of a text, in its base unit, as a sort key of a column.

    >>> number_in("1.18 ms"), number_in("1,560 [1, 2]"), number_in("−3 %"), number_in("2 h 30 min")
    (0.00118, 1560.0, -0.03, 9000.0)
    >>> number_in("—"), number_in("titanx")
    (None, None)
    """
    total: float | None = None
    position = 0
    while (match := _NUMBER.match(text, position)) is not None:
        scale = _UNIT_SCALES.get(match[3] or "", 1.0)
        value = float(match[2].replace(",", "").replace("−", "-")) * scale
        if total is None:
            total = value
        elif match[3] in ("s", "min"):
            total += value
        else:
            break
        position = match.end()
    return total


def named(model: str, baseline: bool) -> str:
    """Write a model's name, marked if it is a baseline."""
    return f"{model} (baseline)" if baseline else model


_MOST_WORDS = 4
"""Largest number of a setting's words that are listed; of more, only the number is written."""


def setting_heading(name: str) -> str:
    """Write the name of a knob with its unit.

    >>> setting_heading("core_clock_hz"), setting_heading("cores")
    ('core clock, MHz', 'cores')
    """
    words, unit, _ = setting_parts(name)
    return f"{words}, {unit}" if unit else words


def setting_text(name: str, value: Setting | None) -> str:
    """Write a knob's value in the unit of its heading; a dash where a device lacks the knob.

    >>> setting_text("core_clock_hz", 1.164e9), setting_text("scheduling", "dynamic")
    ('1164', 'dynamic')
    """
    return NONE if value is None else format_setting(name, value)


def setting_range(name: str, values: Sequence[Setting]) -> str:
    """Write the range of a knob's values: from least to greatest, or its words.

    >>> setting_range("cpu_cap_w", (65.0, 90.0, 120.0)), setting_range("mode", ("fast", "slow"))
    ('cpu cap 65 to 120 W', 'mode fast or slow')
    >>> setting_range("cpu_cap_w", (65.0,)), setting_range("mode", ("a", "b", "c", "d", "e"))
    ('cpu cap 65 W', 'mode one of 5 words')
    """
    words, unit, _ = setting_parts(name)
    numbers = [value for value in values if not isinstance(value, str)]
    texts = [value for value in values if isinstance(value, str)]
    ends = dict.fromkeys(setting_text(name, value) for value in (numbers[:1] + numbers[-1:]))
    ranges = [f"{' to '.join(ends)} {unit}".rstrip()] if numbers else []
    ranges += texts if len(texts) <= _MOST_WORDS else [f"one of {len(texts)} words"]
    return f"{words} {' or '.join(ranges)}"


def shown_settings(space: ConfigurationSpace) -> tuple[str, ...]:
    """Names of the settings that distinguish the configurations of a space: knobs, then words."""
    return (*space.knobs, *space.words)
