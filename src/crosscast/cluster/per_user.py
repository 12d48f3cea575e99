"""Metrics of a schedule, user by user."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.cluster.group_means import group_means
from crosscast.cluster.metrics import bounded_slowdown
from crosscast.cluster.schedule import Schedule

__all__ = ["UserMetrics", "per_user"]


@dataclass(frozen=True)
class UserMetrics:
    """Metrics of a user's jobs.

    Parameters
    ----------
    user
        The user's name, as the trace has it.
    jobs
        How many jobs ran.
    mean_wait_s, average_bounded_slowdown
        As in `crosscast.cluster.metrics.Metrics`, of these jobs.
    """

    user: str
    jobs: int
    mean_wait_s: float
    average_bounded_slowdown: float


def per_user(schedule: Schedule) -> list[UserMetrics]:
    """Metrics of each user with a job, in the order of the trace; empty if nothing is known of users."""
    user, users = schedule.jobs.user, schedule.jobs.users
    if user is None:
        return []
    jobs, waits = group_means(user, schedule.wait_s, len(users))
    _, slowdowns = group_means(user, bounded_slowdown(schedule.wait_s, schedule.ran_s), len(users))
    return [
        UserMetrics(name, jobs[place], wait_s, slowdown)
        for place, (name, wait_s, slowdown) in enumerate(zip(users, waits, slowdowns, strict=True))
        if wait_s is not None and slowdown is not None
    ]
