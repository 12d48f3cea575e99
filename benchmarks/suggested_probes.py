"""How good forecasts are with the probes that the model suggests, on applications that it has not seen.

``python -m benchmarks.suggested_probes DATASET`` leaves each application out in turn. The model that is
fitted to the others suggests devices, and the kernels of the application are measured on these. Beside it
stands the mean over all sets of devices.

Of a dataset of mixes, the model suggests mixes with the application, and is told what was measured of these.
Beside the error on all its other mixes stand that by as many mixes at random, in which nothing else is of the
same application either, and that on the same others without any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.table import Verdict, text_table
from crosscast.arrays import Reals
from crosscast.data.corun import CoRuns, MeasuredMix, co_runs
from crosscast.data.dataset import dataset_named
from crosscast.evaluation.corun.evaluation import folds_of, measured, of_one_device, predicted, with_mixes
from crosscast.evaluation.loop import one_thread
from crosscast.evaluation.time.evaluation import probe_sets
from crosscast.prediction.corun.models import CoRunProcessPredictor, Process
from crosscast.prediction.corun.probes import suggest_mixes, with_measured
from crosscast.prediction.time.card import suggest_probes
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.time.gaussian import GaussianPredictor
from crosscast.prediction.time.models import DEFAULT_MODEL, model_named

_MOST_MEDIAN, _MOST_RMSE = 0.22, 0.50


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--probes", type=int, default=2)
    parser.add_argument("--device", help="of mixes: by default that of the most")
    options = parser.parse_args()
    dataset = dataset_named(options.dataset)
    if dataset.mixes.num_rows:
        return _of_mixes(of_one_device(co_runs(dataset), options.device))
    grid = grid_of(dataset)
    groups, model = grid.profiles.groups("application"), model_named(DEFAULT_MODEL)
    sets = probe_sets(len(grid.devices), options.probes, 0)
    suggested: list[Reals] = []
    others: list[list[Reals]] = []
    for number in range(len(grid.applications)):
        train, test = grid.take(groups != number), grid.take(groups == number)
        predictor = model.fit(train, 0, others=False)
        errors = test.log_time - predictor.point.log_time(test.profiles)
        chosen = suggest_probes(predictor, options.probes).devices
        suggested.append(_left(predictor, errors, [predictor.keys.index(key) for key in chosen]))
        others.append([_left(predictor, errors, each) for each in sets])
        print(f"{grid.applications[number]}: {' and '.join(chosen)}", file=sys.stderr)
    found = _scores(np.concatenate(suggested))
    means = np.mean([_scores(np.concatenate(each)) for each in zip(*others, strict=True)], axis=0)
    rows = [["suggested", *_cells(found)], [f"all {len(sets)} sets, mean", *_cells(means)]]
    print(text_table(["probes", "median error", "RMSE of log"], rows), end="\n\n")
    verdicts = [
        Verdict(f"median error <= {_MOST_MEDIAN:.0%}", f"{found[0]:.1%}", round(found[0], 3) <= _MOST_MEDIAN),
        Verdict(f"RMSE of the logarithm <= {_MOST_RMSE:g}", f"{found[1]:.3f}", found[1] <= _MOST_RMSE),
    ]
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


_COUNTS, _DRAWS = (1, 2, 3, 5, 10), 10


def _of_mixes(runs: CoRuns) -> int:
    """Errors of slowdowns in mixes with an application, some of which are measured, averaged over these."""
    found: dict[int, list[Reals]] = {count: [] for count in _COUNTS}
    model, random = Process(), np.random.default_rng(0)
    with one_thread("fitting a model"):
        for fold in folds_of(runs.mixes, "leave-benchmark-out", 0):
            name, (train, test) = fold.held_out, (with_mixes(runs, each) for each in (fold.train, fold.test))
            predictor = model.fit(train, 0)
            slowed = [mix for mix in test.mixes if all(each.slowdown for each in mix.members)]
            kept = {
                tuple(sorted(run.name for run in mix.isolated_runs)): mix for mix in slowed if not mix.failed
            }
            mixes = list(kept.values())
            free = [mix for mix in mixes if [run.application for run in mix.isolated_runs].count(name) == 1]
            if predictor.slowdowns.learned is None or len(free) <= max(_COUNTS):
                print(f"{name}: left out (few mixes, or a model that is the mean)", file=sys.stderr)
                continue
            whole, among = ([mix.isolated_runs for mix in each] for each in (mixes, free))
            named = suggest_mixes(predictor.slowdowns, max(_COUNTS), whole, among, 1.0).mixes
            order = [free[among.index(mix)] for mix in named]
            print(f"{name}: {'; '.join(mix.name for mix in order[:3])}", file=sys.stderr)
            for count in _COUNTS:
                drawn = [random.choice(len(free), count, replace=False).tolist() for _ in range(_DRAWS)]
                told = [_error(predictor, mixes, [free[place] for place in each]) for each in drawn]
                told.append(_error(predictor, mixes, order[:count]))
                found[count].append(np.array([*told[-1], np.mean(told[:-1], axis=0)[0]]))
    rows = []
    for count, each in found.items():
        after, before, drawn_error = np.mean(each, axis=0).tolist()
        rows.append([str(count), f"{after:.1%}", f"{drawn_error:.1%}", f"{before:.1%}"])
    print(text_table(["mixes", "suggested", f"at random, mean of {_DRAWS}", "none"], rows))
    return 0


def _error(
    predictor: CoRunProcessPredictor, mixes: Sequence[MeasuredMix], probes: Sequence[MeasuredMix]
) -> tuple[float, float]:
    """Mean absolute error of slowdowns in the mixes that are no probes, with and without these."""
    rest = [mix for mix in mixes if mix not in probes]
    true = measured(rest, "slowdown")
    told = replace(predictor, slowdowns=with_measured(predictor.slowdowns, probes))
    after, before = (
        predicted(each.predict([mix.isolated_runs for mix in rest]), "slowdown") for each in (told, predictor)
    )
    return float(np.abs(after / true - 1).mean()), float(np.abs(before / true - 1).mean())


def _left(predictor: GaussianPredictor, errors: Reals, probes: list[int] | tuple[int, ...]) -> Reals:
    """Errors of logarithms on the other devices, with some measured."""
    given = np.full_like(errors, np.nan)
    given[:, list(probes)] = errors[:, list(probes)]
    rest = np.setdiff1d(np.arange(errors.shape[1]), probes)
    left = (errors - predictor.scatter.moments(given, np.eye(errors.shape[1]))[0])[:, rest]
    return np.asarray(left[np.isfinite(left)])


def _scores(left: Reals) -> tuple[float, float]:
    return float(np.median(np.abs(np.expm1(-left)))), float(np.sqrt((left**2).mean()))


def _cells(scores: tuple[float, float] | Reals) -> list[str]:
    return [f"{scores[0]:.1%}", f"{scores[1]:.3f}"]


if __name__ == "__main__":
    sys.exit(main())
