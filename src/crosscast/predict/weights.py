"""Weights of training kernels."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.grid import Profiles

__all__ = ["application_weights"]


def application_weights(profiles: Profiles, power: float = 0.75) -> Reals:
    """Weights with mean 1 that keep an application of many kernels from outweighing the others.

    Parameters
    ----------
    profiles
        ``n`` kernels.
    power
        Between one weight a kernel (0) and one an application (1): kernels of an application are alike, but
        not the same.

    Returns
    -------
    array
        Of shape ``(n,)``.
    """
    groups = profiles.groups("application")
    weights = np.bincount(groups)[groups].astype(np.float64) ** -power
    scaled: Reals = weights / weights.mean()
    return scaled
