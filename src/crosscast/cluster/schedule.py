"""What a simulation found: when and where each job ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosscast.cluster.jobs import Integers, Jobs, Reals
from crosscast.cluster.machines import Machine

__all__ = ["Schedule"]


@dataclass(frozen=True)
class Schedule:
    """A schedule of ``n`` jobs.

    Parameters
    ----------
    jobs, machines
        What was scheduled, and where.
    machine
        Place of the machine that each job ran on, of shape ``(n,)``.
    start_s, end_s
        When each started and ended, in seconds, of shape ``(n,)``.
    reserved_s
        When each was to start at the latest, as of the moment when it first waited at the head of the
        queue; not a number for jobs that never did.
    """

    jobs: Jobs
    machines: Sequence[Machine]
    machine: Integers
    start_s: Reals
    end_s: Reals
    reserved_s: Reals

    @property
    def wait_s(self) -> Reals:
        """How long each job waited, in seconds."""
        return self.start_s - self.jobs.submit_s

    @property
    def ran_s(self) -> Reals:
        """How long each job ran, in seconds."""
        return self.end_s - self.start_s
