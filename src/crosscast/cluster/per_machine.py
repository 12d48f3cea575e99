"""Metrics of a schedule, machine by machine."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.cluster.group_means import group_means
from crosscast.cluster.metrics import bounded_slowdown
from crosscast.cluster.schedule import Schedule
from crosscast.cluster.utilisation import processor_seconds

__all__ = ["MachineMetrics", "per_machine"]


@dataclass(frozen=True)
class MachineMetrics:
    """Metrics of the jobs that ran on a machine; ``None`` where none did, or time is 0 s.

    Parameters
    ----------
    machine
        Its name.
    procs
        How many processors it has.
    jobs
        How many jobs ran on it.
    utilisation
        Share of its processor-seconds that jobs occupied, in the makespan of the whole schedule.
    mean_wait_s, average_bounded_slowdown
        As in `crosscast.cluster.metrics.Metrics`, of its jobs.
    """

    machine: str
    procs: int
    jobs: int
    utilisation: float | None
    mean_wait_s: float | None
    average_bounded_slowdown: float | None


def per_machine(schedule: Schedule) -> list[MachineMetrics]:
    """Metrics of each machine, in their order."""
    count = len(schedule.machines)
    jobs, waits = group_means(schedule.machine, schedule.wait_s, count)
    _, slowdowns = group_means(schedule.machine, bounded_slowdown(schedule.wait_s, schedule.ran_s), count)
    makespan_s = float(schedule.end_s.max() - schedule.jobs.submit_s[0]) if len(schedule.jobs) else 0.0
    used = processor_seconds(schedule).tolist()
    return [
        MachineMetrics(
            machine=machine.name,
            procs=machine.procs,
            jobs=jobs[place],
            utilisation=used[place] / (machine.procs * makespan_s) if makespan_s > 0 else None,
            mean_wait_s=waits[place],
            average_bounded_slowdown=slowdowns[place],
        )
        for place, machine in enumerate(schedule.machines)
    ]
