"""Predicted times: how a model was trained and how models compare, of kernels and of launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluation.resampling import DRAWS, SHARE, Confidence, Interval
from crosscast.evaluation.time.launch_times import LaunchEvaluation
from crosscast.evaluation.time.results import Result, TimeEvaluation
from crosscast.evaluation.time.scores import HIGHER_IS_BETTER, Scores
from crosscast.prediction.time.card import TimeCard
from crosscast.prediction.time.data import Grid
from crosscast.prediction.time.models import BASELINES
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.figures import (
    BLUE,
    GREEN,
    GREY,
    RED,
    Look,
    bars,
    diagonal,
    heat_map,
    new_figure,
    one_figure,
    panels,
    points,
    style_axes,
    titled,
)
from crosscast.report.numbers import MARK, Score, factor, level_percent, named, percent
from crosscast.report.prediction import trained_on
from crosscast.units import format_count

_TWO = "{:.2f}".format
_TABLES = {
    "errors": (
        Score("RMSE of ln t", "rmse_log", _TWO, interval=True),
        Score("by appl.", "rmse_log_by_application", _TWO),
        Score("median APE", "median_ape", percent, interval=True),
        Score("by application", "median_ape_by_application", percent, interval=True),
        Score("MAPE", "mape", percent),
    ),
    "choice of a device": (
        Score("mean slowdown", "slowdown_mean", factor, interval=True),
        Score("geometric", "slowdown_geomean", factor),
        Score("fastest", "top1", percent),
        Score("within 10 %", "within_10", percent),
        Score("Kendall's tau", "kendall_tau", _TWO),
    ),
    "intervals": (
        Score("coverage", "coverage", percent, interval=True),
        Score("over points", "coverage_over_cells", percent),
        Score("worst application", "coverage_worst_application", percent),
        Score("width", "width", factor),
        Score("interval score", "interval_score", _TWO),
    ),
}
_TOTALS = (
    Score("median APE", "median_ape", percent, interval=True),
    Score("by application", "median_ape_by_application", percent),
    Score("RMSE of ln t", "rmse_log", _TWO),
    Score("slowdown", "slowdown_mean", factor),
    Score("coverage", "coverage", percent),
    Score("worst", "coverage_worst_application", percent),
    Score("width", "width", factor),
)
_OF_APPLICATION = (
    Score("RMSE", "rmse_log", _TWO),
    Score("med. APE", "median_ape", percent),
    Score("MAPE", "mape", percent),
    Score("slowdown", "slowdown_mean", factor),
    Score("fastest", "top1", percent),
    Score("tau", "kendall_tau", _TWO),
    Score("coverage", "coverage", percent),
    Score("width", "width", factor),
)


def evaluation_report(study: TimeEvaluation) -> Report:
    """The tables of an evaluation, and what they are of."""
    return Report([Heading(_subject(study), 1), *evaluation_parts(study)])


def evaluation_parts(study: TimeEvaluation) -> list[Part]:
    """The tables and their legend."""
    parts: list[Part] = []
    for probes in dict.fromkeys(result.probes for result in study.results):
        parts.append(Heading(_known_times(study, probes), 3))
        for title, scores in _TABLES.items():
            parts += ["", _scores_table(study, _of_probes(study, probes), probes, title, scores)]
        totals = _of_probes(study, probes, of_applications=True)
        if any(result.scores.median_ape is not None for result, _ in totals):
            parts += ["", _scores_table(study, totals, None, "whole applications", _TOTALS)]
        best = study.best(probes)
        if best is not None:
            parts.append(_by_application(best))
    return [*parts, "", *_legend(study)]


def _subject(study: TimeEvaluation) -> str:
    counts = study.counts
    return (
        f"{study.label}: {format_count(counts['cells'])} measurement points of "
        f"{counts['kernels_at_a_size']} kernels at a size ({counts['kernels']} kernels, "
        f"{counts['applications']} applications) on {counts['devices']} devices; {study.folds}; "
        f"seed {study.seed}"
    )


def _known_times(study: TimeEvaluation, probes: int) -> str:
    of = study.counts["devices"]
    if study.folds == "leave-device-out":
        return f"Each device unseen, with each kernel's times on the {probes} other devices known"
    if probes == 0:
        return "No time of a held-out kernel known"
    sets = next(len(result.outcomes) for result in study.results if result.probes == probes)
    which = "1 device" if probes == 1 else f"{probes} devices"
    return f"Each held-out kernel measured on {which} of {of}, the others predicted: mean over {sets} choices"


def _of_probes(
    study: TimeEvaluation, probes: int, *, of_applications: bool = False
) -> list[tuple[Result, Confidence]]:
    both = zip(study.results, study.confidences, strict=True)
    if of_applications:
        both = zip(study.totals, study.total_confidences, strict=True)
    return [(result, confidence) for result, confidence in both if result.probes == probes]


def _scores_table(
    study: TimeEvaluation,
    rows: list[tuple[Result, Confidence]],
    probes: int | None,
    title: str,
    scores: Sequence[Score],
) -> Table:
    """Models beside each other, and beside what needs none where `probes` say how much is known."""
    # Baselines come after models, and those that cannot be scored last.
    rows.sort(
        key=lambda row: (
            row[0].model in BASELINES,
            row[0].scores.rmse_log is None,
            row[0].scores.rmse_log or 0.0,
        )
    )
    best = {score.name: _best(rows, score.name) for score in scores}
    lines = [
        [
            named(result.model, result.model in BASELINES),
            *(
                each.text(result.scores, confidence, marked=best[each.name] == result.model)
                for each in scores
            ),
        ]
        for result, confidence in rows
    ]
    lines += [
        [name, *(each.text(found) for each in scores)]
        for name, found in ([] if probes is None else _references(study, probes))
        if any(getattr(found, each.name) is not None for each in scores)
    ]
    return Table([title, *(each.heading for each in scores)], lines)


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


def _by_application(result: Result) -> Table:
    outcome = result.outcomes[0]
    kernels = set(zip(outcome.application, outcome.rows.tolist(), strict=True))
    rows = [
        [
            name,
            sum(application == name for application, _ in kernels),
            *(each.text(scores) for each in _OF_APPLICATION),
            result.without[name].slowdown_mean,
        ]
        for name, scores in result.applications.items()
    ]
    return Table(
        ["application", "kernels", *(each.heading for each in _OF_APPLICATION), "without it"],
        rows,
        f"{result.model}, by application",
        {"kernels": format_count, "without it": factor},
    )


def _legend(study: TimeEvaluation) -> list[str]:
    return [
        "Models are fitted, tuned and selected without the held-out data. APE: abs(predicted / measured - 1) "
        "of a time; by application: mean over applications.",
        "Slowdown: measured time on the device that is chosen over that on the fastest. Intervals are to "
        f"hold {level_percent(study.level)} of the times; width: upper over lower limit, median.",
        "Whole applications: time of all kernels at a size, as often as they are launched.",
        "Kernels are counted at each size; without it: mean slowdown over the other applications.",
        f"In brackets: {100 * SHARE:g} % of {format_count(DRAWS)} bootstrap draws of the applications. "
        f"{MARK} the best model, where the bootstrap of its difference from the best baseline excludes 0.",
        "Noise floor: one run of each measurement point as the prediction of its median. Always one device: "
        "the one that is best in hindsight. Exact definitions: docs/evaluation.md.",
    ]


_OF_TRAINING = (
    Score("RMSE", "rmse_log", _TWO),
    Score("med. APE", "median_ape", percent),
    Score("by appl.", "median_ape_by_application", percent),
    Score("slowdown", "slowdown_mean", factor),
    Score("coverage", "coverage", percent),
    Score("worst", "coverage_worst_application", percent),
)


def training_report(card: TimeCard, folder: Path) -> Report:
    """What a model was trained on, and how good it is."""
    results = sorted(card.errors.get("results", ()), key=lambda each: int(each["probes"]))
    rows = [
        [str(each["probes"]), named(each["model"], each["model"] != card.model), *_card_scores(each)]
        for each in results
    ]
    floor = card.errors.get("noise_floor")
    if floor is not None:
        rows.append(["", "noise floor (a run itself)", *_card_scores(floor)])
    own = [place for place, each in enumerate(results) if each["model"] == card.model]
    return Report(
        [
            f"{folder}: {card.model}, {trained_on(card)}",
            "",
            Table(
                ["probes", "model", *(each.heading for each in _OF_TRAINING)], rows, words=(0, 1), bold=own
            ),
            "Each application was left out in turn, and predicted by the model fitted to the others. 0, 1, "
            "2: devices on which its kernels were measured before.",
            "RMSE: of the logarithm of the time. APE: median error of a time, over all points and as a mean "
            "over applications.",
            "Slowdown: time on the device taken over that on the fastest, mean over kernels. Coverage: share "
            f"of an application's times within {level_percent(card.errors.get('level', 0.9))} intervals, "
            "mean over applications, and the worst's.",
            "With intervals and by application: card.json. Exact definitions: docs/evaluation.md.",
        ]
    )


def _card_scores(result: dict[str, Any]) -> list[str]:
    return [each.text(result) for each in _OF_TRAINING]


_TYPES = {"gpu": Look(BLUE, "o", BLUE), "cpu": Look(RED, "s", RED), "accelerator": Look(GREEN, "^", GREEN)}
_OTHER = Look(GREY, "D", GREY)
_PANELS = (
    ("rmse_log", "RMSE of ln(time)", 1.0),
    ("median_ape", "median absolute error of the time, %", 100.0),
    ("slowdown_mean", "mean slowdown of the chosen device", 1.0),
)


def evaluation_figures(study: TimeEvaluation) -> dict[str, Any]:
    """All models beside each other, and predictions, errors and coverage of the best one, by name."""
    figures = {}
    for probes in dict.fromkeys(result.probes for result in study.results):
        name = f"{study.folds}-{probes}-probes"
        figures[f"{name}-models"] = _models(study, probes)
        best = study.best(probes)
        if best is not None:
            figures[f"{name}-predicted"] = _predicted(best, study.grid)
            figures[f"{name}-errors"] = _errors(best, study.grid)
            figures[f"{name}-coverage"] = _coverage(best)
    return figures


def _title(result: Result, what: str) -> str:
    return f"{result.model}, {result.folds}, {_known(result.probes)}: {what}"


def _known(probes: int) -> str:
    return "no time known" if probes == 0 else f"{probes} times of each kernel known"


def _models(study: TimeEvaluation, probes: int) -> Any:
    """A panel a score: a dot a model, with what the bootstrap says of it."""
    rows = _of_probes(study, probes)
    # The best is at the top, where the vertical axis is greatest.
    rows.sort(key=lambda row: (row[0].model not in BASELINES, -(row[0].scores.rmse_log or math.inf)))
    figure = new_figure(12, 1.6 + 0.3 * (len(rows) + 1))
    every = figure.subplots(1, len(_PANELS), sharey=True)
    for axes, (score, label, scale) in zip(every, _PANELS, strict=True):
        floor = getattr(study.noise.scores, score)
        dots: list[tuple[int, float | None, Interval | None, str]] = [(0, floor, None, GREY)]
        dots += [
            (place, getattr(result.scores, score), confidence.intervals.get(score), _colour(result))
            for place, (result, confidence) in enumerate(rows, 1)
        ]
        for place, value, interval, colour in dots:
            if interval is not None:
                limits = [scale * interval.low, scale * interval.high]
                axes.plot(limits, [place, place], color=colour, linewidth=2, alpha=0.5)
            if value is not None:
                axes.plot([scale * value], [place], "o", color=colour, markersize=6)
        style_axes(axes, x=label)
    every[0].set_yticks(range(len(rows) + 1), ["noise floor", *(result.model for result, _ in rows)])
    every[0].set_ylim(-0.6, len(rows) + 0.6)
    return titled(
        figure,
        f"{study.folds}, {_known(probes)}",
        f"dots are scores, lines hold {100 * SHARE:g} % of bootstrap draws of the applications; grey: "
        "baselines",
    )


def _colour(result: Result) -> str:
    return GREY if result.model in BASELINES else BLUE


def _means(result: Result, shape: tuple[int, int]) -> tuple[Reals, Reals]:
    """Of each cell, mean of the predicted logarithms and mean square error, over what was told."""
    sums, squares, counts = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for outcome in result.outcomes:
        rows, columns = np.nonzero(outcome.counted)
        places = (outcome.rows[rows], columns)
        centre = outcome.centre[rows, columns]
        np.add.at(sums, places, centre)
        np.add.at(squares, places, (centre - outcome.measured[rows, columns]) ** 2)
        np.add.at(counts, places, 1)
    none = np.full(shape, np.nan)
    return (
        np.divide(sums, counts, out=none.copy(), where=counts > 0),
        np.divide(squares, counts, out=none.copy(), where=counts > 0),
    )


def _predicted(result: Result, grid: Grid) -> Any:
    """A panel an application: predicted over measured time of each held-out cell."""
    centre, _ = _means(result, grid.log_time.shape)
    known = np.isfinite(centre) & np.isfinite(grid.log_time)
    both = np.exp(np.concatenate([centre[known], grid.log_time[known]]))
    limits = (both.min() / 1.5, both.max() * 1.5)
    applications = np.array(grid.profiles.application)
    types = np.array([device.type if device.type in _TYPES else "other" for device in grid.devices])
    figure, every = panels(len(result.names), 4, 3.1, 2.9, sharex=True, sharey=True)
    for axes, name in zip(every, result.names, strict=True):
        own = known & (applications == name)[:, None]
        diagonal(axes, limits)
        for kind in sorted(set(types.tolist())):
            cells = own & (types == kind)
            look = _TYPES.get(kind, _OTHER)
            points(axes, np.exp(grid.log_time[cells]), np.exp(centre[cells]), look, kind, size=4.0, alpha=0.7)
        axes.set_title(f"{name} ({(applications == name).sum()})", fontsize=10)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    figure.supxlabel("measured time, s (dashed: half and twice as long)")
    averaged = ", geometric mean over the choices of probes" if len(result.outcomes) > 1 else ""
    figure.supylabel(f"predicted time, s{averaged}")
    return titled(figure, _title(result, "held-out kernels"))


def _errors(result: Result, grid: Grid) -> Any:
    """Heat map of the errors by application and device, with those over all beside it."""
    _, squares = _means(result, grid.log_time.shape)
    applications = np.array(grid.profiles.application)
    groups = [applications == name for name in result.names] + [np.ones(len(applications), dtype=np.bool_)]
    errors = np.array(
        [[*map(_root_mean, squares[rows].T), _root_mean(squares[rows].ravel())] for rows in groups]
    )
    names = [*(device.key for device in grid.devices), "all devices"]
    figure, axes = one_figure(2.2 + 0.62 * errors.shape[1], 2.1 + 0.36 * errors.shape[0])
    heat_map(
        axes,
        errors,
        [*result.names, "all"],
        names,
        write=_TWO,
        limits=(0.0, float(np.nanmax(errors))),
        label="RMSE of ln(time)",
    )
    axes.axhline(len(groups) - 1.5, color="white", linewidth=3)
    axes.axvline(len(names) - 1.5, color="white", linewidth=3)
    return titled(figure, _title(result, "errors by application and device"))


def _root_mean(squares: Reals) -> float:
    """Root of the mean of what is known; not a number where nothing is."""
    known = squares[np.isfinite(squares)]
    return math.sqrt(known.mean()) if known.size else math.nan


def _coverage(result: Result) -> Any:
    """A bar an application: the share of held-out cells that are within their interval."""
    scored = [
        (each.coverage, name, each.width)
        for name, each in result.applications.items()
        if each.coverage is not None
    ]
    scored.sort(key=lambda row: -row[0])
    figure, axes = one_figure(8, 1.8 + 0.34 * len(scored))
    bars(axes, {name: 100 * share for share, name, _ in scored})
    axes.axvline(100 * result.level, color=RED, linewidth=1.5)
    for place, (_, _, width) in enumerate(scored):
        text = "" if width is None else f"width {factor(width)}"
        axes.annotate(text, xy=(101, place), va="center", fontsize=9, annotation_clip=False)
    axes.set_xlim(0, 100)
    axes.set_xlabel("held-out measurement points whose measured time is within the interval, %")
    return titled(
        figure, _title(result, f"intervals, of which {level_percent(result.level)} are to hold the time")
    )


_SCORES = (
    Score("bias", "bias", factor),
    Score("median APE", "median_ape", percent),
    Score("RMSE of ln t", "rmse_log", "{:.2f}".format),
    Score("coverage", "coverage_over_cells", percent),
    Score("worst application", "coverage_worst_application", percent),
    Score("width", "width", factor),
    Score("slowdown", "slowdown_mean", factor),
)


def launch_evaluation_report(study: LaunchEvaluation) -> Report:
    """A table by source, one by what was held out, and what their columns are."""
    counts = study.counts
    parts: list[Part] = [
        Heading(
            f"{study.label}: {counts['cells']:,} times of {counts['applications']} applications on "
            f"{counts['devices']} devices from {counts['sources']} sources; {study.folds}",
            1,
        ),
        _table("source", study.results()),
    ]
    if study.folds != "leave-source-out":
        by = "device" if study.folds == "leave-device-out" else "application"
        parts += ["", _table(by, study.groups(by))]
    parts += [
        "",
        "Bias: geometric mean of predicted over measured times. APE: median error of a time. RMSE: of the "
        "logarithm of the time.",
        f"Coverage: share of the times within {level_percent(study.level)} intervals, and in the application "
        "that has least. Width: upper over lower limit, median.",
        "Slowdown: time on the device forecast to be fastest over that on the fastest, mean over launches "
        "timed on at least five.",
    ]
    if study.shared_kernels:
        parts.append(
            f"{len(study.shared_kernels)} kernels were timed by several sources: with one source held out, "
            "the others' times of the same kernel are known."
        )
    return Report(parts)


def _table(by: str, rows: list[dict[str, Any]]) -> Table:
    cells = [[_name(by, row), row["cells"], *(each.text(row) for each in _SCORES)] for row in rows]
    return Table([by, "times", *(each.heading for each in _SCORES)], cells)


def _name(by: str, row: dict[str, Any]) -> str:
    name = row[by] or "all"
    return f"{name}, {row['kind']}" if row.get("kind") else str(name)
