"""Placements on the same workloads, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from crosscast.cluster.experiment.capacity import least_makespan_s, least_work_s
from crosscast.cluster.experiment.draw import draw_types, drawn, submissions
from crosscast.cluster.experiment.mean_interval import Mean, mean_of
from crosscast.cluster.experiment.outcome import Outcome, outcome_of
from crosscast.cluster.experiment.summary import PlacementSummary, summaries
from crosscast.cluster.experiment.timed import timed
from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.placements.registry import PLACEMENTS, check_placements
from crosscast.cluster.placements.workload import Workload
from crosscast.cluster.policy import Policy
from crosscast.cluster.schedule import Schedule
from crosscast.errors import InputError

__all__ = ["MOST_TYPES", "Experiment", "Setup", "interarrival_of_load", "run_experiment"]

MOST_TYPES = 200_000
"""Most types of jobs for which the least makespan is looked for: about ten seconds."""

_DRAW, _PLACE = 0, 1
"""Two independent streams of chance for each seed: the same workload for all placements."""


@dataclass(frozen=True)
class Setup:
    """What is compared on what.

    Parameters
    ----------
    placements
        Names of placements, of `crosscast.cluster.placements.registry`.
    jobs
        How many jobs are drawn for each seed; ``None`` for one of each type, in their order.
    submit_s
        When these are submitted, with `jobs` ``None``: ascending, in seconds; ``None`` for all at once.
    seeds
        A workload is drawn for each.
    interarrival_s
        Mean time between submissions of drawn jobs, in seconds; 0 if all are submitted at once.
    policy
        Order of the queue, and of backfilling.
    estimates
        What the scheduler thinks that jobs take: what they do, or what was predicted.
    """

    placements: Sequence[str]
    jobs: int | None
    seeds: Sequence[int]
    submit_s: Reals | None = None
    interarrival_s: float = 0.0
    policy: Policy = field(default_factory=Policy)
    estimates: Literal["exact", "predicted"] = "exact"


@dataclass(frozen=True)
class Experiment:
    """What an experiment found.

    Parameters
    ----------
    setup
        What was compared.
    results
        Each placement, over all seeds.
    at_once
        Whether all jobs of each seed were submitted at the same time.
    least_makespan_s
        Mean over seeds of the least makespan that any placement could have; ``None`` if jobs are not all
        submitted at once, or of more types than `MOST_TYPES`.
    """

    setup: Setup
    results: Sequence[PlacementSummary]
    at_once: bool
    least_makespan_s: Mean | None


def interarrival_of_load(types: Workload, load: float) -> float:
    """Mean time between submissions with which drawn jobs are a given load, in seconds.

    A load of 1 is as much as the machines can do at best, if each job goes where that is best for all.

    Raises
    ------
    InputError
        If the load is not above 0.
    MissingExtraError
        If SciPy is not installed.
    """
    if not (load > 0 and np.isfinite(load)):
        raise InputError(f"load: expected a number above 0, found {load}")
    count = len(types)
    return least_work_s(types, np.ones(count, dtype=np.int64)) / count / load


def run_experiment(
    types: Workload,
    setup: Setup,
    *,
    progress: Callable[[int, int, str], None] | None = None,
    keep: Callable[[str, int, Schedule], None] | None = None,
) -> Experiment:
    """Draw workloads and simulate each placement on each: section VII of Nichols et al. 2024.

    Parameters
    ----------
    types
        A job of each type.
    setup
        What to compare.
    progress
        Told how many simulations are done, of how many, and which was the last.
    keep
        Given each schedule with its placement and seed, as none is kept here.

    Raises
    ------
    InputError
        If there is no such placement, or the setup asks for what the types do not have.
    MissingExtraError
        If an optional part is not installed.
    """
    check_placements(list(setup.placements))
    if not setup.placements or not setup.seeds:
        raise InputError("experiment: expected at least one placement and one seed, found none")
    outcomes: list[Outcome] = []
    at_once: list[bool] = []
    least: list[float] = []
    total = len(setup.seeds) * len(setup.placements)
    for seed in setup.seeds:
        workload, counts = _workload(types, setup, seed)
        at_once.append(workload.jobs.submit_s[0] == workload.jobs.submit_s[-1])
        if at_once[-1] and len(types) <= MOST_TYPES:
            least.append(least_makespan_s(types, counts))
        for name in setup.placements:
            placement = PLACEMENTS[name](workload, np.random.default_rng((seed, _PLACE)))
            schedule, spent_s = timed(workload.jobs, workload.machines, setup.policy, placement)
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
        raise InputError(f"seed: expected at least 0, found {seed}")
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
            raise InputError("estimates: expected jobs with predicted times, found none")
        # Where a job cannot run, nothing is expected of it.
        estimate_s = np.where(workload.runs_on, workload.predicted_s, np.inf)
        workload = replace(workload, jobs=workload.jobs.with_estimates(estimate_s))
    return workload, np.bincount(places, minlength=len(types))
