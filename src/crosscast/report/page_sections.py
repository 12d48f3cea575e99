"""The sections of the page about a dataset: what each shows, from the headline scores to every point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from crosscast.data.description import CellNoise
from crosscast.data.library import pc
from crosscast.data.profiles import from_row
from crosscast.data.schema import size_order
from crosscast.evaluation.resampling import SHARE
from crosscast.profile import Profile
from crosscast.report.document import Figure, Heading, Part, Table, Text
from crosscast.report.figures import MAP, letters_on, plain_text
from crosscast.report.numbers import MARK, NONE, factor, level_percent, of_log, percent, plural
from crosscast.report.page_figures import (
    MOST_KERNELS,
    STYLE,
    coverage_figure,
    device_groups,
    forecasts_figure,
    times_figure,
)
from crosscast.report.page_subject import Subject
from crosscast.report.pictures import as_drawing
from crosscast.report.profiles import MOST_PROFILES, kiviat
from crosscast.report.time import evaluation_parts
from crosscast.units import format_bytes, format_count, format_hertz


def _level(subject: Subject) -> str:
    return level_percent(subject.result.level)


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


def _in_short(subject: Subject) -> list[Part]:
    """The headline scores beside the best baseline and the noise floor."""
    counts, result = subject.study.counts, subject.result
    return [
        Text(
            [
                f"Each of {plural(counts['applications'], 'application')} was left out in turn, and its "
                f"times on {plural(counts['devices'], 'device')} were predicted from its kernels' profiles "
                f"by the model {result.model}, fitted to the others alone.",
                headline(subject),
            ]
        ),
        Table(
            ["score", result.model, f"{100 * SHARE:g} % range", "best baseline", "noise floor"],
            [row for name in _ROWS for row in _scores_row(subject, *name)],
            f"Scores of the model {result.model} on held-out applications",
        ),
        Text(
            [
                f"{100 * SHARE:g} % range: bootstrap of the applications.",
                "Baseline: the best of those that ignore the kernel, or look up the most similar one; a "
                "star where the model is better and the range of the difference excludes 0.",
                "Noise floor: a single run of each measurement point as the prediction of its median; "
                "smaller errors are noise.",
            ],
            "note",
        ),
    ]


def headline(subject: Subject) -> str:
    """How well times and the fastest device are predicted, in a sentence."""
    scores, confidence = subject.result.scores, subject.confidence
    interval = confidence.intervals.get("median_ape")
    between = (
        "" if interval is None else f" ({_range(interval, percent)} over bootstrap draws of the applications)"
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
        star = f" {MARK}" if difference.better else ""
    yield (
        label,
        write(value) + star,
        NONE if interval is None else _range(interval, write),
        baseline,
        write(getattr(subject.study.noise.scores, name)),
    )


def _range(interval: Any, write: _Write) -> str:
    return f"{write(interval.low)} to {write(interval.high)}"


def _holdings(subject: Subject) -> list[Part]:
    """Tables of what was measured, and how noisy it is."""
    description = subject.description
    counts = ", ".join(
        plural(number, noun)
        for number, noun in (
            (len(description.applications), "application"),
            (len(description.kernels), "kernel"),
            (len(description.sizes), "size"),
            (len(description.devices), "device"),
            (description.cells, "measurement point"),
            (description.records, "record"),
        )
    )
    return [
        Text(
            [
                f"{subject.study.label}: {counts}.",
                "A measurement point is one kernel at one size on one device; its time is the median over "
                "its runs.",
                "The spread is the standard deviation of a point's runs over their mean; the tables give the "
                "median over points.",
                *_left_out(subject),
            ]
        ),
        Table(
            ["application", "sizes", "kernels", *_MEASURED],
            list(_applications(subject)),
            "Applications",
            words=(0, 1),
        ),
        Table(
            ["device", "name", "type", "maker", "series", *(heading for heading, *_ in _FACTS), *_MEASURED],
            list(_devices(subject)),
            "Devices; what is not known of one is a dash",
            words=range(5),
        ),
    ]


_MEASURED = ("points", "runs", "spread")
_FACTS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("units", "compute_units", lambda value: format_count(int(value))),
    ("clock", "clock_hz", format_hertz),
    ("memory", "memory_bytes", lambda value: format_bytes(int(value))),
    ("bandwidth", "bandwidth_bytes_per_s", lambda value: f"{format_bytes(int(value))}/s"),
    ("peak, flop/s", "peak_flop_per_s", "{:.2e}".format),
)


def _left_out(subject: Subject) -> Iterator[str]:
    lacking = subject.description.cells - subject.study.counts["cells"]
    if lacking > 0:
        yield f"{plural(lacking, 'measurement point')} without a profile of the kernel cannot be predicted."
    failed = len(subject.description.failed)
    if failed:
        yield f"{plural(failed, 'session')} failed and {'is' if failed == 1 else 'are'} not counted."


def _applications(subject: Subject) -> Iterator[Sequence[str]]:
    for name in subject.description.applications:
        cells = [cell for cell in subject.description.noise if cell.application == name]
        sizes = sorted({cell.size for cell in cells}, key=size_order)
        kernels = format_count(len({cell.kernel for cell in cells}))
        yield name, ", ".join(sizes), kernels, *_measured(cells)


def _devices(subject: Subject) -> Iterator[Sequence[str]]:
    for key in subject.description.devices:
        device = subject.described[key]
        numbers = device.numbers
        cells = [cell for cell in subject.description.noise if cell.device == key]
        yield (
            key,
            *(text or NONE for text in (device.name, device.type, device.vendor, device.series)),
            *(write(numbers[name]) if name in numbers else NONE for _, name, write in _FACTS),
            *_measured(cells),
        )


def _measured(cells: Sequence[CellNoise]) -> tuple[str, str, str]:
    """Cells, runs and median spread."""
    spreads = [cell.relative_sd for cell in cells if cell.relative_sd is not None]
    spread = percent(median(spreads), 1) if spreads else NONE
    return format_count(len(cells)), format_count(sum(cell.runs for cell in cells)), spread


def _forecasts(subject: Subject) -> list[Part]:
    """The figure of all cells, each predicted by a model that never saw its application."""
    groups = device_groups(subject.devices)
    alternative = (
        f"Predicted over measured time of {plural(int(subject.outcome.counted.sum()), 'point')} on "
        f"logarithmic axes, in {plural(len(groups), 'panel')}, with intervals; the median error is "
        f"{percent(subject.result.scores.median_ape)}."
    )
    caption = (
        f"Each mark is one point, predicted by the model {subject.result.model} fitted without its "
        "application. On the solid line predicted and measured times are equal; between the dashed ones they "
        f"differ by less than a factor of 2. Vertical lines are {_level(subject)} intervals: faint where "
        "they hold the measured time, strong where they miss it. What lies beyond the axes is drawn at their "
        "end."
    )
    return [
        Figure(lambda: as_drawing(lambda: forecasts_figure(subject, groups), **STYLE), alternative, caption)
    ]


_DARKEST = 1.0
"""Error from which on the colour stays the same."""

_ALL = "all"


def _errors(subject: Subject) -> list[Part]:
    """The median error of each application on each device, and over all of them."""
    columns = [subject.result.on(place) for place in range(len(subject.devices))]
    headings = [device.key for device in subject.devices]
    if len(columns) > 1:
        columns.append(subject.result)
        headings.append(_ALL)
    rows = [
        [name, *(column.applications[name].median_ape for column in columns)] for name in subject.result.names
    ]
    rows.append([_ALL, *(column.scores.median_ape for column in columns)])
    return [
        Table(
            ["application", *headings],
            rows,
            "Median error by application and device",
            dict.fromkeys(headings, percent),
            shade=_shade,
        ),
        Text(
            [
                "The error of a point is abs(predicted / measured − 1); each field is the median over the "
                f"kernels and sizes of one application on one device, and {_ALL} the median over all points "
                f"of the row or column. Darker is worse, up to {percent(_DARKEST)}."
            ],
            "note",
        ),
    ]


def _shade(error: float) -> str:
    """Colours of a field: a scale that is even in brightness too, and letters that stand out from it."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    colour = colormaps[MAP](1 - min(error, _DARKEST) / _DARKEST)
    return f"background:{to_hex(colour)};color:{letters_on(colour)}"


