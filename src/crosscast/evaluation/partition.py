"""Splits of mixes of jobs: what is held out, and what a model may learn from meanwhile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.errors import InputError
from crosscast.evaluation.cache_folder import (
    cache_key,
    cached_arrays,
    cached_file,
    fingerprint,
    sources_digest,
)
from crosscast.evaluation.corun import CoRunResult, Scored, mean_error, worst_coverage
from crosscast.evaluation.processes import Progress, check_seed, done_tasks, one_thread
from crosscast.predict.corun.partition import (
    PARTITION_BASELINES,
    Jobs,
    MixFold,
    PartitionModel,
    PartitionPrediction,
    folds_without_jobs,
    folds_without_sets,
    partition_models,
)
from crosscast.tables.corun.mixes import Mixes
from crosscast.tables.whole_file import make_folder

MIX_SPLITS: Mapping[str, Jobs] = {"leave-benchmark-out": "new job", "leave-bag-out": "known jobs"}
"""Names of the splits, and what is asked about in each."""

MIX_FOLDS = 5
"""Folds where mixes are left out."""


def folds_of_mixes(mixes: Mixes, split: str, seed: int) -> tuple[MixFold, ...]:
    """Split mixes into folds.

    Where a benchmark is left out, all mixes with it are, whatever else is in them; it alone is predicted.
    Mixes are left out in folds, those of the same jobs together.
    """
    if split not in MIX_SPLITS:
        raise InputError(f"split: expected one of {', '.join(MIX_SPLITS)} of mixes, found {split!r}")
    if split == "leave-bag-out":
        return folds_without_sets(mixes, MIX_FOLDS, seed)
    there = np.unique(mixes.job[mixes.judged])
    if len(there) < 3:
        raise InputError(f"applications: expected at least 3 to leave one out, found {len(there)}")
    return folds_without_jobs(mixes, [np.array([job]) for job in there.tolist()])


PARTITION = "partition"
"""Quantity: relative time of a member alone on a part, over that on the part on which it is slowest."""


@dataclass(frozen=True, eq=False)
class PartitionResult(CoRunResult):
    """How good a model is on parts of one size, or on all of them."""

    slices: float | None = None  # Slices of the parts; `None` for all sizes together


_SOURCES = ("predict", "evaluation/partition.py", "tables/corun/mixes.py")
_NAMES = ("centre", "low", "high")


@dataclass(frozen=True, eq=False)
class PartitionTask:
    """What to do."""

    model: PartitionModel  # The model
    fold: MixFold  # What is held out
    level: float  # Probability that intervals are to hold
    seed: int  # Start of all random numbers

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"


def predictions_of(
    mixes: Mixes,
    tasks: Sequence[PartitionTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[PartitionPrediction]:
    """Do all tasks that a cache does not know."""
    kept = None if cache is None else _Kept(cache, mixes)
    return done_tasks(tasks, kept, _worker, mixes, what="fitted models", progress=progress, jobs=jobs)


def _worker(mixes: Mixes) -> Callable[[PartitionTask], PartitionPrediction]:
    return partial(_prediction, mixes)


def _prediction(mixes: Mixes, task: PartitionTask) -> PartitionPrediction:
    with one_thread("evaluating models"):
        try:
            fitted = task.model.fit(mixes.where(task.fold.train), task.seed)
        except InputError as error:
            raise InputError(f"{task.label}: {error}") from error
        met = np.asarray(task.fold.test.any(axis=1))
        tested = mixes.where(met)
        found = fitted.predict(tested.shared, tested.judged, task.level)
    # Others of a mix are predicted with those that are tested.
    asked = task.fold.test[met][tested.judged]
    return PartitionPrediction(found.centre[asked], found.low[asked], found.high[asked])


@dataclass(frozen=True)
class _Kept:
    """A folder of predictions, each under a name made of all that they depend on."""

    folder: Path
    mixes: Mixes

    def __post_init__(self) -> None:
        make_folder("cache", self.folder)

    def load(self, task: PartitionTask) -> PartitionPrediction | None:
        found = cached_arrays(self._path(task), _NAMES)
        shape = int(task.fold.test.sum()), len(self.mixes.slices)
        if not found or any(each.dtype != np.float64 or each.shape != shape for each in found.values()):
            return None
        return PartitionPrediction(**found)

    def save(self, task: PartitionTask, prediction: PartitionPrediction) -> None:
        with cached_file(self._path(task)) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **vars(prediction))

    def _path(self, task: PartitionTask) -> Path:
        members = hashlib.sha256(np.packbits(task.fold.train).tobytes())
        members.update(b"test" + np.packbits(task.fold.test).tobytes())
        facts = {
            "sources": sources_digest(_SOURCES),
            "mixes": self._digest,
            "model": [task.model.name, fingerprint(task.model)],
            "members": members.hexdigest(),
            "task": [task.level, task.seed],
        }
        return self.folder / f"partition-{cache_key(facts)}.npz"

    @cached_property
    def _digest(self) -> str:
        mixes = self.mixes
        digest = hashlib.sha256(repr((mixes.levels, mixes.slices, mixes.jobs, mixes.job.shape)).encode())
        for array in (mixes.job, mixes.shared, mixes.alone):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class PartitionStudy:
    """How models did."""

    mixes: Mixes  # Mixes, without copies that differ in the order of members alone
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
    """Fit models to what each fold leaves, and score them on what it holds out."""
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
