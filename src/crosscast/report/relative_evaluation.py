"""An evaluation of models of relative performance on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.evaluation.confidence import DRAWS, SHARE, Confidence
from crosscast.evaluation.relative import PUBLISHED, WEIGHTINGS, RelativeMetrics, RelativeResult
from crosscast.report.console import console_of_numbers
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import NONE, factor, percent, plural
from crosscast.report.relative_studies import print_relative_studies
from crosscast.studies.nichols2024 import RelativeStudy
from crosscast.units import format_count

__all__ = ["print_relative_evaluation"]

_WIDTH = 140
_MARK = "*"


def print_relative_evaluation(study: RelativeStudy, stream: TextIO) -> None:
    """Print the tables of an evaluation, and what they are of.

    Parameters
    ----------
    study
        The evaluation, with studies if there are any.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream, _WIDTH)
    console.print(Text(_subject(study), style="bold"), soft_wrap=True)
    console.print(Text(f"devices: {', '.join(study.evaluation.vectors.devices)}"), soft_wrap=True)
    console.print()
    console.print(_models(study))
    console.print()
    console.print(_mae(study))
    best = study.evaluation.best()
    if len(best.per_group) > 1:
        print_table(console, f"{best.model}, by group", _by_group(best))
    console.print()
    _print_legend(console, study)
    if study.studies is not None:
        print_relative_studies(study.studies, console)


def _subject(study: RelativeStudy) -> str:
    counts = study.counts
    return (
        f"{study.label}: relative times of {plural(counts['rows'], 'run')} "
        f"({plural(counts['kernels_at_a_size'], 'kernel')} at a size, {plural(counts['kernels'], 'kernel')}, "
        f"{plural(counts['applications'], 'application')}) with {plural(counts['counters'], 'counter')} of "
        f"{plural(counts['sources'], 'source')}, on {plural(counts['devices'], 'device')}; "
        f"{study.evaluation.split.name}; seed {study.evaluation.seed}"
    )


@dataclass(frozen=True)
class _Column:
    """A metric in a table: heading, name, how it is written, and whether its interval comes with it."""

    heading: str
    metric: str
    write: Callable[[float], str]
    interval: bool = False


def _error(value: float) -> str:
    return f"{value:.4f}"


def _share(value: float) -> str:
    return percent(value)


def _regret(value: float) -> str:
    return f"{value:.3f}"


_COLUMNS = (
    _Column("MAE", "mae", _error, interval=True),
    _Column("same order", "same_order", _share, interval=True),
    _Column("top-1", "top1", _share, interval=True),
    _Column("mean regret", "regret", _regret, interval=True),
    _Column("median", "median_regret", _regret),
    _Column("typical factor", "typical_factor", factor, interval=True),
)


def _in_order(study: RelativeStudy) -> list[RelativeResult]:
    """Baselines last; of others, and of these, the best first."""
    return sorted(study.evaluation.results, key=lambda each: (each.baseline, each.metrics.mae))


def _name(result: RelativeResult) -> Text:
    return Text(f"{result.model} (baseline)" if result.baseline else result.model)


def _models(study: RelativeStudy) -> Table:
    table = number_table("model", [column.heading for column in _COLUMNS])
    for result in _in_order(study):
        table.add_row(_name(result), *(_cell(column, result.metrics, result.sure) for column in _COLUMNS))
    return table


def _mae(study: RelativeStudy) -> Table:
    """MAE with each way to weight rows, and in the folds within training."""
    results = _in_order(study)
    validated = any(each.validation_mae is not None for each in results)
    table = number_table("MAE by what counts the same", [*WEIGHTINGS, *(["validation"] if validated else [])])
    for result in results:
        cells = [_error(result.by_weighting[each].mae) for each in WEIGHTINGS]
        if validated:
            cells.append(NONE if result.validation_mae is None else _error(result.validation_mae))
        table.add_row(_name(result), *cells)
    return table


def _cell(column: _Column, metrics: RelativeMetrics, sure: Confidence | None) -> Text:
    text = column.write(getattr(metrics, column.metric))
    if sure is None:
        return Text(text)
    difference = sure.differences.get(column.metric)
    if difference is not None and difference.better:
        text += _MARK
    interval = sure.intervals.get(column.metric)
    if column.interval and interval is not None:
        low, high = (column.write(limit).rstrip(" %×") for limit in (interval.low, interval.high))
        text += f" [{low}, {high}]"
    return Text(text)


def _by_group(result: RelativeResult) -> Table:
    table = number_table("group", ["rows", *(column.heading for column in _COLUMNS)])
    for name, metrics in result.per_group.items():
        table.add_row(
            Text(name),
            format_count(metrics.rows),
            *(_cell(column, metrics, None) for column in _COLUMNS),
        )
    return table


_WEIGHED = {
    "rows": "All runs count the same",
    "kernels": "All kernels count the same, however many runs they have",
    "applications": "All applications count the same, however many runs they have",
}


def _print_legend(console: Console, study: RelativeStudy) -> None:
    evaluation = study.evaluation
    lines = [
        f"{_WEIGHED[evaluation.results[0].weighting]}, except where another is named.",
        "A vector is a run's time on each device over that on the slowest: less is better. MAE: mean error "
        "of its entries. Same order: runs whose devices are all ranked as measured. Top-1: runs whose "
        "predicted fastest device is the fastest. Regret: time there over the least, less 1; mean, median. "
        "Typical factor: by how much the ratio of two devices' times is off.",
        f"In brackets: {100 * SHARE:g} % of {format_count(DRAWS)} bootstrap draws of groups. {_MARK} better "
        "than the best baseline, where the bootstrap of the difference excludes 0. Exact definitions: "
        "docs/relative-evaluation.md.",
    ]
    if evaluation.split.name == PUBLISHED:
        lines.insert(
            0,
            "As published: runs are held out at random (10 %, the rest in 5 folds for the validation MAE). "
            f"{percent(evaluation.repeated)} of the runs in the test have a run of the same kernel at the "
            "same size among those that were learned from, so that this is what a look-up table can do too: "
            "see leave-application-out for kernels that are new.",
        )
    elif evaluation.split.name == "leave-machine-out" and evaluation.repeated > 0:
        lines.insert(
            0,
            f"{percent(evaluation.repeated)} of the held-out runs are of a kernel at a size that was learned "
            "from with the counters of other devices: what is new is the device that counts, not the work.",
        )
    for line in lines:
        console.print(Text(line), soft_wrap=True)
