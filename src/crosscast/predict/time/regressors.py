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
from crosscast.predict.time.data import Grid, Profiles, application_weights, filled
from crosscast.predict.time.features import Features
from crosscast.predict.trees import Trees, constant, joined, trees_of_boosting, trees_of_forest

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
    """What trees are grown on, of ``n`` kernels on ``d`` devices."""

    features: Features  # The features of both parts
    rows: Reals  # Their values, of shape `(n, f)`, rounded to single precision, in which trees compare
    level: Reals  # Mean over the devices of the logarithm of the time, of shape `(n,)`
    preference: Reals  # What is left, of shape `(n, d)`
    weights: Reals  # Weight of each kernel, of shape `(n,)`
    level_places: list[int]  # Columns from which each part is predicted
    preference_places: list[int]


def two_parts(grid: Grid) -> TwoParts:
    """Take the times of a grid apart; cells without one are filled by `filled`."""
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
    """Trees on features of profiles, with an output for each device."""

    features: Features  # What the trees' columns are
    trees: Trees  # Their sum is the logarithm of the time

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        return self.trees.sum(self.features.matrix(profiles))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {**self.features.state(), **self.trees.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedTrees:
        """Make it from its arrays."""
        features = Features.from_state(state)
        return cls(features, Trees.from_state(state, len(features.names)))


@dataclass(frozen=True)
class ExtraTrees:
    """Two forests of extremely randomized trees: one for the level, one for the preference of devices.

    How they are grown is not tuned to a grid: half or twice each number changes the error on held-out
    applications by a few per cent, and less than the choice among so few applications would cost.
    """

    trees: int = 150  # Trees of each forest
    level_leaf: int = 2  # Kernels in a leaf, at least
    preference_leaf: int = 4

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "extra-trees"

    def fit(self, grid: Grid, seed: int) -> FittedTrees:
        """Fit it to a grid that may have cells without a time."""
        parts = two_parts(grid)
        seeds = np.random.default_rng(seed).integers(2**31, size=2).tolist()
        level = self._level(parts, seeds[0]).onto(np.ones((1, len(grid.devices))))
        return FittedTrees(parts.features, joined([level, self._preference(parts, seeds[1])]))

    def _level(self, parts: TwoParts, seed: int) -> Trees:
        from crosscast.predict.scikit import ExtraTreesRegressor

        places = parts.level_places
        forest = ExtraTreesRegressor(
            self.trees, min_samples_leaf=self.level_leaf, max_features=0.5, random_state=seed
        )
        forest.fit(parts.rows[:, places], parts.level, sample_weight=parts.weights)
        return trees_of_forest(forest).reading(places)

    def _preference(self, parts: TwoParts, seed: int) -> Trees:
        from crosscast.predict.scikit import ExtraTreesRegressor

        places = parts.preference_places
        forest = ExtraTreesRegressor(self.trees, min_samples_leaf=self.preference_leaf, random_state=seed)
        wanted = parts.preference if parts.preference.shape[1] > 1 else parts.preference[:, 0]
        forest.fit(parts.rows[:, places], wanted, sample_weight=parts.weights)
        return trees_of_forest(forest).reading(places)


_GROWING = frozenset(
    (
        "instructions",
        "steps_on_16",
        "steps_on_256",
        "steps_on_4096",
        "steps_on_65536",
        "instructions_per_item",
        "footprint",
        "accesses",
    )
)
"""Features with which the level may grow but not fall: more work or more data never takes less time."""


@dataclass(frozen=True)
class Boosting:
    """Boosted trees for the level, and for each main direction in which preferences of devices vary.

    The directions are the first principal components of the preferences of the training kernels.
    """

    rounds: int = 100  # Trees for each of these
    rate: float = 0.05  # How much of what is left each tree takes away
    leaves: int = 4  # Leaves of a tree, at most
    least: int = 5  # Kernels in a leaf, at least
    directions: int = 3  # How many directions, at most

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "boosting"

    def fit(self, grid: Grid, seed: int) -> FittedTrees:
        """Fit it to a grid that may have cells without a time."""
        parts = two_parts(grid)
        d = len(grid.devices)
        growing = [int(parts.features.names[place] in _GROWING) for place in parts.level_places]
        level = self._boosted(parts, parts.level_places, parts.level, seed, growing)
        mean = np.average(parts.preference, axis=0, weights=parts.weights)
        scores, axes = _principal(parts.preference - mean, min(self.directions, d - 1))
        preferences = [
            self._boosted(parts, parts.preference_places, score, seed).onto(axis[None, :])
            for score, axis in zip(scores.T, axes, strict=True)
        ]
        everywhere = level.onto(np.ones((1, d)))
        return FittedTrees(parts.features, joined([everywhere, constant(mean), *preferences]))

    def _boosted(
        self,
        parts: TwoParts,
        places: list[int],
        wanted: Reals,
        seed: int,
        growing: list[int] | None = None,
    ) -> Trees:
        from crosscast.predict.scikit import HistGradientBoostingRegressor, threadpool_limits

        model = HistGradientBoostingRegressor(
            max_iter=self.rounds,
            learning_rate=self.rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.least,
            l2_regularization=1.0,
            monotonic_cst=growing,
            early_stopping=False,
            random_state=seed,
        )
        # A grid has some hundred rows: threads would wait for each other longer than they work.
        with threadpool_limits(1):
            model.fit(parts.rows[:, places], wanted, sample_weight=parts.weights)
        return trees_of_boosting(model).reading(places)


def _principal(rows: Reals, count: int) -> tuple[Reals, Reals]:
    """First principal directions ``(count, d)`` of rows, behind the rows' scores on them, ``(n, count)``."""
    _, _, axes = np.linalg.svd(rows, full_matrices=False)
    first: Reals = axes[:count]
    return rows @ first.T, first
