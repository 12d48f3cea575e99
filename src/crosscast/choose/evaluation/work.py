"""Folds of an evaluation of choices: here or in several processes."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from crosscast.choose.evaluation.fold import FoldAnswer, FoldTask, answer_fold, samples_of_fold
from crosscast.choose.evaluation.kept import Kept
from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.evaluate.work import Progress, State
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["answer_folds"]


def answer_folds(
    surfaces: Surfaces,
    tasks: Sequence[FoldTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[FoldAnswer]:
    """Do all folds that a cache does not know.

    Parameters
    ----------
    surfaces
        All kernels.
    tasks
        What to do.
    progress
        Called whenever a task is done.
    cache
        Folder that keeps answers, if wanted.
    jobs
        Processes that work at the same time; the answers are the same.

    Raises
    ------
    InputError
        If there is no process to work, a method cannot be fitted to so little, or the cache cannot be
        written.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    if jobs < 1:
        raise InputError(f"jobs: expected at least 1, found {jobs}")
    kept = None if cache is None else Kept(cache, surfaces)
    known = [(place, kept.load(task)) for place, task in enumerate(tasks)] if kept else []
    found = {place: answer for place, answer in known if answer is not None}
    left = {place: task for place, task in enumerate(tasks) if place not in found}
    start = time.monotonic()
    for done, (place, answer) in enumerate(_done(surfaces, left, min(jobs, len(left))), 1):
        found[place] = answer
        if kept:
            kept.save(tasks[place], answer)
        if progress:
            elapsed = time.monotonic() - start
            progress(State(done, len(left), elapsed, elapsed / done * (len(left) - done), tasks[place].label))
    return [found[place] for place in range(len(tasks))]


def _done(surfaces: Surfaces, tasks: Mapping[int, FoldTask], jobs: int) -> Iterator[tuple[int, FoldAnswer]]:
    """The answers, with the number of each, as they are done."""
    if jobs < 2:
        worker = _Worker(surfaces)
        for place, task in tasks.items():
            yield place, worker.answer(task)
        return
    # Not forked: threads of the libraries do not survive that.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(surfaces,))
    try:
        futures: dict[Future[FoldAnswer], int] = {
            executor.submit(_work, task): place for place, task in tasks.items()
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise EnvironmentFault(
            "a process that evaluated methods was ended from outside, maybe for want of memory: try --jobs 1"
        ) from error
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        # After an interruption, nobody waits for the folds in progress.
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


@dataclass(frozen=True)
class _Worker:
    """What a process knows throughout: the surfaces, and the samples of folds that it has seen."""

    surfaces: Surfaces
    samples: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)

    def answer(self, task: FoldTask) -> FoldAnswer:
        with _one_thread():
            if task.held_out not in self.samples:
                self.samples[task.held_out] = samples_of_fold(self.surfaces, task)
            return answer_fold(self.surfaces, task, self.samples[task.held_out])


_WORKER: list[_Worker] = []
"""In a process that works: its surfaces, which are sent once."""


def _start(surfaces: Surfaces) -> None:
    # Ctrl-C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _WORKER.append(_Worker(surfaces))


def _work(task: FoldTask) -> FoldAnswer:
    return _WORKER[-1].answer(task)


def _one_thread() -> AbstractContextManager[object]:
    """Keep linear algebra to one thread, as sums in another order would have other last digits."""
    try:
        # The first two load the libraries that are limited.
        import scipy.linalg  # noqa: F401
        import sklearn.utils  # noqa: F401
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError("train", "evaluating methods") from error
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
