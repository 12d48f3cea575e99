"""Verdicts for people: what bounds a kernel on a device, why, what to try, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosscast.decide.verdict import Verdict, Verdicts, double_peak
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.figures import (
    COLOURS,
    DASHES,
    legend_below,
    looks,
    one_figure,
    plain_text,
    points,
    style_axes,
    titled,
)
from crosscast.report.numbers import level_percent, percent, times
from crosscast.units import format_quantity, format_seconds

_FAR = 10.0
"""A forecast that is so many times the longest limit is not explained by it."""
_MOST_NAMED = 3
_LONGEST_LABEL = 40
_MOST_DEVICES = len(COLOURS)


def verdict_lines(verdict: Verdict, forecast_s: float | None = None) -> list[str]:
    """The verdict, what it rests on and what to try; with a forecast, how much of it that explains."""
    lines = [verdict.text, *([" ".join(verdict.notes)] if verdict.notes else [])]
    longest = verdict.limits_s[verdict.bound]
    if forecast_s is not None and forecast_s > _FAR * longest:
        lines.append(
            f"The forecast is {forecast_s / longest:.2g} times as long: a data sheet does not tell what the "
            "rest is."
        )
    return [*lines, f"Try {', '.join(verdict.advice)}."]


def verdicts_report(found: Verdicts, forecast: TimeForecast | None = None) -> Report:
    """Each verdict in sentences, how long each limit takes, what is forecast, and what each kernel does."""
    parts: list[Part] = []
    for verdict in found.verdicts:
        parts += [Text(verdict_lines(verdict)), ""]
    limits = Table.of(
        found.verdicts,
        {
            "kernel": lambda each: each.amounts.kernel,
            "device": lambda each: each.device.key,
            "bound by": lambda each: " or ".join([each.bound, *each.close]),
            **{name: _limit(name) for name in ("memory", "compute", "launch", "latency")},
        },
        caption="How long each limit alone takes",
        formats=dict.fromkeys(("memory", "compute", "launch", "latency"), format_seconds),
        words=(0, 1, 2),
    )
    return Report(
        [
            Heading("What bounds these kernels", 1),
            "",
            *parts,
            limits,
            *([] if forecast is None else [_forecast(forecast)]),
            _amounts(found.verdicts),
            "",
            "Limits are what a device cannot be faster than; they are no forecast (docs/verdicts.md).",
        ]
    )


def _forecast(forecast: TimeForecast) -> Table:
    """Times with what they are spent on, the kernels one after another."""
    cells = list(np.ndindex(forecast.centre.shape))
    return Table.of(
        cells,
        {
            "kernel": lambda at: forecast.labels[at[0]],
            "device": lambda at: forecast.devices[at[1]],
            "time": lambda at: float(forecast.centre[at]),
            f"{level_percent(forecast.level)} interval": lambda at: times(
                float(forecast.low[at]), float(forecast.high[at])
            ),
            "spent on": lambda at: spent_on(forecast.term_shares(*at)),
        },
        caption="Forecast",
        formats={"time": format_seconds},
        words=(0, 1, 3, 4),
    )


_LEAST_SHARE = 0.03


def spent_on(shares: Mapping[str, float]) -> str:
    """The terms of a time that matter, the largest first."""
    return ", ".join(f"{name} {percent(share)}" for name, share in shares.items() if share >= _LEAST_SHARE)


def _limit(name: Any) -> Any:
    return lambda verdict: verdict.limits_s[name]


def _amounts(verdicts: Sequence[Verdict]) -> Table:
    """What each kernel does, on whatever device."""
    once = {each.amounts.kernel: each.amounts for each in verdicts}
    classes = sorted({name for each in once.values() for name in each.instructions})
    return Table.of(
        list({id(each.amounts): each.amounts for each in verdicts}.values()),
        {
            "kernel": lambda a: a.kernel,
            "flop": lambda a: a.flops,
            "instructions": lambda a: a.operations,
            "bytes, distinct": lambda a: a.unique_bytes,
            "accessed": lambda a: a.accessed_bytes,
            "local": lambda a: a.local_bytes,
            **{name: _share(name) for name in classes},
        },
        caption="What they do",
        formats={
            "flop": _plain,
            "instructions": _plain,
            "bytes, distinct": _size,
            "accessed": _size,
            "local": _size,
            **dict.fromkeys(classes, percent),
        },
    )


def _share(name: str) -> Any:
    return lambda amounts: amounts.instructions.get(name)


def _plain(value: float) -> str:
    return format_quantity(value, "").strip()


def _size(value: float) -> str:
    return format_quantity(value, "B")


def roofline_figures(verdicts: Sequence[Verdict]) -> Mapping[str, Any]:
    """The roofline picture, by name; none if no kernel has floating-point operations."""
    return {"roofline": roofline(verdicts)} if any(each.amounts.flops for each in verdicts) else {}


def _labels(places: Mapping[str, tuple[float, float]]) -> dict[tuple[float, float], str]:
    """Names of kernels by where they are drawn; those too near each other share a label."""
    near: dict[tuple[int, int], list[str]] = {}
    for name, (x, y) in places.items():
        near.setdefault((round(3 * math.log10(x)), round(4 * math.log10(y))), []).append(name)
    return {
        places[names[0]]: plain_text(", ".join(names[:_MOST_NAMED]), _LONGEST_LABEL)
        for names in near.values()
    }


def roofline(verdicts: Sequence[Verdict]) -> Any:
    """Roofs of devices, and below them what their limits leave of each kernel's floating-point rate."""
    shown = [each for each in verdicts if each.amounts.flops and each.intensity]
    devices = {each.device.key: each.device for each in shown}
    drawn = dict(list(devices.items())[:_MOST_DEVICES])
    shown = [each for each in shown if each.device.key in drawn]
    intensities = np.array([each.intensity for each in shown] + [each.balance for each in shown])
    x = np.geomspace(intensities.min() / 8, intensities.max() * 8, 200)
    figure, axes = one_figure(8.0, 5.4)
    look = looks(drawn)
    for place, (key, device) in enumerate(drawn.items()):
        double = any(each.device.key == key and each.amounts.double_share > 0.5 for each in shown)
        peaks = {key: device.numbers["peak_flop_per_s"]}
        peaks |= {f"{key}, double precision": double_peak(device)} if double else {}
        for label, peak in peaks.items():
            axes.plot(
                x,
                np.minimum(peak, x * device.numbers["bandwidth_bytes_per_s"]),
                color=look[key].colour,
                linestyle=DASHES[place % len(DASHES)],
                linewidth=1.6 if label == key else 0.8,
                label=plain_text(label),
                zorder=2,
            )
    highest: dict[str, tuple[float, float]] = {}
    for each in shown:
        at = (each.intensity or 0.0, (each.amounts.flops or 0.0) / each.limits_s[each.bound])
        points(axes, [at[0]], [at[1]], look[each.device.key], "_", size=7)
        highest[each.amounts.kernel] = max(at, highest.get(each.amounts.kernel, at), key=lambda one: one[1])
    for at, name in _labels(highest).items():
        axes.annotate(name, at, xytext=(6, -10), textcoords="offset points", fontsize=8, zorder=4)
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]))
    style_axes(axes, x="flop for each byte that has to be moved", y="flop/s")
    legend_below(figure, 4)
    left_out = len(devices) - len(drawn)
    more = f" The first {len(drawn)} of {len(devices)} devices." if left_out else ""
    return titled(
        figure,
        "Roofline: what each device can at most do (lines), and what the limits leave of each kernel "
        f"(marks).{more}",
    )
