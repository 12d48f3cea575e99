"""Placements compared on drawn jobs: section VII of Nichols et al. 2024."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster import Policy, Schedule
from crosscast.cluster.metrics import MachineMetrics, ScheduleMetrics, metrics_of, per_machine, policy_label
from crosscast.cluster.placements import PLACEMENTS, Workload, drawn, without_choice
from crosscast.cluster.simulate import timed
from crosscast.errors import CrosscastError, InputError, importing
from crosscast.evaluation.executor import mapped

SHARE = 0.95
"""Probability with which an interval holds the mean, were there more seeds."""


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds."""

    value: float  # The mean
    # Ends of Student's interval around it; `None` with a single seed, which says nothing of others
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def mean_of(values: Sequence[float]) -> SeedMean:
    """Mean of a value for each seed, with Student's interval, which is for normal values.

    >>> mean_of([3.0]), mean_of([2.0, 4.0]).value
    (SeedMean(value=3.0, low=None, high=None), 3.0)
    """
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return SeedMean(mean, None, None)
    with importing("cluster", "an interval over seeds"):
        from scipy.special import stdtrit
    half = float(stdtrit(count - 1, (1 + SHARE) / 2)) * float(np.std(values, ddof=1)) / count**0.5
    return SeedMean(mean, mean - half, mean + half)


MOST_JOBS = 100_000_000
"""Most jobs of a workload."""

PUBLISHED_JOBS = 50_000
"""Jobs of the workload in section VII of Nichols et al. 2024."""


def least_work_s(types: Workload, counts: Integers) -> float:
    """Return a lower bound on the makespan of divisible jobs, in seconds.

    The jobs of each type are split between the machines to minimise the largest work of a machine: a linear
    program, in which work is processors times time over the processors of the machine.
    """
    with importing("cluster", "the least makespan"):
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack
    used = np.flatnonzero(counts)
    allowed = types.runs_on[used]
    row, machine = np.nonzero(allowed)
    run_s = np.broadcast_to(types.jobs.run_s, types.runs_on.shape)[used][allowed]
    procs = np.array([each.procs for each in types.machines])
    work_s = counts[used][row] * types.jobs.procs[used][row] * run_s / procs[machine]
    scale = work_s.max(initial=0.0)
    if scale == 0:
        return 0.0
    # Variables: the share of each type on each machine where it runs, and the time, which is minimised.
    count = len(row)
    column = np.arange(count)
    work = csr_array((work_s / scale, (machine, column)), shape=(len(procs), count))
    loads = hstack([work, np.full((len(procs), 1), -1.0)], format="csr")
    shares = csr_array((np.ones(count), (row, column)), shape=(len(used), count + 1))
    cost = np.zeros(count + 1)
    cost[-1] = 1.0
    solution = linprog(
        cost, A_ub=loads, b_ub=np.zeros(len(procs)), A_eq=shares, b_eq=np.ones(len(used)), method="highs"
    )
    if not solution.success:
        raise CrosscastError(f"the least makespan was not found ({solution.message})")
    return float(solution.fun) * float(scale)


def least_makespan_s(types: Workload, counts: Integers) -> float:
    """Return a lower bound on the makespan of jobs submitted at once, in seconds: by work and longest job."""
    shortest_s = np.where(types.runs_on, types.jobs.run_s, np.inf).min(axis=1)[counts > 0]
    return max(least_work_s(types, counts), float(shortest_s.max(initial=0.0)))


@dataclass(frozen=True)
class PlacementOutcome:
    """Result of a placement on the workload of one seed."""

    seed: int
    metrics: ScheduleMetrics  # Metrics of the whole schedule and by machine
    machines: Sequence[MachineMetrics]
    on_fastest: float  # Share of the jobs that ran on their fastest machine
    # Occupied processor-seconds over those on each job's fastest machine; `None` if these are 0
    work_over_least: float | None
    simulation_s: float  # Duration of the simulation in seconds


def outcome_of(seed: int, workload: Workload, schedule: Schedule, simulation_s: float) -> PlacementOutcome:
    """Compute the metrics of a schedule."""
    least_s = schedule.alone_s
    procs, actual_s = workload.jobs.procs, schedule.on_machine(workload.jobs.run_s)
    least_work = float((procs * least_s).sum())
    return PlacementOutcome(
        seed=seed,
        metrics=metrics_of(schedule),
        machines=per_machine(schedule),
        on_fastest=float((actual_s == least_s).mean()),
        work_over_least=float((procs * actual_s).sum()) / least_work if least_work > 0 else None,
        simulation_s=simulation_s,
    )


