"""Align two sequences."""

from __future__ import annotations

from functools import cached_property
from math import isqrt

import numpy as np

from crosscast.kernel import Argument
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal

_TILE = 16
_LETTERS = 20
_PENALTY = 10


class Nw(Application):
    """Compute the alignment scores of two sequences of equal length (Needleman-Wunsch).

    The dynamic programming dwarf, after "A general method applicable to the search for similarities in the
    amino acid sequence of two proteins", J. Mol. Biol. 48 (1970), with a penalty for each letter of a gap.
    Sequences and the scores of substitutions are random; a letter matches itself best.
    """

    name = "nw"
    kernels = ("needle_opencl_shared_1", "needle_opencl_shared_2")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        length = parameters["length"]
        one, other = random.integers(_LETTERS, size=(2, length))
        self.substitution = _substitution_scores(random)[one[:, None], other]
        self.scores = np.zeros((length + 1, length + 1), np.int32)
        self._gaps = -_PENALTY * np.arange(length + 1, dtype=np.int32)
        self.arrays = (self.substitution, self.scores)

        self._tiles = -(-length // _TILE)
        extents = np.int32(length), np.int32(_PENALTY)
        self._arguments: tuple[Argument, ...] = self.substitution, self.scores, *extents

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Parameters of about the largest problem whose working set is at most `nbytes`."""
        return {"length": isqrt(nbytes // 8) - 1}

    def run(self, queue: Queue) -> None:
        """Fill the scores from the upper left corner to the lower right one."""
        self.scores[0] = self.scores[:, 0] = self._gaps
        queue.write(self.substitution, self.scores)
        for diagonal in range(self._tiles):
            size = (diagonal + 1) * _TILE
            queue.launch("needle_opencl_shared_1", (size,), (_TILE,), *self._arguments, np.int32(diagonal))
        tiles = np.int32(self._tiles)
        for count in range(self._tiles - 1, 0, -1):
            queue.launch("needle_opencl_shared_2", (count * _TILE,), (_TILE,), *self._arguments, tiles)
        queue.read(self.scores)

    def check(self) -> None:
        """Compare with scores that NumPy computes, one whole anti-diagonal after another."""
        expect_equal("scores", self.scores, self._expected)

    @cached_property
    def _expected(self) -> Array:
        length = len(self.substitution)
        scores = np.zeros((length + 1, length + 1), np.int64)
        scores[0] = scores[:, 0] = -_PENALTY * np.arange(length + 1)
        for diagonal in range(2, 2 * length + 1):
            i = np.arange(max(1, diagonal - length), min(length, diagonal - 1) + 1)
            j = diagonal - i
            gap = np.maximum(scores[i - 1, j], scores[i, j - 1]) - _PENALTY
            scores[i, j] = np.maximum(scores[i - 1, j - 1] + self.substitution[i - 1, j - 1], gap)
        return scores


def _substitution_scores(random: np.random.Generator) -> Array:
    """Score of each pair of letters: symmetric, highest for equal letters."""
    scores = np.triu(random.integers(-4, 4, (_LETTERS, _LETTERS), np.int32), 1)
    scores += scores.T
    np.fill_diagonal(scores, random.integers(4, 12, _LETTERS))
    return scores
