"""Rules beside the policy: priorities, partitions, preemption, predicted times, and sharing of processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster import Jobs, Machine, first_row
from crosscast.cluster.site import (
    LIMIT,
    MOST_TOGETHER,
    Partition,
    SharingPolicy,
    SiteRules,
    number_in,
    rows_of_csv,
)
from crosscast.data.files import number_of_text
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


class KindChoices(NamedTuple):
    """Configurations in which jobs of ``c`` kinds start, as far as is known; arrays of shape ``(c,)``."""

    option: Integers  # Index of each kind's configuration
    slowdown: Reals  # Expected slowdown
    extra_w: Reals  # Expected power of a processor above that when it is idle, in watts


@dataclass(frozen=True)
class Learning:
    """Configurations of ``c`` kinds of jobs, up to ``k`` each, that are chosen by what ended jobs measured.

    Jobs have the times of a slowdown of 1. True values are of shape ``(c, k)``, padded with NaN.
    """

    kind: Integers  # Kind of each of `n` jobs; those of a kind are bound to the same machine
    slowdown: Reals
    extra_w: Reals  # Power of a processor above that when it is idle, in watts
    # Chooses by two masks `(c, k)`, of the configurations in which jobs have ended, and of others in which
    # jobs run; asked before the first job, and whenever the masks have changed
    choose: Callable[[Flags, Flags], KindChoices]
    measured: bool = False  # Whether running jobs count with their measured power


@dataclass(frozen=True)
class Rules:
    """Rules for ``n`` jobs, as arrays of shape ``(n,)``; ``None`` where there is no rule."""

    priority: Priority | None = None  # For the order `multifactor`
    rank: Integers | None = None  # Jobs of a higher rank are considered first
    group: Integers | None = None  # Group of each job, −1 for none
    most: Integers | None = None  # Limit of running jobs of each group, of shape `(g,)`
    partition: Integers | None = None  # Partition of each job, −1 for none
    partition_procs: Integers | None = None  # Processors of each partition, of shape `(p,)`
    kind: Integers | None = None  # Kind of each job
    preempts: Flags | None = None  # Whether kind (row) may preempt kind (column), of shape `(k, k)`
    # Forecast times in seconds, NaN where there is none; scheduling uses predicted times then
    forecast_s: Reals | None = None
    measured_w: Reals | None = None  # Measured power of jobs from their start on, in watts
    release_s: Reals | None = None  # Time at which each joins the queue, in seconds, from its submission on
    learning: Learning | None = None  # Configurations by what ended jobs have measured

    def __post_init__(self) -> None:
        if self.preempts is not None:
            heights(self.preempts)

    def check(self, jobs: int) -> None:
        """Raise unless all arrays are for this number of jobs."""
        arrays = {name: getattr(self, name) for name in _OF_JOBS}
        arrays["learning"] = None if self.learning is None else self.learning.kind
        arrays["priority"] = None if self.priority is None else self.priority.fixed
        for name, values in arrays.items():
            if values is not None and values.shape != (jobs,):
                expected = f"{jobs} numbers"
                raise InputError.of(where="rules", field=name, expected=expected, found=f"{values.shape}")

    def with_measured(self, power_w: Reals | None) -> Rules:
        """Return the rules by which running jobs count with their measured power, in watts."""
        learning = None if self.learning is None else replace(self.learning, measured=True)
        return replace(self, measured_w=power_w, learning=learning)

    def taken(self, order: Integers) -> Rules:
        """Return the rules for the jobs in another order, without release times."""
        priority, learning = self.priority, self.learning
        if priority is not None:
            priority = replace(priority, fixed=priority.fixed[order], account=priority.account[order])
        if learning is not None:
            learning = replace(learning, kind=learning.kind[order])
        values = {name: getattr(self, name) for name in _OF_JOBS}
        reordered = {name: None if each is None else each[order] for name, each in values.items()}
        return replace(self, **(reordered | {"priority": priority, "release_s": None, "learning": learning}))


_OF_JOBS = ("rank", "group", "partition", "kind", "forecast_s", "measured_w", "release_s")


NO_RULES = Rules()
"""No rules."""


def heights(preempts: Flags) -> Integers:
    """Return the length of the longest chain of preemptions from each kind, by which kinds are ranked.

    >>> heights(np.array([[False, True, True], [False, False, True], [False, False, False]])).tolist()
    [2, 1, 0]
    """
    levels = np.zeros(len(preempts), np.int64)
    for _ in range(len(preempts) + 1):
        next_levels = np.where(preempts, levels + 1, 0).max(axis=1, initial=0)
        if (next_levels == levels).all():
            return levels
        levels = next_levels
    raise InputError.of(
        field="preemption", expected="nobody to be stopped by who it may stop", found="a circle"
    )


@dataclass(frozen=True)
class JobNames:
    """A name for each of ``n`` jobs, such as its account."""

    index: Integers  # Index of each job's name in `names`, of shape `(n,)`; −1 where unknown
    names: tuple[str, ...]

    def indices(self, known: Sequence[str]) -> Integers:
        """Return the index of each job's name among known ones, −1 for others."""
        to_known = np.array([known.index(name) if name in known else -1 for name in self.names] + [-1])
        indices: Integers = to_known[self.index]
        return indices

    def among(self, known: Sequence[str], number: Integers, what: str, where: str) -> Integers:
        """Return the index of each job's name among known ones; raise for another name."""
        indices = self.indices(known)
        if (row := first_row(indices < 0)) is not None:
            name = "none" if self.index[row] < 0 else repr(self.names[self.index[row]])
            raise InputError.of(
                where=f"job {number[row]}",
                field=what,
                expected=f"one {where} ({', '.join(known)})",
                found=f"{name}",
            )
        return indices


