"""Fits and forecasts of many folds: here or in several processes, and kept when they are done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crosscast.arrays import Flags
from crosscast.errors import InputError
from crosscast.evaluate.asking import Answers, ask
from crosscast.evaluate.cache import Cache, grid_digest
from crosscast.evaluate.processes import Progress, check_jobs, done_pieces, one_thread, told
from crosscast.evaluate.splits import Fold
from crosscast.predict.grid import Grid
from crosscast.predict.model import Model

__all__ = ["Task", "run_tasks"]


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
    check_jobs(jobs)
    store = None if cache is None else _Store(Cache(cache, grid_digest(grid)), grid)
    found = [store.load(task) if store else {} for task in tasks]
    left = {
        place: Task(task.model, task.fold, _lacking(task, found[place]), task.seed, task.level)
        for place, task in enumerate(tasks)
        if len(found[place]) < len(task.knowns)
    }
    done = done_pieces(left, _worker, (grid,), jobs, "fitted a model")
    for place, answers in told(done, len(left), lambda place: tasks[place].label, progress):
        numbers = [number for number in range(len(tasks[place].knowns)) if number not in found[place]]
        found[place].update(zip(numbers, answers, strict=True))
        if store:
            store.save(left[place], answers)
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


def _worker(grid: Grid) -> Callable[[Task], list[Answers]]:
    return partial(_answer, grid)


def _answer(grid: Grid, task: Task) -> list[Answers]:
    with one_thread("evaluating models"):
        try:
            return ask(grid, task.fold, task.model, task.knowns, task.seed, task.level)
        except InputError as error:
            raise InputError(f"{task.label}: {error}") from error
