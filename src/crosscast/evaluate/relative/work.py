"""Fits of an evaluation of relative performance: here or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosscast.arrays import Reals
from crosscast.evaluate.kept_tasks import done_tasks
from crosscast.evaluate.processes import Progress, one_thread
from crosscast.evaluate.relative.kept import Kept
from crosscast.evaluate.relative.task import FoldTask, predict_fold
from crosscast.predict.relative.observations import Vectors

__all__ = ["predict_folds"]


def predict_folds(
    vectors: Vectors,
    tasks: Sequence[FoldTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[Reals]:
    """Do all tasks that a cache does not know.

    Parameters
    ----------
    vectors
        All rows.
    tasks
        What to do.
    progress
        Called whenever a task is done.
    cache
        Folder that keeps predictions, if wanted.
    jobs
        Processes that work at the same time; the predictions are the same.

    Raises
    ------
    InputError
        If there is no process to work, a model cannot be fitted, or the cache cannot be written.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    kept = None if cache is None else Kept(cache, vectors)
    return done_tasks(tasks, kept, _worker, vectors, what="fitted models", progress=progress, jobs=jobs)


@dataclass(frozen=True)
class _Worker:
    """What a process knows throughout."""

    vectors: Vectors

    def predict(self, task: FoldTask) -> Reals:
        with one_thread("evaluating models"):
            return predict_fold(self.vectors, task)


def _worker(vectors: Vectors) -> Callable[[FoldTask], Reals]:
    return _Worker(vectors).predict
