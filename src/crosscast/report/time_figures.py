"""Pictures of an evaluation: models beside each other, and where the best one errs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.evaluation.resampling import SHARE
from crosscast.evaluation.time import Result, TimeEvaluation
from crosscast.predict.time.data import Grid
from crosscast.predict.time.models import BASELINES
from crosscast.report.figures import new_figure, save_figure

# Told apart by people who do not see all colours (Okabe and Ito's palette).
_BLUE, _RED, _GREEN, _GREY = "#0072b2", "#d55e00", "#009e73", "#777777"
_TYPE_STYLES = {"gpu": (_BLUE, "o"), "cpu": (_RED, "s"), "accelerator": (_GREEN, "^")}
_OTHER_STYLE = (_GREY, "D")
_COLUMNS = 4


def write_figures(study: TimeEvaluation, folder: Path) -> list[Path]:
    """Draw all models beside each other, and predictions, errors and coverage of the best one."""
    paths = []
    for probes in dict.fromkeys(result.probes for result in study.results):
        figures = {"models": _models(study, probes)}
        best = study.best(probes)
        if best is not None:
            grid = study.grid
            figures["predicted"] = _predicted(best, grid)
            figures["errors"] = _errors(best, grid)
            figures["coverage"] = _coverage(best)
        for name, figure in figures.items():
            path = folder / f"{study.folds}-{probes}-probes-{name}.png"
            paths.append(save_figure(figure, path))
    return paths


def _title(result: Result) -> str:
    return f"{result.model}, {result.folds}, {_known(result.probes)}"


def _known(probes: int) -> str:
    return "no time known" if probes == 0 else f"{probes} times of each kernel known"


_PANELS = (
    ("rmse_log", "RMSE of ln(time)", 1.0),
    ("median_ape", "median absolute error of the time, %", 100.0),
    ("slowdown_mean", "mean slowdown of the chosen device", 1.0),
)


def _models(study: TimeEvaluation, probes: int) -> Any:
    """A panel a score: a dot a model, with what the bootstrap says of it."""
    rows = [
        (result, confidence)
        for result, confidence in zip(study.results, study.confidences, strict=True)
        if result.probes == probes
    ]
    # The best is at the top, where the vertical axis is greatest.
    rows.sort(key=lambda row: (row[0].model not in BASELINES, -(row[0].scores.rmse_log or math.inf)))
    figure = new_figure(12, 1.4 + 0.3 * (len(rows) + 1))
    all_axes = figure.subplots(1, len(_PANELS), sharey=True)
    labels = ["noise floor", *(result.model for result, _ in rows)]
    for axes, (score, heading, scale) in zip(all_axes, _PANELS, strict=True):
        _draw_dot(axes, 0, getattr(study.noise.scores, score), scale, _GREY)
        for place, (result, confidence) in enumerate(rows, 1):
            colour = _GREY if result.model in BASELINES else _BLUE
            interval = confidence.intervals.get(score)
            if interval is not None:
                limits = [scale * interval.low, scale * interval.high]
                axes.plot(limits, [place, place], color=colour, linewidth=2, alpha=0.5)
            _draw_dot(axes, place, getattr(result.scores, score), scale, colour)
        axes.set_xlabel(heading)
        axes.grid(axis="x", color="#dddddd", linewidth=0.7)
        axes.set_axisbelow(True)
    all_axes[0].set_yticks(range(len(labels)), labels)
    all_axes[0].set_ylim(-0.6, len(labels) - 0.4)
    figure.suptitle(
        f"{study.folds}, {_known(probes)}: dots are scores, lines hold "
        f"{100 * SHARE:g} % of bootstrap draws of the applications",
        fontsize=10.5,
    )
    return figure


def _draw_dot(axes: Any, place: int, value: float | None, scale: float, colour: str) -> None:
    if value is not None:
        axes.plot([scale * value], [place], "o", color=colour, markersize=6)


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
    rows = math.ceil(len(result.names) / _COLUMNS)
    figure = new_figure(3.1 * _COLUMNS, 0.9 + 2.9 * rows)
    known = np.isfinite(centre) & np.isfinite(grid.log_time)
    both = np.exp(np.concatenate([centre[known], grid.log_time[known]]))
    limits = (both.min() / 1.5, both.max() * 1.5)
    panels = figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    applications = np.array(grid.profiles.application)
    for axes, name in zip(panels, result.names, strict=False):
        _draw_panel(axes, grid, centre, known & (applications == name)[:, None], limits)
        axes.set_title(f"{name} ({(applications == name).sum()})", fontsize=10)
    for axes in panels[len(result.names) :]:
        axes.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
    figure.supxlabel("measured time, s (grey lines: half and twice as long)")
    averaged = ", geometric mean over the choices of probes" if len(result.outcomes) > 1 else ""
    figure.supylabel(f"predicted time, s{averaged}")
    figure.suptitle(f"{_title(result)}: held-out kernels", x=0.02, ha="left", fontsize=11)
    return figure


def _draw_panel(axes: Any, grid: Grid, centre: Reals, shown: Flags, limits: tuple[float, float]) -> None:
    for factor, width in ((1.0, 1.0), (0.5, 0.6), (2.0, 0.6)):
        axes.plot(limits, [factor * limit for limit in limits], color="#999999", linewidth=width, zorder=1)
    types = [device.type if device.type in _TYPE_STYLES else "other" for device in grid.devices]
    for kind in dict.fromkeys(sorted(types)):
        colour, mark = _TYPE_STYLES.get(kind, _OTHER_STYLE)
        cells = shown & np.array([each == kind for each in types])
        axes.plot(
            np.exp(grid.log_time[cells]),
            np.exp(centre[cells]),
            mark,
            color=colour,
            markersize=3.2,
            alpha=0.55,
            markeredgewidth=0,
            label=kind,
        )
    axes.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")


def _errors(result: Result, grid: Grid) -> Any:
    """Heat map of the errors by application and device, with those over all beside it."""
    _, squares = _means(result, grid.log_time.shape)
    applications = np.array(grid.profiles.application)
    groups = [applications == name for name in result.names] + [np.ones(len(applications), dtype=np.bool_)]
    by_application = np.array([_root_mean(squares[rows]) for rows in groups])
    overall = np.array([_root_mean(squares[rows].reshape(-1, 1)) for rows in groups])
    errors = np.hstack([by_application, overall])
    figure = new_figure(2.2 + 0.62 * errors.shape[1], 1.9 + 0.36 * errors.shape[0])
    axes = figure.subplots()
    largest = np.nanmax(errors)
    image = axes.imshow(errors, cmap="cividis", vmin=0, vmax=largest, aspect="auto")
    for (row, column), value in np.ndenumerate(errors):
        if np.isfinite(value):
            colour = "white" if value < 0.6 * largest else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
    names = [*(device.key for device in grid.devices), "all devices"]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(groups)), [*result.names, "all"])
    axes.axhline(len(groups) - 1.5, color="white", linewidth=3)
    axes.axvline(len(names) - 1.5, color="white", linewidth=3)
    figure.colorbar(image, ax=axes, label="RMSE of ln(time)", pad=0.01)
    figure.suptitle(f"{_title(result)}: errors by application and device", x=0.02, ha="left", fontsize=11)
    return figure


def _root_mean(squares: Reals) -> list[float]:
    """Root of the mean of each column; not a number where nothing is known."""
    known = [column[np.isfinite(column)] for column in squares.T]
    return [math.sqrt(column.mean()) if column.size else math.nan for column in known]


def _coverage(result: Result) -> Any:
    """A bar an application: the share of held-out cells that are within their interval."""
    scored = [(name, each) for name, each in result.applications.items() if each.coverage is not None]
    scored.sort(key=lambda pair: pair[1].coverage or 0.0)
    figure = new_figure(8, 1.4 + 0.34 * len(scored))
    axes = figure.subplots()
    shares = [100 * (each.coverage or 0.0) for _, each in scored]
    axes.barh(range(len(scored)), shares, color=_BLUE, height=0.62)
    axes.axvline(100 * result.level, color=_RED, linewidth=1.5)
    axes.annotate(
        f"wanted: {100 * result.level:g} %",
        xy=(100 * result.level, len(scored) - 0.45),
        ha="right",
        va="bottom",
        fontsize=9,
        color=_RED,
        annotation_clip=False,
    )
    for place, (_, each) in enumerate(scored):
        width = "" if each.width is None else f"width {each.width:.3g}×"
        axes.annotate(width, xy=(101, place), va="center", fontsize=9, annotation_clip=False)
    axes.set_yticks(range(len(scored)), [name for name, _ in scored])
    axes.set_ylim(-0.6, len(scored) - 0.4)
    axes.set_xlim(0, 100)
    axes.set_xlabel("held-out cells whose measured time is within the interval, %")
    figure.suptitle(f"{_title(result)}: intervals", x=0.02, ha="left", fontsize=11)
    return figure
