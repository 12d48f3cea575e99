"""Relative performance on a terminal: evaluations with their studies, trained models, and forecasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.evaluation.relative import PUBLISHED, WEIGHTINGS, RelativeEvaluation, RelativeResult
from crosscast.evaluation.relative_scores import RelativeMetrics
from crosscast.evaluation.resampling import DRAWS, SHARE, Confidence
from crosscast.predict.relative.artefact import RelativeCard, RelativeForecast
from crosscast.predict.relative.data import NO_SOURCE
from crosscast.predict.warnings import format_names
from crosscast.report.numbers import NONE, factor, percent, plural, three_digits
from crosscast.report.text import console_of_numbers, number_table, print_table
from crosscast.studies.nichols2024 import (
    CAUTION,
    BySource,
    Importances,
    RelativeStudies,
    RelativeStudy,
    Selection,
)
from crosscast.units import format_count, format_seconds

__all__ = [
    "print_relative_evaluation",
    "print_relative_forecasts",
    "print_relative_training",
    "relative_errors_text",
]

_WIDTH = 140
_MARK = "*"
_MOST_FEATURES = 20
_MOST_NAMED = 8
_MOST_TABLES = 12


def print_relative_evaluation(study: RelativeStudy, stream: TextIO) -> None:
    """Print the tables of an evaluation and of its studies, and what they are of."""
    evaluation = study.evaluation
    console = console_of_numbers(stream, _WIDTH)
    console.print(Text(_subject(evaluation), style="bold"), soft_wrap=True)
    console.print(Text(f"devices: {', '.join(evaluation.vectors.devices)}"), soft_wrap=True)
    console.print()
    # Baselines last; of others, and of these, the best first.
    results = sorted(evaluation.results, key=lambda each: (each.baseline, each.metrics.mae))
    console.print(_models(results))
    console.print()
    console.print(_mae(results))
    best = evaluation.best()
    if len(best.per_group) > 1:
        print_table(console, f"{best.model}, by group", _groups(best))
    console.print()
    for line in _legend(evaluation):
        console.print(Text(line), soft_wrap=True)
    if study.studies is not None:
        _print_studies(study.studies, console)


def _subject(evaluation: RelativeEvaluation) -> str:
    counts = evaluation.counts
    return (
        f"{evaluation.label}: relative times of {plural(counts['rows'], 'run')} "
        f"({plural(counts['kernels_at_a_size'], 'kernel')} at a size, {plural(counts['kernels'], 'kernel')}, "
        f"{plural(counts['applications'], 'application')}) with {plural(counts['counters'], 'counter')} of "
        f"{plural(counts['sources'], 'source')}, on {plural(counts['devices'], 'device')}; "
        f"{evaluation.split.name}; seed {evaluation.seed}"
    )


@dataclass(frozen=True)
class _Column:
    """A metric in a table."""

    heading: str
    metric: str
    write: Callable[[float], str]
    interval: bool = True


_COLUMNS = (
    _Column("MAE", "mae", "{:.4f}".format),
    _Column("same order", "same_order", percent),
    _Column("top-1", "top1", percent),
    _Column("mean regret", "regret", "{:.3f}".format),
    _Column("median", "median_regret", "{:.3f}".format, interval=False),
    _Column("typical factor", "typical_factor", factor),
)


def _name(result: RelativeResult) -> Text:
    return Text(f"{result.model} (baseline)" if result.baseline else result.model)


def _models(results: Sequence[RelativeResult]) -> Table:
    table = number_table("model", [column.heading for column in _COLUMNS])
    for result in results:
        table.add_row(
            _name(result), *(_cell(column, result.metrics, result.confidence) for column in _COLUMNS)
        )
    return table


def _mae(results: Sequence[RelativeResult]) -> Table:
    """MAE with each way to weight rows, and in the folds within training."""
    validated = any(each.validation_mae is not None for each in results)
    table = number_table("MAE by what counts the same", [*WEIGHTINGS, *(["validation"] if validated else [])])
    for result in results:
        cells = [f"{result.by_weighting[each].mae:.4f}" for each in WEIGHTINGS]
        if validated:
            cells.append(NONE if result.validation_mae is None else f"{result.validation_mae:.4f}")
        table.add_row(_name(result), *cells)
    return table


def _cell(column: _Column, metrics: RelativeMetrics, confidence: Confidence | None = None) -> Text:
    text = column.write(getattr(metrics, column.metric))
    if confidence is None:
        return Text(text)
    difference = confidence.differences.get(column.metric)
    if difference is not None and difference.better:
        text += _MARK
    interval = confidence.intervals.get(column.metric)
    if column.interval and interval is not None:
        low, high = (column.write(limit).rstrip(" %×") for limit in (interval.low, interval.high))
        text += f" [{low}, {high}]"
    return Text(text)


def _groups(result: RelativeResult) -> Table:
    table = number_table("group", ["rows", *(column.heading for column in _COLUMNS)])
    for name, metrics in result.per_group.items():
        table.add_row(
            Text(name), format_count(metrics.rows), *(_cell(column, metrics) for column in _COLUMNS)
        )
    return table


_WEIGHED = {
    "rows": "All runs count the same",
    "kernels": "All kernels count the same, however many runs they have",
    "applications": "All applications count the same, however many runs they have",
}


def _legend(evaluation: RelativeEvaluation) -> list[str]:
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
    return lines


def _print_studies(studies: RelativeStudies, console: Console) -> None:
    if studies.by_source is not None:
        found = studies.by_source
        heading = f"by source: fitted to and tested on counters of one device, {found.split}"
        print_table(console, heading, _by_source(found))
    for name, evaluation in (("scale", studies.by_scale), ("application", studies.by_application)):
        if evaluation is not None:
            print_table(console, f"by {name}: MAE where it is left out", _by_group(evaluation, name))
    split = studies.importances.split
    print_table(
        console, f"importances of {studies.importances.model}, {split}", _importances(studies.importances)
    )
    console.print(Text(CAUTION), soft_wrap=True)
    print_table(
        console, f"features of the most gain alone, {studies.selection.split}", _selection(studies.selection)
    )


def _by_source(found: BySource) -> Table:
    table = number_table("MAE / same order", found.sources)
    for model, metrics in found.metrics.items():
        table.add_row(Text(model), *(f"{each.mae:.4f} / {percent(each.same_order)}" for each in metrics))
    return table


def _by_group(evaluation: RelativeEvaluation, name: str) -> Table:
    results = evaluation.results
    table = number_table(name, [result.model for result in results])
    for group in results[0].per_group:
        table.add_row(Text(group), *(f"{result.per_group[group].mae:.4f}" for result in results))
    return table


def _importances(found: Importances) -> Table:
    table = number_table("feature", ["average gain", "rise of MAE when shuffled"])
    for each in found.features[:_MOST_FEATURES]:
        table.add_row(Text(each.feature), percent(each.gain), f"{each.rise:+.4f}")
    left = len(found.features) - _MOST_FEATURES
    if left > 0:
        table.add_row(Text(f"and {left} more", style="dim"), "", "")
    return table


def _selection(found: Selection) -> Table:
    table = number_table("features", ["MAE", "same order"])
    for count, each in zip(found.counts, found.metrics, strict=True):
        table.add_row(str(count), f"{each.mae:.4f}", percent(each.same_order))
    return table


def print_relative_training(card: RelativeCard, folder: Path, stream: TextIO) -> None:
    """Print a card: what the model learned from, and how good it is."""
    console = console_of_numbers(stream)
    counters = f"Counters: {format_names(card.counters, _MOST_NAMED)}."
    for line in (f"{folder}: {card.model}, {_trained_on(card)}", counters, ""):
        console.print(Text(line), soft_wrap=True)
    console.print(_scores(card))
    for line in (
        f"Each {_left_out(card)} was left out in turn, and predicted by the model fitted to the others. "
        "Applications weigh the same.",
        "MAE: mean absolute error of times over that on the slowest device. Same order: all devices in their "
        "true order.",
        "Regret: time on the device predicted to be the fastest, over that on the fastest, less 1. "
        "Typical factor: how far ratios of two devices' times are off.",
        *_coverage(card),
        "Exact definitions: docs/relative.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def _left_out(card: RelativeCard) -> str:
    names = {"leave-application-out": "application", "leave-kernel-out": "kernel"}
    return names.get(str(card.errors.get("protocol")), "group")


def _trained_on(card: RelativeCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    sources = [each for each in card.sources if each != NO_SOURCE]
    counted = (
        f"counted on {format_names(sources, _MOST_NAMED)}"
        if sources
        else "with profiles that are of no device"
    )
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('runs', 0)), 'run')} of "
        f"{facts.get('kernels')} kernels ({facts.get('applications')} applications), {counted}, with times "
        f"on {len(card.devices)} devices ({format_names(card.devices, _MOST_NAMED)})."
    )


def _own_scores(card: RelativeCard) -> dict[str, Any]:
    """The model's scores among those of the card; empty if it does not say."""
    own = [each for each in card.errors.get("results", ()) if each.get("model") == card.model]
    return dict(own[0]) if own else {}


