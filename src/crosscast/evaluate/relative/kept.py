"""Predictions of finished folds in a folder, so that work that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluate.cache_folder import cache_key, cached_arrays, cached_file
from crosscast.evaluate.fingerprint import fingerprint, sources_digest
from crosscast.evaluate.relative.task import FoldTask
from crosscast.evaluate.relative.vectors_digest import vectors_digest
from crosscast.predict.relative.observations import Vectors
from crosscast.tables.whole_file import make_folder

__all__ = ["Kept"]

_SOURCES = ("predict", "evaluate/relative/task.py")


@dataclass(frozen=True)
class Kept:
    """A folder of predictions, each under a name made of all that they depend on.

    That is the vectors, the rows of the fold, the model with its parameters, the seed, the source of
    `crosscast.predict`, and the versions of the libraries. A model that is no dataclass is known by its name
    and class alone.

    Parameters
    ----------
    folder
        Where; made if it is not there.
    vectors
        What the predictions are of.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """

    folder: Path
    vectors: Vectors

    def __post_init__(self) -> None:
        """Make the folder."""
        make_folder("cache", self.folder)

    def load(self, task: FoldTask) -> Reals | None:
        """Predictions that were kept, or ``None``; damaged ones are as good as none."""
        predicted = cached_arrays(self._path(task), ["predicted"]).get("predicted")
        shape = (len(task.fold.test), len(self.vectors.devices))
        if predicted is None or predicted.dtype != np.float64 or predicted.shape != shape:
            return None
        return predicted if (np.isfinite(predicted) & (predicted > 0)).all() else None

    def save(self, task: FoldTask, predicted: Reals) -> None:
        """Keep predictions.

        Raises
        ------
        InputError
            If they cannot be written.
        """
        with cached_file(self._path(task)) as temporary:
            np.savez_compressed(temporary, predicted=predicted)

    def _path(self, task: FoldTask) -> Path:
        rows = hashlib.sha256(np.asarray(task.fold.train, np.int64).tobytes())
        rows.update(b"test" + np.asarray(task.fold.test, np.int64).tobytes())
        facts = {
            "sources": sources_digest(_SOURCES),
            "vectors": self._digest,
            "model": [task.model.name, fingerprint(task.model)],
            "rows": rows.hexdigest(),
            "seed": task.seed,
        }
        return self.folder / f"relative-{cache_key(facts)}.npz"

    @cached_property
    def _digest(self) -> str:
        return vectors_digest(self.vectors)
