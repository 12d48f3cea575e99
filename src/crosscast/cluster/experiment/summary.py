"""Placements beside each other: means over seeds, and differences in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crosscast.cluster.experiment.mean_interval import Mean, mean_of
from crosscast.cluster.experiment.outcome import Outcome
from crosscast.cluster.per_machine import MachineMetrics

__all__ = ["REFERENCES", "PlacementSummary", "summaries"]

REFERENCES = ("user", "oracle")
"""Placements that others are compared with, where they are there."""


@dataclass(frozen=True)
class PlacementSummary:
    """A placement over all seeds.

    Parameters
    ----------
    placement
        Name of the placement.
    jobs
        How many jobs there are for each seed.
    makespan_s, average_bounded_slowdown
        Means with intervals.
    mean_wait_s, median_wait_s, wait_p95_s, utilisation, on_fastest, work_over_least, simulation_s
        Means, as in `Outcome` and its metrics; ``None`` if a seed has none.
    machines
        Means by machine; numbers of jobs are rounded.
    against
        For each of `REFERENCES` that is there: its makespan's ratio to that one's, less 1, seed by seed.
    outcomes
        What each seed came to.
    """

    placement: str
    jobs: int
    makespan_s: Mean
    average_bounded_slowdown: Mean
    mean_wait_s: float
    median_wait_s: float
    wait_p95_s: float
    utilisation: float | None
    on_fastest: float
    work_over_least: float | None
    simulation_s: float
    machines: Sequence[MachineMetrics]
    against: dict[str, Mean]
    outcomes: Sequence[Outcome]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON: means, their intervals (null with one seed), and what each seed came to."""
        names = ("mean_wait_s", "median_wait_s", "wait_p95_s", "utilisation", "on_fastest", "work_over_least")
        return {
            "placement": self.placement,
            "jobs": self.jobs,
            "makespan_s": self.makespan_s.value,
            "makespan_interval": self.makespan_s.interval,
            "average_bounded_slowdown": self.average_bounded_slowdown.value,
            "average_bounded_slowdown_interval": self.average_bounded_slowdown.interval,
            **{name: getattr(self, name) for name in names},
            "simulation_s": self.simulation_s,
            "jobs_per_s": self.jobs / self.simulation_s,
            "machines": [asdict(machine) for machine in self.machines],
            "makespan_against": {
                name: {"value": mean.value, "interval": mean.interval} for name, mean in self.against.items()
            },
            "runs": [
                {"seed": outcome.seed, **asdict(outcome.metrics), "simulation_s": outcome.simulation_s}
                for outcome in self.outcomes
            ],
        }


def summaries(outcomes: Sequence[Outcome]) -> list[PlacementSummary]:
    """Summarize each placement, in the order in which they are first there.

    Parameters
    ----------
    outcomes
        Placements with the same seeds each.
    """
    by_name: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_name.setdefault(outcome.placement, []).append(outcome)
    return [_summary(name, own, by_name) for name, own in by_name.items()]


def _summary(name: str, own: list[Outcome], by_name: dict[str, list[Outcome]]) -> PlacementSummary:
    metrics = [outcome.metrics for outcome in own]
    return PlacementSummary(
        placement=name,
        jobs=metrics[0].jobs,
        makespan_s=mean_of([each.makespan_s for each in metrics]),
        average_bounded_slowdown=mean_of([each.average_bounded_slowdown for each in metrics]),
        mean_wait_s=float(np.mean([each.mean_wait_s for each in metrics])),
        median_wait_s=float(np.mean([each.median_wait_s for each in metrics])),
        wait_p95_s=float(np.mean([each.wait_p95_s for each in metrics])),
        utilisation=_mean([each.utilisation for each in metrics]),
        on_fastest=float(np.mean([each.on_fastest for each in own])),
        work_over_least=_mean([each.work_over_least for each in own]),
        simulation_s=float(np.mean([each.simulation_s for each in own])),
        machines=[
            _machine([outcome.machines[place] for outcome in own]) for place in range(len(own[0].machines))
        ],
        against={
            reference: mean_of(
                [
                    one.metrics.makespan_s / other.metrics.makespan_s - 1
                    for one, other in zip(own, by_name[reference], strict=True)
                ]
            )
            for reference in REFERENCES
            if reference in by_name and reference != name and all(_spans(by_name[reference]))
        },
        outcomes=own,
    )


def _spans(outcomes: list[Outcome]) -> list[bool]:
    return [outcome.metrics.makespan_s > 0 for outcome in outcomes]


def _machine(own: list[MachineMetrics]) -> MachineMetrics:
    return MachineMetrics(
        machine=own[0].machine,
        procs=own[0].procs,
        jobs=round(np.mean([each.jobs for each in own])),
        utilisation=_mean([each.utilisation for each in own]),
        mean_wait_s=_mean([each.mean_wait_s for each in own]),
        average_bounded_slowdown=_mean([each.average_bounded_slowdown for each in own]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None
