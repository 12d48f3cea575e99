"""Paths through a decision tree are those that scikit-learn tells."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.moolchandani2022_features import Combination
from crosscast.prediction.trees import trees_of_forest, trees_of_tree
from crosscast.studies.moolchandani2022_features import decision_paths, splits_passed
from support.published_mixes import made_co_runs
from support.refusals import refusals

RNG = np.random.default_rng(2)
ROWS, WANTED = RNG.random((80, 5)), RNG.random(80)


def passed(tree: DecisionTreeRegressor, rows: Reals) -> Integers:
    """Splits at each feature on the path of each row, by scikit-learn."""
    nodes = tree.decision_path(rows).toarray()
    features = tree.tree_.feature
    return np.stack([nodes[:, features == place].sum(axis=1) for place in range(rows.shape[1])], axis=1)


def test_splits_passed_are_those_of_scikit_learn() -> None:
    tree = DecisionTreeRegressor(max_depth=7, random_state=0).fit(ROWS, WANTED)
    others = RNG.random((40, 5))
    np.testing.assert_array_equal(splits_passed(trees_of_tree(tree), others), passed(tree, others))


def test_splits_of_a_forest_are_those_of_its_trees_together() -> None:
    forest = RandomForestRegressor(5, random_state=0).fit(ROWS, WANTED)
    expected = sum(passed(tree, ROWS) for tree in forest.estimators_)
    np.testing.assert_array_equal(splits_passed(trees_of_forest(forest), ROWS), expected)


def test_what_alone_decides_is_on_every_path() -> None:
    """Times of mixes that follow from times alone: nothing else decides."""
    co_runs = made_co_runs((2,), applications=10)
    model = Published("decision-tree", performance=Combination("times", ("GPU_time", "CPU_time")))
    predictor = model.fit(co_runs, 0).of_size(2)
    mixes = [mix.isolated_runs for mix in co_runs.mixes]
    paths = decision_paths(predictor, mixes)
    assert paths.features == ("GPU_time", "CPU_time")
    assert paths.share[0] == 1.0
    assert paths.times.shape == (len(mixes), 2)
    assert (paths.times.sum(axis=1) <= 7).all()
    assert paths.times[:, 0].mean() > paths.times[:, 1].mean()


@refusals("kind target words")
def test_only_one_tree_has_a_path(kind: str, target: str, words: str) -> None:
    co_runs = made_co_runs((2,), applications=5)
    predictor = Published(kind).fit(co_runs, 0).of_size(2)
    with pytest.raises(InputError, match=f"^{target}: {words}$"):
        decision_paths(predictor, [co_runs.mixes[0].isolated_runs], target)
