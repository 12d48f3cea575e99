"""Rankings of variants and evaluations of searches for people: tables, heat maps and curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from crosscast.arrays import Reals
from crosscast.report import figures as draw
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.numbers import level_percent, percent, plural
from crosscast.tuning.evaluation import BUDGETS, TuningEvaluation
from crosscast.tuning.ranking import Ranking
from crosscast.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST = 10
"""Variants of a table."""

_MOST_CELLS = 20


def ranking_report(found: Ranking, best: int = BEST) -> Report:
    """The best variants on each device, and why they are."""
    parts: list[Part] = [
        Heading(f"Variants of {found.space.rule.kernel}", 1),
        "",
        *_how(found),
        *found.notes,
        "",
    ]
    for key in found.devices:
        parts += [_best(found, key, best), ""]
    if found.tried:
        parts.append(
            Text([f"{found.variants.labels[row]}: {why}" for row, why in found.tried.items()], "warnings")
        )
    return Report(parts)


def _how(found: Ranking) -> list[str]:
    ran, total = int(found.ran.sum()), len(found)
    state = "ranked" if found.variants.drawn else "valid"
    lines = [f"{total:,} variants are {state}; {ran:,} of them were profiled."]
    if ran < total:
        errors = ", ".join(
            f"{percent(math.expm1(error))} on {key}"
            for key, error in zip(found.devices, found.count_error, strict=True)
        )
        lines.append(
            f"Counts of the others follow from theirs: left out in turn, that moves forecasts by {errors}, "
            f"which the {level_percent(found.level)} intervals hold."
        )
    if found.measured:
        lines.append(
            f"{plural(len(found.measured), 'variant')} ran here, and {len(found.tried)} failed; the "
            "forecasts of all others are conditioned on that."
        )
    return lines


def _best(found: Ranking, key: str, best: int) -> Table:
    place = found.place(key)
    rows = found.order(key)[:best].tolist()
    if found.measured:
        rows = sorted(
            {*rows, *sorted(found.measured, key=lambda row: found.measured[row])[:best]},
            key=lambda row: found.measured.get(row, math.exp(found.log_time[row, place])),
        )[:best]
    low, high = found.limits()
    varied = [
        name
        for name, values in zip(found.variants.names, found.variants.values, strict=True)
        if len(values) > 1
    ]
    columns: dict[str, Callable[[int], object]] = {"rank": lambda row: rows.index(row) + 1}
    for name in varied:
        columns[name] = partial(_parameter, found, name)
    columns |= {
        "forecast": lambda row: math.exp(found.log_time[row, place]),
        "low": lambda row: low[row, place],
        "high": lambda row: high[row, place],
    }
    if found.measured:
        columns["measured"] = found.measured.get
    columns |= {
        "counts": lambda row: "profiled" if found.ran[row] else "estimated",
        "saves most of": lambda row: _saved(found, row, key),
    }
    of_time = dict.fromkeys(("forecast", "low", "high", "measured"), format_seconds)
    return Table.of(rows, columns, caption=f"The best on {key}", formats=of_time, words=(len(columns) - 1,))


def _parameter(found: Ranking, name: str, row: int) -> object:
    return found.variants[row][name]


def _saved(found: Ranking, row: int, key: str) -> str | None:
    saved = found.saved(row, key)
    return None if saved is None else f"{saved[0]} ({format_seconds(saved[1])})"


def ranking_figures(found: Ranking) -> dict[str, Figure]:
    """Heat maps of the least forecast over two parameters on each device."""
    return {
        f"variants-{key}": draw.titled(
            _maps([("forecast", np.exp(found.log_time[:, found.place(key)]))], found),
            f"Least time over all other parameters on {draw.plain_text(key)}, over the least of all",
        )
        for key in found.devices
    }


def two_parameters(found: Ranking, time_s: Reals) -> tuple[int, int]:
    """The two parameters that together tell most of the logarithm of the time."""
    known = np.isfinite(time_s)
    logs, rows = np.log(time_s[known]), found.variants.rows[known]
    varied = [k for k, v in enumerate(found.variants.values) if 1 < len(v) <= _MOST_CELLS]

    def left(columns: list[int]) -> float:
        _, groups = np.unique(rows[:, columns], axis=0, return_inverse=True)
        groups = groups.ravel()
        means = np.bincount(groups, logs) / np.bincount(groups)
        return float(((logs - means[groups]) ** 2).sum())

    pairs = [(a, b) for place, a in enumerate(varied) for b in varied[place + 1 :]]
    return min(pairs, key=lambda pair: left(list(pair)), default=(0, 0))


def _maps(times: list[tuple[str, Reals]], found: Ranking) -> Figure:
    first, second = two_parameters(found, times[-1][1])
    names, values = found.variants.names, found.variants.values
    figure, axes = draw.panels(len(times), 2, 5.4, 4.2)
    for each, (label, time_s) in zip(axes, times, strict=True):
        least = np.full((len(values[first]), len(values[second])), np.inf)
        np.minimum.at(
            least, tuple(found.variants.rows[:, [first, second]].T), np.nan_to_num(time_s, nan=np.inf)
        )
        ratio = np.where(np.isfinite(least), least / np.nanmin(time_s), np.nan)
        draw.heat_map(
            each,
            ratio,
            [str(v) for v in values[first]],
            [str(v) for v in values[second]],
            write=lambda value: f"{value:.2f}" if value < 10 else f"{value:.0f}",
            limits=(1.0, 3.0),
            reverse=True,
            rotation=0,
        )
        each.set_title(label, fontsize=10, loc="left")
        each.set_xlabel(names[second])
        each.set_ylabel(names[first])
    return figure


def evaluation_report(found: TuningEvaluation) -> Report:
    """Fractions of the optimum by method and number of runs: means over devices, and each device."""
    seen = (
        "The model saw neither the kernel's application nor the device."
        if found.held_out
        else "The trained model was asked, which may have seen these kernels and devices: --training fits it "
        "without them."
    )
    profiled = ", ".join(f"{count:,} of {kernel}" for kernel, count in found.profiled.items())
    headings = ["kernel", "method", *(f"{n} runs" for n in BUDGETS)]
    means = Table(
        headings,
        [[kernel, method, *fractions] for kernel, method, fractions in found.means()],
        caption="Time of the optimum over that of the best found, mean over devices",
        formats=dict.fromkeys(headings[2:], _fraction),
        words=(0, 1),
    )
    each = Table(
        ["kernel", "device", *headings[1:]],
        [[s.kernel, s.device, s.method, *s.fraction] for s in found.scores],
        caption="On each device",
        formats=dict.fromkeys(headings[2:], _fraction),
        words=(0, 1, 2),
    )
    return Report(
        [
            Heading("The best variants, on devices that were not measured", 1),
            "",
            seen,
            f"Variants that were profiled: {profiled}.",
            "",
            means,
            "",
            each,
        ]
    )


def _fraction(value: float) -> str:
    return f"{value:.2f}"


def evaluation_figures(found: TuningEvaluation) -> Mapping[str, Figure]:
    """The best found by number of runs, and forecast beside measured over two parameters."""
    figures: dict[str, Figure] = {}
    for kernel, ranking in found.rankings.items():
        figures[f"curve-{kernel}"] = _curve(found, kernel)
        measured = found.measured[kernel]
        rows = {label: row for row, label in enumerate(measured.variants.labels)}
        places = [rows[label] for label in ranking.variants.labels]
        for key in ranking.devices:
            time_s = measured.time_s[places, measured.devices.index(key)]
            log_time = np.where(np.isfinite(time_s), ranking.log_time[:, ranking.place(key)], np.nan)
            figures[f"map-{kernel}-{key}"] = draw.titled(
                _maps([("forecast", np.exp(log_time)), ("measured", time_s)], ranking),
                f"{draw.plain_text(kernel)} on {draw.plain_text(key)}: least time over all other parameters, "
                "over the least of all",
            )
    return figures


def _curve(found: TuningEvaluation, kernel: str) -> Figure:
    figure, axes = draw.one_figure(6.4, 4.2)
    methods = list(dict.fromkeys(each.method for each in found.scores if each.kernel == kernel))
    styles = draw.looks(methods)
    means = {method: fractions for name, method, fractions in found.means() if name == kernel}
    for method in methods:
        fractions = np.array(means[method])
        runs = np.array(BUDGETS, dtype=np.float64)
        if method == "crosscast":
            curves = [curve for (name, _), curve in found.curves.items() if name == kernel]
            length = min(map(len, curves))
            mean = np.mean([curve[:length] for curve in curves], axis=0)
            draw.steps(
                axes, np.arange(1, length + 1), mean, color=styles[method].colour, label=method, linewidth=1.8
            )
        elif np.isfinite(fractions[1:]).any():
            look = styles[method]
            axes.plot(
                runs[1:], fractions[1:], look.mark + "--", color=look.colour, label=method, markersize=4
            )
        else:
            axes.axhline(fractions[0], color=styles[method].colour, linestyle=":", label=method)
    axes.set_xscale("log")
    axes.set_xticks(BUDGETS[1:], [str(n) for n in BUDGETS[1:]])
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    draw.style_axes(axes, x="variants measured", y="share of the optimum")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return draw.titled(figure, f"The best variant of {draw.plain_text(kernel)} found, mean over devices")
