"""Which kernels make the error of predicted times, on applications that the model has not seen.

``python -m benchmarks.time_errors DATASET`` leaves each application out in turn. It prints the kernels with
the largest share of the squared errors of the logarithm, and what the error would be if the mean error of
each application, kernel or device were known.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.table import text_table
from crosscast.arrays import Reals
from crosscast.data.dataset import dataset_named
from crosscast.prediction.time.data import grid_of
from crosscast.prediction.time.gaussian import out_of_fold_residuals
from crosscast.prediction.time.models import DEFAULT_MODEL, model_named

_SHOWN = 12


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    grid = grid_of(dataset_named(parser.parse_args().dataset))
    errors = out_of_fold_residuals(model_named(DEFAULT_MODEL).point, grid, 0)
    squares = np.nansum(errors**2, axis=1)
    order = np.argsort(-squares, kind="stable")
    rows = [["all", "", *_cells(errors)]]
    for count, place in enumerate(order[:_SHOWN].tolist(), start=1):
        without = np.delete(errors, order[:count], axis=0)
        share = f"{squares[place] / squares.sum():.1%}"
        rows.append([f"without {' '.join(grid.profiles.names[place])}", share, *_cells(without)])
    groups = grid.profiles.groups("application")
    by_application = errors.copy()
    for own in (groups == group for group in np.unique(groups)):
        by_application[own] -= np.nanmean(errors[own])
    known = {
        "application": by_application,
        "kernel at a size": errors - np.nanmean(errors, axis=1, keepdims=True),
        "device": errors - np.nanmean(errors, axis=0),
    }
    rows += [[f"mean error of each {name} known", "", *_cells(each)] for name, each in known.items()]
    print(text_table(["kernels, one after the other", "squares", "RMSE of log", "median error"], rows))
    return 0


def _cells(errors: Reals) -> list[str]:
    found = errors[np.isfinite(errors)]
    return [f"{np.sqrt(np.mean(found**2)):.3f}", f"{np.median(np.abs(np.expm1(-found))):.1%}"]


if __name__ == "__main__":
    raise SystemExit(main())
