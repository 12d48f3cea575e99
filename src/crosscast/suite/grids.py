"""Meshes and images: flow of a gas, wavelets, less speckle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import exp, isqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.kernel import Argument
from crosscast.suite.application import (
    Application,
    Array,
    Parameters,
    Queue,
    expect_close,
    expect_equal,
    whole_groups,
)

_CFD_GROUP = 64
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
        self._sizes = (whole_groups(elements, _CFD_GROUP),), (_CFD_GROUP,)

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


_COMPONENTS = 3
_PIXELS = 256
_DWT_GROUP = 16
_DWT_TILE = 32
_LEVELS = 3
_LEVEL_SHIFT = 128
_DWT_BYTES_PER_PIXEL = _COMPONENTS * (1 + 4 + 4) + 1

_Sizes = tuple[tuple[int, ...], tuple[int, ...]]


class Dwt(Application):
    """Transform the colours of a picture into wavelets, three levels of them (forward 5/3 transform).

    The spectral methods dwarf: the reversible transform of JPEG 2000 (ISO/IEC 15444-1, annex F), by
    lifting. Coefficients are in the usual order, approximations in the upper left quarter of each level.
    The picture is a few waves of colour under noise.
    """

    name = "dwt"
    kernels = ("c_CopySrcToComponents", "cl_fdwt53Kernel")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        height, width = shape = parameters["height"], parameters["width"]
        self.picture = _picture(np.random.default_rng(seed), height, width)
        self.planes = tuple(np.zeros(shape, np.int32) for _ in range(_COMPONENTS))
        self.bands = tuple(np.zeros(shape, np.int32) for _ in range(_COMPONENTS))
        self.low = np.zeros((_half(height), _half(width)), np.int32)
        pixels = height * width
        self._split_sizes = (whole_groups(pixels, _PIXELS),), (_PIXELS,)
        self._split: tuple[Argument, ...] = *self.planes, self.picture, np.int32(pixels)
        self._transforms = [
            launch for pair in zip(self.planes, self.bands, strict=True) for launch in self._levels(*pair)
        ]
        self.arrays = (self.picture, *self.planes, *self.bands, self.low)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Parameters of about the largest problem whose working set is at most `nbytes`."""
        # Halves are rounded up: leave room for a row and a column.
        pixels = nbytes // _DWT_BYTES_PER_PIXEL
        height = isqrt(pixels) - 1
        return {"height": height, "width": (pixels - height) // (height + 1)}

    def run(self, queue: Queue) -> None:
        """Split the picture into components, and transform each."""
        queue.write(self.picture)
        queue.launch("c_CopySrcToComponents", *self._split_sizes, *self._split)
        for sizes, arguments in self._transforms:
            queue.launch("cl_fdwt53Kernel", *sizes, *arguments)
        queue.read(*self.bands)

    def _levels(self, plane: Array, bands: Array) -> Iterator[tuple[_Sizes, tuple[Argument, ...]]]:
        height, width = plane.shape
        source, target = plane, self.low
        for level in range(_LEVELS):
            if level == _LEVELS - 1:
                target = bands
            global_size = -(-width // _DWT_TILE) * _DWT_GROUP, -(-height // _DWT_TILE) * _DWT_GROUP
            planes = *_with_stride(source), *_with_stride(target), *_with_stride(bands)
            yield (global_size, (_DWT_GROUP, _DWT_GROUP)), (*planes, np.int32(width), np.int32(height))
            height, width = _half(height), _half(width)
            # The plane is no longer needed once its approximations are in the smaller one.
            source, target = target, source

    def check(self) -> None:
        """Compare with lifting in NumPy."""
        for colour, found, expected in zip(("red", "green", "blue"), self.bands, self._expected, strict=True):
            expect_equal(f"{colour} wavelets", found, expected)

    @cached_property
    def _expected(self) -> list[Array]:
        planes = np.moveaxis(self.picture, -1, 0).astype(np.int64) - _LEVEL_SHIFT
        for plane in planes:
            part = plane
            for _ in range(_LEVELS):
                part[:] = _lifted(_lifted(part.T).T)
                part = part[: _half(len(part)), : _half(part.shape[1])]
        return list(planes)


def _lifted(plane: Array) -> Array:
    """One level along the first axis: approximations, then details."""
    extent = len(plane)
    wide = np.pad(plane, ((2, 3), (0, 0)), mode="reflect")
    even, odd = wide[::2], wide[1::2]
    details = odd[: len(even) - 1] - ((even[:-1] + even[1:]) >> 1)
    approximations = even[1:-1] + ((details[:-1] + details[1:] + 2) >> 2)
    return np.concatenate([approximations[: _half(extent)], details[1 : 1 + extent // 2]])


def _with_stride(plane: Array) -> tuple[Array, np.int32]:
    return plane, np.int32(plane.shape[1])


def _half(extent: int) -> int:
    """Approximations of so many samples."""
    return (extent + 1) // 2


def _picture(random: np.random.Generator, height: int, width: int) -> Array:
    y, x = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[:, None]
    waves = np.sin(
        2 * np.pi * (random.uniform(1, 6, _COMPONENTS) * x + random.uniform(1, 6, _COMPONENTS) * y)
    )
    noise = random.integers(-27, 28, (height, width, _COMPONENTS))
    return (128 + 100 * waves + noise).astype(np.uint8)


_SRAD_TILE = 16
_SRAD_BYTES_PER_PIXEL = 24
_ITERATIONS = 4
_STEP = 0.5
_SPECKLE = 0.2  # standard deviation of the speckle over the mean
_DECAY = 1 / 6


class Srad(Application):
    """Smooth the speckle of an image, but not its edges (speckle-reducing anisotropic diffusion).

    The structured grid dwarf, after "Speckle reducing anisotropic diffusion", IEEE Trans. Image Process.
    11 (2002). What counts as speckle decays from one iteration to the next as that paper has it, so that
    the host need not look at the image in between. The image has bright rectangles under speckle.
    """

    name = "srad"
    kernels = ("srad_cuda_1", "srad_cuda_2")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        shape = parameters["rows"], parameters["columns"]
        self.original = _speckled(random, shape)
        self.image = self.original.copy()
        self.coefficient, *differences = (np.zeros(shape, np.float32) for _ in range(5))
        self.differences = tuple(differences)
        self.arrays = (self.image, self.coefficient, *self.differences)

        extents = [np.int32(extent) for extent in shape]
        self._arguments: tuple[Argument, ...] = *self.differences, self.image, self.coefficient, *extents
        self._sizes = (
            tuple(whole_groups(extent, _SRAD_TILE) for extent in reversed(shape)),
            (_SRAD_TILE, _SRAD_TILE),
        )
        self._speckles = [np.float32((_SPECKLE * exp(-_DECAY * i)) ** 2) for i in range(_ITERATIONS)]

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Parameters of about the largest problem whose working set is at most `nbytes`."""
        pixels = nbytes // _SRAD_BYTES_PER_PIXEL
        rows = isqrt(pixels)
        return {"rows": rows, "columns": pixels // rows}

    def run(self, queue: Queue) -> None:
        """Diffuse a few times."""
        np.copyto(self.image, self.original)
        queue.write(self.image)
        for speckle in self._speckles:
            queue.launch("srad_cuda_1", *self._sizes, *self._arguments, speckle)
            queue.launch("srad_cuda_2", *self._sizes, *self._arguments, np.float32(_STEP))
        queue.read(self.image)

    def check(self) -> None:
        """Compare with the same iterations in NumPy, in double precision."""
        # Each step only averages, so rounding errors stay of the order of a few units in the last place.
        expect_close("image", self.image, self._expected, rtol=1e-4)

    @cached_property
    def _expected(self) -> Array:
        image = self.original.astype(np.float64)
        for speckle in self._speckles:
            image = _diffused(image, float(speckle))
        return image


def _diffused(image: Array, speckle: float) -> Array:
    wide = np.pad(image, 1, mode="edge")
    up, left = wide[:-2, 1:-1], wide[1:-1, :-2]
    down, right = wide[2:, 1:-1], wide[1:-1, 2:]
    neighbours = np.stack([up, down, left, right])
    mean = neighbours.mean(axis=0) / image
    variation = (((neighbours / image - 1) ** 2).sum(axis=0) / 2 - (mean - 1) ** 2) / mean**2
    coefficient = np.clip(speckle * (1 + speckle) / (speckle**2 + variation), 0, 1)
    # What flows between two pixels has the second one's coefficient, and what one gains the other loses.
    down_flow = np.diff(image, axis=0) * coefficient[1:]
    right_flow = np.diff(image, axis=1) * coefficient[:, 1:]
    divergence = np.zeros_like(image)
    divergence[:-1] += down_flow
    divergence[:, :-1] += right_flow
    divergence[1:] -= down_flow
    divergence[:, 1:] -= right_flow
    return image + _STEP / 4 * divergence


def _speckled(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """An image of positive brightness around 1 to 3."""
    image = np.ones(shape)
    rows, columns = shape
    image[rows // 4 : rows // 2, columns // 3 : -columns // 4] = 2
    image[rows // 3 : -rows // 5, columns // 5 : columns // 2] = 3
    speckle = np.clip(random.normal(1, _SPECKLE, shape), 0.4, 1.6)
    return (image * speckle).astype(np.float32)
