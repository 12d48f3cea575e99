"""All pictures of an evaluation of choices, and the table beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosscast.decide.evaluation import ChoiceStudy, MachineChoices
from crosscast.decide.training import OfflineStage
from crosscast.report.canvas import save_figure
from crosscast.report.choice_figures.curve_figure import curve_figure
from crosscast.report.choice_figures.frontier_figure import frontier_figure
from crosscast.report.choice_figures.hardest_figure import hardest_figure
from crosscast.report.choice_figures.methods_figure import methods_figure
from crosscast.report.choice_figures.programs_figure import programs_figure
from crosscast.report.choice_figures.repeats_figure import repeats_figure
from crosscast.report.choice_figures.styles import alone
from crosscast.report.choice_figures.tree_figure import tree_figure
from crosscast.report.choice_frontier import longest_frontier, write_frontier
from crosscast.tables.whole_file import make_folder

__all__ = ["machine_folders", "write_choice_figures"]

_LONGEST_NAME = 40

_BY_PROGRAM = (
    ("under-performance", "under_performance", "performance within the cap, % of the oracle's"),
    ("under-share", "under_limit_share", "cases within the cap, %"),
    ("over-power", "over_power", "power over the cap, % of the oracle's"),
    ("over-performance", "over_performance", "performance over the cap, % of the oracle's"),
)


def write_choice_figures(study: ChoiceStudy, stages: Sequence[OfflineStage], folder: Path) -> list[Path]:
    """Draw Figures 2 to 9 of Bailey et al. 2014 and those of repeats and extra runs, and write Table I.

    Where there is nothing to cluster there is no tree, and without repeats no picture of them.

    Parameters
    ----------
    study
        The evaluation.
    stages
        The published offline stage of each machine.
    folder
        Where to write; each of several machines has a folder in it.

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
    paths: list[Path] = []
    names = machine_folders([machine.machine for machine in study.machines])
    for machine, stage, name in zip(study.machines, stages, names, strict=True):
        place = folder / name if len(study.machines) > 1 else folder
        make_folder("figures", place)
        title = machine.machine
        for of, figure in _figures(machine, stage, title).items():
            paths.append(save_figure(figure, place / f"{of}.png"))
        paths += write_frontier(longest_frontier(machine), place)
    return paths


def machine_folders(machines: Sequence[str]) -> list[str]:
    """A name for the folder of each machine that is safe in any file system, and its own.

    Examples
    --------
    >>> machine_folders(["titanx", "cpu + gpu", "..", "cpu+gpu"])
    ['titanx', 'cpu-gpu', 'machine', 'cpu-gpu-2']
    """
    names: list[str] = []
    for machine in machines:
        plain = re.sub(r"[^\w]+", "-", machine).strip("-")[:_LONGEST_NAME] or "machine"
        name, count = plain, 1
        while name.casefold() in {each.casefold() for each in names}:
            count += 1
            name = f"{plain}-{count}"
        names.append(name)
    return names


def _figures(machine: MachineChoices, stage: OfflineStage, title: str) -> dict[str, Any]:
    results = alone(machine.results)
    figures = {"frontier": frontier_figure(longest_frontier(machine), title)}
    if not stage.predictor.clusters.nothing_to_cluster:
        about = f"{title}: which cluster a kernel is of, by its sample runs (published model, all programs)"
        figures["tree"] = tree_figure(stage.predictor.tree.nodes, about)
    figures["methods"] = methods_figure(results, title)
    for name, metric, label in _BY_PROGRAM:
        figures[name] = programs_figure(results, metric, label, f"{title}: {label}")
    figures["hardest"] = hardest_figure(machine, title)
    figures["curve"] = curve_figure(results, f"{title}: S by the extra runs that are allowed")
    if machine.split_half is not None:
        figures["repeats"] = repeats_figure(
            results, machine.split_half, f"{title}: caps kept, by what is scored"
        )
    return figures
