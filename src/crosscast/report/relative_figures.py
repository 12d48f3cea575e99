"""Pictures of an evaluation of models of relative performance (Nichols et al. 2024, Figures 2 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.data.files import make_folder
from crosscast.evaluation.relative import RelativeEvaluation, RelativeResult
from crosscast.evaluation.resampling import SHARE
from crosscast.report.figures import BLUE, GREY, RED, heading, new_figure, save_figure, tidy
from crosscast.studies.nichols2024 import BySource, Importances, RelativeStudies, RelativeStudy, Selection

__all__ = ["write_relative_figures"]

_MOST_FEATURES = 25
_ROOM = 0.12
"""Share of the axis that a number takes."""

_LIGHT = 0.55
"""Share of the colours from which on they are too light for white numbers."""


def write_relative_figures(study: RelativeStudy, folder: Path) -> list[Path]:
    """Draw the models beside each other, and a picture for each study that was made."""
    make_folder("figures", folder)
    evaluation = study.evaluation
    figures = {
        "models": _models_figure(evaluation.results, f"{study.evaluation.label}: {evaluation.split.name}")
    }
    if study.studies is not None:
        figures |= _of_studies(study.studies, study.evaluation.label)
    return [save_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _of_studies(studies: RelativeStudies, label: str) -> dict[str, Any]:
    figures = {}
    if studies.by_source is not None:
        about = f"{label}: fitted to and tested on the counters of one device, {studies.by_source.split}"
        figures["sources-mae"] = _sources_figure(studies.by_source, "mae", "MAE", about)
        figures["sources-same-order"] = _sources_figure(studies.by_source, "same_order", "same order", about)
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
    panels = figure.subplots(1, 2, sharey=True)
    names = [result.model for result in results]
    colours = [GREY if result.baseline else BLUE for result in results]
    # What is off the scale of the others, such as lines far from what they were fitted to, would hide them.
    ends = (2.5 * sorted(each.metrics.mae for each in results)[len(results) // 2], 1.0)
    for axes, metric, label, end in zip(
        panels,
        ("mae", "same_order"),
        ("MAE (less is better)", "same order (more is better)"),
        ends,
        strict=True,
    ):
        values = [getattr(result.metrics, metric) for result in results]
        axes.barh(names, [min(value, end) for value in values], color=colours, height=0.62, zorder=2)
        limit = min(end, max(values)) if metric == "mae" else end
        for place, (result, value) in enumerate(zip(results, values, strict=True)):
            interval = result.confidence.intervals.get(metric)
            right = min(value, end)
            if interval is not None and value <= end:
                high = min(interval.high, end)
                axes.plot([interval.low, high], [place] * 2, color="black", linewidth=1.2, zorder=3)
                right = max(right, high)
            text = f" {value:.3f}" if value <= end else f" {value:,.2f} →"
            axes.text(right, place, text, va="center", fontsize=9)
            limit = max(limit, right)
        axes.set_xlim(0, 1.3 * limit)
        if metric != "mae":
            axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_xlabel(label)
        tidy(axes)
        axes.grid(visible=False, axis="y")
    panels[0].invert_yaxis()
    heading(figure, title, f"lines hold {100 * SHARE:g} % of bootstrap draws of groups; grey: baselines")
    return figure


def _groups_figure(evaluation: RelativeEvaluation, title: str) -> Any:
    """A bar a group for the best model, and a mark for the best baseline."""
    best = evaluation.best()
    baselines = [result for result in evaluation.results if result.baseline and result is not best]
    names = list(best.per_group)
    figure = new_figure(8, 1.9 + 0.3 * len(names))
    axes = figure.subplots()
    values = [best.per_group[name].mae for name in names]
    axes.barh(range(len(names)), values, color=BLUE, height=0.62, zorder=2, label=best.model)
    ends = values
    if baselines:
        rival = min(baselines, key=lambda each: each.metrics.mae)
        others = [rival.per_group[name].mae for name in names]
        axes.plot(
            others,
            range(len(names)),
            "D",
            color=GREY,
            markersize=6.5,
            markeredgecolor="white",
            zorder=3,
            label=rival.model,
            clip_on=False,
        )
        ends = [max(pair) for pair in zip(values, others, strict=True)]
    for place, (value, end) in enumerate(zip(values, ends, strict=True)):
        # Within its bar, as what stands beside a mark would seem to be the mark's.
        fits = value > _ROOM * max(ends)
        at, colour = (0.01 * max(ends), "white") if fits else (end + 0.02 * max(ends), "black")
        axes.text(at, place, f"{value:.3f}", va="center", fontsize=8.5, color=colour)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_xlim(0, 1.15 * max(ends))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("MAE where it is left out")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    heading(figure, title)
    return figure


def _sources_figure(found: BySource, metric: str, label: str, title: str) -> Any:
    """A map of numbers: a row a model, a column a source."""
    models = list(found.metrics)
    values = np.array([[getattr(each, metric) for each in found.metrics[model]] for model in models])
    figure = new_figure(4.2 + 0.95 * len(found.sources), 2.1 + 0.45 * len(models))
    axes = figure.subplots()
    low, high = float(values.min()), min(float(values.max()), 3 * float(np.median(values)))
    high = max(high, low + 1e-3)
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        colour = "black" if (value - low) / (high - low) > _LIGHT else "white"
        text = f"{value:.3f}" if value < 10 else f"{value:,.0f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_xticks(
        range(len(found.sources)), found.sources, rotation=35, ha="right", rotation_mode="anchor", fontsize=9
    )
    axes.set_yticks(range(len(models)), models, fontsize=9)
    axes.spines[:].set_visible(False)
    beyond = "max" if values.max() > high else "neither"
    figure.colorbar(image, ax=axes, label=label, pad=0.02, extend=beyond).outline.set_visible(False)
    heading(figure, title)
    return figure


def _importances_figure(found: Importances, title: str) -> Any:
    """The features of the most gain, most first, with both importances."""
    features = found.features[:_MOST_FEATURES]
    figure = new_figure(10, 1.8 + 0.27 * len(features))
    gains, rises = figure.subplots(1, 2, sharey=True)
    names = [each.feature for each in features]
    gains.barh(names, [100 * each.gain for each in features], color=BLUE, height=0.62, zorder=2)
    gains.set_xlabel("average gain, % of the sum over all features")
    rises.barh(names, [each.rise for each in features], color=RED, height=0.62, zorder=2)
    rises.axvline(0, color="black", linewidth=0.8, zorder=3)
    rises.set_xlabel(f"rise of MAE ({found.mae:.3f}) when shuffled")
    for axes in (gains, rises):
        tidy(axes)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", labelsize=8.5)
        axes.locator_params(axis="x", nbins=5)
    gains.set_ylim(len(names) - 0.4, -0.6)
    more = len(found.features) - len(features)
    heading(
        figure,
        title + (f"; {more} more features not shown" if more else ""),
        "gain is what trees split at, not what performance depends on; features that go together share it",
    )
    return figure


def _selection_figure(found: Selection, title: str) -> Any:
    """A line over the number of features, on a logarithmic axis."""
    figure = new_figure(7, 4)
    axes = figure.subplots()
    values = [each.mae for each in found.metrics]
    axes.plot(found.counts, values, "o-", color=BLUE, markersize=6, zorder=3)
    for count, value in zip(found.counts, values, strict=True):
        axes.annotate(
            f"{value:.3f}", (count, value), (0, 7), textcoords="offset points", ha="center", fontsize=8.5
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(found.counts, [str(count) for count in found.counts])
    axes.minorticks_off()
    axes.set_ylim(0, 1.2 * max(values))
    axes.set_xlabel("features of the most gain in the training runs")
    axes.set_ylabel("MAE")
    tidy(axes)
    heading(figure, title)
    return figure
