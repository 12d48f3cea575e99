"""Pictures of an evaluation of models of co-running (Moolchandani et al. 2022, figures 4 to 15)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.files import make_folder
from crosscast.evaluation.corun_scores import CoRunResult
from crosscast.report.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    heading,
    legend_below,
    new_figure,
    save_figure,
    tidy,
)
from crosscast.report.numbers import NONE, percent
from crosscast.studies.moolchandani2022 import OWN, ClusterStudy, CoRunStudies, CoRunStudy, SizeStudy
from crosscast.studies.moolchandani2022_features import SPLITS, CombinationStudy, PathStudy
from crosscast.studies.moolchandani2022_published import FIGURE_7, FIGURE_8, TIGHT

__all__ = ["error_scale", "write_corun_figures"]

KIND_STYLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "decision-tree": (BLUE, "o"),
        "forest": (GREEN, "s"),
        "boosting": (RED, "^"),
        "linear": (ORANGE, "D"),
        "mlp": (PINK, "v"),
        "svr": (GREY, "X"),
    }
)
"""Colours of the six regressors of the paper, the same in all pictures, and marks for those who see none."""

CLUSTER_COLOURS = (RED, BLUE, GREEN)

_FEWEST_COMBINATIONS = 4
"""From so many on, their errors have a distribution."""

_QUANTITIES = ("time", "slowdown", "power")
_HEAT_KINDS = ("forest", "decision-tree", "boosting", "svr")
"""Models of figure 13."""

_TREE = "decision-tree"


def write_corun_figures(study: CoRunStudy, folder: Path) -> list[Path]:
    """Draw what was left out, and the pictures of each study that was made."""
    make_folder("figures", folder)
    first = study.evaluation.co_runs.bags[0]
    about = f"{Path(study.evaluation.co_runs.label).name}, {first.device}"
    figures = _left_out(study, about)
    if study.studies is not None:
        figures |= _of_studies(study.studies, about)
    return [save_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _left_out(study: CoRunStudy, about: str) -> dict[str, Any]:
    figures = {}
    for quantity in _QUANTITIES:
        whole = [
            each
            for each in study.evaluation.results
            if each.quantity == quantity and each.bag_size is None and len(each.by_group or {}) > 1
        ]
        models = [each for each in whole if not each.baseline]
        if models:
            best = min(models, key=_mape)
            rivals = [each for each in whole if each.baseline and each.probes == best.probes]
            rival = min(rivals, key=_mape) if rivals else None
            title = f"{about}: {quantity}, {study.evaluation.split}"
            figures[f"left-out-{quantity}"] = left_out_figure(best, rival, title)
    return figures


def _mape(result: CoRunResult) -> float:
    return np.inf if result.mape is None else result.mape


def _of_studies(studies: CoRunStudies, about: str) -> dict[str, Any]:
    figures = {}
    if isinstance(studies.clusters, ClusterStudy):
        bags = f"{len(studies.clusters.values):,} bags"
        figures["clusters"] = clusters_figure(studies.clusters, f"{about}: three clusters of {bags}")
        figures["silhouettes"] = silhouettes_figure(
            studies.clusters, f"{about}: how tight clusters of {bags} are"
        )
    for name, combinations in (("performance", studies.performance), ("power", studies.power)):
        if isinstance(combinations, CombinationStudy):
            figures |= _of_combinations(combinations, name, about)
    if isinstance(studies.performance, CombinationStudy) and _TREE in studies.performance.kinds:
        figures |= _of_performance(studies.performance, about)
    for name, paths in (("performance", studies.performance_paths), ("power", studies.power_paths)):
        if isinstance(paths, PathStudy):
            title = f"{about}: what decides {paths.quantity} in a decision tree"
            figures[f"{name}-path-shares"] = path_shares_figure(paths, title)
            figures[f"{name}-path-times"] = path_times_figure(paths, title)
    if isinstance(studies.sizes, SizeStudy):
        figures["sizes"] = sizes_figure(studies.sizes, f"{about}: bags of several sizes, leave-benchmark-out")
    return figures


def _of_combinations(study: CombinationStudy, name: str, about: str) -> dict[str, Any]:
    title = f"{about}: {study.quantity} of bags of {study.members} by features"
    figures = {}
    chosen = [kind for kind in _HEAT_KINDS if kind in study.kinds] or study.kinds
    columns = [study.kinds.index(kind) for kind in chosen]
    for split in SPLITS:
        figures[f"{name}-strip-{split}"] = strip_figure(study, split, f"{title}, {split}")
    figures[f"{name}-heat"] = heat_figure(
        100 * study.mape(SPLITS[0])[:, columns], study.names, chosen, f"{title}, {SPLITS[0]}"
    )
    if len(study.names) >= _FEWEST_COMBINATIONS:
        figures[f"{name}-violins"] = violins_figure(study, f"{title}, {SPLITS[0]}")
        figures[f"{name}-split-violins"] = split_violins_figure(study, title)
    return figures


def _of_performance(study: CombinationStudy, about: str) -> dict[str, Any]:
    """Figures 7 and 8, of the decision tree."""
    column = study.kinds.index(_TREE)
    errors = 100 * study.mape(SPLITS[0])[:, column]
    by_features = {
        frozenset(each.features): float(error) for each, error in zip(study.combinations, errors, strict=True)
    }
    title = f"{about}: {study.quantity} by a decision tree, {SPLITS[0]}"
    figures = {}
    schemes = {
        each.name: by_features[frozenset(each.features)]
        for each in FIGURE_7
        if frozenset(each.features) in by_features
    }
    if len(schemes) > 1:
        figures["performance-schemes"] = bars_figure(
            schemes, "MAPE, %", title, limit=max(schemes.values()), digits=1
        )
    grid = np.array([[by_features.get(frozenset(each.features), np.nan) for each in row] for row in FIGURE_8])
    if np.isfinite(grid).sum() >= _FEWEST_COMBINATIONS:
        columns = ["neither time", "CPU_time", "GPU_time", "both times"]
        rows = [row[0].name for row in FIGURE_8]
        figures["performance-grid"] = heat_figure(grid, rows, columns, title)
    return figures


LEAST = 0.1
"""Errors below it, in per cent, are drawn there: they are all as good as none."""

_STEPS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))
"""Where ticks may be within an order of magnitude, from coarse to fine."""

_FEWEST = 4
"""Ticks that are enough."""


def error_scale(axes: Any, errors: Iterable[float]) -> None:
    """Ticks for the ordinate of errors whose decimal logarithms are drawn."""
    shown = [max(error, LEAST) for error in errors if error == error]
    low, high = math.log10(min(shown)), math.log10(max(shown))
    room = max(0.06 * (high - low), 0.05)
    ticks: list[float] = []
    for steps in _STEPS:
        if len(ticks) < _FEWEST:
            every = [
                step * 10.0**power
                for power in range(math.floor(low) - 1, math.ceil(high) + 1)
                for step in steps
            ]
            ticks = [tick for tick in every if low - room <= math.log10(tick) <= high + room]
    if len(ticks) < _FEWEST:
        # Over so little, a logarithm is nearly straight.
        from matplotlib.ticker import MaxNLocator

        places = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(10**low, 10**high)
        ticks = [tick for tick in places if tick > 0]
    axes.set_yticks([math.log10(tick) for tick in ticks], [f"{tick:.4g}" for tick in ticks])
    axes.set_ylim(low - room, high + room)


_ROOM = 0.08
"""Share of the axis that a number takes."""


def left_out_figure(best: CoRunResult, rival: CoRunResult | None, title: str) -> Any:
    """A bar for each group that was left out, and a mark for a baseline."""
    groups = {name: 100 * error for name, error in (best.by_group or {}).items()}
    names = sorted(groups, key=lambda name: (-groups[name], name))
    figure = new_figure(8, 2.0 + 0.28 * len(names))
    axes = figure.subplots()
    values = [groups[name] for name in names]
    axes.barh(range(len(names)), values, color=BLUE, height=0.62, zorder=2, label=best.model)
    marks = [float("nan")] * len(names)
    if rival is not None:
        marks = [100 * (rival.by_group or {}).get(name, float("nan")) for name in names]
        axes.plot(
            marks,
            range(len(names)),
            "D",
            color=GREY,
            markersize=6,
            markeredgecolor="white",
            zorder=3,
            label=f"{rival.model} (baseline)",
            clip_on=False,
        )
    limit = 1.15 * max(each for each in (*values, *marks) if each == each)
    for place, (value, mark) in enumerate(zip(values, marks, strict=True)):
        # Within its bar if it is long enough; else beyond, unless it would be over the mark.
        fits = value > _ROOM * limit
        hidden = value - _ROOM * limit / 4 < mark < value + _ROOM * limit
        end = (mark if hidden else value) + 0.015 * limit
        at, colour = (0.01 * limit, "white") if fits else (end, "black")
        axes.text(at, place, f"{value:.1f}", va="center", fontsize=8.5, color=colour)
    if best.mape is not None:
        axes.axvline(100 * best.mape, color="black", linewidth=1, linestyle="--", zorder=4, label="its mean")
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_xlim(0, limit)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("MAPE where it is left out, %")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 3)
    heading(figure, title)
    return figure


_MARKS = ("o", "s", "^")


def clusters_figure(found: ClusterStudy, title: str) -> Any:
    """Fairness over each other feature, the three clusters in colours."""
    panels = len(found.features) - 1
    figure = new_figure(1.5 + 4.2 * panels, 4.8)
    for place, axes in enumerate(figure.subplots(1, panels, sharey=True, squeeze=False)[0], start=1):
        for label, each in enumerate(found.clusters):
            here = found.values[found.labels == label]
            axes.scatter(
                here[:, place],
                here[:, 0],
                s=16,
                marker=_MARKS[label],
                color=CLUSTER_COLOURS[label],
                alpha=0.55,
                linewidths=0,
                label=f"{each.bags:,} bags, {percent(each.share)} of those with {each.application}",
            )
        axes.set_xlabel(found.features[place])
        tidy(axes)
    figure.axes[0].set_ylabel("fairness of the bag")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend_below(figure, handles, labels, 2 if panels > 1 else 1)
    heading(figure, title)
    return figure


def silhouettes_figure(found: ClusterStudy, title: str) -> Any:
    """The silhouette of each bag among three clusters, and the mean by their number."""
    figure = new_figure(9.5, 4.4)
    each, means = figure.subplots(1, 2)
    start = 0
    gap = max(1, len(found.values) // 50)
    for label, colour in enumerate(CLUSTER_COLOURS):
        values = np.sort(found.silhouettes[found.labels == label])
        places = np.arange(start, start + len(values))
        each.fill_betweenx(places, 0, values, color=colour, linewidth=0, step="mid")
        start += len(values) + gap
    mean = found.scores[len(CLUSTER_COLOURS)]
    each.axvline(mean, color="black", linestyle="--", linewidth=1)
    side = "right" if mean > 0.5 * (found.silhouettes.max() + found.silhouettes.min()) else "left"
    shift = -4 if side == "right" else 4
    each.annotate(
        f"mean {mean:.2f}",
        (mean, 1),
        (shift, -10),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha=side,
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
    )
    each.set_yticks([])
    each.set_ylabel("bags, by cluster")
    each.set_xlabel("silhouette of each bag among three clusters")
    counts = list(found.scores)
    scores = [found.scores[count] for count in counts]
    colours = [BLUE if count == found.best else GREY for count in counts]
    means.bar(counts, scores, color=colours, width=0.62, zorder=2)
    for count, score in zip(counts, scores, strict=True):
        means.text(count, max(score, 0) + 0.01, f"{score:.2f}", ha="center", va="bottom", fontsize=8.5)
    means.axhline(TIGHT, color="black", linestyle=":", linewidth=1)
    means.text(
        counts[-1] + 0.5,
        TIGHT + 0.01,
        f"above {TIGHT:g}: tightly bound",
        ha="right",
        va="bottom",
        fontsize=8.5,
    )
    means.set_xticks(counts)
    means.set_ylim(min(0, *scores), max(0.85, 1.1 * max(scores)))
    means.set_xlabel("number of clusters")
    means.set_ylabel("mean silhouette")
    for axes in (each, means):
        tidy(axes)
    heading(figure, title)
    return figure


def bars_figure(values: Mapping[str, float], label: str, title: str, *, limit: float, digits: int) -> Any:
    """A bar for each value, with its number, down from the first (figures 7 and 9)."""
    figure = new_figure(7, 1.7 + 0.42 * len(values))
    axes = figure.subplots()
    axes.barh(range(len(values)), list(values.values()), color=BLUE, height=0.62, zorder=2)
    for place, value in enumerate(values.values()):
        axes.text(value + 0.01 * limit, place, f"{value:.{digits}f}", va="center", fontsize=9)
    axes.set_yticks(range(len(values)), list(values), fontsize=9)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xlim(0, 1.1 * limit)
    axes.set_xlabel(label)
    tidy(axes)
    axes.grid(visible=False, axis="y")
    heading(figure, title)
    return figure


_LIGHT = 0.45
"""Share of the colours up to which they are too light for white numbers."""


def heat_figure(values: Reals, rows: Sequence[str], columns: Sequence[str], *sentences: str) -> Any:
    """A cell for each error, darker for larger ones; one that is not a number is empty."""
    widest = max(map(len, rows))
    figure = new_figure(3.0 + 0.075 * widest + 1.0 * len(columns), 2.2 + 0.3 * len(rows))
    axes = figure.subplots()
    known = values[np.isfinite(values)]
    low = float(known.min())
    # What is far off would make all the rest look alike.
    high = max(min(float(known.max()), 3 * float(np.median(known))), low + 1e-3)
    image = axes.imshow(values, cmap="cividis_r", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            axes.text(column, row, NONE, ha="center", va="center", fontsize=9, color="#777777")
            continue
        colour = "black" if (value - low) / (high - low) < _LIGHT else "white"
        text = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    axes.spines[:].set_visible(False)
    beyond = "max" if known.max() > high else "neither"
    figure.colorbar(image, ax=axes, label="MAPE, %", pad=0.02, extend=beyond).outline.set_visible(False)
    heading(figure, *sentences)
    return figure


_APART = 0.07


def strip_figure(study: CombinationStudy, split: str, title: str) -> Any:
    """A mark for each model above each combination."""
    values = 100 * study.mape(split)
    figure = new_figure(3.2 + 0.34 * len(study.names), 5.4)
    axes = figure.subplots()
    for place, kind in enumerate(study.kinds):
        colour, mark = KIND_STYLES[kind]
        axes.plot(
            np.arange(len(values)) + _APART * (place - (len(study.kinds) - 1) / 2),
            np.log10(np.maximum(values[:, place], LEAST)),
            mark,
            color=colour,
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.5,
            label=kind,
            zorder=3,
        )
    error_scale(axes, values.ravel().tolist())
    axes.set_xticks(
        range(len(values)), study.names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8.5
    )
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_ylabel("MAPE, % (logarithmic)")
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 3 if len(values) < 10 else 6)
    heading(figure, title)
    return figure


def violins_figure(study: CombinationStudy, title: str) -> Any:
    """A panel a model, and in it a violin a benchmark, as wide as combinations have that error."""
    groups = {name: 100 * errors for name, errors in study.by_benchmark().items()}
    names = list(groups)
    rows = -(-len(study.kinds) // 2)
    figure = new_figure(max(9.0, 2.5 + 0.6 * len(names)), 0.8 + 2.9 * rows)
    panels = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(study.kinds) :]:
        axes.set_visible(False)
    every = np.concatenate([values.ravel() for values in groups.values()])
    for place, (kind, axes) in enumerate(zip(study.kinds, panels, strict=False)):
        logs = [np.log10(np.maximum(_known(groups[name][:, place]), LEAST)) for name in names]
        drawn = [at for at, values in enumerate(logs) if len(values)]
        _violins(axes, [logs[at] for at in drawn], drawn, KIND_STYLES[kind][0])
        axes.set_title(kind, fontsize=9.5, loc="left")
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
        tidy(axes)
    error_scale(panels[0], _known(every).tolist())
    for axes in panels[::2]:
        axes.set_ylabel("MAPE, % (logarithmic)", fontsize=9)
    heading(figure, title, f"lines: medians of the {len(study.names)} combinations")
    return figure


def _known(values: Reals) -> Reals:
    return values[np.isfinite(values)]


def _violins(axes: Any, logs: Sequence[Reals], places: Sequence[int], colour: str, side: str = "both") -> Any:
    """Violins with a line at each median; one of them for a legend."""
    parts = axes.violinplot(logs, places, widths=0.85, side=side, showextrema=False)
    for body in parts["bodies"]:
        body.set(facecolor=colour, alpha=0.5, edgecolor=colour, linewidth=0.8)
    shift = {"low": -0.08, "both": 0.0, "high": 0.08}[side]
    medians = [float(np.median(each)) for each in logs]
    axes.plot(np.array(places) + shift, medians, "_", color="black", markersize=9, markeredgewidth=1.5)
    return parts["bodies"][0]


_SIDES = (("low", BLUE), ("high", ORANGE))


def split_violins_figure(study: CombinationStudy, title: str) -> Any:
    """A violin a model: on the left benchmarks are left out, on the right a fifth of the bags at random."""
    figure = new_figure(8.5, 4.8)
    axes = figure.subplots()
    every: list[float] = []
    handles = []
    for split, (side, colour) in zip(SPLITS, _SIDES, strict=True):
        values = 100 * study.mape(split)
        every += values.ravel().tolist()
        logs = [np.log10(np.maximum(_known(column), LEAST)) for column in values.T]
        handles.append(_violins(axes, logs, range(len(study.kinds)), colour, side))
    error_scale(axes, every)
    axes.set_xticks(range(len(study.kinds)), list(study.kinds))
    axes.set_ylabel("MAPE, % (logarithmic)")
    tidy(axes)
    legend_below(figure, handles, [f"{SPLITS[0]} (left)", f"{SPLITS[1]} (right)"], 2)
    heading(figure, title, f"lines: medians of the {len(study.names)} combinations")
    return figure


_MOST = 25
_CIRCLES, _COLUMNS = 8, 4


def path_shares_figure(study: PathStudy, title: str) -> Any:
    """A bar a feature: the share of the mixes on whose path it is (figure 9)."""
    order = sorted(range(len(study.features)), key=lambda place: -float(study.share[place]))[:_MOST]
    shares = {study.features[place]: 100 * float(study.share[place]) for place in order}
    left = len(study.features) - len(shares)
    return bars_figure(
        shares,
        "bags on whose path it is, %",
        title + (f"; {left} more features not shown" if left else ""),
        limit=100,
        digits=0,
    )


def path_times_figure(study: PathStudy, title: str) -> Any:
    """Bags around a circle, a circle a feature; the radius is how many splits on their paths are at it."""
    chosen = study.times[:, :_CIRCLES]
    # Bags with alike paths beside each other.
    order = np.lexsort(chosen.T[::-1])
    angles = np.linspace(0, 2 * np.pi, len(chosen) + 1)
    rows = -(-chosen.shape[1] // _COLUMNS)
    figure = new_figure(2.6 * _COLUMNS, 0.9 + 2.8 * rows)
    most = max(1, int(chosen.max()))
    for place in range(chosen.shape[1]):
        axes = figure.add_subplot(rows, _COLUMNS, place + 1, projection="polar")
        values = chosen[order, place]
        axes.fill_between(angles, 0, np.append(values, values[-1]), step="post", color=BLUE, linewidth=0)
        axes.set_title(study.features[place], fontsize=9.5)
        axes.set_ylim(0, most)
        axes.set_yticks(range(1, most + 1), [str(count) for count in range(1, most + 1)], fontsize=7)
        axes.set_xticks([])
        axes.grid(color="#bbbbbb", linewidth=0.6)
        axes.spines["polar"].set_color("#bbbbbb")
    left = study.times.shape[1] - chosen.shape[1]
    heading(
        figure,
        title + (f"; {left} more features not shown" if left else ""),
        f"around each circle the same {len(chosen):,} bags; radius: splits at the feature on its path",
    )
    return figure


_COLOURS = (BLUE, RED, GREEN, ORANGE, PINK, SKY, GREY)


def sizes_figure(study: SizeStudy, title: str) -> Any:
    """A line for each model and what it was fitted to, a panel for each quantity."""
    quantities = list(dict.fromkeys(each.quantity for each in study.results))
    figure = new_figure(2.2 + 3.1 * len(quantities), 4.6)
    panels = figure.subplots(1, len(quantities), squeeze=False)[0]
    models = list(dict.fromkeys(each.model for each in study.results))
    ways = list(dict.fromkeys(each.fitted_to for each in study.results))
    lines: dict[str, Any] = {}
    for quantity, axes in zip(quantities, panels, strict=True):
        for model in models:
            for way in ways:
                found = [
                    (each.bag_size, 100 * each.mape)
                    for each in study.results
                    if (each.quantity, each.model, each.fitted_to) == (quantity, model, way)
                ]
                if not found:
                    continue
                (line,) = axes.plot(
                    *zip(*found, strict=True),
                    marker="os^"[ways.index(way) % 3],
                    linestyle="-" if way == OWN else "--",
                    color=_COLOURS[models.index(model) % len(_COLOURS)],
                )
                lines.setdefault(f"{model}, {way}", line)
        axes.set_xticks(study.sizes)
        axes.set_xlim(study.sizes[0] - 0.3, study.sizes[-1] + 0.3)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("applications at the same time")
        axes.set_title(quantity, fontsize=9.5, loc="left")
        tidy(axes)
    panels[0].set_ylabel("MAPE, %")
    legend_below(figure, list(lines.values()), list(lines), 2)
    heading(figure, title)
    return figure
