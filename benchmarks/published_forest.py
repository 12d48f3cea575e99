"""Fit of the published forest on all rows, against R's ranger and scikit-learn's forest on the same rows.

``python -m benchmarks.published_forest DATASET`` prints times and errors out of the bag of the same run, and
whether they meet the project's figures. DATASET is an imported one (``crosscast dataset import aiwc2018``).
Without ``Rscript`` and its package ranger, that peer is left out, and said so.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.data.dataset import read_dataset
from crosscast.studies.johnston2018_forests import NODE_SIZE, TREES, TRIED, KernelRuns, grow, runs_of

_TIMES_FASTER = 5.0
_SAME_ERROR = 1.02
"""Errors of two forests of other random numbers differ by about so much."""

_R = """
library(ranger)
arguments <- commandArgs(trailingOnly = TRUE)
rows <- read.csv(arguments[1], stringsAsFactors = TRUE)
start <- proc.time()[["elapsed"]]
forest <- ranger(response ~ ., data = rows, num.trees = as.integer(arguments[2]),
                 mtry = as.integer(arguments[3]), min.node.size = as.integer(arguments[4]),
                 splitrule = "variance", respect.unordered.factors = "order",
                 num.threads = as.integer(arguments[5]), seed = 1, verbose = FALSE)
cat(proc.time()[["elapsed"]] - start, forest$prediction.error, as.character(packageVersion("ranger")))
"""


@dataclass(frozen=True)
class Fit:
    """One fit.

    Parameters
    ----------
    name
        Of what.
    trees, threads
        How many.
    seconds
        Wall time.
    error
        Mean square error of the logarithm out of the bag.
    """

    name: str
    trees: int
    threads: int
    seconds: float
    error: float

    @property
    def per_tree_s(self) -> float:
        """Wall time of a tree."""
        return self.seconds / self.trees


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    runs = runs_of(read_dataset(options.dataset))
    ours = _ours(runs, options.trees, options.seed)
    ranger = _ranger(runs, options.trees, options.threads)
    peers = [_scikit(runs, options.peer_trees, options.seed), *([ranger] if ranger else [])]
    print(f"load: {os.getloadavg()[0]:.2f}; {len(runs)} rows, {runs.features.shape[1] + 1} features\n")
    print(_table(ours, peers), end="\n\n")
    if ranger is None:
        print("ranger: left out, as Rscript or its package ranger is not there (Debian: r-cran-ranger)")
    verdicts = _judge(ours, ranger)
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published_forest", description=__doc__)
    parser.add_argument("dataset", type=Path, help="folder of a dataset")
    parser.add_argument("--trees", type=int, default=TREES, help="trees of ours and of ranger")
    parser.add_argument("--peer-trees", type=int, default=10, help="trees of scikit-learn's forest")
    parser.add_argument("--threads", type=int, default=2, help="threads of ranger; ours has one")
    parser.add_argument("--seed", type=int, default=0, help="start of the random numbers")
    return parser.parse_args()


def _ours(runs: KernelRuns, trees: int, seed: int) -> Fit:
    start = time.perf_counter()
    error = grow(runs.rows(), trees, TRIED, (NODE_SIZE,), seed).error(trees, 0)
    return Fit("crosscast", trees, 1, time.perf_counter() - start, error)


def _scikit(runs: KernelRuns, trees: int, seed: int) -> Fit:
    """scikit-learn's own forest on the rows, which tries on until a feature varies."""
    from sklearn.ensemble import RandomForestRegressor

    rows = runs.rows()
    features, response = rows.features[rows.cell].astype(np.float32), rows.response
    start = time.perf_counter()
    forest = RandomForestRegressor(
        trees, max_features=TRIED, min_samples_split=NODE_SIZE + 1, random_state=seed
    )
    forest.fit(features, response)
    seconds = time.perf_counter() - start
    return Fit("scikit-learn", trees, 1, seconds, _scikit_error(forest, features, response))


def _scikit_error(forest: Any, features: np.ndarray, response: np.ndarray) -> float:
    """Error out of the bag over the rows that some tree did not draw; its own counts the others as 0."""
    sums, counts = np.zeros(len(response)), np.zeros(len(response))
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        out = np.bincount(drawn, minlength=len(response)) == 0
        sums[out] += tree.predict(features[out])
        counts += out
    known = counts > 0
    return float(np.mean((sums[known] / counts[known] - response[known]) ** 2))


def _ranger(runs: KernelRuns, trees: int, threads: int) -> Fit | None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as scratch:
        rows, script = Path(scratch) / "rows.csv", Path(scratch) / "fit.R"
        _write_rows(runs, rows)
        script.write_text(_R, encoding="utf-8")
        arguments = [str(rows), *map(str, (trees, TRIED, NODE_SIZE, threads))]
        done = subprocess.run(
            [rscript, "--vanilla", str(script), *arguments], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        print(f"ranger: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    seconds, error, version = done.stdout.split()
    return Fit(f"ranger {version}", trees, threads, float(seconds), float(error))


def _write_rows(runs: KernelRuns, path: Path) -> None:
    keys = [device.key for device in runs.grid.devices]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*runs.columns, "device", "response"])
        for kernel, device, response in zip(
            runs.kernel.tolist(), runs.device.tolist(), runs.log_us.tolist(), strict=True
        ):
            writer.writerow([*runs.features[kernel].tolist(), keys[device], response])


def _table(ours: Fit, peers: Sequence[Fit]) -> str:
    head = ["fit", "trees", "threads", "s", "ms/tree", "100 x OOB error", "x ours, a tree"]
    return text_table(
        head,
        [
            [
                fit.name,
                str(fit.trees),
                str(fit.threads),
                f"{fit.seconds:.1f}",
                f"{1e3 * fit.per_tree_s:.1f}",
                f"{100 * fit.error:.2f}",
                f"{fit.per_tree_s / ours.per_tree_s:.1f}",
            ]
            for fit in (ours, *peers)
        ],
    )


def _judge(ours: Fit, ranger: Fit | None) -> list[Verdict]:
    titles = (f"fit >= {_TIMES_FASTER:g} x faster than ranger", "error out of the bag no worse than ranger's")
    if ranger is None:
        return [Verdict(title, "no ranger", None) for title in titles]
    times = ranger.seconds / ours.seconds
    found = f"{100 * ours.error:.2f} against {100 * ranger.error:.2f}"
    return [
        Verdict(titles[0], f"{times:.1f} x", times >= _TIMES_FASTER),
        Verdict(titles[1], found, ours.error <= _SAME_ERROR * ranger.error),
    ]


if __name__ == "__main__":
    sys.exit(main())
