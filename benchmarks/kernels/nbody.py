"""Gravity between all pairs of bodies: vector types, square root and division, hot addresses."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Array, Case, Workload

_SOFTENING = 1e-2


def _accelerations(body: Array) -> Array:
    """Acceleration of each of the ``(n, 4)`` bodies (position and mass), in double precision."""
    position, mass = body[:, :3].astype(np.float64), body[:, 3].astype(np.float64)
    result = np.zeros((len(body), 4))
    for start in range(0, len(body), 256):
        away = position[None, :, :] - position[start : start + 256, None, :]
        distance2 = np.einsum("ijk,ijk->ij", away, away) + _SOFTENING
        result[start : start + 256, :3] = np.einsum("ijk,ij->ik", away, mass * distance2**-1.5)
    return result


def prepare(size: int, random: np.random.Generator) -> Workload:
    """`size` bodies in a unit cube."""
    body = random.random((size, 4), dtype=np.float32)
    return Workload(
        (size,),
        (64,),
        (body, np.zeros((size, 4), np.float32), np.int32(size), np.float32(_SOFTENING)),
        outputs=(1,),
        expected=(_accelerations(body),),
        work=float(size) ** 2,
        tolerance=1e-4,
    )


CASE = Case("nbody", "gravity between all pairs of bodies", size=4096, reduced=1024, prepare=prepare)
