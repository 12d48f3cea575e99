"""Reports on what ran on this machine: recorded programs, measured kernels, and runs beside stressors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import level_percent, percent, plural, table_of
from crosscast.report.figures import BLUE, bars, one_figure, plain_text, style_axes, titled
from crosscast.results import rows_of
from crosscast.tracing.summary import interpolated
from crosscast.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.data.corun import IsolatedRun
    from crosscast.forecasting import ApplicationForecast, BesideMeasured
    from crosscast.measure.corun.profile import StressorCalibration
    from crosscast.measure.measurement import Measurement
    from crosscast.tracing.summary import LaunchClass, Replayed, Summary
    from crosscast.tracing.trace import TracedProcess

_MOST_BARS = 12


def headline(summary: Summary) -> str:
    """Summarize the program in a sentence without its full stop."""
    kernels = len({launch_class.kernel for launch_class in summary.classes})
    return (
        f"{plural(summary.launches, 'launch', 'launches')} of {plural(kernels, 'kernel')}, "
        f"{format_seconds(summary.device_s)} on the device, {format_seconds(summary.transfer_s)} of "
        f"transfers, in {format_seconds(summary.wall_s)} from the first command to the last"
    )


def application_report(
    summary: Summary, replayed: Sequence[Replayed], forecast: ApplicationForecast | str
) -> Report:
    """Make the report on a recorded program; `forecast` may be the reason why there is none."""
    parts: list[Part] = [Heading(summary.application, 1), f"{headline(summary)}.", ""]
    parts += [_kernels(summary, replayed), ""]
    if summary.transfers:
        parts += [_transfers(summary), ""]
    for energy in summary.energy:
        watts = f" ({energy.energy_j / energy.duration_s:.3g} W)" if energy.duration_s else ""
        joules = f"{energy.energy_j:.3g} J in {format_seconds(energy.duration_s)}{watts}"
        parts.append(f"Energy of the whole run: {energy.sensor} {energy.domain} {joules}.")
    pairs = zip(summary.classes, replayed, strict=True)
    profiled = [(launch_class, replay) for launch_class, replay in pairs if replay.profile]
    if profiled:
        parts += [_profiles(profiled), ""]
    parts += [f"No forecast: {forecast}."] if isinstance(forecast, str) else _forecast(forecast)
    doubts = [*summary.doubts, *_interpolated(summary, replayed), *_refusals(summary, replayed)]
    if doubts:
        parts += [Text([f"Note: {doubt}." for doubt in doubts], "note")]
    return Report(parts)


def _kernels(summary: Summary, replayed: Sequence[Replayed]) -> Table:
    """Make the table of classes of launches with their share of the time."""
    rows: list[dict[str, object]] = []
    for indices in summary.families:
        classes = [summary.classes[index] for index in indices]
        seconds = sum(launch_class.seconds for launch_class in classes)
        rows.append(
            {
                "kernel": classes[0].kernel,
                "sizes": _sizes(classes),
                "launches": sum(launch_class.count for launch_class in classes),
                "time_s": seconds,
                "share": seconds / summary.device_s if summary.device_s else None,
                "one_s": classes[0].median_s if len(classes) == 1 else None,
                "replay": ", ".join(_states([replayed[index] for index in indices])),
            }
        )
    columns = {"kernel": "kernel", "global/local": "sizes", "launches": "launches", "time": "time_s"}
    devices = ", ".join(dict.fromkeys(launch_class.device for launch_class in summary.classes))
    return table_of(
        rows,
        {**columns, "share": "share", "one launch": "one_s", "replay": "replay"},
        caption=f"Where the time of kernels goes on {devices}",
    )


def _sizes(classes: Sequence[LaunchClass]) -> str:
    """Write the sizes of a class, or the least and the largest of a family."""
    if len(classes) == 1:
        return classes[0].size_label
    ordered = sorted(classes, key=lambda launch_class: launch_class.work_items)
    return f"{ordered[0].size_label} to {ordered[-1].size_label} ({len(classes)} sizes)"


def _states(replays: Sequence[Replayed]) -> list[str]:
    """Outcomes of replaying the classes of a row, with their numbers where they differ."""
    counts = Counter(map(_state, replays))
    return [state if len(counts) == 1 else f"{count} {state}" for state, count in counts.items()]


def _state(replay: Replayed) -> str:
    if replay.interpolation:
        return "interpolated"
    if replay.profile is None:
        return "none"
    comparison = replay.comparison
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
    """Make the table of the most informative metrics; ``crosscast characterize`` has all."""
    names = {
        "instructions": "total_instruction_count",
        "addresses": "total_memory_footprint",
        "entropy (bits)": "global_memory_address_entropy",
        "branch entropy": "yokota_branch_entropy",
        "SIMD width": "simd_width_mean",
        "barriers per instruction": "barriers_per_instruction",
    }
    rows = [
        {"kernel": each.kernel, "size": each.size_label, **replay.profile.metrics}
        for each, replay in profiled
        if replay.profile
    ]
    known = {heading: name for heading, name in names.items() if any(name in row for row in rows)}

    def written(value: float) -> str:
        return format_count(value) if isinstance(value, int) else f"{value:.3f}"

    return table_of(
        rows,
        {"kernel": "kernel", "global/local": "size", **known},
        caption="Profiles of one launch",
        formats=dict.fromkeys(known, written),
    )


_ASSUMED = (
    "A launch is taken to cost half of an empty kernel, as measured on the device or else 5 µs on GPUs and "
    "20 µs elsewhere (nothing to all of it in the interval); transfers take 15.75 GB/s to GPUs (PCI Express "
    "3.0), half the bandwidth of memory on CPUs, up to twice as long in the interval."
)
"""Assumptions on launches and transfers, which are not predicted."""


def _forecast(forecast: ApplicationForecast) -> list[Part]:
    table = table_of(
        rows_of(forecast.columns()),
        {
            "device": "device",
            "time": "time_s",
            f"{level_percent(forecast.kernels.level)} interval": ("low_s", "high_s"),
            **{name: f"{name}_s" for name in ("kernels", "transfers", "launches")},
        },
        caption="The application on other devices (without what the host does)",
        bold=(0,),
    )
    missing = (
        []
        if forecast.covered > 0.9995
        else [f"The forecast is of launches that have {percent(forecast.covered, 1)} of the time of kernels."]
    )
    return [table, _ASSUMED, *missing]


def _interpolated(summary: Summary, replayed: Sequence[Replayed]) -> list[str]:
    launches, sizes, error = interpolated(summary, replayed)
    if not launches:
        return []
    sentence = (
        f"the times of {plural(launches, 'launch', 'launches')} of {plural(sizes, 'size')} are interpolated "
        "between those of the same kernel that have a profile, by work-items"
    )
    if error is None:
        return [sentence]
    side = "over" if error > 0 else "under"
    return [f"{sentence}; made so, the recorded times are {percent(abs(error), 1)} {side} what they are"]


def _refusals(summary: Summary, replayed: Sequence[Replayed]) -> list[str]:
    kernels: dict[str, list[str]] = {}
    for launch_class, replay in zip(summary.classes, replayed, strict=True):
        refusal = [replay.refused] if replay.refused and launch_class.replayable else []
        for text in (*refusal, *replay.doubts):
            kernels.setdefault(text, []).append(f"{launch_class.kernel} {launch_class.size_label}")
    return [f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in kernels.items()]


def to_dict(
    summary: Summary, replayed: Sequence[Replayed], forecast: ApplicationForecast | str
) -> dict[str, object]:
    """Return the report's contents for JSON."""
    kernels = summary.kernel_facts()
    content = {**summary.to_dict(), "kernels": kernels}
    for facts, replay in zip(kernels, replayed, strict=True):
        facts["profile"] = replay.profile.to_dict() if replay.profile else None
        facts["refused"] = replay.refused or None
        facts["doubts"] = list(replay.doubts)
        facts["interpolated_from"] = [
            {"global_size": list(summary.classes[index].sizes[0]), "launches": n}
            for index, n in replay.interpolation.items()
        ]
        if replay.comparison is not None:
            facts["outputs"] = {
                "verdict": replay.comparison.verdict,
                "values": replay.comparison.values,
                "differing": replay.comparison.differing,
            }
    content["forecast"] = (
        {"refused": forecast}
        if isinstance(forecast, str)
        else {**forecast.to_dict(), "covered": forecast.covered, "level": forecast.kernels.level}
    )
    return content


