"""Formats of numbers, scores and settings for people, and tables of results, which refer to fields by name.

A field that is neither a score nor in `_FORMATS` is formatted by the unit that its name ends in, and without
a unit by `str`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from crosscast.data.configuration import Setting
from crosscast.report.document import NONE, Ranges, Table, Write
from crosscast.units import (
    format_bytes,
    format_bytes_per_second,
    format_count,
    format_elapsed,
    format_hertz,
    format_quantity,
    format_seconds,
    format_setting,
    setting_parts,
)

if TYPE_CHECKING:
    from crosscast.evaluation.resampling import Confidence
    from crosscast.prediction.configuration import ConfigurationSpace

_LARGE = 10.0
MARK = "*"
"""Mark of scores better than the best baseline's, where the bootstrap of the difference excludes 0."""


def percent(share: float | None, digits: int = 0) -> str:
    """Write a share as a percentage.

    >>> percent(0.394), percent(0.6912, 1), percent(None), percent(math.nan), percent(1e6)
    ('39 %', '69.1 %', '—', '—', '> 9,999 %')
    """
    if share is None or math.isnan(share):
        return NONE
    return f"{100 * share:,.{digits}f} %" if share < 100 else "> 9,999 %"


def share(value: float) -> str:
    """Write a share in per cent without the sign, for columns that have it; from 1,000 on without decimals.

    >>> share(0.934), share(12.5)
    ('93.4', '1,250')
    """
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


def slowdown(value: float) -> str:
    """Write a slowdown of jobs, which may be very large.

    >>> slowdown(1.234), slowdown(99.5), slowdown(12345.6)
    ('1.23', '99.50', '12,346')
    """
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


_TWO, _THREE, _FOUR = "{:.2f}".format, "{:.3f}".format, "{:.4f}".format
_TENTHS: Write = partial(percent, digits=1)
Item = TypeVar("Item")


class Field(NamedTuple):
    """Heading and format of a score, and what a legend says of it."""

    heading: str
    write: Write
    about: str = ""


SCORES: Mapping[str, Field] = {
    # Of predicted times
    "rmse_log": Field("RMSE of ln t", _TWO, "root mean square of ln(predicted / measured)"),
    "rmse_log_by_application": Field("by appl.", _TWO, "mean over applications"),
    "median_ape": Field("median APE", percent, "median of abs(predicted / measured - 1)"),
    "median_ape_by_application": Field("by application", percent, "mean over applications"),
    "mape": Field("MAPE", percent, "mean of abs(predicted / measured - 1)"),
    "bias": Field("bias", factor, "geometric mean of predicted / measured"),
    "slowdown_mean": Field(
        "mean slowdown", factor, "measured time on the chosen device over that on the fastest"
    ),
    "slowdown_geomean": Field("geometric", factor, "its geometric mean"),
    "without_it": Field("without it", factor),
    "top1": Field("fastest", percent, "share for which the fastest device is chosen"),
    "within_10": Field("within 10 %", percent, "for which one at most 10 % slower is"),
    "kendall_tau": Field("Kendall's tau", _TWO, "of predicted and measured times over devices"),
    "coverage": Field(
        "coverage", percent, "share of values within their {level} intervals, mean over groups"
    ),
    "coverage_over_cells": Field("over points", percent, "over all measurement points"),
    "coverage_worst_application": Field("worst application", percent, "with the least coverage"),
    "width": Field("width", factor, "upper over lower limit, median"),
    "interval_score": Field("interval score", _TWO, "width and misses, in logarithms"),
    # Of relative times
    "mae": Field("MAE", _FOUR, "mean error of times over that on the slowest device"),
    "same_order": Field("same order", percent, "share whose devices are all ranked as measured"),
    "regret": Field(
        "regret", _THREE, "time on the device predicted to be the fastest over the least, less 1"
    ),
    "median_regret": Field("median", _THREE, "of the regret"),
    "typical_factor": Field("typical factor", factor, "by how much the ratio of two devices' times is off"),
    # Of choices between two devices
    "accuracy": Field("accuracy", _TENTHS),
    "speedup": Field("speed-up", _THREE),
    "mean_speedup": Field("mean", _THREE),
    "worst_regret": Field("worst", "{:.3g}".format),
    # Of configurations
    "under_limit_share": Field("under", share, "share of cases within the cap"),
    "under_performance": Field(
        "perf.", share, "performance over the oracle's, mean over the cases within the cap"
    ),
    "under_power": Field("power", share, "that over the oracle's, likewise"),
    "over_power": Field("power over", share, "the same over the other cases"),
    "over_performance": Field("perf. over", share, "the same over the other cases"),
    "score": Field("S", share, "performance over the oracle's, with cases over the cap counting 0"),
    "extra_runs": Field("extra runs", "{:.1f}".format, "changes after the first choice"),
}

