"""Figures of an evaluation of predicted times: all models, and details of the best one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluation.time.launch_times import LaunchEvaluation
from crosscast.evaluation.time.results import Result, TimeEvaluation
from crosscast.evaluation.time.scores import TimeOutcome
from crosscast.prediction.time.data import Grid
from crosscast.prediction.time.models import BASELINES
from crosscast.report import figures as draw
from crosscast.report.numbers import factor, level_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    pairs = [
        (result, confidence)
        for result, confidence in zip(study.results, study.confidences, strict=True)
        if result.probes == probes
    ]
    pairs.sort(key=lambda pair: (pair[0].model in BASELINES, pair[0].scores.rmse_log or math.inf))
    rows = [
        draw.ScoredModel(result.model, result.model in BASELINES, result.scores, confidence.intervals)
        for result, confidence in pairs
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
    none = np.full(shape, np.nan)
    return (
        np.divide(sums, counts, out=none.copy(), where=counts > 0),
        np.divide(squares, counts, out=none.copy(), where=counts > 0),
    )


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
    figure, panels = draw.panels(len(result.names), 4, 3.1, 2.9, sharex=True, sharey=True)
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
    scored = [
        (scores.coverage, name, scores.width)
        for name, scores in result.applications.items()
        if scores.coverage is not None
    ]
    scored.sort(key=lambda row: -row[0])
    figure, axes = draw.one_figure(8, 1.8 + 0.34 * len(scored))
    draw.bars(axes, {draw.plain_text(name, NAME): 100 * share for share, name, _ in scored})
    axes.axvline(100 * result.level, color=draw.RED, linewidth=1.5)
    for y, (_, _, width) in enumerate(scored):
        text = "" if width is None else f"width {factor(width)}"
        axes.annotate(text, xy=(101, y), va="center", fontsize=9, annotation_clip=False)
    axes.set_xlim(0, 100)
    axes.set_xlabel("held-out measurement points whose measured time is within the interval, %")
    return draw.titled(
        figure, _title(result, f"intervals, of which {level_percent(result.level)} are to hold the time")
    )
