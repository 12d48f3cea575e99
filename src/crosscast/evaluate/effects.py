"""How predictions depend on what a profile was made with, from launches that two toolchains have profiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crosscast.predict.card import Effect
from crosscast.predict.grid import Grid, metric
from crosscast.predict.model import PointPredictor
from crosscast.predict.toolchain import Toolchain

__all__ = ["effect_of"]

_LIKE = 2.0
_OUTER = 0.1


def effect_of(point: PointPredictor, grid: Grid, others: Grid, toolchain: Toolchain) -> Effect | None:
    """Compare predictions from two profiles of the same launches.

    Launches are taken for the same if application, kernel, size and work-items are, and the instructions
    within a factor of 2: the sizes of a suite have been set anew now and then.

    Parameters
    ----------
    point
        The fitted model.
    grid
        Kernels with the profiles that it was fitted to.
    others
        Kernels with profiles by another toolchain.
    toolchain
        That one.

    Returns
    -------
    Effect or None
        ``None`` if no launch is in both.
    """
    pairs = _pairs(grid, others)
    if not pairs:
        return None
    ours, theirs = (np.array(places, dtype=np.int64) for places in zip(*pairs, strict=True))
    known = grid.profiles.take(ours)
    # How often a kernel was launched is the run's affair, not the compiler's.
    foreign = replace(others.profiles.take(theirs), invocations=known.invocations)
    apart = point.log_time(foreign) - point.log_time(known)
    low, middle, high = np.exp(np.quantile(apart, (_OUTER, 0.5, 1 - _OUTER))).tolist()
    return Effect(toolchain, len(pairs), middle, low, high)


def _pairs(grid: Grid, others: Grid) -> list[tuple[int, int]]:
    """Numbers of the same launches in both."""
    there = {key: place for place, key in enumerate(_keys(others))}
    found = [(place, there[key]) for place, key in enumerate(_keys(grid)) if key in there]
    instructions, other = (metric(each.profiles, "total_instruction_count") for each in (grid, others))
    return [(a, b) for a, b in found if 1 / _LIKE <= other[b] / instructions[a] <= _LIKE]


def _keys(grid: Grid) -> list[tuple[Any, ...]]:
    profiles = grid.profiles
    items = metric(profiles, "work_items").tolist()
    return list(zip(profiles.application, profiles.kernel, profiles.size, items, strict=True))
