"""Figures of one choice of a configuration, and of an evaluation of methods that choose."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.evaluation.configuration.evaluation import ALONE, ConfigurationEvaluation, MachineChoices
from crosscast.evaluation.configuration.scores import ChoiceMetrics, ChoiceResult
from crosscast.evaluation.resampling import SHARE
from crosscast.prediction.configuration.choice import Choice
from crosscast.prediction.configuration.data import (
    ConfigurationSpace,
    Quantity,
    SurfaceForecast,
    pareto_frontier,
)
from crosscast.report import figures as draw
from crosscast.report.configuration_evaluation import (
    REFERENCE,
    KernelFrontier,
    longest_frontier,
    method_label,
    write_frontier,
)
from crosscast.report.numbers import level_percent, setting_heading
from crosscast.units import setting_parts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def choice_figure(
    name: str, forecast: SurfaceForecast, space: ConfigurationSpace, choices: Sequence[Choice]
) -> Figure:
    """Draw predicted time over power of one kernel, with frontier and choices."""
    figure, axes = draw.one_figure(8.4, 5.2)
    power, time = forecast.power.centre, forecast.time.centre
    for number, (device, look) in enumerate(draw.looks(space.devices).items()):
        on_device = space.device_numbers == number
        axes.scatter(
            power[on_device],
            time[on_device],
            s=26,
            c=look.face,
            marker=look.mark,
            linewidths=look.face == "white",
            alpha=0.55,
            edgecolors=look.colour,
            zorder=1,
            label=device,
        )
    frontier = pareto_frontier(time, power)
    draw.steps(axes, power[frontier], time[frontier], color="#333333", label="predicted frontier")
    _draw_intervals(axes, forecast, frontier, choices[0].level)
    measured = np.flatnonzero(forecast.measured)
    axes.scatter(
        power[measured],
        time[measured],
        s=120,
        facecolors="none",
        edgecolors=draw.BLACK,
        linewidths=1.4,
        zorder=4,
        label="measured",
    )
    _draw_choices(axes, choices)
    draw.logarithmic_axis(axes, "y", time)
    draw.spread_axis(axes, "x", power)
    axes.set_title(_title(name, choices), fontsize=10.5, loc="left")
    draw.style_axes(axes, x="power, W", y="time, s")
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _draw_intervals(axes: Axes, forecast: SurfaceForecast, frontier: Integers, level: float) -> None:
    """Draw the intervals of time and power along the frontier, where the model has them."""
    predicted = frontier[~forecast.measured[frontier]]
    if not predicted.size or not forecast.time.errors.size or not forecast.power.errors.size:
        return
    axes.errorbar(
        forecast.power.centre[predicted],
        forecast.time.centre[predicted],
        xerr=_reach(forecast.power, predicted, level),
        yerr=_reach(forecast.time, predicted, level),
        fmt="none",
        ecolor="#333333",
        elinewidth=0.7,
        alpha=0.55,
        zorder=2,
        label=f"{level_percent(level)} intervals",
    )


def _reach(quantity: Quantity, numbers: Integers, level: float) -> Reals:
    """Distances from the centre to both ends of the intervals of some configurations."""
    low, high = (limit[numbers] for limit in quantity.limits(level))
    centre = quantity.centre[numbers]
    # If all errors have one sign, the centre is outside of its interval.
    return np.maximum(np.stack([centre - low, high - centre]), 0.0)


def _draw_choices(axes: Axes, choices: Sequence[Choice]) -> None:
    for number, choice in enumerate(choices):
        axes.axvline(
            choice.power_cap,
            color=draw.GREY,
            linestyle="--",
            linewidth=1,
            zorder=1,
            label="power cap" if number == 0 else None,
        )
    recommended = [choice.recommended for choice in choices if choice.recommended is not None]
    if recommended:
        axes.scatter(
            [forecast.power_w for forecast in recommended],
            [forecast.time_s for forecast in recommended],
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
        return f"{name} under {', '.join(f'{choice.power_cap:g}' for choice in choices)} W"
    choice = choices[0]
    chosen = "nothing is chosen" if choice.recommended is None else str(choice.recommended.configuration)
    return f"{name} under {choice.power_cap:g} W: {chosen}"


_LONGEST_NAME = 40


def evaluation_figures(study: ConfigurationEvaluation) -> dict[str, Figure]:
    """Draw the longest frontier, the methods, the score by extra runs and results on repeats, by name.

    The names begin with a folder for each machine where there are several. Results on repeats have a figure
    only where there are any.
    """
    figures: dict[str, Figure] = {}
    for machine, folder in _with_folders(study):
        results, title = alone(machine.results), machine.machine
        figures |= {
            f"{folder}frontier": frontier_figure(longest_frontier(machine), title),
            f"{folder}methods": methods_figure(results, title),
            f"{folder}curve": curve_figure(results, f"{title}: S by the extra runs that are allowed"),
        }
        if machine.split_half is not None:
            repeats_title = f"{title}: caps kept, by what is scored"
            figures[f"{folder}repeats"] = repeats_figure(results, machine.split_half, repeats_title)
    return figures


def write_frontiers(study: ConfigurationEvaluation, folder: Path) -> list[Path]:
    """Write the longest frontier of each machine beside its figures (Table I of Bailey et al. 2014)."""
    return [
        write_frontier(longest_frontier(machine), folder / subfolder / "frontier.csv")
        for machine, subfolder in _with_folders(study)
    ]


def _with_folders(study: ConfigurationEvaluation) -> Iterator[tuple[MachineChoices, str]]:
    """Each machine with the folder that its figures' names begin with, empty for a single machine."""
    names = machine_folders([machine.machine for machine in study.machines])
    for machine, name in zip(study.machines, names, strict=True):
        yield machine, f"{name}/" if len(study.machines) > 1 else ""