def rules_of(
    site: SiteRules,
    jobs: Jobs,
    machines: Sequence[Machine],
    accounts: JobNames,
    qualities: JobNames,
    partitions: JobNames,
) -> Rules:
    """Return the rules of a site for jobs with these names, without predicted times.

    Raises
    ------
    InputError
        If a job's account has no shares, its quality of service or partition is not among those of the site,
        or it is wider or longer than its partition allows.
    """
    number, fixed, weights = jobs.number, np.zeros(len(jobs)), site.weights
    rules = Rules()
    tier = np.zeros(len(jobs), np.int64)
    if site.partitions:
        partition = _partition_of(site.partitions, number, partitions)
        _check_partitions(site.partitions, jobs, partition)
        rules = _partitioned(site.partitions, jobs, machines, partition)
        tier = np.array([one.tier for one in site.partitions])[partition]
        if weights is not None:
            fixed += weights.partition * _relative([each.priority for each in site.partitions])[partition]
    by_quality = site.preemption == "qos" or (weights is not None and weights.qos > 0)
    quality = np.zeros(len(jobs), np.int64)
    if by_quality:
        known = [each.name for each in site.qualities]
        quality = qualities.among(known, number, "quality of service", "under [[qos]]")
    if weights is not None:
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
        if site.preemption == "qos":
            kind, kinds = quality, [each.name for each in site.qualities]
            preempts = np.array([[name in each.preempts for name in kinds] for each in site.qualities])
        else:
            kind, tiers = rank, np.arange(int(rank.max(initial=0)) + 1)
            preempts = tiers[:, None] > tiers
        rules = replace(rules, kind=kind, preempts=preempts)
        # Jobs that may preempt are considered first, then those of higher tiers.
        rank = heights(preempts)[kind] * (int(rank.max(initial=0)) + 1) + rank
    return replace(rules, rank=rank) if rank.any() else rules


def _relative(priorities: Sequence[float]) -> Reals:
    """Divide by the highest one, as Slurm does."""
    most = max(priorities)
    return np.array(priorities, np.float64) / (most if most > 0 else 1.0)


