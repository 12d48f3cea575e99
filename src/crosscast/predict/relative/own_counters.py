"""How values of counters that Table III does not know are brought to a scale to compare them on."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals

__all__ = ["AS_IS", "LOGARITHM", "ROOT", "on_scale", "scale_for"]

AS_IS, LOGARITHM, ROOT = range(3)
"""Shares stay; amounts become the logarithm of one more, signed values their inverse hyperbolic sine."""


def scale_for(values: Reals) -> int:
    """Choose a scale by the values of the rows that a model is fitted to.

    Shares are from 0 to 1, or in percent from 0 to 100 and not all whole. If one is below 0, all are signed.
    All else are amounts.

    Parameters
    ----------
    values
        Of one counter; at least one is finite.
    """
    there = values[np.isfinite(values)]
    if there.min() < 0:
        return ROOT
    is_percent = there.max() <= 100 and bool((there != np.floor(there)).any())
    return AS_IS if there.max() <= 1 or is_percent else LOGARITHM


def on_scale(values: Reals, scale: int) -> Reals:
    """Values on a scale; not a number where they are not finite.

    A negative amount, which no row had that the scale was chosen by, is put as far below 0 as its opposite is
    above.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    if scale == LOGARITHM:
        return np.sign(values) * np.log1p(np.abs(values))
    if scale == ROOT:
        return np.arcsinh(values)
    return values