REFERENCES = ("user", "exact")
"""Placements that others are compared with, if they are present."""


@dataclass(frozen=True)
class PlacementSummary:
    """A placement over all seeds."""

    placement: str  # Name of the placement
    jobs: int  # Number of jobs of each seed
    makespan_s: SeedMean  # Means with intervals
    average_bounded_slowdown: SeedMean
    mean_wait_s: float  # Means, as in `PlacementOutcome` and its metrics; `None` if a seed has none
    median_wait_s: float
    wait_p95_s: float
    utilisation: float | None
    on_fastest: float
    work_over_least: float | None
    simulation_s: float
    machines: Sequence[MachineMetrics]  # Means by machine; numbers of jobs are rounded
    # Ratio of makespans less 1, seed by seed, to each of `REFERENCES` that is present
    against: dict[str, SeedMean]
    outcomes: Sequence[PlacementOutcome]  # Result of each seed

    def to_dict(self) -> dict[str, object]:
        """Return the summary for JSON: means, intervals (null with one seed), and the result of each seed."""
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


def _summary(name: str, by_name: Mapping[str, Sequence[PlacementOutcome]]) -> PlacementSummary:
    group = by_name[name]
    metrics = [outcome.metrics for outcome in group]
    against = {
        reference: mean_of(
            [
                one.metrics.makespan_s / other.metrics.makespan_s - 1
                for one, other in zip(group, by_name[reference], strict=True)
            ]
        )
        for reference in REFERENCES
        if reference in by_name
        and reference != name
        and all(each.metrics.makespan_s > 0 for each in by_name[reference])
    }
    by_machine = zip(*(outcome.machines for outcome in group), strict=True)
    return PlacementSummary(
        placement=name,
        jobs=metrics[0].jobs,
        makespan_s=mean_of([each.makespan_s for each in metrics]),
        average_bounded_slowdown=mean_of([each.average_bounded_slowdown for each in metrics]),
        machines=[_machine(of_machine) for of_machine in by_machine],
        against=against,
        outcomes=group,
        **_means(metrics, "mean_wait_s", "median_wait_s", "wait_p95_s", "utilisation"),
        **_means(group, "on_fastest", "work_over_least", "simulation_s"),
    )


def _machine(metrics: Sequence[MachineMetrics]) -> MachineMetrics:
    jobs = round(np.mean([each.jobs for each in metrics]))
    means = _means(metrics, "utilisation", "mean_wait_s", "average_bounded_slowdown")
    return replace(metrics[0], jobs=jobs, **means)


def _means(results: Sequence[object], *names: str) -> dict[str, Any]:
    """Return the means of these metrics, ``None`` where one of the results has none."""
    values = {name: [getattr(each, name) for each in results] for name in names}
    return {name: None if None in known else float(np.mean(known)) for name, known in values.items()}


MOST_TYPES = 200_000
"""Most types of jobs for which the least makespan is computed, in about ten seconds."""

_DRAW, _PLACE = 0, 1
"""Two independent random streams of each seed: the same workload for all placements."""


@dataclass(frozen=True)
class Setup:
    """Options of an experiment."""

    placements: Sequence[str]  # Names of placements, of `crosscast.cluster.placements`
    jobs: int | None  # Number of jobs drawn for each seed; `None` for one of each type, in order
    seeds: Sequence[int]  # A workload is drawn for each
    # Times of submission with `jobs` `None`, in seconds, ascending; `None` for all at once
    submit_s: Reals | None = None
    # Mean time between submissions of drawn jobs, in seconds; 0 if all are submitted at once
    interarrival_s: float = 0.0
    policy: Policy = field(default_factory=Policy)  # Order of the queue, and of backfilling
    # Estimates of the scheduler: true or predicted times
    estimates: Literal["exact", "predicted"] = "exact"


@dataclass(frozen=True)
class Experiment:
    """Results of an experiment."""

    setup: Setup
    results: Sequence[PlacementSummary]  # Each placement, over all seeds
    at_once: bool  # Whether all jobs of each seed were submitted at the same time
    # Mean over seeds of the lower bound on the makespan; `None` if jobs are not all submitted at once, or of
    # more types than `MOST_TYPES`
    least_makespan_s: SeedMean | None


