"""The figures of Johnston, Falzon and Milthorpe (2018), as pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.files import make_folder
from crosscast.data.schema import SIZES, size_order
from crosscast.errors import InputError
from crosscast.report.figures import FORMATS, new_figure, save_figure
from crosscast.studies.johnston2018 import FIGURE_3_MAE, NODE_SIZES, Johnston2018
from crosscast.studies.johnston2018_forests import NODE_SIZE, TREES, TRIED
from crosscast.units import microseconds

__all__ = ["write_figures"]

# Told apart by people who do not see all colours (Okabe and Ito's palette), and by their marks.
_BLUE, _RED, _GREEN, _ORANGE, _GREY = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#777777"
_SIZE_STYLES = ((_BLUE, "o"), (_GREEN, "s"), (_ORANGE, "^"), (_RED, "D"))
_MAP = "cividis"
_ERROR_LABEL = "mean square error of ln(time), out of the bag"
_PAPER_KERNELS = ("kmeansPoint", "lud_diagonal")
"""Those of Figure 6 that the paper's text names."""


def write_figures(study: Johnston2018, folder: Path, suffix: str = ".png") -> list[Path]:
    """Draw ``figure-1.png`` and so on, of figures 1 to 6; figure 5 both as published and in real time.

    The suffix is ``.png``, ``.svg`` or ``.pdf``; the folder is made if it is not there.
    """
    if suffix not in FORMATS:
        raise InputError(f"figures: expected one of {', '.join(FORMATS)}, found {suffix!r}")
    make_folder("figures", folder)
    drawn: dict[str, Callable[[Any, Johnston2018], None]] = {
        "figure-1": _draw_node_sizes,
        "figure-2": _draw_heat_map,
        "figure-3": _draw_learning,
        "figure-4": _draw_scatter,
        "figure-5": _draw_log_errors,
        "figure-5-real-time": _draw_real_errors,
        "figure-6": _draw_kernels,
    }
    paths = []
    for name, draw in drawn.items():
        # Each picture has a size of its own.
        figure = new_figure(1, 1)
        draw(figure, study)
        paths.append(save_figure(figure, folder / f"{name}{suffix}"))
    return paths


def _draw_node_sizes(figure: Any, study: Johnston2018) -> None:
    figure.set_size_inches(7, 4.5)
    axes = figure.add_subplot()
    axes.plot(NODE_SIZES, study.tuning.node_size_errors, "o-", color=_BLUE, markersize=4)
    axes.axvline(NODE_SIZE, color=_RED, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"the paper's choice, {NODE_SIZE}",
        (NODE_SIZE, 0.9),
        xycoords=("data", "axes fraction"),
        xytext=(6, 0),
        textcoords="offset points",
        color=_RED,
    )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("node size at or below which no split is made (rows)")
    axes.set_ylabel(_ERROR_LABEL)
    axes.set_title(f"Figure 1: error by node size (300 trees, {TRIED} features tried)")
    axes.grid(alpha=0.3)


def _draw_heat_map(figure: Any, study: Johnston2018) -> None:
    figure.set_size_inches(13, 5)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    found = study.tuning
    heat = np.log10(np.array(found.heat))
    levels = np.linspace(heat.min(), heat.max(), 22)
    drawn = left.contourf(found.tried, found.trees, heat, levels=levels, cmap=_MAP)
    left.set_yscale("log")
    left.plot(min(TRIED, found.tried[-1]), TREES, "*", color="white", markersize=15, markeredgecolor="black")
    left.annotate(
        f"paper: {TREES} trees, {TRIED} tried",
        (min(TRIED, found.tried[-1]), TREES),
        xytext=(-12, 10),
        textcoords="offset points",
        ha="right",
        color="white",
    )
    left.set_xlabel("features tried at a node")
    left.set_ylabel("trees")
    left.set_title(f"Figure 2: error by trees and features tried (node size {NODE_SIZE})")
    bar = figure.colorbar(drawn, ax=left, label=_ERROR_LABEL)
    ticks = [
        tick
        for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
        if levels[0] <= np.log10(tick) <= levels[-1]
    ]
    bar.set_ticks(np.log10(ticks).tolist(), labels=[f"{tick:g}" for tick in ticks])
    _draw_search(right, study)


