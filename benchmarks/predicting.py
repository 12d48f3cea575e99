"""Cost of a trained model: to load it, to ask about one kernel, and about a million kernels and devices.

``python -m benchmarks.predicting MODEL DATASET`` prints times beside those of forests of 505 trees that are
fitted to the cells of the same dataset, in the same run: scikit-learn's, and R's ranger where ``Rscript`` has
it. It also says whether the project's figures are met. MODEL is a folder that ``crosscast train`` wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.command_line import environment
from benchmarks.table import Verdict, milliseconds, text_table
from crosscast.arrays import Reals
from crosscast.data.dataset import read_dataset
from crosscast.prediction.store import read
from crosscast.prediction.time import Grid, ProfileBatch
from crosscast.prediction.time.artefact import TrainedTimeModel, open_model
from crosscast.prediction.time.datasets import grid_of

_LOAD_S = 0.050
_ONE_S = 0.001
_MILLION_S = 5.0
_BYTES = 10_000_000
_MILLION = 1_000_000
_TREES, _TRIED, _NODE_SIZE = 505, 30, 9
_PEER_ROWS = 50_000

_LOADING = """
import json, sys, time
start = time.perf_counter()
from crosscast.prediction.store import read
from crosscast.prediction.time.artefact import open_model
imported = time.perf_counter()
model = open_model(read(sys.argv[1]))
carded = time.perf_counter()
model.predictor
print(json.dumps([imported - start, carded - imported, time.perf_counter() - carded]))
"""

_R = """
library(ranger)
arguments <- commandArgs(trailingOnly = TRUE)
rows <- read.csv(arguments[1])
one <- read.csv(arguments[2])
many <- read.csv(arguments[3])
forest <- ranger(response ~ ., data = rows, num.trees = as.integer(arguments[4]),
                 mtry = as.integer(arguments[5]), min.node.size = as.integer(arguments[6]),
                 num.threads = 2, seed = 1, verbose = FALSE)
taken <- function(new) {
  start <- proc.time()[["elapsed"]]
  predict(forest, new, num.threads = 2, verbose = FALSE)
  proc.time()[["elapsed"]] - start
}
cat(taken(one), taken(one), taken(one), taken(many))
"""


@dataclass(frozen=True)
class Cost:
    """What asking a model costs, in seconds."""

    name: str
    one_s: list[float]  # For one kernel on all devices, again and again
    million_s: float  # For a million kernels and devices
    note: str = ""  # How the latter was found, if not by doing it


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    loading = [_load(options.model) for _ in range(options.repeat)]
    grid = grid_of(read_dataset(options.dataset))
    ours = _ours(options.model, grid)
    ranger = _ranger(grid)
    costs = [ours, _scikit(grid), *([ranger] if ranger else [])]
    size = sum(path.stat().st_size for path in options.model.iterdir())
    print(f"load: {os.getloadavg()[0]:.2f}; times are least / median in ms, or in s\n")
    columns = ("imports", "card", "arrays", "whole process")
    print(
        text_table(["load", *columns], [["", *(milliseconds(each) for each in zip(*loading, strict=True))]])
    )
    print()
    print(_table(costs, len(grid.devices)), end="\n\n")
    if ranger is None:
        print("ranger: left out, as Rscript or its package ranger is not there (Debian: r-cran-ranger)")
    verdicts = _judge(loading, ours, size)
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predicting", description=__doc__)
    parser.add_argument("model", type=Path, help="folder of a model")
    parser.add_argument("dataset", type=Path, help="folder of a dataset")
    parser.add_argument("--repeat", type=int, default=7, help="fresh processes that load it")
    return parser.parse_args()


def _load(model: Path) -> tuple[float, float, float, float]:
    """Seconds of imports, card, arrays and whole process, in a fresh one."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _LOADING, str(model)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    whole = time.perf_counter() - start
    imported, card, arrays = json.loads(done.stdout)
    return imported, card, arrays, whole


def _ours(model: Path, grid: Grid) -> Cost:
    trained = open_model(read(model))
    assert isinstance(trained, TrainedTimeModel)
    predictor = trained.predictor
    one, many = _kernel(grid), _kernels(grid, _MILLION)
    return Cost(
        "crosscast, with intervals",
        [_seconds(lambda: predictor.predict(one)) for _ in range(300)],
        min(_seconds(lambda: predictor.predict(many)) for _ in range(3)),
    )


