"""Figures 4 to 15 of Moolchandani et al. 2022, besides those of an evaluation of models of co-running."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from crosscast.arrays import Reals
from crosscast.report import figures as draw
from crosscast.report.corun_evaluation import evaluation_figures
from crosscast.report.numbers import percent
from crosscast.studies.moolchandani2022 import SAME_SIZE, ClusterStudy, CoRunStudy, SizeStudy
from crosscast.studies.moolchandani2022_features import (
    FIGURE_7,
    FIGURE_8,
    SPLITS,
    TIGHT,
    CombinationStudy,
    PathStudy,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS: Mapping[str, draw.Look] = MappingProxyType(
    {
        "decision-tree": draw.Look(draw.BLUE, "o", draw.BLUE),
        "forest": draw.Look(draw.GREEN, "s", draw.GREEN),
        "boosting": draw.Look(draw.RED, "^", draw.RED),
        "linear": draw.Look(draw.ORANGE, "D", draw.ORANGE),
        "mlp": draw.Look(draw.PINK, "v", draw.PINK),
        "svr": draw.Look(draw.GREY, "X", draw.GREY),
    }
)
"""Styles of the paper's six regressors, shared by all figures."""

_CLUSTERS = (
    draw.Look(draw.RED, "o", draw.RED),
    draw.Look(draw.BLUE, "s", draw.BLUE),
    draw.Look(draw.GREEN, "^", draw.GREEN),
)
_FEWEST_COMBINATIONS = 4
"""Fewest combinations for figures of the distribution of errors."""

_HEAT_KINDS = ("forest", "decision-tree", "boosting", "svr")
"""Models of figure 13."""

_TREE = "decision-tree"


def study_figures(study: CoRunStudy) -> dict[str, Figure]:
    """Draw the figures of the evaluation, and of each study, by name."""
    studies, co_runs = study.studies, study.evaluation.co_runs
    about = f"{Path(co_runs.label).name}, {co_runs.mixes[0].device}"
    figures = evaluation_figures(study.evaluation)
    if isinstance(studies.clusters, ClusterStudy):
        mixes = f"{len(studies.clusters.values):,} mixes"
        figures["clusters"] = _clusters_figure(studies.clusters, f"{about}: three clusters of {mixes}")
        figures["silhouettes"] = _silhouettes_figure(
            studies.clusters, f"{about}: how tight clusters of {mixes} are"
        )
    for name, combinations in (("performance", studies.performance), ("power", studies.power)):
        if isinstance(combinations, CombinationStudy):
            figures |= _figures_of_combinations(combinations, name, about)
    if isinstance(studies.performance, CombinationStudy) and _TREE in studies.performance.kinds:
        figures |= _figures_7_and_8(studies.performance, about)
    for name, paths in (("performance", studies.performance_paths), ("power", studies.power_paths)):
        if isinstance(paths, PathStudy):
            title = f"{about}: what decides {paths.quantity} in a decision tree"
            figures[f"{name}-path-shares"] = _path_shares_figure(paths, title)
            figures[f"{name}-path-times"] = _path_times_figure(paths, title)
    if isinstance(studies.sizes, SizeStudy):
        figures["sizes"] = _sizes_figure(
            studies.sizes, f"{about}: mixes of several sizes, leave-benchmark-out"
        )
    return figures


def _figures_of_combinations(study: CombinationStudy, name: str, about: str) -> dict[str, Figure]:
    title = f"{about}: {study.quantity} of mixes of {study.members} by features"
    figures = {}
    chosen = [kind for kind in _HEAT_KINDS if kind in study.kinds] or study.kinds
    columns = [study.kinds.index(kind) for kind in chosen]
    for split in SPLITS:
        figures[f"{name}-strip-{split}"] = _strip_figure(study, split, f"{title}, {split}")
    figures[f"{name}-heat"] = _heat_figure(
        100 * study.mape(SPLITS[0])[:, columns], study.names, chosen, f"{title}, {SPLITS[0]}"
    )
    if len(study.names) >= _FEWEST_COMBINATIONS:
        figures[f"{name}-violins"] = _violins_figure(study, f"{title}, {SPLITS[0]}")
        figures[f"{name}-split-violins"] = _split_violins_figure(study, title)
    return figures


