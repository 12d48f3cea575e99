"""Smith-Waterman alignment of two sequences."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from math import isqrt

import numpy as np
import numpy.typing as npt

from crosscast.errors import CheckFailed
from crosscast.kernel import Argument
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal

_TILE = 32
_LETTERS = 4
_GAP_OPEN = 10
_GAP_EXTEND = 1
# Letters 0 and 2 are purines, 1 and 3 pyrimidines: a change within either is the more likely one.
_SIMILARITY = np.array([[5, -4, -2, -4], [-4, 5, -4, -2], [-2, -4, 5, -4], [-4, -2, -4, 5]], np.int32)


def _working_set(length: int) -> int:
    score_and_path, letters, gaps_and_best, alignment, summary = 4 + 1, 2 * 1, 2 * 4 + 2 * 4, 2 * 2 * 4, 2 * 4
    by_letter = letters + gaps_and_best + alignment
    return score_and_path * length**2 + by_letter * length + summary + _SIMILARITY.nbytes


class Swat(Application):
    """Best local alignment of two nucleotide sequences with affine gaps (Smith and Waterman 1981).

    In the recurrence of O. Gotoh, *An improved algorithm for matching biological sequences*, 1982. The
    matrix of scores is filled by tiles, one anti-diagonal of tiles a launch; one work-item then follows
    the best alignment back. Dwarf: dynamic programming.
    """

    name = "swat"
    kernels = ("MatchStringGPUSync", "trace_back2")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        rows, columns = parameters["query"], parameters["database"]
        self.database = random.integers(0, _LETTERS, columns, np.uint8)
        self.query = _mutated(self.database, rows, random)
        self.score = np.zeros((rows, columns), np.int32)
        self._path = np.zeros((rows, columns), np.uint8)
        self._gap_at_row = np.zeros(rows, np.int32)
        self._gap_at_column, self._best_score, self._best_row = np.zeros((3, columns), np.int32)
        self.query_positions, self.database_positions = np.zeros((2, rows + columns), np.int32)
        self.summary = np.zeros(2, np.int32)
        self._similarity = _SIMILARITY.copy()
        self._matrix = self.score, self._path, self._gap_at_row, self._gap_at_column
        self._best = self._best_score, self._best_row
        self._alignment = self.query_positions, self.database_positions, self.summary
        sequences = self.database, self.query
        self.arrays = (*sequences, *self._matrix, *self._best, *self._alignment, self._similarity)
        self._tile_rows, self._tile_columns = -(-rows // _TILE), -(-columns // _TILE)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Two sequences of the same length."""
        length = bisect_right(range(isqrt(nbytes)), nbytes, key=_working_set) - 1
        return {"query": length, "database": length}

    def run(self, queue: Queue) -> None:
        """Fill the matrix and follow the best alignment back."""
        queue.write(self.query, self.database, self._similarity)
        rows, columns = (np.int32(extent) for extent in self.score.shape)
        costs = (np.int32(cost) for cost in (_LETTERS, _GAP_OPEN, _GAP_EXTEND))
        sequences = self.query, rows, self.database, columns
        given: tuple[Argument, ...] = *sequences, self._similarity, *costs
        for diagonal in range(self._tile_rows + self._tile_columns - 1):
            first = max(0, diagonal - self._tile_columns + 1)
            size = ((min(diagonal, self._tile_rows - 1) - first + 1) * _TILE,)
            tiles = np.int32(diagonal), np.int32(first)
            queue.launch("MatchStringGPUSync", size, (_TILE,), *given, *tiles, *self._matrix, *self._best)
        queue.launch("trace_back2", (1,), (1,), self._path, columns, *self._best, *self._alignment)
        queue.read(self.score, *self._alignment)

    def check(self) -> None:
        """Compare all scores, and add up the alignment's own score."""
        expect_equal("scores", self.score, self._expected)
        best, length = (int(value) for value in self.summary)
        expect_equal("best score", np.array(best), self._expected.max())
        if not 0 < length <= len(self.query_positions):
            raise CheckFailed(
                f"alignment: expected a length of at most {len(self.query_positions)}, found {length}"
            )
        positions = (self.query_positions[:length][::-1], self.database_positions[:length][::-1])
        for sequence, found, extent in zip(("query", "database"), positions, self.score.shape, strict=True):
            letters = found[found != -1]
            if not (
                len(letters) and 0 <= letters[0] <= letters[-1] < extent and (np.diff(letters) == 1).all()
            ):
                raise CheckFailed(
                    f"alignment: expected neighbouring letters of the {sequence}, found {letters}"
                )
        expect_equal("score of the alignment", np.array(self._score_of(*positions)), np.array(best))

    def _score_of(self, query_positions: Array, database_positions: Array) -> int:
        in_query, in_database = query_positions < 0, database_positions < 0
        both = ~in_query & ~in_database
        matches = _SIMILARITY[self.query[query_positions[both]], self.database[database_positions[both]]]
        gaps = 0
        for gap in (in_query, in_database):
            begins = gap & ~np.concatenate(([False], gap[:-1]))
            gaps += (_GAP_OPEN - _GAP_EXTEND) * int(begins.sum()) + _GAP_EXTEND * int(gap.sum())
        return int(matches.sum()) - gaps

    @cached_property
    def _expected(self) -> npt.NDArray[np.int32]:
        """All scores, by anti-diagonals of the whole matrix; cells of a diagonal are indexed by their row."""
        rows, columns = self.score.shape
        scores = np.zeros((rows, columns), np.int32)
        # One more before the first row; a cell's left neighbour has its own row, on the diagonal before.
        last, last_but_one = np.zeros((2, rows + 1), np.int32)
        query_gap = np.full(rows + 1, -(1 << 30), np.int32)
        database_gap = query_gap.copy()
        for diagonal in range(rows + columns - 1):
            low, high = max(0, diagonal - columns + 1), min(diagonal, rows - 1) + 1
            here, above = slice(low + 1, high + 1), slice(low, high)
            i = np.arange(low, high)
            similar = _SIMILARITY[self.query[i], self.database[diagonal - i]]
            query_gap[here] = np.maximum(last[here] - _GAP_OPEN, query_gap[here] - _GAP_EXTEND)
            database_gap[here] = np.maximum(last[above] - _GAP_OPEN, database_gap[above] - _GAP_EXTEND)
            score = np.maximum(last_but_one[above] + similar, query_gap[here])
            score = np.maximum(np.maximum(score, database_gap[here]), 0)
            last_but_one, last = last, last_but_one
            last[here] = score
            scores[i, diagonal - i] = score
        return scores


def _mutated(sequence: Array, length: int, random: np.random.Generator) -> Array:
    """A relative of a sequence, of some length: letters changed, runs of letters lost and gained."""
    letters = len(sequence)
    changed = np.where(random.random(letters) < 0.1, random.integers(0, _LETTERS, letters), sequence)
    events = random.integers(0, letters, max(2, letters // 50))
    runs = random.integers(1, 5, len(events))
    # Each event repeats a letter, or drops those after it: 0 copies of a letter are a loss.
    copies = np.ones(letters, np.int64)
    half = len(events) // 2
    copies[events[:half]] += runs[:half]
    lost = events[half:, np.newaxis] + np.arange(4)
    copies[lost[(np.arange(4) < runs[half:, np.newaxis]) & (lost < letters)]] = 0
    relative = np.repeat(changed, copies).astype(np.uint8)
    filler = random.integers(0, _LETTERS, max(0, length - len(relative)), np.uint8)
    return np.concatenate((relative, filler))[:length]
