"""Trees as arrays: they predict what scikit-learn does, add up, and refuse what are no trees."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.trees import Trees, constant, joined, trees_of_forest
from support.examples import examples


def sample(seed: int, n: int = 60, f: int = 4, o: int = 3) -> tuple[Reals, Reals]:
    """Rows of few distinct features, as sizes have them, and outputs."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 12, (n, f)) / 7 + rng.choice([0.0, 1e-9], (n, f))
    return rows, rng.normal(size=(n, o)) + rows[:, :1]


def grown(seed: int = 0, trees: int = 7, o: int = 3) -> Trees:
    rows, wanted = sample(seed, o=o)
    return trees_of_forest(ExtraTreesRegressor(trees, random_state=seed).fit(rows, wanted))


def test_a_sum_is_that_of_the_trees_one_by_one() -> None:
    trees, rows = grown(), sample(1, n=9000)[0]
    alone = [replace(trees, root=trees.root[index : index + 1]).sum(rows) for index in range(7)]
    np.testing.assert_allclose(np.sum(alone, axis=0), trees.sum(rows), atol=1e-12)


@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestRegressor])
@given(st.integers(0, 2**31), st.sampled_from([1, 3, 20]), st.sampled_from([2, 5]))
@settings(max_examples=12, deadline=None)
def test_a_forest_predicts_what_scikit_learn_does(kind: Any, seed: int, leaf: int, outputs: int) -> None:
    rows, wanted = sample(seed, o=outputs)
    forest = kind(11, min_samples_leaf=leaf, random_state=seed).fit(rows, wanted)
    others = np.concatenate([rows, rows + 1e-9, np.nextafter(rows, np.inf), sample(seed + 1)[0]])
    np.testing.assert_allclose(
        trees_of_forest(forest).sum(others), forest.predict(others), rtol=0, atol=1e-12
    )


def test_rows_at_thresholds_go_where_scikit_learn_sends_them() -> None:
    rows, wanted = sample(3)
    forest = ExtraTreesRegressor(5, random_state=3).fit(rows, wanted)
    thresholds = np.unique(np.concatenate([each.tree_.threshold for each in forest.estimators_]))
    near = np.concatenate([np.nextafter(thresholds, end) for end in (-np.inf, np.inf)] + [thresholds])
    on = np.repeat(near[:, None], 4, axis=1)
    np.testing.assert_allclose(trees_of_forest(forest).sum(on), forest.predict(on), rtol=0, atol=1e-12)


def test_joined_trees_add_up_and_projected_ones_sum_to_projected_sums() -> None:
    one, other, rows = grown(0), grown(1), sample(2)[0]
    middle = np.array([1.0, 2.0, 3.0])
    both = joined([one, constant(middle), other])
    np.testing.assert_allclose(both.sum(rows), one.sum(rows) + middle + other.sum(rows), atol=1e-12)
    trees, rows = grown(), sample(2)[0]
    directions = np.random.default_rng(0).normal(size=(3, 5))
    np.testing.assert_allclose(trees.project(directions).sum(rows), trees.sum(rows) @ directions, atol=1e-12)


@given(st.data())
@examples(80)
def test_a_state_with_any_one_node_changed_is_refused_or_still_trees(data: st.DataObject) -> None:
    state = grown(trees=2).state()
    name = data.draw(st.sampled_from(["split_left", "split_right", "root", "split_feature"]))
    array = state[name].copy()
    array[data.draw(st.integers(0, len(array) - 1))] = data.draw(st.integers(-200, 200))
    try:
        trees = Trees.from_state({**state, name: array})
        trees.check_width(4)
    except InputError:
        return
    assert np.isfinite(trees.sum(sample(2)[0])).all()
