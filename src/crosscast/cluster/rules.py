"""What a site decides beside the policy: priorities, partitions, preemption, and predicted times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster.jobs import Jobs, Machine
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
    release_s: Reals | None = None  # When each joins the queue, in seconds: not before it is submitted

    def __post_init__(self) -> None:
        """Check that nobody may be stopped by who it may stop, and that nothing is missing."""
        pairs = (("group", "most"), ("partition", "partition_procs"), ("kind", "preempts"))
        for one, other in pairs:
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                raise InputError.of(field="rules", expected=f"both or none of {one} and {other}", found="one")
        if self.preempts is not None:
            heights(self.preempts)

    def check(self, jobs: int) -> None:
        """Refuse what is not of so many jobs."""
        for name in _OF_JOBS:
            values = getattr(self, name)
            if values is not None and values.shape != (jobs,):
                raise InputError.of(
                    field="rules", problem=f"{name}: expected {jobs} numbers, found {values.shape}"
                )
        if self.priority is not None and not len(self.priority.fixed) == len(self.priority.account) == jobs:
            raise InputError.of(
                where="rules", field="priority", expected=f"{jobs} jobs", found=f"{len(self.priority.fixed)}"
            )

    def taken(self, order: Integers) -> Rules:
        """The rules of the same jobs in another order, who join the queue when they are submitted."""
        priority = self.priority
        if priority is not None:
            priority = replace(priority, fixed=priority.fixed[order], account=priority.account[order])
        return replace(
            self,
            priority=priority,
            rank=_taken(self.rank, order),
            group=_taken(self.group, order),
            partition=_taken(self.partition, order),
            kind=_taken(self.kind, order),
            forecast_s=_taken(self.forecast_s, order),
            measured_w=_taken(self.measured_w, order),
            release_s=None,
        )


_Kind = TypeVar("_Kind", bound=np.generic)


def _taken(values: npt.NDArray[_Kind] | None, order: Integers) -> npt.NDArray[_Kind] | None:
    return None if values is None else values[order]


_OF_JOBS = ("rank", "group", "partition", "kind", "forecast_s", "measured_w", "release_s")


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
    raise InputError.of(
        field="preemption", expected="nobody to be stopped by who it may stop", found="a circle"
    )


@dataclass(frozen=True)
class Weights:
    """What priorities are made of, as `[priority]` of a site's file says; see `Priority`."""

    age: float = 0.0
    size: float = 0.0
    fair_share: float = 0.0
    qos: float = 0.0
    partition: float = 0.0
    max_age_s: float = 7 * 86_400.0
    half_life_s: float = 7 * 86_400.0  # Infinite if nothing is forgotten
    favor_small: bool = False  # Whether the smallest jobs have the highest factor of size
    shares: Mapping[str, float] = field(default_factory=dict)  # Of each account


@dataclass(frozen=True)
class Quality:
    """A quality of service, such as `[[qos]]` of a site's file."""

    name: str
    priority: float = 0.0
    preempts: tuple[str, ...] = ()  # Names of those whose jobs its jobs may stop


@dataclass(frozen=True)
class Partition:
    """A partition, as `[[partition]]` of a site's file says."""

    name: str
    machine: str | None = None  # Name of its machine; may be absent if there is one
    procs: int | None = None  # Processors that its jobs have together; by default all of the machine
    time_limit_s: float = np.inf
    most_jobs: int | None = None  # How many jobs of a user may run
    tier: int = 1  # Jobs of a higher one are considered first
    priority: float = 0.0


PREEMPTIONS = ("partition", "qos")
"""Who may stop whom: jobs of a higher tier those of a lower one; by the lists of qualities of service."""


@dataclass(frozen=True)
class SiteRules:
    """Rules by names, as a site's file has them."""

    weights: Weights | None = None
    qualities: tuple[Quality, ...] = ()
    partitions: tuple[Partition, ...] = ()
    preemption: str | None = None  # One of `PREEMPTIONS`
    forecasts: Path | None = None  # File with forecast times of jobs


@dataclass(frozen=True)
class JobNames:
    """A name for each of ``n`` jobs: an account, say."""

    place: Integers  # Place of each job's in `names`, of shape `(n,)`; −1 where nothing is known
    names: tuple[str, ...]

    def among(self, known: Sequence[str], number: Integers, what: str, where: str) -> Integers:
        """Place of each job's name among known ones; one that is not there is refused."""
        places = np.array([known.index(name) if name in known else -1 for name in self.names] + [-1])
        found: Integers = places[self.place]
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            name = "none" if self.place[row] < 0 else repr(self.names[self.place[row]])
            raise InputError(
                f"job {number[row]}: {what}: expected one {where} ({', '.join(known)}), found {name}"
            )
        return found


