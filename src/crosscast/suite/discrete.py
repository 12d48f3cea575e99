"""Searches and codes: breadth-first search, cyclic redundancy check, queens on a board."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from crosscast.kernel import Local
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal, whole_groups

_BFS_GROUP = 256
_EDGES_PER_VERTEX = 2
_BYTES_PER_VERTEX = 2 * 4 + 2 * _EDGES_PER_VERTEX * 4 + 3 + 4


class Bfs(Application):
    """Find how far every vertex of a graph is from one of them, level by level.

    The graph traversal dwarf, with masks over all vertices for the frontier, as in "Accelerating large
    graph algorithms on the GPU using CUDA", HiPC 2007. The graph is a random tree, which connects it, and
    as many random edges again, which keep the number of levels near 10 to 20.
    """

    name = "bfs"
    kernels = ("kernel1", "kernel2")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        vertices = parameters["vertices"]
        tails, heads = _random_edges(random, vertices)
        order = np.argsort(tails, kind="stable")
        self.edges = heads[order].astype(np.int32)
        counts = np.bincount(tails, minlength=vertices)
        self.nodes = np.stack([np.cumsum(counts) - counts, counts], axis=1).astype(np.int32)
        self.source = int(random.integers(vertices))
        self.frontier, self.reached, self.visited = (np.zeros(vertices, np.uint8) for _ in range(3))
        self.depth = np.zeros(vertices, np.int32)
        self.go_on = np.zeros(1, np.int32)
        self._state = (self.frontier, self.reached, self.visited, self.depth)
        self.arrays = (self.nodes, self.edges, *self._state, self.go_on)

        self._visit = self.nodes, self.edges, *self._state, np.int32(vertices)
        masks = self.frontier, self.reached, self.visited
        self._advance = *masks, self.go_on, np.int32(vertices)
        self._sizes = (whole_groups(vertices, _BFS_GROUP),), (_BFS_GROUP,)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Parameters of about the largest problem whose working set is at most `nbytes`."""
        # The tree has one edge less than vertices: room for the flag that the host reads.
        return {"vertices": nbytes // _BYTES_PER_VERTEX}

    def run(self, queue: Queue) -> None:
        """Go level by level until one is empty."""
        for array in self._state:
            array.fill(0)
        self.frontier[self.source] = self.visited[self.source] = 1
        queue.write(self.nodes, self.edges, *self._state)
        self.go_on[0] = 1
        while self.go_on[0]:
            self.go_on[0] = 0
            queue.write(self.go_on)
            queue.launch("kernel1", *self._sizes, *self._visit)
            queue.launch("kernel2", *self._sizes, *self._advance)
            queue.read(self.go_on)
        queue.read(self.depth)

    def check(self) -> None:
        """Compare with the shortest paths of SciPy."""
        expect_equal("depth", self.depth, self._expected)

    @cached_property
    def _expected(self) -> Array:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        starts, counts = self.nodes.T
        graph = csr_array((np.ones(len(self.edges)), self.edges, np.append(starts, starts[-1] + counts[-1])))
        result: Array = dijkstra(graph, unweighted=True, indices=self.source)
        return result


def _random_edges(random: np.random.Generator, vertices: int) -> tuple[Array, Array]:
    """Both ends of a connected graph's edges, each edge in both directions."""
    labels = random.permutation(vertices)
    children = np.arange(1, vertices)
    parents = random.integers(0, children)
    more = random.integers(vertices, size=(2, (_EDGES_PER_VERTEX - 1) * vertices))
    one = np.concatenate([labels[children], more[0]])
    other = np.concatenate([labels[parents], more[1]])
    return np.concatenate([one, other]), np.concatenate([other, one])


_POLYNOMIAL = 0xEDB88320


def _byte_table() -> Array:
    """Remainder of each byte value, ``(256,)``."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


class Crc(Application):
    """CRC-32 of a buffer, by look-up tables for eight bytes at a time ("slicing by 8").

    After M. E. Kounavis and F. L. Berry, *Novel table lookup-based algorithms for high-performance CRC
    generation*, 2008. One work-item reads the whole buffer, as in the published suite. Dwarf:
    combinational logic. The device must be little-endian, as the host is.
    """

    name = "crc"
    kernels = ("crc32_slice8",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        length = parameters["bytes"]
        self.data = np.frombuffer(np.random.default_rng(seed).bytes(length), np.uint8).copy()
        self.table = _byte_table()
        self.crc = np.zeros(1, np.uint32)
        self.arrays = (self.data, self.table, self.crc)
        self._length = np.uint32(length)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """All that the table and the result leave; no more than 32 bits can count."""
        return {"bytes": min(nbytes - 4 * 256 - 4, (1 << 32) - 1)}

    def run(self, queue: Queue) -> None:
        """Read the buffer once."""
        queue.write(self.data, self.table)
        queue.launch("crc32_slice8", (1,), (1,), self.data, self._length, self.table, self.crc)
        queue.read(self.crc)

    def check(self) -> None:
        """Compare with zlib's."""
        import zlib

        expect_equal("CRC-32", self.crc, np.array([zlib.crc32(self.data.data)], np.uint32))


_QUEENS_GROUP = 64
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
        self._global_size = (whole_groups(len(self.solutions), _QUEENS_GROUP),)
        rows = max(1, side - placed)
        self._arguments = (
            *self.arrays,
            np.uint32(len(self.solutions)),
            np.uint32((1 << side) - 1),
            Local(_QUEENS_GROUP * rows * 16),
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
        queue.launch("nqueens", self._global_size, (_QUEENS_GROUP,), *self._arguments)
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
