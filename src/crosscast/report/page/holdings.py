"""What the dataset holds: applications, and devices by what describes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from crosscast.device import Device
from crosscast.report.numbers import NONE, plural
from crosscast.report.page.markup import Markup, joined, paragraph, table
from crosscast.report.page.subject import Subject
from crosscast.tables.description import CellNoise
from crosscast.tables.size_order import size_order
from crosscast.units import format_bytes, format_count, format_hertz

__all__ = ["holdings"]

_APPLICATION_HEADINGS = ("application", "sizes", "kernels", "cells", "runs", "spread")
_DEVICE_HEADINGS = (
    "device",
    "name",
    "type",
    "maker",
    "series",
    "units",
    "clock",
    "memory",
    "bandwidth",
    "peak, flop/s",
    "cells",
    "runs",
    "spread",
)
_DEVICE_TEXTS = 5


def holdings(subject: Subject) -> Markup:
    """Tables of what was measured, and how noisy it is."""
    description = subject.description
    counts = ", ".join(
        plural(number, noun)
        for number, noun in (
            (len(description.applications), "application"),
            (len(description.kernels), "kernel"),
            (len(description.sizes), "size"),
            (len(description.devices), "device"),
            (description.cells, "cell"),
            (description.records, "record"),
        )
    )
    return joined(
        [
            paragraph(
                f"{subject.study.label}: {counts}.",
                "A cell is one kernel at one size on one device; its time is the median over its runs.",
                "The spread is the standard deviation of a cell's runs over their mean; the tables give the "
                "median over cells.",
                *_left_out(subject),
            ),
            table("Applications", _APPLICATION_HEADINGS, _applications(subject), texts=2),
            table(
                "Devices; what is not known of one is a dash",
                _DEVICE_HEADINGS,
                _devices(subject),
                texts=_DEVICE_TEXTS,
            ),
        ],
        "\n",
    )


def _left_out(subject: Subject) -> Iterator[str]:
    lacking = subject.description.cells - subject.study.counts["cells"]
    if lacking > 0:
        yield f"{plural(lacking, 'cell')} without a profile of the kernel cannot be predicted."
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
        cells = [cell for cell in subject.description.noise if cell.device == key]
        yield (
            key,
            *(text or NONE for text in (device.name, device.type, device.vendor, device.series)),
            *_numbers(device),
            *_measured(cells),
        )


def _numbers(device: Device) -> Iterable[str]:
    numbers = device.numbers
    for name, write in (
        ("compute_units", lambda value: format_count(int(value))),
        ("clock_hz", format_hertz),
        ("memory_bytes", lambda value: format_bytes(int(value))),
        ("bandwidth_bytes_per_s", lambda value: f"{format_bytes(int(value))}/s"),
        ("peak_flop_per_s", lambda value: f"{value:.2e}"),
    ):
        yield write(numbers[name]) if name in numbers else NONE


def _measured(cells: Sequence[CellNoise]) -> tuple[str, str, str]:
    """Cells, runs and median spread."""
    spreads = [cell.relative_sd for cell in cells if cell.relative_sd is not None]
    spread = f"{100 * median(spreads):.1f} %" if spreads else NONE
    return format_count(len(cells)), format_count(sum(cell.runs for cell in cells)), spread
