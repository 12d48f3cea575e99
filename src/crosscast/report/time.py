"""Reports on training and evaluation of models of times of kernels and of launches.

Figures of an evaluation show all models, and details of the best one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluation.resampling import Confidence
from crosscast.evaluation.time.launch_times import LaunchEvaluation
from crosscast.evaluation.time.scores import Result, Scores, TimeEvaluation, TimeOutcome
from crosscast.prediction.time import Grid
from crosscast.prediction.time.card import TimeCard
from crosscast.prediction.time.models import BASELINES
from crosscast.prediction.trained import level_of
from crosscast.report import figures as draw
from crosscast.report.cards import held_out_table
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import (
    Score,
    bootstrap_sentence,
    explained,
    named,
    plural,
    score_table,
    scores_of,
)
from crosscast.report.prediction import trained_on
from crosscast.units import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TABLES = {
    "errors": scores_of("rmse_log± rmse_log_by_application median_ape± median_ape_by_application± mape"),
    "choice of a device": scores_of("slowdown_mean± slowdown_geomean top1 within_10 kendall_tau"),
    "intervals": scores_of("coverage± coverage_over_cells coverage_worst_application width interval_score"),
}
_TOTALS = scores_of(
    "median_ape± median_ape_by_application rmse_log slowdown_mean coverage coverage_worst_application width"
)
_OF_APPLICATION = scores_of(
    "rmse_log median_ape mape slowdown_mean top1 kendall_tau coverage width without_it"
)
_FLOOR = "noise floor (a run itself)"
_OF_TRAINING = scores_of(
    "rmse_log median_ape median_ape_by_application slowdown_mean coverage coverage_worst_application"
)
_OF_LAUNCHES = scores_of(
    "bias median_ape rmse_log coverage_over_cells coverage_worst_application width slowdown_mean"
)


def evaluation_report(study: TimeEvaluation | LaunchEvaluation) -> Report:
    """Make the tables of an evaluation, and the legend."""
    if isinstance(study, LaunchEvaluation):
        return _of_launches(study)
    parts: list[Part] = [Heading(_subject(study), 1)]
    for probes in dict.fromkeys(result.probes for result in study.results):
        parts.append(Heading(_known_times(study, probes), 3))
        for title, scores in _TABLES.items():
            parts += ["", _scores_table(study, _with_probes(study, probes), probes, title, scores)]
        totals = _with_probes(study, probes, of_applications=True)
        if any(result.scores.median_ape is not None for result, _ in totals):
            parts += ["", _scores_table(study, totals, None, "whole applications", _TOTALS)]
        best = study.best(probes)
        if best is not None:
            parts.append(_by_application(best))
    return Report([*parts, "", *_legend(study)])


def _subject(study: TimeEvaluation) -> str:
    counts = study.counts
    return (
        f"{study.label}: {format_count(counts['cells'])} measurement points of "
        f"{plural(counts['kernels_at_a_size'], 'kernel')} at a size ({plural(counts['kernels'], 'kernel')}, "
        f"{plural(counts['applications'], 'application')}) on {plural(counts['devices'], 'device')}; "
        f"{study.folds}; seed {study.seed}"
    )


def _known_times(study: TimeEvaluation, probes: int) -> str:
    devices = study.counts["devices"]
    if study.folds == "leave-device-out":
        return f"Each device unseen, with each kernel's times on the {probes} other devices known"
    if probes == 0:
        return "No time of a held-out kernel known"
    sets = next(len(result.outcomes) for result in study.results if result.probes == probes)
    measured = f"{probes} device{'' if probes == 1 else 's'} of {devices}"
    return f"Each held-out kernel measured on {measured}, the others predicted: mean over {sets} choices"


def _with_probes(
    study: TimeEvaluation, probes: int, *, of_applications: bool = False
) -> list[tuple[Result, Confidence]]:
    of_kernels, of_totals = (study.results, study.confidences), (study.totals, study.total_confidences)
    pairs = zip(*(of_totals if of_applications else of_kernels), strict=True)
    return [(result, confidence) for result, confidence in pairs if result.probes == probes]


def _scores_table(
    study: TimeEvaluation,
    rows: Iterable[tuple[Result, Confidence]],
    probes: int | None,
    title: str,
    scores: Sequence[Score],
) -> Table:
    """Make a table of scores by model; with `probes`, also of references without a model."""
    # Models first, then baselines; those without a score last.
    lines: list[tuple[list[str], Scores, Confidence | None]] = [
        ([named(result.model, result.model in BASELINES)], result.scores, confidence)
        for result, confidence in sorted(rows, key=_rank)
    ]
    references = [] if probes is None else _references(study, probes)
    lines += [
        ([name], values, None)
        for name, values in references
        if any(getattr(values, score.name) is not None for score in scores)
    ]
    return score_table([title], lines, scores)


def _rank(row: tuple[Result, Confidence]) -> tuple[bool, float]:
    error = row[0].scores.rmse_log
    return row[0].model in BASELINES, math.inf if error is None else error


def _references(study: TimeEvaluation, probes: int) -> list[tuple[str, Scores]]:
    """Scores without a model: always one device, where no time is known, and one run of each cell."""
    rows = [(_FLOOR, study.noise.scores)]
    if study.always is not None and study.folds != "leave-device-out" and probes == 0:
        device, result = study.always
        rows.insert(0, (f"always {device}", result.scores))
    return rows


def _by_application(result: Result) -> Table:
    outcome = result.outcomes[0]
    kernels = set(zip(outcome.application, outcome.rows.tolist(), strict=True))
    counts = Counter(application for application, _ in kernels)
    rows = [
        ([name, counts[name]], vars(scores) | {"without_it": result.without[name].slowdown_mean}, None)
        for name, scores in result.applications.items()
    ]
    caption = f"{result.model}, by application"
    return score_table(["application", "kernels"], rows, _OF_APPLICATION, caption=caption)


def _legend(study: TimeEvaluation) -> list[str]:
    return [
        "Models are fitted, tuned and selected without the held-out data. Whole applications: time of all "
        "kernels at a size, as often as they are launched.",
        *(explained(scores, study.level) for scores in _TABLES.values()),
        "Kernels are counted at each size; without it: mean slowdown over the other applications.",
        bootstrap_sentence("applications"),
        "Noise floor: one run of each measurement point as the prediction of its median. Always one device: "
        "the one that is best in hindsight. Exact definitions: docs/evaluation.md.",
    ]


def training_report(card: TimeCard, folder: Path) -> Report:
    """Describe a model's training data and its errors."""
    floor = card.errors.get("noise_floor")
    known = isinstance(floor, Mapping) and floor.get("rmse_log") is not None
    return Report(
        [
            f"{folder}: {card.model}, {trained_on(card)}",
            "",
            held_out_table(card, _OF_TRAINING, [(_FLOOR, floor)] if known else (), probes=True),
            "Each application was left out in turn, and predicted by the model fitted to the others. 0, 1, "
            "2: devices on which its kernels were measured before.",
            explained(_OF_TRAINING, level_of(card)),
            "With intervals and by application: card.json. Exact definitions: docs/evaluation.md.",
        ]
    )