def interarrival_of_load(types: Workload, load: float) -> float:
    """Return the mean time between submissions of drawn jobs at a given load, in seconds.

    A load of 1 is the capacity of the machines under the best allocation of jobs.
    """
    count = len(types)
    return least_work_s(types, np.ones(count, dtype=np.int64)) / count / load


def run_experiment(
    types: Workload,
    setup: Setup,
    *,
    progress: Callable[[int, int, str], None] | None = None,
    keep: Callable[[str, int, Schedule], None] | None = None,
) -> Experiment:
    """Draw workloads and simulate each placement on each: section VII of Nichols et al. 2024."""
    outcomes: dict[str, list[PlacementOutcome]] = {name: [] for name in setup.placements}
    at_once: list[bool] = []
    bounds: list[float] = []
    ended, total = 0, len(setup.seeds) * len(setup.placements)
    for seed in setup.seeds:
        workload, counts = _workload(types, setup, seed)
        at_once.append(workload.jobs.submit_s[0] == workload.jobs.submit_s[-1])
        if at_once[-1] and len(types) <= MOST_TYPES:
            bounds.append(least_makespan_s(types, counts))
        placed = (
            PLACEMENTS[name](workload, np.random.default_rng((seed, _PLACE))) for name in setup.placements
        )
        runs = (
            (workload.jobs, workload.machines, {"policy": setup.policy, "placement": placement})
            for placement in placed
        )
        for name, (schedule, spent_s) in zip(setup.placements, mapped(timed, runs), strict=True):
            outcomes[name].append(outcome_of(seed, workload, schedule, spent_s))
            ended += 1
            if keep is not None:
                keep(name, seed, schedule)
            if progress is not None:
                progress(ended, total, name)
    mean_bound = mean_of(bounds) if len(bounds) == len(setup.seeds) else None
    results = [_summary(name, outcomes) for name in outcomes]
    return Experiment(setup, results, all(at_once), mean_bound)


def _workload(types: Workload, setup: Setup, seed: int) -> tuple[Workload, Integers]:
    """Return the jobs of a seed, and the number of each type."""
    generator = np.random.default_rng((seed, _DRAW))
    if setup.jobs is None:
        indices = np.arange(len(types))
        submit_s = np.zeros(len(types)) if setup.submit_s is None else setup.submit_s
        workload = replace(types, jobs=replace(types.jobs, submit_s=submit_s))
    else:
        if not 1 <= setup.jobs <= MOST_JOBS:
            expected = f"1 to {MOST_JOBS:,} jobs"
            raise InputError.of(field="jobs", expected=expected, found=f"{setup.jobs:,}")
        indices = generator.integers(len(types), size=setup.jobs)
        # A Poisson process, of which the first job is at once.
        between_s = generator.exponential(setup.interarrival_s, size=setup.jobs)
        between_s[0] = 0.0
        workload = drawn(types, indices, np.cumsum(between_s))
    if setup.estimates == "predicted":
        assert workload.predicted_s is not None
        # Times are infinite where a job cannot run.
        estimate_s = np.where(workload.runs_on, workload.predicted_s, np.inf)
        workload = replace(workload, jobs=replace(workload.jobs, estimate_s=estimate_s))
    return workload, np.bincount(indices, minlength=len(types))


def experiment_facts(
    experiment: Experiment, label: str, types: Workload, left_out: Mapping[str, int]
) -> dict[str, object]:
    """Describe an experiment, for JSON and for people."""
    setup = experiment.setup
    user = without_choice(types) if "user" in setup.placements else None
    notes = [f"{count:,} left out: {reason}" for reason, count in left_out.items()]
    return {
        "name": label,
        "types": len(types),
        "jobs": experiment.results[0].jobs,
        "drawn": setup.jobs is not None,
        "seeds": list(setup.seeds),
        "submitted": _submitted(experiment),
        "interarrival_s": setup.interarrival_s or None,
        "policy": policy_label(setup.policy),
        "estimates": setup.estimates,
        "machines": [
            {"machine": machine.name, "procs": machine.procs, "gpu": machine.has_gpu}
            for machine in types.machines
        ],
        "least_makespan_s": None
        if experiment.least_makespan_s is None
        else experiment.least_makespan_s.value,
        "notes": [*notes, *([user] if user else [])],
    }


def _submitted(experiment: Experiment) -> str:
    if experiment.at_once:
        return "at once"
    return "as the trace says" if experiment.setup.jobs is None else "poisson"
