"""Evaluation of models of jobs on parts of a GPU: mixes or jobs are held out, and predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Arrays
from crosscast.data.corun import Mixes
from crosscast.errors import InputError
from crosscast.evaluation.corun_scores import CoRunResult, Scored, ScoreTable, scores_of
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import check_level, check_seed, run_tasks
from crosscast.prediction.corun.partition import (
    PARTITION_BASELINES,
    MixFold,
    Novelty,
    PartitionModel,
    folds_without_jobs,
    folds_without_sets,
)

MIX_SPLITS: Mapping[str, Novelty] = {"leave-benchmark-out": "new job", "leave-bag-out": "known jobs"}
"""Names of the splits, and what is asked about in each."""

_MIX_FOLDS = 5
_SOURCES = ("prediction", "evaluation/partition.py", "evaluation/corun_scores.py", "data/corun.py")


def folds_of_mixes(mixes: Mixes, split: str, seed: int) -> tuple[MixFold, ...]:
    """Split mixes into folds.

    Where a benchmark is left out, all mixes with it are, whatever else is in them; it alone is predicted.
    Mixes are left out in folds, those of the same jobs together.
    """
    if split not in MIX_SPLITS:
        expected = f"one of {', '.join(MIX_SPLITS)} of mixes"
        raise InputError.of(where="split", expected=expected, found=repr(split))
    if split == "leave-bag-out":
        return folds_without_sets(mixes, _MIX_FOLDS, seed)
    there = np.unique(mixes.job[mixes.judged])
    if len(there) < 3:
        raise InputError.of(where="applications", expected="at least 3 to leave one out", found=len(there))
    return folds_without_jobs(mixes, [np.array([job]) for job in there.tolist()])


@dataclass(frozen=True, eq=False)
class PartitionTask:
    """A model that is fitted to what a fold leaves and predicts what it holds out."""

    model: PartitionModel
    fold: MixFold
    level: float  # Probability that intervals are to hold
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"

    @property
    def asks(self) -> list[object]:
        """All that the prediction depends on besides the mixes."""
        return [[fingerprint(self.model), digest([self.fold.train, self.fold.test]), self.level, self.seed]]

    def run(self, mixes: Mixes, asks: Sequence[int]) -> list[Arrays]:
        """Fit and predict."""
        fitted = self.model.fit(mixes.where(self.fold.train), self.seed)
        met = np.asarray(self.fold.test.any(axis=1))
        tested = mixes.where(met)
        found = fitted.predict(tested.shared, tested.judged, self.level)
        # Others of a mix are predicted with those that are tested.
        asked = self.fold.test[met][tested.judged]
        return [{name: array[asked] for name, array in vars(found).items()} for _ in asks]

    def sound(self, mixes: Mixes, ask: int, arrays: Arrays) -> bool:
        """Whether arrays are predictions of what is held out."""
        shape = int(self.fold.test.sum()), len(mixes.slices)
        return {name: array.shape for name, array in arrays.items()} == dict.fromkeys(_PARTS, shape)


_PARTS = ("centre", "low", "high")


@dataclass(frozen=True, eq=False)
class PartitionResult(CoRunResult):
    """How good a model is on parts of one size, or on all of them."""

    slices: float | None = None  # Slices of the parts; `None` for all sizes together


@dataclass(frozen=True, eq=False)
class PartitionEvaluation(ScoreTable):
    """How models did."""

    mixes: Mixes  # Mixes, without copies that differ in the order of co-runners alone
    copies: int  # How many copies were left out
    split: str  # As they were asked for
    level: float
    seed: int
    results: tuple[PartitionResult, ...]  # For each model: of all sizes of parts, and of each

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


def evaluate_partition(
    mixes: Mixes,
    models: Sequence[str],
    split: str,
    *,
    folds: Sequence[MixFold] | None = None,
    level: float = 0.9,
    seed: int = 0,
    **run: Any,
) -> PartitionEvaluation:
    """Fit models to what each fold leaves, and score them on what it holds out.

    Copies of mixes are left out first, unless folds are given. Nothing of what is held out is used to scale,
    choose or calibrate: models are given the other mixes alone. What is predicted is the relative time of a
    co-runner alone on a part, over that on the part on which it is slowest. `run` is as `run_tasks` has it.
    """
    check_seed(seed)
    check_level(level)
    distinct = mixes.without_copies() if folds is None else mixes
    folds = folds_of_mixes(distinct, split, seed) if folds is None else folds
    made = [PartitionModel(name, MIX_SPLITS[split]) for name in dict.fromkeys(models)]
    tasks = [PartitionTask(model, fold, level, seed) for model in made for fold in folds]
    answers = iter(run_tasks(tasks, distinct, sources=_SOURCES, **run))
    true = np.concatenate([distinct.alone[fold.test] for fold in folds])
    fold_of = np.repeat(np.arange(len(folds)), [int(fold.test.sum()) for fold in folds])
    results = []
    for model in made:
        parts = [next(answers)[0] for _ in folds]
        centre, low, high = (np.concatenate([part[name] for part in parts]) for name in _PARTS)
        for slices in (None, *distinct.slices):
            some = slice(None) if slices is None else [distinct.slices.index(slices)]
            measured, *limits = (each[:, some].ravel() for each in (true, centre, low, high))
            group = np.repeat(fold_of, len(measured) // len(fold_of))
            size = np.full(len(group), distinct.job.shape[1], dtype=np.int64)
            scored = Scored(measured, limits[0], limits[1], limits[2], group, size)
            scores = scores_of(scored, [fold.held_out for fold in folds])
            baseline = model.name in PARTITION_BASELINES
            result = PartitionResult(
                model.name, baseline, split, 0, None, "partition", **scores, slices=slices
            )
            results.append(result)
    return PartitionEvaluation(distinct, len(mixes) - len(distinct), split, level, seed, tuple(results))
