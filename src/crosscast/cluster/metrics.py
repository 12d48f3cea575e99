"""Metrics of schedules, of the policies that made them, and counts over time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Cuts, Jobs, Machine, Placement, Policy, Schedule, group_means
from crosscast.cluster.power import PowerMetrics, power_metrics
from crosscast.cluster.rules import NO_RULES, Rules
from crosscast.cluster.sharing import Sharing, SharingMetrics, sharing_metrics
from crosscast.cluster.simulate import timed
from crosscast.cluster.site import NO_SITE, PowerPolicy, SharingPolicy, Shift, Site
from crosscast.cluster.swf import CleanedJobs, JobTrace
from crosscast.errors import InputError
from crosscast.evaluation.executor import mapped
from crosscast.evaluation.resampling import Interval, middle


@dataclass(frozen=True)
class Steps:
    """A step function: 0 before its first time."""

    time_s: Reals  # When it changes, in seconds, ascending, of shape `(k,)`
    count: Integers  # What it is from each time until the next, of shape `(k,)`

    def at(self, time_s: Reals) -> Integers:
        """What it is at each of these times; at a change, what it is from then on."""
        place = np.searchsorted(self.time_s, time_s, side="right")
        found: Integers = np.concatenate(([0], self.count))[place]
        return found

    def mean(self, start_s: float, end_s: float) -> float:
        """Its mean between two times, the second after the first."""
        inside = self.time_s[(self.time_s > start_s) & (self.time_s < end_s)]
        borders = np.concatenate(([start_s], inside, [end_s]))
        return float((self.at(borders[:-1]) * np.diff(borders)).sum() / (end_s - start_s))


def steps_of(time_s: Reals, change: Integers) -> Steps:
    """Add changes up in the order of their times; those of one time happen together.

    >>> steps = steps_of(np.array([0.0, 4.0, 2.0, 2.0]), np.array([1, -1, 3, -3]))
    >>> steps.time_s.tolist(), steps.count.tolist()
    ([0.0, 4.0], [1, 0])
    """
    order = np.argsort(time_s)
    times = time_s[order]
    first = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    total = np.add.reduceat(change[order], first) if len(first) else change[:0]
    changed = total != 0
    return Steps(times[first][changed], np.cumsum(total)[changed])


def processor_seconds(schedule: Schedule) -> Reals:
    """Processor-seconds that jobs occupied on each machine, of shape ``(m,)``; stopped runs count."""
    work, machines = schedule.jobs.procs * schedule.ran_s, len(schedule.machines)
    used: Reals = np.bincount(schedule.machine, weights=work, minlength=machines).astype(np.float64)
    if schedule.cuts is not None:
        on = schedule.machine[schedule.cuts.job]
        used += np.bincount(on, weights=_lost(schedule, schedule.cuts), minlength=machines)
    return used


def occupied(schedule: Schedule, machine: int | None = None) -> Steps:
    """Processors that are occupied at each moment, on one machine or on all."""
    own = slice(None) if machine is None else schedule.machine == machine
    procs = schedule.jobs.procs[own]
    return steps_of(
        np.concatenate((schedule.start_s[own], schedule.end_s[own])), np.concatenate((procs, -procs))
    )


def queue_length(schedule: Schedule) -> Steps:
    """Jobs that are submitted and have not started; one that starts at once never waits."""
    submit_s = schedule.jobs.submit_s
    one = np.ones(len(submit_s), dtype=np.int64)
    return steps_of(np.concatenate((submit_s, schedule.start_s)), np.concatenate((one, -one)))


@dataclass(frozen=True)
class Rectangles:
    """``k`` rectangles of time and processors; a job has several if its processors are not side by side."""

    job: Integers  # Place of the job, of shape `(k,)`
    start_s: Reals  # From when until when, in seconds, of shape `(k,)`
    end_s: Reals
    first: Integers  # The first processor, from 0, and how many there are, of shape `(k,)`
    procs: Integers

    def __len__(self) -> int:
        """Number of rectangles."""
        return len(self.job)


def rectangles(schedule: Schedule, machine: int, from_s: float = -np.inf, to_s: float = np.inf) -> Rectangles:
    """Give each job of a machine the first processors side by side that are free, or else the first ones.

    A schedule says how many processors a job has, not which: any that are free will do.
    """
    start_s, end_s = schedule.start_s, schedule.end_s
    runs = (schedule.machine == machine) & (end_s > start_s) & (end_s > from_s) & (start_s < to_s)
    jobs = np.flatnonzero(runs)
    jobs = jobs[np.argsort(start_s[jobs], kind="stable")]
    free = np.ones(schedule.machines[machine].procs, dtype=np.bool_)
    running: list[tuple[float, int]] = []
    held: dict[int, Integers] = {}
    found: list[tuple[int, int, int]] = []
    for job, start, end, procs in zip(
        jobs.tolist(),
        start_s[jobs].tolist(),
        end_s[jobs].tolist(),
        schedule.jobs.procs[jobs].tolist(),
        strict=True,
    ):
        while running and running[0][0] <= start:
            free[held.pop(heapq.heappop(running)[1])] = True
        taken = _take(free, procs)
        free[taken] = False
        held[job] = taken
        heapq.heappush(running, (end, job))
        found += [(job, first, count) for first, count in _pieces(taken)]
    columns = np.array(found, dtype=np.int64).reshape(-1, 3)
    place = columns[:, 0]
    return Rectangles(place, start_s[place], end_s[place], columns[:, 1], columns[:, 2])


def _take(free: npt.NDArray[np.bool_], procs: int) -> Integers:
    """The first free processors side by side, else the first free ones."""
    places = np.flatnonzero(free)
    # Those that are followed by as many free ones as are needed.
    fits = places[procs - 1 :] - places[: len(places) - procs + 1] == procs - 1
    at = int(np.argmax(fits)) if fits.any() else 0
    return places[at : at + procs]


def _pieces(places: Integers) -> list[tuple[int, int]]:
    """First and number of those side by side."""
    cuts = np.flatnonzero(np.diff(places) > 1) + 1
    firsts = [0, *cuts.tolist()]
    ends = [*cuts.tolist(), len(places)]
    return [(int(places[first]), end - first) for first, end in zip(firsts, ends, strict=True)]


TAU_S = 10.0
"""Shorter jobs count as this long in slowdowns, in seconds (section VII-A of Nichols et al. 2024)."""


@dataclass(frozen=True)
class ScheduleMetrics:
    """Metrics of a schedule; less is better in all but `utilisation`."""

    jobs: int  # How many jobs ran
    makespan_s: float  # From the first submission to the last end, in seconds
    average_bounded_slowdown: float  # Mean of `bounded_slowdown` over the jobs
    mean_wait_s: float  # Mean, median and 95th percentile of waits, in seconds
    median_wait_s: float
    wait_p95_s: float
    # Processor-seconds that jobs occupied over those that the machines had in the makespan; `None` if that is
    # 0 s
    utilisation: float | None


def bounded_slowdown(wait_s: Reals, ran_s: Reals) -> Reals:
    """How many times longer jobs took than without a wait, very short ones not counted as such.

    The formula of section VII-A of Nichols et al. 2024: ``max((wait + run) / max(run, TAU_S), 1)``.

    >>> bounded_slowdown(np.array([0.0, 9.0, 30.0]), np.array([2.0, 11.0, 30.0])).tolist()
    [1.0, 1.8181818181818181, 2.0]
    """
    slowdown: Reals = np.maximum((wait_s + ran_s) / np.maximum(ran_s, TAU_S), 1.0)
    return slowdown


def metrics_of(schedule: Schedule) -> ScheduleMetrics:
    """Metrics over all jobs and machines.

    Parameters
    ----------
    schedule
        What `crosscast.simulate` gives.

    Returns
    -------
    Metrics
        Makespan and waits in seconds, slowdowns as ratios, and the share of processors in use.

    Raises
    ------
    InputError
        If there is no job, or times are too large to be added up.
    """
    if not len(schedule.jobs):
        raise InputError.of(field="schedule", expected="at least one job", found="none")
    wait_s = schedule.wait_s
    makespan_s = float(schedule.end_s.max() - schedule.jobs.submit_s[0])
    capacity = makespan_s * sum(machine.procs for machine in schedule.machines)
    work = float(processor_seconds(schedule).sum())
    if not np.isfinite(capacity + work + float(wait_s.sum())):
        raise InputError.of(
            field="schedule", expected="times that can be added up", found="ones that are too large"
        )
    median_s, p95_s = np.quantile(wait_s, (0.5, 0.95)).tolist()
    return ScheduleMetrics(
        jobs=len(schedule.jobs),
        makespan_s=makespan_s,
        average_bounded_slowdown=float(bounded_slowdown(wait_s, schedule.ran_s).mean()),
        mean_wait_s=float(wait_s.mean()),
        median_wait_s=median_s,
        wait_p95_s=p95_s,
        utilisation=work / capacity if capacity > 0 else None,
    )


@dataclass(frozen=True)
class MachineMetrics:
    """Metrics of the jobs that ran on a machine; ``None`` where none did, or time is 0 s."""

    machine: str  # Its name
    procs: int  # How many processors it has
    jobs: int  # How many jobs ran on it
    # Share of its processor-seconds that jobs occupied, in the makespan of the whole schedule
    utilisation: float | None
    mean_wait_s: float | None  # As in `crosscast.cluster.metrics.ScheduleMetrics`, of its jobs
    average_bounded_slowdown: float | None


def per_machine(schedule: Schedule) -> list[MachineMetrics]:
    """Metrics of each machine, in their order."""
    jobs, waits, slowdowns = _by_group(schedule, schedule.machine, len(schedule.machines))
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


def _by_group(
    schedule: Schedule, group: Integers, groups: int
) -> tuple[list[int], list[float | None], list[float | None]]:
    """Number, mean wait and average bounded slowdown of the jobs of each group."""
    jobs, waits = group_means(group, schedule.wait_s, groups)
    return jobs, waits, group_means(group, bounded_slowdown(schedule.wait_s, schedule.ran_s), groups)[1]


@dataclass(frozen=True)
class UserMetrics:
    """Metrics of a user's jobs."""

    user: str  # The user's name, as the trace has it
    jobs: int  # How many jobs ran
    mean_wait_s: float  # As in `crosscast.cluster.metrics.ScheduleMetrics`, of these jobs
    average_bounded_slowdown: float


