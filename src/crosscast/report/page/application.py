"""Kiviat picture of the profiles of the application that is looked at closely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crosscast.data.library import pc
from crosscast.data.profiles import from_row
from crosscast.profile import Profile
from crosscast.report.figures import new_figure
from crosscast.report.numbers import factor, of_log, percent, plural
from crosscast.report.page.markup import (
    BLUE,
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
    written,
)
from crosscast.report.page.subject import Subject
from crosscast.report.profiles import write_kiviat

MOST_PROFILES = 7
"""More have no colours of their own, and hide each other."""

_TITLE = 100
"""Characters for which its title has room."""


def profiles(subject: Subject) -> Markup:
    """The picture: each kernel at its largest size, as long as they can be told apart."""
    found = _profiles(subject)
    shown = found[:MOST_PROFILES]
    left = len(found) - len(shown)
    alternative = (
        f"Kiviat picture of the profiles of {plural(len(shown), 'kernel')} of {subject.application}: "
        + ", ".join(profile.kernel for profile in shown)
        + "."
    )
    caption = (
        "What the model was told: metrics of each kernel, here at its largest size, which depend on no "
        "device. Of a kernel that is launched more than once launch 0 is drawn; the model was told the means."
        + (f" The first {len(shown)} kernels by name; {left} more are not drawn." if left else "")
    )
    # Four names and no more are side by side in the title.
    longest = _TITLE // min(len(shown), 4)
    named = [replace(profile, kernel=plain(profile.kernel, longest)) for profile in shown]
    return picture(written(lambda path: write_kiviat(named, path)), alternative, caption)


def _profiles(subject: Subject) -> list[Profile]:
    """The first profile of each kernel at its largest size, with the size in its name."""
    names, table = subject.grid.profiles, subject.dataset.profiles
    of_application = table.filter(pc.equal(table.column("application"), subject.application)).to_pylist()
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(of_application, key=lambda row: row["invocation"]):
        first.setdefault((row["kernel"], row["size"]), row)
    return [
        replace(
            from_row(first[names.kernel[row], names.size[row]]),
            kernel=f"{names.kernel[row]} ({names.size[row]})",
        )
        for row in subject.largest
    ]


MOST_PANELS = 20

_COLUMNS = 4
_OPEN_UP_TO = 60
_FAR = math.log(1e4)


def closer(subject: Subject) -> Markup:
    """A table of the choices, and a picture of the times."""
    scores = subject.result.applications[subject.application]
    level = f"{100 * subject.result.level:g} %"
    choice = _is_choice(subject)
    parts = [
        paragraph(
            joined([element("strong", subject.application), ","]),
            f"predicted by the model {subject.result.model} fitted to the other "
            f"{plural(len(subject.result.names) - 1, 'application')}: median error "
            f"{percent(scores.median_ape)}, {percent(scores.coverage)} of the times within their {level} "
            "interval.",
            *(
                [
                    "The recommended device is the one with the least predicted time, of those that the "
                    "kernel was measured on; its cost is its measured time over that of the fastest device."
                ]
                * choice
            ),
        )
    ]
    if choice:
        parts.append(_choices(subject))
    parts.append(_picture(subject))
    return joined(parts, "\n")


def _is_choice(subject: Subject) -> bool:
    """Whether a kernel of the application was measured on more than one device."""
    return bool(np.isfinite(subject.slowdown[subject.rows]).any())


def _choices(subject: Subject) -> Markup:
    level = f"{100 * subject.result.level:g} %"
    headings = (
        "kernel",
        "size",
        "device recommended",
        "device that is fastest",
        "predicted on the former",
        f"{level} interval",
        "measured there",
        "measured on the fastest",
        "cost",
        "times within intervals",
    )
    rows = (row for row in subject.rows if np.isfinite(subject.slowdown[row]))
    return table(
        f"Devices recommended for {subject.application}",
        headings,
        (_choice(subject, row) for row in rows),
        texts=4,
    )


def _choice(subject: Subject, row: int) -> Sequence[str]:
    outcome, keys = subject.outcome, [device.key for device in subject.devices]
    measured = outcome.measured[row]
    taken, fastest = int(subject.recommended[row]), int(np.nanargmin(measured))
    counted = outcome.counted[row]
    held = counted & (outcome.low[row] <= measured) & (measured <= outcome.high[row])
    return (
        subject.grid.profiles.kernel[row],
        subject.grid.profiles.size[row],
        keys[taken],
        keys[fastest],
        of_log(outcome.centre[row, taken]),
        _interval(subject, row, taken),
        of_log(measured[taken]),
        of_log(measured[fastest]),
        factor(float(subject.slowdown[row])),
        f"{held.sum()} of {counted.sum()}",
    )


def _interval(subject: Subject, row: int, column: int) -> str:
    outcome = subject.outcome
    return f"{of_log(outcome.low[row, column])} to {of_log(outcome.high[row, column])}"


def cells(subject: Subject) -> Markup:
    """A table of every cell of the application; folded where they are many."""
    places = [
        (row, column)
        for row in subject.rows
        for column in np.flatnonzero(subject.outcome.counted[row]).tolist()
    ]
    headings = (
        "kernel",
        "size",
        "device",
        "within",
        "measured",
        "predicted",
        f"{100 * subject.result.level:g} % interval",
        "predicted / measured",
    )
    every = table(
        f"All cells of {subject.application}",
        headings,
        (_cell(subject, row, column) for row, column in places),
        texts=4,
    )
    unfolded = {"open": "open"} if len(places) <= _OPEN_UP_TO else {}
    return element("details", element("summary", f"All {plural(len(places), 'cell')}"), every, **unfolded)


def _cell(subject: Subject, row: int, column: int) -> Sequence[str]:
    outcome, profiles = subject.outcome, subject.grid.profiles
    measured, centre = outcome.measured[row, column], outcome.centre[row, column]
    held = outcome.low[row, column] <= measured <= outcome.high[row, column]
    return (
        profiles.kernel[row],
        profiles.size[row],
        subject.devices[column].key,
        "yes" if held else "no",
        of_log(measured),
        of_log(centre),
        _interval(subject, row, column),
        factor(math.exp(min(centre - measured, 700.0))),
    )


def _picture(subject: Subject) -> Markup:
    rows = _shown(subject)
    left = len(subject.rows) - len(rows)
    alternative = (
        f"Measured and predicted times of {plural(len(rows), 'kernel')} at a size of {subject.application} "
        f"on {plural(len(subject.devices), 'device')}, with intervals."
    )
    caption = [
        "Dots: measured times. Diamonds and lines: predicted times and their "
        f"{100 * subject.result.level:g} % intervals."
    ]
    if _is_choice(subject):
        caption.append("A filled diamond is the recommended device.")
    if left:
        caption.append(f"{plural(left, 'more kernel')} at a size are in the table below.")
    return picture(drawn(lambda: _figure(subject, rows)), alternative, " ".join(caption))


def _shown(subject: Subject) -> list[int]:
    """All kernels and sizes if there is room, else each kernel at its largest, else the first of these."""
    rows = subject.rows if len(subject.rows) <= MOST_PANELS else subject.largest
    return rows[:MOST_PANELS]


def _figure(subject: Subject, rows: Sequence[int]) -> Any:
    columns = min(_COLUMNS, len(rows))
    lines = math.ceil(len(rows) / columns)
    profiles, count = subject.grid.profiles, len(subject.devices)
    figure = new_figure(1.6 + 2.4 * columns, 0.4 + (0.75 + 0.15 * max(count, 2)) * lines)
    all_axes = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes, row in zip(all_axes, rows, strict=False):
        _draw_times(axes, subject, row)
        axes.set_title(f"{plain(profiles.kernel[row])}, {plain(profiles.size[row])}", fontsize=8.5)
        axes.tick_params(labelsize=7.5)
    for axes in all_axes[len(rows) :]:
        axes.set_axis_off()
    all_axes[0].set_yticks(range(count), [plain(device.key) for device in subject.devices])
    all_axes[0].set_ylim(count - 0.4, -0.6)
    figure.supxlabel("time", fontsize=9)
    return figure


def _draw_times(axes: Any, subject: Subject, row: int) -> None:
    outcome = subject.outcome
    places = np.arange(len(subject.devices))
    known = outcome.measured[row][np.isfinite(outcome.measured[row])]
    limits = (known.min() - _FAR, known.max() + _FAR) if known.size else (-_FAR, _FAR)
    low, centre, high = (
        np.exp(np.clip(each[row], *limits)) for each in (outcome.low, outcome.centre, outcome.high)
    )
    axes.set_xscale("log")
    axes.hlines(places, low, high, color=RED, linewidth=1.0, alpha=0.6)
    axes.plot(centre, places, "D", color=RED, markersize=4, markerfacecolor="white", markeredgewidth=1.0)
    if np.isfinite(subject.slowdown[row]):
        taken = int(subject.recommended[row])
        axes.plot([centre[taken]], [taken], "D", color=RED, markersize=4.5)
    axes.plot(np.exp(outcome.measured[row]), places, "o", color=BLUE, markersize=3.5, zorder=4)
    scale_times(axes.xaxis, float(low.min()), float(high.max()), most=5)
