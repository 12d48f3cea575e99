"""Registry of the headings and formats of fields of results in tables.

Tables refer to fields by name. A field that is not in `FIELDS` is formatted by the unit that its name ends
in, and without a unit by `str`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from crosscast.report.document import Table, Write
from crosscast.report.numbers import MARK, NONE, factor, percent, share, slowdown
from crosscast.units import (
    format_bytes,
    format_bytes_per_second,
    format_count,
    format_elapsed,
    format_hertz,
    format_quantity,
    format_seconds,
)

if TYPE_CHECKING:
    from crosscast.evaluation.resampling import Confidence
    from crosscast.results import Column

_ONE, _TWO, _THREE, _FOUR = "{:.1f}".format, "{:.2f}".format, "{:.3f}".format, "{:.4f}".format
_TENTHS: Write = partial(percent, digits=1)
Item = TypeVar("Item")


class Field(NamedTuple):
    """Heading and format of a field."""

    heading: str
    write: Write


FIELDS: Mapping[str, Field] = {
    # Scores of predicted times
    "rmse_log": Field("RMSE of ln t", _TWO),
    "rmse_log_by_application": Field("by appl.", _TWO),
    "median_ape": Field("median APE", percent),
    "median_ape_by_application": Field("by application", percent),
    "mape": Field("MAPE", percent),
    "bias": Field("bias", factor),
    "slowdown_mean": Field("mean slowdown", factor),
    "slowdown_geomean": Field("geometric", factor),
    "top1": Field("fastest", percent),
    "within_10": Field("within 10 %", percent),
    "kendall_tau": Field("Kendall's tau", _TWO),
    "coverage": Field("coverage", percent),
    "coverage_over_cells": Field("over points", percent),
    "coverage_worst_application": Field("worst application", percent),
    "width": Field("width", factor),
    "interval_score": Field("interval score", _TWO),
    # Scores of relative times
    "mae": Field("MAE", _FOUR),
    "validation_mae": Field("validation", _FOUR),
    "same_order": Field("same order", percent),
    "regret": Field("regret", _THREE),
    "median_regret": Field("median", _THREE),
    "typical_factor": Field("typical factor", factor),
    "gain": Field("average gain", percent),
    "rise": Field("rise of MAE when shuffled", "{:+z.4f}".format),
    # Scores of choices between two devices
    "accuracy": Field("accuracy", _TENTHS),
    "speedup": Field("speed-up", _THREE),
    "mean_speedup": Field("mean", _THREE),
    "worst_regret": Field("worst", "{:.3g}".format),
    # Scores of configurations
    "under_limit_share": Field("under", share),
    "under_performance": Field("perf.", share),
    "under_power": Field("power", share),
    "over_power": Field("power over", share),
    "over_performance": Field("perf. over", share),
    "score": Field("S", share),
    "extra_runs": Field("extra runs", _ONE),
    # Schedules
    "makespan_s": Field("makespan", format_elapsed),
    "average_bounded_slowdown": Field("slowdown", slowdown),
    "mean_wait_s": Field("mean wait", format_elapsed),
    "median_wait_s": Field("median", format_elapsed),
    "wait_p95_s": Field("95 %", format_elapsed),
    "utilisation": Field("used", _TENTHS),
    "mean_w": Field("mean", "{:,.4g} W".format),
    "peak_w": Field("peak", "{:,.4g} W".format),
    "energy_kwh": Field("energy", "{:,.4g} kWh".format),
    "within_budget": Field("in budget", _TENTHS),
    "over_budget": Field("over it", _TENTHS),
    "cost": Field("cost", "{:,.4g}".format),
    "carbon_kg": Field("CO2", "{:,.4g} kg".format),
    "slowed": Field("slowed down", _TENTHS),
    "mean_slowdown": Field("mean", factor),
    "broken_promises": Field("more than promised", _TENTHS),
    "lost": Field("lost", _TENTHS),
    # Measurements and others
    "slowdown": Field("slowdown", factor),
    "spread": Field("spread", _TENTHS),
    "ratio": Field("ratio", "{:.3g}".format),
    "forecast_over_measured": Field("forecast/measured", _TWO),
}
"""Fields with a heading or a format that does not follow from their unit."""

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


def writer_of(name: str) -> Write:
    """Format of a field."""
    if name in FIELDS:
        return FIELDS[name].write
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


def table_of(
    items: Iterable[Item],
    columns: Mapping[str, str | Callable[[Item], object]],
    **style: Any,
) -> Table:
    """Make a table with a row for each item; a column is a field by its path, or a function of the item.

    >>> list(table_of([{"name": "a", "time_s": 0.002}], {"of": "name", "time": "time_s"}).lines())
    ['of  time', 'a   2 ms']
    """
    paths = {heading: column for heading, column in columns.items() if isinstance(column, str)}
    formats = {heading: writer_of(path.rpartition(".")[2]) for heading, path in paths.items()}
    rows = [
        [value_of(item, column) if isinstance(column, str) else column(item) for column in columns.values()]
        for item in items
    ]
    return Table(list(columns), rows, **{**style, "formats": formats | style.get("formats", {})})


def columns_table(columns: Mapping[str, Column], headings: Mapping[str, str], **style: Any) -> Table:
    """Make a table of some columns of a result, by heading and name, formatted as their fields."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return table_of(rows, headings, **style)


class Score(NamedTuple):
    """A score as a column: its name, and whether its interval is shown."""

    name: str
    interval: bool = False

    @property
    def heading(self) -> str:
        """Heading of the column."""
        return FIELDS[self.name].heading

    def text(
        self, scores: object, confidence: Confidence | None = None, *, marked: bool | None = None
    ) -> str:
        """Write the score, with a mark where it is better than the best baseline, and its interval."""
        value, write = value_of(scores, self.name), writer_of(self.name)
        if value is None:
            return NONE
        text = write(value)
        if confidence is None:
            return text
        difference = confidence.differences.get(self.name)
        if (difference is not None and difference.better) if marked is None else marked:
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
