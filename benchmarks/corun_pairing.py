"""What predicted pairing keeps of the best pairing's gain over a random one, on pairs that were measured.

``python -m benchmarks.corun_pairing DATASET`` pairs 100 random jobs again and again by predictions of models
that had not seen the pairs (known jobs), or not one of the benchmarks (unseen), and by the mean, which looks
at no job. It prints the shares with intervals of a bootstrap over the repeats, and whether the figures of the
project are met. It also measures how long pairing 200 jobs takes. DATASET is one of pairs, such as gavel's.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import bootstrap

from benchmarks.pair_experiment import (
    EQUAL,
    LOGNORMAL,
    PredictedPairs,
    Truth,
    known_pairs,
    share_kept,
    unseen_pairs,
)
from benchmarks.table import Verdict, text_table
from crosscast.arrays import Reals
from crosscast.data.corun import CoRuns, IsolatedRun, co_runs
from crosscast.data.dataset import read_dataset
from crosscast.decide.colocation import choose_colocation
from crosscast.evaluation.corun.evaluation import of_one_device, out_of_fold_errors
from crosscast.evaluation.loop import one_thread
from crosscast.prediction.corun import CoRunModel
from crosscast.prediction.corun.artefact import KNOWN, CoRunCard, FittedCoRun, TrainedCoRunModel
from crosscast.prediction.corun.models import DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.named_models import load_model

_ASKED = {
    ("known", EQUAL): 0.50,
    ("known", LOGNORMAL): 0.65,
    ("unseen", EQUAL): 0.25,
    ("unseen", LOGNORMAL): 0.55,
}
_CONSTANT = "mean"
_JOBS, _PAIRING_S = 200, 1.0


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    runs = of_one_device(co_runs(read_dataset(options.dataset)), options.device)
    model = models_named([options.model])[0]
    truth = Truth.of(runs.mixes)
    shares = {name: _shares(runs, truth, name, options) for name in (_CONSTANT, model.name)}
    rows = [
        [name, *case, f"{found.mean():.2f}", "{:.2f} to {:.2f}".format(*_interval(found, options.seed))]
        for case in _ASKED
        for name, by_case in shares.items()
        for found in [by_case[case]]
    ]
    print(f"load: {os.getloadavg()[0]:.2f}; {options.jobs} jobs, {options.repeats} repeats\n")
    print(text_table(["model", "jobs", "lengths", "share kept", "95 %"], rows), end="\n\n")
    verdicts = [
        _judge(case, least, shares[model.name][case], shares[_CONSTANT][case])
        for case, least in _ASKED.items()
    ]
    verdicts.append(_pairing_time(runs, model, truth.isolated_runs, options.seed))
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corun_pairing", description=__doc__)
    parser.add_argument("dataset", type=Path, help="folder of a dataset of pairs")
    parser.add_argument("--model", default=DEFAULT_MODEL, choices=list(MODELS))
    parser.add_argument("--device", help="key of a device; by default the one with the most mixes")
    parser.add_argument("--jobs", type=int, default=100, help="jobs of a repeat")
    parser.add_argument("--repeats", type=int, default=56)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, help="folder that keeps what models predict")
    return parser.parse_args()


def _shares(
    runs: CoRuns, truth: Truth, name: str, options: argparse.Namespace
) -> dict[tuple[str, str], Reals]:
    model = models_named([name])[0]
    predicted: dict[str, Sequence[PredictedPairs]] = {
        "known": [known_pairs(runs, model, truth, options.seed, cache=options.cache)],
        "unseen": unseen_pairs(runs, model, truth, options.seed, cache=options.cache),
    }
    return {
        (whose, lengths): share_kept(
            truth,
            predicted[whose],
            lengths,
            jobs=options.jobs,
            repeats=options.repeats,
            seed=options.seed,
        )
        for whose, lengths in _ASKED
    }


def _interval(shares: Reals, seed: int) -> tuple[float, float]:
    found = bootstrap((shares,), np.mean, rng=np.random.default_rng(seed)).confidence_interval
    return float(found.low), float(found.high)


def _judge(case: tuple[str, str], least: float, own: Reals, constant: Reals) -> Verdict:
    found = f"{own.mean():.2f}, and the mean keeps {constant.mean():.2f}"
    met = bool(own.mean() >= least and own.mean() > constant.mean())
    return Verdict(
        f"{case[0]} jobs, {case[1]} lengths: keeps >= {least:.2f} and more than the mean", found, met
    )


def _pairing_time(
    runs: CoRuns, model: CoRunModel, isolated_runs: Sequence[IsolatedRun], seed: int
) -> Verdict:
    """Pair jobs of which none is like another, with a model that was kept and is read again."""
    with one_thread("pairing jobs"), tempfile.TemporaryDirectory() as folder:
        predictor = model.fit(runs, seed)
        errors = {KNOWN: out_of_fold_errors(runs, model.refit(predictor), "leave-mix-out", seed)}
        card = CoRunCard(model.name, seed, runs.mixes[0].device, "{}", (2,), runs.applications, None, {}, {})
        TrainedCoRunModel(card, FittedCoRun(predictor, errors)).save(folder)
        random = np.random.default_rng(seed)
        jobs = [
            replace(
                isolated_run,
                size=f"{isolated_run.size} {number}",
                features={
                    name: value * random.uniform(0.9, 1.1) for name, value in isolated_run.features.items()
                },
            )
            for number, isolated_run in enumerate(itertools.islice(itertools.cycle(isolated_runs), _JOBS))
        ]
        lengths = np.exp(random.standard_normal(_JOBS)).tolist()
        trained = load_model(folder, "corun")
        times = []
        for _ in range(3):
            start = time.perf_counter()
            choose_colocation(jobs, trained, lengths=lengths, max_slowdown=3.0)
            times.append(time.perf_counter() - start)
    found = f"least {min(times):.2f} s, most {max(times):.2f} s"
    return Verdict(f"{_JOBS} jobs paired <= {_PAIRING_S:g} s", found, min(times) <= _PAIRING_S)


if __name__ == "__main__":
    sys.exit(main())