def per_user(schedule: Schedule) -> list[UserMetrics]:
    """Metrics of each user with a job, in the order of the trace; empty if nothing is known of users."""
    user, users = schedule.jobs.user, schedule.jobs.users
    if user is None:
        return []
    jobs, waits, slowdowns = _by_group(schedule, user, len(users))
    return [
        UserMetrics(name, jobs[place], wait_s, slowdown)
        for place, (name, wait_s, slowdown) in enumerate(zip(users, waits, slowdowns, strict=True))
        if wait_s is not None and slowdown is not None
    ]


def jain_index(values: Sequence[float]) -> float | None:
    """Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 if all are equal, 1/n if one has all.

    >>> jain_index([2.0, 2.0]), jain_index([1.0, 0.0, 0.0, 0.0]), jain_index([])
    (1.0, 0.25, None)
    """
    each = np.asarray(values, np.float64)
    squares = float((each**2).sum())
    return float(each.sum()) ** 2 / (len(each) * squares) if squares > 0 else None


@dataclass(frozen=True)
class SizeMetrics:
    """Metrics of the jobs of some sizes."""

    least_procs: int  # From how many processors to how many
    most_procs: int
    jobs: int  # How many jobs ran
    mean_wait_s: float  # As in `crosscast.cluster.metrics.ScheduleMetrics`, of these jobs
    average_bounded_slowdown: float


