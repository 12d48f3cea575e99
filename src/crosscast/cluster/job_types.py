"""Jobs with times on several machines: tables of types of jobs, and traces of Gavel with its speeds."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.cluster import Jobs, Machine, first_row
from crosscast.cluster.trace_files import text_lines
from crosscast.data.schema import Column, Schema
from crosscast.data.sources.corun import GAVEL_ALONE, GAVEL_SPEEDS, GAVEL_SPREAD
from crosscast.data.sources.source import read_file
from crosscast.data.table import Table, read_table, table_of, write_table
from crosscast.errors import InputError, expect_known
from crosscast.evaluation.relative.evaluation import HeldOutPredictions
from crosscast.prediction.relative import NO_SOURCE, Observations

Texts = tuple[str | None, ...]


@dataclass(frozen=True)
class JobTypes:
    """``n`` types of jobs, with times on ``d`` devices."""

    devices: tuple[str, ...]  # A device is repeated if there are several machines of it
    application: tuple[str, ...]
    kernel: Texts  # `None` for the whole application
    size: Texts
    procs: Integers  # Processors or nodes of a job, of shape `(n,)`
    uses_gpu: npt.NDArray[np.bool_]  # Whether users know that it runs on GPUs, of shape `(n,)`
    repeats: Integers  # Invocations in a job, of shape `(n,)`
    # Time of submission in seconds, of shape `(n,)`; `None` if times are to be drawn
    submit_s: Reals | None
    user: Texts
    # Measured time of an invocation in seconds, of shape `(n, d)`; NaN where none was measured
    times_s: Reals
    # Predicted time relative to the slowest device, of shape `(n, d)`; NaN where none was predicted
    predicted: Reals
    source: Texts
    model: Texts

    def __len__(self) -> int:
        return len(self.application)

    @property
    def run_s(self) -> Reals:
        """Run time of a job of each type on each device, in seconds, of shape ``(n, d)``."""
        return self.times_s * self.repeats[:, None]


def for_machines(types: JobTypes, machines: Sequence[Machine]) -> JobTypes:
    """Select the column of each machine's device, in the order of the machines."""
    columns = []
    for machine in machines:
        device = machine.device or machine.name
        column = types.devices.index(device) if device in types.devices else None
        if column is None or np.isnan(types.times_s[:, column]).all():
            timed = np.flatnonzero((~np.isnan(types.times_s)).any(axis=0))
            known = ", ".join(types.devices[index] for index in timed)
            raise InputError.of(
                where=f"machine {machine.name}",
                field="device",
                expected=f"one on which jobs have times ({known})",
                found=repr(device),
            )
        columns.append(column)
    times = types.times_s[:, columns]
    if (row := first_row(np.isnan(times).all(axis=1))) is not None:
        measured = ~np.isnan(types.times_s[row])
        known = ", ".join(device for device, has in zip(types.devices, measured, strict=True) if has)
        wanted = ", ".join(types.devices[column] for column in columns)
        raise InputError.of(
            where=f"job type {row + 1} ({types.application[row]})",
            field="times",
            expected=f"one on a device of the machines ({wanted})",
            found=f"{known or 'none'}",
        )
    devices = tuple(types.devices[column] for column in columns)
    return replace(types, devices=devices, times_s=times, predicted=types.predicted[:, columns])


_NODES = "nodes"
_MOST_PROCS = 2**31 - 1
_MOST_REPEATS = 2**53