def _coverage(subject: Subject) -> list[Part]:
    """The figure of coverage and, where there is a choice, of slowdown."""
    scores, level = subject.result.scores, _level(subject)
    alternative = (
        f"Coverage {percent(scores.coverage)} of the measured times where {level} are wanted, and "
        f"{percent(scores.coverage_worst_application)} in the worst application."
    )
    caption = (
        f"Coverage: share of an application's points whose measured time is within its {level} interval; the "
        "dashed line is what is wanted. Intervals of an application far to the left of it are too narrow."
    )
    if scores.slowdown_mean is not None:
        alternative += (
            f" The recommended device takes {factor(scores.slowdown_mean)} the least time on average."
        )
        caption += (
            " Slowdown: measured time on the recommended device over that on the fastest one, mean over an "
            "application's kernels and sizes; 1 is perfect."
        )
        always = subject.study.always
        if always is not None:
            caption += f" Squares: always taking {always[0]}, the one device that is best in hindsight."
    return [Figure(lambda: as_drawing(lambda: coverage_figure(subject), **STYLE), alternative, caption)]


def _closer(subject: Subject) -> list[Part]:
    """One application: what is recommended for it and what that costs, its times, profiles and cells."""
    scores = subject.result.applications[subject.application]
    # Whether a kernel of the application was measured on more than one device.
    choice = bool(np.isfinite(subject.slowdown[subject.rows]).any())
    lines = [
        f"{subject.application}, predicted by the model {subject.result.model} fitted to the other "
        f"{plural(len(subject.result.names) - 1, 'application')}: median error "
        f"{percent(scores.median_ape)}, coverage of {_level(subject)} intervals {percent(scores.coverage)}."
    ]
    if choice:
        lines.append(
            "The recommended device is the one with the least predicted time, of those that the kernel was "
            "measured on; its cost is its measured time over that of the fastest device."
        )
    tables = [_choices(subject)] if choice else []
    return [Text(lines), *tables, _times(subject, choice), _profiles(subject), every_cell(subject)]


