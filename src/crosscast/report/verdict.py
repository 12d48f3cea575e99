"""Reports on verdicts: what bounds a kernel on a device, reasons, advice, and the roofline figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from crosscast.devices.limits import BOUNDS, double_peak
from crosscast.devices.roofline import Verdict, Verdicts
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.prediction.trained import format_names
from crosscast.report import figures as draw
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import table_of
from crosscast.report.numbers import level_percent, percent, times
from crosscast.units import format_quantity, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
            "bound by": lambda verdict: " or ".join([verdict.bound, *verdict.close]),
            **{name: f"limits_s.{name}" for name in BOUNDS},
        },
        caption="How long each limit alone takes",
        formats=dict.fromkeys(BOUNDS, format_seconds),
        words=(0, 1, 2),
    )
    tables: list[Part] = [
        limits,
        *([] if forecast is None else [_times(forecast)]),
        _amounts(verdicts.verdicts),
        "",
    ]
    meaning = "A device cannot be faster than its limits from empty caches (docs/verdicts.md)."
    if forecast is not None:
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


def _times(forecast: TimeForecast) -> Table:
    """Make a table of all forecast times with their terms, by kernel."""
    spent = {"spent on": lambda cell: spent_on(forecast.term_shares(*cell))}
    return forecast_table(forecast, list(np.ndindex(forecast.centre.shape)), spent, caption="Forecast")


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
            **dict.fromkeys(("flop", "instructions"), _plain),
            **dict.fromkeys(("bytes, distinct", "accessed", "local"), partial(format_quantity, unit="B")),
            **dict.fromkeys(classes, percent),
        },
    )


def _plain(value: float) -> str:
    return format_quantity(value, "").strip()


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
