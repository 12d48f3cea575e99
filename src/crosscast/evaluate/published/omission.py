"""Algorithm 1 and Table III: the forest tuned without one kernel, and, beside it, that kernel's own error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.evaluate.published.annealing import anneal
from crosscast.evaluate.published.headline import NODE_SIZE
from crosscast.evaluate.published.runs import Runs
from crosscast.evaluate.published.surface import Surface
from crosscast.evaluate.published.tuning import START

__all__ = ["Omitted", "omit"]


@dataclass(frozen=True)
class Omitted:
    """One row of Table III.

    Parameters
    ----------
    kernel
        The kernel that was left out, at all sizes.
    trees, tried
        Tuned parameters.
    oob_error
        Mean square error of the logarithm out of the bag, of all other kernels; times 100 it is the paper's
        'prediction error (%)'.
    r2
        Explained share of the variance, out of the bag as well.
    median_ape
        Of the kernel that was left out: median over its cells of abs(predicted / measured - 1), a fraction.
    rmse_log
        The root of the mean square of ln(predicted / measured) over the same cells.
    """

    kernel: str
    trees: int
    tried: int
    oob_error: float
    r2: float
    median_ape: float
    rmse_log: float


def omit(runs: Runs, kernel: str, grown: int, steps: int, seed: int) -> Omitted:
    """Tune without a kernel, then predict it.

    Parameters
    ----------
    runs
        All runs.
    kernel
        The kernel to leave out.
    grown
        Trees that are grown for each number of tried features.
    steps
        Steps of the search.
    seed
        Start of all random numbers.
    """
    left_out = runs.of_kernels({kernel})
    rest, own = runs.take(~left_out), runs.take(left_out)
    surface = Surface(rest.rows(), grown, (NODE_SIZE,), seed)
    search = anneal(surface, START, steps, seed)
    best = search.best
    cells = np.unique(own.cell)
    error = surface.at(search.tried[best]).forest[0][cells] - own.rows().means()[cells]
    return Omitted(
        kernel=kernel,
        trees=search.trees[best],
        tried=search.tried[best],
        oob_error=search.error[best],
        r2=1 - search.error[best] / float(np.var(rest.log_us)),
        median_ape=float(np.median(np.abs(np.expm1(error)))),
        rmse_log=float(np.sqrt(np.mean(error**2))),
    )