def machine_folders(machines: Sequence[str]) -> list[str]:
    """Unique names of the machines' folders that are safe in any file system.

    >>> machine_folders(["titanx", "cpu + gpu", "..", "cpu+gpu"])
    ['titanx', 'cpu-gpu', 'machine', 'cpu-gpu-2']
    """
    names: list[str] = []
    for machine in machines:
        plain = re.sub(r"[^\w]+", "-", machine).strip("-")[:_LONGEST_NAME] or "machine"
        name, count = plain, 1
        while name.casefold() in {other.casefold() for other in names}:
            count += 1
            name = f"{plain}-{count}"
        names.append(name)
    return names


_FAMILIES = (
    "model",
    "published",
    "nearest",
    "published-5",
    "fixed",
    "model-confident",
)
"""Families of methods with a fixed style in all figures; others follow."""

_DASHES = {"": (0, (1, 1.2)), "+fl": (0, (5, 1.5)), "+steps": "solid"}
_LIMITER = "limiter"


def alone(results: Sequence[ChoiceResult]) -> list[ChoiceResult]:
    """Results with each program left out alone."""
    return [result for result in results if result.protocol == ALONE]


def method_styles(results: Sequence[ChoiceResult]) -> dict[str, dict[str, Any]]:
    """Assign keyword arguments of matplotlib to each method; variants of one model share colour and mark.

    The mark is hollow and the line dotted without limiting; with steps up, too, the mark has a black edge.
    """

    def style(colour: str, mark: str, face: str, edge: str, dashes: object) -> dict[str, Any]:
        marks = {"marker": mark, "markerfacecolor": face, "markeredgecolor": edge}
        return {"color": colour, "linestyle": dashes, **marks}

    families = {family: number for number, family in enumerate(_FAMILIES)}
    styles = {}
    for result in results:
        family, suffix = _family(result.method)
        number = families.setdefault(family, len(families))
        colour, mark = draw.COLOURS[number % len(draw.COLOURS)], draw.MARKS[number % len(draw.MARKS)]
        edge = draw.BLACK if suffix == "+steps" else colour
        styles[result.method] = style(colour, mark, colour if suffix else "white", edge, _DASHES[suffix])
    for name, colour, mark in ((_LIMITER, draw.BLACK, "X"), (REFERENCE, draw.GREY, "*")):
        if name in styles:
            styles[name] = style(colour, mark, colour, colour, "solid")
    return styles


def _family(name: str) -> tuple[str, str]:
    suffix = next((ending for ending in ("+fl", "+steps") if name.endswith(ending)), "")
    return name.removesuffix(suffix), suffix


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