def _of_launches(study: LaunchEvaluation) -> Report:
    """Make a table by source, one by held-out group, and the legend."""
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
        f"{explained(_OF_LAUNCHES, study.level)} Slowdowns are of launches timed on at least five devices.",
    ]
    if study.shared_kernels:
        parts.append(
            f"{len(study.shared_kernels)} kernels were timed by several sources: with one source held out, "
            "the others' times of the same kernel are known."
        )
    return Report(parts)


def _table(by: str, rows: Sequence[Mapping[str, object]]) -> Table:
    return score_table(
        [by, "times"], [([_name(by, row), row["cells"]], row, None) for row in rows], _OF_LAUNCHES
    )


def _name(by: str, row: Mapping[str, object]) -> str:
    name = row[by] or "all"
    return f"{name}, {row['kind']}" if row.get("kind") else str(name)


_TYPES = {
    "gpu": draw.Look(draw.BLUE, "o", draw.BLUE),
    "cpu": draw.Look(draw.RED, "s", draw.RED),
    "accelerator": draw.Look(draw.GREEN, "^", draw.GREEN),
}
_OTHER = draw.Look(draw.GREY, "D", draw.GREY)
_FAR, _MARGIN = math.log(1e3), math.log(1.5)
NAME = 32
"""Largest number of characters of a name."""
_PANELS = {
    "rmse_log": "RMSE of ln(time)",
    "median_ape": "median absolute error of the time, %",
    "slowdown_mean": "mean slowdown of the chosen device",
}


def evaluation_figures(study: TimeEvaluation | LaunchEvaluation) -> dict[str, Figure]:
    """Draw the scores of all models, and predictions, errors and coverage of the best one, by name."""
    figures: dict[str, Figure] = {}
    if isinstance(study, LaunchEvaluation):
        return figures
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


def _models(study: TimeEvaluation, probes: int) -> Figure:
    """Draw a panel for each score, with a dot for each model."""
    rows = [
        draw.ScoredModel(result.model, result.model in BASELINES, result.scores, confidence.intervals)
        for result, confidence in sorted(_with_probes(study, probes), key=_rank)
    ]
    rows.append(draw.ScoredModel("noise floor", True, study.noise.scores, {}))
    return draw.scores_figure(rows, _PANELS, f"{study.folds}, {_known(probes)}")


def _means(result: Result, shape: tuple[int, int]) -> tuple[Reals, Reals]:
    """Mean predicted logarithm and mean square error of each cell, over the choices of probes."""
    sums, squares, counts = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for outcome in result.outcomes:
        rows, columns = np.nonzero(outcome.counted)
        cells = (outcome.rows[rows], columns)
        centre = outcome.centre[rows, columns]
        np.add.at(sums, cells, centre)
        np.add.at(squares, cells, (centre - outcome.measured[rows, columns]) ** 2)
        np.add.at(counts, cells, 1)
    counts[counts == 0] = np.nan
    return sums / counts, squares / counts


