"""Reports on times of kernels: forecasts, the recommended device, verdicts, and the roofline figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.devices.limits import BOUNDS, double_peak
from crosscast.devices.roofline import Verdict, Verdicts
from crosscast.prediction.time.card import Suggestion, TimeCard
from crosscast.prediction.time.forecast import Recommendation, TimeForecast
from crosscast.prediction.trained import format_names
from crosscast.report import figures as draw
from crosscast.report.cards import held_out_scores, held_out_sentence
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import Column, level_percent, percent, plural, probability, table_of, times
from crosscast.units import format_count, format_quantity, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.measure.calibration import Calibration

_FAR = 10.0
"""A forecast above this multiple of the longest limit is not explained by it."""
_MOST_NAMED = 3
_LONGEST_LABEL = 36
_LABEL_HEIGHT = 0.2
"""Height of a name beside the roofline, in inches."""
_MOST_DEVICES = len(draw.COLOURS)


_LIMIT_OF = {
    **dict.fromkeys(("memory", "scattered"), "memory"),
    **dict.fromkeys(("arithmetic", "issue"), "compute"),
    **dict.fromkeys(("launch", "start"), "launch"),
    **dict.fromkeys(("latency", "waiting"), "latency"),
    "local": "local",
    "atomics": "atomics",
}
"""The limit that a term of a forecast is a part of; other terms are beyond all limits."""

_TERMS = {
    "launch": ("the host's call, and its notification", "more work in a launch"),
    "start": ("starting and ending the kernel", "more work in a launch"),
    "arithmetic": ("operations on numbers", "an algorithm with fewer operations"),
    "issue": ("all other instructions", "unrolled loops and simpler addresses"),
    "local": ("passes through local memory", "keeping more in registers"),
    "l1": (
        "lines or texels touched",
        "neighbouring addresses for neighbouring work-items, wider accesses",
    ),
    "l2": ("bytes that miss first caches", "keeping what is used again in local memory or registers"),
    "memory": ("bytes that miss the last cache", "blocks of data that stay in a cache"),
    "scattered": ("lines from all over memory", "data in the order in which they are used"),
    "spills": ("values without a register", "fewer values in use at once"),
    "latency": ("instructions that wait for each other", "several independent chains in a work-item"),
    "waiting": ("work-items that wait for loads", "more work-groups, or independent loads"),
    "groups": ("starting work-groups", "fewer and longer work-items"),
    "atomics": ("atomics", "adding up in a sub-group before an atomic"),
}
"""Work of each term, and advice that makes its time less."""


def verdict_lines(
    verdict: Verdict, forecast_s: float | None = None, shares: Mapping[str, float] | None = None
) -> list[str]:
    """Make lines with verdict, reasons and advice.

    With a forecast and the shares of its terms, the largest first, also of what it is spent on, if that is
    not the verdict; of a forecast without terms, whether the verdict explains it.
    """
    lines = [verdict.text, *([" ".join(verdict.notes)] if verdict.notes else [])]
    longest, advice = verdict.limits_s[verdict.bound], ", ".join(verdict.advice)
    if shares and forecast_s is not None:
        term, share = next(iter(shares.items()))
        if _LIMIT_OF.get(term) not in (verdict.bound, *verdict.close):
            work, advice = _TERMS[term]
            is_cached = verdict.bound == "memory" and shares.get("memory", 0.0) * forecast_s < longest / 2
            cached = ", and data of the launch before are still in caches" if is_cached else ""
            lines.append(
                f"The forecast of {format_seconds(forecast_s)} is mostly {term} ({percent(share)}): "
                f"{work}{cached}."
            )
    elif forecast_s is not None and forecast_s > _FAR * longest:
        lines.append(
            f"The forecast is {forecast_s / longest:.2g} times as long: a data sheet does not tell what the "
            "rest is."
        )
    return [*lines, f"Try {advice}."]


def verdicts_report(verdicts: Verdicts, forecast: TimeForecast | None = None) -> Report:
    """Make sentences about each verdict, and tables of limits, forecasts and amounts of work."""
    limits = table_of(
        verdicts.verdicts,
        {
            "kernel": "amounts.kernel",
            "device": "device.key",
            "bound by": _bound,
            **{name: f"limits_s.{name}" for name in BOUNDS},
        },
        caption="How long each limit alone takes",
        formats=dict.fromkeys(BOUNDS, format_seconds),
        words=(0, 1, 2),
    )
    tables: list[Part] = [limits, _amounts(verdicts.verdicts), ""]
    meaning = "A device cannot be faster than its limits from empty caches (docs/verdicts.md)."
    if forecast is not None:
        spent = {"spent on": lambda cell: spent_on(forecast.term_shares(*cell))}
        cells = list(np.ndindex(forecast.centre.shape))
        tables.insert(1, forecast_table(forecast, cells, spent, caption="Forecast"))
        meaning += " Forecasts are of launches that repeat: data that fit a GPU's last cache are still there."
    # Many sentences would hide the tables, so that these come first.
    is_single = len(verdicts.verdicts) == 1
    sentences = _sentences(verdicts.verdicts) if is_single else _by_kernel(verdicts.verdicts)
    parts = [*sentences, *tables, meaning] if is_single else [*tables, meaning, "", *sentences]
    return Report([Heading("What bounds these kernels", 1), "", *parts])


def _sentences(verdicts: Iterable[Verdict]) -> list[Part]:
    return [part for verdict in verdicts for part in (Text(verdict_lines(verdict)), "")]


def _by_kernel(verdicts: Sequence[Verdict]) -> list[Part]:
    """Verdicts on all devices, with a heading for each kernel."""
    kernels: dict[int, list[Verdict]] = {}
    for verdict in verdicts:
        kernels.setdefault(id(verdict.amounts), []).append(verdict)
    return [
        part for group in kernels.values() for part in (Heading(group[0].amounts.kernel), *_sentences(group))
    ]


def forecast_table(
    forecast: TimeForecast,
    cells: Sequence[tuple[int, int]],
    more: Mapping[str, Callable[[tuple[int, int]], object]],
    *,
    caption: str,
    device: str = "device",
) -> Table:
    """Make a table of forecast times of cells, each a launch and a device, with further columns of text."""
    return table_of(
        cells,
        {
            "kernel": lambda cell: forecast.labels[cell[0]],
            device: lambda cell: forecast.devices[cell[1]],
            "time": lambda cell: float(forecast.centre[cell]),
            f"{level_percent(forecast.level)} interval": lambda cell: times(
                float(forecast.low[cell]), float(forecast.high[cell])
            ),
            **more,
        },
        caption=caption,
        formats={"time": format_seconds},
        words=(0, 1, 3, 4),
    )


_LEAST_SHARE = 0.03


def spent_on(shares: Mapping[str, float]) -> str:
    """Write the significant terms of a time, the largest first."""
    return ", ".join(f"{name} {percent(share)}" for name, share in shares.items() if share >= _LEAST_SHARE)


def _amounts(verdicts: Sequence[Verdict]) -> Table:
    """Make the table of each kernel's amounts of work, which do not depend on the device."""
    by_name = {verdict.amounts.kernel: verdict.amounts for verdict in verdicts}
    classes = sorted({name for amounts in by_name.values() for name in amounts.instructions})
    return table_of(
        list({id(verdict.amounts): verdict.amounts for verdict in verdicts}.values()),
        {
            "kernel": "kernel",
            "flop": "flops",
            "instructions": "operations",
            "bytes, distinct": "unique_bytes",
            "accessed": "accessed_bytes",
            "local": "local_bytes",
            **{name: f"instructions.{name}" for name in classes},
        },
        caption="What they do",
        formats={
            **dict.fromkeys(("flop", "instructions"), lambda value: format_quantity(value, "").strip()),
            **dict.fromkeys(("bytes, distinct", "accessed", "local"), partial(format_quantity, unit="B")),
            **dict.fromkeys(classes, percent),
        },
    )


