"""Report of the study of Johnston, Falzon and Milthorpe (2018): the paper's values, ours, and figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.schema import SIZES, size_order
from crosscast.report import figures as draw
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import percent
from crosscast.studies.johnston2018 import (
    FIGURE_3_MAE,
    MAE_LOG,
    MISPREDICTION_S,
    R2,
    RELATIVE_LOG,
    WORST_ERROR,
    WORST_KERNEL,
    Johnston2018,
    published_kernel,
    table_3,
)
from crosscast.studies.johnston2018_forests import NODE_SIZE, NODE_SIZES, STEADY, TREES, TRIED
from crosscast.units import format_count, format_seconds, microseconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN_TRIED = (1, 5, 10, 20, 25, 30)
_SHOWN_TREES = (10, 100, 500, 10_000)
_SHOWN_NODE_SIZES = (1, 9, 14, 20, 30, 50)


def study_report(study: Johnston2018) -> Report:
    """Make the tables of the study."""
    grid = study.runs.grid
    title = (
        f"The published study (Johnston, Falzon and Milthorpe 2018) on {study.label}: "
        f"{len(grid.profiles)} kernels at a size, {len(grid.devices)} devices, "
        f"{format_count(len(study.runs))} runs, {study.runs.features.shape[1]} features and the device"
    )
    return Report(
        [
            Heading(title, 1),
            *_headline(study),
            *_held_out(study),
            *_tuning(study),
            *_omitted(study),
            *_learning(study),
            f"Seed {study.seed}.",
        ]
    )


def _share(value: float | None, digits: int = 1) -> str:
    return "" if value is None else percent(value, digits)


def _real(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _headline(study: Johnston2018) -> list[Part]:
    headline = study.headline
    forest, lookup = headline.forest, headline.lookup
    rows = [
        ("relative error of ln(µs), over points", _share(RELATIVE_LOG), "relative_log_cells"),
        ("relative error of ln(µs), run by run", "", "relative_log_rows"),
        ("the same in real time, over points: mean", "", "mape_cells"),
        ("  median", "", "median_ape_cells"),
        ("the same in real time, run by run: mean", "", "mape_rows"),
        ("  median", "", "median_ape_rows"),
    ]
    lines = [
        (title, paper, *(_share(getattr(errors, name)) for errors in (forest, lookup)))
        for title, paper, name in rows
    ]
    lines += [
        (
            "mean absolute error of ln(time)",
            f"~{MAE_LOG}",
            _real(forest.mae_log, 3),
            _real(lookup.mae_log, 3),
        ),
        ("R², runs that were not trained on", "", _real(forest.r2, 3), _real(lookup.r2, 3)),
        ("R² out of the bag, all runs", _real(R2), _real(headline.oob_r2, 3), ""),
    ]
    caption = "Headline: known measurement points (a random fifth of the runs trained on, the others tested)"
    units = headline.relative_log_by_unit
    sizes = ", ".join(f"{size} {format_seconds(error)}" for size, error in headline.misprediction_s.items())
    return [
        Table(["", "paper", "forest", "lookup table"], lines, caption),
        f"Forest: {headline.trees} trees, {TRIED} features tried, node size {NODE_SIZE}. The lookup table is "
        "the mean of the same point's training runs; it uses no feature and predicts no other kernel.",
        f"A percentage of a logarithm depends on its unit: the same predictions are {_share(units['ns'])} "
        f"off in ln(ns), {_share(units['us'])} in ln(µs) and {_share(units['ms'])} in ln(ms).",
        f"Mean misprediction in real time: {sizes} (paper: {format_seconds(MISPREDICTION_S[0])} to "
        f"{format_seconds(MISPREDICTION_S[1])} by size).",
        f"Worst kernel, in ln(µs): {headline.worst_kernel}, {_share(headline.worst_error)} (paper: "
        f"{WORST_KERNEL}, {_share(WORST_ERROR)}).",
    ]


def _held_out(study: Johnston2018) -> list[Part]:
    held_out, known = study.honest, study.headline
    caption = "The same forest on held-out applications (leave-application-out)"
    if held_out is None:
        return [Heading(caption, 3), "There is one application only: nothing to hold out."]
    rows = [
        (
            "median error in real time, over points",
            _share(known.forest.median_ape_cells),
            _share(held_out.median_ape, 0),
        ),
        ("  mean over applications", "", _share(held_out.median_ape_by_application, 0)),
        ("mean error in real time, over points", _share(known.forest.mape_cells), _share(held_out.mape, 0)),
        ("RMSE of ln(time)", "", _real(held_out.rmse_log)),
        ("fastest device found", _share(known.top1, 0), _share(held_out.top1, 0)),
        ("pairs of devices in the right order", _share(known.pairs_in_order, 0), ""),
        ("slowdown on the device chosen, mean", "", _real(held_out.slowdown_mean)),
        ("  always taking one device instead", "", _real(held_out.always_one_slowdown_mean)),
    ]
    table = Table(["", "known points", "held out"], rows, caption)
    return [table, f"Held out: {held_out.trees} trees a forest, one row a measurement point."]


def _tuning(study: Johnston2018) -> list[Part]:
    tuning = study.tuning
    sizes = ", ".join(
        f"{size}: {100 * tuning.node_size_errors[NODE_SIZES.index(size)]:.1f}" for size in _SHOWN_NODE_SIZES
    )
    by_size = f"Figure 1, by node size (300 trees, {TRIED} tried): {sizes} (paper: least below 15)"
    most_tried = tuning.tried[-1]
    tried = sorted({*(count for count in _SHOWN_TRIED if count <= most_tried), most_tried})
    rows = [
        (
            f"{format_count(trees)} trees",
            *(f"{100 * tuning.heat[tuning.trees.index(trees)][count - 1]:.1f}" for count in tried),
        )
        for trees in _SHOWN_TREES
    ]
    search = tuning.search
    best = search.best
    return [
        Heading("Figures 1 and 2: 100 x mean square error of ln(time) out of the bag", 3),
        by_size,
        Table(["Figure 2", *(f"{count} tried" for count in tried)], rows),
        f"On {format_count(tuning.rows)} runs, ten a point as in the published scripts; {tuning.grown} trees "
        f"grown for each number tried; {_of_more_trees(tuning.grown)}.",
        f"Annealing over all three, {len(search.error)} steps from {search.trees[0]} trees, "
        f"{search.tried[0]} tried, node size {search.node_size[0]} ({100 * search.error[0]:.2f}): least "
        f"{100 * search.error[best]:.2f} with {format_count(search.trees[best])} trees, {search.tried[best]} "
        f"tried, node size {search.node_size[best]} (paper: {TREES}, {TRIED}, {NODE_SIZE}).",
    ]


def _omitted(study: Johnston2018) -> list[Part]:
    rows = []
    for row in study.omitted:
        paper = published_kernel(row.kernel)
        published = [""] * 3 if paper is None else [*map(str, paper)]
        rows.append(
            [
                row.kernel,
                *published,
                str(row.trees),
                str(row.tried),
                f"{100 * row.oob_error:.1f}",
                f"{row.r2:.3f}",
                _share(row.median_ape, 0),
                _real(row.rmse_log),
            ]
        )
    rows.append(_medians(study))
    heads = ("trees", "tried", "error", "trees", "tried", "error", "R²", "true error", "RMSE ln")
    paper_heads = [f"paper: {heads[0]}", *heads[1:3], f"here: {heads[3]}", *heads[4:]]
    preset = study.preset
    caption = "Table III (Algorithm 1): tuned without one kernel, and that kernel's own error"
    return [
        Table(["kernel left out", *paper_heads], rows, caption),
        "'error' is 100 x the mean square error of ln(time) out of the bag of all other kernels, the paper's "
        "'prediction error (%)'; the kernel left out has no part in it. 'true error' is its own: median over "
        "its measurement points, in real time.",
        f"Node size {NODE_SIZE}; {preset.omitted_steps} steps of annealing for each kernel on forests of "
        f"{preset.omitted_trees} trees; {_of_more_trees(preset.omitted_trees)}.",
    ]


def _of_more_trees(grown: int) -> str:
    how = "extrapolated, linear in 1 / trees" if grown > STEADY else "taken to be these, too few for a trend"
    return f"errors of more trees are {how}"


def _medians(study: Johnston2018) -> list[str]:
    of_paper = table_3().values()
    rows = study.omitted
    trees, tried = study.median_parameters()
    return [
        "median",
        f"{statistics.median(row.trees for row in of_paper):g}",
        f"{statistics.median(row.tried for row in of_paper):g}",
        f"{statistics.median(row.error_percent for row in of_paper):.1f}",
        f"{trees:g}",
        f"{tried:g}",
        f"{100 * statistics.median(row.oob_error for row in rows):.1f}",
        f"{statistics.median(row.r2 for row in rows):.3f}",
        _share(statistics.median(row.median_ape for row in rows), 0),
        _real(statistics.median(row.rmse_log for row in rows)),
    ]


def _learning(study: Johnston2018) -> list[Part]:
    rows = [
        (
            str(row.kernels),
            _real(FIGURE_3_MAE.get(row.kernels)),
            _real(row.mae_published),
            _share(row.known_share, 0),
            _real(row.mae_corrected),
        )
        for row in study.learning
    ]
    heads = ["kernels", "paper", "as published", "tested on known points", "corrected"]
    caption = "Figure 3 (Algorithm 2): mean absolute error of ln(time) by kernels trained on"
    return [
        Table(heads, rows, caption),
        "As published, R repeats the drawn kernels along the rows: one row in so many of each is trained on, "
        "and all its other rows are tested on. Corrected, all rows of the drawn kernels are trained on, and "
        "the other kernels tested.",
        f"{study.preset.samples} samples for each number (paper: 500), {study.preset.sample_trees} trees a "
        f"forest (paper: {TREES}).",
    ]


_ERROR_LABEL = "mean square error of ln(time), out of the bag"
_PAPER_KERNELS = ("kmeansPoint", "lud_diagonal")
"""Kernels of Figure 6 that the paper's text names."""


