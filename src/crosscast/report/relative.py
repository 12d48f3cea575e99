"""Relative performance: evaluations with their studies and figures, trained models, and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.evaluation.relative.evaluation import PUBLISHED, WEIGHTINGS, RelativeEvaluation, RelativeResult
from crosscast.evaluation.resampling import DRAWS, SHARE
from crosscast.prediction.relative.artefact import RelativeCard, RelativeForecast
from crosscast.prediction.relative.data import NO_SOURCE
from crosscast.prediction.warnings import format_names
from crosscast.report.document import Heading, Part, Ranges, Report, Table
from crosscast.report.figures import (
    BLUE,
    GREY,
    RED,
    bars,
    heat_map,
    legend_below,
    new_figure,
    one_figure,
    robust_limits,
    style_axes,
    titled,
)
from crosscast.report.numbers import (
    MARK,
    NONE,
    Score,
    factor,
    level_percent,
    named,
    percent,
    plural,
    probability,
    three_digits,
    times,
)
from crosscast.studies.nichols2024 import (
    CAUTION,
    BySource,
    Importances,
    RelativeStudies,
    RelativeStudy,
    Selection,
)
from crosscast.units import format_count, format_seconds

_FOUR, _THREE = "{:.4f}".format, "{:.3f}".format
_MOST_FEATURES = 20
_MOST_NAMED = 8
_MOST_TABLES = 12
_SCORES = (
    Score("MAE", "mae", _FOUR, interval=True),
    Score("same order", "same_order", percent, interval=True),
    Score("top-1", "top1", percent, interval=True),
    Score("mean regret", "regret", _THREE, interval=True),
    Score("median", "median_regret", _THREE),
    Score("typical factor", "typical_factor", factor, interval=True),
)
_HEADINGS = [each.heading for each in _SCORES]
_WEIGHED = {
    "rows": "All runs count the same",
    "kernels": "All kernels count the same, however many runs they have",
    "applications": "All applications count the same, however many runs they have",
}


def relative_evaluation_report(study: RelativeStudy) -> Report:
    """The tables of an evaluation and of its studies, and what they are of."""
    evaluation = study.evaluation
    # Baselines last; of others, and of these, the best first.
    results = sorted(evaluation.results, key=lambda each: (each.baseline, each.metrics.mae))
    rows = [
        [_name(each), *(score.text(each.metrics, each.confidence) for score in _SCORES)] for each in results
    ]
    parts: list[Part] = [
        Heading(_subject(evaluation), 1),
        f"devices: {', '.join(evaluation.vectors.devices)}",
        "",
        Table(["model", *_HEADINGS], rows),
        "",
        _by_weighting(results),
    ]
    best = evaluation.best()
    if len(best.per_group) > 1:
        groups = [
            [name, format_count(metrics.rows), *(score.text(metrics) for score in _SCORES)]
            for name, metrics in best.per_group.items()
        ]
        parts.append(Table(["group", "rows", *_HEADINGS], groups, f"{best.model}, by group"))
    parts += ["", *_legend(evaluation)]
    return Report([*parts, *(_studies(study.studies) if study.studies is not None else ())])


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
    return Table(headings, [row[: len(headings)] for row in rows], formats=dict.fromkeys(headings, _FOUR))


def _legend(evaluation: RelativeEvaluation) -> list[str]:
    lines = [
        f"{_WEIGHED[evaluation.results[0].weighting]}, except where another is named.",
        "A vector is a run's time on each device over that on the slowest: less is better. MAE: mean error "
        "of its entries. Same order: runs whose devices are all ranked as measured. Top-1: runs whose "
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


def _studies(studies: RelativeStudies) -> list[Part]:
    parts: list[Part] = []
    if studies.by_source is not None:
        found = studies.by_source
        rows = [
            [model, *(f"{_FOUR(each.mae)} / {percent(each.same_order)}" for each in metrics)]
            for model, metrics in found.metrics.items()
        ]
        caption = f"by source: fitted to and tested on counters of one device, {found.split}"
        parts.append(Table(["MAE / same order", *found.sources], rows, caption))
    for name, evaluation in (("scale", studies.by_scale), ("application", studies.by_application)):
        if evaluation is not None:
            results = evaluation.results
            rows = [
                [group, *(_FOUR(result.per_group[group].mae) for result in results)]
                for group in results[0].per_group
            ]
            models = [result.model for result in results]
            parts.append(Table([name, *models], rows, f"by {name}: MAE where it is left out"))
    importances, selection = studies.importances, studies.selection
    features = Table.of(
        importances.features[:_MOST_FEATURES],
        {
            "feature": lambda each: each.feature,
            "average gain": lambda each: each.gain,
            "rise of MAE when shuffled": lambda each: each.rise,
        },
        caption=f"importances of {importances.model}, {importances.split}",
        formats={"average gain": percent, "rise of MAE when shuffled": "{:+.4f}".format},
    )
    left = len(importances.features) - _MOST_FEATURES
    counts = Table.of(
        zip(selection.counts, selection.metrics, strict=True),
        {
            "features": lambda row: str(row[0]),
            "MAE": lambda row: row[1].mae,
            "same order": lambda row: row[1].same_order,
        },
        caption=f"features of the most gain alone, {selection.split}",
        formats={"MAE": _FOUR, "same order": percent},
    )
    return [*parts, features, *([f"and {left} more"] if left > 0 else []), CAUTION, counts]


def relative_training_report(card: RelativeCard, folder: Path) -> Report:
    """What a model learned from, and how good it is."""
    scores = (
        Score("MAE", "mae", _THREE),
        Score("same order", "same_order", percent),
        Score("fastest found", "top1", percent),
        Score("regret", "regret", percent),
        Score("typical factor", "typical_factor", factor),
    )
    results = card.errors.get("results", ())
    rows = [
        [named(each["model"], each["model"] != card.model), *(score.text(each) for score in scores)]
        for each in results
    ]
    own = [place for place, each in enumerate(results) if each["model"] == card.model]
    return Report(
        [
            f"{folder}: {card.model}, {trained_on_runs(card)}",
            f"Counters: {format_names(card.counters, _MOST_NAMED)}.",
            "",
            Table(["model", *(each.heading for each in scores)], rows, bold=own),
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


def trained_on_runs(card: RelativeCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    sources = [each for each in card.sources if each != NO_SOURCE]
    counted = (
        f"counted on {format_names(sources, _MOST_NAMED)}"
        if sources
        else "with architecture-independent profiles"
    )
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('runs', 0)), 'run')} of "
        f"{facts.get('kernels')} kernels ({facts.get('applications')} applications), {counted}, with times "
        f"on {len(card.devices)} devices ({format_names(card.devices, _MOST_NAMED)})."
    )


def _own_scores(card: RelativeCard) -> dict[str, Any]:
    """The model's scores among those of the card; empty if it does not say."""
    return next(
        (dict(each) for each in card.errors.get("results", ()) if each.get("model") == card.model), {}
    )


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
        parts.append(f"the recommended device took {percent(scores['regret'])} more time than the fastest")
    weighing = f", {card.errors['weights']} weighing the same" if "weights" in card.errors else ""
    return [f"On held-out {_left_out(card)}s{weighing}: {', '.join(parts)}.", *_coverage(card)]


