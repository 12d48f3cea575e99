"""Trees as arrays predict what scikit-learn does; on cells they are those on rows, as ranger grows them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.time import Grid
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.time.models import PublishedForest
from crosscast.prediction.trees import Rows, Trees, constant, draw_trees, joined, trees_of_forest
from crosscast.studies.johnston2018_forests import grow
from support.examples import examples
from support.johnston2018 import made_up


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


def rows(cells: int = 40, per_cell: int = 6, features: int = 5, seed: int = 1) -> Rows:
    """Cells of an unlike number of rows, with a response that depends on their features."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(cells, features))
    cell = np.sort(rng.integers(0, cells, cells * per_cell))
    response = matrix[cell, 0] - matrix[cell, 1] ** 2 + rng.normal(0, 0.2, len(cell))
    return Rows(matrix, cell, response)


@pytest.mark.parametrize("seed", range(2))
def test_a_tree_on_cells_is_the_tree_on_rows(seed: int) -> None:
    data = rows(seed=seed)
    (drawn,) = draw_trees(data, 1, tried=5, seed=seed)
    again = np.repeat(np.arange(len(data.response)), drawn.times)
    on_rows = DecisionTreeRegressor(random_state=seed)
    on_rows.fit(data.features[data.cell[again]], data.response[again])
    assert drawn.tree.rows[0] == len(again)
    assert (drawn.tree.left < 0).sum() == on_rows.get_n_leaves()
    # Cells out of the bag may fall on either side of splits that tell the others apart equally well.
    drawn_cells = np.unique(data.cell[again])
    expected = on_rows.predict(data.features[drawn_cells])
    np.testing.assert_allclose(drawn.predictions([1])[0][drawn_cells], expected)


@pytest.mark.parametrize("node_size", [1, 9, 30])
def test_node_sizes_count_rows_and_stop_splits(node_size: int) -> None:
    data = rows()
    (drawn,) = draw_trees(data, 1, tried=5, seed=3)
    cut = drawn.tree.cut(node_size)
    inner = cut.left >= 0
    assert (cut.rows[inner] > node_size).all()
    assert not cut.in_vain[inner].any()
    # Nothing else was cut: a node that ends the cut tree is small, or was a leaf before.
    ends = drawn.tree.ends([node_size])[:, 0]
    stopped = np.flatnonzero(ends == np.arange(len(ends)))
    assert ((drawn.tree.rows[stopped] <= node_size) | drawn.tree.in_vain[stopped]).all()


def test_the_cut_tree_predicts_as_the_grown_tree_does() -> None:
    data = rows()
    (drawn,) = draw_trees(data, 1, tried=2, seed=4)
    predictions = drawn.predictions([1, 12, 500])
    for index, node_size in enumerate((1, 12, 500)):
        cut = drawn.tree.cut(node_size)
        single = data.features.astype(np.float32)
        for cell in range(len(single)):
            node = 0
            while cut.left[node] >= 0:
                below = single[cell, cut.feature[node]] <= cut.threshold[node]
                node = int(cut.left[node] if below else cut.right[node])
            assert predictions[index, cell] == cut.value[node]
    assert len(set(predictions[2].tolist())) == 1


def test_a_node_stays_whole_as_often_as_all_tried_features_are_constant_there() -> None:
    # Of four features one varies, and two are tried: C(3, 2) / C(4, 2) = 1/2 of the draws miss it.
    features = np.zeros((2, 4))
    features[1, 2] = 1.0
    data = Rows(features, np.repeat([0, 1], 20), np.repeat([0.0, 1.0], 20))
    whole = [bool(drawn.tree.in_vain[0]) for drawn in draw_trees(data, 600, tried=2, seed=0)]
    assert abs(np.mean(whole) - 0.5) < 0.07
    assert not any(drawn.tree.in_vain[0] for drawn in draw_trees(data, 50, tried=4, seed=0))


def test_errors_out_of_the_bag_are_those_of_a_forest_on_the_rows() -> None:
    data = rows(cells=60, per_cell=10)
    error = grow(data, 300, 5, (1,), seed=0).error(300, 0)
    forest = RandomForestRegressor(300, oob_score=True, random_state=0)
    forest.fit(data.features[data.cell], data.response)
    expected = np.mean((forest.oob_prediction_ - data.response) ** 2)
    assert error == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("trees", "tried"), [(0, 1), (1, 0)])
def test_no_trees_and_no_features_are_refused(trees: int, tried: int) -> None:
    with pytest.raises(InputError, match="at least one tree and one feature"):
        next(iter(draw_trees(rows(), trees, tried=tried, seed=0)))


SMALL = PublishedForest(trees=40, tried=4, node_size=1)


def test_it_has_the_parameters_of_the_paper() -> None:
    model = PublishedForest()
    assert (model.trees, model.tried, model.node_size) == (505, 30, 9)


def test_cells_without_a_time_are_left_out() -> None:
    grid = grid_of(made_up())
    log_time = grid.log_time.copy()
    log_time[::2, 1] = np.nan
    gaps = Grid(grid.profiles, grid.devices, log_time, grid.spread, grid.runs)
    assert np.isfinite(SMALL.fit(gaps, 0).log_time(grid.profiles)).all()
    log_time[:] = np.nan
    with pytest.raises(InputError, match="found none"):
        SMALL.fit(Grid(grid.profiles, grid.devices, log_time, grid.spread, grid.runs), 0)
