"""The error over the forest's parameters."""

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.time.johnston2018 import Rows, draw_trees
from crosscast.studies.johnston2018_forests import (
    MOST_TREES,
    Grown,
    OutOfBag,
    Surface,
    anneal,
    runs_of,
    tree_counts,
)
from published_data import made_up


@pytest.fixture(scope="module")
def rows() -> Rows:
    return runs_of(made_up()).rows()


def test_an_error_is_that_of_the_first_trees(rows: Rows) -> None:
    surface = Surface(rows, 12, (1, 9), seed=0)
    for trees in (1, 5, 12):
        bag = OutOfBag(rows, (9,))
        for drawn in draw_trees(rows, trees, tried=4, seed=0):
            bag.add(drawn)
        assert surface.error(trees, 4, 9) == pytest.approx(bag.errors()[0])


def test_an_error_out_of_the_bag_leaves_out_the_trees_that_drew_the_row(rows: Rows) -> None:
    bag = OutOfBag(rows, (1,))
    drawn = list(draw_trees(rows, 4, tried=7, seed=0))
    for each in drawn:
        bag.add(each)
    errors = []
    for row, response in enumerate(rows.response):
        out = [each.predictions([1])[0][rows.cell[row]] for each in drawn if each.times[row] == 0]
        if out:
            errors.append((np.mean(out) - response) ** 2)
    assert bag.errors()[0] == pytest.approx(np.mean(errors))


def test_more_trees_than_were_grown_err_less_along_one_over_trees() -> None:
    trees = np.array([5, 10, 20, 40])
    grown = Grown(trees, (0.2 + 3 / trees)[:, None], np.empty((1, 0)))
    assert grown.error(80, 0) == pytest.approx(0.2 + 3 / 80)
    assert grown.error(10_000, 0) == pytest.approx(0.2003)
    assert grown.error(15, 0) == pytest.approx(0.2 + 3 / 15)


def test_noise_does_not_make_more_trees_worse() -> None:
    grown = Grown(np.array([10, 20, 40]), np.array([[0.1], [0.2], [0.3]]), np.empty((1, 0)))
    assert grown.error(1000, 0) == pytest.approx(0.3)


def test_a_node_size_that_was_not_prepared_is_refused(rows: Rows) -> None:
    with pytest.raises(InputError, match="node_size"):
        Surface(rows, 2, (9,), seed=0).error(10, 2, 10)


def test_annealing_begins_at_its_start_and_keeps_within_the_parameters(rows: Rows) -> None:
    surface = Surface(rows, 4, (1, 9, 40), seed=0)
    search = anneal(surface, (500, 32, 9), 40, seed=1)
    assert (search.trees[0], search.tried[0], search.node_size[0]) == (510, surface.features, 9)
    assert len(search.error) >= 20
    assert set(search.trees) <= set(tree_counts())
    assert max(tree_counts()) <= MOST_TREES
    assert 1 <= min(search.tried) <= max(search.tried) <= surface.features
    assert set(search.node_size) <= {1, 9, 40}
    assert len(set(search.node_size)) == 3
    assert search.error[search.best] == min(search.error)
    for step in (0, search.best, len(search.error) - 1):
        at = (search.trees[step], search.tried[step], search.node_size[step])
        assert search.error[step] == surface.error(*at)


def test_annealing_repeats_itself(rows: Rows) -> None:
    first, second = (anneal(Surface(rows, 3, (9,), seed=0), (500, 3, 9), 15, seed=4) for _ in range(2))
    assert first == second
