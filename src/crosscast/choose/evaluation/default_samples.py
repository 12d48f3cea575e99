"""The sample configurations where none are named."""

from __future__ import annotations

from collections.abc import Callable

from crosscast.choose.steps import highest, lowest
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["Sampler", "highest_and_lowest"]

Sampler = Callable[[Surfaces, int], tuple[int, ...]]
"""Chooses the sample configurations by the training kernels and a seed."""


def highest_and_lowest(surfaces: Surfaces, seed: int) -> tuple[int, ...]:
    """All knobs at their maximum, then all at their minimum; with several devices the highest of each.

    Only configurations at which the most kernels were run are taken.

    Parameters
    ----------
    surfaces
        The training kernels.
    seed
        Does not matter, as nothing is random.
    """
    counts = surfaces.known.sum(axis=0)
    common = counts == counts.max()
    space = surfaces.space
    found = [highest(space, common, device) for device in space.devices]
    return tuple(dict.fromkeys([*found, lowest(space, common)] if len(found) == 1 else found))
