"""What differs between two profiles, datasets, models or schedules, for people."""

from __future__ import annotations

import math

from crosscast.comparison import Comparison
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.numbers import NONE, plural

_MOST = 30
"""Differences that are listed; ``--json`` has all."""
_MOST_NAMED = 10


def comparison_report(found: Comparison) -> Report:
    """How much differs, the largest changes, what only one has, and which conditions hold."""
    first, second = found.labels
    differ = len(found.differences)
    said = (
        f"{plural(found.compared, 'number')} compared, {differ:,} {'differs' if differ == 1 else 'differ'}."
    )
    parts: list[Part] = [Heading(f"{first} and {second}", 1), said]
    if found.differences:
        shown = found.differences[:_MOST]
        parts.append(
            Table.of(
                shown,
                {
                    "of": lambda each: each.item,
                    "number": lambda each: each.metric,
                    "first": lambda each: each.first,
                    "second": lambda each: each.second,
                    "change": lambda each: each.change,
                    "relative": lambda each: _relative(each.relative),
                },
                caption="Largest changes",
                formats=dict.fromkeys(("first", "second"), _number) | {"change": _signed},
                words=(0, 1),
            )
        )
        if differ > _MOST:
            parts.append(f"... and {differ - _MOST:,} more, which --json has.")
    for label, items in zip(found.labels, found.only, strict=True):
        if items:
            more = f" and {len(items) - _MOST_NAMED:,} more" if len(items) > _MOST_NAMED else ""
            parts.append(f"Only in {label}: {', '.join(items[:_MOST_NAMED])}{more}.")
    if found.failed:
        parts.append(Text([_verdict(text, items) for text, items in found.failed.items()], "note"))
    return Report(parts)


def _verdict(condition: str, items: tuple[str, ...]) -> str:
    if not items:
        return f"ok    {condition}"
    more = f" and {len(items) - _MOST_NAMED:,} more" if len(items) > _MOST_NAMED else ""
    return f"FAIL  {condition}: {', '.join(items[:_MOST_NAMED])}{more}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _signed(value: float) -> str:
    return f"+{_number(value)}" if value > 0 else _number(value)


def _relative(share: float | None) -> str:
    if share is None:
        return NONE
    return "from 0" if math.isinf(share) else f"{100 * share:+.3g} %"
