"""What microbenchmarks found on a device: tables, and figures of its memory and its ceilings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast.devices.measured import QUANTITIES
from crosscast.report.devices import written
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.figures import looks, new_figure, one_figure, style_axes, titled

if TYPE_CHECKING:
    from crosscast.measure.microbenchmarks.bench import Microbenchmarks

_CEILINGS = ("fp32_flop_per_s", "fp64_flop_per_s", "int32_op_per_s")


def microbenchmarks_report(found: Microbenchmarks, path: Path) -> Report:
    """What was measured, how sure it is, and where it was written."""
    columns = {
        "measured": lambda name: QUANTITIES[name].title,
        "value": lambda name: written(name, found.values[name].best),
        "runs": lambda name: found.values[name].runs,
        "middle run": lambda name: written(name, found.values[name].middle),
    }
    unsure = found.unsure()
    parts: list[Part] = [
        Heading(f"{found.name} ({found.id})", 1),
        Table.of(found.values, columns, words=(0,)),
        "",
        f"Values are the best of their runs, of launches the median; measured in {found.seconds:.0f} s.",
    ]
    if unsure:
        names = ", ".join(QUANTITIES[name].title for name in unsure)
        parts.append(f"Unsure, as runs differ by more than 15 %: {names}.")
    if found.doubts:
        parts.append(Text([f"{doubt[0].upper()}{doubt[1:]}." for doubt in found.doubts], "list"))
    return Report([*parts, "", f"It is in {path}, a file that anyone can take: --device-file {path.name}."])


def microbenchmark_figures(found: Microbenchmarks) -> dict[str, Any]:
    """Bandwidth by working set, and the roofline with the ceilings that were measured."""
    return {"bandwidth": _bandwidth(found), "roofline": _roofline(found)}


def _bandwidth(found: Microbenchmarks) -> Any:
    figure, axes = one_figure(7, 4)
    kinds = [kind for kind in found.working_sets if kind != "bytes"]
    for kind, look in looks(kinds).items():
        rates = [value / 1e9 for value in found.working_sets[kind]]
        axes.plot(
            [size / 1024 for size in found.working_sets["bytes"]],
            rates,
            color=look.colour,
            marker="o",
            markersize=4,
            label=kind,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    style_axes(axes, x="working set (KiB)", y="GB/s")
    axes.legend(frameon=False)
    return titled(figure, f"Bandwidth of {found.name} by working set")


def _roofline(found: Microbenchmarks) -> Any:
    import numpy as np

    figure = new_figure(7, 4)
    axes = figure.subplots()
    intensities = np.logspace(-2, 3, 200)
    bandwidth = found.values["read_bytes_per_s"].best
    ceilings = [name for name in _CEILINGS if name in found.values]
    for name, look in looks(ceilings).items():
        peak = found.values[name].best
        axes.plot(
            intensities,
            np.minimum(peak, intensities * bandwidth) / 1e9,
            color=look.colour,
            label=f"{QUANTITIES[name].title}: {written(name, peak)}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    style_axes(axes, x="operations a byte of main memory", y="billion operations a second")
    axes.legend(frameon=False, fontsize=8)
    return titled(figure, f"Roofline of {found.name}, as measured")