@dataclass(frozen=True)
class JobShape:
    """Properties of jobs that a dataset does not have."""

    # Processors or nodes of jobs; at least 1. Each of several numbers makes a type of job, all of the same
    # run time: twice the nodes do twice the work. A repeated number is drawn that much more often. By default
    # the run's setting `nodes`, or 1 without it
    job_procs: Sequence[int] | None = None
    # Run time of jobs in seconds: each repeats its kernel, at least once, so that the geometric mean over all
    # devices comes closest to this. By default jobs are one invocation, as in section VII of Nichols et al.
    # 2024
    job_s: float | None = None
    # Applications that users know to run on GPUs; by default all
    gpu_applications: Collection[str] | None = None
    # For profiles of no device: the device whose known time converts predicted vectors to seconds; by default
    # none
    job_source: str | None = None

    def __post_init__(self) -> None:
        counts = self.job_procs
        if counts is not None and not (counts and all(1 <= count <= _MOST_PROCS for count in counts)):
            given = ", ".join(map(str, counts)) or "none"
            raise InputError.of(field="job_procs", expected=f"numbers from 1 to {_MOST_PROCS}", found=given)
        if self.job_s is not None and not (self.job_s > 0 and np.isfinite(self.job_s)):
            raise InputError.of(field="job_s", expected="a time above 0 s", found=f"{self.job_s}")

    def check(self, runs: Observations, devices: Sequence[str]) -> None:
        """Raise unless the options fit the runs that jobs are made of."""
        applications = sorted(set(runs.application))
        expect_known(self.gpu_applications or (), applications, field="gpu_applications", words="some of")
        if self.job_source is not None:
            sources = sorted(set(runs.source) - {NO_SOURCE})
            if sources:
                raise InputError.of(
                    field="job_source",
                    expected="it of profiles, which are of no device",
                    found=f"counters of {', '.join(sources)}",
                )
            expect_known(self.job_source, devices, field="job_source")
        if self.job_procs is None:
            for row in range(len(runs)):
                _nodes(runs, row)

    def procs_of(self, runs: Observations, row: int) -> Sequence[int]:
        """Return the processors of each type of job made of a run."""
        return [_nodes(runs, row)] if self.job_procs is None else self.job_procs

    def repeats_of(self, times_s: Reals) -> Integers:
        """Return the repeats of each job's kernel, of shape ``(c,)``."""
        if self.job_s is None:
            return np.ones(len(times_s), dtype=np.int64)
        typical_s = np.exp(np.log(times_s).mean(axis=1))
        repeats = np.maximum(np.round(self.job_s / typical_s), 1)
        if repeats.max() > _MOST_REPEATS:
            raise InputError.of(
                field="job_s",
                expected="at most 2^53 times as long as each kernel",
                found=f"{self.job_s:g} s for one of {typical_s.min():g} s",
            )
        counted: Integers = repeats.astype(np.int64)
        return counted


def _nodes(runs: Observations, row: int) -> int:
    """Return the nodes in a run's settings, or 1."""
    if _NODES not in runs.configuration:
        return 1
    nodes = float(runs.settings[row, runs.configuration.index(_NODES)])
    if np.isnan(nodes):
        return 1
    if not (nodes.is_integer() and 1 <= nodes <= _MOST_PROCS):
        raise InputError.of(
            where=f"setting {_NODES}",
            problem=(
                f"{runs.application[row]}, {runs.kernel[row]}: expected a whole number from 1 "
                f"to {_MOST_PROCS}, found {nodes:g}"
            ),
        )
    return int(nodes)


JOB_TYPES = Schema(
    "job types",
    1,
    (
        Column("application", "text", title="application that is run", required=True),
        Column("kernel", "text", title="kernel of it; empty for all of them"),
        Column("size", "text", title="problem size"),
        Column("procs", "integer", "count", "processors or nodes that a job occupies; empty is 1", ge=1),
        Column(
            "uses_gpu",
            "integer",
            "1",
            "1 if its users know that it runs on GPUs, else 0",
            required=True,
            ge=0,
            le=1,
        ),
        Column("repeats", "integer", "count", "invocations that a job is; empty is 1", ge=1),
        Column("submit_s", "real", "s", "when it is submitted; empty in all rows if times are drawn", ge=0),
        Column("user", "text", title="who submits it"),
        Column("times", "json", "s", "measured time of an invocation, by device", required=True),
        Column("predicted", "json", "1", "predicted time relative to the slowest device, by device"),
        Column("source", "text", title="device that the counters of the prediction are from"),
        Column("model", "text", title="model that predicted"),
    ),
    key=(),
)

_MOST_DEVICES = 1000
_TEXTS = ("application", "kernel", "size", "user", "source", "model")


def read_job_types(path: str | Path) -> JobTypes:
    """Read a table of job types: Parquet, whoever wrote it, or CSV."""
    return _types_of(read_table(path, JOB_TYPES, plain=True), str(path))


def write_job_types(types: JobTypes, path: str | Path) -> None:
    """Write a table of job types; the same types give the same bytes."""
    rows = [
        {
            **{name: getattr(types, name)[row] for name in _TEXTS},
            "procs": int(types.procs[row]),
            "uses_gpu": int(types.uses_gpu[row]),
            "repeats": int(types.repeats[row]),
            "submit_s": None if types.submit_s is None else float(types.submit_s[row]),
            "times": _by_device(types.devices, types.times_s[row]),
            "predicted": _by_device(types.devices, types.predicted[row]) or None,
        }
        for row in range(len(types))
    ]
    table = table_of(JOB_TYPES, rows)
    _types_of(table, JOB_TYPES.table)
    write_table(table, path)


def _by_device(devices: Sequence[str], values: Reals) -> dict[str, float]:
    return {
        device: value for device, value in zip(devices, values.tolist(), strict=True) if not math.isnan(value)
    }