def _predicted(result: Result, grid: Grid) -> Figure:
    """Draw a panel for each application: predicted over measured time of each held-out cell."""
    centre, _ = _means(result, grid.log_time.shape)
    known = np.isfinite(centre) & np.isfinite(grid.log_time)
    measured, predicted = grid.log_time[known], centre[known]
    # Predictions that are far off are drawn at the limits, so that they do not squeeze the others.
    low = max(min(measured.min(), predicted.min()), measured.min() - _FAR)
    high = min(max(measured.max(), predicted.max()), measured.max() + _FAR)
    limits = (math.exp(low - _MARGIN), math.exp(high + _MARGIN))
    applications = np.array(grid.profiles.application)
    types = np.array([device.type if device.type in _TYPES else "other" for device in grid.devices])
    figure, panels = draw.panels(len(result.names), 4, 3.1, 2.9, shared=True)
    for axes, name in zip(panels, result.names, strict=True):
        of_application = known & (applications == name)[:, None]
        draw.diagonal(axes, limits)
        if len(result.outcomes) == 1:
            _draw_intervals(axes, result.outcomes[0], name, limits)
        for kind in sorted(set(types.tolist())):
            cells = of_application & (types == kind)
            shown = np.exp(np.clip(centre[cells], low, high))
            draw.points(axes, np.exp(grid.log_time[cells]), shown, _TYPES.get(kind, _OTHER), kind, alpha=0.7)
        axes.set_title(f"{draw.plain_text(name, NAME)} ({(applications == name).sum()})", fontsize=10)
        for axis in (axes.xaxis, axes.yaxis):
            draw.time_axis(axis, *limits, most=5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    figure.supxlabel("measured time (dashed: half and twice as long)")
    averaged = ", geometric mean over the choices of probes" if len(result.outcomes) > 1 else ""
    figure.supylabel(f"predicted time{averaged}")
    return draw.titled(
        figure,
        _title(result, "held-out kernels"),
        *([] if averaged else ["lines: intervals, dark where they miss the measured time"]),
    )


def _draw_intervals(axes: Axes, outcome: TimeOutcome, application: str, limits: tuple[float, float]) -> None:
    """Draw the intervals as one path with gaps, as separate lines would make a page ten times as large."""
    shown = outcome.counted & (np.array(outcome.application) == application)[:, None]
    inside = (outcome.low <= outcome.measured) & (outcome.measured <= outcome.high)
    ends = np.log(limits)
    for cells, colour, width in ((shown & inside, "#cfcfcf", 0.5), (shown & ~inside, "#444444", 0.7)):
        x = np.exp(outcome.measured[cells])
        low, high = (np.exp(np.clip(limit[cells], *ends)) for limit in (outcome.low, outcome.high))
        gap = np.full(len(x), np.nan)
        path = (np.stack(columns, axis=1).ravel() for columns in ((x, x, gap), (low, high, gap)))
        axes.plot(*path, color=colour, linewidth=width, zorder=2)


def _errors(result: Result, grid: Grid) -> Figure:
    """Draw a heat map of the errors by application and device, with those over all."""
    _, squares = _means(result, grid.log_time.shape)
    applications = np.array(grid.profiles.application)
    groups = [applications == name for name in result.names] + [np.ones(len(applications), dtype=np.bool_)]
    errors = np.array(
        [[*map(_root_mean, squares[rows].T), _root_mean(squares[rows].ravel())] for rows in groups]
    )
    names = [*(draw.plain_text(device.key, NAME) for device in grid.devices), "all devices"]
    figure, axes = draw.one_figure(2.2 + 0.62 * errors.shape[1], 2.1 + 0.36 * errors.shape[0])
    draw.heat_map(
        axes,
        errors,
        [*(draw.plain_text(name, NAME) for name in result.names), "all"],
        names,
        write="{:.2f}".format,
        limits=(0.0, float(np.nanmax(errors))),
        label="RMSE of ln(time)",
    )
    axes.axhline(len(groups) - 1.5, color="white", linewidth=3)
    axes.axvline(len(names) - 1.5, color="white", linewidth=3)
    return draw.titled(figure, _title(result, "errors by application and device"))


def _root_mean(squares: Reals) -> float:
    """Root of the mean of the known squares; NaN where none is known."""
    known = squares[np.isfinite(squares)]
    return math.sqrt(known.mean()) if known.size else math.nan


def _coverage(result: Result) -> Figure:
    """Draw a bar for each application: the share of held-out cells within their interval."""
    shares = {
        draw.plain_text(name, NAME): 100 * scores.coverage
        for name, scores in result.applications.items()
        if scores.coverage is not None
    }
    return draw.groups_figure(
        result.model,
        dict(sorted(shares.items(), key=lambda share: -share[1])),
        None,
        _title(result, "coverage of intervals"),
        label="held-out measurement points whose measured time is within the interval, %",
        write="{:.0f}".format,
        line=("to be held", 100 * result.level),
    )