def _kernel(grid: Grid) -> ProfileBatch:
    return grid.profiles.take(np.array([0]))


def _kernels(grid: Grid, cells: int) -> ProfileBatch:
    """So many kernels that with all devices they make at least so many cells."""
    count = -(-cells // len(grid.devices))
    return grid.profiles.take(np.arange(count) % len(grid.profiles))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _rows(profiles: ProfileBatch, devices: int) -> Reals:
    """Metrics and number of the device, a row for each kernel on each device."""
    metrics = np.nan_to_num(np.repeat(profiles.metrics, devices, axis=0))
    return np.column_stack([metrics, np.tile(np.arange(devices), len(profiles))])


def _known(grid: Grid) -> tuple[Reals, Reals]:
    rows, response = _rows(grid.profiles, len(grid.devices)), grid.log_time.ravel()
    there = np.isfinite(response)
    return rows[there], response[there]


def _scikit(grid: Grid) -> Cost:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(
        _TREES, max_features=_TRIED, min_samples_split=_NODE_SIZE + 1, random_state=0
    )
    forest.fit(*_known(grid))
    count = len(grid.devices)
    one, many = _rows(_kernel(grid), count), _rows(_kernels(grid, _PEER_ROWS), count)
    taken = _seconds(lambda: forest.predict(many))
    return Cost(
        f"scikit-learn, {_TREES} trees",
        [_seconds(lambda: forest.predict(one)) for _ in range(20)],
        taken * _MILLION / len(many),
        f"by {len(many):,} rows",
    )


def _ranger(grid: Grid) -> Cost | None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    count = len(grid.devices)
    features, response = _known(grid)
    many = _rows(_kernels(grid, _PEER_ROWS), count)
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as scratch:
        paths = [Path(scratch) / name for name in ("rows.csv", "one.csv", "many.csv")]
        _write(paths[0], np.column_stack([features, response]))
        for path, rows in zip(paths[1:], (_rows(_kernel(grid), count), many), strict=True):
            _write(path, np.column_stack([rows, np.zeros(len(rows))]))
        script = Path(scratch) / "predict.R"
        script.write_text(_R, encoding="utf-8")
        words = [*map(str, paths), *map(str, (_TREES, _TRIED, _NODE_SIZE))]
        done = subprocess.run(
            [rscript, "--vanilla", str(script), *words], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        return None
    *one, taken = map(float, done.stdout.split())
    return Cost(f"ranger, {_TREES} trees", one, taken * _MILLION / len(many), f"by {len(many):,} rows")


def _write(path: Path, rows: Reals) -> None:
    header = ",".join([*(f"x{place}" for place in range(rows.shape[1] - 1)), "response"])
    np.savetxt(path, rows, delimiter=",", header=header, comments="")


def _table(costs: Sequence[Cost], devices: int) -> str:
    return text_table(
        ["predicting", f"one kernel, {devices} devices", "a million", ""],
        [[cost.name, milliseconds(cost.one_s), f"{cost.million_s:.2f} s", cost.note] for cost in costs],
    )


def _judge(loading: Sequence[tuple[float, ...]], ours: Cost, size: int) -> list[Verdict]:
    load = statistics.median(card + arrays for _, card, arrays, _ in loading)
    one = statistics.median(ours.one_s)
    return [
        Verdict(
            f"load <= {1e3 * _LOAD_S:g} ms in a fresh process, after imports",
            f"median {1e3 * load:.1f} ms",
            load <= _LOAD_S,
        ),
        Verdict(
            f"one kernel on all devices <= {1e3 * _ONE_S:g} ms", f"median {1e3 * one:.2f} ms", one <= _ONE_S
        ),
        Verdict(
            f"a million predictions <= {_MILLION_S:g} s",
            f"{ours.million_s:.2f} s",
            ours.million_s <= _MILLION_S,
        ),
        Verdict(f"artefact <= {_BYTES / 1e6:g} MB", f"{size / 1e6:.2f} MB", size <= _BYTES),
    ]


if __name__ == "__main__":
    sys.exit(main())
