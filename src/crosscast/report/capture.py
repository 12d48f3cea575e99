"""A recorded program: where its time goes, how its kernels look, and how long it takes elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import columns_table, table_of
from crosscast.report.figures import BLUE, bars, one_figure, plain_text, style_axes, titled
from crosscast.report.numbers import level_percent, percent, plural, times
from crosscast.tracing.summary import interpolated
from crosscast.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.forecasting.application import ApplicationForecast
    from crosscast.tracing.summary import LaunchClass, Replayed, Summary
    from crosscast.tracing.trace import TracedProcess

__all__ = ["application_report", "capture_figures", "headline", "to_dict"]

_MOST_BARS = 12


def headline(summary: Summary) -> str:
    """The program in a sentence without its full stop."""
    kernels = len({each.kernel for each in summary.classes})
    return (
        f"{plural(summary.launches, 'launch', 'launches')} of {plural(kernels, 'kernel')}, "
        f"{format_seconds(summary.device_s)} on the device, {format_seconds(summary.transfer_s)} of "
        f"transfers, in {format_seconds(summary.wall_s)} from the first command to the last"
    )


def application_report(
    summary: Summary, replayed: Sequence[Replayed], forecast: ApplicationForecast | str
) -> Report:
    """All about a recorded program; `forecast` may be why there is none."""
    parts: list[Part] = [Heading(summary.application, 1), f"{headline(summary)}.", ""]
    parts += [_kernels(summary, replayed), ""]
    if summary.transfers:
        parts += [_transfers(summary), ""]
    for each in summary.energy:
        watts = f" ({each.energy_j / each.duration_s:.3g} W)" if each.duration_s else ""
        seen = f"{each.energy_j:.3g} J in {format_seconds(each.duration_s)}{watts}"
        parts.append(f"Energy of the whole run: {each.sensor} {each.domain} {seen}.")
    profiled = [(each, found) for each, found in zip(summary.classes, replayed, strict=True) if found.profile]
    if profiled:
        parts += [_profiles(profiled), ""]
    parts += [f"No forecast: {forecast}."] if isinstance(forecast, str) else _forecast(forecast)
    doubts = [*summary.doubts, *_interpolated(summary, replayed), *_refusals(summary, replayed)]
    if doubts:
        parts += [Text([f"Note: {each}." for each in doubts], "note")]
    return Report(parts)


def _kernels(summary: Summary, replayed: Sequence[Replayed]) -> Table:
    """Classes of launches with their share of the time."""
    whole = summary.device_s
    rows = []
    for places in summary.families:
        classes = [summary.classes[place] for place in places]
        seconds = sum(each.seconds for each in classes)
        rows.append(
            [
                classes[0].kernel,
                _sizes(classes),
                sum(each.count for each in classes),
                seconds,
                seconds / whole if whole else None,
                classes[0].median_s if len(classes) == 1 else None,
                ", ".join(_states([replayed[place] for place in places])),
            ]
        )
    devices = ", ".join(dict.fromkeys(each.device for each in summary.classes))
    return Table(
        ["kernel", "global/local", "launches", "time", "share", "one launch", "replay"],
        rows,
        caption=f"Where the time of kernels goes on {devices}",
        formats={
            "launches": format_count,
            "time": format_seconds,
            "share": lambda share: percent(share, 1),
            "one launch": format_seconds,
        },
        words=(0, 1, 6),
    )


def _sizes(classes: Sequence[LaunchClass]) -> str:
    """The sizes of a class, or the least and the largest of a family."""
    if len(classes) == 1:
        return classes[0].size_label
    ordered = sorted(classes, key=lambda each: each.work_items)
    return f"{ordered[0].size_label} to {ordered[-1].size_label} ({len(classes)} sizes)"


def _states(found: Sequence[Replayed]) -> list[str]:
    """What came of the classes of a row, each once, with how many where it differs."""
    counts = Counter(map(_state, found))
    return [state if len(counts) == 1 else f"{count} {state}" for state, count in counts.items()]


def _state(found: Replayed) -> str:
    if found.like:
        return "interpolated"
    if found.profile is None:
        return "none"
    comparison = found.comparison
    if comparison is None or comparison.verdict == "not compared":
        return "profiled"
    if comparison.verdict == "different":
        return f"DIFFERENT in {comparison.differing} of {comparison.values} values"
    return {"equal": "profiled, same output", "rounding": "profiled, output equal but for rounding"}[
        comparison.verdict
    ]


def _transfers(summary: Summary) -> Table:
    return table_of(
        summary.transfers,
        {"transfer": "kind", "count": "count", "bytes": "bytes", "time": "seconds"},
        caption="Transfers",
        formats={"bytes": format_bytes, "time": format_seconds},
    )


def _profiles(profiled: Sequence[tuple[LaunchClass, Replayed]]) -> Table:
    """The metrics that tell most of a kernel; ``crosscast characterize`` has all."""
    names = {
        "instructions": "total_instruction_count",
        "addresses": "total_memory_footprint",
        "entropy (bits)": "global_memory_address_entropy",
        "branch entropy": "yokota_branch_entropy",
        "SIMD width": "simd_width_mean",
        "barriers per instruction": "barriers_per_instruction",
    }
    known = {
        heading: name
        for heading, name in names.items()
        if any(name in found.profile.metrics for _, found in profiled if found.profile)
    }
    rows = [
        [each.kernel, each.size_label, *(found.profile.metrics.get(name) for name in known.values())]
        for each, found in profiled
        if found.profile
    ]

    def written(value: float) -> str:
        return format_count(value) if isinstance(value, int) else f"{value:.3f}"

    return Table(
        ["kernel", "global/local", *known],
        rows,
        caption="Profiles of one launch",
        formats=dict.fromkeys(known, written),
        words=(0, 1),
    )


def _forecast(forecast: ApplicationForecast) -> list[Part]:
    columns = dict(forecast.columns())
    columns["interval"] = list(map(times, columns["low_s"], columns["high_s"]))
    table = columns_table(
        columns,
        {
            "device": "device",
            "time": "time_s",
            f"{level_percent(forecast.kernels.level)} interval": "interval",
            **{name: f"{name}_s" for name in ("kernels", "transfers", "launches")},
        },
        caption="The application on other devices (without what the host does)",
        words=(0, 2),
        bold=(0,),
    )
    missing = (
        []
        if forecast.covered > 0.9995
        else [f"The forecast is of launches that have {percent(forecast.covered, 1)} of the time of kernels."]
    )
    # Imported here: it brings models of times.
    from crosscast.forecasting.application import ASSUMED

    return [table, ASSUMED, *missing]


def _interpolated(summary: Summary, replayed: Sequence[Replayed]) -> list[str]:
    launches, sizes, error = interpolated(summary, replayed)
    if not launches:
        return []
    told = (
        f"the times of {plural(launches, 'launch', 'launches')} of {plural(sizes, 'size')} are interpolated "
        "between those of the same kernel that have a profile, by work-items"
    )
    if error is None:
        return [told]
    side = "over" if error > 0 else "under"
    return [f"{told}; made so, the recorded times are {percent(abs(error), 1)} {side} what they are"]


def _refusals(summary: Summary, replayed: Sequence[Replayed]) -> list[str]:
    found: dict[str, list[str]] = {}
    for each, one in zip(summary.classes, replayed, strict=True):
        for text in ([one.refused] if one.refused and each.kept else []) + list(one.doubts):
            found.setdefault(text, []).append(f"{each.kernel} {each.size_label}")
    return [f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in found.items()]


def to_dict(
    summary: Summary, replayed: Sequence[Replayed], forecast: ApplicationForecast | str
) -> dict[str, object]:
    """The same for JSON."""
    kernels = summary.kernel_facts()
    whole = {**summary.to_dict(), "kernels": kernels}
    for told, found in zip(kernels, replayed, strict=True):
        told["profile"] = found.profile.to_dict() if found.profile else None
        told["refused"] = found.refused or None
        told["doubts"] = list(found.doubts)
        told["interpolated_from"] = [
            {"global_size": list(summary.classes[place].sizes[0]), "launches": n}
            for place, n in found.like.items()
        ]
        if found.comparison is not None:
            told["outputs"] = {
                "verdict": found.comparison.verdict,
                "values": found.comparison.values,
                "differing": found.comparison.differing,
            }
    whole["forecast"] = (
        {"refused": forecast}
        if isinstance(forecast, str)
        else {**forecast.to_dict(), "covered": forecast.covered, "level": forecast.kernels.level}
    )
    return whole


def capture_figures(summary: Summary) -> Mapping[str, Figure]:
    """Shares of the kernels, and the timeline of the first process, as figures of matplotlib."""
    figures: dict[str, Figure] = {}
    shown = [[summary.classes[place] for place in places] for places in summary.families[:_MOST_BARS]]
    if shown and summary.device_s:
        figure, axes = one_figure(8, 1.0 + 0.3 * len(shown))
        shares = {
            plain_text(f"{classes[0].kernel} {_sizes(classes)}"): sum(each.seconds for each in classes)
            for classes in shown
        }
        bars(
            axes,
            {name: 100 * each / summary.device_s for name, each in shares.items()},
            write="{:.3g}".format,
        )
        axes.set_xlabel("share of the time of kernels, %")
        figures["shares"] = titled(
            figure, f"Where the time of kernels goes in {plain_text(summary.application)}"
        )
    processes = [process for process in summary.trace.processes if np.isfinite(process.starts).any()]
    if processes:
        figures["timeline"] = _timeline(processes[0])
    return figures


def _timeline(process: TracedProcess) -> Figure:
    """When each kernel ran, a row a kernel."""
    rows = np.flatnonzero(np.isfinite(process.starts))
    begin = float(np.nanmin(process.starts))
    names = [process.kernel_name(row) for row in rows.tolist()]
    kinds = list(dict.fromkeys(names))[:_MOST_BARS]
    figure, axes = one_figure(7, 0.8 + 0.3 * len(kinds))
    for place, kind in enumerate(kinds):
        mine = rows[[name == kind for name in names]]
        spans = list(zip(process.starts[mine] - begin, process.seconds[mine], strict=True))
        axes.broken_barh(spans, (place - 0.4, 0.8), color=BLUE)
    axes.set_yticks(range(len(kinds)), [plain_text(kind) for kind in kinds])
    axes.invert_yaxis()
    style_axes(axes, x="time since the first launch, s")
    return titled(figure, "When each kernel ran")
