"""Stencils in work-groups of many shapes: what small and flat groups cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.kernels import stencil
from benchmarks.kernels.case import Case, Workload

_CENTRE, _SIDE = 0.4, 0.1
_FLAT = ((8, 8), (16, 16), (32, 8), (16, 4), (64, 1), (128, 1), (1024, 1))
_DEEP = (8, 8, 4)


def _flat(shape: tuple[int, ...]) -> Callable[[int, np.random.Generator], Workload]:
    return lambda size, random: replace(stencil.prepare(size, random), local_size=shape)


def _deep(size: int, random: np.random.Generator) -> Workload:
    """A cube of `size` points along each edge."""
    cube = random.random((size, size, size), dtype=np.float32)
    expected = cube.astype(np.float64)
    inner = (slice(1, -1),) * 3
    sides = sum(np.roll(expected, by, axis)[inner] for axis in range(3) for by in (-1, 1))
    expected[inner] = _CENTRE * expected[inner] + _SIDE * sides
    return Workload(
        (size, size, size),
        _DEEP,
        (cube, np.zeros_like(cube), np.int32(size), np.float32(_CENTRE), np.float32(_SIDE)),
        outputs=(1,),
        expected=(expected,),
        work=float(size) ** 3,
        tolerance=1e-6,
    )


def _named(shape: tuple[int, ...]) -> str:
    return f"stencil-{'x'.join(map(str, shape))}"


SHAPES: dict[str, Case] = {
    case.name: case
    for case in (
        *(
            Case(_named(shape), "five-point stencil", 2048, 512, _flat(shape), kernel="stencil")
            for shape in _FLAT
        ),
        Case(_named(_DEEP), "seven-point stencil", 128, 32, _deep, kernel="stencil3d"),
    )
}
"""Cases by name: a stencil of 2048 by 2048 in each shape, and one of 128 by 128 by 128."""
