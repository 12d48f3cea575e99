"""What placements know of the jobs that they place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crosscast.cluster.jobs import Jobs, Reals
from crosscast.cluster.machines import Machine, check_machines
from crosscast.errors import InputError

__all__ = ["Flags", "Workload"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Workload:
    """``n`` jobs, and the ``m`` machines that they may go to.

    Parameters
    ----------
    jobs
        The jobs.
    machines
        The machines.
    uses_gpu
        Whether users know each job as one for GPUs, of shape ``(n,)``.
    vector
        Predicted relative vectors: times on each machine over that on the slowest, of shape ``(n, m)``;
        ``None`` if there is no prediction.
    predicted_s
        The same in seconds, by each job's time on the one machine where it was run, of shape ``(n, m)``;
        ``None`` if there is no prediction.

    Raises
    ------
    InputError
        If the arrays do not fit together, or a job is wider than every machine on which it runs.
    """

    jobs: Jobs
    machines: Sequence[Machine]
    uses_gpu: Flags
    vector: Reals | None = None
    predicted_s: Reals | None = None

    def __post_init__(self) -> None:
        """Check the arrays."""
        check_machines(self.machines)
        shape = (len(self.jobs), len(self.machines))
        if self.jobs.run_s.shape[1] not in (1, shape[1]):
            raise InputError(f"workload: run_s: expected shape {shape}, found {self.jobs.run_s.shape}")
        for name in ("vector", "predicted_s"):
            values: Reals | None = getattr(self, name)
            if values is not None and values.shape != shape:
                raise InputError(f"workload: {name}: expected shape {shape}, found {values.shape}")
        if self.uses_gpu.shape != shape[:1]:
            raise InputError(f"workload: uses_gpu: expected {shape[0]}, found {self.uses_gpu.shape}")
        nowhere = ~self.runs_on.any(axis=1)
        if nowhere.any():
            row = int(np.argmax(nowhere))
            raise InputError(
                f"jobs: job {self.jobs.number[row]}: expected a machine on which it runs that has its "
                f"{self.jobs.procs[row]} processors, found none of "
                f"{', '.join(f'{machine.name} ({machine.procs})' for machine in self.machines)}"
            )

    def __len__(self) -> int:
        """Number of jobs."""
        return len(self.jobs)

    @cached_property
    def runs_on(self) -> Flags:
        """Whether each job fits on each machine and runs there, of shape ``(n, m)``."""
        procs = np.array([machine.procs for machine in self.machines])
        fits: Flags = self.jobs.procs[:, None] <= procs
        return fits & np.isfinite(self.jobs.run_s)