def _draw_search(axes: Any, study: Johnston2018) -> None:
    search = study.tuning.search
    steps = range(1, len(search.error) + 1)
    axes.plot(steps, search.error, "o", color=_BLUE, markersize=4, label="a step")
    axes.plot(steps, np.minimum.accumulate(search.error), color=_RED, label="least so far")
    axes.set_yscale("log")
    axes.set_xlabel("step of the annealing, over all three parameters")
    axes.set_ylabel(_ERROR_LABEL)
    axes.set_title(
        f"Least: {search.trees[search.best]} trees, {search.tried[search.best]} tried, "
        f"node size {search.node_size[search.best]}"
    )
    axes.legend()
    axes.grid(alpha=0.3)


def _draw_learning(figure: Any, study: Johnston2018) -> None:
    figure.set_size_inches(8, 5)
    axes = figure.add_subplot()
    rows = study.learning
    kernels = [row.kernels for row in rows]
    published = [row.mae_published for row in rows]
    corrected = [np.nan if row.mae_corrected is None else row.mae_corrected for row in rows]
    axes.plot(kernels, published, "o-", color=_BLUE, label="as published: mostly tested on known cells")
    axes.plot(kernels, corrected, "s-", color=_RED, label="corrected: tested on other kernels alone")
    axes.plot(*zip(*FIGURE_3_MAE.items(), strict=True), "x", color="black", markersize=8, label="the paper's")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("kernels trained on")
    axes.set_ylabel("mean absolute error of ln(time)")
    axes.set_title(f"Figure 3: error by kernels trained on ({rows[0].samples} samples each)")
    axes.legend()
    axes.grid(alpha=0.3)


