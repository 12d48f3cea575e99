"""Metrics of schedules and of policies, and counts over time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Cuts, Jobs, Machine, Placement, Policy, Schedule, group_means
from crosscast.cluster.power import PowerMetrics, power_metrics, with_idle
from crosscast.cluster.rules import NO_RULES, Rules
from crosscast.cluster.sharing import Sharing, SharingMetrics, sharing_metrics
from crosscast.cluster.simulate import timed
from crosscast.cluster.site import NO_SITE, Budget, PowerPolicy, SharingPolicy, Shift, Site
from crosscast.cluster.swf import CleanedJobs, JobTrace
from crosscast.errors import InputError
from crosscast.evaluation.executor import mapped
from crosscast.evaluation.resampling import Interval, middle


@dataclass(frozen=True)
class Steps:
    """A step function: 0 before its first time."""

    time_s: Reals  # Times of change in seconds, ascending, of shape `(k,)`
    count: Integers  # Value from each time until the next, of shape `(k,)`

    def at(self, time_s: Reals) -> Integers:
        """Return the values at these times, right-continuous at changes."""
        index = np.searchsorted(self.time_s, time_s, side="right")
        return np.concatenate(([0], self.count))[index]


def steps_of(time_s: Reals, change: Integers) -> Steps:
    """Sum changes in the order of their times; those at one time are simultaneous.

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


def _held(schedule: Schedule) -> tuple[Integers, Reals, Reals]:
    """Return the jobs that took processors, and from when to when they or jobs beside them held these."""
    first = np.arange(len(schedule.jobs))
    if schedule.seat is None:
        return first, schedule.start_s, schedule.end_s
    end_s = schedule.end_s.copy()
    np.maximum.at(end_s, schedule.seat, schedule.end_s)
    first = first[schedule.seat == first]
    return first, schedule.start_s[first], end_s[first]


def processor_seconds(schedule: Schedule) -> Reals:
    """Return the occupied processor-seconds of each machine, of shape ``(m,)``.

    Preempted runs count, and what jobs share counts once.
    """
    machines = len(schedule.machines)
    first, start_s, end_s = _held(schedule)
    work = schedule.jobs.procs[first] * (end_s - start_s)
    used: Reals = np.bincount(schedule.machine[first], weights=work, minlength=machines).astype(np.float64)
    if schedule.cuts is not None:
        machine = schedule.machine[schedule.cuts.job]
        used += np.bincount(machine, weights=_lost(schedule, schedule.cuts), minlength=machines)
    return used


def queue_length(schedule: Schedule) -> Steps:
    """Return the number of waiting jobs over time."""
    submit_s = schedule.jobs.submit_s
    one = np.ones(len(submit_s), dtype=np.int64)
    return steps_of(np.concatenate((submit_s, schedule.start_s)), np.concatenate((one, -one)))


@dataclass(frozen=True)
class Rectangles:
    """``k`` rectangles of time and processors; a job has several if its processors are not contiguous."""

    job: Integers  # Index of the job, of shape `(k,)`
    start_s: Reals  # Times of start and end in seconds, of shape `(k,)`
    end_s: Reals
    first: Integers  # First processor, from 0, and number of processors, of shape `(k,)`
    procs: Integers

    def __len__(self) -> int:
        return len(self.job)


