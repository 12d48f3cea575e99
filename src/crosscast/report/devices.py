"""Reports on devices: lists, data sheets, microbenchmarks, and comparisons of two devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.data.schema import DEVICES
from crosscast.devices.architectures import KnownDevice
from crosscast.devices.device_files import QUANTITIES, MeasuredValue, measured_devices
from crosscast.prediction.trained import format_names
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import UNITS, Column, factor, percent, probability, table_of
from crosscast.report.figures import looks, one_figure, points, style_axes, titled, unit_axis
from crosscast.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.comparison.devices import DeviceComparison, KernelTimes
    from crosscast.measure.inventory import Entry
    from crosscast.measure.microbenchmarks.bench import Microbenchmarks, Value

_UNITS = {column.name: column.unit for column in DEVICES.columns} | {
    name: quantity.unit for name, quantity in QUANTITIES.items()
}
_TITLES = {column.name: column.title for column in DEVICES.columns} | {
    name: quantity.title for name, quantity in QUANTITIES.items()
}
_GPU_TITLES = {"clock_hz": "boost clock", "clock_min_hz": "base clock"}
_SHORT = {
    "units": "compute_units",
    "clock": "clock_hz",
    "peak": "peak_flop_per_s",
    "bandwidth": "bandwidth_bytes_per_s",
    "memory": "memory_bytes",
    "power": "tdp_w",
}
_FACTS = {
    "read": "of the bandwidth on its data sheet",
    "fp32": "of the peak rate in single precision",
    "int32": "integer multiply-adds for each one of single precision on the data sheet",
    "launch_s": "from the call of a launch to its start",
}
_KERNELS_SHOWN = 5
_SURELY = 0.9


def written(name: str, value: object) -> object:
    """Write a number of a data sheet, or a measured one, for people."""
    writer = None if isinstance(value, str) else UNITS.get(_UNITS[name])
    return value if value is None or writer is None else writer(value)


def _title(name: str, kind: str) -> str:
    """Name of a number of a data sheet, as data sheets of devices of a type have it."""
    return _GPU_TITLES.get(name, _TITLES[name]) if kind == "gpu" else _TITLES[name]


def catalogue_report(rows: Sequence[Mapping[str, object]]) -> Report:
    """Summarize the catalogue: number of devices and architectures by vendor and type."""
    groups: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for row in rows:
        groups.setdefault((str(row["vendor"]), str(row["type"])), []).append(row)
    lines = [
        [
            *kind,
            len(group),
            sum(row["device"] in measured_devices() for row in group),
            format_names(list(dict.fromkeys(str(row["series"]) for row in group)), _SERIES_SHOWN),
        ]
        for kind, group in sorted(groups.items())
    ]
    return Report(
        [
            Table(["vendor", "type", "devices", "measured", "architectures"], lines, words=(0, 1, 4)),
            "",
            f"{len(rows)} devices, {len(measured_devices())} of them with what was measured on them.",
            "Some of them: crosscast devices --catalogue ampere, or nvidia,gpu, or cpu.",
            "What is known of one: crosscast devices rtx2080. Two: crosscast devices compare rtx2080 t4.",
        ]
    )


_SERIES_SHOWN = 8


def data_sheets_report(rows: Sequence[Mapping[str, object]]) -> Report:
    """Make a table of devices of the catalogue."""
    devices = [{**row, "measured": measured_devices().get(str(row["device"]), {})} for row in rows]
    measured = {"read": "measured.read_bytes_per_s.value", "launch": "measured.launch_s.value"}
    return Report(
        [
            table_of(
                devices, {"device": "device", "name": "name", "architecture": "series", **_SHORT, **measured}
            ),
            "",
            "Read and launch are measured. Where each number is from: crosscast devices NAME.",
            "A forecast for one: crosscast predict FILE --devices NAME.",
        ]
    )


def device_report(known: KnownDevice) -> Report:
    """Make the tables of a device's data sheet and measured rates, with the source of each number."""
    device = known.device
    sources = list(dict.fromkeys([*known.sources.values(), *(e.source for e in known.measured.values())]))
    parts: list[Part] = [Heading(f"{device.name} ({device.key})", 1)]
    parts += [", ".join(text for text in (device.vendor, device.series, device.type) if text) + "."]
    if known.measured:
        columns = {
            "measured": lambda name: _TITLES[name],
            "value": lambda name: written(name, known.measured[name].value),
            "results": lambda name: _range(name, known.measured[name]),
            "data sheet": lambda name: written(name, device.numbers.get(QUANTITIES[name].sheet or "")),
            "share": known.ratio,
            "source": lambda name: f"[{sources.index(known.measured[name].source) + 1}]",
        }
        parts += ["", table_of(known.measured, columns, words=(0, 5), formats={"share": percent})]
        ways = dict.fromkeys(value.statistic for value in known.measured.values() if value.statistic)
        parts += [f"Measured: {'; '.join(ways)}." if ways else ""]
    else:
        parts += ["", "Nothing was measured on it. Expected, as its siblings reach:"]
        parts += [Text(list(_expectations(known)), "list")]
    if device.numbers:
        columns = {
            "data sheet": lambda name: _title(name, device.type),
            "value": lambda name: written(name, device.numbers[name]),
            "source": lambda name: f"[{sources.index(known.sources[name]) + 1}]",
        }
        parts += ["", table_of(device.numbers, columns, words=(0, 2))]
    numbered = [f"[{number}] {text}" for number, text in enumerate(sources, 1)]
    return Report([*parts, "", "Sources:", Text(numbered, "list")])


