"""Predicted against measured times, with their intervals: a panel a device, or a kind of device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.report.canvas import new_figure
from crosscast.report.numbers import percent, plural
from crosscast.report.page.markup import Markup
from crosscast.report.page.pictures import COLOURS, GREY, MARKS, drawn, picture, plain
from crosscast.report.page.subject import Subject
from crosscast.report.page.time_axis import scale_times

__all__ = ["MOST_PANELS", "forecasts", "panels"]

MOST_PANELS = 6

_FAR = math.log(1e3)
_MARGIN = math.log(1.6)
_MISSED = "#444444"


def panels(devices: Sequence[Device]) -> dict[str, list[int]]:
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


def forecasts(subject: Subject) -> Markup:
    """The picture of all cells, each predicted by a model that never saw its application."""
    outcome, scores = subject.outcome, subject.result.scores
    counted = int(outcome.counted.sum())
    groups = panels(subject.devices)
    alternative = (
        f"Predicted over measured time of {plural(counted, 'cell')} on logarithmic axes, in "
        f"{plural(len(groups), 'panel')}, with intervals; the median error is {percent(scores.median_ape)}."
    )
    level = f"{100 * subject.result.level:g} %"
    caption = (
        f"Each mark is one cell, predicted by the model {subject.result.model} fitted without its "
        "application. On the solid line predicted and measured times are equal; between the dashed ones "
        f"they differ by less than a factor of 2. Vertical lines are {level} intervals: light where they "
        "hold the measured time, dark where they miss it. What lies beyond the axes is drawn at their end."
    )
    return picture(drawn(lambda: _figure(subject, groups)), alternative, caption)


@dataclass(frozen=True)
class _Look:
    """Colour and mark of an application."""

    colour: str
    mark: str

    @classmethod
    def number(cls, place: int) -> _Look:
        turn = place // len(COLOURS)
        return cls(COLOURS[place % len(COLOURS)], MARKS[(place + turn) % len(MARKS)])


def _figure(subject: Subject, groups: Mapping[str, Sequence[int]]) -> Any:
    columns = len(groups) if len(groups) < 3 else 2 if len(groups) == 4 else 3
    rows = math.ceil(len(groups) / columns)
    side = {1: 5.2, 2: 4.3}.get(columns, 3.2)
    figure = new_figure(side * columns + 1.5, side * rows + 0.5)
    all_axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    limits = _limits(subject)
    looks = {name: _Look.number(place) for place, name in enumerate(subject.result.names)}
    for axes, (name, devices) in zip(all_axes, groups.items(), strict=False):
        _draw_lines(axes, limits)
        _draw_cells(axes, subject, devices, looks, limits)
        heading = name if len(devices) == 1 else f"{name} ({len(devices)} devices)"
        axes.set_title(plain(heading))
        ends = (math.exp(limits[0]), math.exp(limits[1]))
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            scale_times(axis, *ends, most=7)
    for axes in all_axes[len(groups) :]:
        axes.set_axis_off()
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside right upper", frameon=False, handletextpad=0.3, markerscale=1.5
    )
    figure.supxlabel("measured time", fontsize=10)
    figure.supylabel("predicted time", fontsize=10)
    return figure


def _limits(subject: Subject) -> tuple[float, float]:
    """Ends of both axes: all measured times, and the predicted ones that are not too far from them."""
    outcome = subject.outcome
    measured = outcome.measured[outcome.counted]
    least, most = float(measured.min()), float(measured.max())
    centre = outcome.centre[outcome.counted]
    low = max(min(float(centre.min()), least), least - _FAR)
    high = min(max(float(centre.max()), most), most + _FAR)
    return low - _MARGIN, high + _MARGIN


def _draw_lines(axes: Any, limits: tuple[float, float]) -> None:
    ends = np.exp(limits)
    axes.plot(ends, ends, color=GREY, linewidth=1.0, zorder=1)
    for ratio in (0.5, 2.0):
        axes.plot(ends, ratio * ends, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)


def _draw_cells(
    axes: Any,
    subject: Subject,
    devices: Sequence[int],
    looks: Mapping[str, _Look],
    limits: tuple[float, float],
) -> None:
    outcome = subject.outcome
    shown = np.zeros_like(outcome.counted)
    shown[:, devices] = outcome.counted[:, devices]
    held = (outcome.low <= outcome.measured) & (outcome.measured <= outcome.high)
    _draw_intervals(axes, subject, shown & held, limits, color="#cfcfcf", linewidth=0.35)
    _draw_intervals(axes, subject, shown & ~held, limits, color=_MISSED, linewidth=0.7)
    applications = np.array(subject.grid.profiles.application)
    for name, look in looks.items():
        cells = shown & (applications == name)[:, None]
        axes.plot(
            np.exp(outcome.measured[cells]),
            np.exp(np.clip(outcome.centre[cells], *limits)),
            look.mark,
            color=look.colour,
            markersize=4.0,
            markeredgewidth=0.3,
            markeredgecolor="white",
            label=plain(name),
            zorder=3,
        )


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
