"""Metrics of schedules, and policies compared by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster import Jobs, Machine, Placement, Policy, Schedule
from crosscast.cluster.resources import PowerMetrics, lost_work, power_metrics, processor_seconds, with_idle
from crosscast.cluster.rules import NO_RULES, Rules, Sharing
from crosscast.cluster.simulate import timed
from crosscast.cluster.site import NO_SITE, Budget, PowerPolicy, SharingPolicy, Shift, Site
from crosscast.cluster.traces import CleanedJobs, JobTrace
from crosscast.errors import InputError
from crosscast.evaluation.executor import mapped
from crosscast.evaluation.resampling import Interval, middle

TAU_S = 10.0
"""Lower bound on run times in bounded slowdowns, in seconds (section VII-A of Nichols et al. 2024)."""


@dataclass(frozen=True)
class ScheduleMetrics:
    """Metrics of a schedule; less is better in all but `utilisation`."""

    jobs: int  # Number of jobs
    makespan_s: float  # From the first submission to the last end, in seconds
    average_bounded_slowdown: float  # Mean of `bounded_slowdown` over the jobs
    mean_wait_s: float  # Mean, median and 95th percentile of waits, in seconds
    median_wait_s: float
    wait_p95_s: float
    # Occupied processor-seconds over those of the machines in the makespan; `None` if the makespan is 0 s
    utilisation: float | None


def bounded_slowdown(turnaround_s: Reals, alone_s: Reals) -> Reals:
    """Return the bounded slowdown of jobs: turnaround over run time alone, bounded for short jobs.

    The formula of section VII-A of Nichols et al. 2024, ``max((wait + run) / max(run, TAU_S), 1)``, where the
    last run time is one that no scheduler has made longer.

    >>> bounded_slowdown(np.array([2.0, 20.0, 60.0]), np.array([2.0, 11.0, 30.0])).tolist()
    [1.0, 1.8181818181818181, 2.0]
    """
    return np.maximum(turnaround_s / np.maximum(alone_s, TAU_S), 1.0)


def slowdowns_of(schedule: Schedule) -> Reals:
    """Return the bounded slowdown of each job over its `Schedule.alone_s`."""
    return bounded_slowdown(schedule.wait_s + schedule.ran_s, schedule.alone_s)


def metrics_of(schedule: Schedule) -> ScheduleMetrics:
    """Compute the metrics over all jobs and machines.

    Parameters
    ----------
    schedule
        A schedule, as of `crosscast.simulate`.

    Returns
    -------
    ScheduleMetrics
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
        expected, found = "times that can be added up", "ones that are too large"
        raise InputError.of(field="schedule", expected=expected, found=found)
    median_s, p95_s = np.quantile(wait_s, (0.5, 0.95)).tolist()
    return ScheduleMetrics(
        jobs=len(schedule.jobs),
        makespan_s=makespan_s,
        average_bounded_slowdown=float(slowdowns_of(schedule).mean()),
        mean_wait_s=float(wait_s.mean()),
        median_wait_s=median_s,
        wait_p95_s=p95_s,
        utilisation=work / capacity if capacity > 0 else None,
    )


@dataclass(frozen=True)
class MachineMetrics:
    """Metrics of the jobs that ran on a machine; ``None`` where none did, or time is 0 s."""

    machine: str  # Name of the machine
    procs: int  # Number of its processors
    jobs: int  # Number of jobs that ran on it
    # Occupied share of its processor-seconds in the makespan of the whole schedule
    utilisation: float | None
    mean_wait_s: float | None  # As in `crosscast.cluster.metrics.ScheduleMetrics`, of its jobs
    average_bounded_slowdown: float | None


def per_machine(schedule: Schedule) -> list[MachineMetrics]:
    """Compute the metrics of each machine, in order."""
    of_machine: dict[int, tuple[int, float | None, float | None]] = {
        index: (jobs, wait_s, slowdown)
        for index, jobs, wait_s, slowdown in _by_group(schedule, schedule.machine)
    }
    makespan_s = float(schedule.end_s.max() - schedule.jobs.submit_s[0]) if len(schedule.jobs) else 0.0
    metrics = []
    for index, (machine, work) in enumerate(
        zip(schedule.machines, processor_seconds(schedule).tolist(), strict=True)
    ):
        utilisation = work / (machine.procs * makespan_s) if makespan_s > 0 else None
        jobs, wait_s, slowdown = of_machine.get(index, (0, None, None))
        metrics.append(MachineMetrics(machine.name, machine.procs, jobs, utilisation, wait_s, slowdown))
    return metrics


