"""An evaluation of models of parts: fitted to some mixes, scored on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.errors import InputError
from crosscast.evaluate.corun.metrics import Scored, mean_error, worst_coverage
from crosscast.evaluate.corun.partition.folds import MIX_SPLITS, folds_of_mixes
from crosscast.evaluate.corun.partition.result import PARTITION, PartitionResult
from crosscast.evaluate.corun.partition.work import PartitionTask, predictions_of
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.seeds import check_seed
from crosscast.predict.corun.partition.left_out import MixFold
from crosscast.predict.corun.partition.model import PartitionPrediction
from crosscast.predict.corun.partition.registry import PARTITION_BASELINES, partition_models
from crosscast.tables.corun.mixes import Mixes

__all__ = ["PartitionStudy", "partition_results", "study_partitions"]


@dataclass(frozen=True, eq=False)
class PartitionStudy:
    """How models did.

    Parameters
    ----------
    mixes
        Mixes, without copies that differ in the order of members alone.
    copies
        How many copies were left out.
    split, level, seed
        As they were asked for.
    results
        For each model: of all sizes of parts, and of each.
    """

    mixes: Mixes
    copies: int
    split: str
    level: float
    seed: int
    results: tuple[PartitionResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything but predictions, as ``--json`` prints it: what is not known is null."""
        mixes = self.mixes
        return {
            "dataset": mixes.label,
            "target": "corun",
            "protocol": self.split,
            "seed": self.seed,
            "level": self.level,
            "device": mixes.device,
            "mps_percent": list(mixes.levels),
            "mig_gpcs": list(mixes.slices),
            "bags": len(mixes),
            "copies": self.copies,
            "members": int(mixes.judged.sum()),
            "applications": [mixes.jobs[job] for job in np.unique(mixes.job[mixes.judged]).tolist()],
            "results": [result.to_dict() for result in self.results],
        }


def study_partitions(
    mixes: Mixes,
    models: Sequence[str],
    split: str,
    *,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> PartitionStudy:
    """Evaluate models on mixes, of which copies are left out first.

    Nothing of what is held out is used to scale, choose or calibrate: models are given the other mixes alone.

    Parameters
    ----------
    mixes
        All mixes.
    models
        Names of models; see `crosscast.predict.corun.partition.registry`.
    split
        One of `crosscast.evaluate.corun.partition.folds.MIX_SPLITS`.
    level
        Probability that intervals are to hold.
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
        If there is no such model or split, a level that is no probability, or too little to split.
    """
    distinct = mixes.without_copies()
    folds = folds_of_mixes(distinct, split, seed)
    results = partition_results(
        distinct, models, split, folds, level=level, seed=seed, progress=progress, cache=cache, jobs=jobs
    )
    return PartitionStudy(distinct, len(mixes) - len(distinct), split, level, seed, results)


def partition_results(
    mixes: Mixes,
    models: Sequence[str],
    split: str,
    folds: Sequence[MixFold],
    *,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> tuple[PartitionResult, ...]:
    """Fit models to what each fold leaves, and score them on what it holds out.

    Parameters
    ----------
    mixes
        Mixes without copies.
    split
        What the folds are: it says what is left out within training, too.
    folds
        The folds.
    models, level, seed, progress, cache, jobs
        As `study_partitions` has them.

    Raises
    ------
    InputError
        As there.
    """
    check_seed(seed)
    if not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")
    made = partition_models(models, MIX_SPLITS[split])
    tasks = [PartitionTask(model, fold, level, seed) for model in made for fold in folds]
    found = predictions_of(mixes, tasks, progress=progress, cache=cache, jobs=jobs)
    return tuple(
        result
        for number, model in enumerate(made)
        for result in _results(
            mixes, model.name, split, folds, found[number * len(folds) : (number + 1) * len(folds)]
        )
    )


def _results(
    mixes: Mixes,
    model: str,
    split: str,
    folds: Sequence[MixFold],
    predictions: Sequence[PartitionPrediction],
) -> Iterator[PartitionResult]:
    for slices in (None, *mixes.slices):
        columns = slice(None) if slices is None else [mixes.slices.index(slices)]
        scored = _scored(mixes, folds, predictions, columns)
        mape, mae = mean_error(scored)
        group, least = worst_coverage(scored)
        yield PartitionResult(
            model,
            model in PARTITION_BASELINES,
            split,
            0,
            None,
            PARTITION,
            len(scored),
            mape,
            mae,
            float(scored.held.mean()),
            float((scored.high - scored.low).mean()),
            least,
            folds[group].held_out,
            by_group={
                fold.held_out: mean_error(scored.where(scored.group == number))[0]
                for number, fold in enumerate(folds)
            },
            scored=scored,
            slices=slices,
        )


def _scored(
    mixes: Mixes,
    folds: Sequence[MixFold],
    predictions: Sequence[PartitionPrediction],
    columns: slice | list[int],
) -> Scored:
    true = [mixes.alone[fold.test][:, columns] for fold in folds]
    centre, low, high = (
        np.concatenate([getattr(each, name)[:, columns].ravel() for each in predictions])
        for name in ("centre", "low", "high")
    )
    group = np.repeat(np.arange(len(folds)), [part.size for part in true])
    size = np.full(len(group), mixes.job.shape[1], dtype=np.int64)
    return Scored(np.concatenate([part.ravel() for part in true]), centre, low, high, group, size)
