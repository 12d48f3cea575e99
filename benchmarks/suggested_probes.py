"""How good forecasts are with the probes that the model suggests, on applications that it has not seen.

``python -m benchmarks.suggested_probes DATASET`` leaves each application out in turn. The model that is
fitted to the others suggests devices, and the kernels of the application are measured on these. Beside it
stands the mean over all sets of devices.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.arrays import Reals
from crosscast.data.dataset import dataset_named
from crosscast.evaluation.time import probe_sets
from crosscast.prediction.time.data import grid_of
from crosscast.prediction.time.gaussian import GaussianPredictor
from crosscast.prediction.time.models import DEFAULT_MODEL, model_named
from crosscast.prediction.time.suggestion import suggest_probes

_MOST_MEDIAN, _MOST_RMSE = 0.22, 0.50


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--probes", type=int, default=2)
    options = parser.parse_args()
    grid = grid_of(dataset_named(options.dataset))
    groups, model = grid.profiles.groups("application"), model_named(DEFAULT_MODEL)
    sets = probe_sets(len(grid.devices), options.probes, 0)
    suggested: list[Reals] = []
    others: list[list[Reals]] = []
    for number in range(len(grid.applications)):
        train, test = grid.take(groups != number), grid.take(groups == number)
        predictor, _ = model.fit_with_errors(train, 0, None)
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