def roofline_figures(verdicts: Sequence[Verdict]) -> Mapping[str, Figure]:
    """Draw the roofline figure, by name; none if no kernel has floating-point operations."""
    return {"roofline": roofline(verdicts)} if any(verdict.amounts.flops for verdict in verdicts) else {}


def roofline(verdicts: Sequence[Verdict]) -> Figure:
    """Draw roofs of devices, and below them the limits of each kernel's floating-point rate."""
    shown = [verdict for verdict in verdicts if verdict.amounts.flops and verdict.intensity]
    devices = {verdict.device.key: verdict.device for verdict in shown}
    drawn = dict(list(devices.items())[:_MOST_DEVICES])
    shown = [verdict for verdict in shown if verdict.device.key in drawn]
    intensities = np.array([verdict.intensity for verdict in shown] + [verdict.balance for verdict in shown])
    x = np.geomspace(intensities.min() / 8, intensities.max() * 8, 200)
    names = list(dict.fromkeys(verdict.amounts.kernel for verdict in shown))
    figure, axes = draw.one_figure(8.0, max(5.4, _LABEL_HEIGHT * len(names) + 1.4))
    look = draw.looks(drawn)
    for index, (key, device) in enumerate(drawn.items()):
        double = any(v.device.key == key and v.amounts.double_share > 0.5 for v in shown)
        peaks = {key: device.numbers["peak_flop_per_s"]}
        peaks |= {f"{key}, double precision": double_peak(device)} if double else {}
        for label, peak in peaks.items():
            axes.plot(
                x,
                np.minimum(peak, x * device.numbers["bandwidth_bytes_per_s"]),
                color=look[key].colour,
                linestyle=draw.DASHES[index % len(draw.DASHES)],
                linewidth=1.6 if label == key else 0.8,
                label=draw.plain_text(label),
                zorder=2,
            )
    highest: dict[str, tuple[float, float]] = {}
    for verdict in shown:
        kernel = verdict.amounts.kernel
        rate = (verdict.amounts.flops or 0.0) / verdict.limits_s[verdict.bound]
        point = (verdict.intensity or 0.0, rate)
        draw.points(axes, [point[0]], [point[1]], look[verdict.device.key], "_", size=7)
        highest[kernel] = max(point, highest.get(kernel, point), key=lambda mark: mark[1])
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]))
    draw.style_axes(axes, x="flop for each byte that has to be moved", y="flop/s")
    draw.label_beside(
        axes, [(draw.plain_text(name, _LONGEST_LABEL), point) for name, point in highest.items()]
    )
    draw.legend_below(figure, 4)
    kernels = dict.fromkeys(verdict.amounts.kernel for verdict in verdicts if not verdict.amounts.flops)
    without = [draw.plain_text(kernel, _LONGEST_LABEL) for kernel in kernels]
    omitted = format_names(without, _MOST_NAMED)
    return draw.titled(
        figure,
        "Roofline: what each device can at most do (lines), and what the limits leave of each kernel "
        "(marks).",
        *([f"The first {len(drawn)} of {len(devices)} devices."] if len(devices) > len(drawn) else []),
        *([f"Not drawn, as without floating-point operations: {omitted}."] if without else []),
    )


