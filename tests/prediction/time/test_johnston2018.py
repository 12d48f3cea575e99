"""Trees on cells are the trees on their rows, with ranger's meaning of its parameters."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from crosscast.errors import InputError
from crosscast.prediction.time import Grid
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.time.models import PublishedForest
from crosscast.prediction.trees import Rows, draw_trees
from crosscast.studies.johnston2018_forests import grow
from support.johnston2018 import made_up


def rows(cells: int = 40, per_cell: int = 6, features: int = 5, seed: int = 1) -> Rows:
    """Cells of an unlike number of rows, with a response that depends on their features."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(cells, features))
    cell = np.sort(rng.integers(0, cells, cells * per_cell))
    response = matrix[cell, 0] - matrix[cell, 1] ** 2 + rng.normal(0, 0.2, len(cell))
    return Rows(matrix, cell, response)


@pytest.mark.parametrize("seed", range(5))
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
    assert (model.name, model.trees, model.tried, model.node_size) == ("published-forest", 505, 30, 9)


def test_cells_without_a_time_are_left_out() -> None:
    grid = grid_of(made_up())
    log_time = grid.log_time.copy()
    log_time[::2, 1] = np.nan
    gaps = Grid(grid.profiles, grid.devices, log_time, grid.spread, grid.runs)
    assert np.isfinite(SMALL.fit(gaps, 0).log_time(grid.profiles)).all()
    log_time[:] = np.nan
    with pytest.raises(InputError, match="found none"):
        SMALL.fit(Grid(grid.profiles, grid.devices, log_time, grid.spread, grid.runs), 0)
