"""Make what comes with Crosscast: the records and launches of the suite, and the models.

``python -m benchmarks.bundled records FOLDER`` thins a dataset's records: of each application at a size on a
device 50 runs stay, evenly spaced from the first to the last, as forecasts are of medians, which hardly move.

``launches TABLES`` takes the middle launch of each kernel of the suite at three sizes from training tables,
as drivers compile it, with all counts: a line of JSON each. ``crosscast devices compare`` forecasts them.

``models FOLDER [NAME...]`` makes the models. FOLDER has the public data (docs/importing.md says where each
is from). Each source is imported and each model trained as src/crosscast/prediction/bundled/models.toml says,
with seed 0: the same data give the same bytes. ``slim`` makes those that are there smaller, as all are after
training.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from crosscast.cli import main as crosscast
from crosscast.comparison.devices import LAUNCHES
from crosscast.data.dataset import read_dataset, write_dataset
from crosscast.data.files import atomic_file
from crosscast.data.profiles import read_parquet
from crosscast.data.times import read_launch_tables
from crosscast.evaluation.time.launch_times import train_launch_times
from crosscast.prediction import store
from crosscast.prediction.named_models import BUNDLED, Recipe, recipes
from crosscast.profile import Profile

_RUNS = 50
_MEASURED = ["application", "size", "device", "configuration"]


def kept(records: pa.Table) -> pa.Table:
    """The records of the runs that stay."""
    rows = records.select([*_MEASURED, "repeat", "run"]).to_pandas()
    order = rows.repeat * (rows.run.max() + 1) + rows.run
    place = order.groupby([rows[name] for name in _MEASURED], observed=True).rank("dense").astype(int) - 1
    count = place.groupby([rows[name] for name in _MEASURED], observed=True).transform("max") + 1
    # Run p of n stays if it is the first in its fiftieth.
    first = (place * _RUNS) // count != ((place - 1) * _RUNS) // count
    return records.filter(pa.array(np.asarray(first)))


_SIZES = {f"suite {size}": size for size in ("small", "medium", "large")}
"""Sizes of the suite by their names in training tables."""


def middle_launches(profiles: list[Profile]) -> list[Profile]:
    """The middle launch of each of the suite's kernels at a size."""
    launches: dict[tuple[str | None, str, str], list[Profile]] = {}
    for profile in profiles:
        if (size := _SIZES.get(profile.size or "")) is not None:
            launches.setdefault((profile.application, profile.kernel, size), []).append(
                replace(profile, size=size)
            )
    ordered = (sorted(each, key=lambda profile: profile.invocation) for each in launches.values())
    return [each[len(each) // 2] for each in ordered]


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


def main(kind: str, *names: str) -> None:
    """Make a part of what is bundled."""
    if kind == "records":
        dataset = read_dataset(names[0])
        thinned = replace(dataset, records=kept(dataset.records))
        write_dataset(thinned, names[0])
        print(f"{dataset.records.num_rows} records before, {thinned.records.num_rows} now")
    elif kind == "launches":
        chosen = middle_launches(read_parquet(Path(names[0]) / "profiles.parquet"))
        with atomic_file(LAUNCHES) as path:
            lines = (json.dumps(profile.to_dict(), separators=(",", ":")) for profile in chosen)
            path.write_text("".join(f"{line}\n" for line in lines))
        print(f"{len(chosen)} launches in {LAUNCHES}")
    elif kind == "slim":
        for each in recipes():
            slim(BUNDLED / each)
    else:
        for each in names[1:] or list(recipes()):
            make(each, recipes()[each], Path(names[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