def study_figures(study: Johnston2018) -> dict[str, Figure]:
    """Draw figures 1 to 6, named such as ``figure-1``; figure 5 both as published and in real time."""
    predicted, logs = _array(study.headline.predicted), _array(study.headline.measured)
    measured_s, predicted_s = _known(study)
    return {
        "figure-1": _node_sizes(study),
        "figure-2": _heat_and_search(study),
        "figure-3": _learning_figure(study),
        "figure-4": _scatter(study),
        "figure-5": _errors(
            study,
            np.abs(predicted - logs) / np.abs(logs),
            "Figure 5: relative error of ln(time in µs), known points, as in the paper",
        ),
        "figure-5-real-time": _errors(
            study,
            np.abs(predicted_s / measured_s - 1),
            "The same predictions as in figure 5: relative error of the time itself",
        ),
        "figure-6": _kernels(study),
    }


def _node_sizes(study: Johnston2018) -> Figure:
    figure, axes = draw.one_figure(7, 4.5)
    axes.plot(NODE_SIZES, study.tuning.node_size_errors, "o-", color=draw.BLUE, markersize=4, label="error")
    axes.axvline(
        NODE_SIZE, color=draw.RED, linestyle="--", linewidth=1.2, label=f"the paper's choice, {NODE_SIZE}"
    )
    axes.set_ylim(bottom=0)
    draw.style_axes(axes, x="node size at or below which no split is made (rows)", y=_ERROR_LABEL)
    draw.legend_below(figure, 2)
    return draw.titled(figure, f"Figure 1: error by node size (300 trees, {TRIED} features tried)")


