"""Matrices, transforms and sums of pairs: csr, fft, gem, kmeans and lud."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import isqrt

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
_PRODUCTS = 4


class Csr(Application):
    """Multiply a vector by a sparse matrix a few times over, as an iterative solver would.

    Sparse linear algebra among the dwarfs. Rows have different numbers of elements, in random columns;
    some have none. The matrix is in compressed sparse rows.
    """

    name = "csr"
    kernels = ("csr",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        rows, elements = parameters["rows"], parameters["elements"]
        random = np.random.default_rng(seed)
        cells = _distinct(random, rows * rows, elements)
        counts = np.bincount(cells // rows, minlength=rows)
        self.row_starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        self.columns = (cells % rows).astype(np.int32)
        # So scaled, vectors keep their order of magnitude from product to product.
        self.values = random.standard_normal(elements, np.float32)
        self.values *= np.float32((rows / elements) ** 0.5)
        self.start = random.standard_normal(rows, np.float32)
        self.vectors = self.start.copy(), np.zeros_like(self.start)
        self.arrays = (self.row_starts, self.columns, self.values, *self.vectors)
        self._launch = (whole_groups(rows, _GROUP),), (_GROUP,), np.int32(rows), *self.arrays[:3]

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Return parameters with one element in 200, as published: only large matrices have long rows."""
        # Bytes: 8 an element, and 12 a row with 4 for the end. Hence rows² / 25 + 12 rows + 4 <= nbytes.
        rows = isqrt(25 * (nbytes - 4) + 150**2) - 150
        return {"rows": rows, "elements": rows * rows // 200}

    def run(self, queue: Queue) -> None:
        """Multiply back and forth between two vectors."""
        source, target = self.vectors
        source[:] = self.start
        queue.write(self.row_starts, self.columns, self.values, source)
        for _ in range(_PRODUCTS):
            queue.launch("csr", *self._launch, source, target)
            source, target = target, source
        queue.read(source)

    def check(self) -> None:
        """Compare with SciPy's products in double precision."""
        # An even number of products ends where it began.
        expect_close("vector", self.vectors[_PRODUCTS % 2], self._expected, rtol=1e-5, atol=1e-5)

    @cached_property
    def _expected(self) -> Array:
        from scipy.sparse import csr_array

        shape = (self.start.size, self.start.size)
        values = self.values.astype(np.float64)
        matrix = csr_array((values, self.columns, self.row_starts), shape=shape)
        vector: Array = self.start.astype(np.float64)
        for _ in range(_PRODUCTS):
            vector = matrix @ vector
        return vector


def _distinct(random: np.random.Generator, end: int, count: int) -> Array:
    """Return `count` different whole numbers below `end`, in rising order."""
    # Sorted draws may repeat; adding each one's rank spreads them apart and keeps the order.
    draws = np.sort(random.integers(end - count, size=count, endpoint=True))
    return draws + np.arange(count)


_RADICES = (2, 4, 8, 16)


class Fft(Application):
    """Transform a complex signal four times over, each time with another radix: 2, 4, 8 and 16.

    Spectral methods among the dwarfs: Stockham's out-of-place passes between two buffers. Where the
    number of points is no power of the radix, a last pass of a smaller radix makes up for it. Each
    transform takes the last one's result, so that all four share one working set; the result of each
    is kept for the check.

    C. Van Loan, Computational Frameworks for the Fast Fourier Transform, SIAM 1992, section 1.7,
    doi:10.1137/1.9781611970999. There are ``1 << log2_points`` points, at least 16.
    """

    name = "fft"
    kernels = tuple(f"fftRadix{radix}Kernel" for radix in _RADICES)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        log2_points = parameters["log2_points"]
        n = 1 << log2_points
        random = np.random.default_rng(seed)
        # The device's float2 are pairs of floats: real and imaginary part.
        self.signal = random.standard_normal((n, 2), np.float32)
        self.buffers = np.zeros_like(self.signal), np.zeros_like(self.signal)
        self.arrays = self.buffers
        # The last one stays where it is: a copy would be half of the working set again.
        self._copies = [np.zeros_like(self.signal) for _ in _RADICES[:-1]]
        self.spectra = [*self._copies, self.buffers[0]]
        self._passes = [_passes(log2_points, radix) for radix in _RADICES]

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """The longest signal of a power of two points that fits twice, 8 bytes a point."""
        return {"log2_points": (nbytes // 16).bit_length() - 1}

    def run(self, queue: Queue) -> None:
        """Transform with each radix in turn, to and fro between the buffers, and keep each spectrum."""
        source, target = self.buffers
        source[:] = self.signal
        queue.write(source)
        for passes, copy in zip(self._passes, [*self._copies, None], strict=True):
            joined = 1
            for radix in passes:
                items = len(source) // radix
                sizes = (items,), (min(items, _GROUP),)
                queue.launch(f"fftRadix{radix}Kernel", *sizes, source, target, np.int32(joined))
                joined *= radix
                source, target = target, source
            queue.read(source)
            if copy is not None:
                copy[:] = source
        self.spectra[-1] = source

    def check(self) -> None:
        """Compare each spectrum with SciPy's in double precision."""
        for radix, found, expected in zip(_RADICES, self.spectra, self._expected(), strict=True):
            # Rounding spreads over the whole spectrum: what counts is its mean magnitude.
            magnitude = float(np.linalg.norm(expected) / np.sqrt(len(expected)))
            what = f"spectrum of radix {radix}"
            expect_close(what, found.view(np.complex64)[:, 0], expected, rtol=0, atol=1e-5 * magnitude)

    def _expected(self) -> Iterator[Array]:
        """One spectrum after the other: all of them together would be several times the working set."""
        from scipy.fft import fft

        spectrum: Array = self.signal.view(np.complex64)[:, 0].astype(np.complex128)
        for _ in _RADICES:
            spectrum = fft(spectrum, overwrite_x=True)
            yield spectrum


def _passes(log2_points: int, radix: int) -> list[int]:
    """Return the radices of a transform's passes: one as often as it fits, and the remainder."""
    passes, rest = divmod(log2_points, radix.bit_length() - 1)
    return [radix] * passes + [1 << rest] * (rest > 0)


_BYTES_PER_ATOM = 16
_BYTES_PER_VERTEX = 28
_MOST_ATOMS = 256
_PROJECTION = 1.5  # how far from the surface, in ångström: the radius of a water molecule is 1.4
_SPACING = 1.6  # ångström
_COULOMB = 332.06  # kcal/mol ångström per squared elementary charge
_SOLUTE, _SOLVENT = 4.0, 80.0  # relative permittivities
_ALPHA = 0.580127
_CHUNK = 1 << 13


class Gem(Application):
    """Compute the electrostatic potential at the vertices of a molecule's surface from all its atoms.

    The n-body dwarf. The potential is the closed form for a point outside the molecule in "An analytical
    approach to computing biomolecular electrostatic potential", J. Chem. Phys. 129 (2008), without
    dissolved ions. The molecule is a ball of atoms with random charges in a bumpy surface.

    There are at most 256 atoms, so that work grows with memory and not with its square.
    """

    name = "gem"
    kernels = ("calc_potential_single_step_dev",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        atoms, vertices = parameters["atoms"], parameters["vertices"]
        radius = _SPACING * np.cbrt(atoms)
        distance = radius * np.cbrt(random.random((atoms, 1)))
        position = distance * _directions(random, atoms)
        charge = random.uniform(-0.8, 0.8, (atoms, 1))
        self.atoms = np.hstack([position, charge]).astype(np.float32)
        self.normals = np.ascontiguousarray(_directions(random, vertices).T, np.float32)
        bumps = random.uniform(1.0, 1.2, vertices)
        self.vertices = (radius * bumps * self.normals).astype(np.float32)
        self.potential = np.zeros(vertices, np.float32)
        self._axes = (*self.vertices, *self.normals)
        self.arrays = (self.atoms, *self._axes, self.potential)

        beta = _SOLUTE / _SOLVENT
        scale = _COULOMB / (_SOLVENT * (1 + _ALPHA * beta))
        self._near = np.float32(scale * (1 + _ALPHA))
        self._far = np.float32(scale * _ALPHA * (1 - beta) / (radius + _PROJECTION))
        surface = *self._axes, np.int32(vertices), np.float32(_PROJECTION)
        self._arguments = self.atoms, np.int32(atoms), *surface, self._near, self._far, self.potential

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Parameters of about the largest problem whose working set is at most `nbytes`."""
        atoms = min(_MOST_ATOMS, nbytes // (8 * _BYTES_PER_ATOM))
        return {"atoms": atoms, "vertices": (nbytes - atoms * _BYTES_PER_ATOM) // _BYTES_PER_VERTEX}

    def run(self, queue: Queue) -> None:
        """Compute the potential at every vertex."""
        queue.write(self.atoms, *self._axes)
        size = (whole_groups(len(self.potential), _GROUP),)
        queue.launch("calc_potential_single_step_dev", size, (_GROUP,), *self._arguments)
        queue.read(self.potential)

    def check(self) -> None:
        """Compare with squared distances from a matrix product, in double precision."""
        # Charges of both signs cancel, so the error of a sum goes with the terms, not with the sum.
        expected, terms = self._expected
        expect_close("potential", self.potential, expected, rtol=1e-5, atol=3e-6 * float(terms.max()))

    @cached_property
    def _expected(self) -> tuple[Array, Array]:
        """The potential, and the sum of the sizes of the terms that it is the sum of."""
        position, charge = self.atoms[:, :3].astype(np.float64), self.atoms[:, 3].astype(np.float64)
        points = (self.vertices.astype(np.float64) + _PROJECTION * self.normals.astype(np.float64)).T
        squares = np.sum(position**2, axis=1)
        charges = np.stack([charge, np.abs(charge)], axis=1)
        near = [
            (1 / np.sqrt(np.sum(some**2, axis=1, keepdims=True) + squares - 2 * some @ position.T)) @ charges
            for some in np.split(points, range(_CHUNK, len(points), _CHUNK))
        ]
        sums = float(self._near) * np.concatenate(near) - float(self._far) * charges.sum(axis=0)
        return sums[:, 0], sums[:, 1]


def _directions(random: np.random.Generator, count: int) -> Array:
    """Unit vectors, evenly spread over the sphere, of shape ``(count, 3)``."""
    vectors = random.standard_normal((count, 3))
    result: Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return result


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
        found = np.linalg.norm(points - self.centres[self.membership], axis=1)
        expect_close("distance to the centre", found, nearest, rtol=1e-5)
        expected, _ = kmeans2(points, points[:clusters], iter=self.rounds, minit="matrix")
        # One point in a thousand that decides otherwise would move a centre by about this much.
        expect_close("centres", self.means, expected, rtol=0, atol=5e-3)


_BLOCK = 16


class Lud(Application):
    """Decompose a dense matrix into L and U, block by block and in place.

    Dense linear algebra among the dwarfs: right-looking blocked elimination without pivoting, which a
    matrix with a dominant diagonal does not need. The working set is one matrix; the work grows with
    its power of 1.5, about 2 billion operations for 8 MiB.

    S. Che et al., Rodinia: a benchmark suite for heterogeneous computing, IISWC 2009,
    doi:10.1109/IISWC.2009.5306797. The matrix has ``blocks`` of 16 in each direction, at least 2.
    """

    name = "lud"
    kernels = ("lud_diagonal", "lud_perimeter", "lud_internal")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.blocks = parameters["blocks"]
        n = self.blocks * _BLOCK
        random = np.random.default_rng(seed)
        self.original = random.uniform(-1, 1, (n, n)).astype(np.float32)
        # Dominance by columns: it keeps elements from growing, and SciPy's reference from swapping rows.
        np.fill_diagonal(self.original, np.abs(self.original).sum(axis=0))
        self.matrix = np.zeros_like(self.original)
        self.arrays = (self.matrix,)
        self._n = np.int32(n)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """The largest matrix of whole blocks."""
        return {"blocks": isqrt(nbytes // 4) // _BLOCK}

    def run(self, queue: Queue) -> None:
        """Decompose a diagonal block, then its row and column of blocks, then update the rest; repeat."""
        self.matrix[:] = self.original
        queue.write(self.matrix)
        for step in range(self.blocks):
            start = np.int32(step * _BLOCK)
            queue.launch("lud_diagonal", (_BLOCK,), (_BLOCK,), self.matrix, self._n, start)
            left = self.blocks - step - 1
            if left == 0:
                break
            pairs = (left * 2 * _BLOCK,)
            queue.launch("lud_perimeter", pairs, (2 * _BLOCK,), self.matrix, self._n, start)
            rest = (left * _BLOCK, left * _BLOCK)
            queue.launch("lud_internal", rest, (_BLOCK, _BLOCK), self.matrix, self._n, start)
        queue.read(self.matrix)

    def check(self) -> None:
        """Compare both triangles with LAPACK's."""
        expected = self._expected
        diagonal = np.diag(expected)
        column = np.arange(len(expected))
        for start in range(0, len(expected), _BLOCK):
            # By rows of blocks, as all at once would take several times the memory of the working set.
            rows = slice(start, start + _BLOCK)
            # L's elements are about as small as the diagonal is large. Times the diagonal they are of the
            # order of 1, as U's are, and one tolerance fits all.
            scale = np.where(column[rows, np.newaxis] > column, diagonal, 1)
            what = f"L and U from row {start}"
            expect_close(what, self.matrix[rows] * scale, expected[rows] * scale, rtol=1e-5, atol=1e-5)

    @cached_property
    def _expected(self) -> Array:
        """L below the diagonal and U from there, in double precision."""
        from scipy.linalg import lu_factor

        # In LAPACK's own order, so that it factors in place.
        matrix = np.asarray(self.original, np.float64, order="F")
        factors: Array = lu_factor(matrix, overwrite_a=True)[0]
        return factors
