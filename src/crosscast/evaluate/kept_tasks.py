"""Tasks of an evaluation: what is kept of them is taken from there; the others are done, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from crosscast.evaluate.processes import Progress, check_jobs, done_pieces, told

__all__ = ["Kept", "Task", "done_tasks"]

_Asked = TypeVar("_Asked", contravariant=True)
_Result = TypeVar("_Result")


class Task(Protocol):
    """Something to do."""

    @property
    def label(self) -> str:
        """What it is, for people."""
        ...


class Kept(Protocol[_Asked, _Result]):
    """Where results are kept."""

    def load(self, task: _Asked, /) -> _Result | None:
        """The result of a task; ``None`` if it is not there."""

    def save(self, task: _Asked, result: _Result, /) -> None:
        """Keep it."""


_Task = TypeVar("_Task", bound=Task)


def done_tasks(
    tasks: Sequence[_Task],
    kept: Kept[_Task, _Result] | None,
    prepare: Callable[..., Callable[[_Task], _Result]],
    known: Any,
    *,
    what: str,
    progress: Progress | None = None,
    jobs: int = 1,
) -> list[_Result]:
    """Do all tasks that are not kept.

    Parameters
    ----------
    tasks
        What to do.
    kept
        Where results are kept, if they are.
    prepare
        Function of a module: makes what does a task of what all of them know, once in each process.
    known
        What all tasks know; sent once to each process.
    what
        What a process does, for messages.
    progress
        Called whenever a task is done.
    jobs
        Processes that work at the same time; the results are the same.

    Returns
    -------
    list
        Result of each task.

    Raises
    ------
    InputError
        If there is no process to work, a task fails, or a result cannot be kept.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    check_jobs(jobs)
    loaded = [(place, kept.load(task)) for place, task in enumerate(tasks)] if kept else []
    found = {place: result for place, result in loaded if result is not None}
    left = {place: task for place, task in enumerate(tasks) if place not in found}
    done = done_pieces(left, prepare, (known,), jobs, what)
    for place, result in told(done, len(left), lambda place: tasks[place].label, progress):
        found[place] = result
        if kept:
            kept.save(tasks[place], result)
    return [found[place] for place in range(len(tasks))]
