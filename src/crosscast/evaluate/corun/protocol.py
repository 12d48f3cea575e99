"""Evaluation of models of co-running: fitted to some bags, scored on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.arrays import Flags
from crosscast.errors import InputError
from crosscast.evaluate.corun.metrics import Scored, area_under_curve, mean_error, worst_coverage
from crosscast.evaluate.corun.quantities import FITS, QUANTITIES, measured
from crosscast.evaluate.corun.result import CoRunResult
from crosscast.evaluate.corun.splits import CoRunFold, folds_of
from crosscast.evaluate.corun.task import Answer, CoRunTask
from crosscast.evaluate.corun.work import answers_of
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.seeds import check_seed
from crosscast.predict.corun.model import CoRunModel
from crosscast.tables.corun.view import CoRuns

__all__ = ["CoRunEvaluation", "evaluate_corun", "results_of"]


@dataclass(frozen=True, eq=False)
class CoRunEvaluation:
    """How models did in one split.

    Parameters
    ----------
    co_runs
        All solo runs and bags.
    split, probes, level, seed
        As they were asked for.
    folds
        The folds, of each number of probes.
    results
        For each model, number of probes and quantity: of all bags, and of those of each size.
    """

    co_runs: CoRuns
    split: str
    probes: tuple[int, ...]
    level: float | None
    seed: int
    folds: dict[int, tuple[CoRunFold, ...]]
    results: tuple[CoRunResult, ...]


def evaluate_corun(
    co_runs: CoRuns,
    models: Sequence[CoRunModel],
    split: str,
    *,
    baselines: Sequence[str] = (),
    probes: Sequence[int] = (0,),
    level: float | None = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> CoRunEvaluation:
    """Fit models to the bags that each fold leaves, and score them on those that it holds out.

    Nothing of what is held out is used to scale, tune, select or calibrate: models are given the other bags
    alone, and the width of intervals comes from groups that are left out within these.

    Parameters
    ----------
    co_runs
        All solo runs and bags, of one device.
    models
        The models; their names differ.
    split
        One of `crosscast.evaluate.corun.splits.SPLITS`.
    baselines
        Names of models that others are compared with.
    probes
        Numbers of bags with each input (size) of what is left out that are known.
    level
        Probability that intervals are to hold; ``None`` for no intervals, which take most of the time.
    seed
        Start of all random numbers.
    progress
        Called whenever a fit is done.
    cache
        Folder that keeps what was predicted in finished folds; nothing is kept by default.
    jobs
        Processes that work at the same time; the results are the same.

    Raises
    ------
    InputError
        If there is no model, or two of a name, too little to split, no such split, a level that is no
        probability, or a model cannot be fitted.
    """
    check_seed(seed)
    names = [model.name for model in models]
    if not names or len(set(names)) < len(names):
        raise InputError(f"models: expected at least one, and each once, found {', '.join(names) or 'none'}")
    if level is not None and not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")
    if (any(probes) and split != "leave-benchmark-out") or min(probes, default=0) < 0:
        raise InputError(
            f"probes: expected 0 but where benchmarks are left out, and no fewer, found {min(probes)} to "
            f"{max(probes)}"
        )
    probes = tuple(dict.fromkeys(probes))
    folds = dict.fromkeys(probes, folds_of(co_runs.bags, split, seed))
    tasks = [
        CoRunTask(model, fold, split, count, level, seed)
        for count in probes
        for model in models
        for fold in folds[count]
    ]
    answers = iter(answers_of(co_runs, tasks, progress=progress, cache=cache, jobs=jobs))
    results = [
        result
        for count in probes
        for model in models
        for result in results_of(
            co_runs,
            model.name,
            model.name in baselines,
            split,
            count,
            folds[count],
            [next(answers) for _ in folds[count]],
        )
    ]
    return CoRunEvaluation(co_runs, split, probes, level, seed, folds, tuple(results))


def results_of(
    co_runs: CoRuns,
    model: str,
    baseline: bool,
    split: str,
    probes: int,
    folds: Sequence[CoRunFold],
    answers: Sequence[Answer],
) -> Iterator[CoRunResult]:
    """Score what a model predicted of the bags that folds hold out.

    Parameters
    ----------
    co_runs
        All bags.
    model, baseline, split, probes
        What the results are of.
    folds, answers
        What was held out, and what was predicted of it.

    Yields
    ------
    CoRunResult
        For each quantity: of all bags, and of those of each size.
    """
    for quantity in QUANTITIES:
        scored = _scored(co_runs, folds, answers, quantity)
        for size, chosen in _by_size(scored):
            some = scored.where(chosen)
            mape, mae = mean_error(some)
            has_limits = bool(np.isfinite(some.low).any())
            least = worst_coverage(some) if has_limits else None
            yield CoRunResult(
                model,
                baseline,
                split,
                probes,
                size,
                quantity,
                len(some),
                mape,
                mae,
                float(np.nanmean(some.held)) if has_limits else None,
                float(np.nanmean(some.high - some.low)) if has_limits else None,
                None if least is None else least[1],
                None if least is None else folds[least[0]].held_out,
                by_group={
                    folds[group].held_out: mean_error(some.where(some.group == group))[0]
                    for group in np.unique(some.group).tolist()
                },
                scored=some,
            )
    fits = _scored(co_runs, folds, answers, FITS)
    for size, chosen in _by_size(fits):
        some = fits.where(chosen)
        auc = area_under_curve(some.true, some.centre)
        if auc is not None:
            yield CoRunResult(model, baseline, split, probes, size, FITS, len(some), auc=auc)


def _scored(co_runs: CoRuns, folds: Sequence[CoRunFold], answers: Sequence[Answer], quantity: str) -> Scored:
    parts = []
    for number, (fold, answer) in enumerate(zip(folds, answers, strict=True)):
        bags = [co_runs.bags[place] for place in fold.test.tolist()]
        rows, centre = measured(bags, quantity), answer.values[quantity]
        known = np.isfinite(rows.value) & np.isfinite(centre)
        sizes = np.array([len(bag.members) for bag in bags], dtype=np.int64)
        factor = np.exp(answer.reach.get(quantity, np.full_like(centre, np.nan)))
        part = Scored(
            rows.value,
            centre,
            centre / factor,
            centre * factor,
            np.full(len(centre), number, np.int64),
            sizes[rows.bag],
        )
        parts.append(part.where(known))
    return Scored(
        *(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True))
    )


def _by_size(scored: Scored) -> Iterator[tuple[int | None, Flags]]:
    """All rows, and those of each size of bags; nothing where there are none."""
    if len(scored):
        yield None, np.ones(len(scored), dtype=np.bool_)
        for size in np.unique(scored.bag_size).tolist():
            yield size, scored.bag_size == size
