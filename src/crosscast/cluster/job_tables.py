"""Jobs with times on several machines: tables of job types, and traces of Gavel with its speeds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crosscast.arrays import Reals
from crosscast.cluster.experiment import drawn
from crosscast.cluster.job_types import read_job_types
from crosscast.cluster.jobs import Jobs, Machine
from crosscast.cluster.placements import NEEDS, PLACEMENTS, Workload, type_workload
from crosscast.cluster.swf import opened
from crosscast.data.sources.corun import GAVEL_ALONE, GAVEL_SPEEDS, GAVEL_SPREAD
from crosscast.data.sources.source import read_file
from crosscast.errors import InputError

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
        raise InputError(f"{path}: expected rows of {GAVEL_SPEEDS}, found none")
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
_MOST_TRACE_BYTES = 1 << 30
_LONGEST_LINE = 64 << 10


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
    for line, fields in _lines(trace):
        where = f"{trace}: line {line}"
        layout = _LAYOUTS.get(len(fields))
        if layout is None:
            raise InputError(f"{where}: expected 7, 9 or 10 fields with tabs between, found {len(fields)}")
        job = fields[0].strip()
        if job not in types:
            raise InputError(f"{where}: job type: expected one with a speed in {speeds}, found {job[:80]!r}")
        steps, gpus, arrival_s = (
            _number(where, name, fields[layout[name]], is_whole=name == "scale factor")
            for name in ("total steps", "scale factor", "arrival time")
        )
        if arrival_s < last:
            raise InputError(
                f"{where}: arrival time: expected at least {last:.15g} s, as in a line before, "
                f"found {arrival_s:.15g}"
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
        raise InputError(
            f"{trace}: expected jobs whose speed is known, found none{reasons and f' ({reasons})'}"
        )
    run_s = np.array(runs, dtype=np.float64)
    jobs = Jobs(np.array(numbers, np.int64), np.array(arrivals), np.array(procs, np.int64), run_s, run_s)
    return GavelTrace(jobs, kinds, dict(left_out))


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line that is not blank."""
    size = 0
    with opened(path) as file:
        for number in itertools.count(1):
            line = file.readline(_LONGEST_LINE + 1)
            size += len(line)
            if len(line) > _LONGEST_LINE or size > _MOST_TRACE_BYTES:
                raise InputError(f"{path}: line {number}: expected a job, found too long a line or file")
            if not line:
                return
            if line.strip():
                yield number, line.decode("utf-8", errors="replace").rstrip("\r\n").split("\t")


def _number(where: str, name: str, text: str, *, is_whole: bool = False) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e15 or (is_whole and not value.is_integer()):
        kind = "a whole number" if is_whole else "a number"
        raise InputError(f"{where}: {name}: expected {kind} of at least 0, found {text[:60]!r}")
    return value


@dataclass(frozen=True)
class JobTable:
    """Types of jobs on machines."""

    label: str  # Name for people
    types: Workload  # A job of each type
    # Times of submission in seconds, ascending; `None` if the file has none
    submit_s: Reals | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)  # Number left out, by the reason

    @property
    def placements(self) -> list[str]:
        """Placements for which these types have the data."""
        known = {"vector": self.types.vector is not None, "seconds": self.types.predicted_s is not None}
        return [name for name in PLACEMENTS if known.get(NEEDS.get(name, ""), True)]


def read_job_table(
    path: Path,
    machines: Sequence[Machine],
    speeds: Path | None,
    placements: Sequence[str] | None,
    *,
    predicted: bool = False,
) -> JobTable:
    """Read a table of job types (Parquet), or a trace of Gavel with its speeds."""
    uses = {f"placement {name}": NEEDS[name] for name in placements or () if name in NEEDS}
    if predicted:
        uses["--estimates predicted"] = "seconds"
    if speeds is not None:
        for what in uses:
            raise InputError(
                f"{path}: expected predicted times for {what}, found a trace of Gavel, without any"
            )
        return _of_gavel(path, speeds, machines)
    types = read_job_types(path)
    submit_s = types.submit_s
    workload = type_workload(types, machines, frozenset(uses.values()))
    if submit_s is not None:
        order = np.argsort(submit_s, kind="stable")
        submit_s = submit_s[order]
        workload = drawn(workload, order, np.zeros(len(order)))
    return JobTable(path.stem, workload, submit_s)


def _of_gavel(path: Path, speeds: Path, machines: Sequence[Machine]) -> JobTable:
    trace = read_gavel(path, speeds)
    columns = []
    for machine in machines:
        kind = machine.device or machine.name
        if kind not in trace.kinds:
            raise InputError(
                f"machine {machine.name}: device: expected one of {', '.join(trace.kinds)}, found {kind!r}"
            )
        columns.append(trace.kinds.index(kind))
    run_s = trace.jobs.run_s[:, columns]
    jobs = replace(trace.jobs, run_s=run_s, estimate_s=run_s)
    types = Workload(jobs, tuple(machines), uses_gpu=np.ones(len(jobs), dtype=np.bool_))
    return JobTable(path.stem, types, jobs.submit_s, trace.left_out)
