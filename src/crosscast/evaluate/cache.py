"""Forecasts of finished folds in a folder, so that work that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.arrays import Flags
from crosscast.cache_home import cache_home
from crosscast.evaluate.asking import Answers
from crosscast.evaluate.cache_folder import cache_key, cached_arrays, cached_file
from crosscast.evaluate.fingerprint import fingerprint, sources_digest
from crosscast.evaluate.splits import Fold
from crosscast.predict.grid import Grid
from crosscast.predict.model import Model
from crosscast.tables.whole_file import make_folder

__all__ = ["Cache", "default_folder", "grid_digest"]

_FIELDS = ("centre", "low", "high")
_SOURCES = ("predict", "evaluate/asking.py", "evaluate/cache.py")


def default_folder() -> Path:
    """Folder of the cache: ``crosscast/evaluate`` in ``XDG_CACHE_HOME``, or in ``~/.cache``."""
    return cache_home() / "evaluate"


@dataclass(frozen=True)
class Cache:
    """A folder of forecasts, each under a name made of all that it depends on.

    That is the grid, the model with its parameters, the fold, what was told and asked, the seed, the source
    of `crosscast.predict`, and the versions of the libraries. A model that is no dataclass is known by its
    name and class alone.

    Parameters
    ----------
    folder
        Where; made if it is not there.
    grid
        The digest of the grid that the forecasts are of, as `grid_digest` gives it.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """

    folder: Path
    grid: str

    def __post_init__(self) -> None:
        """Make the folder."""
        make_folder("cache", self.folder)

    def key(self, model: Model, fold: Fold, known: Flags, seed: int, level: float) -> str:
        """The name of a forecast."""
        facts = {
            "sources": sources_digest(_SOURCES),
            "grid": self.grid,
            "model": [model.name, fingerprint(model)],
            "train": [fold.train_rows.tolist(), fold.train_devices.tolist()],
            "asked": [fold.test_rows.tolist(), known.astype(int).tolist(), level],
            "seed": seed,
        }
        return cache_key(facts)

    def load(self, key: str, shape: tuple[int, int, int]) -> Answers | None:
        """A forecast that was kept, or ``None``; a damaged one is as good as none."""
        arrays = cached_arrays(self._path(key), _FIELDS)
        if any(array.shape != shape or array.dtype != np.float64 for array in arrays.values()):
            return None
        if not arrays or any(np.isnan(array).any() for array in arrays.values()):
            return None
        return Answers(**arrays)

    def save(self, key: str, answers: Answers) -> None:
        """Keep a forecast.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        path = self._path(key)
        with cached_file(path) as temporary:
            np.savez_compressed(temporary, **{name: getattr(answers, name) for name in _FIELDS})

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def grid_digest(grid: Grid) -> str:
    """A hash of all that is in a grid."""
    digest = hashlib.sha256()
    devices = [
        [device.key, device.name, device.vendor, device.type, device.series, sorted(device.numbers.items())]
        for device in grid.devices
    ]
    for name, value in sorted({**vars(grid.profiles), **vars(grid), "devices": devices}.items()):
        if isinstance(value, np.ndarray):
            # All that is not a number is the same, whatever its bits.
            array = np.asarray(value, dtype=np.float64)
            digest.update(name.encode() + np.where(np.isnan(array), np.nan, array).tobytes())
        elif name != "profiles":
            digest.update(json.dumps([name, value]).encode())
    return digest.hexdigest()
