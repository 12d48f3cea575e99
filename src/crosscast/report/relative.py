"""Reports on relative performance: evaluations, trained models, and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast.evaluation.relative.evaluation import PUBLISHED, WEIGHTINGS, RelativeEvaluation, RelativeResult
from crosscast.prediction.relative import NO_SOURCE
from crosscast.prediction.relative.artefact import RelativeCard, RelativeForecast, RelativeRun
from crosscast.prediction.relative.models import BASELINES
from crosscast.prediction.trained import count_in, format_names, level_of
from crosscast.report.cards import held_out_scores, held_out_sentence, held_out_table
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import (
    Column,
    between,
    bootstrap_sentence,
    explained,
    level_percent,
    named,
    percent,
    plural,
    probability,
    score_table,
    scores_of,
    table_of,
    three_digits,
    times,
)
from crosscast.report.figures import ScoredModel, scores_figure
from crosscast.units import format_count, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 8
_MOST_TABLES = 12
_SCORES = scores_of("mae± same_order± top1± regret± median_regret typical_factor±")
_OF_TRAINING = scores_of("mae same_order top1 regret typical_factor coverage")
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
    columns: dict[str, Column[RelativeResult]] = {"MAE by what counts the same": _name}
    columns |= {weighting: f"by_weighting.{weighting}.mae" for weighting in WEIGHTINGS}
    if any(result.validation_mae is not None for result in results):
        columns["validation"] = "validation_mae"
    return table_of(results, columns)


def _legend(evaluation: RelativeEvaluation) -> list[str]:
    lines = [
        f"{_WEIGHED[evaluation.results[0].weighting]}, except where another is named.",
        "A vector is a run's time on each device over that on the slowest: less is better.",
        explained(_SCORES),
        f"{bootstrap_sentence('groups')} Exact definitions: docs/evaluation.md.",
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
    level, others = _reached(card)
    return Report(
        [
            f"{folder}: {card.model}, {trained_on(card)}",
            f"Counters: {format_names(card.counters, _MOST_NAMED)}.",
            "",
            held_out_table(card, _OF_TRAINING),
            f"Each {_left_out(card)} was left out in turn, and predicted by the model fitted to the others. "
            "Applications weigh the same.",
            explained(_OF_TRAINING, level),
            f"Intervals are by the errors on the {others} others.",
            "Exact definitions: docs/evaluation.md.",
        ]
    )


def _left_out(card: RelativeCard) -> str:
    names = {"leave-application-out": "application", "leave-kernel-out": "kernel"}
    return names.get(str(card.errors.get("folds")), "group")


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


def held_out_errors(card: RelativeCard) -> list[str]:
    """Sentence about the model's errors on held-out groups; none if the card has none."""
    scores = held_out_scores(card)
    of_model = [each for each in scores if each.model == card.model]
    means = [each.mae for each in scores if each.model in BASELINES and each.mae is not None]
    weighting = f", {card.errors['weights']} weighing the same" if "weights" in card.errors else ""
    return held_out_sentence(
        card,
        {"": of_model[0]} if of_model else {},
        "mae same_order regret coverage",
        groups=f"{_left_out(card)}s{weighting}",
        level=_reached(card)[0],
        beside=f"by means alone {min(means):.3f}" if means else "",
    )


def _reached(card: RelativeCard) -> tuple[float, int]:
    """Level of the intervals, and number of the other groups by whose errors they are made."""
    others = (count_in(card.errors, "groups") or 1) - 1
    # With so few groups no higher level is possible.
    return min(level_of(card), others / (others + 1)), others


def forecasts_report(forecasts: Sequence[RelativeForecast], card: RelativeCard) -> Report:
    """Make a table of each predicted run or, for many runs, a line of each, and describe the model."""
    runs = [run for forecast in forecasts for run in forecast]
    parts: list[Part] = []
    if len(runs) > _MOST_TABLES:
        parts += [_line_each(runs), "With all devices: --json, or --application and --kernel for a few.", ""]
    else:
        for run in runs:
            parts += [_devices(run), *_advice(run.forecast, run.row), ""]
    return Report(
        [*parts, f"{card.model}, {trained_on(card)}", *held_out_errors(card)],
        "Predicted relative times",
    )


def _columns(forecast: RelativeForecast, interval: str) -> dict[str, Column[Mapping[str, Any]]]:
    """Columns of the time over that on another device."""
    return {
        f"time over {forecast.relative_to or 'the slowest'}": "relative",
        interval: lambda row: (
            "itself" if row["device"] == forecast.relative_to else _limits((row["low"], row["high"]))
        ),
    }


_limits = between(three_digits)


def _devices(run: RelativeRun) -> Table:
    """Make the table of the devices of a run, the fastest first."""
    facts: dict[str, Any] = run.to_dict()
    timed, counted = facts["time"], "" if facts["source"] is None else f", counted on {facts['source']}"
    interval = f"{level_percent(facts['level_reached'])} interval"
    columns = {
        "device": "device",
        **_columns(run.forecast, interval),
        "speed-up": "speed_up",
        "fastest": "probability_fastest",
    }
    caption = f"{run.label}{counted}"
    if timed is not None:
        caption += f", {format_seconds(timed['time_s'])} on {timed['device']}"
        columns["time"] = "time_s"
        columns[f"{interval} of the time"] = lambda row: (
            "measured" if row["device"] == timed["device"] else times(row["time_low_s"], row["time_high_s"])
        )
    devices = sorted(facts["devices"], key=itemgetter("rank"))
    return table_of(devices, columns, caption=caption, bold=(0,), ranges=("low", "relative", "high"))


def _line_each(runs: Sequence[RelativeRun]) -> Table:
    """Make a table with the recommended device of each run, and its time."""
    rows = []
    for run in runs:
        facts: dict[str, Any] = run.to_dict()
        rows.append({"run": run.label, **facts, **min(facts["devices"], key=itemgetter("rank"))})
    columns = {
        "run": "run",
        "counted on": "source",
        "recommended": "device",
        "fastest": "probability_fastest",
    }
    return table_of(rows, {**columns, **_columns(runs[0].forecast, "interval")})


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
