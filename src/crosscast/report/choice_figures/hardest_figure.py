"""The frontier of the hardest kernel, with what methods chose there (Figure 7 of Bailey et al. 2014)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosscast.decide.evaluation import MachineChoices
from crosscast.decide.power_cap import within_cap
from crosscast.decide.scores import ChoiceResult, Metrics
from crosscast.report.axis_scale import spread_axis
from crosscast.report.canvas import new_figure
from crosscast.report.choice_figures.frontier_figure import draw_frontier
from crosscast.report.choice_figures.styles import alone, method_label
from crosscast.report.choice_frontier import frontier_of
from crosscast.report.figure_style import BLUE, RED, heading, legend_below, tidy

__all__ = ["hardest_figure", "hardest_kernel"]

_JUDGES = ("model+fl", "published+fl")
_LEFT_OUT = ("oracle",)
_COLUMNS = 4


def hardest_kernel(machine: MachineChoices) -> tuple[int, ChoiceResult]:
    """Row of the kernel whose caps are kept least, of the program whose caps are kept least, and by whom.

    Of those whose caps are kept as often, the one with the least score. By ``model+fl``, or ``published+fl``
    where that was not evaluated, or else the first method.
    """
    results = {each.method: each for each in reversed(alone(machine.results))}
    judge = next((results[name] for name in _JUDGES if name in results), alone(machine.results)[0])
    program = min(judge.programs, key=lambda name: _kept(judge.programs[name]))
    cases = machine.cases
    under = within_cap(machine.surfaces.power_w[cases.kernel, judge.chosen], cases.power_cap)
    time_s = machine.surfaces.time_s[cases.kernel, judge.chosen]
    score = np.where(under, cases.oracle_time_s / time_s, 0.0)
    rows = sorted(set(cases.kernel[cases.program == cases.programs.index(program)].tolist()))

    def kept(row: int) -> tuple[float, float]:
        own = cases.kernel == row
        return float(under[own].mean()), float(score[own].mean())

    return min(rows, key=kept), judge


def _kept(metrics: Metrics) -> tuple[float, float]:
    return metrics.under_limit_share or 0.0, metrics.score or 0.0


def hardest_figure(machine: MachineChoices, title: str) -> Any:
    """A panel a method: all configurations, the frontier, and the choices within caps and over them.

    Parameters
    ----------
    machine
        How methods did.
    title
        What it is of.
    """
    row, judge = hardest_kernel(machine)
    found = frontier_of(machine.surfaces, row)
    results: Sequence[ChoiceResult] = [
        each for each in alone(machine.results) if each.method not in _LEFT_OUT
    ] or alone(machine.results)
    columns = min(_COLUMNS, len(results))
    lines = math.ceil(len(results) / columns)
    figure = new_figure(max(6.0, 3.0 * columns), 1.6 + 2.5 * lines)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    own = np.flatnonzero(machine.cases.kernel == row)
    caps = machine.cases.power_cap[own]
    for axes, result in zip(panels, results, strict=False):
        draw_frontier(axes, found)
        axes.plot(found.power_w, found.performance, ".", color="#bbbbbb", markersize=4, zorder=1)
        chosen = result.chosen[own]
        under = within_cap(found.power_w[chosen], caps)
        for flags, colour, mark, label in (
            (under, BLUE, "o", "within the cap"),
            (~under, RED, "X", "over it"),
        ):
            at = chosen[flags]
            axes.plot(
                found.power_w[at],
                found.performance[at],
                mark,
                color=colour,
                # The same configuration may be within one cap and over another.
                markersize=8 if mark == "o" else 5,
                markeredgewidth=0.6,
                markeredgecolor="white",
                linestyle="none",
                label=label,
                zorder=4 if mark == "o" else 5,
            )
        axes.set_title(f"{method_label(result)}: {under.sum()} of {len(own)} within", fontsize=9.5)
        tidy(axes)
    spread_axis(panels[0], "x", found.power_w)
    spread_axis(panels[0], "y", found.performance)
    for axes in panels[len(results) :]:
        axes.set_axis_off()
    for axes in panels[: len(results)][-columns:]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("power, W", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    legend_below(figure, handles, labels, 2)
    figure.supylabel("performance, relative to the fastest configuration", fontsize=10)
    heading(
        figure,
        f"{title}: {found.kernel}, where {judge.method} keeps to the fewest caps",
        "caps are the powers on the frontier (line), choices are marks",
    )
    return figure
