"""Fits of an evaluation of co-running: here or in several processes, and kept when they are done."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from crosscast.evaluate.cache_folder import cache_key, cached_arrays, cached_file
from crosscast.evaluate.corun.co_runs_digest import co_runs_digest
from crosscast.evaluate.corun.quantities import FITS, QUANTITIES
from crosscast.evaluate.corun.task import Answer, CoRunTask, answer_of
from crosscast.evaluate.fingerprint import fingerprint, sources_digest
from crosscast.evaluate.kept_tasks import done_tasks
from crosscast.evaluate.processes import Progress, one_thread
from crosscast.tables.corun.view import CoRuns
from crosscast.tables.whole_file import make_folder

__all__ = ["answers_of"]

_SOURCES = ("predict", "evaluate/corun")
_NAMES = (*QUANTITIES, FITS)
_REACH = "reach."
_REACHES = tuple(f"{_REACH}{name}" for name in QUANTITIES)


def answers_of(
    co_runs: CoRuns,
    tasks: Sequence[CoRunTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[Answer]:
    """Do all tasks that a cache does not know.

    Parameters
    ----------
    co_runs
        All bags.
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
        If there is no process to work, a model cannot be fitted, or the cache cannot be written.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    kept = None if cache is None else _Kept(cache, co_runs)
    return done_tasks(tasks, kept, _worker, co_runs, what="fitted models", progress=progress, jobs=jobs)


def _worker(co_runs: CoRuns) -> Callable[[CoRunTask], Answer]:
    return partial(_answer, co_runs)


def _answer(co_runs: CoRuns, task: CoRunTask) -> Answer:
    with one_thread("evaluating models"):
        return answer_of(co_runs, task)


@dataclass(frozen=True)
class _Kept:
    """A folder of answers, each under a name made of all that they depend on."""

    folder: Path
    co_runs: CoRuns

    def __post_init__(self) -> None:
        make_folder("cache", self.folder)

    def load(self, task: CoRunTask) -> Answer | None:
        found = cached_arrays(self._path(task), [*_NAMES, *_REACHES])
        if not found or any(array.dtype != np.float64 or array.ndim != 1 for array in found.values()):
            return None
        reach = {name: found[f"{_REACH}{name}"] for name in QUANTITIES}
        if any(len(each) != len(found[name]) for name, each in reach.items()):
            return None
        return Answer({name: found[name] for name in _NAMES}, reach)

    def save(self, task: CoRunTask, answer: Answer) -> None:
        arrays = {**answer.values, **{f"{_REACH}{name}": each for name, each in answer.reach.items()}}
        with cached_file(self._path(task)) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)

    def _path(self, task: CoRunTask) -> Path:
        rows = hashlib.sha256(np.asarray(task.fold.train, np.int64).tobytes())
        rows.update(b"test" + np.asarray(task.fold.test, np.int64).tobytes())
        facts = {
            "sources": sources_digest(_SOURCES),
            "co_runs": self._digest,
            "model": [task.model.name, fingerprint(task.model)],
            "rows": rows.hexdigest(),
            "task": [task.split, task.probes, task.level, task.seed],
        }
        return self.folder / f"corun-{cache_key(facts)}.npz"

    @cached_property
    def _digest(self) -> str:
        return co_runs_digest(self.co_runs)
