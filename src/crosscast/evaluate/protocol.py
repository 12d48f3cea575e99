"""Honest evaluation: each group is held out of everything that a model does, and then predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from crosscast.arrays import Flags
from crosscast.errors import InputError
from crosscast.evaluate.asking import Answers, known_sets, outcomes_of
from crosscast.evaluate.outcome import Outcome
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.scores import Scores, tallies_of, weighted_scores
from crosscast.evaluate.seeds import check_seed
from crosscast.evaluate.splits import DEFAULT, Fold, Split, split_named
from crosscast.evaluate.tally import Tally
from crosscast.evaluate.work import Task, run_tasks
from crosscast.predict.grid import Grid
from crosscast.predict.model import Model

__all__ = ["Evaluation", "Result", "application_names", "evaluate"]


@dataclass(frozen=True)
class Result:
    """How one model did.

    Parameters
    ----------
    model
        Its name.
    split
        Name of the split.
    probes
        On how many devices each held-out kernel was measured before the others were predicted.
    level
        Probability that the intervals were to hold.
    names
        Names of all applications, sorted.
    outcomes
        What was forecast and measured; one for each set of devices that were measured on.
    """

    model: str
    split: str
    probes: int
    level: float
    names: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """What the scores are made of, for each outcome."""
        return tallies_of(self.outcomes, self.names, self.level)

    @cached_property
    def scores(self) -> Scores:
        """Scores, as means over the sets of devices that were measured on."""
        return weighted_scores(self.tallies, np.ones((1, len(self.names))))[0]

    @cached_property
    def applications(self) -> dict[str, Scores]:
        """Scores within each application alone, by its name."""
        weights = np.eye(len(self.names))
        return dict(zip(self.names, weighted_scores(self.tallies, weights), strict=True))

    @cached_property
    def without(self) -> dict[str, Scores]:
        """Scores over all applications but one, by the name of that one."""
        weights = 1 - np.eye(len(self.names))
        return dict(zip(self.names, weighted_scores(self.tallies, weights), strict=True))

    def on(self, device: int) -> Result:
        """The same with the cells of one device alone counted, by its number."""
        return replace(self, outcomes=tuple(outcome.on(device) for outcome in self.outcomes))


@dataclass(frozen=True)
class Evaluation:
    """How models did on one split of one grid.

    Parameters
    ----------
    grid
        What they learned from and were asked about.
    split
        Name of the split.
    seed
        Start of all random numbers.
    level
        Probability that the intervals were to hold.
    results
        A result for each model and number of probes, in the order in which they were named.
    """

    grid: Grid
    split: str
    seed: int
    level: float
    results: tuple[Result, ...]


def evaluate(
    grid: Grid,
    models: Sequence[Model],
    split: str = DEFAULT,
    *,
    probes: Sequence[int] = (0,),
    seed: int = 0,
    level: float = 0.9,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Evaluation:
    """Fit models to all groups but one, predict that one, for each group; and score the forecasts.

    A kernel that is measured on devices (probes) before the others are predicted is scored on the others;
    all sets of so many devices are tried (at most `crosscast.evaluate.probing.MOST_SETS`), and the scores
    averaged over them.

    Parameters
    ----------
    grid
        Kernels and their times.
    models
        The models; their names differ.
    split
        What is held out: ``leave-application-out``, ``leave-kernel-out``, ``leave-device-out`` (each
        kernel's times on the other devices are told, so `probes` does not matter) or
        ``leave-device-and-application-out``.
    probes
        Numbers of devices that a held-out kernel is measured on, each a result of its own.
    seed
        Start of all random numbers.
    level
        Probability that the intervals are to hold.
    progress
        Called whenever a fold is done.
    cache
        Folder that keeps the forecasts of finished folds; nothing is kept by default.
    jobs
        Processes that work at the same time; the results are the same.

    Raises
    ------
    InputError
        If there is no model, or two of a name, the level is no probability, the seed is negative or too
        large, there is no such split, the grid has too few groups for it, a number of probes leaves no device
        to predict, or a model cannot be fitted to so little.
    """
    check_seed(seed)
    _check(models, level)
    chosen = split_named(split)
    folds = chosen.folds(grid)
    counts = _probe_counts(grid, chosen, probes)
    knowns = [[known_sets(grid, chosen, fold, count, seed) for count in counts] for fold in folds]
    tasks = [
        Task(model, fold, tuple(known), seed, level)
        for model in models
        for fold, known in zip(folds, knowns, strict=True)
    ]
    answers = run_tasks(grid, tasks, progress=progress, cache=cache, jobs=jobs)
    names = application_names(grid)
    results = []
    for place, model in enumerate(models):
        of_model = answers[place * len(folds) : (place + 1) * len(folds)]
        for number, count in enumerate(counts):
            outcomes = _outcomes(grid, chosen, folds, of_model, knowns, number)
            results.append(Result(model.name, split, count, level, names, outcomes))
    return Evaluation(grid, split, seed, level, tuple(results))


def _check(models: Sequence[Model], level: float) -> None:
    names = [model.name for model in models]
    if not names or len(set(names)) < len(names):
        raise InputError(f"models: expected at least one, and each once, found {', '.join(names) or 'none'}")
    if not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level}")


def application_names(grid: Grid) -> tuple[str, ...]:
    """Names of the applications of a grid, sorted: the order in which scores weight them."""
    return tuple(sorted(set(grid.profiles.application)))


def _probe_counts(grid: Grid, split: Split, probes: Sequence[int]) -> tuple[int, ...]:
    if split.known_elsewhere:
        return (len(grid.devices) - 1,)
    if split.new_devices and any(probes):
        raise InputError(f"probes: expected 0 with {split.name}, found {max(probes)}")
    return tuple(dict.fromkeys(probes))


def _outcomes(
    grid: Grid,
    split: Split,
    folds: Sequence[Fold],
    answers: Sequence[Sequence[Answers]],
    knowns: Sequence[Sequence[Flags]],
    number: int,
) -> tuple[Outcome, ...]:
    return outcomes_of(
        grid, split, folds, [answer[number] for answer in answers], [known[number] for known in knowns]
    )
