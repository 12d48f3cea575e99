"""Make the models that come with Crosscast: ``python -m benchmarks.bundled_models FOLDER [NAME...]``.

FOLDER has the public data (docs/importing.md says where each is from). Each source is imported and each model
trained as src/crosscast/prediction/bundled/models.toml says, with seed 0: the same data give the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from crosscast.calibration import BASE, write_training
from crosscast.cli import main as crosscast
from crosscast.data.dataset import read_dataset
from crosscast.prediction.named_models import BUNDLED, Recipe, recipes


def make(name: str, recipe: Recipe, data: Path) -> None:
    with TemporaryDirectory() as folder:
        dataset = recipe.source
        if recipe.files:
            dataset = str(Path(folder) / recipe.source)
            _run("dataset", "import", recipe.source, str(data / recipe.files), "--out", dataset)
        named = ["--model", recipe.model] if recipe.model else []
        named += ["--held-out", ",".join(recipe.held_out.split())] if recipe.held_out else []
        _run("train", recipe.question, dataset, *named, "--out", str(BUNDLED / name), "--cache", "none")
        if name == BASE:
            write_training(read_dataset(dataset), BUNDLED / name)
    size = sum(file.stat().st_size for file in (BUNDLED / name).iterdir())
    print(f"{name}: {size / 1e3:.0f} KB\n")


def _run(*words: str) -> None:
    print("crosscast", *words)
    if crosscast(words) != 0:
        sys.exit(f"crosscast {' '.join(words)} failed")


if __name__ == "__main__":
    asked = sys.argv[2:] or list(recipes())
    for each in asked:
        make(each, recipes()[each], Path(sys.argv[1]))
