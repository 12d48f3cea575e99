"""Reports on relative performance: evaluations, trained models, and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crosscast.evaluation.relative.evaluation import PUBLISHED, WEIGHTINGS, RelativeEvaluation, RelativeResult
from crosscast.evaluation.resampling import DRAWS, SHARE
from crosscast.prediction.relative.artefact import RelativeCard, RelativeForecast
from crosscast.prediction.relative.data import NO_SOURCE
from crosscast.prediction.relative.models import BASELINES
from crosscast.prediction.trained import count_in, format_names, level_of, results_of
from crosscast.report.document import Heading, Part, Ranges, Report, Table
from crosscast.report.fields import score_table, scores_of, writer_of
from crosscast.report.figures import ScoredModel, scores_figure
from crosscast.report.numbers import (
    MARK,
    NONE,
    factor,
    level_percent,
    named,
    percent,
    plural,
    probability,
    three_digits,
    times,
)
from crosscast.units import format_count, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 8
_MOST_TABLES = 12
_SCORES = scores_of("mae± same_order± top1± regret± median_regret typical_factor±")
_OF_TRAINING = scores_of("mae same_order top1 regret typical_factor")
_WEIGHED = {
    "rows": "All runs count the same",
    "kernels": "All kernels count the same, however many runs they have",
    "applications": "All applications count the same, however many runs they have",
}


def evaluation_report(evaluation: RelativeEvaluation) -> Report:
    """Make the tables of an evaluation, and the legend."""
    # Models, then baselines, each with the best first.
    results = sorted(evaluation.results, key=lambda result: (result.baseline, result.metrics.mae))
    rows = [([_name(result)], result.metrics, result.confidence) for result in results]
    parts: list[Part] = [
        Heading(_subject(evaluation), 1),
        f"devices: {', '.join(evaluation.vectors.devices)}",
        "",
        score_table(["model"], rows, _SCORES),
        "",
        _by_weighting(results),
    ]
    best = evaluation.best()
    if len(best.per_group) > 1:
        groups = [([name, metrics.rows], metrics, None) for name, metrics in best.per_group.items()]
        parts.append(
            score_table(
                ["group", "rows"],
                groups,
                _SCORES,
                caption=f"{best.model}, by group",
                formats={"rows": format_count},
            )
        )
    return Report([*parts, "", *_legend(evaluation)])


def evaluation_figures(evaluation: RelativeEvaluation) -> dict[str, Figure]:
    """Draw the scores of all models."""
    rows = [
        ScoredModel(result.model, result.baseline, result.metrics, result.confidence.intervals)
        for result in evaluation.results
    ]
    panels = {"mae": "MAE (less is better)", "same_order": "same order, % (more is better)"}
    return {"models": scores_figure(rows, panels, f"{evaluation.label}: {evaluation.split.name}")}


def _subject(evaluation: RelativeEvaluation) -> str:
    counts = evaluation.counts
    return (
        f"{evaluation.label}: relative times of {plural(counts['rows'], 'run')} "
        f"({plural(counts['kernels_at_a_size'], 'kernel')} at a size, {plural(counts['kernels'], 'kernel')}, "
        f"{plural(counts['applications'], 'application')}) with {plural(counts['counters'], 'counter')} of "
        f"{plural(counts['sources'], 'source')}, on {plural(counts['devices'], 'device')}; "
        f"{evaluation.split.name}; seed {evaluation.seed}"
    )


def _name(result: RelativeResult) -> str:
    return named(result.model, result.baseline)


def _by_weighting(results: Sequence[RelativeResult]) -> Table:
    """Make the table of the MAE with each weighting, and in the folds within training."""
    validated = any(result.validation_mae is not None for result in results)
    headings = ["MAE by what counts the same", *WEIGHTINGS, *(["validation"] if validated else [])]
    rows = [
        [
            _name(result),
            *(result.by_weighting[weighting].mae for weighting in WEIGHTINGS),
            result.validation_mae,
        ]
        for result in results
    ]
    return Table(
        headings, [row[: len(headings)] for row in rows], formats=dict.fromkeys(headings, writer_of("mae"))
    )


def _legend(evaluation: RelativeEvaluation) -> list[str]:
    lines = [
        f"{_WEIGHED[evaluation.results[0].weighting]}, except where another is named.",
        "A vector is a run's time on each device over that on the slowest: less is better. MAE: mean error "
        "of its entries. Same order: runs whose devices are all ranked as measured. Fastest: runs whose "
        "predicted fastest device is the fastest. Regret: time there over the least, less 1; mean, median. "
        "Typical factor: by how much the ratio of two devices' times is off.",
        f"In brackets: {100 * SHARE:g} % of {format_count(DRAWS)} bootstrap draws of groups. {MARK} better "
        "than the best baseline, where the bootstrap of the difference excludes 0. Exact definitions: "
        "docs/evaluation.md.",
    ]
    repeated = percent(evaluation.repeated)
    if evaluation.split.name == PUBLISHED:
        lines.insert(
            0,
            "As published: runs are held out at random (10 %, the rest in 5 folds for the validation MAE). "
            f"{repeated} of the runs in the test have a run of the same kernel at the same size among those "
            "that were learned from, so that this is what a look-up table can do too: see "
            "leave-application-out for kernels that are new.",
        )
    elif evaluation.split.name == "leave-machine-out" and evaluation.repeated > 0:
        lines.insert(
            0,
            f"{repeated} of the held-out runs are of a kernel at a size that was learned from with the "
            "counters of other devices: what is new is the device that counts, not the work.",
        )
    return lines


def training_report(card: RelativeCard, folder: Path) -> Report:
    """Describe a model's training data and its errors."""
    results = results_of(card, _RelativeScores)
    rows = [([named(scores.model, scores.model != card.model)], raw, None) for scores, raw in results]
    bold = [number for number, (scores, _) in enumerate(results) if scores.model == card.model]
    return Report(
        [
            f"{folder}: {card.model}, {trained_on(card)}",
            f"Counters: {format_names(card.counters, _MOST_NAMED)}.",
            "",
            score_table(["model"], rows, _OF_TRAINING, bold=bold),
            f"Each {_left_out(card)} was left out in turn, and predicted by the model fitted to the others. "
            "Applications weigh the same.",
            "MAE: mean absolute error of times over that on the slowest device. Same order: all devices in "
            "their true order.",
            "Regret: time on the device predicted to be the fastest, over that on the fastest, less 1. "
            "Typical factor: how far ratios of two devices' times are off.",
            *_coverage(card),
            "Exact definitions: docs/evaluation.md.",
        ]
    )


