"""Folds of an evaluation of choices: here or in several processes."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager

from crosscast.choose.evaluation.fold import FoldAnswer, FoldTask, answer_fold
from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.evaluate.work import Progress, State
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["answer_folds"]


def answer_folds(
    surfaces: Surfaces, tasks: Sequence[FoldTask], *, progress: Progress | None = None, jobs: int = 1
) -> list[FoldAnswer]:
    """Do all folds.

    Parameters
    ----------
    surfaces
        All kernels.
    tasks
        What to do.
    progress
        Called whenever a fold is done.
    jobs
        Processes that work at the same time; the answers are the same.

    Raises
    ------
    InputError
        If there is no process to work, or a method cannot be fitted to so little.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    if jobs < 1:
        raise InputError(f"jobs: expected at least 1, found {jobs}")
    start = time.monotonic()
    found: dict[int, FoldAnswer] = {}
    for place, answer in _done(surfaces, tasks, min(jobs, len(tasks))):
        found[place] = answer
        if progress:
            elapsed = time.monotonic() - start
            left = elapsed / len(found) * (len(tasks) - len(found))
            progress(State(len(found), len(tasks), elapsed, left, tasks[place].label))
    return [found[place] for place in range(len(tasks))]


def _done(surfaces: Surfaces, tasks: Sequence[FoldTask], jobs: int) -> Iterator[tuple[int, FoldAnswer]]:
    """The answers, with the number of each, as they are done."""
    if jobs < 2:
        for place, task in enumerate(tasks):
            yield place, _answer(surfaces, task)
        return
    # Not forked: threads of the libraries do not survive that.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(surfaces,))
    try:
        futures: dict[Future[FoldAnswer], int] = {
            executor.submit(_work, task): place for place, task in enumerate(tasks)
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


_SURFACES: list[Surfaces] = []
"""In a process that works: the surfaces of all its tasks, which are sent once."""


def _start(surfaces: Surfaces) -> None:
    # Ctrl-C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _SURFACES.append(surfaces)


def _work(task: FoldTask) -> FoldAnswer:
    return _answer(_SURFACES[-1], task)


def _answer(surfaces: Surfaces, task: FoldTask) -> FoldAnswer:
    with _one_thread():
        return answer_fold(surfaces, task)


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