def _by_group(schedule: Schedule, group: Integers) -> Iterator[tuple[int, int, float, float]]:
    """Yield each group with jobs, their number, mean wait and average bounded slowdown."""
    counts = np.bincount(group)
    index = np.flatnonzero(counts)
    waits, slowdowns = (
        (np.bincount(group, weights=values)[index] / counts[index]).tolist()
        for values in (schedule.wait_s, slowdowns_of(schedule))
    )
    yield from zip(index.tolist(), counts[index].tolist(), waits, slowdowns, strict=True)


@dataclass(frozen=True)
class UserMetrics:
    """Metrics of a user's jobs."""

    user: str  # Name of the user in the trace
    jobs: int  # Number of jobs
    mean_wait_s: float  # As in `crosscast.cluster.metrics.ScheduleMetrics`, of these jobs
    average_bounded_slowdown: float


def per_user(schedule: Schedule) -> list[UserMetrics]:
    """Compute the metrics of each user with a job, in the order of the trace; none if users are unknown."""
    user, users = schedule.jobs.user, schedule.jobs.users
    if user is None:
        return []
    return [
        UserMetrics(users[index], jobs, wait_s, slowdown)
        for index, jobs, wait_s, slowdown in _by_group(schedule, user)
    ]


def jain_index(values: Sequence[float]) -> float | None:
    """Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 if all are equal, 1/n if one has all.

    >>> jain_index([2.0, 2.0]), jain_index([1.0, 0.0, 0.0, 0.0]), jain_index([])
    (1.0, 0.25, None)
    """
    array = np.asarray(values, np.float64)
    squares = float((array**2).sum())
    return float(array.sum()) ** 2 / (len(array) * squares) if squares > 0 else None


@dataclass(frozen=True)
class SizeMetrics:
    """Metrics of the jobs in a range of sizes."""

    least_procs: int  # Range of processors, ends included
    most_procs: int
    jobs: int  # Number of jobs
    mean_wait_s: float  # As in `crosscast.cluster.metrics.ScheduleMetrics`, of these jobs
    average_bounded_slowdown: float


