"""How well jobs on parts of a GPU are predicted from mixes: the whole evaluation, held to its figures.

``python -m benchmarks.corun_partition DATASET`` leaves mixes, jobs and clusters of jobs out. DATASET is what
``crosscast dataset import miso`` makes. With ``--logs mig_iter_time.csv``, times of the origin's logs by
network, batch size and part, all jobs of a network are left out together, too. It takes some two minutes of
two processors.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.arrays import Integers, Reals
from crosscast.data.corun import Mixes, mixes_of
from crosscast.data.dataset import read_dataset
from crosscast.evaluation.partition import PartitionResult, evaluate_partition, folds_of_mixes
from crosscast.prediction.corun.partition import PARTITION_MODELS, MixFold, folds_without_jobs

_CLUSTERS = 8
_MOST = {"leave-bag-out": 0.018, "leave-benchmark-out": 0.030}
_COVERAGE = (0.85, 0.95)


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    mixes = mixes_of(read_dataset(options.dataset)).without_copies()
    protocols = {
        "leave-bag-out": folds_of_mixes(mixes, "leave-bag-out", 0),
        "leave-benchmark-out": folds_of_mixes(mixes, "leave-benchmark-out", 0),
        "clusters": _without_clusters(mixes),
        **({} if options.logs is None else {"networks": _without_networks(mixes, options.logs)}),
    }
    rows, verdicts = [], []
    for name, folds in protocols.items():
        split = name if name in _MOST else "leave-benchmark-out"
        start = time.perf_counter()
        found = evaluate_partition(
            mixes, list(PARTITION_MODELS), split, folds=folds, jobs=options.jobs
        ).results
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

    jobs, alone = _alone(mixes)
    # Nearly all jobs are slowest on the smallest part: the other sizes tell them apart.
    telling = alone[:, :-1] / alone[:, :-1].std(axis=0)
    return _without_alike(
        mixes, jobs, KMeans(_CLUSTERS, n_init=10, random_state=0).fit_predict(telling).tolist()
    )


def _without_networks(mixes: Mixes, logs: Path) -> tuple[MixFold, ...]:
    """Leave out together what is of one network, by the logs whose times are most like those of the jobs."""
    from scipy.optimize import linear_sum_assignment

    times: dict[tuple[str, str], dict[str, float]] = {}
    with logs.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            logged = times.setdefault((row["model"], row["batch"]), {})
            logged[row["mig_slice"].split("g")[0]] = float(row["median_s"])
    parts = [f"{slices:g}" for slices in mixes.slices]
    known = {
        key: [by_part[part] for part in parts] for key, by_part in times.items() if {*parts} <= {*by_part}
    }
    relative = np.array(list(known.values()))
    relative /= relative.max(axis=1, keepdims=True)
    jobs, alone = _alone(mixes)
    apart = np.abs(alone[:, None] - relative[None]).max(axis=2)
    log = linear_sum_assignment(apart)[1].tolist()
    return _without_alike(mixes, jobs, [list(known)[place][0] for place in log])


def _alone(mixes: Mixes) -> tuple[Integers, Reals]:
    """Numbers of the jobs, and their relative times on parts."""
    jobs = np.unique(mixes.job[mixes.judged])
    return jobs, np.array([mixes.alone[mixes.job == job].mean(axis=0) for job in jobs.tolist()])


def _without_alike(mixes: Mixes, jobs: Integers, names: Sequence[str | int]) -> tuple[MixFold, ...]:
    blocks = [jobs[[name == each for each in names]] for name in sorted(set(names), key=str)]
    return folds_without_jobs(mixes, blocks)


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
    parser.add_argument("--logs", type=Path, help="mig_iter_time.csv, to leave networks out")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
