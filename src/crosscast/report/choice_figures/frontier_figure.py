"""All configurations of one kernel and its frontier (Figure 2 of Bailey et al. 2014)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.report.axis_scale import spread_axis
from crosscast.report.canvas import new_figure
from crosscast.report.choice_figures.styles import device_styles
from crosscast.report.choice_frontier import KernelFrontier
from crosscast.report.figure_style import GREY, heading, legend_below, tidy
from crosscast.report.settings import setting_heading, setting_scale

__all__ = ["draw_frontier", "frontier_figure"]


def frontier_figure(found: KernelFrontier, title: str) -> Any:
    """Normalised performance over power of each configuration, with a line along the frontier.

    Configurations are coloured by the device; on a single one by its last knob.

    Parameters
    ----------
    found
        The kernel.
    title
        What it is of.
    """
    figure = new_figure(8, 5.4)
    axes = figure.subplots()
    draw_frontier(axes, found)
    space = found.surfaces.space
    if len(space.devices) > 1:
        for device, (colour, mark) in device_styles(space.devices).items():
            own = space.device_numbers == space.devices.index(device)
            axes.plot(
                found.power_w[own],
                found.performance[own],
                mark,
                color=colour,
                markersize=5,
                markeredgewidth=0,
                alpha=0.8,
                label=device,
                zorder=3,
            )
        handles, labels = axes.get_legend_handles_labels()
        legend_below(figure, handles, labels, min(len(labels), 8))
    elif space.knobs:
        name = space.knobs[-1]
        dots = axes.scatter(
            found.power_w,
            found.performance,
            c=space.matrix[:, -1] * setting_scale(name),
            cmap="cividis",
            s=28,
            linewidths=0,
            zorder=3,
        )
        figure.colorbar(dots, ax=axes, label=setting_heading(name), pad=0.02)
    axes.set_xlabel("power, W")
    axes.set_ylabel("performance, relative to the fastest configuration")
    spread_axis(axes, "x", found.power_w)
    spread_axis(axes, "y", found.performance)
    tidy(axes)
    known = int(np.isfinite(found.power_w).sum())
    heading(
        figure,
        f"{title}: {found.kernel}, the longest frontier",
        f"{len(found.frontier)} of {known} configurations are on it (line)",
    )
    return figure


def draw_frontier(axes: Any, found: KernelFrontier) -> None:
    """The frontier as a line of steps: what can be reached with the power at hand."""
    at = found.frontier
    axes.plot(
        found.power_w[at],
        found.performance[at],
        drawstyle="steps-post",
        color=GREY,
        linewidth=1.4,
        zorder=2,
        label="_frontier",
    )
