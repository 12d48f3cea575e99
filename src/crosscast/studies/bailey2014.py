"""The methods of Bailey et al. 2014 (model, frequency limiting, oracle), and the figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.dataset import Dataset
from crosscast.data.views import configured
from crosscast.decide.policies import knob_methods
from crosscast.evaluation.configuration import ConfigurationEvaluationOptions
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation, MachineChoices
from crosscast.evaluation.configuration.question import QUESTION
from crosscast.evaluation.configuration.scores import ChoiceMetrics, ChoiceResult
from crosscast.evaluation.loop import RunArguments
from crosscast.prediction.configuration.bailey2014 import TreeNode
from crosscast.prediction.configuration.choice import within_cap
from crosscast.prediction.configuration.data import machines_of
from crosscast.report import figures as draw
from crosscast.report.configuration_evaluation import REFERENCE, frontier_of, method_label
from crosscast.report.configuration_figures import (
    PERFORMANCE,
    alone,
    by_machine,
    draw_frontier,
    machine_figures,
)
from crosscast.report.numbers import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


_BY_PROGRAM = (
    ("under-performance", "under_performance", "performance within the cap, % of the oracle's"),
    ("under-share", "under_limit_share", "cases within the cap, %"),
    ("over-power", "over_power", "power over the cap, % of the oracle's"),
    ("over-performance", "over_performance", "performance over the cap, % of the oracle's"),
)


def study_figures(study: ConfigurationEvaluation) -> dict[str, Figure]:
    """Draw the figures of the evaluation, the tree, each program and the hardest kernel, by name.

    Where there is nothing to cluster there is no tree. The names begin with a folder for each machine where
    there are several.
    """
    return by_machine(study, _figures)


def _figures(machine: MachineChoices) -> dict[str, Figure]:
    results, title = alone(machine.results), machine.machine
    figures = machine_figures(machine)
    if not machine.published.fitted.clusters.nothing_to_cluster:
        about = f"{title}: which cluster a kernel is of, by its sample runs (published model, all programs)"
        figures["tree"] = tree_figure(machine.published.fitted.tree.nodes, about)
    for name, metric, label in _BY_PROGRAM:
        figures[name] = programs_figure(results, metric, label, f"{title}: {label}")
    figures["hardest"] = hardest_figure(machine, title)
    return figures


_JUDGES = ("model+fl", "published+fl")


def hardest_kernel(machine: MachineChoices) -> tuple[int, ChoiceResult]:
    """Find the program, and its kernel, whose choices are within the cap least often, and the method.

    Ties are broken by the least score. The method is ``model+fl``, or ``published+fl`` where that was not
    evaluated, or else the first method.
    """
    results = {result.method: result for result in reversed(alone(machine.results))}
    judge = next((results[name] for name in _JUDGES if name in results), alone(machine.results)[0])
    program = min(judge.programs, key=lambda name: _share_and_score(judge.programs[name]))
    cases = machine.cases
    under = within_cap(machine.surfaces.power_w[cases.kernel, judge.chosen], cases.power_cap)
    time_s = machine.surfaces.time_s[cases.kernel, judge.chosen]
    score = np.where(under, cases.oracle_time_s / time_s, 0.0)
    rows = sorted(set(cases.kernel[cases.program == cases.programs.index(program)].tolist()))

    def share_and_score(row: int) -> tuple[float, float]:
        mask = cases.kernel == row
        return float(under[mask].mean()), float(score[mask].mean())

    return min(rows, key=share_and_score), judge


def _share_and_score(metrics: ChoiceMetrics) -> tuple[float, float]:
    return metrics.under_limit_share or 0.0, metrics.score or 0.0


def hardest_figure(machine: MachineChoices, title: str) -> Figure:
    """Draw a panel for each method: all configurations, the frontier, and choices within and over caps."""
    row, judge = hardest_kernel(machine)
    frontier = frontier_of(machine.surfaces, row)
    all_results = alone(machine.results)
    results = [result for result in all_results if result.method != REFERENCE] or all_results
    figure, panels = draw.panels(len(results), 4, max(3.0, 6.0 / len(results)), 2.6, sharex=True, sharey=True)
    cases = np.flatnonzero(machine.cases.kernel == row)
    caps = machine.cases.power_cap[cases]
    for axes, result in zip(panels, results, strict=True):
        draw_frontier(axes, frontier)
        axes.plot(frontier.power_w, frontier.performance, ".", color="#bbbbbb", markersize=4, zorder=1)
        chosen = result.chosen[cases]
        under = within_cap(frontier.power_w[chosen], caps)
        # One configuration may be within one cap and over another.
        for flags, look, size, label in (
            (under, draw.Look(draw.BLUE, "o", draw.BLUE), 8, "within the cap"),
            (~under, draw.Look(draw.RED, "X", draw.RED), 5, "over it"),
        ):
            marked = chosen[flags]
            edge: draw.MarkStyle = {
                "markeredgewidth": 0.6,
                "markeredgecolor": "white",
                "zorder": 9 - size / 2,
            }
            power_w, performance = frontier.power_w[marked], frontier.performance[marked]
            draw.points(axes, power_w, performance, look, label, size=size, **edge)
        axes.set_title(f"{method_label(result)}: {under.sum()} of {len(cases)} within", fontsize=9.5)
        draw.style_axes(axes)
    draw.spread_axis(panels[0], "x", frontier.power_w)
    draw.spread_axis(panels[0], "y", frontier.performance)
    for axes in panels[-4:]:
        axes.set_xlabel("power, W", fontsize=9)
    draw.legend_below(figure, 2)
    figure.supylabel(PERFORMANCE, fontsize=10)
    return draw.titled(
        figure,
        f"{title}: {frontier.kernel}, where {judge.method} keeps to the fewest caps",
        "caps are the powers on the frontier (line), choices are marks",
    )


_LARGE = 100_000
"""Numbers from here on are written with an exponent, to fit into their cells."""


def programs_figure(results: Sequence[ChoiceResult], metric: str, label: str, title: str) -> Figure:
    """Draw a heat map: a row for each program, a column for each method; undefined values are empty.

    Performances over the limit may be many times the oracle's. Colours are limited to twice the oracle's,
    numbers are not.
    """
    names = list(results[0].programs)
    values = np.array(
        [[_value(result.programs[name], metric) for result in results] for name in names]
        + [[_value(result.metrics, metric) for result in results]]
    )
    figure, axes = draw.one_figure(3.0 + 0.68 * len(results), 2.1 + 0.29 * len(values))
    draw.heat_map(
        axes,
        values,
        [*names, "all programs"],
        [method_label(result) for result in results],
        write=lambda value: f"{value:,.0f}" if value < _LARGE else f"{value:.0e}",
        limits=_limits(values),
        label=label,
    )
    axes.axhline(len(names) - 0.5, color="white", linewidth=3)
    return draw.titled(figure, title)


def _value(metrics: object, name: str) -> float:
    value = getattr(metrics, name)
    return np.nan if value is None else 100 * float(value)


def _limits(values: Reals) -> tuple[float, float]:
    """Limits of the colours, at least one percentage point apart."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 100.0
    low, high = float(known.min()), min(float(known.max()), max(200.0, float(known.min())))
    return low, max(high, low + 1)


