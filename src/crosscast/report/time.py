"""Models of run time on a terminal: what one was trained on, and evaluations with all scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.evaluation.resampling import DRAWS, SHARE, Confidence
from crosscast.evaluation.time import Result, TimeEvaluation
from crosscast.evaluation.time_scores import HIGHER_IS_BETTER, Scores
from crosscast.predict.time.artefact import TimeCard
from crosscast.predict.time.models import BASELINES
from crosscast.report.numbers import NONE, factor, percent
from crosscast.report.prediction import trained_on
from crosscast.report.text import console_of_numbers, number_table
from crosscast.units import format_count

_WIDTH = 140
_MARK = "*"


def print_evaluation(study: TimeEvaluation, stream: TextIO) -> None:
    """Print the tables of an evaluation, and what they are of."""
    console = console_of_numbers(stream, _WIDTH)
    console.print(Text(_subject(study), style="bold"), soft_wrap=True)
    for probes in dict.fromkeys(result.probes for result in study.results):
        console.print()
        console.print(Text(_told(study, probes), style="bold"))
        for heading, columns in _TABLES:
            console.print()
            console.print(_evaluation_table(study, probes, heading, columns))
        best = study.best(probes)
        if best is not None:
            console.print()
            console.print(Text(f"{best.model}, by application", style="bold"))
            console.print(_by_application(best))
    console.print()
    for line in _legend(study):
        console.print(Text(line), soft_wrap=True)


def _subject(study: TimeEvaluation) -> str:
    counts = study.counts
    return (
        f"{study.label}: {format_count(counts['cells'])} cells of {counts['kernels_at_a_size']} kernels at a "
        f"size ({counts['kernels']} kernels, {counts['applications']} applications) on {counts['devices']} "
        f"devices; {study.folds}; seed {study.seed}"
    )


def _told(study: TimeEvaluation, probes: int) -> str:
    of = study.counts["devices"]
    if study.folds == "leave-device-out":
        return f"Each device unseen, with each kernel's times on the {probes} other devices known"
    if probes == 0:
        return "No time of a held-out kernel known"
    sets = len(study.results[0].outcomes)
    for result in study.results:
        if result.probes == probes:
            sets = len(result.outcomes)
    which = "1 device" if probes == 1 else f"{probes} devices"
    return f"Each held-out kernel measured on {which} of {of}, the others predicted: mean over {sets} choices"


@dataclass(frozen=True)
class _Column:
    """A score in a table: heading, name, how it is written, and whether its interval comes with it."""

    heading: str
    score: str
    write: Callable[[float], str]
    interval: bool = False


def _number(value: float) -> str:
    return f"{value:.2f}"


_TABLES = (
    (
        "errors",
        (
            _Column("RMSE of ln t", "rmse_log", _number, interval=True),
            _Column("by appl.", "rmse_log_by_application", _number),
            _Column("median APE", "median_ape", percent, interval=True),
            _Column("by application", "median_ape_by_application", percent, interval=True),
            _Column("MAPE", "mape", percent),
        ),
    ),
    (
        "choice of a device",
        (
            _Column("mean slowdown", "slowdown_mean", factor, interval=True),
            _Column("geometric", "slowdown_geomean", factor),
            _Column("fastest", "top1", percent),
            _Column("within 10 %", "within_10", percent),
            _Column("Kendall's tau", "kendall_tau", _number),
        ),
    ),
    (
        "intervals",
        (
            _Column("coverage", "coverage", percent, interval=True),
            _Column("over cells", "coverage_over_cells", percent),
            _Column("worst application", "coverage_worst_application", percent),
            _Column("width", "width", factor),
            _Column("interval score", "interval_score", _number),
        ),
    ),
)


def _evaluation_table(study: TimeEvaluation, probes: int, heading: str, columns: Sequence[_Column]) -> Table:
    table = number_table(heading, [column.heading for column in columns])
    rows = [
        (result, confidence)
        for result, confidence in zip(study.results, study.confidences, strict=True)
        if result.probes == probes
    ]
    # Those that cannot be scored come last.
    ranked = sorted(rows, key=lambda row: (row[0].scores.rmse_log is None, row[0].scores.rmse_log or 0.0))
    marks = {column.score: _best(ranked, column.score) for column in columns}
    for baseline in (False, True):
        for result, confidence in ranked:
            if (result.model in BASELINES) == baseline:
                cells = [
                    _cell(column, result.scores, confidence, marks[column.score] == result.model)
                    for column in columns
                ]
                name = f"{result.model} (baseline)" if baseline else result.model
                table.add_row(Text(name), *cells)
    for name, scores in _references(study, probes):
        if any(getattr(scores, column.score) is not None for column in columns):
            table.add_row(Text(name, style="dim"), *(_cell(column, scores, None) for column in columns))
    return table


def _references(study: TimeEvaluation, probes: int) -> list[tuple[str, Scores]]:
    """What needs no model: the same device always, where no time is known, and one run of each cell."""
    rows = [("noise floor (a run itself)", study.noise.scores)]
    if study.always is not None and study.folds != "leave-device-out" and probes == 0:
        device, result = study.always
        rows.insert(0, (f"always {device}", result.scores))
    return rows


def _best(rows: Sequence[tuple[Result, Confidence]], score: str) -> str | None:
    """The model that is best in a score, if it is better than the best baseline beyond doubt."""
    sign = 1 if score in HIGHER_IS_BETTER else -1
    there = [
        (sign * difference.value, result.model, difference.better)
        for result, confidence in rows
        if (difference := confidence.differences.get(score)) is not None
    ]
    # All differences of a score are from the same baseline.
    _, model, better = max(there, default=(0.0, None, False))
    return model if better else None


def _cell(column: _Column, scores: Scores, confidence: Confidence | None, marked: bool = False) -> Text:
    value = getattr(scores, column.score)
    if value is None:
        return Text(NONE, style="dim" if confidence is None else "")
    text = column.write(value) + (_MARK if marked else "")
    interval = None if confidence is None else confidence.intervals.get(column.score)
    if column.interval and interval is not None:
        low, high = (column.write(limit).rstrip(" %×") for limit in (interval.low, interval.high))
        text += f" [{low}, {high}]"
    return Text(text, style="bold" if marked else "dim" if confidence is None else "")


_APPLICATION_COLUMNS = (
    _Column("RMSE", "rmse_log", _number),
    _Column("med. APE", "median_ape", percent),
    _Column("MAPE", "mape", percent),
    _Column("slowdown", "slowdown_mean", factor),
    _Column("fastest", "top1", percent),
    _Column("tau", "kendall_tau", _number),
    _Column("coverage", "coverage", percent),
    _Column("width", "width", factor),
)


def _by_application(result: Result) -> Table:
    headings = (column.heading for column in _APPLICATION_COLUMNS)
    table = number_table("application", ["kernels", *headings])
    table.add_column("without it", justify="right", no_wrap=True)
    outcome = result.outcomes[0]
    rows = {
        name: {
            row for row, each in zip(outcome.rows.tolist(), outcome.application, strict=True) if each == name
        }
        for name in result.names
    }
    for name, scores in result.applications.items():
        others = result.without[name].slowdown_mean
        table.add_row(
            Text(name),
            format_count(len(rows[name])),
            *(_cell(column, scores, None) for column in _APPLICATION_COLUMNS),
            factor(others),
        )
    return table


def _legend(study: TimeEvaluation) -> list[str]:
    level = f"{100 * study.level:g} %"
    return [
        "Models are fitted, tuned and chosen without what is held out. APE: abs(predicted / measured - 1) of "
        "a time; by application: mean over applications.",
        "Slowdown: measured time on the device that is chosen over that on the fastest. Intervals are to "
        f"hold {level} of the times; width: upper over lower limit, median.",
        "Kernels are counted at each size; without it: mean slowdown over the other applications.",
        f"In brackets: {100 * SHARE:g} % of {format_count(DRAWS)} bootstrap draws of the applications. "
        f"{_MARK} the best model, where the bootstrap of its difference from the best baseline excludes 0.",
        "Noise floor: one run of each cell as the forecast of its median. Always one device: the one that is "
        "best afterwards. Exact definitions: docs/evaluation.md.",
    ]


_COLUMNS = (
    ("RMSE", "rmse_log", "{:.2f}", 1),
    ("med. APE", "median_ape", "{:.0f} %", 100),
    ("by appl.", "median_ape_by_application", "{:.0f} %", 100),
    ("slowdown", "slowdown_mean", "{:.2f}×", 1),
    ("coverage", "coverage", "{:.0f} %", 100),
    ("worst", "coverage_worst_application", "{:.0f} %", 100),
)


def print_training(card: TimeCard, folder: Path, stream: TextIO) -> None:
    """Print a card."""
    console = console_of_numbers(stream)
    console.print(Text(f"{folder}: {card.model}, {trained_on(card)}"), soft_wrap=True)
    console.print()
    console.print(_training_table(card))
    level = 100 * card.errors.get("level", 0.9)
    for line in (
        "Each application was left out in turn, and predicted by the model fitted to the others. 0, 1, 2: "
        "devices on which its kernels were measured before.",
        "RMSE: of the logarithm of the time. APE: median error of a time, over all cells and as a mean over "
        "applications.",
        "Slowdown: time on the device taken over that on the fastest, mean over kernels. Coverage: share of "
        f"an application's times within {level:g} % intervals, mean over applications, and the worst's.",
        "With intervals and by application: card.json. Exact definitions: docs/evaluation.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def _training_table(card: TimeCard) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("probes", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for heading, *_ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    results = card.errors.get("results", ())
    for probes in sorted({result["probes"] for result in results}):
        for result in results:
            if result["probes"] == probes:
                name = result["model"]
                style = "bold" if name == card.model else ""
                label = name if name == card.model else f"{name} (baseline)"
                table.add_row(str(probes), Text(label, style=style), *_cells(result))
    floor = card.errors.get("noise_floor")
    if floor is not None:
        table.add_row("", Text("noise floor (a run itself)", style="dim"), *_cells(floor))
    return table


def _cells(result: Mapping[str, Any]) -> list[str]:
    found = [(result.get(name), form, scale) for _, name, form, scale in _COLUMNS]
    return ["—" if value is None else form.format(value * scale) for value, form, scale in found]