def capture_figures(summary: Summary) -> Mapping[str, Figure]:
    """Draw the kernels' shares of the time, and the timeline of the first process."""
    figures: dict[str, Figure] = {}
    shown = [[summary.classes[index] for index in indices] for indices in summary.families[:_MOST_BARS]]
    if shown and summary.device_s:
        figure, axes = one_figure(8, 1.0 + 0.3 * len(shown))
        shares = {
            plain_text(f"{classes[0].kernel} {_sizes(classes)}"): sum(
                launch_class.seconds for launch_class in classes
            )
            for classes in shown
        }
        bars(
            axes,
            {name: 100 * seconds / summary.device_s for name, seconds in shares.items()},
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
    """Draw the spans in which each kernel ran, a row for each kernel."""
    rows = np.flatnonzero(np.isfinite(process.starts))
    begin = float(np.nanmin(process.starts))
    names = [process.kernel_name(row) for row in rows.tolist()]
    kinds = list(dict.fromkeys(names))[:_MOST_BARS]
    figure, axes = one_figure(7, 0.8 + 0.3 * len(kinds))
    for y, kind in enumerate(kinds):
        of_kind = rows[[name == kind for name in names]]
        spans = list(zip(process.starts[of_kind] - begin, process.seconds[of_kind], strict=True))
        axes.broken_barh(spans, (y - 0.4, 0.8), color=BLUE)
    axes.set_yticks(range(len(kinds)), [plain_text(kind) for kind in kinds])
    axes.invert_yaxis()
    style_axes(axes, x="time since the first launch")
    axes.xaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds))
    return titled(figure, "When each kernel ran")


