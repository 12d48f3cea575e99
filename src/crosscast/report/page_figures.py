"""Figures of the page about a dataset: predicted and measured times, coverage, one application closely."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.report.figures import (
    BLUE,
    GREY,
    RED,
    Look,
    diagonal,
    looks,
    new_figure,
    panels,
    plain_text,
    points,
    style_axes,
    time_axis,
)
from crosscast.report.page_subject import Subject

MOST_PANELS = 6
MOST_KERNELS = 20
NAME = 32
"""Characters of a name for which there is room."""

STYLE = {"font.size": 9, "axes.titlesize": 10}

_FAR = math.log(1e3)
_MARGIN = math.log(1.6)
_MISSED = "#444444"


def device_groups(devices: Sequence[Device]) -> dict[str, list[int]]:
    """Which devices share a panel: at most `MOST_PANELS` names, each with the numbers of its devices.

    Each has its own where they are few; else those of a maker and type share one, or those of a type.
    """
    keys: Sequence[Callable[[Device], str]] = (
        lambda device: device.key,
        lambda device: f"{device.vendor or 'unknown maker'}, {device.type or 'unknown type'}",
        lambda device: device.type or "unknown type",
        lambda device: "all devices",
    )
    for key in keys:
        found: dict[str, list[int]] = {}
        for place, device in enumerate(devices):
            found.setdefault(key(device), []).append(place)
        if len(found) <= MOST_PANELS:
            break
    return found


def forecasts_figure(subject: Subject, groups: Mapping[str, Sequence[int]]) -> Any:
    """Predicted over measured time of each cell, a panel a group of devices, a look an application."""
    columns = len(groups) if len(groups) < 3 else 2 if len(groups) == 4 else 3
    side = {1: 5.2, 2: 4.6}.get(columns, 3.6)
    figure, every = panels(len(groups), columns, side, side - 0.9, sharex=True, sharey=True)
    limits = _limits(subject)
    ends = (math.exp(limits[0]), math.exp(limits[1]))
    outcome = subject.outcome
    held = (outcome.low <= outcome.measured) & (outcome.measured <= outcome.high)
    applications = np.array(subject.grid.profiles.application)
    for axes, (name, devices) in zip(every, groups.items(), strict=True):
        shown = np.zeros_like(outcome.counted)
        shown[:, devices] = outcome.counted[:, devices]
        diagonal(axes, ends)
        _draw_intervals(axes, subject, shown & held, limits, color="#cfcfcf", linewidth=0.35)
        _draw_intervals(axes, subject, shown & ~held, limits, color=_MISSED, linewidth=0.7)
        for application, look in looks(subject.result.names).items():
            cells = shown & (applications == application)[:, None]
            centre = np.exp(np.clip(outcome.centre[cells], *limits))
            points(axes, np.exp(outcome.measured[cells]), centre, look, plain_text(application, NAME))
        axes.set_title(plain_text(name if len(devices) == 1 else f"{name} ({len(devices)} devices)", NAME))
        style_axes(axes)
        for axis in (axes.xaxis, axes.yaxis):
            time_axis(axis, *ends, most=7)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside right upper", frameon=False, handletextpad=0.3, markerscale=1.5
    )
    figure.supxlabel("measured time", fontsize=10)
    figure.supylabel("predicted time", fontsize=10)
    return figure


def _limits(subject: Subject) -> tuple[float, float]:
    """Ends of both axes: all measured times, and the predicted ones that are not too far from them."""
    outcome = subject.outcome
    measured, centre = outcome.measured[outcome.counted], outcome.centre[outcome.counted]
    least, most = float(measured.min()), float(measured.max())
    low = max(min(float(centre.min()), least), least - _FAR)
    high = min(max(float(centre.max()), most), most + _FAR)
    return low - _MARGIN, high + _MARGIN


def _draw_intervals(
    axes: Any, subject: Subject, cells: Flags, limits: tuple[float, float], **style: Any
) -> None:
    """One path with gaps: a line for each cell would make the page ten times as large."""
    outcome = subject.outcome
    gap = np.full(int(cells.sum()), np.nan)
    x = np.exp(outcome.measured[cells])
    ends = [np.exp(np.clip(each[cells], *limits)) for each in (outcome.low, outcome.high)]
    axes.plot(_woven(x, x, gap), _woven(*ends, gap), zorder=2, **style)


def _woven(*columns: Reals) -> Reals:
    woven: Reals = np.stack(columns, axis=1).ravel()
    return woven


_LOGARITHMIC_FROM = 4.0


def coverage_figure(subject: Subject) -> Any:
    """Coverage of each application and, where there is a choice, the slowdown of the recommended device."""
    applications = subject.result.applications
    there = [(each.coverage, name) for name, each in applications.items() if each.coverage is not None]
    # That with the least coverage is at the top.
    names = [name for _, name in sorted(there, reverse=True)]
    shares = {name: 100 * share for share, name in there}
    choice = subject.result.scores.slowdown_mean is not None
    figure = new_figure(10 if choice else 6.5, 1.2 + 0.27 * len(names))
    left, *right = figure.subplots(1, 2 if choice else 1, sharey=True, squeeze=False).ravel().tolist()
    level = 100 * subject.result.level
    _draw_dots(left, [shares[name] for name in names], level)
    left.set_xlim(min(50.0, *shares.values()) - 2, 102)
    left.set_xlabel("measurement points within their interval, %")
    left.set_title(f"Coverage, {level:g} % wanted")
    for axes in right:
        _draw_slowdown(axes, subject, names)
    # Not both axes: they are one.
    left.set_yticks(range(len(names)), [plain_text(name, NAME) for name in names])
    left.set_ylim(-0.6, len(names) - 0.4)
    return figure


def _draw_dots(axes: Any, values: Sequence[float | None], start: float) -> None:
    """A dot a row, with a line from what is wanted."""
    axes.axvline(start, color=RED, linewidth=1.2, linestyle="--")
    for place, value in enumerate(values):
        if value is not None:
            axes.plot([start, value], [place, place], color=BLUE, linewidth=1.5)
            axes.plot([value], [place], "o", color=BLUE, markersize=5.5)
    style_axes(axes)


def _draw_slowdown(axes: Any, subject: Subject, names: Sequence[str]) -> None:
    own = [subject.result.applications[name].slowdown_mean for name in names]
    fixed = {} if subject.study.always is None else subject.study.always[1].applications
    others = [fixed[name].slowdown_mean if name in fixed else None for name in names]
    for place, other in enumerate(others):
        if other is not None:
            axes.plot([other], [place], "s", color=GREY, markersize=8, markerfacecolor="white")
    _draw_dots(axes, own, 1.0)
    if max((each for each in (*own, *others) if each is not None), default=1.0) > _LOGARITHMIC_FROM:
        from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("measured time on the recommended device / on the fastest")
    axes.set_title("Slowdown, 1 is perfect")


_BEYOND = math.log(1e4)
_PREDICTED = Look(RED, "D", "white")


def times_figure(subject: Subject, rows: Sequence[int]) -> Any:
    """Measured and predicted times of kernels of one application on all devices, with intervals."""
    profiles, count = subject.grid.profiles, len(subject.devices)
    figure, every = panels(len(rows), 4, 2.8, 0.75 + 0.15 * max(count, 2), sharey=True)
    for axes, row in zip(every, rows, strict=True):
        _draw_times(axes, subject, row)
        title = f"{plain_text(profiles.kernel[row], NAME)}, {plain_text(profiles.size[row], NAME)}"
        axes.set_title(title, fontsize=8.5)
        axes.tick_params(labelsize=7.5)
        style_axes(axes)
    every[0].set_yticks(range(count), [plain_text(device.key, NAME) for device in subject.devices])
    every[0].set_ylim(count - 0.4, -0.6)
    figure.supxlabel("time", fontsize=9)
    return figure


def _draw_times(axes: Any, subject: Subject, row: int) -> None:
    outcome = subject.outcome
    places = np.arange(len(subject.devices))
    known = outcome.measured[row][np.isfinite(outcome.measured[row])]
    limits = (known.min() - _BEYOND, known.max() + _BEYOND) if known.size else (-_BEYOND, _BEYOND)
    low, centre, high = (
        np.exp(np.clip(each[row], *limits)) for each in (outcome.low, outcome.centre, outcome.high)
    )
    axes.set_xscale("log")
    axes.hlines(places, low, high, color=RED, linewidth=1.0, alpha=0.6)
    points(axes, centre, places, _PREDICTED, "_", linestyle="none")
    if np.isfinite(subject.slowdown[row]):
        taken = int(subject.recommended[row])
        axes.plot([centre[taken]], [taken], "D", color=RED, markersize=4.5, zorder=4)
    axes.plot(np.exp(outcome.measured[row]), places, "o", color=BLUE, markersize=3.5, zorder=5)
    time_axis(axes.xaxis, float(low.min()), float(high.max()), most=5)
