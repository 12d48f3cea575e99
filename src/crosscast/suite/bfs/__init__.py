"""Search a graph breadth first."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal, whole_groups

_GROUP = 256
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
        self._sizes = (whole_groups(vertices, _GROUP),), (_GROUP,)

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