_WIDTH_OF_LEAF = 2.3


def tree_figure(nodes: tuple[TreeNode, ...], title: str) -> Figure:
    """Draw a decision tree, left for yes; leaves have their cluster and number of training kernels."""
    positions = _positions(nodes)
    leaves = sum(node.feature is None for node in nodes)
    deepest = -min(y for _, y in positions)
    figure, axes = draw.one_figure(max(6.0, _WIDTH_OF_LEAF * leaves), 1.6 + 1.15 * deepest)
    for number, node in enumerate(nodes):
        for below, answer in ((node.left, "yes"), (node.right, "no")):
            if below is not None:
                _branch(axes, positions[number], positions[below], answer)
    for position, node in zip(positions, nodes, strict=True):
        leaf = node.feature is None
        axes.text(
            *position,
            _node_text(node),
            ha="center",
            va="center",
            fontsize=8.5,
            bbox={
                "boxstyle": "round,pad=0.4",
                "facecolor": "#e6f0f7" if leaf else "white",
                "edgecolor": draw.BLUE,
            },
            zorder=3,
        )
    axes.set_xlim(-0.6, leaves - 0.4)
    axes.set_ylim(-deepest - 0.45, 0.45)
    axes.set_axis_off()
    return draw.titled(figure, title)


def _positions(nodes: tuple[TreeNode, ...]) -> list[tuple[float, float]]:
    """Coordinates of the nodes: leaves side by side, inner nodes centred above their children."""
    positions: dict[int, tuple[float, float]] = {}

    def set_positions(number: int, depth: int, first_leaf: int) -> int:
        node = nodes[number]
        if node.left is None or node.right is None:
            positions[number] = (float(first_leaf), -float(depth))
            return first_leaf + 1
        next_leaf = set_positions(node.right, depth + 1, set_positions(node.left, depth + 1, first_leaf))
        positions[number] = ((positions[node.left][0] + positions[node.right][0]) / 2, -float(depth))
        return next_leaf

    set_positions(0, 0, 0)
    return [positions[number] for number in range(len(nodes))]


def _branch(axes: Axes, above: tuple[float, float], below: tuple[float, float], answer: str) -> None:
    axes.plot([above[0], below[0]], [above[1], below[1]], color=draw.GREY, linewidth=1, zorder=1)
    axes.text(
        0.45 * above[0] + 0.55 * below[0],
        0.45 * above[1] + 0.55 * below[1],
        answer,
        ha="center",
        va="center",
        fontsize=8,
        color="#555555",
        bbox={"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        zorder=2,
    )


def _node_text(node: TreeNode) -> str:
    if node.feature is None:
        return f"cluster {node.cluster}\n{plural(sum(node.counts), 'kernel')}"
    name = str(node.feature).replace(" at sample", "\nat sample")
    return f"{name}\n≤ {node.threshold:.5g}?"
