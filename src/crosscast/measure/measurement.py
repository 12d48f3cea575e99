"""Measurements of applications and launch files, in new processes, with a summary of each kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np

from crosscast.data.description import RecordWarning, warnings_of
from crosscast.data.library import pc
from crosscast.data.schema import ENERGY, RECORDS, SESSIONS, Schema
from crosscast.data.table import Table, table_of
from crosscast.data.views import cells_of
from crosscast.errors import InputError
from crosscast.kernel import LAUNCH_FILES
from crosscast.measure.processes import Answer, Row, SessionJob, run_job
from crosscast.measure.subjects import LaunchFile, Settings, SuiteProblem, expect_installed, problem_of
from crosscast.results import Tabular, columns_of
from crosscast.suite.application import application, names


@dataclass(frozen=True)
class KernelSummary:
    """Times of the runs of a kernel."""

    kernel: str  # Name of the kernel
    runs: int  # Recorded runs
    invocations: int  # Invocations in all runs
    median_s: float  # Over the runs, of the mean time of an invocation in a run, in seconds
    mean_s: float
    min_s: float
    max_s: float
    sd_s: float | None  # Standard deviation; `None` for a single run

    @property
    def spread(self) -> float | None:
        """Standard deviation over mean; ``None`` if it is not defined."""
        return None if self.sd_s is None or self.mean_s == 0 else self.sd_s / self.mean_s

    def to_dict(self) -> dict[str, object]:
        """Return the fields for JSON."""
        return asdict(self)


def summaries(records: Table) -> list[KernelSummary]:
    """Summarise the records of one application on one device by kernel."""
    cells = cells_of(records)
    times, counts = cells.times, cells.times.counts
    invocations = np.bincount(cells.numbers, weights=pc.list_value_length(records.column("time_s")))
    return [
        KernelSummary(
            kernel,
            runs=int(counts[cell]),
            invocations=int(invocations[cell]),
            median_s=float(times.quantile(0.5)[cell]),
            mean_s=float(times.mean()[cell]),
            min_s=float(times.least()[cell]),
            max_s=float(times.most()[cell]),
            sd_s=float(times.sd()[cell]) if counts[cell] > 1 else None,
        )
        for cell, kernel in enumerate(cells.keys.column("kernel").to_pylist())
    ]


@dataclass(frozen=True)
class Measurement(Tabular):
    """Sessions of the same subject, with their summary."""

    device: str  # Id of the device
    device_name: str  # Name of the device
    sessions: Sequence[Row]  # Rows of the table of sessions, one for each process
    records: Sequence[Row]  # Rows of the table of records of all sessions
    energy: Sequence[Row]  # Rows of the table of energy of all sessions
    kernels: Sequence[KernelSummary]  # Summary of each kernel over all sessions
    warnings: Sequence[str]  # Sentences on doubts and problems
    sensor: str = "auto"  # Requested sensor of energy

    @classmethod
    def of(
        cls, device: str, device_name: str, answers: Sequence[Answer], sensor: str = "auto"
    ) -> Measurement:
        """Combine the answers of processes."""
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
            warnings=[*map(_sentence, warnings), *(note for answer in answers for note in answer["notes"])],
            sensor=sensor,
        )

    def columns(self) -> Mapping[str, Sequence[object]]:
        """Columns with a row for each kernel, times in seconds."""
        return columns_of([kernel.to_dict() for kernel in self.kernels])

    @property
    def transfer_median_s(self) -> float:
        """Median over the runs of the time of all copies, in seconds."""
        return float(median(record["transfer_s"] for record in self._runs()))

    @property
    def host_median_s(self) -> float:
        """Median over the runs of the time of a whole run on the host, in seconds."""
        return float(median(record["host_s"] for record in self._runs()))

    def _runs(self) -> list[Row]:
        """Return one record of each run, as all kernels' records repeat the values of the run."""
        return [record for record in self.records if record["kernel"] == self.kernels[0].kernel]

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
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


def _decoded(schema: Schema, rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return rows with their JSON columns decoded."""
    texts = {column.name for column in schema.columns if column.type == "json"}
    return [
        {
            name: json.loads(value) if name in texts and isinstance(value, str) and value else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _sentence(warning: RecordWarning) -> str:
    return warning.warning if warning.kernel is None else f"{warning.kernel}: {warning.warning}"


def subject_of(what: str, size: str | None) -> LaunchFile | SuiteProblem:
    """Return the subject of a name: a launch file, or an application at a size."""
    path = Path(what)
    if path.suffix in LAUNCH_FILES and not path.is_dir():
        if size is not None:
            raise InputError.of(
                field="size", problem=f"{what} is a launch file, whose sizes are what they are"
            )
        return LaunchFile(str(path))
    if path.is_file() and what not in names():
        raise InputError.of(
            where=what,
            expected=(
                f"an application or a launch file ({', '.join(LAUNCH_FILES)}), which names a "
                "source and says what to launch, or a launch (--global 1024 --arg ...)"
            ),
            found="neither",
        )
    kind = application(what)
    if size is None:
        raise InputError.of(where=what, problem="an application needs a size (tiny, small, medium or large)")
    expect_installed([what])
    return problem_of(what, kind, size)


def measure_times(
    what: str | Path,
    device: str | None = None,
    *,
    size: str | None = None,
    min_runs: int = 50,
    min_time: float = 2.0,
    warmups: int = 2,
    repeats: int = 1,
    sensor: str = "auto",
    timeout: float = 600.0,
    progress: Callable[[int, float], None] = lambda runs, elapsed_s: None,
) -> Measurement:
    """Measure kernels on an OpenCL device, in repeated runs.

    This is what ``crosscast measure`` does. A notebook shows what it returns as a table.

    Parameters
    ----------
    what
        A launch file, or the name or folder of an application.
    device
        Id of the device, as ``crosscast devices`` shows it; by default the first one.
    size
        Size of the application's problem: tiny, small, medium or large.
    min_runs, min_time
        Least number of recorded runs, and their least total time in seconds.
    warmups
        Runs before these.
    repeats
        Processes that repeat the measurement, one after another.
    sensor
        Energy sensor: ``auto``, ``none``, ``rapl``, ``nvml`` or ``replay:PATH``.
    timeout
        Time limit of a process, in seconds.
    progress
        Called with the runs so far and their seconds.

    Returns
    -------
    Measurement
        ``to_pandas()`` has a row for each kernel, times in seconds; ``to_dict()`` has each run.

    Raises
    ------
    InputError
        If the file, application or device does not exist, or a number is out of range.
    MissingExtraError
        If OpenCL's packages are not installed.
    EnvironmentFault, KernelFault
        If the device or a kernel fails.
    """
    # First, as it names the extra that applications of the suite need.
    subject = subject_of(str(what), size)
    # Imported here: it needs OpenCL.
    from crosscast.measure.opencl import find

    if repeats < 1:
        raise InputError.of(field="repeats", expected="at least 1", found=f"{repeats}")
    settings = Settings(min_runs, min_time, warmups, timeout, sensor)
    target = find(device)
    answers = [
        run_job(SessionJob(subject, target.id, settings, repeat), timeout, progress)
        for repeat in range(repeats)
    ]
    return Measurement.of(target.id, target.name, answers, sensor)