_FORMATS: Mapping[str, Write] = {
    **{name: score.write for name, score in SCORES.items()},
    "validation_mae": _FOUR,
    "auc": _THREE,
    "gain": percent,
    "rise": "{:+z.4f}".format,
    "relative": three_digits,
    "probability_fastest": probability,
    "average_bounded_slowdown": slowdown,
    "energy_kwh": "{:,.4g} kWh".format,
    "cost": "{:,.4g}".format,
    "carbon_kg": "{:,.4g} kg".format,
    "ratio": "{:.3g}".format,
    "forecast_over_measured": _TWO,
    **dict.fromkeys(("speed_up", "slowdown", "mean_slowdown"), factor),
    **dict.fromkeys(("makespan_s", "mean_wait_s", "median_wait_s", "wait_p95_s"), format_elapsed),
    **dict.fromkeys(("mean_w", "peak_w"), "{:,.4g} W".format),
    **dict.fromkeys(
        "utilisation within_budget over_budget slowed broken_promises lost spread share".split(), _TENTHS
    ),
}
"""Formats that do not follow from the unit in a field's name."""

UNITS: Mapping[str, Write] = {
    "Hz": format_hertz,
    "B": lambda value: format_bytes(int(value)),
    "B/s": format_bytes_per_second,
    "flop/s": lambda value: f"{value / 1e12:.4g} Tflop/s" if value >= 1e11 else f"{value / 1e9:.4g} Gflop/s",
    "op/s": lambda value: format_quantity(value, "op/s"),
    "s": format_seconds,
    "W": lambda value: f"{value:g} W",
    "count": lambda value: format_count(int(value)),
}
"""Formats of quantities by unit."""

_ENDINGS = {
    "_bytes_per_s": "B/s",
    "_flop_per_s": "flop/s",
    "_op_per_s": "op/s",
    "_hz": "Hz",
    "_bytes": "B",
    "_s": "s",
    "_w": "W",
}


def writer_of(path: str) -> Write:
    """Format of a field, by its name or path; an estimate has a value and limits of one format."""
    *parents, name = path.split(".")
    if name in ("value", "low", "high") and parents:
        name = parents[-1]
    if name in _FORMATS:
        return _FORMATS[name]
    unit = next((unit for ending, unit in _ENDINGS.items() if name.endswith(ending)), None)
    return _plain if unit is None else UNITS[unit]


