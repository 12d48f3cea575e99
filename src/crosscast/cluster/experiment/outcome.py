"""What came of a placement on a drawn workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.cluster.metrics import Metrics, metrics_of
from crosscast.cluster.per_machine import MachineMetrics, per_machine
from crosscast.cluster.placements.workload import Workload
from crosscast.cluster.schedule import Schedule

__all__ = ["Outcome", "outcome_of"]


@dataclass(frozen=True)
class Outcome:
    """A placement on the workload of one seed.

    Parameters
    ----------
    placement
        Name of the placement.
    seed
        The seed.
    metrics, machines
        Metrics of the schedule, as a whole and by machine.
    on_fastest
        Share of the jobs that ran on a machine where they run fastest, of those on which they run.
    work_over_least
        Processor-seconds that jobs occupied over those that they would occupy on the machines where they run
        fastest; ``None`` if these are 0.
    simulation_s
        How long the simulation took, in seconds.
    """

    placement: str
    seed: int
    metrics: Metrics
    machines: Sequence[MachineMetrics]
    on_fastest: float
    work_over_least: float | None
    simulation_s: float


def outcome_of(
    placement: str, seed: int, workload: Workload, schedule: Schedule, simulation_s: float
) -> Outcome:
    """Measure a schedule."""
    run_s = np.where(workload.runs_on, workload.jobs.run_s, np.inf)
    least_s = run_s.min(axis=1)
    own_s = run_s[np.arange(len(workload)), schedule.machine]
    procs = workload.jobs.procs
    least_work = float((procs * least_s).sum())
    return Outcome(
        placement=placement,
        seed=seed,
        metrics=metrics_of(schedule),
        machines=per_machine(schedule),
        on_fastest=float((own_s == least_s).mean()),
        work_over_least=float((procs * own_s).sum()) / least_work if least_work > 0 else None,
        simulation_s=simulation_s,
    )