def rectangles(schedule: Schedule, machine: int, from_s: float = -np.inf, to_s: float = np.inf) -> Rectangles:
    """Assign processors to each job of a machine: the first contiguous free ones, else the first free ones.

    A schedule has the number of a job's processors, not which these are. Jobs that share have the same.
    """

    def shown(jobs: Integers, start_s: Reals, end_s: Reals) -> Integers:
        """Indices of these jobs that run on the machine in the time shown, by their starts."""
        runs = (schedule.machine[jobs] == machine) & (end_s > start_s) & (end_s > from_s) & (start_s < to_s)
        rows = np.flatnonzero(runs)
        return rows[np.argsort(start_s[rows], kind="stable")]

    start_s, end_s, all_jobs = schedule.start_s, schedule.end_s, np.arange(len(schedule.jobs))
    held_by, from_, until = _held(schedule)
    rows = shown(held_by, from_, until)
    free = np.ones(schedule.machines[machine].procs, dtype=np.bool_)
    running: list[tuple[float, int]] = []
    held: dict[int, Integers] = {}
    taken_by: dict[int, list[tuple[int, int]]] = {}
    for job, start, end, procs in zip(
        held_by[rows].tolist(),
        from_[rows].tolist(),
        until[rows].tolist(),
        schedule.jobs.procs[held_by[rows]].tolist(),
        strict=True,
    ):
        while running and running[0][0] <= start:
            free[held.pop(heapq.heappop(running)[1])] = True
        taken = _take(free, procs)
        free[taken] = False
        held[job] = taken
        heapq.heappush(running, (end, job))
        taken_by[job] = _pieces(taken)
    seat = all_jobs if schedule.seat is None else schedule.seat
    jobs = shown(all_jobs, start_s, end_s)
    pieces = [
        (job, first, count)
        for job, of_seat in zip(jobs.tolist(), seat[jobs].tolist(), strict=True)
        for first, count in taken_by[of_seat]
    ]
    columns = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    job_index = columns[:, 0]
    return Rectangles(job_index, start_s[job_index], end_s[job_index], columns[:, 1], columns[:, 2])


def _take(free: npt.NDArray[np.bool_], procs: int) -> Integers:
    """Return the first contiguous free processors, else the first free ones."""
    indices = np.flatnonzero(free)
    # Starts of runs of free processors that are long enough.
    fits = indices[procs - 1 :] - indices[: len(indices) - procs + 1] == procs - 1
    first = int(np.argmax(fits)) if fits.any() else 0
    return indices[first : first + procs]


def _pieces(indices: Integers) -> list[tuple[int, int]]:
    """Return first element and length of each contiguous run."""
    runs = np.split(indices, np.flatnonzero(np.diff(indices) > 1) + 1)
    return [(int(run[0]), len(run)) for run in runs]


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
    groups = _by_group(schedule, schedule.machine, len(schedule.machines))
    makespan_s = float(schedule.end_s.max() - schedule.jobs.submit_s[0]) if len(schedule.jobs) else 0.0
    used = processor_seconds(schedule).tolist()
    return [
        MachineMetrics(
            machine=machine.name,
            procs=machine.procs,
            jobs=jobs,
            utilisation=work / (machine.procs * makespan_s) if makespan_s > 0 else None,
            mean_wait_s=wait_s,
            average_bounded_slowdown=slowdown,
        )
        for machine, work, jobs, wait_s, slowdown in zip(schedule.machines, used, *groups, strict=True)
    ]


def _by_group(
    schedule: Schedule, group: Integers, groups: int
) -> tuple[list[int], list[float | None], list[float | None]]:
    """Return the number, mean wait and average bounded slowdown of each group's jobs."""
    jobs, waits = group_means(group, schedule.wait_s, groups)
    return jobs, waits, group_means(group, slowdowns_of(schedule), groups)[1]


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
    groups = zip(users, *_by_group(schedule, user, len(users)), strict=True)
    return [
        UserMetrics(name, jobs, wait_s, slowdown)
        for name, jobs, wait_s, slowdown in groups
        if wait_s is not None and slowdown is not None
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
    groups = zip(*_by_group(schedule, size, int(size.max(initial=0)) + 1), strict=True)
    return [
        SizeMetrics((1 << index) // 2 + 1, 1 << index, jobs, wait_s, slowdown)
        for index, (jobs, wait_s, slowdown) in enumerate(groups)
        if wait_s is not None and slowdown is not None
    ]


def _lost(schedule: Schedule, cuts: Cuts) -> Reals:
    """Return the processor-seconds of each preempted run."""
    return schedule.jobs.procs[cuts.job] * (cuts.end_s - cuts.start_s)


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
    lost = float(_lost(schedule, cuts).sum())
    occupied = float(processor_seconds(schedule).sum())
    share = lost / occupied if occupied > 0 else 0.0
    return StoppedMetrics(len(cuts.job), len(np.unique(cuts.job)), share)


_SAME = 1e-9


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
    arguments = (
        (each.jobs, machines, each.policy, placement, site, each.sharing, each.rules, progress)
        for each in runs
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
