"""How alike applications are, as kernels between them; and the products of which a covariance is made."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosscast.predict.corun.process.traits import Traited
from crosscast.predict.grid import Reals

__all__ = ["ONE", "TERMS", "Kernels", "kernels_between", "squares_between"]

ONE, NEAR, AKIN, KIN, SAME, LINE = "one", "near", "akin", "kin", "same", "line"
"""Kernels: all are alike; by traits; by traits and batch within an application; within an application; the
same application at the same size; and in proportion to loads."""

TERMS: tuple[tuple[str, str], ...] = (
    (ONE, ONE),
    (NEAR, ONE),
    (ONE, NEAR),
    (NEAR, NEAR),
    (AKIN, ONE),
    (ONE, AKIN),
    (AKIN, NEAR),
    (NEAR, AKIN),
    (AKIN, AKIN),
    (KIN, ONE),
    (ONE, KIN),
    (KIN, KIN),
    (AKIN, KIN),
    (KIN, AKIN),
    (SAME, ONE),
    (ONE, SAME),
    (ONE, LINE),
    (SAME, LINE),
)
"""Terms of the covariance: a kernel of the members times one of those that they share the device with."""

_BATCH_LENGTH = 1.5

Kernels = Mapping[str, Reals]
"""Kernels by name, each of shape ``(a, b)``."""


def squares_between(first: Traited, second: Traited) -> Reals:
    """Squared distances in each trait, of shape ``(f, a, b)``."""
    squares: Reals = (first.near.T[:, :, None] - second.near.T[:, None, :]) ** 2
    return squares


def kernels_between(first: Traited, second: Traited, squares: Reals, lengths: Reals) -> dict[str, Reals]:
    """The kernels between applications.

    Parameters
    ----------
    first, second
        The applications, ``a`` and ``b`` of them.
    squares
        Of `squares_between`.
    lengths
        Distance in each trait at which likeness has fallen by ``exp(-1/2)``, of shape ``(f,)``.
    """
    near = np.exp(-0.5 * np.tensordot(lengths**-2.0, squares, 1))
    kin = (first.application[:, None] == second.application[None, :]).astype(np.float64)
    batch = np.exp(-0.5 * ((first.batch[:, None] - second.batch[None, :]) / _BATCH_LENGTH) ** 2)
    return {
        ONE: np.ones_like(kin),
        NEAR: near,
        AKIN: kin * batch * near,
        KIN: kin,
        SAME: (first.name[:, None] == second.name[None, :]).astype(np.float64),
        LINE: first.load[:, None] * second.load[None, :],
    }