def per_size(schedule: Schedule) -> list[SizeMetrics]:
    """Metrics by size: 1 processor, 2, 3 to 4, 5 to 8, and so on; sizes without jobs are left out."""
    size = np.ceil(np.log2(schedule.jobs.procs)).astype(np.int64)
    groups = int(size.max(initial=0)) + 1
    jobs, waits, slowdowns = _by_group(schedule, size, groups)
    return [
        SizeMetrics((1 << place) // 2 + 1, 1 << place, jobs[place], wait_s, slowdown)
        for place, (wait_s, slowdown) in enumerate(zip(waits, slowdowns, strict=True))
        if wait_s is not None and slowdown is not None
    ]


def _lost(schedule: Schedule, cuts: Cuts) -> Reals:
    """Processor-seconds of each run that was stopped."""
    lost: Reals = schedule.jobs.procs[cuts.job] * (cuts.end_s - cuts.start_s)
    return lost


@dataclass(frozen=True)
class StoppedMetrics:
    """What stopping jobs for others came to."""

    stopped_runs: int  # How many runs were stopped
    stopped_jobs: int  # Of how many jobs
    lost: float  # Share of the processor-seconds that jobs occupied that were for nothing


def stopped_metrics(schedule: Schedule) -> StoppedMetrics | None:
    """How many jobs were stopped, and what they lost; ``None`` if none may be."""
    cuts = schedule.cuts
    if cuts is None:
        return None
    lost = float(_lost(schedule, cuts).sum())
    occupied = float(processor_seconds(schedule).sum())
    share = lost / occupied if occupied > 0 else 0.0
    return StoppedMetrics(len(cuts.job), len(np.unique(cuts.job)), share)


@dataclass(frozen=True)
class QueuedJobs:
    """Jobs that a policy is to work off."""

    policy: Policy
    jobs: Jobs  # As the scheduler plans them
    configured: PowerPolicy | None = None  # How they were configured
    power_w: Reals | None = None  # What they truly draw, where that is not what is planned
    sharing: Sharing | None = None  # Which of them may share processors
    shared: SharingPolicy | None = None  # By which policy, which may be that none may
    rules: Rules = NO_RULES  # What the site decides of them
    predicted: bool = False  # Whether times are predicted
    exact: bool = False  # Whether they are exact, where that is worth saying
    shift: Shift | None = None  # By what they are delayed, where some may be

    @property
    def label(self) -> str:
        """Name of the policy for people."""
        parts = [policy_label(self.policy)]
        if self.predicted or self.exact:
            parts.append("predicted times" if self.predicted else "exact times")
        if self.configured is not None:
            parts.append(f"power {self.configured}")
        if self.shared is not None:
            parts.append(f"sharing {self.shared}")
        if self.shift is not None:
            parts.append(f"shift {self.shift}")
        return ", ".join(parts)


@dataclass(frozen=True)
class PolicyResult:
    """What a policy makes of jobs."""

    run: QueuedJobs  # What was simulated
    metrics: ScheduleMetrics  # Metrics of the schedule, as a whole, by machine and by user
    machines: Sequence[MachineMetrics]
    users: Sequence[UserMetrics]
    sizes: Sequence[SizeMetrics]  # Metrics by size
    simulation_s: float  # How long the simulation took, in seconds
    power: PowerMetrics | None = None  # Power and energy, where there is a budget
    sharing: SharingMetrics | None = None  # What sharing came to, where there is any
    stopped: StoppedMetrics | None = None  # What stopping jobs came to, where some may be
    weeks: Weeks | None = None  # Sums of each week

    @property
    def label(self) -> str:
        """Name of the policy for people."""
        return self.run.label

    @property
    def fairness(self) -> float | None:
        """Jain's index of the average bounded slowdowns of users; ``None`` if nothing is known of users."""
        return jain_index([each.average_bounded_slowdown for each in self.users])

    def to_dict(self, *, users: bool = False) -> dict[str, object]:
        """Everything, for JSON; users only if they are asked for."""
        run, policy = self.run, self.run.policy
        found = {
            "policy": _name(policy),
            "queue": policy.queue,
            "backfill": policy.backfill,
            "predicted": run.predicted,
            **asdict(self.metrics),
            "simulation_s": self.simulation_s,
            "jobs_per_s": self.metrics.jobs / self.simulation_s,
            "fairness": self.fairness,
            "machines": [asdict(machine) for machine in self.machines],
            "sizes": [asdict(size) for size in self.sizes],
        }
        if run.shift is not None:
            found |= {"shift": run.shift}
        if self.power is not None:
            found |= {"power": run.configured, **asdict(self.power)}
        if self.sharing is not None:
            found |= {"sharing": run.shared, **asdict(self.sharing)}
        if self.stopped is not None:
            found |= asdict(self.stopped)
        return found | {"users": [asdict(user) for user in self.users]} if users else found


def policy_label(policy: Policy) -> str:
    """Name of a policy for people: what is not first come, first served is said.

    >>> policy_label(Policy()), policy_label(Policy("widest", "shortest"))
    ('easy', 'easy, queue widest, backfill shortest')
    """
    parts = [_name(policy)]
    if policy.queue != "fcfs":
        parts.append(f"queue {policy.queue}")
    if policy.backfill not in (None, "multifactor" if policy.queue == "multifactor" else "fcfs"):
        parts.append(f"backfill {policy.backfill}")
    return ", ".join(parts)


def _name(policy: Policy) -> str:
    if policy.conservative:
        return "conservative"
    return "fcfs" if policy.backfill is None else "easy"


_WEEK_S = 604_800.0
_RESAMPLES = 2_000


@dataclass(frozen=True)
class Weeks:
    """Sums over the jobs that were submitted in each of ``w`` weeks, each of shape ``(w,)``."""

    jobs: Integers
    wait_s: Reals
    slowdown: Reals


def weeks_of(schedule: Schedule) -> Weeks:
    """Sums of each week in which a job was submitted, since the first one was."""
    since = schedule.jobs.submit_s - schedule.jobs.submit_s[0]
    week = np.unique((since // _WEEK_S).astype(np.int64), return_inverse=True)[1].reshape(-1)
    slowdown = bounded_slowdown(schedule.wait_s, schedule.ran_s)
    sums = [np.bincount(week, weights=each).astype(np.float64) for each in (schedule.wait_s, slowdown)]
    return Weeks(np.bincount(week), sums[0], sums[1])


@dataclass(frozen=True)
class PolicyDifference:
    """What a policy has more than another one on the same jobs."""

    value: float
    interval: Interval  # What a bootstrap over weeks says of it


def differences(
    result: PolicyResult, reference: PolicyResult, seed: int = 0
) -> tuple[PolicyDifference, PolicyDifference] | None:
    """Differences of the mean wait in seconds, and of the average bounded slowdown.

    Weeks are drawn with replacement, the same ones for both, many times; the interval is where the middle
    95 % of the differences of means are (Efron and Tibshirani 1993, the percentile interval). ``None`` where
    jobs were submitted in one week only.
    """
    own, other = result.weeks, reference.weeks
    if own is None or other is None or len(own.jobs) < 2:
        return None
    count = len(own.jobs)
    drawn = np.random.default_rng(seed).integers(count, size=(_RESAMPLES, count))
    jobs = own.jobs[drawn].sum(axis=1)
    found = []
    for one, two in ((own.wait_s, other.wait_s), (own.slowdown, other.slowdown)):
        more = one - two
        interval = middle(more[drawn].sum(axis=1) / jobs)
        found.append(PolicyDifference(float(more.sum() / own.jobs.sum()), interval))
    return found[0], found[1]


_OBJECTIVES: dict[str, Callable[[PolicyResult], float | None]] = {
    "makespan": lambda each: each.metrics.makespan_s,
    "slowdown": lambda each: each.metrics.average_bounded_slowdown,
    "mean-wait": lambda each: each.metrics.mean_wait_s,
    "wait-p95": lambda each: each.metrics.wait_p95_s,
    "fairness": lambda each: None if each.fairness is None else -each.fairness,
    "energy": lambda each: None if each.power is None else each.power.energy_kwh,
    "cost": lambda each: None if each.power is None else each.power.cost,
    "carbon": lambda each: None if each.power is None else each.power.carbon_kg,
}
OBJECTIVES = tuple(_OBJECTIVES)
"""By what the best of several policies is found; all but the fairness are better if less."""


def ranked(results: Sequence[PolicyResult], objective: str) -> list[PolicyResult]:
    """Results, the best first by an objective; equally good ones stay in their order.

    Raises
    ------
    InputError
        If there is no such objective, or nothing is known of it.
    """
    if objective not in _OBJECTIVES:
        raise InputError.of(field="search", expected=f"one of {', '.join(OBJECTIVES)}", found=repr(objective))
    values = [_OBJECTIVES[objective](each) for each in results]
    if None in values:
        needs = "a trace with users" if objective == "fairness" else "a budget of power that says so"
        raise InputError.of(field="search", problem=f"{objective}: expected {needs}, found none")
    order = sorted(range(len(results)), key=lambda place: (values[place], place))
    return [results[place] for place in order]


def compare_policies(
    runs: Sequence[QueuedJobs],
    machines: Sequence[Machine],
    placement: Placement | None = None,
    *,
    site: Site = NO_SITE,
    progress: Callable[[str], None] | None = None,
    keep: Callable[[str, Schedule], None] | None = None,
) -> list[PolicyResult]:
    """Simulate each policy on its jobs."""
    results = []
    asked = (
        (each.jobs, machines, each.policy, placement, site, each.sharing, each.rules, progress)
        for each in runs
    )
    for run, (schedule, spent_s) in zip(runs, mapped(timed, asked), strict=True):
        if run.power_w is not None:
            schedule = replace(schedule, jobs=replace(schedule.jobs, power_w=run.power_w))
        power = None if site.budget is None else power_metrics(schedule, site.budget)
        found = metrics_of(schedule), per_machine(schedule), per_user(schedule), per_size(schedule)
        sharing = None if run.shared is None else sharing_metrics(schedule, site.limit)
        stopped, weeks = stopped_metrics(schedule), weeks_of(schedule)
        results.append(PolicyResult(run, *found, spent_s, power, sharing, stopped, weeks))
        if keep is not None:
            keep(run.label, schedule)
    return results


class TraceFacts(TypedDict):
    """What was scheduled."""

    name: str
    computer: str | None
    lines: int
    jobs: int
    users: int | None
    submitted_within_s: float
    machines: list[dict[str, object]]
    estimates: str
    left_out: dict[str, int]
    notes: list[str]
    best: NotRequired[dict[str, str]]  # What was best by what, of a search


def trace_facts(
    trace: JobTrace, found: CleanedJobs, machines: Sequence[Machine], estimates: str
) -> TraceFacts:
    """What was scheduled, for JSON and for people."""
    submit_s = found.jobs.submit_s
    procs, header = sum(machine.procs for machine in machines), trace.header.procs
    notes = found.notes()
    if header is not None and procs != header:
        notes.append(f"the header says {header:,} processor{'s' * (header != 1)}: {procs:,} are simulated")
    return {
        "name": trace.label,
        "computer": trace.header.fields.get("Computer"),
        "lines": len(trace),
        "jobs": len(found.jobs),
        "users": len(found.jobs.users) or None,
        "submitted_within_s": float(submit_s[-1] - submit_s[0]),
        "machines": [{"machine": machine.name, "procs": machine.procs} for machine in machines],
        "estimates": estimates,
        "left_out": dict(found.left_out),
        "notes": notes,
    }
