"""Speeds of the training jobs of Gavel's traces on its kinds of GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.cluster.jobs import Integers, Jobs
from crosscast.data.files import csv_rows
from crosscast.errors import InputError

_COLUMNS = ("file", "gpu", "job", "gpus", "steps_per_s")
_FILE = "simulation_throughputs"
"""Of the two that Gavel has: the other, of its physical cluster, contradicts itself."""
_APART = "_unconsolidated"
"""End of the name of GPUs that are not in one server."""
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class GavelSpeeds:
    """Speeds of types of jobs."""

    kinds: tuple[str, ...]  # Kinds of GPU
    types: frozenset[str]  # Types of jobs that have a speed with any number of GPUs
    # Steps per second on each kind, by type and number of GPUs; 0 where it does not fit
    by_job: dict[tuple[str, int], tuple[float, ...]]


def read_speeds(path: str | Path) -> GavelSpeeds:
    """Read speeds."""
    path = Path(path)
    where, header, rows = csv_rows(path, "speeds", " and ".join(_COLUMNS), _MOST_BYTES)
    for name in _COLUMNS:
        if name not in header:
            raise InputError(f"{where}: expected a column {name}, found {', '.join(header)[:200]}")
    speeds: dict[tuple[str, int], dict[str, float]] = {}
    kinds: dict[str, None] = {}
    for place, row in rows:
        kind = row["gpu"]
        if row["file"] != _FILE or kind.endswith(_APART):
            continue
        gpus, speed = _number(place, "gpus", row["gpus"]), _number(place, "steps_per_s", row["steps_per_s"])
        if gpus < 1 or not gpus.is_integer():
            raise InputError(
                f"{place}: gpus: expected a whole number of at least 1, found {row['gpus'][:60]}"
            )
        known = speeds.setdefault((row["job"], int(gpus)), {})
        if kind in known:
            raise InputError(
                f"{place}: expected each speed once, found {row['job']} on {int(gpus)} {kind} again"
            )
        known[kind] = speed
        kinds[kind] = None
    if not speeds:
        raise InputError(f"{path}: expected rows of {_FILE}, found none")
    by_job = {job: tuple(known.get(kind, 0.0) for kind in kinds) for job, known in speeds.items()}
    return GavelSpeeds(tuple(kinds), frozenset(name for name, _ in by_job), by_job)


def _number(place: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e15:
        raise InputError(f"{place}: {name}: expected a number of at least 0, found {text[:60]!r}")
    return value


_LAYOUTS = {
    7: {"total steps": 4, "arrival time": 5, "scale factor": 6},
    9: {"total steps": 4, "scale factor": 5, "arrival time": 8},
    10: {"total steps": 5, "scale factor": 6, "arrival time": 9},
}
"""Places of fields by the number of fields in a line, as Gavel's ``parse_trace`` changed over time."""
_GAVEL_MOST_BYTES = 1 << 30
_LONGEST_LINE = 64 << 10


@dataclass(frozen=True)
class GavelTrace:
    """A trace with run times on kinds of GPU."""

    # The `n` jobs; `run_s` is of shape `(n, k)`, infinite on kinds where a job does not fit. Their numbers
    # are those of their lines, and the estimates are exact
    jobs: Jobs
    kinds: tuple[str, ...]  # The `k` kinds of GPU
    types: tuple[str, ...]  # Type of each job, such as `ResNet-50 (batch size 64)`
    left_out: Mapping[str, int]  # How many lines were left out, by the reason


def read_gavel(trace: str | Path, speeds: str | Path) -> GavelTrace:
    """Read a trace of Gavel (Narayanan et al. 2020).

    A job runs for its total steps over the speed of its type on its number of GPUs (the scale factor). Jobs
    on no GPUs are left out, as Gavel does, and so are those whose speed was not measured on their number of
    GPUs, or is 0 on all kinds.
    """
    trace = Path(trace)
    known = read_speeds(speeds)
    numbers, arrivals, procs, runs, types = [], [], [], [], []
    left_out: Counter[str] = Counter()
    last = 0.0
    for line, job in _lines(trace, known, Path(speeds)):
        if job.arrival_s < last:
            raise InputError(
                f"{trace}: line {line}: arrival time: expected at least {last:.15g} s, as in a line before, "
                f"found {job.arrival_s:.15g}"
            )
        last = job.arrival_s
        steps_per_s = known.by_job.get((job.type, job.gpus))
        if job.gpus == 0:
            left_out["no GPUs"] += 1
        elif steps_per_s is None:
            left_out["no speed on so many GPUs"] += 1
        elif not any(steps_per_s):
            left_out["does not fit on any GPU"] += 1
        else:
            numbers.append(line)
            arrivals.append(job.arrival_s)
            procs.append(job.gpus)
            runs.append([job.steps / speed if speed else math.inf for speed in steps_per_s])
            types.append(job.type)
    if not numbers:
        found = ", ".join(f"{count} with {reason}" for reason, count in left_out.items())
        raise InputError(f"{trace}: expected jobs whose speed is known, found none{found and f' ({found})'}")
    run_s = np.array(runs, dtype=np.float64)
    jobs = Jobs(_integers(numbers), np.array(arrivals), _integers(procs), run_s, run_s)
    return GavelTrace(jobs, known.kinds, tuple(types), dict(left_out))


@dataclass(frozen=True)
class _Line:
    type: str
    steps: float
    gpus: int
    arrival_s: float


def _integers(values: list[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def _lines(path: Path, speeds: GavelSpeeds, speeds_path: Path) -> Iterator[tuple[int, _Line]]:
    try:
        with path.open("rb") as file:
            size = 0
            for number in range(1, 1 << 62):
                line = file.readline(_LONGEST_LINE + 1)
                size += len(line)
                if len(line) > _LONGEST_LINE or size > _GAVEL_MOST_BYTES:
                    raise InputError(f"{path}: line {number}: expected a job, found too long a line or file")
                if not line:
                    return
                if line.strip():
                    yield number, _job(f"{path}: line {number}", line, speeds, speeds_path)
    except OSError as error:
        raise InputError(f"{path}: cannot read the trace ({error.strerror})") from error


def _job(where: str, line: bytes, speeds: GavelSpeeds, speeds_path: Path) -> _Line:
    fields = line.decode("utf-8", errors="replace").rstrip("\r\n").split("\t")
    layout = _LAYOUTS.get(len(fields))
    if layout is None:
        raise InputError(f"{where}: expected 7, 9 or 10 fields with tabs between, found {len(fields)}")
    kind = fields[0].strip()
    if kind not in speeds.types:
        raise InputError(
            f"{where}: job type: expected one with a speed in {speeds_path}, found {kind[:80]!r}"
        )
    steps, gpus, arrival = (
        _gavel_number(where, name, fields[layout[name]], is_whole=name == "scale factor")
        for name in ("total steps", "scale factor", "arrival time")
    )
    return _Line(kind, steps, int(gpus), arrival)


def _gavel_number(where: str, name: str, text: str, *, is_whole: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e15 or (is_whole and not value.is_integer()):
        kind = "a whole number" if is_whole else "a number"
        raise InputError(f"{where}: {name}: expected {kind} of at least 0, found {text[:60]!r}")
    return value