def per_size(schedule: Schedule) -> list[SizeMetrics]:
    """Compute the metrics by size: 1 processor, 2, 3 to 4, 5 to 8, and so on, without empty sizes."""
    size = np.ceil(np.log2(schedule.jobs.procs)).astype(np.int64)
    return [
        SizeMetrics((1 << index) // 2 + 1, 1 << index, jobs, wait_s, slowdown)
        for index, jobs, wait_s, slowdown in _by_group(schedule, size)
    ]


@dataclass(frozen=True)
class StoppedMetrics:
    """Metrics of preemption."""

    stopped_runs: int  # Number of preempted runs
    stopped_jobs: int  # Number of their jobs
    lost: float  # Share of the occupied processor-seconds that these runs wasted


def stopped_metrics(schedule: Schedule) -> StoppedMetrics | None:
    """Count the preempted jobs and their lost work; ``None`` without preemption."""
    cuts = schedule.cuts
    if cuts is None:
        return None
    lost = float(lost_work(schedule, cuts).sum())
    occupied = float(processor_seconds(schedule).sum())
    share = lost / occupied if occupied > 0 else 0.0
    return StoppedMetrics(len(cuts.job), len(np.unique(cuts.job)), share)


_SAME = 1e-9


@dataclass(frozen=True)
class SharingMetrics:
    """Metrics of shared jobs."""

    slowed: float  # Share of the jobs that ran longer than alone
    mean_slowdown: float  # Mean time that jobs ran over that alone, of those with any
    broken_promises: float  # Share of the jobs that ran longer than they were promised at worst


def sharing_metrics(schedule: Schedule, limit: float) -> SharingMetrics:
    """Compare run times with those alone, and count the jobs beyond their promised slowdown."""
    alone_s = schedule.on_machine(schedule.jobs.run_s)
    ran = alone_s > 0
    slowdown = schedule.ran_s[ran] / alone_s[ran]
    if not len(slowdown):
        return SharingMetrics(0.0, 1.0, 0.0)
    return SharingMetrics(
        slowed=float((slowdown > 1 + _SAME).mean()),
        mean_slowdown=float(slowdown.mean()),
        broken_promises=float((slowdown > limit * (1 + _SAME)).mean()),
    )


def over_request(schedule: Schedule, request_s: Reals) -> int:
    """Count the jobs that ran longer than requested."""
    return int(np.count_nonzero(schedule.ran_s > request_s * (1 + _SAME)))


@dataclass(frozen=True)
class QueuedJobs:
    """Jobs to schedule with a policy."""

    policy: Policy
    jobs: Jobs  # As the scheduler plans them
    configured: PowerPolicy | None = None  # Policy that configured them
    power_w: Reals | None = None  # Their true power in watts, if it differs from the planned one
    sharing: Sharing | None = None  # Sharing of processors
    shared: SharingPolicy | None = None  # Policy of sharing, also where it is `never`
    rules: Rules = NO_RULES  # Rules of the site
    predicted: bool = False  # Whether times are predicted
    exact: bool = False  # Whether the label says that times are exact
    shift: Shift | None = None  # Criterion of delays, if jobs may be delayed
    # Times that users requested, of shape `(n,)`, if configurations or sharing may make jobs exceed them
    request_s: Reals | None = None

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
    """Result of a policy."""

    run: QueuedJobs
    metrics: ScheduleMetrics  # Metrics of the whole schedule, by machine, by user and by size
    machines: Sequence[MachineMetrics]
    users: Sequence[UserMetrics]
    sizes: Sequence[SizeMetrics]
    simulation_s: float  # Duration of the simulation in seconds
    power: PowerMetrics | None = None  # With a budget
    sharing: SharingMetrics | None = None  # With a policy of sharing
    stopped: StoppedMetrics | None = None  # With preemption
    weeks: Weeks | None = None  # Sums of each week
    over_request: int | None = None  # Number of jobs that ran longer than `QueuedJobs.request_s`

    @property
    def label(self) -> str:
        """Name of the policy for people."""
        return self.run.label

    @property
    def fairness(self) -> float | None:
        """Jain's index of the average bounded slowdowns of users; ``None`` if users are unknown."""
        return jain_index([user.average_bounded_slowdown for user in self.users])

    def to_dict(self, *, users: bool = False) -> dict[str, object]:
        """Return the result for JSON, without users by default."""
        run, policy = self.run, self.run.policy
        content = {
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
            content |= {"shift": run.shift}
        if self.power is not None:
            content |= {"power": run.configured, **asdict(self.power)}
        if self.sharing is not None:
            content |= {"sharing": run.shared, **asdict(self.sharing)}
        if self.stopped is not None:
            content |= asdict(self.stopped)
        if self.over_request is not None:
            content |= {"over_request": self.over_request}
        return content | {"users": [asdict(user) for user in self.users]} if users else content


def policy_label(policy: Policy) -> str:
    """Return the name of a policy for people, with orders other than first come, first served.

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
    """Return the sums of each week with submissions, counted from the first one."""
    since = schedule.jobs.submit_s - schedule.jobs.submit_s[0]
    week = np.unique((since // _WEEK_S).astype(np.int64), return_inverse=True)[1].reshape(-1)
    columns = schedule.wait_s, slowdowns_of(schedule)
    sums = [np.bincount(week, weights=values).astype(np.float64) for values in columns]
    return Weeks(np.bincount(week), sums[0], sums[1])


@dataclass(frozen=True)
class PolicyDifference:
    """Difference between two policies on the same jobs."""

    value: float
    interval: Interval  # From a bootstrap over weeks


def differences(
    result: PolicyResult, reference: PolicyResult, seed: int = 0
) -> tuple[PolicyDifference, PolicyDifference] | None:
    """Compute the differences of the mean wait in seconds, and of the average bounded slowdown.

    Weeks are drawn with replacement, the same ones for both; the interval holds the middle 95 % of the
    differences of means (Efron and Tibshirani 1993, the percentile interval). ``None`` if all jobs were
    submitted in one week.
    """
    weeks, other_weeks = result.weeks, reference.weeks
    if weeks is None or other_weeks is None or len(weeks.jobs) < 2:
        return None
    count = len(weeks.jobs)
    drawn = np.random.default_rng(seed).integers(count, size=(_RESAMPLES, count))
    jobs = weeks.jobs[drawn].sum(axis=1)
    results = []
    for values, other_values in ((weeks.wait_s, other_weeks.wait_s), (weeks.slowdown, other_weeks.slowdown)):
        difference = values - other_values
        interval = middle(difference[drawn].sum(axis=1) / jobs)
        results.append(PolicyDifference(float(difference.sum() / weeks.jobs.sum()), interval))
    return results[0], results[1]


_OBJECTIVES: dict[str, Callable[[PolicyResult], float | None]] = {
    "makespan": lambda result: result.metrics.makespan_s,
    "slowdown": lambda result: result.metrics.average_bounded_slowdown,
    "mean-wait": lambda result: result.metrics.mean_wait_s,
    "wait-p95": lambda result: result.metrics.wait_p95_s,
    "fairness": lambda result: None if result.fairness is None else -result.fairness,
    "energy": lambda result: None if result.power is None else result.power.energy_kwh,
    "cost": lambda result: None if result.power is None else result.power.cost,
    "carbon": lambda result: None if result.power is None else result.power.carbon_kg,
}
OBJECTIVES = tuple(_OBJECTIVES)
"""Objectives by which policies are ranked; all but the fairness are minimised."""


def check_objective(objective: str, budget: Budget | None, *, users: bool) -> None:
    """Raise InputError if results will not have an objective."""
    known = {
        "fairness": users,
        "energy": budget is not None,
        "cost": budget is not None and budget.price_per_kwh is not None,
        "carbon": budget is not None and budget.carbon_g_per_kwh is not None,
    }
    if not known.get(objective, True):
        needs = "a trace with users" if objective == "fairness" else "a budget of power that says so"
        raise InputError.of(field="search", problem=f"{objective}: expected {needs}, found none")


def ranked(results: Sequence[PolicyResult], objective: str) -> list[PolicyResult]:
    """Sort results by an objective, which `check_objective` takes, the best first; ties keep their order."""
    values = [_OBJECTIVES[objective](result) for result in results]
    order = sorted(range(len(results)), key=lambda index: (values[index], index))
    return [results[index] for index in order]


def compare_policies(
    runs: Sequence[QueuedJobs],
    machines: Sequence[Machine],
    placement: Placement | None = None,
    *,
    site: Site = NO_SITE,
    progress: Callable[[str], None] | None = None,
    keep: Callable[[str, Schedule], None] | None = None,
) -> list[PolicyResult]:
    """Simulate each policy on its jobs; power of all is up to the latest end of any."""
    results: list[PolicyResult] = []
    same = {"placement": placement, "site": site, "progress": progress}
    arguments = (
        (run.jobs, machines, same | {"policy": run.policy, "sharing": run.sharing, "rules": run.rules})
        for run in runs
    )
    for run, (schedule, spent_s) in zip(runs, mapped(timed, arguments), strict=True):
        if run.power_w is not None:
            schedule = replace(schedule, jobs=replace(schedule.jobs, power_w=run.power_w))
        power = None if site.budget is None else power_metrics(schedule, site.budget)
        metrics = metrics_of(schedule), per_machine(schedule), per_user(schedule), per_size(schedule)
        sharing = None if run.shared is None else sharing_metrics(schedule, site.limit)
        stopped, weeks = stopped_metrics(schedule), weeks_of(schedule)
        over = None if run.request_s is None else over_request(schedule, run.request_s)
        results.append(PolicyResult(run, *metrics, spent_s, power, sharing, stopped, weeks, over))
        if keep is not None:
            keep(run.label, schedule)
    if site.budget is None:
        return results
    last_s = max((result.metrics.makespan_s for result in results), default=0.0)
    return [
        replace(result, power=with_idle(power, machines, site.budget, result.metrics.makespan_s, last_s))
        for result in results
        if (power := result.power) is not None
    ]


def trace_facts(
    trace: JobTrace, cleaned: CleanedJobs, machines: Sequence[Machine], estimates: str, more: Sequence[str]
) -> dict[str, object]:
    """Describe a simulated trace, with more notes, for JSON and for people."""
    submit_s = cleaned.jobs.submit_s
    procs, header_procs = sum(machine.procs for machine in machines), trace.header.procs
    notes = cleaned.notes()
    if header_procs is not None and procs != header_procs:
        notes.append(
            f"the header says {header_procs:,} processor{'s' * (header_procs != 1)}: {procs:,} are simulated"
        )
    return {
        "name": trace.label,
        "computer": trace.header.fields.get("Computer"),
        "lines": len(trace),
        "jobs": len(cleaned.jobs),
        "users": len(cleaned.jobs.users) or None,
        "submitted_within_s": float(submit_s[-1] - submit_s[0]),
        "machines": [{"machine": machine.name, "procs": machine.procs} for machine in machines],
        "estimates": estimates,
        "left_out": dict(cleaned.left_out),
        "notes": [*notes, *more],
    }