def _check_partitions(partitions: Sequence[Partition], jobs: Jobs, partition: Integers) -> None:
    """Raise for jobs that are wider or longer than their partitions allow."""
    wide = np.array([np.inf if each.procs is None else each.procs for each in partitions])[partition]
    long_s = np.array([each.time_limit_s for each in partitions])[partition]
    estimate_s = jobs.estimate_s.min(axis=1)
    for exceeds, most, values, what, unit in (
        (jobs.procs > wide, wide, jobs.procs, "processors", ""),
        (estimate_s > long_s, long_s, estimate_s, "time", " s"),
    ):
        if (row := first_row(exceeds)) is not None:
            raise InputError.of(
                where=f"job {jobs.number[row]}",
                field=what,
                expected=f"at most the {most[row]:g}{unit} of partition {partitions[partition[row]].name}",
                found=f"{values[row]:g}{unit} (so {np.count_nonzero(exceeds):,} of {len(jobs):,} jobs)",
            )


def _partitioned(
    partitions: Sequence[Partition], jobs: Jobs, machines: Sequence[Machine], partition: Integers
) -> Rules:
    """Return the processors of partitions, and the limits of running jobs of a user in each."""
    rules = Rules()
    limited = np.array([each.procs is not None for each in partitions])
    if limited.any():
        widest = max(machine.procs for machine in machines)
        procs = np.array([each.procs or widest for each in partitions])
        rules = replace(rules, partition=np.where(limited[partition], partition, -1), partition_procs=procs)
    limited = np.array([each.most_jobs is not None for each in partitions])
    if limited.any():
        if jobs.user is None:
            expected = "a trace with users"
            raise InputError.of(where="partition", field="most_jobs", expected=expected, found="none")
        users = len(jobs.users)
        group = np.where(limited[partition], partition * users + jobs.user, -1)
        most = np.repeat([each.most_jobs or 1 for each in partitions], users)
        rules = replace(rules, group=group, most=most)
    return rules


def _partition_of(partitions: Sequence[Partition], number: Integers, names: JobNames) -> Integers:
    """Return the index of each job's partition."""
    return names.among([each.name for each in partitions], number, "partition", "under [[partition]]")


def machines_of_partitions(
    partitions: Sequence[Partition], machines: Sequence[Machine], number: Integers, names: JobNames
) -> Integers:
    """Return the index of each job's machine, by its partition."""
    by_name = {machine.name: index for index, machine in enumerate(machines)}
    machine = [0 if each.machine is None else by_name[each.machine] for each in partitions]
    return np.array(machine, np.int64)[_partition_of(partitions, number, names)]


def read_forecasts(path: str | Path, number: Integers) -> Reals:
    """Read forecast times of jobs in seconds, NaN for jobs without one.

    A CSV file with columns `job`, its number in the trace, and `predicted_s`; it need not have all jobs, and
    may have others.
    """
    _, rows = rows_of_csv(path, "forecasts", ("job", "predicted_s"))
    forecasts: dict[int, float] = {}
    for where, cells in rows:
        seconds = number_of_text(cells["predicted_s"])
        if not (seconds >= 0 and np.isfinite(seconds)):
            expected, text = "seconds of at least 0", repr(cells["predicted_s"])
            raise InputError.of(where=where, field="predicted_s", expected=expected, found=text)
        if not cells["job"].isdecimal():
            raise InputError.of(where=where, field="job", expected="a number", found=repr(cells["job"]))
        if int(cells["job"]) in forecasts:
            raise InputError.of(where=where, field="job", expected="each once", found=f"{cells['job']} again")
        forecasts[int(cells["job"])] = seconds
    return np.array([forecasts.get(job, np.nan) for job in number.tolist()], np.float64)


def kinds_of_jobs(kinds: Sequence[str], names: JobNames, seed: int) -> tuple[Integers, int]:
    """Return the kind of each job, by name or else at random, and the number of random ones."""
    known = names.indices(kinds)
    drawn = np.random.default_rng(seed).integers(len(kinds), size=len(known))
    return np.where(known < 0, drawn, known), int(np.count_nonzero(known < 0))


MOST_SLOWDOWN = 1e6
"""Largest slowdown in files; with more, times would have hundreds of digits."""


