"""Fits and forecasts of many folds: here or in several processes, and kept when they are done."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.evaluate.asking import Answers, ask
from crosscast.evaluate.cache import Cache, grid_digest
from crosscast.evaluate.splits import Fold
from crosscast.predict.grid import Flags, Grid
from crosscast.predict.model import Model

__all__ = ["Progress", "State", "Task", "run_tasks"]


@dataclass(frozen=True)
class Task:
    """One fit, and what is asked of it; see `crosscast.evaluate.asking.ask` for the fields."""

    model: Model
    fold: Fold
    knowns: tuple[Flags, ...]
    seed: int
    level: float

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"


@dataclass(frozen=True)
class State:
    """How far the work is.

    Parameters
    ----------
    done, total
        Fits that are done, and all of them.
    elapsed_s, left_s
        Seconds since the start, and about how many it will take from now on.
    label
        What has just been done.
    """

    done: int
    total: int
    elapsed_s: float
    left_s: float
    label: str


Progress = Callable[[State], None]


def run_tasks(
    grid: Grid,
    tasks: Sequence[Task],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[list[Answers]]:
    """Do all tasks that a cache does not know.

    Parameters
    ----------
    grid
        All kernels and devices.
    tasks
        What to do.
    progress
        Called whenever a task is done.
    cache
        Folder that keeps answers, if wanted.
    jobs
        Processes that work at the same time.

    Returns
    -------
    list
        For each task, an answer for each of its `knowns`.

    Raises
    ------
    InputError
        If a model cannot be fitted to so little, or the cache cannot be written.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    if jobs < 1:
        raise InputError(f"jobs: expected at least 1, found {jobs}")
    store = None if cache is None else _Store(Cache(cache, grid_digest(grid)), grid)
    found = [store.load(task) if store else {} for task in tasks]
    left = {
        place: Task(task.model, task.fold, _lacking(task, found[place]), task.seed, task.level)
        for place, task in enumerate(tasks)
        if len(found[place]) < len(task.knowns)
    }
    start = time.monotonic()
    for done, (place, answers) in enumerate(_done(grid, left, jobs), 1):
        numbers = [number for number in range(len(tasks[place].knowns)) if number not in found[place]]
        found[place].update(zip(numbers, answers, strict=True))
        if store:
            store.save(left[place], answers)
        if progress:
            elapsed = time.monotonic() - start
            progress(State(done, len(left), elapsed, elapsed / done * (len(left) - done), tasks[place].label))
    return [[answers[number] for number in sorted(answers)] for answers in found]


def _lacking(task: Task, found: Mapping[int, Answers]) -> tuple[Flags, ...]:
    return tuple(known for number, known in enumerate(task.knowns) if number not in found)


@dataclass(frozen=True)
class _Store:
    """The answers to tasks in a cache."""

    cache: Cache
    grid: Grid

    def load(self, task: Task) -> dict[int, Answers]:
        """Those that are known, by the number of what was told."""
        found = {}
        for number, known in enumerate(task.knowns):
            shape = (len(known), len(task.fold.test_rows), len(self.grid.devices))
            answers = self.cache.load(self._key(task, known), shape)
            if answers is not None:
                found[number] = answers
        return found

    def save(self, task: Task, answers: Sequence[Answers]) -> None:
        for known, answer in zip(task.knowns, answers, strict=True):
            self.cache.save(self._key(task, known), answer)

    def _key(self, task: Task, known: Flags) -> str:
        return self.cache.key(task.model, task.fold, known, task.seed, task.level)


def _done(grid: Grid, tasks: Mapping[int, Task], jobs: int) -> Iterator[tuple[int, list[Answers]]]:
    """The answers to tasks, with the number of each, as they are done."""
    if min(jobs, len(tasks)) < 2:
        for place, task in tasks.items():
            yield place, _answer(grid, task)
    else:
        yield from _done_by_processes(grid, tasks, min(jobs, len(tasks)))


def _done_by_processes(
    grid: Grid, tasks: Mapping[int, Task], jobs: int
) -> Iterator[tuple[int, list[Answers]]]:
    # Not forked: threads of the libraries do not survive that.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(grid,))
    try:
        futures: dict[Future[list[Answers]], int] = {
            executor.submit(_work, task): place for place, task in tasks.items()
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise EnvironmentFault(
            "a process that fitted a model was ended from outside, maybe for want of memory: try --jobs 1"
        ) from error
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        # After an interruption, nobody waits for the folds in progress.
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


_GRID: list[Grid] = []
"""In a process that works: the grid of all its tasks, which is sent once."""


def _start(grid: Grid) -> None:
    # Ctrl-C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _GRID.append(grid)


def _work(task: Task) -> list[Answers]:
    return _answer(_GRID[-1], task)


def _answer(grid: Grid, task: Task) -> list[Answers]:
    with _one_thread():
        try:
            return ask(grid, task.fold, task.model, task.knowns, task.seed, task.level)
        except InputError as error:
            raise InputError(f"{task.label}: {error}") from error


def _one_thread() -> AbstractContextManager[object]:
    """Keep linear algebra to one thread, as sums in another order would have other last digits."""
    try:
        # The first two load the libraries that are limited.
        import scipy.linalg  # noqa: F401
        import sklearn.utils  # noqa: F401
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError("train", "evaluating models") from error
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