def _draw_scatter(figure: Any, study: Johnston2018) -> None:
    panels = [("known cells, as in the paper", _known(study)[1])]
    if study.honest is not None:
        panels.append(("application held out", np.exp(_array(study.honest.predicted))))
    figure.set_size_inches(6.2 * len(panels), 6)
    measured = _known(study)[0]
    sizes = np.array(study.runs.grid.profiles.size)
    all_axes = np.atleast_1d(figure.subplots(1, len(panels), sharex=True, sharey=True))
    for axes, (title, predicted) in zip(all_axes, panels, strict=True):
        limits = (np.nanmin(measured), np.nanmax(measured))
        axes.plot(limits, limits, color="black", linewidth=1)
        for place, size in enumerate(sorted(set(sizes.tolist()), key=size_order)):
            colour, mark = _SIZE_STYLES[place % len(_SIZE_STYLES)]
            rows = sizes == size
            axes.plot(
                measured[rows].ravel(),
                predicted[rows].ravel(),
                mark,
                color=colour,
                markersize=4,
                alpha=0.6,
                markeredgewidth=0,
                label=size,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("measured time (s)")
        axes.set_title(title)
        axes.grid(alpha=0.3)
    all_axes[0].set_ylabel("predicted time (s)")
    all_axes[0].legend(title="problem size")
    figure.suptitle("Figure 4: predicted and measured time, a point for each kernel, size and device")


def _draw_log_errors(figure: Any, study: Johnston2018) -> None:
    predicted, measured = _array(study.headline.predicted), _array(study.headline.measured)
    errors = np.abs(predicted - measured) / np.abs(measured)
    _draw_errors(
        figure, study, errors, "Figure 5: relative error of ln(time in µs), known cells, as in the paper"
    )


def _draw_real_errors(figure: Any, study: Johnston2018) -> None:
    measured, predicted = _known(study)
    errors = np.abs(predicted / measured - 1)
    _draw_errors(
        figure, study, errors, "The same predictions as in figure 5: relative error of the time itself"
    )


def _draw_errors(figure: Any, study: Johnston2018, errors: Reals, title: str) -> None:
    """A heat map of kernels and devices for each of four sizes; colours end at the 98th percentile."""
    profiles = study.runs.grid.profiles
    sizes = sorted(set(profiles.size), key=size_order)[: len(SIZES)]
    rows = {size: [place for place, each in enumerate(profiles.size) if each == size] for size in sizes}
    columns = min(2, len(sizes))
    heights = [
        max(len(rows[size]) for size in sizes[first : first + columns])
        for first in range(0, len(sizes), columns)
    ]
    figure.set_size_inches(7.5 * columns, 2.5 + 0.24 * sum(heights) + 1.3 * len(heights))
    grid = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
    top = float(np.nanpercentile(100 * errors, 98))
    devices = [device.key for device in study.runs.grid.devices]
    drawn = None
    for axes, size in zip(grid.ravel(), sizes, strict=False):
        drawn = axes.imshow(100 * errors[rows[size]], cmap=f"{_MAP}_r", vmin=0, vmax=top, aspect="auto")
        axes.set_xticks(range(len(devices)), devices, rotation=60, ha="right", fontsize=8)
        axes.set_yticks(range(len(rows[size])), [profiles.kernel[place] for place in rows[size]], fontsize=8)
        axes.set_title(f"{size}: mean {np.nanmean(100 * errors[rows[size]]):.1f} %")
    for axes in grid.ravel()[len(sizes) :]:
        axes.set_visible(False)
    figure.colorbar(drawn, ax=grid, label="relative error (%)", extend="max", shrink=0.6)
    figure.suptitle(title)


def _draw_kernels(figure: Any, study: Johnston2018) -> None:
    figure.set_size_inches(12, 8)
    measured, predicted = _known(study)
    held_out = None if study.honest is None else np.exp(_array(study.honest.predicted))
    devices = [device.key for device in study.runs.grid.devices]
    chosen = _four_kernels(study)
    grid = figure.subplots(2, 2, sharex=True, squeeze=False).ravel()
    for axes, place in zip(grid, chosen, strict=False):
        axes.plot(
            predicted[place],
            "D",
            color=_BLUE,
            markersize=10,
            markerfacecolor="none",
            label="predicted, known cell",
        )
        axes.plot(measured[place], "s", color="black", markersize=4, label="measured")
        if held_out is not None:
            axes.plot(held_out[place], "x", color=_RED, markersize=7, label="predicted, application held out")
        axes.set_yscale("log")
        axes.set_ylabel("time (s)")
        profiles = study.runs.grid.profiles
        axes.set_title(f"{profiles.kernel[place]} ({profiles.application[place]}, {profiles.size[place]})")
        axes.set_xticks(range(len(devices)), devices, rotation=60, ha="right", fontsize=8)
        axes.grid(alpha=0.3)
    for axes in grid[len(chosen) :]:
        axes.set_visible(False)
    grid[0].legend(fontsize=8)
    figure.suptitle("Figure 6: measured and predicted times on the devices")


def _four_kernels(study: Johnston2018) -> list[int]:
    """Kernels of the greatest size: those that the paper names, then one of each other application."""
    profiles = study.runs.grid.profiles
    greatest = max(profiles.size, key=size_order)
    places = [place for place, size in enumerate(profiles.size) if size == greatest]
    places.sort(key=lambda place: profiles.kernel[place] not in _PAPER_KERNELS)
    chosen: dict[str, int] = {}
    for place in places:
        chosen.setdefault(profiles.application[place], place)
    return list(chosen.values())[:4]


def _known(study: Johnston2018) -> tuple[Reals, Reals]:
    """Measured and predicted times of the known cells in seconds, of shape ``(n, d)``."""
    scale = microseconds(1.0)
    return scale * np.exp(_array(study.headline.measured)), scale * np.exp(_array(study.headline.predicted))


def _array(rows: Sequence[Sequence[float]]) -> Reals:
    return np.array(rows, dtype=np.float64)
