"""The k-means application."""

from __future__ import annotations

import numpy as np

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


class Kmeans(Application):
    """Cluster points by Lloyd's algorithm: assign each to the nearest centre, then move the centres.

    Dense linear algebra among the dwarfs. The points are overlapping clouds, and the first of them are
    the centres to begin with. The number of rounds is fixed, so that every device does the same work.

    S. P. Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 28 (1982),
    doi:10.1109/TIT.1982.1056489. There are at most as many ``clusters`` as ``points``.
    """

    name = "kmeans"
    kernels = ("invert_mapping", "kmeansPoint")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        n, features, clusters = (parameters[key] for key in ("points", "features", "clusters"))
        random = np.random.default_rng(seed)
        middles = random.uniform(-1, 1, (clusters, features))
        clouds = random.integers(clusters, size=n)
        self.points = random.standard_normal((n, features), np.float32)
        self.points += middles.astype(np.float32)[clouds]
        self.by_feature = np.zeros((features, n), np.float32)
        self.centres = np.zeros((clusters, features), np.float32)
        self.membership = np.zeros(n, np.int32)
        self.arrays = (self.points, self.by_feature, self.centres, self.membership)

        self.rounds = parameters["rounds"]
        self.means = self.points[:clusters].copy()
        self._clusters = np.arange(clusters, dtype=np.int32)
        self._belongs = np.zeros((clusters, n), np.float32)
        self._sizes = (whole_groups(n, _GROUP),), (_GROUP,)
        self._extents = np.int32(n), np.int32(features), np.int32(clusters)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """As many points as fit, with the features and clusters of the published runs."""
        features, clusters = 26, 5
        centre_bytes = 4 * clusters * features
        point_bytes = 4 * (2 * features + 1)
        points = (nbytes - centre_bytes) // point_bytes
        return {"points": points, "features": features, "clusters": clusters, "rounds": 8}

    def run(self, queue: Queue) -> None:
        """Transpose the points once; then each round assigns them and moves the centres."""
        n, features, clusters = self._extents
        arguments = self.by_feature, self.centres, self.membership, n, clusters, features
        self.means[:] = self.points[: len(self.means)]
        queue.write(self.points)
        queue.launch("invert_mapping", *self._sizes, self.points, self.by_feature, n, features)
        for _ in range(self.rounds):
            self.centres[:] = self.means
            queue.write(self.centres)
            queue.launch("kmeansPoint", *self._sizes, *arguments)
            queue.read(self.membership)
            self._move_centres()

    def _move_centres(self) -> None:
        """Make each centre the mean of its points; one without points stays where it is."""
        np.equal(self.membership, self._clusters[:, None], out=self._belongs, casting="unsafe")
        # A product of matrices adds the members up far faster than a mean of each cluster's own points.
        counts = np.count_nonzero(self._belongs, axis=1)[:, None]
        np.divide(self._belongs @ self.points, counts, out=self.means, where=counts > 0, casting="unsafe")

    def check(self) -> None:
        """Compare with SciPy's k-means, and each point's choice in the last round with the best choice."""
        from scipy.cluster.vq import kmeans2, vq

        clusters = len(self.centres)
        expect_equal("membership", self.membership, self.membership.clip(0, clusters - 1))
        points = self.points.astype(np.float64)
        _, nearest = vq(points, self.centres.astype(np.float64))
        # Rounding may decide between two centres that are equally near: compare how far, not which.
        expect_close("distance to the centre", self._distances(points), nearest, rtol=1e-5)
        expected, _ = kmeans2(points, points[:clusters], iter=self.rounds, minit="matrix")
        # One point in a thousand that decides otherwise would move a centre by about this much.
        expect_close("centres", self.means, expected, rtol=0, atol=5e-3)

    def _distances(self, points: Array) -> Array:
        distances: Array = np.linalg.norm(points - self.centres[self.membership], axis=1)
        return distances
