"""Counting the ways to place queens on a board."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from crosscast.kernel import Local
from crosscast.suite.application import Application, Parameters, Queue, expect_equal, whole_groups

_GROUP = 64
_BYTES_A_BOARD = 4 * 4

_PROBLEMS = (
    (8, 2, 42),
    (10, 3, 364),
    (12, 3, 756),
    (12, 4, 4_080),
    (13, 4, 6_404),
    (13, 5, 31_100),
    (14, 5, 54_068),
    (14, 6, 241_484),
    (14, 7, 835_056),
    (15, 7, 1_897_702),
)
"""Side of the board, rows that have queens at the start, and the boards which that makes."""

_SOLUTIONS = (1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512)
"""By side of the board: sequence A000170 of the On-Line Encyclopedia of Integer Sequences."""


class Nqueens(Application):
    """Solutions of the n queens problem on a board of n × n squares: none attacks another.

    The host places the queens of the first rows in every way, and each work-item completes one of these
    boards by backtracking over bit masks. Dwarf: backtrack and branch-and-bound.

    The working set is small by nature: a search needs a few words, and each further row of queens
    multiplies the work. A larger working set is more boards; from about 30 MB on it stays the same.
    Nothing is random.
    """

    name = "nqueens"
    kernels = ("nqueens",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        side, placed = parameters["side"], parameters["placed"]
        self._columns, self._lefts, self._rights = _boards(side, placed)
        self.solutions = np.zeros(len(self._columns), np.uint32)
        self.arrays = (self._columns, self._lefts, self._rights, self.solutions)
        self._side = side
        self._global_size = (whole_groups(len(self.solutions), _GROUP),)
        rows = max(1, side - placed)
        self._arguments = (
            *self.arrays,
            np.uint32(len(self.solutions)),
            np.uint32((1 << side) - 1),
            Local(_GROUP * rows * 16),
        )

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """The last of a few problems whose boards fit."""
        fitting = bisect_right(_PROBLEMS, nbytes // _BYTES_A_BOARD, key=itemgetter(2))
        side, placed, _ = _PROBLEMS[max(fitting, 1) - 1]
        return {"side": side, "placed": placed}

    def run(self, queue: Queue) -> None:
        """Complete all boards."""
        queue.write(self._columns, self._lefts, self._rights)
        queue.launch("nqueens", self._global_size, (_GROUP,), *self._arguments)
        queue.read(self.solutions)

    def check(self) -> None:
        """Compare the sum with the known number."""
        total = self.solutions.sum(dtype=np.uint64)
        expect_equal("solutions", np.array(total), np.array(_SOLUTIONS[self._side], np.uint64))


def _boards(side: int, placed: int) -> npt.NDArray[np.uint32]:
    """Return all boards with `placed` rows of queens, as masks of columns and diagonals ``(3, boards)``."""
    boards = np.zeros((3, 1), np.uint32)
    for _ in range(placed):
        blocked = np.bitwise_or.reduce(boards)
        queens = np.uint32(1) << np.arange(side, dtype=np.uint32)[:, np.newaxis]
        column, board = np.nonzero((blocked & queens) == 0)
        boards = boards[:, board] | queens[column, 0]
        boards[1] = boards[1] << 1 & (1 << side) - 1
        boards[2] >>= 1
    return np.ascontiguousarray(boards)
