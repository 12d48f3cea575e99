"""One registry of what fields of results are called in tables and how they are written, with their units.

Tables name fields. A field that is not in `FIELDS` is written by the unit that its name ends in, and what has
no unit as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

from crosscast.report.document import Table, TableStyle, Write
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


Thing = TypeVar("Thing")


class Field(NamedTuple):
    """What a field is called above a column, and how it is written."""

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
    "rise": Field("rise of MAE when shuffled", "{:+.4f}".format),
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
"""Fields whose heading, or way to be written, is not that of their unit."""

UNITS: Mapping[str, Write] = {
    "Hz": format_hertz,
    "B": lambda value: format_bytes(int(value)),
    "B/s": format_bytes_per_second,
    "flop/s": lambda value: f"{value / 1e12:.4g} Tflop/s",
    "op/s": lambda value: format_quantity(value, "op/s"),
    "s": format_seconds,
    "W": lambda value: f"{value:g} W",
    "count": lambda value: format_count(int(value)),
}
"""How quantities are written, by unit."""

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
    """How a field is written."""
    if name in FIELDS:
        return FIELDS[name].write
    unit = next((unit for ending, unit in _ENDINGS.items() if name.endswith(ending)), None)
    return _plain if unit is None else UNITS[unit]


def _plain(value: object) -> str:
    return format_count(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def value_of(thing: object, path: str) -> Any:
    """A field of a thing: an attribute or an entry, or one of what that is; ``None`` if any is not there."""
    for name in path.split("."):
        if thing is None:
            return None
        thing = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name)
    return thing


def table_of(
    things: Iterable[Thing],
    columns: Mapping[str, str | Callable[[Thing], object]],
    **style: Unpack[TableStyle],
) -> Table:
    """A row a thing; a column a field by its name, or a function of the thing.

    >>> list(table_of([{"name": "a", "time_s": 0.002}], {"of": "name", "time": "time_s"}).lines())
    ['of  time', 'a   2 ms']
    """
    names = {heading: each for heading, each in columns.items() if isinstance(each, str)}
    formats = {heading: writer_of(name.rpartition(".")[2]) for heading, name in names.items()}
    functions: dict[str, Callable[[Thing], object]] = {
        heading: each if callable(each) else partial(value_of, path=each) for heading, each in columns.items()
    }
    style["formats"] = {**formats, **style.get("formats", {})}
    return Table.of(things, functions, **style)


def columns_table(
    columns: Mapping[str, Column], headings: Mapping[str, str], **style: Unpack[TableStyle]
) -> Table:
    """Some columns of a result, by heading and name, each written as its field is."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return table_of(rows, headings, **style)


class Score(NamedTuple):
    """A score as a column: its name, and whether its interval stands beside it."""

    name: str
    interval: bool = False

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return FIELDS[self.name].heading

    def text(
        self, scores: object, confidence: Confidence | None = None, *, marked: bool | None = None
    ) -> str:
        """The score, with a star where it is better than the best baseline, and its interval in brackets."""
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
    """Scores by their names, between spaces; a name that ends in ± has its interval beside it."""
    return tuple(Score(name.removesuffix("±"), name.endswith("±")) for name in names.split())


def score_table(
    headings: Sequence[str],
    rows: Iterable[tuple[Sequence[object], object, Confidence | None]],
    scores: Sequence[Score],
    **style: Unpack[TableStyle],
) -> Table:
    """Rows that begin with cells of their own and go on with scores, with intervals where there are any."""
    lines = [
        [*cells, *(score.text(found, confidence) for score in scores)] for cells, found, confidence in rows
    ]
    return Table([*headings, *(score.heading for score in scores)], lines, **style)
