"""Rows of the published study."""

from __future__ import annotations

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.time.johnston2018 import Rows, draw_trees
from crosscast.studies.johnston2018_forests import (
    MOST_TREES,
    Grown,
    OutOfBag,
    Runs,
    Surface,
    anneal,
    runs_of,
    tree_counts,
)
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.records import RECORDS
from support.shared import KERNELS, RUNS, SIZES, SPEEDS, made_up

CELLS = sum(map(len, KERNELS.values())) * len(SIZES) * len(SPEEDS)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return runs_of(made_up(noise=0.0))


def test_each_record_is_a_row(runs: Runs) -> None:
    assert len(runs) == CELLS * RUNS
    assert np.bincount(runs.cell, minlength=runs.cells).tolist() == [RUNS] * CELLS


def test_times_are_logarithms_of_microseconds_of_their_cell(runs: Runs) -> None:
    profiles = runs.grid.profiles
    place = list(zip(profiles.kernel, profiles.size, strict=True)).index(("add", "large"))
    device = [each.key for each in runs.grid.devices].index("gpu")
    own = runs.log_us[runs.cell == place * len(SPEEDS) + device]
    np.testing.assert_allclose(own, np.log(64 * 10_000 / 2e10 * 1e6))


def test_features_are_those_of_the_first_invocation_by_the_published_definitions(runs: Runs) -> None:
    names = dict(zip(runs.columns, runs.features.T, strict=True))
    assert set(names) == {
        "opcode",
        "total_instruction_count",
        "work_items",
        "granularity",
        "global_memory_address_entropy",
        "operand_sum",
    }
    place = list(zip(runs.grid.profiles.kernel, runs.grid.profiles.size, strict=True)).index(("add", "tiny"))
    assert names["total_instruction_count"][place] == 10_000
    assert names["operand_sum"][place] == 20_000
    assert names["granularity"][place] == 0.5


def test_a_forest_sees_the_device_as_its_last_feature(runs: Runs) -> None:
    rows = runs.rows()
    assert rows.features.shape == (runs.cells, len(runs.columns) + 1)
    keys = [device.key for device in runs.grid.devices]
    codes = dict(zip(keys, rows.features[: len(keys), -1].tolist(), strict=True))
    assert codes == {"gpu": 0, "phi": 1, "cpu": 2}


def test_a_sample_has_so_many_rows_a_cell(runs: Runs) -> None:
    sample = runs.sample(3, seed=0)
    assert np.bincount(sample.cell, minlength=runs.cells).tolist() == [3] * CELLS
    assert len(runs.sample(10 * RUNS, seed=0)) == len(runs)


def test_the_digest_is_of_the_contents(runs: Runs) -> None:
    assert runs.digest() == runs_of(made_up(noise=0.0)).digest()
    assert runs.digest() != runs.take(np.arange(len(runs)) > 0).digest()


def test_one_kernel_is_too_few() -> None:
    whole = made_up()
    records = [row for row in whole.records.to_pylist() if row["kernel"] == "crc32"]
    one = Dataset("one", whole.devices, whole.profiles, table_of(RECORDS, records))
    with pytest.raises(InputError, match="at least 2 kernels"):
        runs_of(one)


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
