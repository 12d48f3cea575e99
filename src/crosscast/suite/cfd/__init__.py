"""Flow of a compressible gas over a mesh."""

from __future__ import annotations

from functools import cached_property
from math import isqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.suite.application import Application, Array, Parameters, Queue, expect_close, whole_groups

_GROUP = 64
_STAGES = 3
_QUANTITIES = 5
_GAMMA = 1.4
_MACH = 0.8
_BYTES_AN_ELEMENT = 4 * (3 * _QUANTITIES + 2 + 4 + 4 * 3)


class Cfd(Application):
    """Steady flow of a compressible gas over ground and past plates: the Euler equations by finite volumes.

    On a mesh of elements with four faces each, with explicit Runge-Kutta time stepping and a time step
    of its own for each element, as in the solver *euler3d* of the Rodinia suite (A. Corrigan, F. Camelli,
    R. Löhner and J. Wallin, *Running unstructured grid-based CFD solvers on modern graphics hardware*,
    2009). Fluxes over faces are Rusanov's. Dwarf: unstructured grid.
    """

    name = "cfd"
    kernels = ("initialize_variables", "compute_step_factor", "compute_flux", "time_step")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.mesh = make_mesh(parameters["columns"], parameters["rows"], np.random.default_rng(seed))
        elements = len(self.mesh.areas)
        # Density 1.4 and pressure 1 make the speed of sound 1.
        momentum = _GAMMA * _MACH * self.mesh.wind
        energy = 1 / (_GAMMA - 1) + _GAMMA * _MACH**2 / 2
        self._far_field = np.array([_GAMMA, *momentum, energy], np.float32)
        # A step reads one and writes the other.
        *states, self._fluxes = np.zeros((3, _QUANTITIES, elements), np.float32)
        self._states = tuple(states)
        self._step_factors = np.zeros(elements, np.float32)
        self.arrays = (*states, self._fluxes, self._step_factors, *self.mesh[:3], self._far_field)
        self._steps = parameters["steps"]
        self.result = self._states[self._steps % 2]
        self._elements = np.int32(elements)
        self._sizes = (whole_groups(elements, _GROUP),), (_GROUP,)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """A mesh about as wide as it is high, and three time steps."""
        elements = (nbytes - 4 * _QUANTITIES) // _BYTES_AN_ELEMENT
        rows = isqrt(elements)
        return {"columns": elements // rows, "rows": rows, "steps": 3}

    def run(self, queue: Queue) -> None:
        """Let the gas flow for a few time steps."""
        mesh, fluxes, factors, elements = self.mesh, self._fluxes, self._step_factors, self._elements
        faces = mesh.neighbours, mesh.normals, self._far_field, fluxes, elements
        old, new = self._states
        queue.write(*mesh[:3], self._far_field)
        queue.launch("initialize_variables", *self._sizes, old, self._far_field, elements)
        for _ in range(self._steps):
            queue.launch("compute_step_factor", *self._sizes, old, mesh.areas, factors, elements)
            current = old
            for left in range(_STAGES, 0, -1):
                queue.launch("compute_flux", *self._sizes, current, *faces)
                queue.launch("time_step", *self._sizes, old, factors, fluxes, new, np.int32(left), elements)
                current = new
            old, new = new, old
        queue.read(self.result)

    def check(self) -> None:
        """Compare the flow with that of the same scheme in double precision."""
        # States are of the order of one, and a few steps do not let rounding grow: the limit is tens of
        # times the rounding, and a thousandth of what ground and plates change in most elements.
        expect_close("variables", self.result, self._expected, rtol=1e-5, atol=1e-5)

    @cached_property
    def _expected(self) -> npt.NDArray[np.float64]:
        far_field = self._far_field.astype(np.float64)[:, np.newaxis]
        state = np.repeat(far_field, len(self.mesh.areas), axis=1)
        areas = self.mesh.areas.astype(np.float64)
        for _ in range(self._steps):
            velocity, _, sound = _derived(state)
            factor = 0.5 / (np.sqrt(areas) * (np.linalg.norm(velocity, axis=0) + sound))
            old = state
            for stages_left in range(_STAGES, 0, -1):
                state = old - factor / stages_left * self._outflow(state, far_field)
        return state

    def _outflow(self, state: Array, far_field: Array) -> Array:
        total = np.zeros_like(state)
        for normals, neighbours in zip(
            self.mesh.normals.astype(np.float64), self.mesh.neighbours, strict=True
        ):
            beside = np.where(neighbours == FAR_FIELD, far_field, state[:, neighbours.clip(min=0)])
            fastest = np.maximum(_wave_speed(state, normals), _wave_speed(beside, normals))
            flux = (_flux(state, normals) + _flux(beside, normals) - fastest * (beside - state)) / 2
            wall = np.zeros_like(state)
            wall[1:4] = _derived(state)[1] * normals
            total += np.where(neighbours == WALL, wall, flux)
        return total


def _derived(state: Array) -> tuple[Array, Array, Array]:
    """Velocity, pressure and speed of sound."""
    velocity = state[1:4] / state[0]
    pressure = (_GAMMA - 1) * (state[4] - (state[1:4] * velocity).sum(axis=0) / 2)
    return velocity, pressure, np.sqrt(_GAMMA * pressure / state[0])


def _wave_speed(state: Array, normals: Array) -> Array:
    velocity, _, sound = _derived(state)
    return np.asarray(np.abs((velocity * normals).sum(axis=0)) + sound * np.linalg.norm(normals, axis=0))


def _flux(state: Array, normals: Array) -> Array:
    velocity, pressure, _ = _derived(state)
    carried = state.copy()
    carried[4] += pressure
    flux: Array = carried * (velocity * normals).sum(axis=0)
    flux[1:4] += pressure * normals
    return flux


WALL = -1
FAR_FIELD = -2
"""Number in place of a missing neighbour."""

_PLATES = 0.02  # Part of the faces between elements that are closed


class Mesh(NamedTuple):
    """Elements with four faces each."""

    areas: Array
    """``(elements,)``"""

    neighbours: Array
    """``(4, elements)``: element over each face, `WALL` or `FAR_FIELD`"""

    normals: Array
    """``(4, 3, elements)``: outward, as long as the face"""

    wind: Array
    """``(3,)``: a unit vector in the plane of the mesh"""


def make_mesh(columns: int, rows: int, random: np.random.Generator) -> Mesh:
    """Make a mesh in a tilted plane, whose points are moved off a regular grid at random.

    Tilted, because in a plane of two coordinates a third of the arithmetic would be on zeros.
    """
    y, x = np.indices((rows + 1, columns + 1))
    points = np.stack((x, y)) + random.uniform(-0.2, 0.2, (2, rows + 1, columns + 1))
    right = points[:, :, 1:] - points[:, :, :-1]
    up = points[:, 1:] - points[:, :-1]
    east = np.stack((up[1], -up[0]))
    north = np.stack((-right[1], right[0]))
    flat = np.stack((-east[:, :, :-1], east[:, :, 1:], -north[:, :-1], north[:, 1:]))
    diagonals = points[:, 1:, 1:] - points[:, :-1, :-1], points[:, 1:, :-1] - points[:, :-1, 1:]
    areas = (diagonals[0][0] * diagonals[1][1] - diagonals[0][1] * diagonals[1][0]) / 2
    in_space = np.linalg.qr(random.standard_normal((3, 2))).Q
    normals = np.einsum("kd,fdyx->fkyx", in_space, flat)
    return Mesh(
        areas.astype(np.float32).ravel(),
        _neighbours(columns, rows, random).reshape(4, -1),
        np.ascontiguousarray(normals, np.float32).reshape(4, 3, -1),
        in_space @ [np.cos(0.3), np.sin(0.3)],
    )


def _neighbours(columns: int, rows: int, random: np.random.Generator) -> Array:
    """Elements to the west, east, south and north, ``(4, rows, columns)``; the south border is ground."""
    elements = np.full((rows + 2, columns + 2), FAR_FIELD, np.int32)
    elements[0] = WALL
    elements[1:-1, 1:-1] = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    middle = slice(1, -1)
    west, east = elements[middle, :-2].copy(), elements[middle, 2:].copy()
    south, north = elements[:-2, middle].copy(), elements[2:, middle].copy()
    # A plate closes a face for the elements on both sides.
    upright = random.random((rows, columns - 1)) < _PLATES
    west[:, 1:][upright] = east[:, :-1][upright] = WALL
    lying = random.random((rows - 1, columns)) < _PLATES
    south[1:][lying] = north[:-1][lying] = WALL
    return np.stack((west, east, south, north))