def _choices(subject: Subject) -> Table:
    outcome, keys = subject.outcome, [device.key for device in subject.devices]
    profiles = subject.grid.profiles
    rows = []
    for row in subject.rows:
        if not np.isfinite(subject.slowdown[row]):
            continue
        measured, counted = outcome.measured[row], outcome.counted[row]
        taken, fastest = int(subject.recommended[row]), int(np.nanargmin(measured))
        held = counted & (outcome.low[row] <= measured) & (measured <= outcome.high[row])
        cells = [profiles.kernel[row], profiles.size[row], keys[taken], keys[fastest]]
        cells += [of_log(outcome.centre[row, taken]), _interval(subject, row, taken)]
        cells += [of_log(measured[taken]), of_log(measured[fastest]), factor(float(subject.slowdown[row]))]
        rows.append([*cells, f"{held.sum()} of {counted.sum()}"])
    headings = ["kernel", "size", "recommended device", "fastest device", "predicted on the recommended"]
    headings += [f"{_level(subject)} interval", "measured there", "measured on the fastest", "cost"]
    return Table(
        [*headings, "times within intervals"],
        rows,
        f"Devices recommended for {subject.application}",
        words=range(4),
    )


def _interval(subject: Subject, row: int, column: int) -> str:
    return f"{of_log(subject.outcome.low[row, column])} to {of_log(subject.outcome.high[row, column])}"


def _times(subject: Subject, choice: bool) -> Figure:
    """All kernels and sizes if there is room, else each kernel at its largest, else the first of these."""
    rows = (subject.rows if len(subject.rows) <= MOST_KERNELS else subject.largest)[:MOST_KERNELS]
    left = len(subject.rows) - len(rows)
    caption = (
        f"Dots: measured times. Diamonds and lines: predicted times and their {_level(subject)} intervals."
    )
    caption += " A filled diamond is the recommended device." if choice else ""
    caption += f" {plural(left, 'more kernel')} at a size are in the table below." if left else ""
    return Figure(
        lambda: as_drawing(lambda: times_figure(subject, rows), **STYLE),
        f"Measured and predicted times of {plural(len(rows), 'kernel')} at a size of {subject.application} "
        f"on {plural(len(subject.devices), 'device')}, with intervals.",
        caption,
    )


_TITLE = 100
"""Characters for which the title of a Kiviat figure has room."""


def _profiles(subject: Subject) -> Figure:
    """A Kiviat figure: each kernel at its largest size, as long as they can be told apart."""
    names, table = subject.grid.profiles, subject.dataset.profiles
    of_application = table.filter(pc.equal(table.column("application"), subject.application)).to_pylist()
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(of_application, key=lambda row: row["invocation"]):
        first.setdefault((row["kernel"], row["size"]), row)
    shown = subject.largest[:MOST_PROFILES]
    left = len(subject.largest) - len(shown)
    labels = [f"{names.kernel[row]} ({names.size[row]})" for row in shown]
    # Four names and no more are side by side in the title.
    longest = _TITLE // min(len(shown), 4)
    drawn: list[Profile] = [
        replace(from_row(first[names.kernel[row], names.size[row]]), kernel=plain_text(label, longest))
        for row, label in zip(shown, labels, strict=True)
    ]
    return Figure(
        lambda: as_drawing(lambda: kiviat(drawn)),
        f"Kiviat figure of the profiles of {plural(len(shown), 'kernel')} of {subject.application}: "
        f"{', '.join(labels)}.",
        "What the model knows: metrics of each kernel, here at its largest size, which depend on no device. "
        "Of a kernel that is launched more than once launch 0 is drawn; the model knows the means."
        + (f" The first {len(shown)} kernels by name; {left} more are not drawn." if left else ""),
    )


