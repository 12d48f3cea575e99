"""Make the models that come with Crosscast: ``python -m benchmarks.bundled_models FOLDER [NAME...]``.

FOLDER has the public data (docs/importing.md says where each is from). Each source is imported and each model
trained as src/crosscast/prediction/bundled/models.toml says, with seed 0: the same data give the same bytes.

``--slim`` alone makes those that are there smaller, as all are after training.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from crosscast.cli import main as crosscast
from crosscast.data.times import read_launch_tables
from crosscast.evaluation.time.launch_times import train_launch_times
from crosscast.prediction import store
from crosscast.prediction.named_models import BUNDLED, Recipe, recipes


def make(name: str, recipe: Recipe, data: Path) -> None:
    if recipe.source == TIMES:
        # Tables of benchmarks.training_profiles, which take most of an hour to make.
        train_launch_times(read_launch_tables(data / recipe.files)).save(BUNDLED / name)
        return
    with TemporaryDirectory() as folder:
        dataset = recipe.source
        if recipe.files:
            dataset = str(Path(folder) / recipe.source)
            _run("dataset", "import", recipe.source, str(data / recipe.files), "--out", dataset)
        named = ["--model", recipe.model] if recipe.model else []
        named += ["--held-out", ",".join(recipe.held_out.split())] if recipe.held_out else []
        _run("train", recipe.question, dataset, *named, "--out", str(BUNDLED / name))
        slim(BUNDLED / name)
    size = sum(file.stat().st_size for file in (BUNDLED / name).iterdir())
    print(f"{name}: {size / 1e3:.0f} KB\n")


TIMES = "times"
"""Source of a model that is trained on tables of times, profiles, and what the times are of."""

_DECIMALS = 4
"""Of logarithms of held-out errors: intervals are surer than that by far less."""


def slim(folder: Path) -> None:
    """Round what takes most space: leaves of trees to single precision, held-out errors to 4 decimals."""
    stored = store.read(folder)
    arrays = dict(stored.arrays)
    for name, array in arrays.items():
        if name.endswith("leaf_value"):
            arrays[name] = array.astype(np.float32).astype(np.float64)
        elif name.endswith("log_error"):
            arrays[name] = np.round(np.asarray(array, np.float64), _DECIMALS)
    store.write(folder, stored.question, stored.card, arrays)


def _run(*words: str) -> None:
    print("crosscast", *words)
    if crosscast(words) != 0:
        sys.exit(f"crosscast {' '.join(words)} failed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--slim"]:
        for each in recipes():
            slim(BUNDLED / each)
    else:
        for each in sys.argv[2:] or list(recipes()):
            make(each, recipes()[each], Path(sys.argv[1]))