def _heat_and_search(study: Johnston2018) -> Figure:
    figure = draw.new_figure(13, 5)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    tuning = study.tuning
    heat = np.log10(np.array(tuning.heat))
    levels = np.linspace(heat.min(), heat.max(), 22)
    contours = left.contourf(tuning.tried, tuning.trees, heat, levels=levels, cmap=draw.MAP)
    left.set_yscale("log")
    paper = (min(TRIED, tuning.tried[-1]), TREES)
    left.plot(*paper, "*", color="white", markersize=15, markeredgecolor=draw.BLACK)
    left.annotate(
        f"paper: {TREES} trees, {TRIED} tried",
        paper,
        xytext=(-12, 10),
        textcoords="offset points",
        ha="right",
        color="white",
    )
    left.set_xlabel("features tried at a node")
    left.set_ylabel("trees")
    bar = figure.colorbar(contours, ax=left, label=_ERROR_LABEL)
    candidates = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    ticks = [tick for tick in candidates if levels[0] <= np.log10(tick) <= levels[-1]]
    bar.set_ticks(np.log10(ticks).tolist(), labels=[f"{tick:g}" for tick in ticks])
    search = tuning.search
    steps = range(1, len(search.error) + 1)
    right.plot(steps, search.error, "o", color=draw.BLUE, markersize=4, label="a step")
    right.plot(steps, np.minimum.accumulate(search.error), color=draw.RED, label="least so far")
    right.set_yscale("log")
    right.set_xlabel("step of the annealing, over all three parameters")
    right.set_ylabel(_ERROR_LABEL)
    right.legend(frameon=False)
    draw.style_axes(right)
    best = search.best
    return draw.titled(
        figure,
        f"Figure 2: error by trees and features tried (node size {NODE_SIZE}), and a search over all three",
        f"least: {search.trees[best]} trees, {search.tried[best]} tried, node size {search.node_size[best]}",
    )


