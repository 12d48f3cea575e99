"""A measurement on a terminal: what each kernel took, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.measure.summary import KernelSummary, summaries
from crosscast.report.console import console_on
from crosscast.tables.arrow import table_of
from crosscast.tables.records import RECORDS
from crosscast.tables.sessions import SESSIONS
from crosscast.tables.warnings_of import RecordWarning, warnings_of
from crosscast.units import format_count, format_seconds

__all__ = ["Measurement", "print_measurement"]


@dataclass(frozen=True)
class Measurement:
    """Sessions that measured the same, with what they say.

    Parameters
    ----------
    device
        Id of the device.
    device_name
        Its name.
    sessions
        Rows of the table of sessions, one for each process.
    records
        Rows of the table of records, of all of them.
    energy
        Rows of the table of energy, of all of them.
    kernels
        Summary of each kernel over all of them.
    warnings
        What makes the times doubtful, and what went wrong, as sentences.
    """

    device: str
    device_name: str
    sessions: Sequence[Mapping[str, Any]]
    records: Sequence[Mapping[str, Any]]
    energy: Sequence[Mapping[str, Any]]
    kernels: Sequence[KernelSummary]
    warnings: Sequence[str]

    @classmethod
    def of(cls, device: str, device_name: str, answers: Sequence[Mapping[str, Any]]) -> Measurement:
        """Put the answers of processes together."""
        sessions = [answer["session"] for answer in answers]
        records = [record for answer in answers for record in answer["records"]]
        table = table_of(RECORDS, records)
        warnings = warnings_of(table, table_of(SESSIONS, sessions))
        return cls(
            device,
            device_name,
            sessions,
            records,
            energy=[row for answer in answers for row in answer["energy"]],
            kernels=summaries(table),
            warnings=[
                *map(_sentence, warnings),
                *(note for answer in answers for note in answer["notes"]),
            ],
        )

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "device": {"id": self.device, "name": self.device_name},
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "sessions": list(self.sessions),
            "records": list(self.records),
            "energy": list(self.energy),
            "warnings": list(self.warnings),
        }


def print_measurement(measurement: Measurement, stream: TextIO) -> None:
    """Print the summary of each kernel, then transfers, energy and warnings.

    Parameters
    ----------
    measurement
        What was measured.
    stream
        Where to print.
    """
    console = console_on(stream)
    processes = len(measurement.sessions)
    title = f"{measurement.sessions[0]['application']} on {measurement.device} ({measurement.device_name})"
    console.print(Text(title, style="bold"))
    table = Table(box=None, pad_edge=False)
    table.add_column("kernel")
    for heading in ("runs", "invocations", "median", "mean", "least", "most", "spread"):
        table.add_column(heading, justify="right")
    for kernel in measurement.kernels:
        table.add_row(*map(Text, _cells(kernel)))
    console.print(table)
    for line in _lines(measurement):
        console.print(Text(line), soft_wrap=True)
    count = f"{processes} processes" if processes > 1 else "one process"
    console.print(
        Text(
            f"Times are per invocation, by the device's timer, over the runs of {count}; spread is sd/mean."
        ),
        soft_wrap=True,
    )


def _cells(kernel: KernelSummary) -> list[str]:
    times = (kernel.median_s, kernel.mean_s, kernel.min_s, kernel.max_s)
    spread = "" if kernel.spread is None else f"{100 * kernel.spread:.1f} %"
    counts = (format_count(kernel.runs), format_count(kernel.invocations))
    return [kernel.kernel, *counts, *map(format_seconds, times), spread]


def _lines(measurement: Measurement) -> list[str]:
    # A run has one transfer time, which the records of all its kernels repeat.
    first = measurement.kernels[0].kernel
    runs = [record for record in measurement.records if record["kernel"] == first]
    transfer = sum(record["transfer_s"] for record in runs) / len(runs)
    host = sum(record["host_s"] for record in runs) / len(runs)
    return [
        f"copies {format_seconds(transfer)} a run; whole run on the host {format_seconds(host)}",
        *(
            f"energy {row['energy_j'] / row['runs']:.4g} J a run ({row['sensor']} {row['domain']}, "
            f"{row['samples']} samples in {format_seconds(row['duration_s'])})"
            for row in measurement.energy
        ),
        *([] if measurement.energy else ["energy: no sensor (crosscast devices says why)"]),
        *(f"warning: {warning}" for warning in measurement.warnings),
    ]


def _sentence(warning: RecordWarning) -> str:
    return warning.warning if warning.kernel is None else f"{warning.kernel}: {warning.warning}"
