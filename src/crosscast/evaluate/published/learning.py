"""Algorithm 2 and Figure 3: the error by the number of kernels trained on, as published and corrected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.evaluate.published.headline import NODE_SIZE, TRIED
from crosscast.evaluate.published.runs import Runs
from crosscast.predict.cell_trees import draw_trees

__all__ = ["SCRIPT_NODE_SIZE", "Learning", "counts_of", "learn", "recycled"]

SCRIPT_NODE_SIZE = 34
"""``min.node.size`` of the published script; the paper's text has 9."""


@dataclass(frozen=True)
class Learning:
    """Errors for one number of kernels, over all samples; of logarithms.

    Parameters
    ----------
    kernels
        Kernels that were drawn to train on.
    samples, trees
        Samples that were drawn, and trees of each forest.
    mae_published, rmse_published
        As the published script does it: see `recycled`.
    known_share
        Share of its test rows whose cell is in training as well.
    mae_corrected, rmse_corrected
        Trained on all rows of the kernels drawn, tested on all rows of the others; ``None`` where there
        are no others.
    """

    kernels: int
    samples: int
    trees: int
    mae_published: float
    rmse_published: float
    known_share: float
    mae_corrected: float | None
    rmse_corrected: float | None


def counts_of(kernels: int, most: int) -> list[int]:
    """Numbers of kernels to take: all, or about so many from 1 to all, closer together where few."""
    if most >= kernels:
        return list(range(1, kernels + 1))
    # One less than all is the last that the corrected test can be done with.
    spread = 1 + (kernels - 1) * np.linspace(0, 1, max(2, most - 1)) ** 1.3
    return sorted({*np.round(spread).astype(int).tolist(), max(1, kernels - 1)})


def recycled(kernel: Integers, drawn: Integers) -> Flags:
    """Rows that ``kernel == drawn`` picks in R, where `drawn` is repeated along the rows.

    A row is picked if its kernel is the one that stands at its place, so of each kernel drawn one row in
    ``len(drawn)`` is trained on, and all its other rows are tested on.

    Examples
    --------
    >>> recycled(np.array([0, 0, 0, 0, 1, 1, 2]), np.array([0, 1])).tolist()
    [True, False, True, False, False, True, False]
    """
    picked: Flags = np.resize(drawn, len(kernel)) == kernel
    return picked


def learn(runs: Runs, kernels: int, samples: int, trees: int, seed: int) -> Learning:
    """Draw so many kernels, train on them, and test in both ways.

    Parameters
    ----------
    runs
        All runs, in the order of the table.
    kernels
        Kernels to draw.
    samples
        How often.
    trees
        Trees of each forest.
    seed
        Start of all random numbers.
    """
    names = runs.kernel_names()
    number = {name: place for place, name in enumerate(names)}
    kernel = np.array([number[name] for name in runs.grid.profiles.kernel])[runs.kernel]
    published, corrected, known = [], [], []
    for sample in range(samples):
        # Larger sets hold the smaller ones of the same sample, so that the curve is of their sizes alone.
        rng = np.random.default_rng([seed, sample])
        drawn = rng.permutation(len(names))[:kernels]
        picked = recycled(kernel, drawn)
        tree_seed = int(rng.integers(2**31))
        if picked.any():
            published.append(_errors(runs, picked, SCRIPT_NODE_SIZE, trees, tree_seed))
            known.append(np.isin(runs.cell[~picked], runs.cell[picked]).mean())
        whole = np.isin(kernel, drawn)
        if not whole.all():
            corrected.append(_errors(runs, whole, NODE_SIZE, trees, tree_seed))
    mae_published, rmse_published = _over(published)
    mae_corrected, rmse_corrected = _over(corrected) if corrected else (None, None)
    return Learning(
        kernels=kernels,
        samples=samples,
        trees=trees,
        mae_published=mae_published,
        rmse_published=rmse_published,
        known_share=float(np.mean(known)),
        mae_corrected=mae_corrected,
        rmse_corrected=rmse_corrected,
    )


def _errors(runs: Runs, trained: Flags, node_size: int, trees: int, seed: int) -> Reals:
    """Errors of the rows that were not trained on."""
    rows = runs.take(trained).rows()
    predictions = np.zeros(len(rows.features))
    for drawn in draw_trees(rows, trees, tried=TRIED, seed=seed):
        predictions += drawn.predictions([node_size])[0] / trees
    test = runs.take(~trained)
    errors: Reals = predictions[test.cell] - test.log_us
    return errors


def _over(samples: list[Reals]) -> tuple[float, float]:
    """Mean absolute and root mean square over the rows of all samples."""
    errors = np.concatenate(samples)
    return float(np.mean(np.abs(errors))), float(np.sqrt(np.mean(errors**2)))