def predictions_report(
    forecast: TimeForecast,
    card: TimeCard,
    probes: int,
    verdicts: Sequence[Verdict | None] = (),
    suggestion: Suggestion | None = None,
) -> Report:
    """Make the tables of predicted times of kernels that were measured on `probes` devices.

    Verdicts are those on the recommended devices.
    """
    several = len(forecast.labels) > 1
    parts: list[Part] = [_in_short(forecast, verdicts), ""] if several else []
    for row, (label, kernel) in enumerate(zip(forecast.labels, forecast.kernels(), strict=True)):
        verdict = verdicts[row] if verdicts else None
        parts += [Heading(label)] if several else []
        if verdict is not None:
            column = forecast.devices.index(forecast.recommended[row].device)
            seconds, shares = float(forecast.centre[row, column]), forecast.term_shares(row, column)
            parts += [Text(verdict_lines(verdict, seconds, shares)), ""]
        parts += [
            _devices_table(kernel, forecast.level, f"Times of {label}" if several else label),
            _advice(forecast.recommended[row]),
            *_spent(forecast, row),
            "",
        ]
    for name, kernels in forecast.applications().items():
        parts += [_application_table(name, kernels), ""]
    parts += [*_suggested(suggestion), *_comparison(forecast)]
    return Report(
        [*parts, f"{card.model}, {trained_on(card)}", *held_out_errors(card, probes)],
        "Predicted times",
    )


