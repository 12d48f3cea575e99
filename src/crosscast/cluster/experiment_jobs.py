"""Tables of jobs with times on several machines, whichever file they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crosscast.cluster.experiment import Needs, drawn, type_workload
from crosscast.cluster.gavel import read_gavel
from crosscast.cluster.job_types import read_job_types
from crosscast.cluster.jobs import Integers, Machine, Reals
from crosscast.cluster.placements import NEEDS, PLACEMENTS, Workload
from crosscast.errors import InputError


@dataclass(frozen=True)
class JobTable:
    """Types of jobs on machines."""

    label: str  # What they are called, for people
    types: Workload  # A job of each
    # When each is submitted, ascending, in seconds, if the file says; `None` if it does not
    submit_s: Reals | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)  # How many were left out, by the reason

    @property
    def placements(self) -> list[str]:
        """Placements that these types have enough for."""
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
    if speeds is not None:
        return _of_gavel(path, speeds, machines, [*(placements or ()), *(["estimates"] if predicted else ())])
    types = read_job_types(path)
    submit_s = types.submit_s
    workload = type_workload(types, machines, _needs(placements or (), predicted))
    if submit_s is not None:
        order = np.argsort(submit_s, kind="stable")
        submit_s = submit_s[order]
        workload = _ordered(workload, order)
    return JobTable(path.stem, workload, submit_s)


def _needs(placements: Sequence[str], predicted: bool) -> Needs:
    needs = {NEEDS[name] for name in placements if name in NEEDS}
    return frozenset(needs | ({"seconds"} if predicted else set()))


def _ordered(types: Workload, order: Integers) -> Workload:
    """The types in the order in which they are submitted."""
    return drawn(types, order, np.zeros(len(order)))


def _of_gavel(path: Path, speeds: Path, machines: Sequence[Machine], asked: Sequence[str]) -> JobTable:
    for name in asked:
        if name in (*NEEDS, "estimates"):
            what = "--estimates predicted" if name == "estimates" else f"placement {name}"
            raise InputError(
                f"{path}: expected predicted times for {what}, found a trace of Gavel, without any"
            )
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
