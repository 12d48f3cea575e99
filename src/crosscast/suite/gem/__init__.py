"""Compute the electrostatic potential around a molecule."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from crosscast.suite.application import Application, Array, Parameters, Queue, expect_close, whole_groups

_GROUP = 64
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