def _left_out(card: RelativeCard) -> str:
    names = {"leave-application-out": "application", "leave-kernel-out": "kernel"}
    return names.get(str(card.errors.get("protocol")), "group")


def trained_on(card: RelativeCard) -> str:
    """Sentence about a model's training data, without its subject."""
    facts = card.training
    sources = [source for source in card.sources if source != NO_SOURCE]
    counted = (
        f"counted on {format_names(sources, _MOST_NAMED)}"
        if sources
        else "with architecture-independent profiles"
    )
    return (
        f"trained on {facts.get('dataset')}: {plural(count_in(facts, 'runs'), 'run')} of "
        f"{facts.get('kernels')} kernels ({facts.get('applications')} applications), {counted}, with times "
        f"on {len(card.devices)} devices ({format_names(card.devices, _MOST_NAMED)})."
    )


class _RelativeScores(msgspec.Struct, frozen=True):
    """Scores of a model on held-out groups, as a card stores them; ``None`` where not known."""

    model: str
    mae: float | None = None
    same_order: float | None = None
    regret: float | None = None
    coverage: float | None = None


def _model_scores(card: RelativeCard) -> _RelativeScores | None:
    """Scores of the card's model; ``None`` if the card has none."""
    return next(
        (scores for scores, _ in results_of(card, _RelativeScores) if scores.model == card.model), None
    )


def held_out_errors(card: RelativeCard) -> list[str]:
    """Sentences about the model's errors on held-out groups; none if the card has none."""
    scores = _model_scores(card)
    if scores is None:
        return []
    parts = []
    if scores.mae is not None:
        means = [each.mae for each, _ in results_of(card, _RelativeScores) if each.model in BASELINES]
        least = min((mae for mae in means if mae is not None), default=None)
        by_means = "" if least is None else f" (by means alone {least:.3f})"
        parts.append(f"mean absolute error {scores.mae:.3f} of the time on the slowest device{by_means}")
    if scores.same_order is not None:
        parts.append(f"devices in the right order for {percent(scores.same_order)}")
    if scores.regret is not None:
        parts.append(f"the recommended device took {percent(scores.regret)} more time than the fastest")
    weighting = f", {card.errors['weights']} weighing the same" if "weights" in card.errors else ""
    return [f"On held-out {_left_out(card)}s{weighting}: {', '.join(parts)}.", *_coverage(card)]