def _types_of(table: Table, label: str) -> JobTypes:
    if not table.num_rows:
        raise InputError.of(where=label, expected="a row for each type of job", found="none")
    cells = table.to_pydict()
    times = _vectors(label, "times", cells["times"], above_0=True)
    predicted = _vectors(label, "predicted", cells["predicted"], above_0=False)
    for row, vector in enumerate(times, start=1):
        if not vector:
            raise InputError.of(
                where=label, problem=f"column 'times', row {row}: expected a time on a device, found none"
            )
    devices = tuple(sorted({device for vector in (*times, *predicted) for device in vector}))
    if len(devices) > _MOST_DEVICES:
        raise InputError.of(where=label, expected=f"at most {_MOST_DEVICES} devices", found=len(devices))
    return JobTypes(
        devices=devices,
        # An empty cell is 1.
        procs=np.array([cell or 1 for cell in cells["procs"]], np.int64),
        uses_gpu=np.array(cells["uses_gpu"], dtype=np.bool_),
        repeats=np.array([cell or 1 for cell in cells["repeats"]], np.int64),
        submit_s=_submits(label, cells["submit_s"]),
        times_s=_matrix(devices, times),
        predicted=_matrix(devices, predicted),
        **{name: tuple(cells[name]) for name in _TEXTS},
    )


def _submits(label: str, cells: Sequence[float | None]) -> Reals | None:
    if all(cell is None for cell in cells):
        return None
    if None in cells:
        row = cells.index(None) + 1
        raise InputError.of(
            where=label,
            problem=f"column 'submit_s', row {row}: expected a time, as in other rows, found none",
        )
    return np.array(cells, dtype=np.float64)


def _vectors(
    label: str, name: str, cells: Sequence[str | None], *, above_0: bool
) -> list[Mapping[str, float]]:
    """Parse the numbers by device of each row."""
    # Types drawn with replacement share their vectors: each text is parsed once.
    known: dict[str | None, Mapping[str, float]] = {None: {}}
    for row, cell in enumerate(cells, start=1):
        if cell not in known:
            known[cell] = _vector(f"{label}: column {name!r}, row {row}", json.loads(str(cell)), above_0)
    return [known[cell] for cell in cells]


def _vector(where: str, value: object, above_0: bool) -> Mapping[str, float]:
    expected = "a number above 0" if above_0 else "a number of at least 0"
    if not isinstance(value, dict):
        raise InputError.of(where=where, expected=f"{expected} for each device", found=f"{str(value)[:60]}")
    for device, number in value.items():
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        # JSON's whole numbers may be too large for a float.
        if not is_number or not 0 <= number <= 1e300 or (above_0 and number == 0):
            raise InputError.of(
                where=where, field=device[:60], expected=expected, found=f"{str(number)[:60]}"
            )
    return {device: float(number) for device, number in value.items()}


def _matrix(devices: Sequence[str], vectors: Sequence[Mapping[str, float]]) -> Reals:
    columns = {device: column for column, device in enumerate(devices)}
    matrix = np.full((len(vectors), len(devices)), np.nan)
    for row, vector in zip(matrix, vectors, strict=True):
        for device, number in vector.items():
            row[columns[device]] = number
    return matrix


_AS_MEASURED = JobShape()


def held_out_jobs(predictions: HeldOutPredictions, shape: JobShape = _AS_MEASURED) -> JobTypes:
    """Make types of jobs for the experiment of section VII of Nichols et al. 2024.

    Each kernel at a size and scale is a type for each source that its counters are from: repeats of the same
    work on the same source are one, with the medians of their times and the means of their predictions.
    """
    vectors = predictions.vectors
    runs = vectors.observations
    shape.check(runs, vectors.devices)
    keys = zip(runs.application, runs.kernel, runs.size, runs.scale, runs.source, strict=True)
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    cells = sorted(rows)
    times_s = np.array([np.median(vectors.times_s[rows[cell]], axis=0) for cell in cells])
    predicted = np.array([predictions.predicted[rows[cell]].mean(axis=0) for cell in cells])
    procs = [shape.procs_of(runs, rows[cell][0]) for cell in cells]
    # A kernel's jobs of several widths are next to each other.
    index = np.repeat(np.arange(len(cells)), [len(widths) for widths in procs])
    kinds, gpu = [cells[cell] for cell in index], shape.gpu_applications
    return JobTypes(
        devices=vectors.devices,
        application=tuple(kind[0] for kind in kinds),
        kernel=tuple(kind[1] for kind in kinds),
        size=tuple(kind[2] for kind in kinds),
        procs=np.concatenate(procs).astype(np.int64),
        uses_gpu=np.array([gpu is None or kind[0] in gpu for kind in kinds]),
        repeats=shape.repeats_of(times_s)[index],
        submit_s=None,
        user=(None,) * len(kinds),
        times_s=times_s[index],
        predicted=predicted[index],
        source=tuple(shape.job_source if kind[4] == NO_SOURCE else kind[4] for kind in kinds),
        model=(predictions.model,) * len(kinds),
    )