def _plain(value: object) -> str:
    return format_count(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def value_of(item: object, path: str) -> Any:
    """Follow a dotted path of attributes or entries; ``None`` if any of them is ``None``."""
    for name in path.split("."):
        if item is None:
            return None
        item = item.get(name) if isinstance(item, Mapping) else getattr(item, name)
    return item


Column = str | tuple[str, str] | Callable[[Item], object]
"""A field by its path, an interval by the paths of its limits, or a function of an item."""


def table_of(
    items: Iterable[Item],
    columns: Mapping[str, Column[Item]],
    *,
    ranges: tuple[str, str, str] | None = None,
    **style: Any,
) -> Table:
    """Make a table with a row for each item; texts and intervals are left-aligned.

    `ranges` are the paths of low, centre and high of intervals that a page draws beside the rows.

    >>> row = {"name": "a", "time_s": 0.002, "low_s": 0.001, "high_s": 0.003}
    >>> list(table_of([row], {"of": "name", "time": "time_s", "interval": ("low_s", "high_s")}).lines())
    ['of  time  interval', 'a   2 ms  1 ms to 3 ms']
    """
    listed = list(items)
    paths = {heading: column for heading, column in columns.items() if not callable(column)}
    formats = {
        heading: writer_of(path) if isinstance(path, str) else between(writer_of(path[0]))
        for heading, path in paths.items()
    } | style.get("formats", {})
    rows = [[_value(item, column) for column in columns.values()] for item in listed]
    text = {number for row in rows for number, value in enumerate(row) if isinstance(value, str | tuple)}
    if ranges is not None:
        limits = [tuple(value_of(item, path) for path in ranges) for item in listed]
        known = [None if None in each else each for each in limits]
        what = next((heading for heading, path in paths.items() if path == ranges[1]), "")
        style["ranges"] = Ranges(known, formats[what], what)
    return Table(list(columns), rows, **{"words": {0, *text}, **style, "formats": formats})


def _value(item: Item, column: Column[Item]) -> object:
    if callable(column):
        return column(item)
    if isinstance(column, str):
        return value_of(item, column)
    limits = tuple(value_of(item, path) for path in column)
    return None if None in limits else limits


def between(write: Write) -> Write:
    """Format of intervals whose limits have a format."""
    return lambda limits: f"{write(limits[0])} to {write(limits[1])}"


class Score(NamedTuple):
    """A score as a column: its name, and whether its interval is shown."""

    name: str
    interval: bool = False

    @property
    def heading(self) -> str:
        """Heading of the column."""
        return SCORES[self.name].heading

    def text(self, scores: object, confidence: Confidence | None = None) -> str:
        """Write the score, with a mark where it is better than the best baseline, and its interval."""
        value, write = value_of(scores, self.name), writer_of(self.name)
        if value is None:
            return NONE
        text = write(value)
        if confidence is None:
            return text
        difference = confidence.differences.get(self.name)
        if difference is not None and difference.better:
            text += MARK
        interval = confidence.intervals.get(self.name)
        if self.interval and interval is not None:
            low, high = (write(limit).rstrip(" %×") for limit in (interval.low, interval.high))
            text += f" [{low}, {high}]"
        return text


def scores_of(names: str) -> tuple[Score, ...]:
    """Parse names of scores, separated by spaces; ± after a name shows its interval."""
    return tuple(Score(name.removesuffix("±"), name.endswith("±")) for name in names.split())


def score_table(
    headings: Sequence[str],
    rows: Iterable[tuple[Sequence[object], object, Confidence | None]],
    scores: Sequence[Score],
    **style: Any,
) -> Table:
    """Make a table of rows with leading cells and scores, with intervals where known."""
    lines = [
        [*cells, *(score.text(values, confidence) for score in scores)] for cells, values, confidence in rows
    ]
    return Table([*headings, *(score.heading for score in scores)], lines, **style)


def explained(scores: Iterable[Score], level: float | None = None) -> str:
    """Explain columns of scores in a sentence, with the level of intervals."""
    texts = [
        f"{field.heading}: {field.about}" for field in (SCORES[score.name] for score in scores) if field.about
    ]
    text = "; ".join(texts).replace("{level} ", "" if level is None else f"{level_percent(level)} ")
    return f"{text[0].upper()}{text[1:]}."


def bootstrap_sentence(groups: str) -> str:
    """Explain the intervals and marks of scores."""
    # Imported here, as predictions are shown without evaluations.
    from crosscast.evaluation.resampling import DRAWS, SHARE

    return (
        f"In brackets: {100 * SHARE:g} % of {format_count(DRAWS)} bootstrap draws of {groups}. {MARK} better "
        "than the best baseline, where the bootstrap of the difference excludes 0."
    )
