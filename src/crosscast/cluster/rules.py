"""What a site decides beside the policy: priorities, partitions, preemption, and predicted times."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError


@dataclass(frozen=True)
class Priority:
    """Priorities of ``n`` jobs of ``a`` accounts, as in Slurm's multifactor plugin.

    A priority is ``floor(age * min(wait / max_age, 1) + fair_share * 2 ** (-used / share) + fixed)``, in
    which `used` is the account's share of the processor-seconds of all, of which half is forgotten in each
    half-life (https://slurm.schedmd.com/priority_multifactor.html and classic_fair_share.html, with a damping
    factor of 1 and one level of accounts).
    """

    fixed: Reals  # Weighted factors of size, partition and quality of service, of shape `(n,)`
    account: Integers  # Account of each job, of shape `(n,)`
    share: Reals  # Share of each account, of shape `(a,)`; they add up to 1
    age: float = 0.0
    max_age_s: float = 7 * 86_400.0
    fair_share: float = 0.0
    half_life_s: float = 7 * 86_400.0


@dataclass(frozen=True)
class Rules:
    """What is decided of ``n`` jobs, each of shape ``(n,)``; ``None`` where nothing is."""

    priority: Priority | None = None  # For the order `multifactor`
    rank: Integers | None = None  # Jobs of a higher one are considered first
    group: Integers | None = None  # Group of each job, −1 for none, of which only so many may run
    most: Integers | None = None  # How many of each group, of shape `(g,)`
    partition: Integers | None = None  # Partition of each job, −1 for none
    partition_procs: Integers | None = None  # Processors of each partition, of shape `(p,)`
    kind: Integers | None = None  # Which jobs each may stop, by their kinds: `preempts[own, theirs]`
    preempts: Flags | None = None  # Of shape `(k, k)`
    # Forecast times in seconds, not a number where there is none: scheduling goes by predicted times
    forecast_s: Reals | None = None
    measured_w: Reals | None = None  # What jobs are measured to draw from their start on, in watts

    def __post_init__(self) -> None:
        """Check that nobody may be stopped by who it may stop, and that nothing is missing."""
        pairs = (("group", "most"), ("partition", "partition_procs"), ("kind", "preempts"))
        for one, other in pairs:
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                raise InputError(f"rules: expected both or none of {one} and {other}, found one")
        if self.preempts is not None:
            heights(self.preempts)

    def check(self, jobs: int) -> None:
        """Refuse what is not of so many jobs."""
        for name in ("rank", "group", "partition", "kind", "forecast_s", "measured_w"):
            values = getattr(self, name)
            if values is not None and values.shape != (jobs,):
                raise InputError(f"rules: {name}: expected {jobs} numbers, found {values.shape}")
        if self.priority is not None and not len(self.priority.fixed) == len(self.priority.account) == jobs:
            raise InputError(f"rules: priority: expected {jobs} jobs, found {len(self.priority.fixed)}")


NO_RULES = Rules()
"""Nothing is decided."""


def has_rules(rules: Rules) -> bool:
    """Whether anything is decided."""
    return any(getattr(rules, each.name) is not None for each in fields(rules))


def heights(preempts: Flags) -> Integers:
    """How many others stand below each kind, one stopping the next: who may stop most is considered first.

    >>> heights(np.array([[False, True, True], [False, False, True], [False, False, False]])).tolist()
    [2, 1, 0]
    """
    found = np.zeros(len(preempts), np.int64)
    for _ in range(len(preempts) + 1):
        again = np.where(preempts, found + 1, 0).max(axis=1, initial=0)
        if (again == found).all():
            return found
        found = again
    raise InputError("preemption: expected nobody to be stopped by who it may stop, found a circle")