def measurement_report(measurement: Measurement, beside: BesideMeasured | None = None) -> Report:
    """Make the summary of each kernel, then forecasts, transfers, energy and warnings."""
    processes = len(measurement.sessions)
    application = measurement.sessions[0]["application"]
    columns = {name: name for name in ("kernel", "runs", "invocations")}
    columns |= {"median": "median_s", "mean": "mean_s", "least": "min_s", "most": "max_s", "spread": "spread"}
    table = table_of(measurement.kernels, columns)
    return Report(
        [
            Heading(f"{application} on {measurement.device} ({measurement.device_name})", 1),
            table,
            *([] if beside is None else [_beside(beside)]),
            *_of_runs(measurement),
            "Times are per invocation, by the device's timer, over the runs of "
            f"{f'{processes} processes' if processes > 1 else 'one process'}; spread is sd/mean.",
        ]
    )


def _beside(beside: BesideMeasured) -> Table:
    return table_of(
        rows_of(beside.columns()),
        {
            "kernel": "kernel",
            "measured": "measured_s",
            "forecast": "forecast_s",
            f"{level_percent(beside.level)} interval": ("low_s", "high_s"),
            "forecast/measured": "forecast_over_measured",
            "inside": lambda row: "yes" if row["inside"] else "no",
        },
        caption="forecast beside measurement",
    )


def _of_runs(measurement: Measurement) -> list[str]:
    copies, host = map(format_seconds, (measurement.transfer_median_s, measurement.host_median_s))
    lacks_sensor = not measurement.energy and measurement.sensor != "none"
    return [
        f"copies {copies} a run; whole run on the host {host} (medians)",
        *(
            f"energy {row['energy_j'] / row['runs']:.4g} J a run ({row['sensor']} {row['domain']}, "
            f"{row['samples']} samples in {format_seconds(row['duration_s'])})"
            for row in measurement.energy
        ),
        *(["energy: no sensor (crosscast devices says why)"] if lacks_sensor else []),
        *(f"warning: {warning}" for warning in measurement.warnings),
    ]


