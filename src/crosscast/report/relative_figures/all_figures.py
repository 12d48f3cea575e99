"""All pictures of an evaluation of relative performance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosscast.report.canvas import save_figure
from crosscast.report.relative_figures.groups_figure import groups_figure
from crosscast.report.relative_figures.importances_figure import importances_figure
from crosscast.report.relative_figures.models_figure import models_figure
from crosscast.report.relative_figures.selection_figure import selection_figure
from crosscast.report.relative_figures.sources_figure import sources_figure
from crosscast.studies.nichols2024 import RelativeStudies, RelativeStudy
from crosscast.tables.whole_file import make_folder

__all__ = ["write_relative_figures"]


def write_relative_figures(study: RelativeStudy, folder: Path) -> list[Path]:
    """Draw the models beside each other, and a picture for each study that was made.

    Parameters
    ----------
    study
        The evaluation.
    folder
        Where to write; made if it is not there.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        If a file cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    make_folder("figures", folder)
    evaluation = study.evaluation
    figures = {"models": models_figure(evaluation.results, f"{study.label}: {evaluation.split.name}")}
    if study.studies is not None:
        figures |= _of_studies(study.studies, study.label)
    return [save_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _of_studies(studies: RelativeStudies, label: str) -> dict[str, Any]:
    figures = {}
    if studies.by_source is not None:
        about = f"{label}: fitted to and tested on the counters of one device, {studies.by_source.split}"
        figures["sources-mae"] = sources_figure(studies.by_source, "mae", "MAE", about)
        figures["sources-same-order"] = sources_figure(studies.by_source, "same_order", "same order", about)
    if studies.by_scale is not None:
        figures["scales"] = groups_figure(studies.by_scale, f"{label}: each scale left out")
    if studies.by_application is not None:
        figures["applications"] = groups_figure(studies.by_application, f"{label}: each application left out")
    about = f"{label}: what XGBoost splits at, and what it needs, {studies.importances.split}"
    figures["importances"] = importances_figure(studies.importances, about)
    about = f"{label}: XGBoost with fewer features, {studies.selection.split}"
    figures["selection"] = selection_figure(studies.selection, about)
    return figures