def relative_errors_text(card: RelativeCard) -> list[str]:
    """How good the model was on held-out groups, in sentences; none if the card does not say."""
    scores = _own_scores(card)
    if not scores:
        return []
    parts = []
    if scores.get("mae") is not None:
        parts.append(f"mean absolute error {scores['mae']:.3f} of the time on the slowest device")
    if scores.get("same_order") is not None:
        parts.append(f"devices in the right order for {percent(scores['same_order'])}")
    if scores.get("regret") is not None:
        parts.append(f"the device taken needed {percent(scores['regret'])} more time than the fastest")
    return [f"On {_left_out(card)}s that it had not seen: {', '.join(parts)}.", *_coverage(card)]


def _coverage(card: RelativeCard) -> list[str]:
    coverage = _own_scores(card).get("coverage")
    if coverage is None:
        return []
    others = int(card.errors.get("groups", 1)) - 1
    # As many others allow no more than this.
    level = min(float(card.errors.get("level", 0.9)), others / (others + 1))
    return [
        f"{100 * level:.3g} % intervals by the errors on the {others} others held {percent(coverage)} of its "
        "times relative to another device."
    ]


def _scores(card: RelativeCard) -> Table:
    columns: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("MAE", "mae", "{:.3f}".format),
        ("same order", "same_order", percent),
        ("fastest found", "top1", percent),
        ("regret", "regret", percent),
        ("typical factor", "typical_factor", "{:.2f}×".format),
    )
    table = number_table("model", [heading for heading, *_ in columns])
    for result in card.errors.get("results", ()):
        own = result["model"] == card.model
        label = result["model"] if own else f"{result['model']} (baseline)"
        cells = [NONE if result.get(name) is None else write(result[name]) for _, name, write in columns]
        table.add_row(Text(label, style="bold" if own else ""), *cells)
    return table


