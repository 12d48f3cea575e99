"""Dynamic programming: a hidden Markov model, and two alignments of sequences."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from math import isqrt, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.errors import CheckFailed
from crosscast.kernel import Argument, Local
from crosscast.suite.application import (
    Application,
    Array,
    Parameters,
    Queue,
    expect_close,
    expect_equal,
    whole_groups,
)

_GROUP = 64
_HMM_TILE = 16


class _Model(NamedTuple):
    """A hidden Markov model, in the order of `Hmm.result`."""

    pi: Array
    """``(states,)``"""

    a: Array
    """``(states, states)``: from, to"""

    b: Array
    """``(symbols, states)``"""


def _shapes(states: int, symbols: int, steps: int) -> dict[str, tuple[int, ...]]:
    pi, a, b = (states,), (states, states), (symbols, states)
    shapes: dict[str, tuple[int, ...]] = {"symbols": (steps,), "pi": pi, "a": a, "b": b}
    shapes |= dict.fromkeys(("alpha", "beta", "weighted", "gamma"), (steps, states))
    shapes |= {"scale": (steps,), "ones": (max(states, symbols, steps),), "sums": (states,)}
    return shapes | {"new_pi": pi, "new_a": a, "new_b": b}


def _parameters(states: int) -> dict[str, int]:
    # Each step costs six launches, so its number grows far slower than the model.
    return {"states": states, "symbols": max(2, states // 2), "steps": min(max(4, states // 32), 64)}


def _hmm_working_set(states: int) -> int:
    return 4 * sum(prod(shape) for shape in _shapes(**_parameters(states)).values())


class Hmm(Application):
    """One iteration of the Baum-Welch algorithm for a hidden Markov model with discrete symbols.

    From one sequence of symbols, with the forward and backward variables scaled at each step (L. R.
    Rabiner, *A tutorial on hidden Markov models*, 1989, section V.A). Dwarf: graphical models.
    """

    name = "hmm"
    kernels = (
        *("acc_b_dev", "calc_alpha_dev", "calc_beta_dev", "calc_gamma_dev", "calc_xi_dev"),
        *("est_a_dev", "est_b_dev", "est_pi_dev", "init_alpha_dev", "init_beta_dev", "init_ones_dev"),
        *("mvm_non_kernel_naive", "mvm_trans_kernel_naive", "s_dot_kernel_naive"),
        *("scale_a_dev", "scale_alpha_dev", "scale_b_dev"),
    )

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        buffers: dict[str, Array] = {
            name: np.zeros(shape, np.int32 if name == "symbols" else np.float32)
            for name, shape in _shapes(**parameters).items()
        }
        # Of exponentials, any distribution is as likely as any other: far from uniform, never zero.
        for name, axis in (("pi", 0), ("a", 1), ("b", 0)):
            random.standard_exponential(out=buffers[name], dtype=np.float32)
            buffers[name] /= buffers[name].sum(axis=axis, keepdims=True)
        symbols = parameters["symbols"]
        buffers["symbols"][:] = random.integers(0, symbols, parameters["steps"], np.int32)
        self.buffers = buffers
        self.arrays = tuple(buffers.values())
        self.model = _Model(buffers["pi"], buffers["a"], buffers["b"])
        self.result = _Model(buffers["new_pi"], buffers["new_a"], buffers["new_b"])
        self._steps = parameters["steps"]
        self._states = np.int32(parameters["states"])
        self._symbols = np.int32(symbols)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """A model with half as many symbols as states, and a step for each 32 states, 4 to 64."""
        return _parameters(bisect_right(range(isqrt(nbytes)), nbytes, key=_hmm_working_set) - 1)

    def run(self, queue: Queue) -> None:
        """Update the model once."""
        ones = self.buffers["ones"]
        queue.write(self.buffers["symbols"], *self.model)
        queue.launch("init_ones_dev", _padded(ones.size), (_GROUP,), ones, np.int32(ones.size))
        self._forward(queue)
        self._backward(queue)
        self._estimate(queue)
        queue.read(*self.result)

    def check(self) -> None:
        """Compare the updated model with that of the same iteration in double precision."""
        for field, found, expected in zip(_Model._fields, self.result, self._expected, strict=True):
            # All terms are positive: relative errors grow with the states and steps that are added up.
            expect_close(field, found, expected, rtol=1e-4)

    @cached_property
    def _expected(self) -> _Model:
        pi, a, b = (array.astype(np.float64) for array in self.model)
        symbols = self.buffers["symbols"]
        emitted = b[symbols]
        alpha = np.empty_like(emitted)
        beta = np.ones_like(emitted)
        scale = np.empty(len(symbols))
        for t in range(len(symbols)):
            alpha[t] = (alpha[t - 1] @ a if t else pi) * emitted[t]
            scale[t] = alpha[t].sum()
            alpha[t] /= scale[t]
        for t in reversed(range(len(symbols) - 1)):
            beta[t] = a @ (emitted[t + 1] * beta[t + 1]) / scale[t + 1]
        gamma = alpha * beta
        xi = a * (alpha[:-1].T @ (emitted * beta / scale[:, np.newaxis])[1:])
        counts = np.zeros_like(b)
        np.add.at(counts, symbols, gamma)
        return _Model(gamma[0], xi / xi.sum(axis=1, keepdims=True), counts / counts.sum(axis=0))

    def _forward(self, queue: Queue) -> None:
        symbols, pi, a, b, alpha, scale, ones = self._named("symbols pi a b alpha scale ones")
        states = self._states
        size, group = _padded(int(states)), (_GROUP,)
        for t in range(self._steps):
            here, before, step = np.int32(t * states), np.int32((t - 1) * states), np.int32(t)
            if t == 0:
                queue.launch("init_alpha_dev", size, group, pi, b, symbols, alpha, states)
            else:
                vectors = alpha, before, alpha, here
                queue.launch("mvm_trans_kernel_naive", size, group, a, states, states, *vectors)
                queue.launch("calc_alpha_dev", size, group, alpha, b, symbols, step, states)
            partial = Local(4 * _GROUP)
            queue.launch("s_dot_kernel_naive", group, group, alpha, here, ones, states, scale, step, partial)
            queue.launch("scale_alpha_dev", size, group, alpha, scale, step, states)

    def _backward(self, queue: Queue) -> None:
        symbols, a, b, beta, weighted, scale = self._named("symbols a b beta weighted scale")
        states = self._states
        size, group = _padded(int(states)), (_GROUP,)
        queue.launch("init_beta_dev", size, group, beta, np.int32(self._steps - 1), states)
        for t in reversed(range(1, self._steps)):
            here, before = np.int32(t * states), np.int32((t - 1) * states)
            queue.launch("calc_beta_dev", size, group, beta, b, symbols, scale, weighted, np.int32(t), states)
            queue.launch("mvm_non_kernel_naive", size, group, a, states, states, weighted, here, beta, before)

    def _estimate(self, queue: Queue) -> None:
        symbols, a, alpha, beta, weighted, gamma = self._named("symbols a alpha beta weighted gamma")
        sums, ones, new_pi, new_a, new_b = self._named("sums ones new_pi new_a new_b")
        states, symbol_count, steps = self._states, self._symbols, np.int32(self._steps)
        zero = np.int32(0)
        group, tile = (_GROUP,), (_HMM_TILE, _HMM_TILE)
        size = _padded(int(states))
        square, oblong = _tiled(states, states), _tiled(states, symbol_count)

        def add_up_columns(matrix: Array, rows: np.int32) -> None:
            queue.launch("mvm_trans_kernel_naive", size, group, matrix, rows, states, ones, zero, sums, zero)

        queue.launch("calc_gamma_dev", _padded(gamma.size), group, alpha, beta, gamma, np.int32(gamma.size))
        queue.launch("est_pi_dev", size, group, gamma, new_pi, states)
        queue.launch("calc_xi_dev", square, tile, alpha, a, weighted, new_a, steps, states)
        add_up_columns(gamma, np.int32(steps - 1))
        queue.launch("est_a_dev", square, tile, new_a, sums, states)
        queue.launch("mvm_non_kernel_naive", size, group, new_a, states, states, ones, zero, sums, zero)
        queue.launch("scale_a_dev", square, tile, new_a, sums, states)
        queue.launch("acc_b_dev", oblong, tile, gamma, symbols, new_b, steps, states, symbol_count)
        add_up_columns(gamma, steps)
        queue.launch("est_b_dev", oblong, tile, new_b, sums, states, symbol_count)
        add_up_columns(new_b, symbol_count)
        queue.launch("scale_b_dev", oblong, tile, new_b, sums, states, symbol_count)

    def _named(self, names: str) -> list[Array]:
        return [self.buffers[name] for name in names.split()]


def _padded(items: int) -> tuple[int]:
    return (whole_groups(items, _GROUP),)


def _tiled(columns: np.int32, rows: np.int32) -> tuple[int, int]:
    return whole_groups(int(columns), _HMM_TILE), whole_groups(int(rows), _HMM_TILE)


_NW_TILE = 16
_AMINO_ACIDS = 20
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
        one, other = random.integers(_AMINO_ACIDS, size=(2, length))
        self.substitution = _substitution_scores(random)[one[:, None], other]
        self.scores = np.zeros((length + 1, length + 1), np.int32)
        self._gaps = -_PENALTY * np.arange(length + 1, dtype=np.int32)
        self.arrays = (self.substitution, self.scores)

        self._tiles = -(-length // _NW_TILE)
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
            size = (diagonal + 1) * _NW_TILE
            queue.launch("needle_opencl_shared_1", (size,), (_NW_TILE,), *self._arguments, np.int32(diagonal))
        tiles = np.int32(self._tiles)
        for count in range(self._tiles - 1, 0, -1):
            queue.launch("needle_opencl_shared_2", (count * _NW_TILE,), (_NW_TILE,), *self._arguments, tiles)
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
    scores = np.triu(random.integers(-4, 4, (_AMINO_ACIDS, _AMINO_ACIDS), np.int32), 1)
    scores += scores.T
    np.fill_diagonal(scores, random.integers(4, 12, _AMINO_ACIDS))
    return scores


_SWAT_TILE = 32
_NUCLEOTIDES = 4
_GAP_OPEN = 10
_GAP_EXTEND = 1
# Letters 0 and 2 are purines, 1 and 3 pyrimidines: a change within either is the more likely one.
_SIMILARITY = np.array([[5, -4, -2, -4], [-4, 5, -4, -2], [-2, -4, 5, -4], [-4, -2, -4, 5]], np.int32)


def _swat_working_set(length: int) -> int:
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
        self.database = random.integers(0, _NUCLEOTIDES, columns, np.uint8)
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
        self._tile_rows, self._tile_columns = -(-rows // _SWAT_TILE), -(-columns // _SWAT_TILE)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Two sequences of the same length."""
        length = bisect_right(range(isqrt(nbytes)), nbytes, key=_swat_working_set) - 1
        return {"query": length, "database": length}

    def run(self, queue: Queue) -> None:
        """Fill the matrix and follow the best alignment back."""
        queue.write(self.query, self.database, self._similarity)
        rows, columns = (np.int32(extent) for extent in self.score.shape)
        costs = (np.int32(cost) for cost in (_NUCLEOTIDES, _GAP_OPEN, _GAP_EXTEND))
        sequences = self.query, rows, self.database, columns
        given: tuple[Argument, ...] = *sequences, self._similarity, *costs
        for diagonal in range(self._tile_rows + self._tile_columns - 1):
            first = max(0, diagonal - self._tile_columns + 1)
            size = ((min(diagonal, self._tile_rows - 1) - first + 1) * _SWAT_TILE,)
            tiles = np.int32(diagonal), np.int32(first)
            queue.launch(
                "MatchStringGPUSync", size, (_SWAT_TILE,), *given, *tiles, *self._matrix, *self._best
            )
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
    changed = np.where(random.random(letters) < 0.1, random.integers(0, _NUCLEOTIDES, letters), sequence)
    events = random.integers(0, letters, max(2, letters // 50))
    runs = random.integers(1, 5, len(events))
    # Each event repeats a letter, or drops those after it: 0 copies of a letter are a loss.
    copies = np.ones(letters, np.int64)
    half = len(events) // 2
    copies[events[:half]] += runs[:half]
    lost = events[half:, np.newaxis] + np.arange(4)
    copies[lost[(np.arange(4) < runs[half:, np.newaxis]) & (lost < letters)]] = 0
    relative = np.repeat(changed, copies).astype(np.uint8)
    filler = random.integers(0, _NUCLEOTIDES, max(0, length - len(relative)), np.uint8)
    return np.concatenate((relative, filler))[:length]
