"""The studies of Nichols et al. 2024 as tables and figures, below those of the evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crosscast.evaluation.relative.evaluation import RelativeEvaluation
from crosscast.report import figures as draw
from crosscast.report.document import Part, Report, Table
from crosscast.report.fields import score_table, scores_of, table_of, writer_of
from crosscast.report.numbers import percent
from crosscast.report.relative import evaluation_figures, evaluation_report
from crosscast.studies.nichols2024 import (
    CAUTION,
    BySource,
    Importances,
    RelativeStudies,
    RelativeStudy,
    Selection,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_FEATURES = 20
_mae = writer_of("mae")


def study_report(study: RelativeStudy) -> Report:
    """The tables of the evaluation, and of each study."""
    parts = evaluation_report(study.evaluation).parts
    return Report([*parts, *([] if study.studies is None else _studies(study.studies))])


def _studies(studies: RelativeStudies) -> list[Part]:
    parts: list[Part] = []
    if studies.by_source is not None:
        found = studies.by_source
        rows = [
            [model, *(f"{_mae(each.mae)} / {percent(each.same_order)}" for each in metrics)]
            for model, metrics in found.metrics.items()
        ]
        caption = f"by source: fitted to and tested on counters of one device, {found.split}"
        parts.append(Table(["MAE / same order", *found.sources], rows, caption))
    for name, evaluation in (("scale", studies.by_scale), ("application", studies.by_application)):
        if evaluation is not None:
            results = evaluation.results
            rows = [
                [group, *(_mae(result.per_group[group].mae) for result in results)]
                for group in results[0].per_group
            ]
            models = [result.model for result in results]
            parts.append(Table([name, *models], rows, f"by {name}: MAE where it is left out"))
    importances, selection = studies.importances, studies.selection
    features = table_of(
        importances.features[:_MOST_FEATURES],
        {"feature": "feature", "average gain": "gain", "rise of MAE when shuffled": "rise"},
        caption=f"importances of {importances.model}, {importances.split}",
    )
    left = len(importances.features) - _MOST_FEATURES
    counts = score_table(
        ["features"],
        [([str(count)], each, None) for count, each in zip(selection.counts, selection.metrics, strict=True)],
        scores_of("mae same_order"),
        caption=f"features of the most gain alone, {selection.split}",
    )
    return [*parts, features, *([f"and {left} more"] if left > 0 else []), CAUTION, counts]


_MOST_BARS = 25


def study_figures(study: RelativeStudy) -> dict[str, Figure]:
    """Figures of the models, and of each study (Nichols et al. 2024, Figures 2 to 8), by name."""
    label, studies = study.evaluation.label, study.studies
    figures = evaluation_figures(study.evaluation)
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


def _groups_figure(evaluation: RelativeEvaluation, title: str) -> Figure:
    """A bar a group for the best model, and a mark for the best baseline."""
    best = evaluation.best()
    baselines = [result for result in evaluation.results if result.baseline and result is not best]
    rival = min(baselines, key=lambda each: each.metrics.mae, default=None)
    return draw.groups_figure(
        best.model,
        {name: metrics.mae for name, metrics in best.per_group.items()},
        None if rival is None else (rival.model, {name: each.mae for name, each in rival.per_group.items()}),
        title,
        label="MAE where it is left out",
        write="{:.3f}".format,
    )


def _sources_figure(found: BySource, metric: str, label: str, title: str) -> Figure:
    """A map of numbers: a row a model, a column a source."""
    models = list(found.metrics)
    values = np.array([[getattr(each, metric) for each in found.metrics[model]] for model in models])
    figure = draw.new_figure(4.2 + 0.95 * len(found.sources), 2.3 + 0.45 * len(models))
    draw.heat_map(
        figure.subplots(),
        values,
        models,
        found.sources,
        write=lambda value: f"{value:.3f}" if value < 10 else f"{value:,.0f}",
        limits=draw.robust_limits(values),
        label=label,
    )
    return draw.titled(figure, title)


def _importances_figure(found: Importances, title: str) -> Figure:
    """The features of the most gain, most first, with both importances."""
    features = found.features[:_MOST_BARS]
    figure = draw.new_figure(10, 1.9 + 0.27 * len(features))
    gains, rises = figure.subplots(1, 2, sharey=True)
    draw.bars(gains, {each.feature: 100 * each.gain for each in features})
    gains.set_xlabel("average gain, % of the sum over all features")
    draw.bars(rises, {each.feature: each.rise for each in features}, colours=draw.RED)
    rises.axvline(0, color="black", linewidth=0.8, zorder=3)
    rises.set_xlabel(f"rise of MAE ({found.mae:.3f}) when shuffled")
    more = len(found.features) - len(features)
    return draw.titled(
        figure,
        title + (f"; {more} more features not shown" if more else ""),
        "gain is what trees split at, not what performance depends on; features that go together share it",
    )


def _selection_figure(found: Selection, title: str) -> Figure:
    """A line over the number of features, on a logarithmic axis."""
    figure, axes = draw.one_figure(7, 4)
    values = [each.mae for each in found.metrics]
    axes.plot(found.counts, values, "o-", color=draw.BLUE, markersize=6, zorder=3)
    for at in zip(found.counts, values, strict=True):
        axes.annotate(f"{at[1]:.3f}", at, (0, 7), textcoords="offset points", ha="center", fontsize=8.5)
    axes.set_xscale("log", base=2)
    axes.set_xticks(found.counts, [str(count) for count in found.counts])
    axes.minorticks_off()
    axes.set_ylim(0, 1.2 * max(values))
    draw.style_axes(axes, x="features of the most gain in the training runs", y="MAE")
    return draw.titled(figure, title)