@dataclass(frozen=True)
class Slowdowns:
    """Slowdown of each of ``c`` kinds of jobs (row) beside each kind (column).

    Of shape ``(c, c)``; infinite where they do not fit on the same processors.
    """

    kinds: tuple[str, ...]
    true: Reals
    predicted: Reals | None = None


@dataclass(frozen=True)
class Sharing:
    """Sharing of processors by ``n`` jobs, and their slowdowns.

    The slowdown beside several others is the product of the pairwise slowdowns.
    """

    kind: Integers  # Kind of each job, of shape `(n,)`
    true: Reals  # As in `Slowdowns`
    believed: Reals  # Slowdowns that the scheduler expects
    most: int = 2  # Most jobs on the same processors
    limit: float = LIMIT  # Limit on the expected slowdown, which jobs are promised
    # Least gain of a job in the sum of the speeds relative to running alone; minus infinity for any
    least_gain: float = 0.0
    by_gain: bool = True  # Whether a job joins those with the highest gain, or the first

    def __post_init__(self) -> None:
        # The simulator has room for so many on each seat.
        if not 2 <= self.most <= MOST_TOGETHER:
            expected = f"2 to {MOST_TOGETHER} jobs"
            raise InputError.of(where="sharing", field="most", expected=expected, found=self.most)


def sharing_for(
    policy: SharingPolicy, slowdowns: Slowdowns, kind: Integers, limit: float, least_gain: float, most: int
) -> Sharing | None:
    """Return how jobs of these kinds share under a policy; ``None`` if they do not."""
    if policy == "never":
        return None
    if policy in ("threshold", "gain") and slowdowns.predicted is None:
        raise InputError.of(
            field="sharing", problem=f"{policy}: expected a table with predicted slowdowns, found none"
        )
    believed = slowdowns.predicted if policy in ("threshold", "gain") else slowdowns.true
    assert believed is not None
    # Whether two kinds fit together follows from their memory, and is known.
    believed = np.where(np.isfinite(slowdowns.true), believed, np.inf)
    if policy == "always":
        any_slowdown = float(np.finfo(np.float64).max)
        return Sharing(kind, slowdowns.true, believed, most, any_slowdown, -np.inf, by_gain=False)
    least = 0.0 if policy == "threshold" else least_gain
    return Sharing(kind, slowdowns.true, believed, most, limit, least, by_gain=policy != "threshold")


_COLUMNS = ("kind", "beside", "slowdown")
_PREDICTED = "predicted_slowdown"


def read_slowdowns(path: str | Path) -> Slowdowns:
    """Read slowdowns of pairs: a CSV file with a row for each ordered pair of kinds, equal ones included.

    Columns are `kind`, `beside`, `slowdown` (empty where they do not fit), and maybe `predicted_slowdown`.
    """
    header, rows = rows_of_csv(path, "slowdowns", _COLUMNS, (_PREDICTED,))
    names = ["slowdown", *([_PREDICTED] if _PREDICTED in header else [])]
    kinds = list(dict.fromkeys(cells["kind"] for _, cells in rows))
    index = {kind: number for number, kind in enumerate(kinds)}
    tables = np.full((len(names), len(kinds), len(kinds)), np.nan)
    for where, cells in rows:
        if cells["beside"] not in index:
            expected = "a kind that has rows of its own"
            raise InputError.of(where=where, field="beside", expected=expected, found=repr(cells["beside"]))
        pair = index[cells["kind"]], index[cells["beside"]]
        if not np.isnan(tables[0][pair]):
            expected, repeated = "each pair once", f"{cells['kind']} beside {cells['beside']} again"
            raise InputError.of(where=where, expected=expected, found=repeated)
        for table, name in zip(tables, names, strict=True):
            expected = "a number above 0{most}, or nothing if they do not fit"
            table[pair] = number_in(cells, name, where, expected, most=MOST_SLOWDOWN, empty=np.inf)
    missing = np.argwhere(np.isnan(tables[0]))
    if len(missing):
        one, other = (kinds[number] for number in missing[0])
        raise InputError.of(where=path, expected=f"a row for {one} beside {other}", found="none")
    return Slowdowns(tuple(kinds), tables[0], tables[1] if len(tables) > 1 else None)
