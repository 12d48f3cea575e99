"""Decision forest (paper 003, section VI-A): scikit-learn's random forest of regression trees."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crosscast.errors import MissingExtraError
from crosscast.predict.grown import trees_of_forest
from crosscast.predict.relative.features import FeatureScale
from crosscast.predict.relative.observations import Vectors, check_runs
from crosscast.predict.relative.published.positive import least_entry
from crosscast.predict.relative.published.trees import TreesPredictor

__all__ = ["TREES", "PublishedForest"]

TREES = 100
"""Trees of the forest: scikit-learn's default, as the paper names no number."""


@dataclass(frozen=True)
class PublishedForest:
    """``RandomForestRegressor`` with its defaults, and all entries of the vector as outputs of each tree.

    The paper names neither kind nor settings of its forest. Features that are missing are filled as
    `FeatureScale` fills them.

    Parameters
    ----------
    trees
        Number of trees.
    features
        What it learns from; filled.
    """

    trees: int = TREES
    features: FeatureScale = field(default_factory=lambda: FeatureScale(fill=True))

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-forest"

    def fit(self, vectors: Vectors, seed: int) -> TreesPredictor:
        """Fit it.

        Raises
        ------
        InputError
            If there is no row.
        MissingExtraError
            If scikit-learn is not installed.
        """
        try:
            from sklearn.ensemble import RandomForestRegressor
        except ImportError as error:
            raise MissingExtraError("train", "fitting a model") from error
        check_runs(self.name, vectors)
        features, vector = self.features.fit(vectors.observations), vectors.vector
        forest = RandomForestRegressor(self.trees, random_state=seed)
        forest.fit(features.transform(vectors.observations), vector)
        gain = np.asarray(forest.feature_importances_, dtype=np.float64)
        return TreesPredictor(features, trees_of_forest(forest), least_entry(vector), gain)
