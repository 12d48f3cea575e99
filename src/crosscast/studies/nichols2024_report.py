"""Tables and figures of the studies of Nichols et al. 2024, after those of the evaluation."""

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
    """Tables of the evaluation and of each study."""
    return Report([*evaluation_report(study.evaluation).parts, *_studies(study.studies)])


def _studies(studies: RelativeStudies) -> list[Part]:
    parts: list[Part] = []
    if studies.by_source is not None:
        by_source = studies.by_source
        rows = [
            [model, *(f"{_mae(score.mae)} / {percent(score.same_order)}" for score in metrics)]
            for model, metrics in by_source.metrics.items()
        ]
        caption = f"by source: fitted to and tested on counters of one device, {by_source.split}"
        parts.append(Table(["MAE / same order", *by_source.sources], rows, caption))
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
    hidden = len(importances.features) - _MOST_FEATURES
    counts = score_table(
        ["features"],
        [
            ([str(count)], metrics, None)
            for count, metrics in zip(selection.counts, selection.metrics, strict=True)
        ],
        scores_of("mae same_order"),
        caption=f"features of the most gain alone, {selection.split}",
    )
    return [*parts, features, *([f"and {hidden} more"] if hidden > 0 else []), CAUTION, counts]


_MOST_BARS = 25


def study_figures(study: RelativeStudy) -> dict[str, Figure]:
    """Draw the figures of the models and of each study (Nichols et al. 2024, Figures 2 to 8), by name."""
    label, studies = study.evaluation.label, study.studies
    figures = evaluation_figures(study.evaluation)
    if (by_source := studies.by_source) is not None:
        title = f"{label}: fitted to and tested on the counters of one device, {by_source.split}"
        figures["sources-mae"] = _sources_figure(by_source, "mae", "MAE", title)
        figures["sources-same-order"] = _sources_figure(by_source, "same_order", "same order", title)
    if studies.by_scale is not None:
        figures["scales"] = _groups_figure(studies.by_scale, f"{label}: each scale left out")
    if studies.by_application is not None:
        figures["applications"] = _groups_figure(
            studies.by_application, f"{label}: each application left out"
        )
    title = f"{label}: what XGBoost splits at, and what it needs, {studies.importances.split}"
    figures["importances"] = _importances_figure(studies.importances, title)
    title = f"{label}: XGBoost with fewer features, {studies.selection.split}"
    figures["selection"] = _selection_figure(studies.selection, title)
    return figures


def _groups_figure(evaluation: RelativeEvaluation, title: str) -> Figure:
    """Draw a bar for each group with the best model, and a mark for the best baseline."""
    best = evaluation.best()
    baselines = [result for result in evaluation.results if result.baseline and result is not best]
    rival = min(baselines, key=lambda result: result.metrics.mae, default=None)
    return draw.groups_figure(
        best.model,
        {name: metrics.mae for name, metrics in best.per_group.items()},
        None
        if rival is None
        else (rival.model, {name: metrics.mae for name, metrics in rival.per_group.items()}),
        title,
        label="MAE where it is left out",
        write="{:.3f}".format,
    )


def _sources_figure(study: BySource, metric: str, label: str, title: str) -> Figure:
    """Draw a heat map: a row for each model, a column for each source."""
    models = list(study.metrics)
    values = np.array([[getattr(score, metric) for score in study.metrics[model]] for model in models])
    figure = draw.new_figure(4.2 + 0.95 * len(study.sources), 2.3 + 0.45 * len(models))
    draw.heat_map(
        figure.subplots(),
        values,
        models,
        study.sources,
        write=lambda value: f"{value:.3f}" if value < 10 else f"{value:,.0f}",
        limits=draw.robust_limits(values),
        label=label,
    )
    return draw.titled(figure, title)


def _importances_figure(study: Importances, title: str) -> Figure:
    """Draw both importances of the features with the most gain."""
    features = study.features[:_MOST_BARS]
    figure = draw.new_figure(10, 1.9 + 0.27 * len(features))
    gains, rises = figure.subplots(1, 2, sharey=True)
    draw.bars(gains, {item.feature: 100 * item.gain for item in features})
    gains.set_xlabel("average gain, % of the sum over all features")
    draw.bars(rises, {item.feature: item.rise for item in features}, colours=draw.RED)
    rises.axvline(0, color="black", linewidth=0.8, zorder=3)
    rises.set_xlabel(f"rise of MAE ({study.mae:.3f}) when shuffled")
    hidden = len(study.features) - len(features)
    return draw.titled(
        figure,
        title + (f"; {hidden} more features not shown" if hidden else ""),
        "gain is what trees split at, not what performance depends on; features that go together share it",
    )


def _selection_figure(study: Selection, title: str) -> Figure:
    """Draw the MAE over the number of features, on a logarithmic axis."""
    figure, axes = draw.one_figure(7, 4)
    values = [metrics.mae for metrics in study.metrics]
    axes.plot(study.counts, values, "o-", color=draw.BLUE, markersize=6, zorder=3)
    for point in zip(study.counts, values, strict=True):
        axes.annotate(f"{point[1]:.3f}", point, (0, 7), textcoords="offset points", ha="center", fontsize=8.5)
    axes.set_xscale("log", base=2)
    axes.set_xticks(study.counts, [str(count) for count in study.counts])
    axes.minorticks_off()
    axes.set_ylim(0, 1.2 * max(values))
    draw.style_axes(axes, x="features of the most gain in the training runs", y="MAE")
    return draw.titled(figure, title)
