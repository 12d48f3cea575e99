"""Policies on the same jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crosscast.cluster.experiment import timed
from crosscast.cluster.jobs import Jobs, Machine, Placement, Policy, Schedule
from crosscast.cluster.metrics import MachineMetrics, Metrics, UserMetrics, metrics_of, per_machine, per_user


@dataclass(frozen=True)
class PolicyResult:
    """What a policy makes of jobs."""

    policy: Policy  # The policy
    metrics: Metrics  # Metrics of the schedule, as a whole, by machine and by user
    machines: Sequence[MachineMetrics]
    users: Sequence[UserMetrics]
    simulation_s: float  # How long the simulation took, in seconds

    @property
    def label(self) -> str:
        """Name of the policy for people."""
        return policy_label(self.policy)

    def to_dict(self, *, users: bool = False) -> dict[str, Any]:
        """Everything, for JSON; users only if they are asked for."""
        found = {
            "policy": "fcfs" if self.policy.backfill is None else "easy",
            "queue": self.policy.queue,
            "backfill": self.policy.backfill,
            **asdict(self.metrics),
            "simulation_s": self.simulation_s,
            "jobs_per_s": self.metrics.jobs / self.simulation_s,
            "machines": [asdict(machine) for machine in self.machines],
        }
        return found | {"users": [asdict(user) for user in self.users]} if users else found


def policy_label(policy: Policy) -> str:
    """Name of a policy for people: what is not first come, first served is said.

    >>> policy_label(Policy()), policy_label(Policy("widest", "shortest"))
    ('easy', 'easy, queue widest, backfill shortest')
    """
    parts = ["fcfs" if policy.backfill is None else "easy"]
    if policy.queue != "fcfs":
        parts.append(f"queue {policy.queue}")
    if policy.backfill not in (None, "fcfs"):
        parts.append(f"backfill {policy.backfill}")
    return ", ".join(parts)


def compare_policies(
    jobs: Jobs,
    machines: Sequence[Machine],
    policies: Sequence[Policy],
    placement: Placement | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    keep: Callable[[Policy, Schedule], None] | None = None,
) -> list[PolicyResult]:
    """Simulate each policy on the same jobs."""
    results = []
    for policy in policies:
        schedule, spent_s = timed(jobs, machines, policy, placement, progress)
        results.append(
            PolicyResult(policy, metrics_of(schedule), per_machine(schedule), per_user(schedule), spent_s)
        )
        if keep is not None:
            keep(policy, schedule)
    return results