def _coverage(card: RelativeCard) -> list[str]:
    scores = _model_scores(card)
    if scores is None or scores.coverage is None:
        return []
    others = (count_in(card.errors, "groups") or 1) - 1
    # With so few groups no higher level is possible.
    level = min(level_of(card), others / (others + 1))
    return [
        f"Coverage of {level_percent(level)} intervals by the errors on the {others} others: "
        f"{percent(scores.coverage)} of "
        "the times relative to another device."
    ]


def forecasts_report(forecasts: Sequence[RelativeForecast], card: RelativeCard) -> Report:
    """Make a table of each predicted run or, for many runs, a line of each, and describe the model."""
    runs = [(forecast, row) for forecast in forecasts for row in range(len(forecast))]
    parts: list[Part] = []
    if len(runs) > _MOST_TABLES:
        parts += [_line_each(runs), "With all devices: --json, or --application and --kernel for a few.", ""]
    else:
        for forecast, row in runs:
            parts += [_devices(forecast, row), *_advice(forecast, row), ""]
    return Report(
        [*parts, f"{card.model}, {trained_on(card)}", *held_out_errors(card)],
        "Predicted relative times",
    )


def _run(forecast: RelativeForecast, row: int) -> str:
    source, time_s = forecast.runs.source[row], forecast.timed_s(row)
    counted = "" if source == NO_SOURCE else f", counted on {source}"
    timed = "" if time_s is None else f", {format_seconds(time_s)} on {forecast.timed_on[row]}"
    return f"{forecast.runs.label(row)}{counted}{timed}"


def _between(forecast: RelativeForecast, row: int, column: int) -> str:
    if forecast.devices[column] == forecast.relative_to:
        return "itself"
    low, high = float(forecast.low[row, column]), float(forecast.high[row, column])
    return f"{three_digits(low)} to {three_digits(high)}"


def _devices(forecast: RelativeForecast, row: int) -> Table:
    interval = f"{level_percent(forecast.reached[row])} interval"
    timed_on = forecast.timed_on[row]
    rows: list[list[object]] = []
    for column in forecast.order[row].tolist():
        relative = float(forecast.centre[row, column])
        cells: list[object] = [forecast.devices[column], relative, _between(forecast, row, column)]
        cells += [1 / relative, float(forecast.fastest[row, column])]
        if timed_on is not None:
            time_s, low_s, high_s = forecast.time_s[row, column].tolist()
            cells += [time_s, "measured" if cells[0] == timed_on else times(low_s, high_s)]
        rows.append(cells)
    over = f"time over {forecast.relative_to or 'the slowest'}"
    order = forecast.order[row]
    ranges = [each[row, order].tolist() for each in (forecast.low, forecast.centre, forecast.high)]
    return Table(
        ["device", over, interval, "speed-up", "fastest", *([] if timed_on is None else ["time", interval])],
        rows,
        _run(forecast, row),
        {over: three_digits, "speed-up": factor, "fastest": probability, "time": format_seconds},
        words=(0, 2, 6),
        bold=(0,),
        ranges=Ranges(list(zip(*ranges, strict=True)), three_digits, over),
    )


def _line_each(runs: Sequence[tuple[RelativeForecast, int]]) -> Table:
    """Make a table with the recommended device of each run, and its time."""
    rows = []
    for forecast, row in runs:
        best, source = int(forecast.order[row, 0]), forecast.runs.source[row]
        rows.append(
            [
                forecast.runs.label(row),
                NONE if source == NO_SOURCE else source,
                forecast.devices[best],
                probability(forecast.fastest[row, best]),
                three_digits(float(forecast.centre[row, best])),
                _between(forecast, row, best),
            ]
        )
    reference = runs[0][0].relative_to or "the slowest"
    headings = ["run", "counted on", "recommended", "fastest", f"time over {reference}", "interval"]
    return Table(headings, rows, words=(0, 1, 2, 5))


def _advice(forecast: RelativeForecast, row: int) -> tuple[str, ...]:
    order, fastest = forecast.in_order(row), forecast.fastest[row]
    first, likely = int(forecast.order[row, 0]), int(fastest.argmax())
    doubt = ""
    if fastest[likely] > fastest[first]:
        doubt = f" {forecast.devices[likely]} is more likely to be ({probability(fastest[likely])})."
    return (
        f"Fastest first: {', '.join(order)} (probability of this order: "
        f"{probability(forecast.same_order[row])}).",
        f"Recommended: {order[0]}, the fastest with a probability of {probability(fastest[first])}.{doubt}",
    )
