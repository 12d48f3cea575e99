"""How alike applications are, as kernels between them; and the products of which a covariance is made."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.corun.process.traits import Traited

__all__ = ["ONE", "TERMS", "Between", "Kernels"]

ONE, NEAR, AKIN, KIN, SAME, LINE = "one", "near", "akin", "kin", "same", "line"
"""Kernels: all are alike; by traits; within an application by traits, or by batch where there are none;
within an application; the same application at the same size; and in proportion to loads."""

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


class Between:
    """How alike two sets of applications are, ``a`` and ``b`` of them, at lengths that are tried.

    Parameters
    ----------
    first, second
        The applications.
    """

    def __init__(self, first: Traited, second: Traited) -> None:
        self.squares: Reals = (first.near.T[:, :, None] - second.near.T[:, None, :]) ** 2
        """Squared distances in each trait, of shape ``(f, a, b)``."""
        kin = (first.application[:, None] == second.application[None, :]).astype(np.float64)
        same = (first.name[:, None] == second.name[None, :]).astype(np.float64)
        self._kernels = {ONE: np.ones_like(kin), KIN: kin, SAME: same}
        apart = (first.batch[:, None] - second.batch[None, :]) / _BATCH_LENGTH
        # Where traits are known, they tell what the batch does.
        self._batch = kin if len(self.squares) else kin * np.exp(-0.5 * apart**2)

    def kernels(self, lengths: Reals) -> Kernels:
        """All kernels but `LINE`, which is a product of loads.

        Parameters
        ----------
        lengths
            Distance in each trait at which likeness has fallen by ``exp(-1/2)``, of shape ``(f,)``.
        """
        near = np.exp(-0.5 * np.tensordot(lengths**-2.0, self.squares, 1))
        return {**self._kernels, NEAR: near, AKIN: self._batch * near}
