"""The picture of a choice: all configurations, the predicted frontier, what was measured, the cap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.decide.power_cap import Choice
from crosscast.predict.configuration.data import Space, pareto_frontier
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from crosscast.report.axis_scale import logarithmic_axis, spread_axis
from crosscast.report.canvas import new_figure, save_figure
from crosscast.report.settings import configuration_text

__all__ = ["write_choice_figure"]

# Told apart by people who do not see all colours (Okabe and Ito's palette).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6a00")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_CAP = "#777777"


def write_choice_figure(
    name: str, forecast: SurfaceForecast, space: Space, choices: Sequence[Choice], path: Path
) -> Path:
    """Draw time over power of one kernel.

    Parameters
    ----------
    name
        Name of the kernel.
    forecast
        Time and power at every configuration.
    space
        The configurations.
    choices
        A choice for each cap, all by this forecast.
    path
        Where to write the picture.

    Raises
    ------
    InputError
        If it cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    figure = new_figure(8.4, 5.2)
    axes = figure.subplots()
    power, time = forecast.power.centre, forecast.time.centre
    frontier = pareto_frontier(time, power)
    _draw_configurations(axes, forecast, space)
    axes.plot(
        power[frontier],
        time[frontier],
        color="#333333",
        linewidth=1.2,
        drawstyle="steps-post",
        zorder=2,
        label="predicted frontier",
    )
    _draw_intervals(axes, forecast, frontier, choices[0].level)
    measured = np.flatnonzero(forecast.measured)
    axes.scatter(
        power[measured],
        time[measured],
        s=120,
        facecolors="none",
        edgecolors="black",
        linewidths=1.4,
        zorder=4,
        label="measured",
    )
    _draw_choices(axes, choices)
    logarithmic_axis(axes, "y", time)
    spread_axis(axes, "x", power)
    axes.set_xlabel("power, W")
    axes.set_ylabel("time, s")
    axes.set_title(_title(name, choices), fontsize=10.5, loc="left")
    axes.grid(color="#e3e3e3", linewidth=0.7)
    axes.set_axisbelow(True)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return save_figure(figure, path)


def _draw_configurations(axes: Any, forecast: SurfaceForecast, space: Space) -> None:
    for number, device in enumerate(space.devices):
        own = space.device_numbers == number
        axes.scatter(
            forecast.power.centre[own],
            forecast.time.centre[own],
            s=26,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            alpha=0.55,
            linewidths=0,
            zorder=1,
            label=device,
        )


def _draw_intervals(axes: Any, forecast: SurfaceForecast, frontier: Integers, level: float) -> None:
    """Intervals of both along the frontier, where the model knows them."""
    places = frontier[~forecast.measured[frontier]]
    if not places.size or not forecast.time.errors.size or not forecast.power.errors.size:
        return
    axes.errorbar(
        forecast.power.centre[places],
        forecast.time.centre[places],
        xerr=_reach(forecast.power, places, level),
        yerr=_reach(forecast.time, places, level),
        fmt="none",
        ecolor="#333333",
        elinewidth=0.7,
        alpha=0.55,
        zorder=2,
        label=f"{100 * level:g} % intervals",
    )


def _reach(quantity: Quantity, places: Integers, level: float) -> Reals:
    low, high = (quantity.quantile(share)[places] for share in ((1 - level) / 2, (1 + level) / 2))
    centre = quantity.centre[places]
    # Errors that are all of one sign leave the centre outside of its interval.
    return np.maximum(np.stack([centre - low, high - centre]), 0.0)


def _draw_choices(axes: Any, choices: Sequence[Choice]) -> None:
    for place, choice in enumerate(choices):
        axes.axvline(
            choice.power_cap,
            color=_CAP,
            linestyle="--",
            linewidth=1,
            zorder=1,
            label="power cap" if place == 0 else None,
        )
    there = [each.chosen for each in choices if each.chosen is not None]
    if there:
        axes.scatter(
            [each.power_w for each in there],
            [each.time_s for each in there],
            s=210,
            marker="*",
            color="#f0e442",
            edgecolors="black",
            linewidths=0.8,
            zorder=5,
            label="chosen",
        )


def _title(name: str, choices: Sequence[Choice]) -> str:
    if len(choices) > 1:
        return f"{name} under {', '.join(f'{each.power_cap:g}' for each in choices)} W"
    choice = choices[0]
    chosen = "nothing is chosen" if choice.chosen is None else configuration_text(choice.chosen.configuration)
    return f"{name} under {choice.power_cap:g} W: {chosen}"