def _learning_figure(study: Johnston2018) -> Figure:
    figure, axes = draw.one_figure(8, 5)
    rows = study.learning
    kernels = [row.kernels for row in rows]
    corrected = [np.nan if row.mae_corrected is None else row.mae_corrected for row in rows]
    published = [row.mae_published for row in rows]
    axes.plot(kernels, published, "o-", color=draw.BLUE, label="as published: mostly tested on known points")
    axes.plot(kernels, corrected, "s-", color=draw.RED, label="corrected: tested on other kernels alone")
    axes.plot(
        *zip(*FIGURE_3_MAE.items(), strict=True), "x", color=draw.BLACK, markersize=8, label="the paper's"
    )
    axes.set_ylim(bottom=0)
    draw.style_axes(axes, x="kernels trained on", y="mean absolute error of ln(time)")
    draw.legend_below(figure, 2)
    return draw.titled(figure, f"Figure 3: error by kernels trained on ({rows[0].samples} samples each)")


def _scatter(study: Johnston2018) -> Figure:
    measured, known = _known(study)
    shown = {"known points, as in the paper": known}
    if study.honest is not None:
        shown["application held out"] = np.exp(_array(study.honest.predicted))
    sizes = np.array(study.runs.grid.profiles.size)
    all_times = np.stack([measured, *shown.values()])
    figure, panels = draw.panels(len(shown), 2, 6.2, 5.1, shared=True)
    for axes, (title, predicted) in zip(panels, shown.items(), strict=True):
        limits = (float(np.nanmin(all_times)) / 1.3, float(np.nanmax(all_times)) * 1.3)
        draw.diagonal(axes, limits)
        for size, look in draw.looks(sorted(set(sizes.tolist()), key=size_order)).items():
            rows = sizes == size
            draw.points(axes, measured[rows].ravel(), predicted[rows].ravel(), look, size, alpha=0.6)
        axes.set_title(title)
        draw.style_axes(axes, x="measured time")
        for axis in (axes.xaxis, axes.yaxis):
            draw.time_axis(axis, *limits, most=7)
    panels[0].set_ylabel("predicted time (dashed: half and twice as long)")
    draw.legend_below(figure, 4)
    return draw.titled(
        figure, "Figure 4: predicted and measured time, a point for each kernel, size and device"
    )


