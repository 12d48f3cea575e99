"""Throughput of a cluster whose jobs share GPUs: nobody, everybody, by predicted slowdowns, and by true ones.

``python -m benchmarks.cluster_sharing DATASET`` takes a dataset of pairs, such as gavel's. Slowdowns of each
pair are predicted by a model that was not fitted to the pair. Jobs of all kinds are submitted at once to 32
GPUs; a job that has no GPU of its own may share one with one other job, if the policy accepts that. The mean
over seeds is printed, and how many jobs ran longer than the limit that all policies but `always` promise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.pair_experiment import Truth, known_pairs
from benchmarks.table import Verdict, text_table
from crosscast.cluster import Jobs, Machine, policy_named
from crosscast.cluster.metrics import sharing_metrics
from crosscast.cluster.rules import Slowdowns, sharing_for
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import LEAST_GAIN, LIMIT, SHARING_POLICIES
from crosscast.data.corun import co_runs
from crosscast.data.dataset import read_dataset
from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.prediction.corun.models import DEFAULT_MODEL, models_named

_SHARE_OF_GAIN = 0.85
_BROKEN = 0.05
_GPUS = 32


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_sharing", description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--device", help="key of a device; by default the one with the most mixes")
    parser.add_argument("--jobs", type=int, default=4000, help="jobs of each seed (4,000)")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds (5)")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="slowdown that jobs are promised at most (2)"
    )
    parser.add_argument("--gain", type=float, default=LEAST_GAIN, help="least gain in speed of a pair")
    parser.add_argument("--cache", type=Path, help="folder that keeps what models predict")
    options = parser.parse_args()
    slowdowns = predicted_slowdowns(options.dataset, options.device, options.cache)
    runs = [
        _throughputs(slowdowns, options.limit, options.gain, options.jobs, seed)
        for seed in range(options.seeds)
    ]
    means = {name: np.mean([run[name] for run in runs], axis=0) for name in SHARING_POLICIES}
    never, oracle = means["never"][0], means["oracle"][0]
    rows = [
        [
            name,
            f"{per_h:,.1f}",
            f"{100 * (per_h - never) / (oracle - never):.0f} %",
            f"{slow:.2f}",
            f"{100 * late:.1f} %",
        ]
        for name, (per_h, slow, late) in means.items()
    ]
    heads = ["sharing", "jobs/h", "of oracle's gain", "mean slowdown", f"slower than {options.limit:g} times"]
    print(text_table(heads, rows), end="\n\n")
    best = max((means[name] for name in ("threshold", "gain")), key=lambda each: each[0])
    kept = (best[0] - never) / (oracle - never)
    verdicts = [
        Verdict(
            f">= {100 * _SHARE_OF_GAIN:g} % of the oracle's gain",
            f"{100 * kept:.1f} %",
            kept >= _SHARE_OF_GAIN,
        ),
        Verdict(
            f"promises broken <= {100 * _BROKEN:g} %", f"{100 * best[2]:.1f} %", bool(best[2] <= _BROKEN)
        ),
    ]
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def predicted_slowdowns(folder: Path, device: str | None, cache: Path | None) -> Slowdowns:
    """Slowdowns of all pairs, true and predicted by a model that was not fitted to the pair."""
    runs = of_one_device(co_runs(read_dataset(folder)), device)
    truth = Truth.of(runs.mixes)
    predicted = known_pairs(runs, models_named([DEFAULT_MODEL])[0], truth, 0, cache=cache)
    true = np.where(np.isnan(truth.slowdown), np.inf, truth.slowdown)
    return Slowdowns(tuple(each.name for each in truth.isolated_runs), true, predicted.slowdown)


def _throughputs(
    slowdowns: Slowdowns, limit: float, gain: float, count: int, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Jobs an hour, mean slowdown and share of broken promises, by policy."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(len(slowdowns.kinds), size=count)
    run_s = np.exp(rng.normal(np.log(1800), 1, size=count))[:, None]
    jobs = Jobs(np.arange(count), np.zeros(count), np.ones(count, np.int64), run_s, run_s)
    found = {}
    for name in SHARING_POLICIES:
        sharing = sharing_for(name, slowdowns, kind, limit, gain, 2)
        schedule = simulate(jobs, [Machine("gpus", _GPUS)], policy=policy_named("easy"), sharing=sharing)
        metrics = sharing_metrics(schedule, limit)
        per_h = count / float(schedule.end_s.max()) * 3600
        found[str(name)] = per_h, metrics.mean_slowdown, metrics.broken_promises
    return found


if __name__ == "__main__":
    raise SystemExit(main())
