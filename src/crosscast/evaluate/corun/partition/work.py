"""Fits of an evaluation of parts: here or in several processes, and kept when they are done."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from crosscast.errors import InputError
from crosscast.evaluate.cache_folder import cache_key, cached_arrays, cached_file
from crosscast.evaluate.fingerprint import fingerprint, sources_digest
from crosscast.evaluate.kept_tasks import done_tasks
from crosscast.evaluate.processes import Progress, one_thread
from crosscast.predict.corun.partition.left_out import MixFold
from crosscast.predict.corun.partition.model import PartitionModel, PartitionPrediction
from crosscast.tables.corun.mixes import Mixes
from crosscast.tables.whole_file import make_folder

__all__ = ["PartitionTask", "predictions_of"]

_SOURCES = ("predict", "evaluate/corun/partition", "tables/corun/mixes.py")
_NAMES = ("centre", "low", "high")


@dataclass(frozen=True, eq=False)
class PartitionTask:
    """What to do.

    Parameters
    ----------
    model
        The model.
    fold
        What is held out.
    level
        Probability that intervals are to hold.
    seed
        Start of all random numbers.
    """

    model: PartitionModel
    fold: MixFold
    level: float
    seed: int

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
    """Do all tasks that a cache does not know.

    Parameters
    ----------
    mixes
        All mixes.
    tasks
        What to do.
    progress
        Called whenever a task is done.
    cache
        Folder that keeps what was predicted, if wanted.
    jobs
        Processes that work at the same time; the predictions are the same.

    Returns
    -------
    list of PartitionPrediction
        Of the members that each task's fold tests, in the order of mixes and members.

    Raises
    ------
    InputError
        If there is no process to work, a model cannot be fitted, or the cache cannot be written.
    EnvironmentFault
        If a process that worked was ended by another.
    """
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