Speeds = Mapping[tuple[str, int], Sequence[float]]
"""Steps per second on each kind of GPU, by type of job and number of GPUs; 0 where it does not fit."""


def read_speeds(path: str | Path) -> tuple[tuple[str, ...], Speeds]:
    """Read the kinds of GPU, and the speeds of types of jobs on those in one server."""
    rows = [
        row
        for row in read_file(GAVEL_ALONE, Path(path)).rows
        if row["file"] == GAVEL_SPEEDS and not row.text("gpu").endswith(GAVEL_SPREAD)
    ]
    if not rows:
        raise InputError.of(where=path, expected=f"rows of {GAVEL_SPEEDS}", found="none")
    kinds = tuple(dict.fromkeys(row.text("gpu") for row in rows))
    by_job = {(row.text("job"), row.integer("gpus")): [0.0] * len(kinds) for row in rows}
    for row in rows:
        kind = kinds.index(row.text("gpu"))
        by_job[row.text("job"), row.integer("gpus")][kind] = row.number("steps_per_s")
    return kinds, by_job


_LAYOUTS = {
    7: {"total steps": 4, "arrival time": 5, "scale factor": 6},
    9: {"total steps": 4, "scale factor": 5, "arrival time": 8},
    10: {"total steps": 5, "scale factor": 6, "arrival time": 9},
}
"""Indices of fields by the number of fields in a line, as Gavel's ``parse_trace`` changed over time."""


@dataclass(frozen=True)
class GavelTrace:
    """A trace with run times on kinds of GPU."""

    # The `n` jobs; `run_s` is of shape `(n, k)`, infinite on kinds where a job does not fit. Their numbers
    # are those of their lines, and the estimates are exact
    jobs: Jobs
    kinds: tuple[str, ...]  # The `k` kinds of GPU
    left_out: Mapping[str, int]  # Number of lines that were left out, by the reason


def read_gavel(trace: str | Path, speeds: str | Path) -> GavelTrace:
    """Read a trace of Gavel (Narayanan et al. 2020).

    A job runs for its total steps over the speed of its type on its number of GPUs (the scale factor). Jobs
    on no GPUs are left out, as Gavel does, and so are those whose speed was not measured on their number of
    GPUs, or is 0 on all kinds.
    """
    trace = Path(trace)
    kinds, known_speeds = read_speeds(speeds)
    types = {name for name, _ in known_speeds}
    numbers, arrivals, procs, runs = [], [], [], []
    left_out: Counter[str] = Counter()
    last = 0.0
    for line, text in text_lines(trace):
        if not text.strip():
            continue
        where, fields = f"{trace}: line {line}", text.split("\t")
        layout = _LAYOUTS.get(len(fields))
        if layout is None:
            raise InputError.of(
                where=where, expected="7, 9 or 10 fields with tabs between", found=len(fields)
            )
        job = fields[0].strip()
        if job not in types:
            raise InputError.of(
                where=where, field="job type", expected=f"one with a speed in {speeds}", found=repr(job[:80])
            )
        steps, gpus, arrival_s = (
            _number(where, name, fields[layout[name]], is_whole=name == "scale factor")
            for name in ("total steps", "scale factor", "arrival time")
        )
        if arrival_s < last:
            raise InputError.of(
                where=where,
                field="arrival time",
                expected=f"at least {last:.15g} s, as in a line before",
                found=f"{arrival_s:.15g}",
            )
        last = arrival_s
        steps_per_s = known_speeds.get((job, int(gpus)))
        if gpus == 0:
            left_out["no GPUs"] += 1
        elif steps_per_s is None:
            left_out["no speed on so many GPUs"] += 1
        elif not any(steps_per_s):
            left_out["does not fit on any GPU"] += 1
        else:
            numbers.append(line)
            arrivals.append(arrival_s)
            procs.append(int(gpus))
            runs.append([steps / speed if speed else math.inf for speed in steps_per_s])
    if not numbers:
        reasons = ", ".join(f"{count} with {reason}" for reason, count in left_out.items())
        raise InputError.of(
            where=trace, expected="jobs whose speed is known", found=f"none{reasons and f' ({reasons})'}"
        )
    run_s = np.array(runs, dtype=np.float64)
    jobs = Jobs(np.array(numbers, np.int64), np.array(arrivals), np.array(procs, np.int64), run_s, run_s)
    return GavelTrace(jobs, kinds, dict(left_out))


def _number(where: str, name: str, text: str, *, is_whole: bool = False) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e15 or (is_whole and not value.is_integer()):
        kind = "a whole number" if is_whole else "a number"
        raise InputError.of(where=where, field=name, expected=f"{kind} of at least 0", found=repr(text[:60]))
    return value