def _range(name: str, value: MeasuredValue) -> str | None:
    if value.low is None or value.high is None:
        return None
    return f"{written(name, value.low)} to {written(name, value.high)}"


def _expectations(known: KnownDevice) -> Iterator[str]:
    for fact, value in known.expected.items():
        number = format_seconds(value.value) if fact == "launch_s" else f"{100 * value.value:.0f} %"
        spread = math.exp(1.645 * value.deviation)
        yield (
            f"{number} {_FACTS[fact]}, within a factor of {spread:.2f} nine times in ten "
            f"({value.count} of its {value.of})"
        )


def device_comparison_report(comparison: DeviceComparison) -> Report:
    """Compare two devices: their numbers, ratios, and the kernels at which each is faster."""
    one, other = comparison.first.device, comparison.second.device
    numbers = comparison.numbers()
    # Those of GPUs are said of two GPUs alone.
    kind = one.type if one.type == other.type else ""
    columns = {
        "": lambda name: f"{_title(name, kind)}{', measured' if name in QUANTITIES else ''}",
        one.key: lambda name: written(name, numbers[name][0]),
        other.key: lambda name: written(name, numbers[name][1]),
        "ratio": lambda name: _ratio(*numbers[name]),
    }
    faster = [times for times in comparison.kernels if times.ratio > 1]
    chances = [times.probability for times in comparison.kernels if times.probability is not None]
    surely = [sum(each >= _SURELY for each in chances), sum(1 - each >= _SURELY for each in chances)]
    middle = math.exp(sum(math.log(times.ratio) for times in comparison.kernels) / len(comparison.kernels))
    return Report(
        [
            Heading(f"{one.name} and {other.name}", 1),
            table_of(numbers, columns, words=(0,), formats={"ratio": "{:.3g}".format}),
            "",
            f"By forecasts of {len(comparison.kernels)} kernels of the suite at several sizes, {one.key} is "
            f"faster at {len(faster)} ({surely[0]} with a probability of {percent(_SURELY)} or more), and "
            f"{other.key} at {len(comparison.kernels) - len(faster)} ({surely[1]}). On average (geometric "
            f"mean) {one.key} is {middle:.2f} times as fast.",
            "",
            Heading(f"Where {one.key} is best beside {other.key}"),
            _kernels(comparison.kernels[:_KERNELS_SHOWN], comparison, one.key),
            Heading(f"Where {other.key} is best beside {one.key}"),
            _kernels(comparison.kernels[: -_KERNELS_SHOWN - 1 : -1], comparison, other.key),
        ]
    )


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def _kernels(kernels: Sequence[KernelTimes], comparison: DeviceComparison, best: str) -> Table:
    """Times on both devices, and the speed of one over that of the other."""
    one, other = comparison.first.device.key, comparison.second.device.key
    speed, first = f"speed of {best}", best == one
    columns: dict[str, Column[KernelTimes]] = {
        **{name: name for name in ("application", "kernel", "size")},
        one: "first_s",
        other: "second_s",
        speed: lambda times: times.ratio if first else 1 / times.ratio,
        "chance": lambda times: (
            times.probability if first or times.probability is None else 1 - times.probability
        ),
    }
    return table_of(kernels, columns, formats={speed: factor, "chance": probability})


_CEILINGS = ("fp32_flop_per_s", "fp64_flop_per_s", "int32_op_per_s")


