"""Predicted against measured times, with their intervals: a panel a device, or a kind of device."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.evaluation.resampling import SHARE, Interval
from crosscast.report.figures import new_figure
from crosscast.report.numbers import NONE, factor, percent, plural
from crosscast.report.page.markup import (
    BLUE,
    COLOURS,
    GREY,
    MARKS,
    RED,
    Markup,
    drawn,
    element,
    joined,
    paragraph,
    picture,
    plain,
    scale_times,
    table,
)
from crosscast.report.page.subject import Subject
from crosscast.report.time import print_evaluation

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


_LOGARITHMIC_FROM = 4.0


def sureness(subject: Subject) -> Markup:
    """The picture of coverage and, where there is a choice, of slowdown."""
    scores, level = subject.result.scores, f"{100 * subject.result.level:g} %"
    alternative = [
        f"Intervals hold {percent(scores.coverage)} of the measured times where {level} are wanted, and "
        f"{percent(scores.coverage_worst_application)} in the worst application."
    ]
    caption = [
        f"Coverage: share of an application's cells whose measured time is within its {level} interval; the "
        "dashed line is what is wanted. Intervals of an application far to the left of it were too sure."
    ]
    if scores.slowdown_mean is not None:
        alternative.append(
            f"The recommended device takes {factor(scores.slowdown_mean)} the least time on average."
        )
        caption.append(
            "Slowdown: measured time on the recommended device over that on the fastest one, mean over an "
            f"application's kernels and sizes; 1 is perfect.{_beside(subject)}"
        )
    return picture(drawn(lambda: _sureness_figure(subject)), " ".join(alternative), " ".join(caption))


def _beside(subject: Subject) -> str:
    always = subject.study.always
    if always is None:
        return ""
    return f" Squares: always taking {always[0]}, the one device that is best afterwards."


def _sureness_figure(subject: Subject) -> Any:
    names = _ordered(subject)
    choice = subject.result.scores.slowdown_mean is not None
    figure = new_figure(10 if choice else 6.5, 1.2 + 0.27 * len(names))
    all_axes = figure.subplots(1, 2 if choice else 1, sharey=True, squeeze=False).ravel()
    _draw_coverage(all_axes[0], subject, names)
    if choice:
        _draw_slowdown(all_axes[1], subject, names)
    # Not both axes: they are one.
    all_axes[0].set_yticks(range(len(names)), [plain(name) for name in names])
    all_axes[0].set_ylim(-0.6, len(names) - 0.4)
    return figure


def _ordered(subject: Subject) -> list[str]:
    """Applications, that with the least coverage at the top."""
    applications = subject.result.applications
    there = [(each.coverage, name) for name, each in applications.items() if each.coverage is not None]
    return [name for _, name in sorted(there, reverse=True)]


def _draw_coverage(axes: Any, subject: Subject, names: Sequence[str]) -> None:
    applications = subject.result.applications
    shares = [100 * (applications[name].coverage or 0.0) for name in names]
    level = 100 * subject.result.level
    axes.axvline(level, color=RED, linewidth=1.2, linestyle="--")
    axes.hlines(range(len(names)), [level] * len(names), shares, color=BLUE, linewidth=1.5)
    axes.plot(shares, range(len(names)), "o", color=BLUE, markersize=5.5)
    axes.set_xlim(min(50.0, *shares) - 2, 102)
    axes.set_xlabel("cells within their interval, %")
    axes.set_title(f"Coverage, {level:g} % wanted")


def _draw_slowdown(axes: Any, subject: Subject, names: Sequence[str]) -> None:
    always = subject.study.always
    fixed = {} if always is None else always[1].applications
    most = 1.0
    for place, name in enumerate(names):
        own = subject.result.applications[name].slowdown_mean
        other = fixed[name].slowdown_mean if name in fixed else None
        most = max(most, own or 1.0, other or 1.0)
        if other is not None:
            axes.plot([other], [place], "s", color=GREY, markersize=8, markerfacecolor="white")
        if own is not None:
            axes.plot([1.0, own], [place, place], color=BLUE, linewidth=1.5)
            axes.plot([own], [place], "o", color=BLUE, markersize=5.5)
    if most > _LOGARITHMIC_FROM:
        from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1.0, color=RED, linewidth=1.2, linestyle="--")
    axes.set_xlabel("measured time on the recommended device / on the fastest")
    axes.set_title("Slowdown, 1 is perfect")


_DARKEST = 1.0
"""Error from which on the colour stays the same."""

_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_ALL = "all"


def heat_map(subject: Subject) -> Markup:
    """The median error of each application on each device, and over all of them."""
    names = subject.result.names
    columns = [subject.result.on(place) for place in range(len(subject.devices))]
    if len(columns) > 1:
        columns.append(subject.result)
    headings = [device.key for device in subject.devices] + [_ALL] * (len(columns) > len(subject.devices))
    rows = [(name, [column.applications[name].median_ape for column in columns]) for name in names] + [
        (_ALL, [column.scores.median_ape for column in columns])
    ]
    caption = "Median error by application and device"
    table = element(
        "table",
        element("caption", caption),
        element(
            "thead",
            element(
                "tr",
                element("th", "application", scope="col"),
                *(element("th", element("span", text), scope="col", class_="upright") for text in headings),
            ),
        ),
        "\n",
        element("tbody", joined((_row(name, errors) for name, errors in rows), "\n")),
        class_="heat",
    )
    return joined(
        [
            element("div", table, class_="wide", tabindex="0", role="region", aria_label=caption),
            paragraph(
                "The error of a cell is abs(predicted / measured − 1); each field is the median over the "
                f"kernels and sizes of one application on one device, and {_ALL} the median over all cells "
                "of the row or column.",
                "Darker is worse:",
                joined([_swatch(step) for step in _STEPS]),
                class_="note",
            ),
        ],
        "\n",
    )


def _row(name: str, errors: Sequence[float | None]) -> Markup:
    return element(
        "tr",
        element("th", name, scope="row"),
        *(
            element("td", NONE) if error is None else element("td", percent(error), style=_style(error))
            for error in errors
        ),
    )


def _swatch(error: float) -> Markup:
    text = percent(error) + (" and more" if error == _DARKEST else "")
    return element("span", text, class_="swatch", style=_style(error))


def _style(error: float) -> str:
    """Colours of a field: a scale that is even in brightness too, and letters that stand out from it."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # The darker half of the scale is for letters that are white.
    red, green, blue, _ = colormaps["cividis"](1 - min(error, _DARKEST) / _DARKEST)
    brightness = 0.299 * red + 0.587 * green + 0.114 * blue
    return f"background:{to_hex((red, green, blue))};color:{'#000' if brightness > 0.5 else '#fff'}"