def _figures_7_and_8(study: CombinationStudy, about: str) -> dict[str, Figure]:
    """Draw figures 7 and 8 for the decision tree."""
    column = study.kinds.index(_TREE)
    errors = 100 * study.mape(SPLITS[0])[:, column]
    by_features = {
        frozenset(combination.features): float(error)
        for combination, error in zip(study.combinations, errors, strict=True)
    }
    title = f"{about}: {study.quantity} by a decision tree, {SPLITS[0]}"
    figures = {}
    schemes = {
        scheme.name: by_features[frozenset(scheme.features)]
        for scheme in FIGURE_7
        if frozenset(scheme.features) in by_features
    }
    if len(schemes) > 1:
        figures["performance-schemes"] = _bars_figure(schemes, "MAPE, %", title)
    grid = np.array([[by_features.get(frozenset(cell.features), np.nan) for cell in row] for row in FIGURE_8])
    if np.isfinite(grid).sum() >= _FEWEST_COMBINATIONS:
        columns = ["neither time", "CPU_time", "GPU_time", "both times"]
        rows = [row[0].name for row in FIGURE_8]
        figures["performance-grid"] = _heat_figure(grid, rows, columns, title)
    return figures


LEAST = 0.1
"""Lower end of the axis of errors, in per cent; smaller errors are drawn at it."""

_STEPS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))
"""Candidate ticks within an order of magnitude, from coarse to fine."""

_FEWEST = 4
"""Fewest ticks of an axis."""


def error_scale(axes: Axes, errors: Iterable[float]) -> None:
    """Set limits and ticks of an axis on which decimal logarithms of errors are drawn."""
    shown = [max(error, LEAST) for error in errors if error == error]
    low, high = math.log10(min(shown)), math.log10(max(shown))
    room = max(0.06 * (high - low), 0.05)
    ticks: list[float] = []
    for steps in _STEPS:
        if len(ticks) < _FEWEST:
            candidates = [
                step * 10.0**power
                for power in range(math.floor(low) - 1, math.ceil(high) + 1)
                for step in steps
            ]
            ticks = [tick for tick in candidates if low - room <= math.log10(tick) <= high + room]
    if len(ticks) < _FEWEST:
        # Over such a short range, a logarithmic axis is nearly linear.
        from matplotlib.ticker import MaxNLocator

        linear = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(10**low, 10**high)
        ticks = [tick for tick in linear if tick > 0]
    axes.set_yticks([math.log10(tick) for tick in ticks], [f"{tick:.4g}" for tick in ticks])
    axes.set_ylim(low - room, high + room)


def _clusters_figure(study: ClusterStudy, title: str) -> Figure:
    """Draw fairness over each other feature, with the three clusters in colours."""
    count = len(study.features) - 1
    figure, panels = draw.panels(count, count, 4.2, 3.9, sharey=True)
    for column, axes in enumerate(panels, start=1):
        for label, (look, cluster) in enumerate(zip(_CLUSTERS, study.clusters, strict=True)):
            values = study.values[study.labels == label]
            about = f"{cluster.mixes:,} mixes, {percent(cluster.share)} of those with {cluster.application}"
            draw.points(axes, values[:, column], values[:, 0], look, about, alpha=0.55)
        draw.style_axes(axes, x=study.features[column])
    panels[0].set_ylabel("fairness of the mix")
    draw.legend_below(figure, min(count, 2))
    return draw.titled(figure, title)


