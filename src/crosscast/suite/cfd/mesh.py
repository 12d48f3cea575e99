"""A mesh of quadrilaterals over ground, with plates in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.suite.application import Array

__all__ = ["FAR_FIELD", "WALL", "Mesh", "make_mesh"]

WALL = -1
FAR_FIELD = -2
"""What stands for a neighbour where there is none."""

_PLATES = 0.02
"""Part of the faces between elements that are closed."""


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
