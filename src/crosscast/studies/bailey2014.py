"""Methods of Bailey et al. (2014): model, frequency limiting, limiters of single knobs, oracle; a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.views import configured
from crosscast.decide.policies import knob_methods
from crosscast.evaluation.configuration import ConfigurationEvaluationOptions
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation, MachineChoices
from crosscast.evaluation.configuration.question import QUESTION
from crosscast.evaluation.loop import RunArguments
from crosscast.prediction.configuration import KernelAt, Surfaces, machines_of, pareto_frontier
from crosscast.report import figures as draw
from crosscast.report.configuration_evaluation import evaluation_figures, evaluation_report, with_folders
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import plural, setting_heading, setting_text, shown_settings
from crosscast.units import setting_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def reproduce(dataset: Dataset, *, seed: int = 0, **run: Unpack[RunArguments]) -> ConfigurationEvaluation:
    """Evaluate the methods and the oracle with each benchmark held out.

    Clusters and tree are fitted to all programs.
    """
    machines = machines_of(configured(dataset), dataset.label)
    limiters = [method.name for machine in machines for method in knob_methods(machine.space)]
    names = [*limiters, "published", "published+fl", "oracle"]
    options = ConfigurationEvaluationOptions()
    return QUESTION.evaluate(dataset, names, QUESTION.folds[0], options, seed=seed, **run)


def study_report(study: ConfigurationEvaluation) -> Report:
    """Make the tables of the evaluation, and those of the published model and the frontier by machine."""
    parts = [part for machine in study.machines for part in machine_parts(machine)]
    return Report([*evaluation_report(study).parts, *parts])


def machine_parts(machine: MachineChoices) -> list[Part]:
    """Clusters and tree of the published model fitted to all programs, and the longest frontier."""
    parts: list[Part] = [
        Heading(f"the published model on all programs, {machine.machine}", 3),
        _clusters(machine),
    ]
    published = machine.published.fitted
    if not published.clusters.nothing_to_cluster:
        parts.append(Text([f"  {line}" for line in published.tree.text().splitlines()], "code"))
    return [*parts, frontier_table(KernelFrontier.longest(machine))]


def study_figures(study: ConfigurationEvaluation) -> dict[str, Figure]:
    """Draw the figures of the evaluation, and the longest frontier of each machine."""
    frontiers = {
        f"{folder}frontier": frontier_figure(KernelFrontier.longest(machine), machine.machine)
        for machine, folder in with_folders(study)
    }
    return frontiers | evaluation_figures(study)


def _clusters(machine: MachineChoices) -> str:
    """Sentence about the clusters of the published model fitted to all programs."""
    clusters = machine.published.fitted.clusters
    note = f"The published model on all programs: {clusters.note}."
    if clusters.nothing_to_cluster:
        return note
    between = (
        f" Kendall's tau of two frontiers is {clusters.least_correlation:.2f} to "
        f"{clusters.most_correlation:.2f}"
        if clusters.least_correlation is not None and clusters.most_correlation is not None
        else " No two frontiers share two configurations"
    )
    pairs = f"; {plural(clusters.undefined, 'pair')} of kernels share fewer than 2 configurations"
    return f"{note}{between}{pairs if clusters.undefined else ''}."


@dataclass(frozen=True, eq=False)
class KernelFrontier:
    """One kernel over all configurations, and its frontier."""

    surfaces: Surfaces
    row: int
    frontier: Integers
    performance: Reals
    power_w: Reals

    @classmethod
    def of(cls, surfaces: Surfaces, row: int) -> KernelFrontier:
        """Find the frontier of one kernel, given by its row."""
        time_s, power_w = surfaces.time_s[row], surfaces.power_w[row]
        return cls(surfaces, row, pareto_frontier(time_s, power_w), np.nanmin(time_s) / time_s, power_w)

    @classmethod
    def longest(cls, machine: MachineChoices) -> KernelFrontier:
        """Find the first frontier with the most configurations, among kernels with cases."""
        rows, counts = np.unique(machine.cases.kernel, return_counts=True)
        return cls.of(machine.surfaces, int(rows[counts.argmax()]))

    @property
    def kernel(self) -> KernelAt:
        """The kernel."""
        return self.surfaces.kernels[self.row]


def frontier_table(kernel: KernelFrontier) -> Table:
    """Make the table of configurations on a frontier (Table I), with settings, power and performance."""
    space = kernel.surfaces.space
    names = shown_settings(space)
    rows = [
        [
            space.configurations[number].device,
            *(setting_text(name, space.configurations[number].settings.get(name)) for name in names),
            float(kernel.power_w[number]),
            float(kernel.performance[number]),
        ]
        for number in kernel.frontier.tolist()
    ]
    return Table(
        ["device", *map(setting_heading, names), "power, W", "performance"],
        rows,
        f"configurations on the longest frontier, of {kernel.kernel}",
        {"power, W": "{:.1f}".format, "performance": "{:.2f}".format},
    )


def frontier_figure(kernel: KernelFrontier, title: str) -> Figure:
    """Draw normalised performance over power of each configuration, with a line along the frontier.

    Configurations are coloured by the device; on a single one by its last knob.
    """
    figure, axes = draw.one_figure(8, 5.4)
    x, y = kernel.power_w[kernel.frontier], kernel.performance[kernel.frontier]
    draw.steps(axes, x, y, color=draw.GREY, linewidth=1.4, label="_frontier")
    space = kernel.surfaces.space
    if len(space.devices) > 1:
        for device, look in draw.looks(space.devices).items():
            cells = space.device_numbers == space.devices.index(device)
            x, y = kernel.power_w[cells], kernel.performance[cells]
            draw.points(axes, x, y, look, device, size=5, alpha=0.8)
        draw.legend_below(figure, 8)
    elif space.knobs:
        name = space.knobs[-1]
        shade = space.matrix[:, -1] * setting_parts(name)[2]
        dots = axes.scatter(
            kernel.power_w, kernel.performance, c=shade, cmap=draw.MAP, s=28, linewidths=0, zorder=3
        )
        figure.colorbar(dots, ax=axes, label=setting_heading(name), pad=0.02)
    draw.spread_axis(axes, "x", kernel.power_w)
    draw.spread_axis(axes, "y", kernel.performance)
    draw.style_axes(axes, x="power, W", y="performance, relative to the fastest configuration")
    known = int(np.isfinite(kernel.power_w).sum())
    return draw.titled(
        figure,
        f"{title}: {kernel.kernel}, the longest frontier",
        f"{len(kernel.frontier)} of {known} configurations are on it (line)",
    )