def _coverage(card: RelativeCard) -> list[str]:
    coverage = _own_scores(card).get("coverage")
    if coverage is None:
        return []
    others = int(card.errors.get("groups", 1)) - 1
    # As many others allow no more than this.
    level = min(float(card.errors.get("level", 0.9)), others / (others + 1))
    return [
        f"Coverage of {level_percent(level)} intervals by the errors on the {others} others: "
        f"{percent(coverage)} of "
        "the times relative to another device."
    ]


def relative_forecasts_report(forecasts: Sequence[RelativeForecast], card: RelativeCard) -> Report:
    """Predictions, a table a run or, of many, a line each, and how good the model is."""
    runs = [(forecast, row) for forecast in forecasts for row in range(len(forecast))]
    parts: list[Part] = []
    if len(runs) > _MOST_TABLES:
        parts += [_line_each(runs), "With all devices: --json, or --application and --kernel for a few.", ""]
    else:
        for forecast, row in runs:
            parts += [_devices(forecast, row), *_advice(forecast, row), ""]
    return Report(
        [*parts, f"{card.model}, {trained_on_runs(card)}", *relative_errors_text(card)],
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
    rows: list[list[Any]] = []
    for place in forecast.order[row].tolist():
        relative = float(forecast.centre[row, place])
        cells: list[Any] = [forecast.devices[place], relative, _between(forecast, row, place)]
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


_MOST_BARS = 25


def relative_figures(study: RelativeStudy) -> dict[str, Any]:
    """Figures of the models, and of each study (Nichols et al. 2024, Figures 2 to 8), by name."""
    label, split = study.evaluation.label, study.evaluation.split.name
    figures = {"models": _models_figure(study.evaluation.results, f"{label}: {split}")}
    studies = study.studies
    if studies is not None:
        if (found := studies.by_source) is not None:
            about = f"{label}: fitted to and tested on the counters of one device, {found.split}"
            figures["sources-mae"] = _sources_figure(found, "mae", "MAE", about)
            figures["sources-same-order"] = _sources_figure(found, "same_order", "same order", about)
        if studies.by_scale is not None:
            figures["scales"] = _groups_figure(studies.by_scale, f"{label}: each scale left out")
        if studies.by_application is not None:
            figures["applications"] = _groups_figure(
                studies.by_application, f"{label}: each application left out"
            )
        about = f"{label}: what XGBoost splits at, and what it needs, {studies.importances.split}"
        figures["importances"] = _importances_figure(studies.importances, about)
        about = f"{label}: XGBoost with fewer features, {studies.selection.split}"
        figures["selection"] = _selection_figure(studies.selection, about)
    return figures


def _models_figure(results: Sequence[RelativeResult], title: str) -> Any:
    """A bar a model in each of two panels, with lines as long as what a bootstrap over groups leaves."""
    figure = new_figure(9, 1.7 + 0.42 * len(results))
    colours = [GREY if result.baseline else BLUE for result in results]
    # What is off the scale of the others, such as lines far from what they were fitted to, would hide them.
    ends = (2.5 * sorted(each.metrics.mae for each in results)[len(results) // 2], 1.0)
    chosen = zip(
        ("mae", "same_order"), ("MAE (less is better)", "same order (more is better)"), ends, strict=True
    )
    for axes, (metric, label, end) in zip(figure.subplots(1, 2, sharey=True), chosen, strict=True):
        intervals = [each.confidence.intervals.get(metric) for each in results]
        bars(
            axes,
            {each.model: getattr(each.metrics, metric) for each in results},
            write=_THREE,
            colours=colours,
            intervals=[None if each is None else (each.low, each.high) for each in intervals],
            end=end,
        )
        axes.set_xlabel(label)
    return titled(
        figure, title, f"lines hold {100 * SHARE:g} % of bootstrap draws of groups; grey: baselines"
    )


def _groups_figure(evaluation: RelativeEvaluation, title: str) -> Any:
    """A bar a group for the best model, and a mark for the best baseline."""
    best = evaluation.best()
    baselines = [result for result in evaluation.results if result.baseline and result is not best]
    rival = min(baselines, key=lambda each: each.metrics.mae) if baselines else None
    figure, axes = one_figure(8, 1.9 + 0.3 * len(best.per_group))
    bars(
        axes,
        {name: metrics.mae for name, metrics in best.per_group.items()},
        write=_THREE,
        rivals=[] if rival is None else [rival.per_group[name].mae for name in best.per_group],
        labels=(best.model, "" if rival is None else f"{rival.model} (baseline)"),
    )
    axes.set_xlabel("MAE where it is left out")
    legend_below(figure, 2)
    return titled(figure, title)


def _sources_figure(found: BySource, metric: str, label: str, title: str) -> Any:
    """A map of numbers: a row a model, a column a source."""
    models = list(found.metrics)
    values = np.array([[getattr(each, metric) for each in found.metrics[model]] for model in models])
    figure = new_figure(4.2 + 0.95 * len(found.sources), 2.3 + 0.45 * len(models))
    heat_map(
        figure.subplots(),
        values,
        models,
        found.sources,
        write=lambda value: f"{value:.3f}" if value < 10 else f"{value:,.0f}",
        limits=robust_limits(values),
        label=label,
    )
    return titled(figure, title)


def _importances_figure(found: Importances, title: str) -> Any:
    """The features of the most gain, most first, with both importances."""
    features = found.features[:_MOST_BARS]
    figure = new_figure(10, 1.9 + 0.27 * len(features))
    gains, rises = figure.subplots(1, 2, sharey=True)
    bars(gains, {each.feature: 100 * each.gain for each in features})
    gains.set_xlabel("average gain, % of the sum over all features")
    bars(rises, {each.feature: each.rise for each in features}, colours=RED)
    rises.axvline(0, color="black", linewidth=0.8, zorder=3)
    rises.set_xlabel(f"rise of MAE ({found.mae:.3f}) when shuffled")
    more = len(found.features) - len(features)
    return titled(
        figure,
        title + (f"; {more} more features not shown" if more else ""),
        "gain is what trees split at, not what performance depends on; features that go together share it",
    )


def _selection_figure(found: Selection, title: str) -> Any:
    """A line over the number of features, on a logarithmic axis."""
    figure, axes = one_figure(7, 4)
    values = [each.mae for each in found.metrics]
    axes.plot(found.counts, values, "o-", color=BLUE, markersize=6, zorder=3)
    for at in zip(found.counts, values, strict=True):
        axes.annotate(_THREE(at[1]), at, (0, 7), textcoords="offset points", ha="center", fontsize=8.5)
    axes.set_xscale("log", base=2)
    axes.set_xticks(found.counts, [str(count) for count in found.counts])
    axes.minorticks_off()
    axes.set_ylim(0, 1.2 * max(values))
    style_axes(axes, x="features of the most gain in the training runs", y="MAE")
    return titled(figure, title)
