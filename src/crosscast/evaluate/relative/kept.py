"""Predictions of finished folds in a folder, so that work that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from crosscast.evaluate.cache_folder import cached_file, make_cache_folder
from crosscast.evaluate.fingerprint import fingerprint, sources_digest
from crosscast.evaluate.relative.task import FoldTask
from crosscast.evaluate.relative.vectors_digest import vectors_digest
from crosscast.predict.arrays import DAMAGE
from crosscast.predict.grid import Reals
from crosscast.predict.relative.observations import Vectors

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
        make_cache_folder(self.folder)

    def load(self, task: FoldTask) -> Reals | None:
        """Predictions that were kept, or ``None``; damaged ones are as good as none."""
        try:
            # Opened here, as numpy leaves a damaged file open.
            with self._path(task).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                predicted: Reals = archive["predicted"]
        except DAMAGE:
            return None
        sound = predicted.dtype == np.float64 and predicted.shape == (
            len(task.fold.test),
            len(self.vectors.devices),
        )
        return predicted if sound and (np.isfinite(predicted) & (predicted > 0)).all() else None

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
        name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return self.folder / f"relative-{name}.npz"

    @cached_property
    def _digest(self) -> str:
        return vectors_digest(self.vectors)
