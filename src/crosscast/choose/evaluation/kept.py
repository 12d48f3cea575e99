"""Answers of finished folds in a folder, so that work that was cut off goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from crosscast.choose.evaluation.fold import FoldAnswer, FoldTask
from crosscast.evaluate.cache_folder import cache_key, cached_arrays, cached_file
from crosscast.evaluate.fingerprint import fingerprint, sources_digest
from crosscast.predict.configuration.surfaces import Surfaces
from crosscast.predict.configuration.surfaces_digest import surfaces_digest
from crosscast.tables.whole_file import make_folder

__all__ = ["Kept"]

_INTEGERS = ("samples", "chosen", "changes", "guarded")
_SOURCES = ("predict", "choose")


@dataclass(frozen=True)
class Kept:
    """A folder of answers, each under a name made of all that it depends on.

    That is the surfaces, the task with the parameters of its method, the source of `crosscast.predict` and
    `crosscast.choose`, and the versions of the libraries. A method that is no dataclass is known by its name
    and class alone, and what chooses the samples by its name.

    Parameters
    ----------
    folder
        Where; made if it is not there.
    surfaces
        What the answers are of.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """

    folder: Path
    surfaces: Surfaces

    def __post_init__(self) -> None:
        """Make the folder."""
        make_folder("cache", self.folder)

    def load(self, task: FoldTask) -> FoldAnswer | None:
        """An answer that was kept, or ``None``; a damaged one is as good as none."""
        arrays = cached_arrays(self._path(task), _INTEGERS)
        if not arrays or not self._sound(task, arrays):
            return None
        samples = tuple(arrays["samples"].tolist())
        chosen, changes, guarded = (arrays[name] for name in _INTEGERS[1:])
        return FoldAnswer(samples, chosen, changes, guarded)

    def save(self, task: FoldTask, answer: FoldAnswer) -> None:
        """Keep an answer.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        path = self._path(task)
        with cached_file(path) as temporary:
            np.savez_compressed(
                temporary,
                samples=np.array(answer.samples, np.int64),
                chosen=answer.chosen,
                changes=answer.changes,
                guarded=answer.guarded,
            )

    def _sound(
        self, task: FoldTask, arrays: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]
    ) -> bool:
        """Whether arrays are of the right kinds and shapes, and all numbers are of configurations."""
        if any(arrays[name].dtype != np.int64 for name in _INTEGERS):
            return False
        for name in ("samples", "chosen", "guarded"):
            values = arrays[name].astype(np.int64)
            if ((values < 0) | (values >= len(self.surfaces.space))).any():
                return False
        if arrays["samples"].ndim != 1 or not arrays["samples"].size:
            return False
        count = len(task.cases(self.surfaces, arrays["samples"].astype(np.int64).tolist()))
        shapes = {"chosen": (len(task.budgets), count), "guarded": (count,)}
        shapes["changes"] = shapes["chosen"]
        return all(arrays[name].shape == shape for name, shape in shapes.items())

    def _path(self, task: FoldTask) -> Path:
        sampler = task.samples
        facts = {
            "sources": sources_digest(_SOURCES),
            "surfaces": self._digest,
            "method": [task.method.name, fingerprint(task.method)],
            "held_out": task.held_out,
            "samples": fingerprint(sampler) if callable(sampler) else sampler,
            "weighting": task.weighting,
            "budgets": task.budgets,
            "seed": task.seed,
        }
        return self.folder / f"choices-{cache_key(facts)}.npz"

    @cached_property
    def _digest(self) -> str:
        return surfaces_digest(self.surfaces)
