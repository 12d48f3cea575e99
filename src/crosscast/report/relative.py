"""Relative performance: evaluations, trained models, and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crosscast.data.fields import decode
from crosscast.evaluation.relative.evaluation import PUBLISHED, WEIGHTINGS, RelativeEvaluation, RelativeResult
from crosscast.evaluation.resampling import DRAWS, SHARE
from crosscast.prediction.relative.artefact import RelativeCard, RelativeForecast
from crosscast.prediction.relative.data import NO_SOURCE
from crosscast.prediction.trained import count_in, level_of, results_of
from crosscast.prediction.warnings import format_names
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
    """The tables of an evaluation, and what they are of."""
    # Baselines last; of others, and of these, the best first.
    results = sorted(evaluation.results, key=lambda each: (each.baseline, each.metrics.mae))
    rows = [([_name(each)], each.metrics, each.confidence) for each in results]
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
    """The models beside each other."""
    rows = [
        ScoredModel(each.model, each.baseline, each.metrics, each.confidence.intervals)
        for each in evaluation.results
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
    """MAE with each way to weight rows, and in the folds within training."""
    validated = any(each.validation_mae is not None for each in results)
    headings = ["MAE by what counts the same", *WEIGHTINGS, *(["validation"] if validated else [])]
    rows = [
        [_name(result), *(result.by_weighting[each].mae for each in WEIGHTINGS), result.validation_mae]
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
    """What a model learned from, and how good it is."""
    results = _results(card)
    rows = [([named(of.model, of.model != card.model)], each, None) for of, each in results]
    own = [place for place, (of, _) in enumerate(results) if of.model == card.model]
    return Report(
        [
            f"{folder}: {card.model}, {trained_on(card)}",
            f"Counters: {format_names(card.counters, _MOST_NAMED)}.",
            "",
            score_table(["model"], rows, _OF_TRAINING, bold=own),
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
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    sources = [each for each in card.sources if each != NO_SOURCE]
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
    """Scores of a model on held-out groups, as a card has them; ``None`` where not known."""

    model: str
    mae: float | None = None
    same_order: float | None = None
    regret: float | None = None
    coverage: float | None = None


def _results(card: RelativeCard) -> list[tuple[_RelativeScores, object]]:
    """Scores of each model of the card, and all that the card says of it."""
    return [(decode(_RelativeScores, each, "errors.results"), each) for each in results_of(card)]


def _own_scores(card: RelativeCard) -> _RelativeScores | None:
    """The model's scores among those of the card; ``None`` if it does not say."""
    return next((of for of, _ in _results(card) if of.model == card.model), None)


def held_out_errors(card: RelativeCard) -> list[str]:
    """How good the model was on held-out groups, in sentences; none if the card does not say."""
    scores = _own_scores(card)
    if scores is None:
        return []
    parts = []
    if scores.mae is not None:
        parts.append(f"mean absolute error {scores.mae:.3f} of the time on the slowest device")
    if scores.same_order is not None:
        parts.append(f"devices in the right order for {percent(scores.same_order)}")
    if scores.regret is not None:
        parts.append(f"the recommended device took {percent(scores.regret)} more time than the fastest")
    weighing = f", {card.errors['weights']} weighing the same" if "weights" in card.errors else ""
    return [f"On held-out {_left_out(card)}s{weighing}: {', '.join(parts)}.", *_coverage(card)]


def _coverage(card: RelativeCard) -> list[str]:
    scores = _own_scores(card)
    if scores is None or scores.coverage is None:
        return []
    others = (count_in(card.errors, "groups") or 1) - 1
    # As many others allow no more than this.
    level = min(level_of(card), others / (others + 1))
    return [
        f"Coverage of {level_percent(level)} intervals by the errors on the {others} others: "
        f"{percent(scores.coverage)} of "
        "the times relative to another device."
    ]


def forecasts_report(forecasts: Sequence[RelativeForecast], card: RelativeCard) -> Report:
    """Predictions, a table a run or, of many, a line each, and how good the model is."""
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


def _between(forecast: RelativeForecast, row: int, place: int) -> str:
    if forecast.devices[place] == forecast.relative_to:
        return "itself"
    return (
        f"{three_digits(float(forecast.low[row, place]))} to {three_digits(float(forecast.high[row, place]))}"
    )


def _devices(forecast: RelativeForecast, row: int) -> Table:
    interval = f"{level_percent(forecast.reached[row])} interval"
    timed_on = forecast.timed_on[row]
    rows: list[list[object]] = []
    for place in forecast.order[row].tolist():
        relative = float(forecast.centre[row, place])
        cells: list[object] = [forecast.devices[place], relative, _between(forecast, row, place)]
        cells += [1 / relative, float(forecast.fastest[row, place])]
        if timed_on is not None:
            time_s, low_s, high_s = forecast.time_s[row, place].tolist()
            cells += [time_s, "measured" if cells[0] == timed_on else times(low_s, high_s)]
        rows.append(cells)
    over = f"time over {forecast.relative_to or 'the slowest'}"
    drawn = [
        (
            float(forecast.low[row, place]),
            float(forecast.centre[row, place]),
            float(forecast.high[row, place]),
        )
        for place in forecast.order[row].tolist()
    ]
    return Table(
        ["device", over, interval, "speed-up", "fastest", *([] if timed_on is None else ["time", interval])],
        rows,
        _run(forecast, row),
        {over: three_digits, "speed-up": factor, "fastest": probability, "time": format_seconds},
        words=(0, 2, 6),
        bold=(0,),
        ranges=Ranges(drawn, three_digits, over),
    )


def _line_each(runs: Sequence[tuple[RelativeForecast, int]]) -> Table:
    """A line for each run: the recommended device, and how much time it takes."""
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
    than = runs[0][0].relative_to or "the slowest"
    headings = ["run", "counted on", "recommended", "fastest", f"time over {than}", "interval"]
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