_FEW = 20
"""Applications below which the page says that they are few."""

_Write = Callable[[float | None], str]


def _decimal(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


_ROWS: tuple[tuple[str, str, _Write], ...] = (
    ("median error of a time", "median_ape", percent),
    ("the same, mean over applications", "median_ape_by_application", percent),
    ("root mean square error of ln(time)", "rmse_log", _decimal),
    ("slowdown of the recommended device, mean", "slowdown_mean", factor),
    ("recommended device is the fastest", "top1", percent),
    ("times within their interval", "coverage", percent),
)


def in_short(subject: Subject) -> Markup:
    """The headline scores beside the best baseline and the noise floor."""
    counts, result = subject.study.counts, subject.result
    return joined(
        [
            paragraph(
                f"Each of {plural(counts['applications'], 'application')} was left out in turn, and its "
                f"times on {plural(counts['devices'], 'device')} were predicted from its kernels' profiles "
                f"by the model {result.model}, fitted to the others alone.",
                headline(subject),
            ),
            table(
                f"Scores of the model {result.model} on applications that it has not seen",
                ("score", result.model, f"{100 * SHARE:g} % range", "best baseline", "noise floor"),
                (row for name in _ROWS for row in _scores_row(subject, *name)),
            ),
            paragraph(
                f"{100 * SHARE:g} % range: where the score falls when the applications are drawn again, "
                "with replacement.",
                "Baseline: what needs no look at the kernel, or only looks up the most similar one; a star "
                "where the model is better than it beyond doubt, which is when that range of their "
                "difference excludes 0.",
                "Noise floor: a single run of each cell as the forecast of its median; errors as small as "
                "that are noise.",
                class_="note",
            ),
        ],
        "\n",
    )


def headline(subject: Subject) -> str:
    """How well times and the fastest device are predicted, in a sentence."""
    scores, confidence = subject.result.scores, subject.confidence
    interval = confidence.intervals.get("median_ape")
    between = (
        "" if interval is None else f" ({_range(interval, percent)} with other draws of the applications)"
    )
    sentence = (
        f"Half of the predicted times are within {percent(scores.median_ape)} of the measured ones{between}"
    )
    if scores.slowdown_mean is not None:
        sentence += (
            f", and the device recommended for a kernel takes {factor(scores.slowdown_mean)} the time of the "
            "fastest on average"
        )
    return f"{sentence}."


def _scores_row(subject: Subject, label: str, name: str, write: _Write) -> Iterator[Sequence[str]]:
    value = getattr(subject.result.scores, name)
    if value is None:
        return
    confidence = subject.confidence
    interval = confidence.intervals.get(name)
    difference = confidence.differences.get(name)
    baseline, star = NONE, ""
    if difference is not None:
        baseline = f"{write(value - difference.value)} ({difference.baseline})"
        star = " *" if difference.better else ""
    yield (
        label,
        write(value) + star,
        NONE if interval is None else _range(interval, write),
        baseline,
        write(getattr(subject.study.noise.scores, name)),
    )


def _range(interval: Interval, write: _Write) -> str:
    return f"{write(interval.low)} to {write(interval.high)}"


def in_full(subject: Subject) -> Markup:
    """All scores of all models, as `crosscast evaluate` prints them, and what they do and do not say."""
    stream = io.StringIO()
    print_evaluation(subject.study, stream)
    text = "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
    label = "Scores of all models, baselines and the noise floor"
    return joined(
        [
            element("h3", "How to read it"),
            element("ul", joined((element("li", each) for each in _reading(subject)), "\n")),
            element("h3", "What it does not say"),
            element("ul", joined((element("li", each) for each in _scores_limits(subject)), "\n")),
            element("h3", "All scores"),
            element(
                "div", element("pre", text), class_="wide", tabindex="0", role="region", aria_label=label
            ),
        ],
        "\n",
    )


def _reading(subject: Subject) -> Iterator[str]:
    result, study = subject.result, subject.study
    scores, level = result.scores, f"{100 * result.level:g} %"
    yield (
        "No prediction on this page is of a kernel that the model had seen: whatever it scales, tunes or "
        "selects, it did with the other applications alone."
    )
    yield (
        "An error of 100 % is a time predicted twice as long as it is, or as 0. Errors of a factor are the "
        "same in both directions in ln(time): 0.69 is a factor of 2."
    )
    yield (
        f"An interval is to hold the measured time in {level} of cases. Over all cells it did in "
        f"{percent(scores.coverage)}, in the worst application in "
        f"{percent(scores.coverage_worst_application)}; half of the intervals are wider than from a time to "
        f"{factor(scores.width)} that time."
    )
    if study.always is not None and scores.slowdown_mean is not None:
        device, always = study.always
        fixed = always.scores.slowdown_mean
        yield (
            f"Always taking {device} would cost {factor(fixed)} on average; that this device is "
            "the best to take always was found afterwards, with all measured times."
        )
    yield _verdict(subject)


def _verdict(subject: Subject) -> str:
    difference = subject.confidence.differences.get("rmse_log")
    if difference is None:
        return (
            "No baseline stands beside this model, so nothing here says that it is better than a trivial one."
        )
    low, high = (_signed(limit) for limit in (difference.interval.low, difference.interval.high))
    verdict = "better beyond doubt" if difference.better else "not shown to be better"
    return (
        f"The root mean square error of ln(time) of {subject.result.model} less that of the best baseline, "
        f"{difference.baseline}, is {_signed(difference.value)}, and {low} to {high} over the draws of "
        f"applications: {verdict}."
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _scores_limits(subject: Subject) -> Iterator[str]:
    counts = subject.study.counts
    applications = counts["applications"]
    few = f"{plural(applications, 'application')} are few. " if applications < _FEW else ""
    yield (
        f"{few}Kernels of an application resemble each other, so the ranges are over applications, and not "
        f"over {plural(counts['cells'], 'cell')}. They hold for applications drawn from the same pool as "
        "these, and for no others."
    )
    yield (
        f"The model had seen these devices ({', '.join(device.key for device in subject.devices)}) run other "
        "applications. Nothing here says how well another device is predicted, or another compiler or driver."
    )
    yield (
        "A single application can be predicted far worse than the scores over all say: look at its row in "
        "the tables by application."
    )
    if subject.candidates > 1:
        yield (
            f"{subject.result.model} is shown because its error is the least of {subject.candidates} models "
            "on these same applications; that choice flatters it a little."
        )
    yield "Times are those of kernels, as the dataset records them, without copies of data, energy or costs."