_MIX = {
    "mix_sse": "vectors",
    "mix_alu": "integers",
    "mix_mem": "memory",
    "mix_fp": "reals",
    "mix_stack": "stack",
    "mix_string": "copies",
    "mix_shift": "shifts and multiplications",
    "mix_control": "control",
}
_MISSES = {
    "llc_miss": "last-level cache",
    "l1_miss": "first-level cache",
    "dtlb_miss": "TLB",
    "branch_miss": "branch predictor",
}


@dataclass(frozen=True)
class CoRunProfile:
    """A profile of an isolated run, and how it was made."""

    isolated_run: IsolatedRun  # The isolated run
    device: str  # Id of the device
    device_name: str  # Its name
    calibration: StressorCalibration  # Calibration of the stressors on the device
    notes: Sequence[str]  # Problems that did not stop the run, as sentences
    file: Path  # File of the profile

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        isolated_run = self.isolated_run
        return {
            "application": isolated_run.application,
            "size": isolated_run.size,
            "device": {"id": self.device, "key": isolated_run.device, "name": self.device_name},
            "runs": isolated_run.runs,
            "time_s": isolated_run.time_s,
            "power_w": isolated_run.power_w,
            "memory_bytes": isolated_run.memory_bytes,
            "features": dict(isolated_run.features),
            "microbenchmarks": self.calibration.to_dict(),
            "notes": list(self.notes),
            "file": str(self.file),
        }


def corun_profile_report(profile: CoRunProfile) -> Report:
    """Describe an isolated run, with a table of runs beside each stressor."""
    features = profile.isolated_run.features
    columns: dict[str, Callable[[str], object]] = {
        "beside": lambda level: level,
        "slowdown": lambda level: features.get(f"slowdown_{level}"),
        "slowdown of the other": lambda level: features.get(f"inflicted_{level}"),
        "fairness": lambda level: features.get(f"fairness_{level}"),
        "power": lambda level: features.get(f"power_{level}_w"),
    }
    return Report(
        [
            Heading(f"{profile.isolated_run.name} on {profile.device} ({profile.device_name})", 1),
            *_of_isolated_run(profile.isolated_run),
            table_of(
                [level.name for level in profile.calibration.levels],
                columns,
                caption="beside each stressor",
                formats={**dict.fromkeys(columns, "{:.3f}".format), "power": "{:.4g} W".format},
            ),
            profile.calibration.sentence,
            *(f"warning: {doubt}" for doubt in (*profile.calibration.doubts, *profile.notes)),
        ]
    )


def _of_isolated_run(isolated_run: IsolatedRun) -> list[str]:
    features = isolated_run.features
    watts, memory = isolated_run.power_w, isolated_run.memory_bytes
    mix = [f"{title} {level_percent(features[name])}" for name, title in _MIX.items() if features.get(name)]
    counted = [
        f"misses of the {title} {level_percent(features[name])}"
        for name, title in _MISSES.items()
        if name in features
    ]
    if "ipc" in features:
        counted.insert(0, f"{features['ipc']:.3g} instructions a cycle")
    return [
        f"a job of {plural(isolated_run.runs, 'run')}: {format_seconds(isolated_run.time_s or 0.0)} alone",
        "power: no sensor (crosscast devices says why)" if watts is None else f"power {watts:.4g} W",
        *([] if memory is None else [f"memory {format_bytes(memory)}"]),
        *([f"cores used {percent(features['utilisation'])}"] if "utilisation" in features else []),
        f"instructions: {', '.join(mix) or 'not characterized'}",
        f"CPU counters: {', '.join(counted) or 'none that work here (crosscast devices says why)'}",
    ]