def microbenchmarks_report(results: Microbenchmarks, path: Path) -> Report:
    """Make the table of measured rates, and sentences about their uncertainty and the file."""
    columns = {
        "measured": lambda name: QUANTITIES[name].title,
        "value": lambda name: written(name, results.values[name].best),
        "runs": lambda name: results.values[name].runs,
        "middle run": lambda name: _middle(name, results.values[name]),
    }
    unsure = results.unsure()
    parts: list[Part] = [
        Heading(f"{results.name} ({results.id})", 1),
        table_of(results.values, columns, words=(0,)),
        "",
        f"Values are the best of their runs, of launches the median; measured in {results.seconds:.0f} s.",
    ]
    if unsure:
        names = ", ".join(QUANTITIES[name].title for name in unsure)
        parts.append(f"Unsure, as runs differ by more than 15 %: {names}.")
    if results.doubts:
        parts.append(Text([f"{doubt[0].upper()}{doubt[1:]}." for doubt in results.doubts], "list"))
    return Report([*parts, "", f"It is in {path}, a file that anyone can take: --device-file {path.name}."])


def _middle(name: str, value: Value) -> str:
    """Write the middle run, or what a quarter of launches exceed."""
    middle = str(written(name, value.middle))
    return f"{middle} or more in 1 of 4" if value.of_launches else middle


def microbenchmark_figures(results: Microbenchmarks) -> dict[str, Figure]:
    """Draw bandwidth by working set, and the roofline with the measured ceilings."""
    return {"bandwidth": _bandwidth(results), "roofline": _roofline(results)}


def _bandwidth(results: Microbenchmarks) -> Figure:
    figure, axes = one_figure(7, 4)
    kinds = [kind for kind in results.working_sets if kind != "bytes"]
    for kind, look in looks(kinds).items():
        points(axes, results.working_sets["bytes"], results.working_sets[kind], look, kind, linestyle="solid")
    axes.set(xscale="log", yscale="log")
    unit_axis(axes.xaxis, "B", base=4)
    unit_axis(axes.yaxis, "B/s")
    style_axes(axes, x="working set", y="bandwidth")
    axes.legend(frameon=False)
    return titled(figure, f"Bandwidth of {results.name} by working set")


def _roofline(results: Microbenchmarks) -> Figure:
    import numpy as np

    figure, axes = one_figure(7, 4)
    intensities = np.logspace(-2, 3, 200)
    bandwidth = results.values["read_bytes_per_s"].best
    ceilings = [name for name in _CEILINGS if name in results.values]
    for name, look in looks(ceilings).items():
        peak = results.values[name].best
        axes.plot(
            intensities,
            np.minimum(peak, intensities * bandwidth),
            color=look.colour,
            label=f"{QUANTITIES[name].title}: {written(name, peak)}",
        )
    axes.set(xscale="log", yscale="log")
    unit_axis(axes.yaxis, "op/s")
    style_axes(axes, x="operations for each byte of main memory", y="rate")
    axes.legend(frameon=False, fontsize=8)
    return titled(figure, f"Roofline of {results.name}, as measured")


def devices_report(entries: Sequence[Entry]) -> Report:
    """Make a table of devices, and sentences about sensors and counters that do not work."""
    columns: dict[str, Column[Entry]] = {name: f"device.{name}" for name in ("id", "name", "type")}
    columns["units"] = "device.compute_units"
    columns |= {"clock": "facts.clock_hz", "L1": "facts.l1_bytes", "L2": "facts.l2_bytes"}
    columns |= {"L3": "facts.l3_bytes", "memory": "facts.memory_bytes"}
    columns["sensors"] = lambda entry: ", ".join(each.name for each in entry.sensors if each.works) or "none"
    return Report([table_of(entries, columns), *_reasons(entries)])


def _reasons(entries: Sequence[Entry]) -> list[str]:
    """Sentences with each reason once, and its devices or counters."""
    sensors: dict[str, list[str]] = {}
    counters: dict[str, list[str]] = {}
    for entry in entries:
        for sensor in entry.sensors:
            if sensor.reason is not None:
                sensors.setdefault(sensor.reason, []).append(entry.device.id)
    for name, reason in next((entry.counters for entry in entries if entry.counters), {}).items():
        counters.setdefault(reason or "work", []).append(name)
    return [
        *(f"{', '.join(ids)}: {reason}" for reason, ids in sensors.items()),
        *(f"CPU counters {', '.join(names)}: {reason}" for reason, names in counters.items()),
    ]