def _silhouettes_figure(study: ClusterStudy, title: str) -> Figure:
    """Draw the silhouette of each mix among three clusters, and the mean by number of clusters."""
    figure = draw.new_figure(9.5, 4.4)
    silhouettes, means = figure.subplots(1, 2)
    start = 0
    gap = max(1, len(study.values) // 50)
    for label, look in enumerate(_CLUSTERS):
        values = np.sort(study.silhouettes[study.labels == label])
        heights = np.arange(start, start + len(values))
        silhouettes.fill_betweenx(heights, 0, values, color=look.colour, linewidth=0, step="mid")
        start += len(values) + gap
    mean = study.scores[len(_CLUSTERS)]
    silhouettes.axvline(mean, color=draw.BLACK, linestyle="--", linewidth=1)
    silhouettes.set_yticks([])
    silhouettes.set_ylabel("mixes, by cluster")
    silhouettes.set_xlabel(f"silhouette of each mix among three clusters (dashed: mean {mean:.2f})")
    colours = [draw.BLUE if count == study.best else draw.GREY for count in study.scores]
    drawn = means.bar(list(study.scores), list(study.scores.values()), color=colours, width=0.62, zorder=2)
    means.bar_label(drawn, fmt="{:.2f}", fontsize=8.5, padding=1)
    means.axhline(TIGHT, color=draw.BLACK, linestyle=":", linewidth=1)
    means.set_xticks(list(study.scores))
    means.set_ylim(min(0, *study.scores.values()), max(0.85, 1.1 * max(study.scores.values())))
    means.set_xlabel(f"number of clusters (dotted: above {TIGHT:g} tightly bound)")
    means.set_ylabel("mean silhouette")
    for axes in (silhouettes, means):
        draw.style_axes(axes)
    return draw.titled(figure, title)


def _bars_figure(values: Mapping[str, float], label: str, title: str) -> Figure:
    """Draw a bar with its number for each value, the first on top (figures 7 and 9)."""
    figure, axes = draw.one_figure(7, 1.7 + 0.42 * len(values))
    draw.bars(axes, values, write=lambda value: f"{value:.3g}")
    axes.set_xlabel(label)
    return draw.titled(figure, title)


def _heat_figure(values: Reals, rows: Sequence[str], columns: Sequence[str], *sentences: str) -> Figure:
    """Draw a heat map of errors; NaN leaves a cell empty."""
    figure = draw.new_figure(3.0 + 0.075 * max(map(len, rows)) + 1.0 * len(columns), 2.2 + 0.3 * len(rows))
    draw.heat_map(
        figure.subplots(),
        values,
        rows,
        columns,
        write=lambda value: (
            f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
        ),
        limits=draw.robust_limits(values),
        label="MAPE, %",
        reverse=True,
        rotation=30,
    )
    return draw.titled(figure, *sentences)


_APART = 0.07
_ERROR_LABEL = "MAPE, % (logarithmic)"


def _logs(errors: Reals) -> Reals:
    """Decimal logarithms of the known errors."""
    return np.log10(np.maximum(errors[np.isfinite(errors)], LEAST))


def _strip_figure(study: CombinationStudy, split: str, title: str) -> Figure:
    """Draw a mark for each model above each combination."""
    values = 100 * study.mape(split)
    figure, axes = draw.one_figure(3.2 + 0.34 * len(study.names), 5.4)
    for column, kind in enumerate(study.kinds):
        positions = np.arange(len(values)) + _APART * (column - (len(study.kinds) - 1) / 2)
        logs = np.log10(np.maximum(values[:, column], LEAST))
        draw.points(
            axes, positions, logs, _KINDS[kind], kind, size=6, markeredgecolor="white", markeredgewidth=0.5
        )
    error_scale(axes, values.ravel().tolist())
    draw.labels_below(axes, study.names, 60, 8.5)
    axes.set_xlim(-0.6, len(values) - 0.4)
    draw.style_axes(axes, y=_ERROR_LABEL)
    draw.legend_below(figure, 3 if len(values) < 10 else 6)
    return draw.titled(figure, title)


def _violins_figure(study: CombinationStudy, title: str) -> Figure:
    """Draw a panel for each model, with a violin of the combinations' errors for each benchmark."""
    groups = {name: 100 * errors for name, errors in study.by_benchmark().items()}
    names = list(groups)
    figure, panels = draw.panels(
        len(study.kinds), 2, max(4.5, 1.2 + 0.3 * len(names)), 2.9, sharex=True, sharey=True
    )
    for column, (kind, axes) in enumerate(zip(study.kinds, panels, strict=True)):
        logs = [_logs(groups[name][:, column]) for name in names]
        positions = [position for position, values in enumerate(logs) if len(values)]
        _violins(axes, [logs[position] for position in positions], positions, _KINDS[kind].colour)
        axes.set_title(kind, fontsize=9.5, loc="left")
        draw.labels_below(axes, names, 60, 8)
        draw.style_axes(axes)
    error_scale(panels[0], np.concatenate([values.ravel() for values in groups.values()]).tolist())
    for axes in panels[::2]:
        axes.set_ylabel(_ERROR_LABEL, fontsize=9)
    return draw.titled(figure, title, f"lines: medians of the {len(study.names)} combinations")


Side = Literal["low", "both", "high"]


def _violins(
    axes: Axes,
    logs: Sequence[Reals],
    positions: Sequence[int],
    colour: str,
    side: Side = "both",
) -> Artist:
    """Draw violins with a line at each median; return one of them for a legend."""
    count = len(axes.collections)
    axes.violinplot(logs, positions, widths=0.85, side=side, showextrema=False)
    bodies = axes.collections[count:]
    for body in bodies:
        body.set(facecolor=colour, alpha=0.5, edgecolor=colour, linewidth=0.8)
    shift = {"low": -0.08, "both": 0.0, "high": 0.08}[side]
    medians = [float(np.median(values)) for values in logs]
    axes.plot(np.array(positions) + shift, medians, "_", color="black", markersize=9, markeredgewidth=1.5)
    return bodies[0]


_SIDES: tuple[tuple[Side, str], ...] = (("low", draw.BLUE), ("high", draw.ORANGE))


def _split_violins_figure(study: CombinationStudy, title: str) -> Figure:
    """Draw a violin for each model: on the left with benchmarks left out, on the right with random mixes."""
    figure, axes = draw.one_figure(8.5, 4.8)
    errors: list[float] = []
    handles = {}
    for split, (side, colour), where in zip(SPLITS, _SIDES, ("left", "right"), strict=True):
        values = 100 * study.mape(split)
        errors += values.ravel().tolist()
        logs = [_logs(column) for column in values.T]
        handles[f"{split} ({where})"] = _violins(axes, logs, range(len(study.kinds)), colour, side)
    error_scale(axes, errors)
    axes.set_xticks(range(len(study.kinds)), list(study.kinds))
    draw.style_axes(axes, y=_ERROR_LABEL)
    draw.legend_below(figure, 2, handles)
    return draw.titled(figure, title, f"lines: medians of the {len(study.names)} combinations")


_MOST = 25
_CIRCLES, _COLUMNS = 8, 4


def _path_shares_figure(study: PathStudy, title: str) -> Figure:
    """Draw a bar for each feature: the share of mixes with it on their path (figure 9)."""
    order = sorted(range(len(study.features)), key=lambda column: -float(study.share[column]))[:_MOST]
    shares = {study.features[column]: 100 * float(study.share[column]) for column in order}
    hidden = len(study.features) - len(shares)
    more = f"; {hidden} more features not shown" if hidden else ""
    return _bars_figure(shares, "mixes on whose path it is, %", title + more)


def _path_times_figure(study: PathStudy, title: str) -> Figure:
    """Draw a circle of mixes for each feature; the radius is its number of splits on a mix's path."""
    chosen = study.times[:, :_CIRCLES]
    # Mixes with similar paths are next to each other.
    order = np.lexsort(chosen.T[::-1])
    angles = np.linspace(0, 2 * np.pi, len(chosen) + 1)
    rows = -(-chosen.shape[1] // _COLUMNS)
    figure = draw.new_figure(2.6 * _COLUMNS, 0.9 + 2.8 * rows)
    most = max(1, int(chosen.max()))
    for column in range(chosen.shape[1]):
        axes = figure.add_subplot(rows, _COLUMNS, column + 1, projection="polar")
        values = chosen[order, column]
        axes.fill_between(angles, 0, np.append(values, values[-1]), step="post", color=draw.BLUE, linewidth=0)
        axes.set_title(study.features[column], fontsize=9.5)
        axes.set_ylim(0, most)
        axes.set_yticks(range(1, most + 1), [str(count) for count in range(1, most + 1)], fontsize=7)
        axes.set_xticks([])
        axes.grid(color="#bbbbbb", linewidth=0.6)
        axes.spines["polar"].set_color("#bbbbbb")
    hidden = study.times.shape[1] - chosen.shape[1]
    return draw.titled(
        figure,
        title + (f"; {hidden} more features not shown" if hidden else ""),
        f"around each circle the same {len(chosen):,} mixes; radius: splits at the feature on its path",
    )


def _sizes_figure(study: SizeStudy, title: str) -> Figure:
    """Draw a panel for each quantity, with a line for each model and training set."""
    quantities = list(dict.fromkeys(result.quantity for result in study.results))
    figure = draw.new_figure(2.2 + 3.1 * len(quantities), 4.6)
    panels = figure.subplots(1, len(quantities), squeeze=False)[0]
    models = list(dict.fromkeys(result.model for result in study.results))
    training_sets = list(dict.fromkeys(result.fitted_to for result in study.results))
    lines: dict[str, Artist] = {}
    for quantity, axes in zip(quantities, panels, strict=True):
        for model in models:
            for fitted_to in training_sets:
                points = [
                    (result.mix_size, 100 * result.mape)
                    for result in study.results
                    if (result.quantity, result.model, result.fitted_to) == (quantity, model, fitted_to)
                ]
                if not points:
                    continue
                (line,) = axes.plot(
                    *zip(*points, strict=True),
                    marker="os^"[training_sets.index(fitted_to) % 3],
                    linestyle="-" if fitted_to == SAME_SIZE else "--",
                    color=draw.COLOURS[models.index(model) % len(draw.COLOURS)],
                )
                lines.setdefault(f"{model}, {fitted_to}", line)
        axes.set_xticks(study.sizes)
        axes.set_xlim(study.sizes[0] - 0.3, study.sizes[-1] + 0.3)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("applications at the same time")
        axes.set_title(quantity, fontsize=9.5, loc="left")
        draw.style_axes(axes)
    panels[0].set_ylabel("MAPE, %")
    draw.legend_below(figure, 2, lines)
    return draw.titled(figure, title)