def print_relative_forecasts(
    forecasts: Sequence[RelativeForecast], card: RelativeCard, stream: TextIO
) -> None:
    """Print forecasts, a table a run or, of many, a line each, and how good the model is."""
    console = console_of_numbers(stream)
    runs = [(forecast, row) for forecast in forecasts for row in range(len(forecast))]
    if len(runs) > _MOST_TABLES:
        console.print(_line_each(runs))
        console.print(
            Text("With all devices: --json, or --application and --kernel for a few."), soft_wrap=True
        )
        console.print()
    for forecast, row in runs if len(runs) <= _MOST_TABLES else ():
        console.print(Text(_run(forecast, row), style="bold"), soft_wrap=True)
        console.print(_devices(forecast, row))
        for line in (*_advice(forecast, row), ""):
            console.print(Text(line), soft_wrap=True)
    for line in (f"{card.model}, {_trained_on(card)}", *relative_errors_text(card)):
        console.print(Text(line), soft_wrap=True)


def _run(forecast: RelativeForecast, row: int) -> str:
    source, time_s = forecast.runs.source[row], forecast.timed_s(row)
    counted = "" if source == NO_SOURCE else f", counted on {source}"
    timed = "" if time_s is None else f", {format_seconds(time_s)} on {forecast.timed_on[row]}"
    return f"{forecast.runs.label(row)}{counted}{timed}"


