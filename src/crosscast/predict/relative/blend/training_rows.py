"""Rows that the blend learns from: no kernel weighs more than another, or has more than so many rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.relative.kernel_weights import kernel_weights
from crosscast.predict.relative.observations import Vectors

__all__ = ["TrainingRows", "training_rows"]

_MOST = 120
"""Rows of a kernel: more of one that was run at a thousand sizes tell hardly more, and cost time."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to fit to.

    Parameters
    ----------
    vectors
        ``r`` rows.
    log_time
        Logarithms of times in seconds, of shape ``(r, d)``.
    weights
        Weight of each row, of shape ``(r,)``: kernels weigh the same.
    """

    vectors: Vectors
    log_time: Reals
    weights: Reals

    @property
    def log_relative(self) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``."""
        centred: Reals = self.log_time - self.log_time.mean(axis=1, keepdims=True)
        return centred

    def rows(self, places: Integers) -> TrainingRows:
        """Some of the rows."""
        return TrainingRows(self.vectors.rows(places), self.log_time[places], self.weights[places])


def training_rows(vectors: Vectors) -> TrainingRows:
    """Take rows of each kernel, spread evenly from its shortest to its longest runs.

    Parameters
    ----------
    vectors
        Runs with their times.
    """
    seen, log_time = vectors.observations, np.log(vectors.times_s)
    length = log_time.mean(axis=1)
    kernels: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, kernel in enumerate(zip(seen.application, seen.kernel, strict=True)):
        kernels[kernel].append(row)
    chosen = [_spread(np.array(rows), length) for rows in kernels.values()]
    places = np.concatenate(chosen)
    kept = vectors.rows(places)
    return TrainingRows(kept, log_time[places], kernel_weights(kept.observations))


def _spread(rows: Integers, length: Reals) -> Integers:
    if len(rows) <= _MOST:
        return rows
    ordered = rows[np.argsort(length[rows], kind="stable")]
    return np.sort(ordered[np.linspace(0, len(rows) - 1, _MOST).round().astype(np.int64)])