def _in_short(forecast: TimeForecast, verdicts: Sequence[Verdict | None]) -> Table:
    """Make the table of each kernel's recommended device, with verdicts also of what bounds it there."""
    devices = {device: column for column, device in enumerate(forecast.devices)}
    cells = [(row, devices[choice.device]) for row, choice in enumerate(forecast.recommended)]
    bounds = {"bound by": lambda cell: verdicts[cell[0]] and _bound(verdicts[cell[0]])} if verdicts else {}
    return forecast_table(forecast, cells, bounds, caption="In short", device="recommended")


def _bound(verdict: Verdict) -> str:
    return " or ".join([verdict.bound, *verdict.close])


def _suggested(suggestion: Suggestion | None) -> list[str]:
    """Sentence about the devices to measure on next."""
    if suggestion is None:
        return []
    return [
        f"Measure on {' and '.join(suggestion.devices)} (--probe): times on the others are expected to be "
        f"wrong by {percent(suggestion.error)} then, and by {percent(suggestion.error_before)} now."
    ]


def _comparison(forecast: TimeForecast) -> list[str]:
    """Sentence that compares predicted with recorded times, if there are any."""
    if forecast.recorded is None:
        return []
    compared = np.isfinite(forecast.recorded) & ~forecast.is_measured
    if not compared.any():
        return []
    recorded = forecast.recorded[compared]
    error = float(np.median(np.abs(forecast.centre[compared] / recorded - 1)))
    inside = np.count_nonzero((forecast.low[compared] <= recorded) & (recorded <= forecast.high[compared]))
    return [
        f"Of {len(recorded)} recorded times, {inside} lie within the intervals; median error "
        f"{percent(error)}."
    ]


def _devices_table(kernel: Mapping[str, Any], level: float, label: str) -> Table:
    """Make the table of devices with their times, the fastest first."""
    columns: dict[str, Column[Mapping[str, Any]]] = {
        "device": "device",
        "time": "time_s",
        f"{level_percent(level)} interval": lambda row: (
            "measured" if row["measured"] else times(row["low_s"], row["high_s"])
        ),
        "rank": "rank",
    }
    if any(row["recorded_s"] for row in kernel["devices"]):
        columns["recorded"] = "recorded_s"
        columns["predicted/recorded"] = lambda row: row["recorded_s"] and row["time_s"] / row["recorded_s"]
    count = kernel["invocations"]
    return table_of(
        sorted(kernel["devices"], key=itemgetter("rank")),
        columns,
        caption=label if count == 1 else f"{label}, one of {format_count(count)} launches",
        formats={"predicted/recorded": "{:.2f}".format},
        bold=(0,),
        ranges=("low_s", "time_s", "high_s"),
    )


def _application_table(name: str, kernels: TimeForecast) -> Table:
    """Make the table of an application's time on each device, summed over all launches of its kernels."""
    limits = zip(kernels.devices, *(each.tolist() for each in kernels.of_all_launches()), strict=True)
    rows = [dict(zip(("device", "time_s", "low_s", "high_s"), row, strict=True)) for row in limits]
    launches = format_count(int(kernels.profiles.invocations.sum()))
    return table_of(
        sorted(rows, key=itemgetter("time_s")),
        {
            "device": "device",
            "time": "time_s",
            f"{level_percent(kernels.level)} interval": ("low_s", "high_s"),
        },
        caption=f"{name}: all {len(kernels.profiles)} kernels, {launches} launches",
        bold=(0,),
    )


