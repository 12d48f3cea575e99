"""The parts of the published study, on a made-up dataset."""

import numpy as np
import pytest

from crosscast.predict.time.johnston2018 import PublishedForest
from crosscast.studies.johnston2018 import (
    NODE_SIZES,
    counts_of,
    energy,
    headline,
    honest,
    learn,
    omit,
    recycled,
    tune,
)
from crosscast.studies.johnston2018_forests import OMITTED, Runs, paper_omitted, runs_of
from published_data import RUNS, SIZES, SPEEDS, made_up


@pytest.fixture(scope="module")
def runs() -> Runs:
    return runs_of(made_up())


def test_the_lookup_table_is_as_good_as_the_noise(runs: Runs) -> None:
    found = headline(runs, 30, seed=0)
    assert found.trained_rows == round(0.2 * len(runs))
    assert 0.03 < found.lookup.mae_log < 0.3
    assert found.oob_r2 > 0.9
    # A reading of one and the same error in other units.
    units = found.relative_log_by_unit
    assert units["us"] == pytest.approx(found.forest.relative_log_cells)
    assert units["ns"] < units["us"]
    assert list(found.misprediction_s) == list(SIZES)


def test_real_time_and_logarithm_tell_the_same_errors(runs: Runs) -> None:
    found = headline(runs, 30, seed=0)
    predicted, measured = np.array(found.predicted), np.array(found.measured)
    assert predicted.shape == measured.shape == (10, 3)
    ape = np.abs(np.exp(predicted - measured) - 1)
    assert found.forest.mape_cells == pytest.approx(np.nanmean(ape))
    assert found.forest.median_ape_cells == pytest.approx(np.nanmedian(ape))
    relative = np.abs(predicted - measured) / np.abs(measured)
    assert found.forest.relative_log_cells == pytest.approx(np.nanmean(relative))
    assert found.top1 == np.mean(predicted.argmin(axis=1) == measured.argmin(axis=1))
    kernels = np.array(runs.grid.profiles.kernel)
    assert found.worst_error == pytest.approx(np.nanmean(relative[kernels == found.worst_kernel]))


def test_a_kernel_that_is_left_out_has_no_part_in_the_error_out_of_the_bag() -> None:
    plain, slower = (
        omit(runs_of(made_up(scale={"crc32": factor})), "crc32", 6, 5, seed=0) for factor in (1.0, 1000.0)
    )
    assert slower.oob_error == pytest.approx(plain.oob_error)
    assert (slower.trees, slower.tried) == (plain.trees, plain.tried)
    assert slower.rmse_log > plain.rmse_log + 3
    assert plain.r2 > 0.8


def test_large_nodes_err_more_and_few_features_tried_as_well(runs: Runs) -> None:
    found = tune(runs, 8, 10, seed=0)
    assert len(found.node_size_errors) == len(NODE_SIZES) == 50
    assert found.node_size_errors[-1] > 2 * found.node_size_errors[0]
    assert found.tried == list(range(1, 8))
    heat = np.array(found.heat)
    assert heat.shape == (len(found.trees), 7)
    assert (heat[:, 0] > heat[:, -1]).all()
    assert found.rows == 10 * runs.cells


def test_rows_are_picked_as_r_repeats_the_kernels_along_them() -> None:
    kernel = np.array([0, 0, 0, 1, 1, 1, 2])
    assert recycled(kernel, np.array([1])).tolist() == (kernel == 1).tolist()
    assert recycled(kernel, np.array([2, 0, 1])).tolist() == [False, True, False, False, False, True, True]


def test_the_published_way_tests_on_known_cells_and_the_corrected_on_none(runs: Runs) -> None:
    one, all_ = (learn(runs, count, 2, 4, seed=0) for count in (1, 5))
    assert one.known_share == 0
    assert one.mae_published == pytest.approx(one.mae_corrected, rel=0.5)
    assert all_.known_share > 0.6
    assert all_.mae_corrected is None
    assert all_.mae_published < one.mae_published


def test_numbers_of_kernels_end_with_all() -> None:
    assert counts_of(5, 100) == [1, 2, 3, 4, 5]
    few = counts_of(37, 6)
    assert few[0] == 1
    assert few[-2:] == [36, 37]
    assert len(few) <= 7


def test_an_application_that_is_held_out_is_not_learned_from() -> None:
    plain, slower = (
        honest(runs_of(made_up(scale={"crc32": factor})).grid, 5, seed=0) for factor in (1.0, 1000.0)
    )
    profiles = runs_of(made_up()).grid.profiles
    own = [place for place, name in enumerate(profiles.application) if name == "crc"]
    np.testing.assert_array_equal(np.array(plain.predicted)[own], np.array(slower.predicted)[own])
    assert plain.rmse_log is not None
    assert slower.rmse_log is not None
    assert slower.rmse_log > plain.rmse_log


def test_its_predictions_are_those_of_the_point_model(runs: Runs) -> None:
    grid = runs.grid
    held_out = np.array([name == "lud" for name in grid.profiles.application])
    fitted = PublishedForest(trees=5).fit(grid.take(~held_out), 3)
    predicted = np.array(honest(grid, 5, seed=3).predicted)
    np.testing.assert_array_equal(predicted[held_out], fitted.log_time(grid.profiles.take(held_out)))


def test_energy_is_known_where_cells_are_known(runs: Runs) -> None:
    found = energy(made_up(), runs, 20, seed=0)
    assert found is not None
    assert (found.applications, found.devices, found.rows) == (3, len(SPEEDS), 3 * len(SIZES) * 3 * RUNS)
    assert found.r2 > 0.9
    assert found.held_out_rmse_log > found.mae_log


def test_energy_of_too_few_applications_is_not_told(runs: Runs) -> None:
    assert energy(made_up(energy=False), runs, 5, seed=0) is None


def test_table_three_is_whole_and_found_by_the_names_of_the_data() -> None:
    assert len(OMITTED) == 37
    assert sorted(row.trees for row in OMITTED.values())[18] == 507
    assert sorted(row.tried for row in OMITTED.values())[18] == 30
    row = paper_omitted("calc_potential_single_step_dev")
    assert row is not None
    assert row.tried == 24
    assert paper_omitted("acc_b_dev") == OMITTED["acc_b_dev"]
    assert paper_omitted("other") is None
