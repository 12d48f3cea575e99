"""A measurement on a terminal: what each kernel took, and how sure that is."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.measure.summary import KernelSummary, summaries
from crosscast.report.console import console_on
from crosscast.tables.arrow import table_of
from crosscast.tables.energy import ENERGY
from crosscast.tables.records import RECORDS
from crosscast.tables.schema import Schema
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
    sensor
        Sensor of energy that was asked for.
    """

    device: str
    device_name: str
    sessions: Sequence[Mapping[str, Any]]
    records: Sequence[Mapping[str, Any]]
    energy: Sequence[Mapping[str, Any]]
    kernels: Sequence[KernelSummary]
    warnings: Sequence[str]
    sensor: str = "auto"

    @classmethod
    def of(
        cls, device: str, device_name: str, answers: Sequence[Mapping[str, Any]], sensor: str = "auto"
    ) -> Measurement:
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
            sensor=sensor,
        )

    @property
    def transfer_median_s(self) -> float:
        """Median over the runs of the time of all copies, in seconds."""
        return float(statistics.median(record["transfer_s"] for record in self._runs()))

    @property
    def host_median_s(self) -> float:
        """Median over the runs of the time of a whole run on the host, in seconds."""
        return float(statistics.median(record["host_s"] for record in self._runs()))

    def _runs(self) -> list[Mapping[str, Any]]:
        """A record of each run: what is of the whole run, the records of all its kernels repeat."""
        return [record for record in self.records if record["kernel"] == self.kernels[0].kernel]

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "device": {"id": self.device, "key": self.sessions[0]["device"], "name": self.device_name},
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "transfer_median_s": self.transfer_median_s,
            "host_median_s": self.host_median_s,
            "sessions": _decoded(SESSIONS, self.sessions),
            "records": _decoded(RECORDS, self.records),
            "energy": _decoded(ENERGY, self.energy),
            "warnings": list(self.warnings),
        }


def _decoded(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose columns of JSON are what it stands for, not text."""
    texts = {column.name for column in schema.columns if column.type == "json"}
    return [
        {name: json.loads(value) if name in texts and value else value for name, value in row.items()}
        for row in rows
    ]


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
    copies, host = map(format_seconds, (measurement.transfer_median_s, measurement.host_median_s))
    expected = not measurement.energy and measurement.sensor != "none"
    return [
        f"copies {copies} a run; whole run on the host {host} (medians)",
        *(
            f"energy {row['energy_j'] / row['runs']:.4g} J a run ({row['sensor']} {row['domain']}, "
            f"{row['samples']} samples in {format_seconds(row['duration_s'])})"
            for row in measurement.energy
        ),
        *(["energy: no sensor (crosscast devices says why)"] if expected else []),
        *(f"warning: {warning}" for warning in measurement.warnings),
    ]


def _sentence(warning: RecordWarning) -> str:
    return warning.warning if warning.kernel is None else f"{warning.kernel}: {warning.warning}"