def _errors(study: Johnston2018, errors: Reals, title: str) -> Figure:
    """Draw a heat map of kernels and devices for each of four sizes, coloured up to the 98th percentile."""
    profiles = study.runs.grid.profiles
    sizes = sorted(set(profiles.size), key=size_order)[: len(SIZES)]
    rows = {size: [row for row, other in enumerate(profiles.size) if other == size] for size in sizes}
    columns = min(2, len(sizes))
    starts = range(0, len(sizes), columns)
    heights = [max(len(rows[size]) for size in sizes[first : first + columns]) for first in starts]
    figure = draw.new_figure(7.5 * columns, 2.5 + 0.24 * sum(heights) + 1.3 * len(heights))
    grid = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
    top = float(np.nanpercentile(100 * errors, 98))
    devices = [device.key for device in study.runs.grid.devices]
    for axes, size in zip(grid.ravel(), sizes, strict=False):
        shown = 100 * errors[rows[size]]
        names = [profiles.kernel[row] for row in rows[size]]
        drawn = draw.heat_map(
            axes, shown, names, devices, write=None, limits=(0, top), reverse=True, rotation=60
        )
        axes.set_title(f"{size}: mean {np.nanmean(shown):.1f} %")
    for axes in grid.ravel()[len(sizes) :]:
        axes.set_visible(False)
    figure.colorbar(drawn, ax=grid, label="relative error (%)", extend="max", shrink=0.6)
    return draw.titled(figure, title)


def _kernels(study: Johnston2018) -> Figure:
    measured, predicted = _known(study)
    held_out = None if study.honest is None else np.exp(_array(study.honest.predicted))
    devices = [device.key for device in study.runs.grid.devices]
    chosen = _four_kernels(study)
    profiles = study.runs.grid.profiles
    figure, panels = draw.panels(len(chosen), 2, 6, 3.6)
    for axes, row in zip(panels, chosen, strict=True):
        hollow: dict[str, Any] = {"markersize": 10, "markerfacecolor": "none"}
        axes.plot(predicted[row], "D", color=draw.BLUE, label="predicted, known point", **hollow)
        axes.plot(measured[row], "s", color=draw.BLACK, markersize=4, label="measured")
        if held_out is not None:
            axes.plot(
                held_out[row], "x", color=draw.RED, markersize=7, label="predicted, application held out"
            )
        axes.set_yscale("log")
        axes.set_ylabel("time")
        draw.time_axis(axes.yaxis, float(np.nanmin(measured[row])), float(np.nanmax(measured[row])), most=6)
        axes.set_title(f"{profiles.kernel[row]} ({profiles.application[row]}, {profiles.size[row]})")
        draw.labels_below(axes, devices, 60, 8)
        draw.style_axes(axes)
    draw.legend_below(figure, 3)
    return draw.titled(figure, "Figure 6: measured and predicted times on the devices")


def _four_kernels(study: Johnston2018) -> list[int]:
    """Rows of four kernels at the greatest size: those that the paper names, then one of each application."""
    profiles = study.runs.grid.profiles
    greatest = max(profiles.size, key=size_order)
    rows = [row for row, size in enumerate(profiles.size) if size == greatest]
    rows.sort(key=lambda row: profiles.kernel[row] not in _PAPER_KERNELS)
    chosen: dict[str, int] = {}
    for row in rows:
        chosen.setdefault(profiles.application[row], row)
    return list(chosen.values())[:4]


def _known(study: Johnston2018) -> tuple[Reals, Reals]:
    """Measured and predicted times of the known cells in seconds, of shape ``(n, d)``."""
    scale = microseconds(1.0)
    return scale * np.exp(_array(study.headline.measured)), scale * np.exp(_array(study.headline.predicted))


def _array(rows: Sequence[Sequence[float]]) -> Reals:
    return np.array(rows, dtype=np.float64)