def methods_figure(results: Sequence[ChoiceResult], title: str) -> Figure:
    """Draw a mark for each method, with lines for its bootstrap intervals over programs."""
    figure, axes = draw.one_figure(8, 6.2)
    styles = method_styles(results)
    for result in results:
        share, performance = result.metrics.under_limit_share, result.metrics.under_performance
        if share is None or performance is None:
            continue
        style, intervals = styles[result.method], result.bootstrap.intervals
        line: dict[str, Any] = {"color": style["color"], "linewidth": 1, "alpha": 0.35, "zorder": 2}
        if (within := intervals.get("under_limit_share")) is not None:
            axes.plot([100 * within.low, 100 * within.high], [100 * performance] * 2, **line)
        if (within := intervals.get("under_performance")) is not None:
            axes.plot([100 * share] * 2, [100 * within.low, 100 * within.high], **line)
        marks = {**style, "linestyle": "none", "markersize": 8, "markeredgewidth": 1.5, "clip_on": False}
        axes.plot([100 * share], [100 * performance], zorder=4, label=method_label(result), **marks)
    draw.style_axes(axes, x="cases within the cap, %", y="performance in these, % of the oracle's")
    draw.legend_below(figure, 4)
    return draw.titled(
        figure,
        f"{title}: hollow marks choose once, filled ones follow what they measure",
        f"lines hold {100 * SHARE:g} % of bootstrap draws of the programs",
    )


_SERIES = (
    ("same run", draw.Look(draw.GREY, "o", "white")),
    ("same run, 1 % tolerance", draw.Look(draw.GREY, "s", draw.GREY)),
    ("other repeats (simulated), 1 % tolerance", draw.Look(draw.BLUE, "D", draw.BLUE)),
    ("other repeats (simulated), told 1 % less", draw.Look(draw.RED, "X", draw.RED)),
)


def repeats_figure(results: Sequence[ChoiceResult], split_half: ChoiceMetrics, title: str) -> Figure:
    """Draw a row for each method, and one for the split-half oracle."""
    rows = [(method_label(result), _shares_within(result)) for result in results]
    rows.append(("split-half oracle", (None, None, split_half.under_limit_share_within_1pct, None)))
    rows.reverse()
    figure, axes = draw.one_figure(8, 1.9 + 0.3 * len(rows))
    for column, (name, look) in enumerate(_SERIES):
        shares = [math.nan if (share := each[column]) is None else 100 * share for _, each in rows]
        size = 10.0 if look.face == "white" else 6.5
        draw.points(axes, shares, range(len(rows)), look, name, size=size, clip_on=False, zorder=3 + column)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    draw.style_axes(axes, x="cases within the cap, %")
    draw.legend_below(figure, 2)
    return draw.titled(figure, title)


def _shares_within(result: ChoiceResult) -> tuple[float | None, ...]:
    metrics, on_repeats = result.metrics, result.on_repeats
    return (
        metrics.under_limit_share,
        metrics.under_limit_share_within_1pct,
        None if on_repeats is None else on_repeats.under_limit_share_within_1pct,
        None if result.told_less is None else result.told_less.under_limit_share,
    )


def curve_figure(results: Sequence[ChoiceResult], title: str) -> Figure:
    """Draw a line for each method; the limiter without a model is thicker."""
    figure, axes = draw.one_figure(8, 6.0)
    styles = method_styles(results)
    for result in results:
        limiter = result.method == _LIMITER
        axes.plot(
            list(result.curve),
            [100 * (metrics.score or 0.0) for metrics in result.curve.values()],
            linewidth=4 if limiter else 1.5,
            markersize=5.5,
            label=method_label(result),
            clip_on=False,
            # Methods that start like the limiter are drawn over it.
            zorder=2 if limiter else 3,
            **styles[result.method],
        )
    axes.set_ylim(0, 100)
    axes.set_xticks(list(results[0].curve))
    draw.style_axes(
        axes,
        x="extra runs that are allowed after the first choice",
        y="S: performance with violations counting 0, % of the oracle's",
    )
    draw.legend_below(figure, 4)
    return draw.titled(figure, title)
