"""Reports on rankings of variants and evaluations of searches: tables, heat maps and curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from crosscast.arrays import Reals
from crosscast.report import figures as draw
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import level_percent, percent, plural, table_of
from crosscast.tuning.evaluation import BUDGETS, TuningEvaluation
from crosscast.tuning.ranking import Ranking
from crosscast.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BEST = 10
"""Number of variants in a table."""

_MOST_CELLS = 20
_SCATTER = (10, 50)
"""Numbers of runs for which it is said how much searches differ."""


def ranking_report(ranking: Ranking) -> Report:
    """Make tables of the best variants on each device, with the reasons."""
    parts: list[Part] = [
        Heading(f"Variants of {ranking.space.rule.kernel}", 1),
        "",
        *_how(ranking),
        *ranking.notes,
        "",
    ]
    for key in ranking.devices:
        parts += [_best(ranking, key), ""]
    if ranking.not_run:
        parts.append(
            Text(
                [f"{ranking.variants.labels[row]}: {reason}" for row, reason in ranking.not_run.items()],
                "warnings",
            )
        )
    return Report(parts)


def _how(ranking: Ranking) -> list[str]:
    ran, total = int(ranking.profiled.sum()), len(ranking)
    state = "ranked" if ranking.variants.drawn else "valid"
    are, were = ("is" if total == 1 else "are"), ("was" if ran == 1 else "were")
    lines = [f"{plural(total, 'variant')} {are} {state}, of which {ran:,} {were} profiled."]
    if ran + len(ranking.failed) < total:
        errors = ", ".join(
            f"{percent(math.expm1(error))} on {key}"
            for key, error in zip(ranking.devices, ranking.count_error, strict=True)
        )
        lines.append(
            f"Counts of the others follow from theirs: left out in turn, that moves forecasts by {errors}, "
            f"which the {level_percent(ranking.level)} intervals hold."
        )
    if ranking.measured:
        lines.append(
            f"{plural(len(ranking.measured), 'variant')} ran here, and {len(ranking.not_run)} failed; the "
            "forecasts of all others are conditioned on that."
        )
    return lines


def _best(ranking: Ranking, key: str) -> Table:
    column = ranking.column_of(key)
    rows = ranking.order(key)[:_BEST].tolist()
    varied = [
        name
        for name, values in zip(ranking.variants.names, ranking.variants.values, strict=True)
        if len(values) > 1
    ]
    columns: dict[str, Callable[[int], object]] = {"rank": lambda row: rows.index(row) + 1}
    for name in varied:
        columns[name] = partial(_parameter, ranking, name)

    def forecast(values: Reals, row: int) -> float | None:
        # What was measured is no forecast any more.
        return None if row in ranking.measured else float(values[row, column])

    (low, high), savings = ranking.limits(), ranking.savings(key)
    for name, values in (("forecast", np.exp(ranking.log_time)), ("low", low), ("high", high)):
        columns[name] = partial(forecast, values)
    if ranking.measured:
        columns["measured"] = ranking.measured.get
    columns |= {
        "counts": lambda row: "profiled" if ranking.profiled[row] else "estimated",
        "saves most of": lambda row: _saved(savings[row]),
    }
    of_time = dict.fromkeys(("forecast", "low", "high", "measured"), format_seconds)
    by = f"{'measured times, and ' if ranking.measured else ''}the time one deviation above the forecast"
    caption = f"The best on {key} by {by}, with {level_percent(ranking.level)} intervals"
    return table_of(rows, columns, caption=caption, formats=of_time, words=(len(columns) - 1,))


def _parameter(ranking: Ranking, name: str, row: int) -> object:
    return ranking.variants[row][name]


def _saved(saved: tuple[str, float] | None) -> str | None:
    return None if saved is None else f"{saved[0]} ({format_seconds(saved[1])})"


def ranking_figures(ranking: Ranking) -> dict[str, Figure]:
    """Draw heat maps of the least forecast over two parameters on each device, where as many vary."""
    figures: dict[str, Figure] = {}
    for key in ranking.devices:
        title = f"Least time over all other parameters on {draw.plain_text(key)}, over the least of all"
        forecast = np.exp(ranking.log_time[:, ranking.column_of(key)])
        figures |= _maps(f"variants-{key}", [("forecast", forecast)], ranking, title)
    return figures


def _two_parameters(ranking: Ranking, time_s: Reals) -> tuple[int, int] | None:
    """Find the two parameters that together explain most of the variance of the logarithm of the time."""
    known = np.isfinite(time_s)
    logs, rows = np.log(time_s[known]), ranking.variants.rows[known]
    varied = [k for k, v in enumerate(ranking.variants.values) if 1 < len(v) <= _MOST_CELLS]

    def residual(columns: list[int]) -> float:
        _, groups = np.unique(rows[:, columns], axis=0, return_inverse=True)
        groups = groups.ravel()
        means = np.bincount(groups, logs) / np.bincount(groups)
        return float(((logs - means[groups]) ** 2).sum())

    pairs = list(itertools.combinations(varied, 2))
    return min(pairs, key=lambda pair: residual(list(pair)), default=None)


def _maps(name: str, times: list[tuple[str, Reals]], ranking: Ranking, title: str) -> dict[str, Figure]:
    """Draw a figure of a name, or none if less than two parameters vary."""
    pair = _two_parameters(ranking, times[-1][1])
    if pair is None:
        return {}
    first, second = pair
    names, values = ranking.variants.names, ranking.variants.values
    figure, axes = draw.panels(len(times), 2, 5.4, 4.2)
    for panel, (label, time_s) in zip(axes, times, strict=True):
        least = np.full((len(values[first]), len(values[second])), np.inf)
        np.minimum.at(
            least, tuple(ranking.variants.rows[:, [first, second]].T), np.nan_to_num(time_s, nan=np.inf)
        )
        ratio = np.where(np.isfinite(least), least / np.nanmin(time_s), np.nan)
        draw.heat_map(
            panel,
            ratio,
            [str(v) for v in values[first]],
            [str(v) for v in values[second]],
            write=lambda value: f"{value:.2f}" if value < 10 else f"{value:.0f}",
            limits=(1.0, 3.0),
            reverse=True,
            rotation=0,
        )
        panel.set_title(label, fontsize=10, loc="left")
        panel.set_xlabel(names[second])
        panel.set_ylabel(names[first])
    return {name: draw.titled(figure, title)}


def evaluation_report(evaluation: TuningEvaluation) -> Report:
    """Make the tables of fractions of the optimum by method and number of runs, as means and by device."""
    training = (
        "The model saw neither the kernel's application nor the device."
        if evaluation.held_out
        else "The trained model was asked, which may have seen these kernels and devices: --training fits it "
        "without them."
    )
    profiled = ", ".join(f"{count:,} of {kernel}" for kernel, count in evaluation.profiled.items())
    scatter = " and ".join(
        f"{deviation:.2f} after {n}"
        for n, deviation in zip(BUDGETS, evaluation.deviations(), strict=True)
        if n in _SCATTER
    )
    runs = [f"{n} runs" for n in BUDGETS]
    formats = dict.fromkeys(runs, "{:.2f}".format)
    means = Table(
        ["kernel", "method", *runs],
        [[kernel, method, *fractions] for kernel, method, fractions in evaluation.means()],
        caption="Time of the optimum over that of the best found, mean over devices",
        formats=formats,
        words=(0, 1),
    )
    by_device = Table(
        ["kernel", "device", "method", *runs],
        [[s.kernel, s.device, s.method, *s.fraction] for s in evaluation.scores],
        caption="On each device",
        formats=formats,
        words=(0, 1, 2),
    )
    return Report(
        [
            Heading("The best variants, on devices that were not measured", 1),
            "",
            training,
            f"Variants that were profiled: {profiled}.",
            f"One search deviates from the mean of its repetitions by {scatter} runs.",
            "",
            means,
            "",
            by_device,
        ]
    )


def evaluation_figures(evaluation: TuningEvaluation) -> dict[str, Figure]:
    """Draw the best fraction by number of runs, and forecast and measured times over two parameters."""
    figures: dict[str, Figure] = {}
    for kernel, ranking in evaluation.rankings.items():
        figures[f"curve-{kernel}"] = _curve(evaluation, kernel)
        measured = evaluation.measured[kernel]
        rows = {label: row for row, label in enumerate(measured.variants.labels)}
        order = [rows[label] for label in ranking.variants.labels]
        for key in ranking.devices:
            time_s = measured.time_s[order, measured.devices.index(key)]
            log_time = np.where(np.isfinite(time_s), ranking.log_time[:, ranking.column_of(key)], np.nan)
            title = (
                f"{draw.plain_text(kernel)} on {draw.plain_text(key)}: least time over all other parameters, "
                "over the least of all"
            )
            both = [("forecast", np.exp(log_time)), ("measured", time_s)]
            figures |= _maps(f"map-{kernel}-{key}", both, ranking, title)
    return figures


def _curve(evaluation: TuningEvaluation, kernel: str) -> Figure:
    figure, axes = draw.one_figure(6.4, 4.2)
    methods = list(dict.fromkeys(score.method for score in evaluation.scores if score.kernel == kernel))
    styles = draw.looks(methods)
    means = {method: fractions for name, method, fractions in evaluation.means() if name == kernel}
    for method in methods:
        fractions = np.array(means[method])
        runs = np.array(BUDGETS, dtype=np.float64)
        if method == "crosscast":
            curves = [curve for (name, _), curve in evaluation.curves.items() if name == kernel]
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
