"""Tables of how methods chose on a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from crosscast.decide.scores import ChoiceResult, Metrics
from crosscast.evaluation.confidence import Interval
from crosscast.report.number_table import number_table
from crosscast.report.numbers import NONE

__all__ = [
    "MARK",
    "confidence_table",
    "curve_table",
    "difference_table",
    "interval_table",
    "main_table",
    "program_table",
    "repeats_table",
    "share",
    "tails_table",
]

MARK = "*"
"""After what is better than the best baseline beyond doubt."""

_REFERENCE = "oracle"
_LARGE = 10.0


class _Column(NamedTuple):
    heading: str
    text: Callable[[ChoiceResult], str]


def share(value: float | None) -> str:
    """A fraction of one, or of the oracle's, as a percentage without its sign."""
    if value is None:
        return NONE
    return f"{100 * value:.1f}" if value < _LARGE else f"{100 * value:,.0f}"


def _runs(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def _table(results: Sequence[ChoiceResult], columns: Sequence[_Column], heading: str = "method") -> Table:
    """A row a method: those that are compared with the baselines first, the oracle last."""
    table = number_table(heading, [column.heading for column in columns])
    own = [each for each in results if not each.baseline and each.method != _REFERENCE]
    baselines = [each for each in results if each.baseline]
    for result in [*own, *baselines]:
        if own and baselines and result is baselines[0]:
            table.add_row(Text("baselines", style="dim italic"))
        _add(table, result, columns, "")
    for result in results:
        if result.method == _REFERENCE:
            _add(table, result, columns, "dim")
    return table


def _add(table: Table, result: ChoiceResult, columns: Sequence[_Column], style: str) -> None:
    cells = [column.text(result) for column in columns]
    styles = ["bold" if cell.endswith(MARK) else style for cell in cells]
    name = Text(
        f"{result.method} {100 * result.confidence:g} %" if result.confidence else result.method, style
    )
    table.add_row(name, *(Text(cell, each) for cell, each in zip(cells, styles, strict=True)))


def main_table(results: Sequence[ChoiceResult]) -> Table:
    """The columns of Table III of the paper, the score and the extra runs."""
    return _table(results, [_Column(heading, _metric(*of)) for heading, of in _METRICS.items()])


_METRICS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "under": ("under_limit_share", share),
    "perf.": ("under_performance", share),
    "power": ("under_power", share),
    "power over": ("over_power", share),
    "perf. over": ("over_performance", share),
    "S": ("score", share),
    "extra runs": ("extra_runs", _runs),
}


def _metric(name: str, write: Callable[[float | None], str]) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        difference = result.sure.differences.get(name)
        better = difference is not None and difference.better and result.method != _REFERENCE
        mark = MARK if better else ""
        return write(getattr(result.metrics, name)) + mark

    return text


_SURE = {
    "under": "under_limit_share",
    "perf.": "under_performance",
    "power over": "over_power",
    "S": "score",
}


def interval_table(results: Sequence[ChoiceResult]) -> Table:
    """Between which values a bootstrap over programs leaves the main metrics."""
    return _table(results, [_Column(heading, _interval(name)) for heading, name in _SURE.items()])


def _interval(name: str) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        return _between(result.sure.intervals.get(name))

    return text


def _between(found: Interval | None) -> str:
    return NONE if found is None else f"{share(found.low)} to {share(found.high)}"


def difference_table(results: Sequence[ChoiceResult]) -> Table | None:
    """Score and share under the limit against the best baseline in each; ``None`` without any to compare."""
    compared = [each for each in results if each.sure.differences and each.method != _REFERENCE]
    if not compared:
        return None
    names = {"under": "under_limit_share", "S": "score"}
    return _table(compared, [_Column(heading, _difference(name)) for heading, name in names.items()])


def _difference(name: str) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        found = result.sure.differences.get(name)
        if found is None:
            return NONE
        low, high = (f"{100 * limit:+.1f}" for limit in (found.interval.low, found.interval.high))
        mark = MARK if found.better else ""
        return f"{100 * found.value:+.1f} [{low}, {high}] against {found.baseline}{mark}"

    return text


