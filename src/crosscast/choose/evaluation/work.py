"""Folds of an evaluation of choices: here or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosscast.choose.evaluation.fold import FoldAnswer, FoldTask, answer_fold, samples_of_fold
from crosscast.choose.evaluation.kept import Kept
from crosscast.choose.methods.fits import model_of
from crosscast.evaluate.fingerprint import fingerprint
from crosscast.evaluate.processes import Progress, check_jobs, done_pieces, one_thread, told
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
    check_jobs(jobs)
    kept = None if cache is None else Kept(cache, surfaces)
    known = [(place, kept.load(task)) for place, task in enumerate(tasks)] if kept else []
    found = {place: answer for place, answer in known if answer is not None}
    left = {place: task for place, task in enumerate(tasks) if place not in found}
    pieces = _pieces(left)
    done = done_pieces(pieces, _worker, (surfaces,), jobs, "evaluated methods")
    for places, answers in told(done, len(pieces), lambda places: tasks[places[0]].label, progress):
        for place, answer in zip(places, answers, strict=True):
            found[place] = answer
            if kept:
                kept.save(tasks[place], answer)
    return [found[place] for place in range(len(tasks))]


def _pieces(tasks: Mapping[int, FoldTask]) -> dict[tuple[int, ...], list[FoldTask]]:
    """Tasks, put together where they need the same fit."""
    together: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for place, task in tasks.items():
        model = model_of(task.method)
        learned = task.method.name if model is None else fingerprint(model)
        together.setdefault((task.held_out, learned), []).append(place)
    return {tuple(places): [tasks[place] for place in places] for places in together.values()}


@dataclass(frozen=True)
class _Worker:
    """What a process knows throughout: the surfaces, and the samples of folds that it has seen."""

    surfaces: Surfaces
    samples: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)

    def answers(self, tasks: Sequence[FoldTask]) -> list[FoldAnswer]:
        with one_thread("evaluating methods"):
            return [self.answer(task) for task in tasks]

    def answer(self, task: FoldTask) -> FoldAnswer:
        if task.held_out not in self.samples:
            self.samples[task.held_out] = samples_of_fold(self.surfaces, task)
        return answer_fold(self.surfaces, task, self.samples[task.held_out])


def _worker(surfaces: Surfaces) -> Callable[[Sequence[FoldTask]], list[FoldAnswer]]:
    return _Worker(surfaces).answers