def _limits(forecast: RelativeForecast, row: int, place: int) -> tuple[float, ...]:
    return tuple(float(each[row, place]) for each in (forecast.centre, forecast.low, forecast.high))


def _devices(forecast: RelativeForecast, row: int) -> Table:
    than = forecast.relative_to or "the slowest"
    interval = f"{100 * forecast.reached[row]:.3g} % interval"
    timed_on = forecast.timed_on[row]
    table = Table(box=None, pad_edge=False)
    table.add_column("device", no_wrap=True)
    table.add_column(f"time over {than}", justify="right", no_wrap=True)
    table.add_column(interval, no_wrap=True)
    table.add_column("speed-up", justify="right", no_wrap=True)
    table.add_column("fastest", justify="right", no_wrap=True)
    if timed_on is not None:
        table.add_column("time", justify="right", no_wrap=True)
        table.add_column(interval, no_wrap=True)
    for rank, place in enumerate(forecast.order[row].tolist()):
        device, (relative, low, high) = forecast.devices[place], _limits(forecast, row, place)
        itself = device == forecast.relative_to
        times: tuple[str, ...] = ()
        if timed_on is not None:
            time_s, least_s, most_s = map(format_seconds, forecast.time_s[row, place].tolist())
            times = (time_s, "measured" if device == timed_on else f"{least_s} to {most_s}")
        table.add_row(
            Text(device, style="" if rank else "bold"),
            three_digits(relative),
            "itself" if itself else f"{three_digits(low)} to {three_digits(high)}",
            factor(1 / relative),
            _probability(forecast.fastest[row, place]),
            *times,
        )
    return table


def _line_each(runs: Sequence[tuple[RelativeForecast, int]]) -> Table:
    """A line for each run: the device to take, and how much time it takes."""
    than = runs[0][0].relative_to or "the slowest"
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "counted on", "take"):
        table.add_column(heading, no_wrap=True)
    for heading in ("fastest", f"time over {than}"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    for forecast, row in runs:
        best, source = int(forecast.order[row, 0]), forecast.runs.source[row]
        relative, low, high = _limits(forecast, row, best)
        table.add_row(
            forecast.runs.label(row),
            NONE if source == NO_SOURCE else source,
            forecast.devices[best],
            _probability(forecast.fastest[row, best]),
            three_digits(relative),
            f"{three_digits(low)} to {three_digits(high)}",
        )
    return table


def _advice(forecast: RelativeForecast, row: int) -> tuple[str, ...]:
    order, fastest = forecast.in_order(row), forecast.fastest[row]
    first, likely = int(forecast.order[row, 0]), int(fastest.argmax())
    doubt = ""
    if fastest[likely] > fastest[first]:
        share = _probability(fastest[likely])
        doubt = f" More often than that, {forecast.devices[likely]} is the fastest ({share})."
    return (
        f"Fastest first: {', '.join(order)}; all in this order with a probability of "
        f"{_probability(forecast.same_order[row])}.",
        f"Take {order[0]}: the fastest with a probability of {_probability(fastest[first])}.{doubt}",
    )


def _probability(share: float) -> str:
    if share < 0.005:
        return "less than 1 %"
    return "more than 99 %" if share > 0.995 else percent(share)