def repeats_table(results: Sequence[ChoiceResult], split_half: Metrics | None) -> Table:
    """With 1 % tolerance on the runs themselves; on other repeats without it, with it, and told 1 % less."""
    columns = [
        _Column("≤ 1 %", lambda each: share(each.metrics.under_limit_share_within_1pct)),
        _Column("perf.", lambda each: share(each.metrics.under_performance_within_1pct)),
    ]
    if split_half is not None:
        columns += [
            _Column("again", lambda each: share(_strict(each)[0])),
            _Column("perf.", lambda each: share(_strict(each)[1])),
            _Column("repeats", lambda each: share(_tolerated(each)[0])),
            _Column("perf.", lambda each: share(_tolerated(each)[1])),
            _Column("told less", lambda each: share(_told_less(each).under_limit_share)),
            _Column("perf.", lambda each: share(_told_less(each).under_performance)),
            _Column("S", lambda each: share(_told_less(each).score)),
        ]
    table = _table(results, columns)
    if split_half is not None:
        cells = [
            split_half.under_limit_share,
            split_half.under_performance,
            split_half.under_limit_share_within_1pct,
            split_half.under_performance_within_1pct,
        ]
        table.add_row(Text("split-half oracle", "dim"), "", "", *(Text(share(each), "dim") for each in cells))
    return table


def _strict(result: ChoiceResult) -> tuple[float | None, float | None]:
    return result.on_repeats.strict if result.on_repeats is not None else (None, None)


def _tolerated(result: ChoiceResult) -> tuple[float | None, float | None]:
    return result.on_repeats.tolerated if result.on_repeats is not None else (None, None)


def _told_less(result: ChoiceResult) -> Metrics:
    return result.on_repeats.told_less if result.on_repeats is not None else Metrics()


def confidence_table(results: Sequence[ChoiceResult]) -> Table | None:
    """What methods promised and kept; ``None`` if none promised anything."""
    promised = [each for each in results if each.confidence is not None]
    if not promised:
        return None
    return _table(
        promised,
        [
            _Column("allowed over", lambda each: share(1 - (each.confidence or 0.0))),
            _Column("over", lambda each: share(each.metrics.violations)),
            _Column("perf.", lambda each: share(each.metrics.under_performance)),
            _Column("programs above", lambda each: f"{len(each.above)} of {len(each.programs)}"),
        ],
    )


def curve_table(results: Sequence[ChoiceResult]) -> Table:
    """The score by the number of extra runs."""
    budgets = results[0].curve.budgets
    return _table(results, [_Column(str(each), _at(place)) for place, each in enumerate(budgets)])


def _at(place: int) -> Callable[[ChoiceResult], str]:
    return lambda result: share(result.curve.metrics[place].score)


def tails_table(results: Sequence[ChoiceResult]) -> Table:
    """What is lost at worst: percentiles over the cases under the limit, and the worst programs."""
    return _table(
        results,
        [
            _Column("lost: median", _lost("median")),
            _Column("90 %", _lost("percentile_90")),
            _Column("95 %", _lost("percentile_95")),
            _Column("least under", _least("under_limit_share")),
            _Column("least perf.", _least("under_performance")),
            _Column("least S", _least("score")),
        ],
    )


def _lost(name: str) -> Callable[[ChoiceResult], str]:
    return lambda result: NONE if result.regret is None else share(getattr(result.regret, name))


def _least(name: str) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        found = [getattr(each, name) for each in result.programs.values()]
        return share(min((each for each in found if each is not None), default=None))

    return text


def program_table(result: ChoiceResult) -> Table:
    """The main metrics of one method, a row a program."""
    table = number_table(result.method, list(_METRICS))
    for name, metrics in result.programs.items():
        table.add_row(Text(name), *(Text(write(getattr(metrics, of))) for of, write in _METRICS.values()))
    return table
