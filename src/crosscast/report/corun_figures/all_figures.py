"""All pictures of an evaluation of co-running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from crosscast.evaluation.corun import CoRunResult
from crosscast.predict.corun.moolchandani2022 import FIGURE_7, FIGURE_8
from crosscast.report.canvas import save_figure
from crosscast.report.corun_figures.clusters_figure import clusters_figure
from crosscast.report.corun_figures.combinations_figure import combinations_figure
from crosscast.report.corun_figures.heat_figure import heat_figure
from crosscast.report.corun_figures.left_out_figure import left_out_figure
from crosscast.report.corun_figures.paths_figure import path_shares_figure, path_times_figure
from crosscast.report.corun_figures.silhouettes_figure import silhouettes_figure
from crosscast.report.corun_figures.sizes_figure import sizes_figure
from crosscast.report.corun_figures.split_violins_figure import split_violins_figure
from crosscast.report.corun_figures.strip_figure import strip_figure
from crosscast.report.corun_figures.violins_figure import violins_figure
from crosscast.studies.corun import Clusters, CoRunStudies, CoRunStudy
from crosscast.studies.moolchandani2022 import SPLITS, CombinationStudy, PathStudy, SizeStudy
from crosscast.tables.whole_file import make_folder

__all__ = ["write_corun_figures"]

_QUANTITIES = ("time", "slowdown", "power")
_FEWEST = 4
"""Combinations from which on their errors have a distribution."""

_HEAT_KINDS = ("forest", "decision-tree", "boosting", "svr")
"""Models of figure 13."""

_TREE = "decision-tree"


def write_corun_figures(study: CoRunStudy, folder: Path) -> list[Path]:
    """Draw what was left out, and the pictures of each study that was made.

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
    if isinstance(studies.clusters, Clusters):
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
    if len(study.names) >= _FEWEST:
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
        figures["performance-schemes"] = combinations_figure(schemes, title)
    grid = np.array([[by_features.get(frozenset(each.features), np.nan) for each in row] for row in FIGURE_8])
    if np.isfinite(grid).sum() >= _FEWEST:
        columns = ["neither time", "CPU_time", "GPU_time", "both times"]
        rows = [row[0].name for row in FIGURE_8]
        figures["performance-grid"] = heat_figure(grid, rows, columns, title)
    return figures