def every_cell(subject: Subject) -> Table:
    """A table of every cell of the application; folded where they are many."""
    outcome, profiles = subject.outcome, subject.grid.profiles
    rows = []
    for row in subject.rows:
        for column in np.flatnonzero(outcome.counted[row]).tolist():
            measured, centre = outcome.measured[row, column], outcome.centre[row, column]
            held = outcome.low[row, column] <= measured <= outcome.high[row, column]
            cells = [profiles.kernel[row], profiles.size[row], subject.devices[column].key]
            cells += [
                "yes" if held else "no",
                of_log(measured),
                of_log(centre),
                _interval(subject, row, column),
            ]
            rows.append([*cells, factor(math.exp(min(centre - measured, 700.0)))])
    headings = ["kernel", "size", "device", "within", "measured", "predicted", f"{_level(subject)} interval"]
    return Table(
        [*headings, "predicted / measured"],
        rows,
        f"All measurement points of {subject.application}",
        words=range(4),
        fold=f"All {plural(len(rows), 'measurement point')}",
    )


def _in_full(subject: Subject) -> list[Part]:
    """What the scores say and do not say, and all of them."""
    return [
        Heading("How to read it", 3),
        Text(list(_reading(subject)), "list"),
        Heading("Limitations", 3),
        Text(list(_scope(subject)), "list"),
        *evaluation_parts(subject.study),
    ]


def _reading(subject: Subject) -> Iterator[str]:
    result, study = subject.result, subject.study
    scores, level = result.scores, _level(subject)
    yield (
        "Every prediction on this page is of a held-out kernel: the model was scaled, tuned and selected "
        "with the other applications alone."
    )
    yield (
        "An error of 100 % is a time predicted twice as long as it is, or as 0. Errors of a factor are the "
        "same in both directions in ln(time): 0.69 is a factor of 2."
    )
    yield (
        f"An interval is to hold the measured time in {level} of cases. Over all points it did in "
        f"{percent(scores.coverage)}, in the worst application in "
        f"{percent(scores.coverage_worst_application)}; half of the intervals are wider than from a time to "
        f"{factor(scores.width)} that time."
    )
    if study.always is not None and scores.slowdown_mean is not None:
        device, always = study.always
        fixed = always.scores.slowdown_mean
        yield (
            f"Always taking {device} would cost {factor(fixed)} on average; this device was "
            "found in hindsight, with all measured times."
        )
    yield _verdict(subject)


def _verdict(subject: Subject) -> str:
    difference = subject.confidence.differences.get("rmse_log")
    if difference is None:
        return (
            "No baseline stands beside this model, so nothing here says that it is better than a trivial one."
        )
    low, high = (_signed(limit) for limit in (difference.interval.low, difference.interval.high))
    verdict = "better (the range excludes 0)" if difference.better else "not shown to be better"
    return (
        f"The root mean square error of ln(time) of {subject.result.model} less that of the best baseline, "
        f"{difference.baseline}, is {_signed(difference.value)}, and {low} to {high} over the draws of "
        f"applications: {verdict}."
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _scope(subject: Subject) -> Iterator[str]:
    counts = subject.study.counts
    applications = counts["applications"]
    few = f"{plural(applications, 'application')} are few. " if applications < _FEW else ""
    yield (
        f"{few}Kernels of an application resemble each other, so the ranges are over applications, and not "
        f"over {plural(counts['cells'], 'point')}. They hold for applications drawn from the same pool as "
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
            f"{subject.result.model} has the least error of {subject.candidates} models on these same "
            "applications: its scores have a selection bias."
        )
    yield "Times are those of kernels, as the dataset records them, without copies of data, energy or costs."


SECTIONS: tuple[tuple[str, str, Callable[[Subject], list[Part]]], ...] = (
    ("short", "In short", _in_short),
    ("dataset", "What the dataset holds", _holdings),
    ("forecasts", "Predicted and measured times of held-out applications", _forecasts),
    ("errors", "Errors by application and device", _errors),
    ("coverage", "Intervals and slowdowns", _coverage),
    ("closer", "One application in detail", _closer),
    ("scores", "All scores, and how to read them", _in_full),
)
