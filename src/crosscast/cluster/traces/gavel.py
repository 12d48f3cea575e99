"""Traces of Gavel: training jobs whose speed is known on several kinds of GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.cluster.jobs import Integers, Jobs
from crosscast.cluster.traces.gavel_speeds import GavelSpeeds, read_speeds
from crosscast.errors import InputError

__all__ = ["GavelTrace", "read_gavel"]

_LAYOUTS = {
    7: {"total steps": 4, "arrival time": 5, "scale factor": 6},
    9: {"total steps": 4, "scale factor": 5, "arrival time": 8},
    10: {"total steps": 5, "scale factor": 6, "arrival time": 9},
}
"""Places of fields by the number of fields in a line, as Gavel's ``parse_trace`` changed over time."""
_MOST_BYTES = 1 << 30
_LONGEST_LINE = 64 << 10


@dataclass(frozen=True)
class GavelTrace:
    """A trace with run times on kinds of GPU.

    Parameters
    ----------
    jobs
        The ``n`` jobs; ``run_s`` is of shape ``(n, k)``, infinite on kinds where a job does not fit. Their
        numbers are those of their lines, and the estimates are exact.
    kinds
        The ``k`` kinds of GPU.
    types
        Type of each job, such as ``ResNet-50 (batch size 64)``.
    left_out
        How many lines were left out, by the reason.
    """

    jobs: Jobs
    kinds: tuple[str, ...]
    types: tuple[str, ...]
    left_out: Mapping[str, int]


def read_gavel(trace: str | Path, speeds: str | Path) -> GavelTrace:
    """Read a trace of Gavel (Narayanan et al. 2020).

    A job runs for its total steps over the speed of its type on its number of GPUs (the scale factor). Jobs
    on no GPUs are left out, as Gavel does, and so are those whose speed was not measured on their number of
    GPUs, or is 0 on all kinds.

    Parameters
    ----------
    trace
        A file with a line for each job, of 7, 9 or 10 fields with tabs between. Its commands are never run.
    speeds
        A file for `crosscast.cluster.traces.gavel_speeds.read_speeds`.

    Raises
    ------
    InputError
        If a file cannot be read, or is empty; a line has another number of fields, or a field holds what it
        must not; a type of jobs has no speed at all; jobs do not arrive in the order of their lines; or no
        job is left. Names the line.
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
                if len(line) > _LONGEST_LINE or size > _MOST_BYTES:
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
        _number(where, name, fields[layout[name]], is_whole=name == "scale factor")
        for name in ("total steps", "scale factor", "arrival time")
    )
    return _Line(kind, steps, int(gpus), arrival)


def _number(where: str, name: str, text: str, *, is_whole: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e15 or (is_whole and not value.is_integer()):
        kind = "a whole number" if is_whole else "a number"
        raise InputError(f"{where}: {name}: expected {kind} of at least 0, found {text[:60]!r}")
    return value
