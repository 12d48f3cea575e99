"""How well jobs on parts of a GPU are predicted from mixes: the whole evaluation, held to its figures.

``python -m benchmarks.corun_partition DATASET`` leaves mixes, jobs and clusters of jobs out. DATASET is what
``crosscast dataset import miso`` makes. It takes some three minutes of two processors.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.evaluate.corun.partition.folds import folds_of_mixes
from crosscast.evaluate.corun.partition.result import PartitionResult
from crosscast.evaluate.corun.partition.study import partition_results
from crosscast.predict.corun.partition.left_out import MixFold, folds_without_jobs
from crosscast.predict.corun.partition.registry import PARTITION_MODELS
from crosscast.tables.corun.mixes import Mixes, mixes_of
from crosscast.tables.dataset import read_dataset

_CLUSTERS = 8
_MOST = {"leave-bag-out": 0.018, "leave-benchmark-out": 0.030}
_COVERAGE = (0.85, 0.95)


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    mixes = mixes_of(read_dataset(options.dataset)).without_copies()
    rows, verdicts = [], []
    for name in (*_MOST, "clusters of jobs"):
        split = name if name in _MOST else "leave-benchmark-out"
        folds = folds_of_mixes(mixes, split, 0) if name in _MOST else _without_clusters(mixes)
        start = time.perf_counter()
        found = partition_results(mixes, list(PARTITION_MODELS), split, folds, jobs=options.jobs)
        rows += [[name, *_cells(each)] for each in found]
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        if name in _MOST:
            verdicts += _verdicts(name, found)
    head = ["held out", "model", "slices", "MAE", "coverage", "width", "worst", "of it"]
    print(text_table(head, rows), end="\n\n")
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _without_clusters(mixes: Mixes) -> tuple[MixFold, ...]:
    """Leave out together what does alike on parts: what is predicted is unlike all that is known."""
    from sklearn.cluster import KMeans

    jobs = np.unique(mixes.job[mixes.judged])
    alone = np.array([mixes.alone[mixes.job == job].mean(axis=0) for job in jobs.tolist()])
    cluster = KMeans(_CLUSTERS, n_init=10, random_state=0).fit_predict(alone)
    return folds_without_jobs(mixes, [jobs[cluster == number] for number in range(_CLUSTERS)])


def _cells(result: PartitionResult) -> list[str]:
    return [
        result.model,
        "all" if result.slices is None else f"{result.slices:g}",
        f"{result.mae:.4f}",
        f"{result.coverage:.3f}",
        f"{result.width:.3f}",
        f"{result.worst_coverage:.2f}",
        str(result.worst),
    ]


def _verdicts(name: str, results: tuple[PartitionResult, ...]) -> list[Verdict]:
    (own,) = [each for each in results if each.model == "partition" and each.slices is None]
    mae, coverage = own.mae or float("nan"), own.coverage or 0.0
    low, high = _COVERAGE
    return [
        Verdict(f"{name}: MAE <= {_MOST[name]:g}", f"{mae:.4f}", mae <= _MOST[name]),
        Verdict(
            f"{name}: 90 % intervals cover {low:g} to {high:g}", f"{coverage:.3f}", low <= coverage <= high
        ),
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corun_partition", description=__doc__)
    parser.add_argument("dataset", type=Path, help="folder of the dataset")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
