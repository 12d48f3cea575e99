"""Placements compared on drawn jobs: section VII of Nichols et al. 2024."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Jobs, Policy, Schedule
from crosscast.cluster.metrics import MachineMetrics, ScheduleMetrics, metrics_of, per_machine, policy_label
from crosscast.cluster.placements import PLACEMENTS, Workload, check_placements, without_choice
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


def draw_types(types: int, count: int, generator: np.random.Generator) -> Integers:
    """Draw the type of each job, with replacement, all types equally often."""
    if types < 1:
        raise InputError.of(field="types", expected="at least one type of job", found="none")
    if not 1 <= count <= MOST_JOBS:
        raise InputError.of(field="jobs", expected=f"1 to {MOST_JOBS:,} jobs", found=f"{count:,}")
    return generator.integers(types, size=count)


def submissions(count: int, interarrival_s: float, generator: np.random.Generator) -> Reals:
    """When jobs are submitted: the first at 0 s, the next after exponential times (a Poisson process)."""
    if not (interarrival_s >= 0 and np.isfinite(interarrival_s)):
        raise InputError.of(
            field="interarrival", expected="a time of at least 0 s", found=f"{interarrival_s}"
        )
    between = generator.exponential(interarrival_s, size=count)
    between[:1] = 0.0
    return np.cumsum(between)


def drawn(types: Workload, places: Integers, submit_s: Reals) -> Workload:
    """Jobs of these types, submitted at these times."""
    one = types.jobs
    jobs = Jobs(
        number=np.arange(1, len(places) + 1),
        submit_s=submit_s,
        procs=one.procs[places],
        run_s=one.run_s[places],
        estimate_s=one.estimate_s[places],
        user=None if one.user is None else one.user[places],
        users=one.users,
    )
    return replace(
        types,
        jobs=jobs,
        uses_gpu=types.uses_gpu[places],
        vector=None if types.vector is None else types.vector[places],
        predicted_s=None if types.predicted_s is None else types.predicted_s[places],
    )


def least_work_s(types: Workload, counts: Integers) -> float:
    """Least time in which machines could work off jobs that can be cut to pieces, in seconds.

    Each type's jobs are shared out between the machines so that the one with the most work has the least: a
    linear program, in which work is processors times time over the processors of the machine.
    """
    with importing("cluster", "the least makespan"):
        from scipy.optimize import linprog
        from scipy.sparse import csr_array
    there = np.flatnonzero(counts)
    allowed = types.runs_on[there]
    row, machine = np.nonzero(allowed)
    run_s = np.broadcast_to(types.jobs.run_s, types.runs_on.shape)[there][allowed]
    procs = np.array([each.procs for each in types.machines])
    work_s = counts[there][row] * types.jobs.procs[there][row] * run_s / procs[machine]
    scale = work_s.max(initial=0.0)
    if scale == 0:
        return 0.0
    # Variables: the share of each type on each machine where it runs, and the time, which is made least.
    count = len(row)
    column = np.arange(count)
    loads = csr_array(
        (
            np.concatenate((work_s / scale, np.full(len(procs), -1.0))),
            (
                np.concatenate((machine, np.arange(len(procs)))),
                np.concatenate((column, np.full(len(procs), count))),
            ),
        ),
        shape=(len(procs), count + 1),
    )
    shares = csr_array((np.ones(count), (row, column)), shape=(len(there), count + 1))
    cost = np.zeros(count + 1)
    cost[-1] = 1.0
    found = linprog(
        cost, A_ub=loads, b_ub=np.zeros(len(procs)), A_eq=shares, b_eq=np.ones(len(there)), method="highs"
    )
    if not found.success:
        raise CrosscastError(f"the least makespan was not found ({found.message})")
    return float(found.fun) * float(scale)


def least_makespan_s(types: Workload, counts: Integers) -> float:
    """Least makespan of jobs that are submitted at once, in seconds: of their work, or of the longest job."""
    shortest_s = np.where(types.runs_on, types.jobs.run_s, np.inf).min(axis=1)[counts > 0]
    return max(least_work_s(types, counts), float(shortest_s.max(initial=0.0)))


@dataclass(frozen=True)
class PlacementOutcome:
    """A placement on the workload of one seed."""

    placement: str  # Name of the placement
    seed: int  # The seed
    metrics: ScheduleMetrics  # Metrics of the schedule, as a whole and by machine
    machines: Sequence[MachineMetrics]
    # Share of the jobs that ran on a machine where they run fastest, of those on which they run
    on_fastest: float
    # Processor-seconds that jobs occupied over those that they would occupy on the machines where they run
    # fastest; `None` if these are 0
    work_over_least: float | None
    simulation_s: float  # How long the simulation took, in seconds


def outcome_of(
    placement: str, seed: int, workload: Workload, schedule: Schedule, simulation_s: float
) -> PlacementOutcome:
    """Measure a schedule."""
    run_s = np.where(workload.runs_on, workload.jobs.run_s, np.inf)
    least_s = run_s.min(axis=1)
    own_s = run_s[np.arange(len(workload)), schedule.machine]
    procs = workload.jobs.procs
    least_work = float((procs * least_s).sum())
    return PlacementOutcome(
        placement=placement,
        seed=seed,
        metrics=metrics_of(schedule),
        machines=per_machine(schedule),
        on_fastest=float((own_s == least_s).mean()),
        work_over_least=float((procs * own_s).sum()) / least_work if least_work > 0 else None,
        simulation_s=simulation_s,
    )


REFERENCES = ("user", "exact")
"""Placements that others are compared with, where they are there."""


@dataclass(frozen=True)
class PlacementSummary:
    """A placement over all seeds."""

    placement: str  # Name of the placement
    jobs: int  # How many jobs there are for each seed
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
    # For each of `REFERENCES` that is there: its makespan's ratio to that one's, less 1, seed by seed
    against: dict[str, SeedMean]
    outcomes: Sequence[PlacementOutcome]  # What each seed came to

    def to_dict(self) -> dict[str, object]:
        """Everything, for JSON: means, their intervals (null with one seed), and what each seed came to."""
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


def summaries(outcomes: Sequence[PlacementOutcome]) -> list[PlacementSummary]:
    """Summarize each placement, in the order in which they are first there."""
    by_name: dict[str, list[PlacementOutcome]] = {}
    for outcome in outcomes:
        by_name.setdefault(outcome.placement, []).append(outcome)
    return [_summary(name, own, by_name) for name, own in by_name.items()]


def _summary(
    name: str, own: list[PlacementOutcome], by_name: dict[str, list[PlacementOutcome]]
) -> PlacementSummary:
    metrics = [outcome.metrics for outcome in own]
    return PlacementSummary(
        placement=name,
        jobs=metrics[0].jobs,
        makespan_s=mean_of([each.makespan_s for each in metrics]),
        average_bounded_slowdown=mean_of([each.average_bounded_slowdown for each in metrics]),
        mean_wait_s=_mean([each.mean_wait_s for each in metrics]),
        median_wait_s=_mean([each.median_wait_s for each in metrics]),
        wait_p95_s=_mean([each.wait_p95_s for each in metrics]),
        utilisation=_mean_if_known([each.utilisation for each in metrics]),
        on_fastest=_mean([each.on_fastest for each in own]),
        work_over_least=_mean_if_known([each.work_over_least for each in own]),
        simulation_s=_mean([each.simulation_s for each in own]),
        machines=[
            _machine([outcome.machines[place] for outcome in own]) for place in range(len(own[0].machines))
        ],
        against={
            reference: mean_of(
                [
                    one.metrics.makespan_s / other.metrics.makespan_s - 1
                    for one, other in zip(own, by_name[reference], strict=True)
                ]
            )
            for reference in REFERENCES
            if reference in by_name
            and reference != name
            and all(each.metrics.makespan_s > 0 for each in by_name[reference])
        },
        outcomes=own,
    )


def _machine(own: list[MachineMetrics]) -> MachineMetrics:
    return replace(
        own[0],
        jobs=round(np.mean([each.jobs for each in own])),
        utilisation=_mean_if_known([each.utilisation for each in own]),
        mean_wait_s=_mean_if_known([each.mean_wait_s for each in own]),
        average_bounded_slowdown=_mean_if_known([each.average_bounded_slowdown for each in own]),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _mean_if_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if len(known) == len(values) else None


MOST_TYPES = 200_000
"""Most types of jobs for which the least makespan is looked for: about ten seconds."""

_DRAW, _PLACE = 0, 1
"""Two independent streams of chance for each seed: the same workload for all placements."""


@dataclass(frozen=True)
class Setup:
    """What is compared on what."""

    placements: Sequence[str]  # Names of placements, of `crosscast.cluster.placements`
    jobs: int | None  # How many jobs are drawn for each seed; `None` for one of each type, in their order
    seeds: Sequence[int]  # A workload is drawn for each
    # When these are submitted, with `jobs` `None`: ascending, in seconds; `None` for all at once
    submit_s: Reals | None = None
    # Mean time between submissions of drawn jobs, in seconds; 0 if all are submitted at once
    interarrival_s: float = 0.0
    policy: Policy = field(default_factory=Policy)  # Order of the queue, and of backfilling
    # What the scheduler thinks that jobs take: what they do, or what was predicted
    estimates: Literal["exact", "predicted"] = "exact"


@dataclass(frozen=True)
class Experiment:
    """What an experiment found."""

    setup: Setup  # What was compared
    results: Sequence[PlacementSummary]  # Each placement, over all seeds
    at_once: bool  # Whether all jobs of each seed were submitted at the same time
    # Mean over seeds of the least makespan that any placement could have; `None` if jobs are not all
    # submitted at once, or of more types than `MOST_TYPES`
    least_makespan_s: SeedMean | None


def interarrival_of_load(types: Workload, load: float) -> float:
    """Mean time between submissions with which drawn jobs are a given load, in seconds.

    A load of 1 is as much as the machines can do at best, if each job goes where that is best for all.
    """
    if not (load > 0 and np.isfinite(load)):
        raise InputError.of(field="load", expected="a number above 0", found=f"{load}")
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
    check_placements(list(setup.placements))
    if not setup.placements or not setup.seeds:
        raise InputError.of(field="experiment", expected="at least one placement and one seed", found="none")
    outcomes: list[PlacementOutcome] = []
    at_once: list[bool] = []
    least: list[float] = []
    total = len(setup.seeds) * len(setup.placements)
    for seed in setup.seeds:
        workload, counts = _workload(types, setup, seed)
        at_once.append(workload.jobs.submit_s[0] == workload.jobs.submit_s[-1])
        if at_once[-1] and len(types) <= MOST_TYPES:
            least.append(least_makespan_s(types, counts))
        placed = (
            PLACEMENTS[name](workload, np.random.default_rng((seed, _PLACE))) for name in setup.placements
        )
        runs = ((workload.jobs, workload.machines, setup.policy, each) for each in placed)
        for name, (schedule, spent_s) in zip(setup.placements, mapped(timed, runs), strict=True):
            outcomes.append(outcome_of(name, seed, workload, schedule, spent_s))
            if keep is not None:
                keep(name, seed, schedule)
            if progress is not None:
                progress(len(outcomes), total, name)
    bound = mean_of(least) if len(least) == len(setup.seeds) else None
    return Experiment(setup, summaries(outcomes), all(at_once), bound)


def _workload(types: Workload, setup: Setup, seed: int) -> tuple[Workload, Integers]:
    """The jobs of a seed, and how many there are of each type."""
    if seed < 0:
        raise InputError.of(field="seed", expected="at least 0", found=f"{seed}")
    generator = np.random.default_rng((seed, _DRAW))
    if setup.jobs is None:
        places = np.arange(len(types))
        submit_s = np.zeros(len(types)) if setup.submit_s is None else setup.submit_s
        workload = replace(types, jobs=replace(types.jobs, submit_s=submit_s))
    else:
        places = draw_types(len(types), setup.jobs, generator)
        workload = drawn(types, places, submissions(setup.jobs, setup.interarrival_s, generator))
    if setup.estimates == "predicted":
        if workload.predicted_s is None:
            raise InputError.of(field="estimates", expected="jobs with predicted times", found="none")
        # Where a job cannot run, nothing is expected of it.
        estimate_s = np.where(workload.runs_on, workload.predicted_s, np.inf)
        workload = replace(workload, jobs=workload.jobs.with_estimates(estimate_s))
    return workload, np.bincount(places, minlength=len(types))


def experiment_facts(
    found: Experiment, label: str, types: Workload, left_out: Mapping[str, int]
) -> dict[str, object]:
    """What was compared on what, for JSON and for people."""
    setup = found.setup
    user = without_choice(types) if "user" in setup.placements else None
    notes = [f"{count:,} left out: {reason}" for reason, count in left_out.items()]
    return {
        "name": label,
        "types": len(types),
        "jobs": found.results[0].jobs,
        "drawn": setup.jobs is not None,
        "seeds": list(setup.seeds),
        "submitted": _submitted(found),
        "interarrival_s": setup.interarrival_s or None,
        "policy": policy_label(setup.policy),
        "estimates": setup.estimates,
        "machines": [
            {"machine": machine.name, "procs": machine.procs, "gpu": machine.has_gpu}
            for machine in types.machines
        ],
        "least_makespan_s": None if found.least_makespan_s is None else found.least_makespan_s.value,
        "notes": [*notes, *([user] if user else [])],
    }


def _submitted(found: Experiment) -> str:
    if found.at_once:
        return "at once"
    return "as the trace says" if found.setup.jobs is None else "poisson"