def _advice(choice: Recommendation) -> str:
    if choice.runner_up is None or choice.times_longer is None:
        return f"No other device to compare {choice.device} with."
    longer = choice.times_longer
    slower = "about as fast" if longer < 1.005 else f"{longer:.3g}x slower"
    faster = choice.probability_faster
    chance = "" if faster is None else f" ({probability(faster)} chance of being faster)"
    return f"Recommended: {choice.device}. {choice.runner_up} is {slower}{chance}."


_ALIKE = 0.1


def _spent(forecast: TimeForecast, row: int) -> list[str]:
    """Sentences about the terms of the time on the recommended device, and the nearest training kernel."""
    if forecast.terms is None:
        return []
    device = forecast.recommended[row].device
    shares = forecast.term_shares(row, forecast.devices.index(device))
    most, saved = forecast.most_saved(row, forecast.devices.index(device))
    sentences = [
        f"Of the time on {device}: {spent_on(shares)}. Halving the {most} term would save {percent(saved)}."
    ]
    if forecast.nearest:
        nearest = forecast.nearest[row]
        similarity = f"similarity {nearest.similarity:.2f}"
        note = "" if nearest.similarity >= _ALIKE else ": the forecast stands on physics alone"
        sentences.append(f"Nearest measured kernel: {nearest.name} ({similarity}){note}.")
    return sentences


def trained_on(card: TimeCard) -> str:
    """Sentence about a model's training data, without its subject."""
    facts = card.training
    if "package" in facts:
        return f"of the package {facts['package']}: {facts['about']}."
    compilers = " and ".join(dict.fromkeys(toolchain.compiler for toolchain in card.toolchains))
    return (
        f"trained on {facts.get('dataset')}: {facts.get('cells')} times of {facts.get('kernels_at_a_size')} "
        f"kernels at a size ({facts.get('kernels')} kernels, {facts.get('applications')} applications) on "
        f"{facts.get('devices', len(card.devices))} devices, profiled with {compilers}."
        + "".join(
            f" Of profiles made with {toolchain.compiler}: {toolchain.sentence}."
            for toolchain in card.other_toolchains
        )
    )


def calibrated_on(card: TimeCard) -> list[str]:
    """Sentence about the errors on a calibrated device; nothing without calibration."""
    calibration = card.calibrated
    if calibration is None:
        return []
    held_out = calibration.held_out
    return [
        f"On {calibration.device}, calibrated with {calibration.kernels_at_a_size} kernels at a size of "
        f"{len(calibration.applications)} applications: on held-out applications median error "
        f"{100 * held_out.median_error:.0f} %, coverage of {100 * held_out.level:.0f} % intervals "
        f"{100 * held_out.coverage:.0f} % (worst application {100 * held_out.coverage_worst:.0f} %)."
    ]


def held_out_errors(card: TimeCard, probes: int = 0) -> list[str]:
    """Sentences about the errors on held-out applications, if there are any, with `probes` or fewer."""
    results = [
        scores for scores in held_out_scores(card) if scores.model == card.model and scores.probes <= probes
    ]
    if not results:
        return calibrated_on(card)
    result = max(results, key=lambda scores: scores.probes)
    devices = plural(result.probes, "other device")
    groups = f"applications, measured on {devices}" if result.probes else "applications"
    names = "median_ape slowdown_mean coverage"
    return [*held_out_sentence(card, {"": result}, names, groups=groups), *calibrated_on(card)]


def calibration_report(calibration: Calibration) -> Report:
    """Describe a device's calibration, the errors of forecasts for it, and the next step."""
    return Report(
        [
            Heading(calibration.name, 1),
            *calibrated_on(calibration.model.card),
            f"The model is in {calibration.folder}, and answers where `--devices` names {calibration.name}.",
            "",
            f"Next: crosscast predict kernel.toml --devices {calibration.name},gtx1080",
        ]
    )