def rules_of(
    site: SiteRules,
    jobs: Jobs,
    machines: Sequence[Machine],
    accounts: JobNames,
    qualities: JobNames,
    partitions: JobNames,
) -> Rules:
    """What a site decides of jobs with these names; predicted times are not among it.

    Raises
    ------
    InputError
        If a job's account has no shares, its quality of service or partition is not among those of the site,
        or it is wider or longer than its partition allows.
    """
    number, fixed = jobs.number, np.zeros(len(jobs))
    rules = Rules()
    tier = np.zeros(len(jobs), np.int64)
    if site.partitions:
        place = _partition_of(site.partitions, number, partitions)
        _check_partitions(site.partitions, jobs, place)
        rules = _partitioned(site.partitions, jobs, machines, place)
        tier = np.array([each.tier for each in site.partitions])[place]
        if site.weights is not None:
            fixed += site.weights.partition * _relative([each.priority for each in site.partitions])[place]
    by_quality = site.preemption == "qos" or (site.weights is not None and site.weights.qos > 0)
    quality = np.zeros(len(jobs), np.int64)
    if by_quality:
        known = [each.name for each in site.qualities]
        quality = qualities.among(known, number, "quality of service", "under [[qos]]")
    if site.weights is not None:
        weights = site.weights
        if by_quality:
            fixed += weights.qos * _relative([each.priority for each in site.qualities])[quality]
        size = jobs.procs / sum(machine.procs for machine in machines)
        fixed += weights.size * (1 - size if weights.favor_small else size)
        account, share = np.zeros(len(jobs), np.int64), np.ones(1)
        if weights.fair_share > 0:
            account = accounts.among(list(weights.shares), number, "account", "with [priority.shares]")
            share = np.array(list(weights.shares.values()))
            share = share / share.sum()
        priority = Priority(
            fixed, account, share, weights.age, weights.max_age_s, weights.fair_share, weights.half_life_s
        )
        rules = replace(rules, priority=priority)
    rank = np.unique(tier, return_inverse=True)[1].reshape(-1).astype(np.int64)
    if site.preemption is not None:
        kinds = [each.name for each in site.qualities]
        kind = quality if site.preemption == "qos" else rank
        if site.preemption == "qos":
            lists = [each.preempts for each in site.qualities]
            preempts = np.array([[kind in own for kind in kinds] for own in lists])
        else:
            tiers = np.arange(int(rank.max(initial=0)) + 1)
            preempts = tiers[:, None] > tiers
        rules = replace(rules, kind=kind, preempts=preempts)
        # Who may stop others is considered before, and then by tier.
        rank = heights(preempts)[kind] * (int(rank.max(initial=0)) + 1) + rank
    return replace(rules, rank=rank) if rank.any() else rules


def _relative(priorities: Sequence[float]) -> Reals:
    """Each over the highest one, as Slurm has it."""
    most = max(priorities)
    return np.array(priorities, np.float64) / (most if most > 0 else 1.0)


def _check_partitions(partitions: Sequence[Partition], jobs: Jobs, place: Integers) -> None:
    """Refuse jobs that are wider or longer than theirs allow."""
    wide = np.array([np.inf if each.procs is None else each.procs for each in partitions])[place]
    long_s = np.array([each.time_limit_s for each in partitions])[place]
    asked_s = jobs.estimate_s.min(axis=1)
    for wrong, most, values, what, unit in (
        (jobs.procs > wide, wide, jobs.procs, "processors", ""),
        (asked_s > long_s, long_s, asked_s, "time", " s"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"job {jobs.number[row]}: {what}: expected at most the {most[row]:g}{unit} of partition "
                f"{partitions[place[row]].name}, found {values[row]:g}{unit} "
                f"(so {np.count_nonzero(wrong):,} of {len(jobs):,} jobs)"
            )


def _partitioned(
    partitions: Sequence[Partition], jobs: Jobs, machines: Sequence[Machine], place: Integers
) -> Rules:
    """Processors of partitions, and how many jobs of a user may run in each."""
    rules = Rules()
    if any(each.procs is not None for each in partitions):
        limited = np.array([each.procs is not None for each in partitions])
        widest = max(machine.procs for machine in machines)
        procs = np.array([each.procs or widest for each in partitions])
        rules = replace(rules, partition=np.where(limited[place], place, -1), partition_procs=procs)
    if any(each.most_jobs is not None for each in partitions):
        if jobs.user is None:
            raise InputError.of(
                where="partition", field="most_jobs", expected="a trace with users", found="none"
            )
        users = len(jobs.users)
        limited = np.array([each.most_jobs is not None for each in partitions])
        group = np.where(limited[place], place * users + jobs.user, -1)
        rules = replace(
            rules, group=group, most=np.repeat([each.most_jobs or 1 for each in partitions], users)
        )
    return rules


def _partition_of(partitions: Sequence[Partition], number: Integers, names: JobNames) -> Integers:
    """Place of each job's partition."""
    return names.among([each.name for each in partitions], number, "partition", "under [[partition]]")


def machines_of_partitions(
    partitions: Sequence[Partition], machines: Sequence[Machine], number: Integers, names: JobNames
) -> Integers:
    """Machine of each job: that of its partition."""
    place = _partition_of(partitions, number, names)
    places = {machine.name: at for at, machine in enumerate(machines)}
    of_each = [0 if each.machine is None else places[each.machine] for each in partitions]
    return np.array(of_each, np.int64)[place]
