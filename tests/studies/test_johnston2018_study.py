"""The parts of the published study, on a made-up dataset."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.evaluation.processes import State
from crosscast.predict.time.johnston2018 import PublishedForest
from crosscast.studies import johnston2018 as whole
from crosscast.studies.johnston2018 import (
    NODE_SIZES,
    Headline,
    PublishedStudy,
    counts_of,
    energy,
    headline,
    honest,
    learn,
    omit,
    recycled,
    run,
    tune,
)
from crosscast.studies.johnston2018_forests import (
    FIGURE_3_MAE,
    MAE_LOG,
    OMITTED,
    PAPER,
    QUICK,
    R2,
    RELATIVE_LOG,
    USUAL,
    WORST_KERNEL,
    Runs,
    Surface,
    paper_omitted,
    runs_of,
)
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.energy import ENERGY
from crosscast.tables.importers.aiwc2018.dataset import import_aiwc2018
from support.shared import RUNS, SIZES, SMALL, SPEEDS, made_up, shared_data


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


@pytest.fixture(scope="module")
def study() -> PublishedStudy:
    return run(made_up(), amount=SMALL)


def refuse(*arguments: Any, **named: Any) -> None:
    raise AssertionError("made although it was kept")


def test_it_has_all_parts(study: PublishedStudy) -> None:
    assert [row.kernel for row in study.omitted] == list(study.runs.kernel_names())
    assert [row.kernels for row in study.learning] == [1, 4, 5]
    assert study.honest is not None
    assert study.energy is not None
    trees, tried = study.median_parameters()
    assert trees in {row.trees for row in study.omitted}
    assert tried in {row.tried for row in study.omitted}


def test_its_object_is_json(study: PublishedStudy) -> None:
    found = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert found["headline"]["forest"]["r2"] == study.headline.forest.r2
    assert len(found["omitted"]["rows"]) == 5
    assert found["amount"] == asdict(SMALL)
    assert found["learning"][-1]["mae_corrected"] is None


def test_processes_change_nothing(study: PublishedStudy) -> None:
    assert run(made_up(), amount=SMALL, jobs=2).to_dict() == study.to_dict()


def test_finished_parts_are_kept(
    tmp_path: Path, study: PublishedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(made_up(), amount=SMALL, cache=tmp_path)
    for name in ("headline", "tune", "honest", "energy", "omit", "learn"):
        monkeypatch.setattr(whole, name, refuse)
    again = run(made_up(), amount=SMALL, cache=tmp_path)
    assert again.to_dict() == first.to_dict() == study.to_dict()
    with pytest.raises(AssertionError, match="although it was kept"):
        run(made_up(), amount=SMALL, cache=tmp_path, seed=1)


def test_data_that_changed_is_not_taken_from_what_was_kept(tmp_path: Path) -> None:
    run(made_up(), amount=SMALL, cache=tmp_path)
    count = len(list(tmp_path.iterdir()))
    run(made_up(noise=0.06), amount=SMALL, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 * count


def test_energy_that_changed_is_not_taken_from_what_was_kept(tmp_path: Path) -> None:
    data = made_up()
    first = run(data, amount=SMALL, cache=tmp_path)
    rows = data.energy.to_pylist()
    doubled = [{**row, "energy_j": 2 * row["energy_j"] ** 1.5} for row in rows]
    again = run(replace(data, energy=table_of(ENERGY, doubled)), amount=SMALL, cache=tmp_path)
    assert first.energy is not None
    assert again.energy is not None
    assert again.energy.held_out_rmse_log != first.energy.held_out_rmse_log
    assert again.headline == first.headline


def test_a_damaged_part_is_made_again(tmp_path: Path, study: PublishedStudy) -> None:
    run(made_up(), amount=SMALL, cache=tmp_path)
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        path.write_text(["", "{", "[]", '{"kernel": 1}'][number % 4])
    assert run(made_up(), amount=SMALL, cache=tmp_path).to_dict() == study.to_dict()


def test_what_was_finished_before_an_interruption_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(runs: Any, kernel: str, *others: Any) -> Any:
        if kernel == "kmeansPoint":
            raise KeyboardInterrupt
        return omit(runs, kernel, *others)

    monkeypatch.setattr(whole, "omit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(made_up(), amount=SMALL, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) >= 4


def test_progress_is_told() -> None:
    states: list[State] = []
    run(made_up(), amount=SMALL, progress=states.append)
    assert [state.done for state in states] == list(range(1, states[0].total + 1))
    assert {"headline", "without crc32", "trained on 5 kernels"} <= {state.label for state in states}


def test_a_cache_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        run(made_up(), amount=SMALL, cache=file / "folder")


def test_less_than_one_process_is_refused() -> None:
    with pytest.raises(InputError, match="jobs: expected at least 1"):
        run(made_up(), amount=SMALL, jobs=0)


def test_a_seed_below_zero_is_refused_before_the_work() -> None:
    with pytest.raises(InputError, match="seed: expected a number from 0"):
        run(made_up(), amount=SMALL, seed=-1)


def test_amounts_grow() -> None:
    for less, more in ((QUICK, USUAL), (USUAL, PAPER)):
        pairs = zip(asdict(less).values(), asdict(more).values(), strict=True)
        assert all(small <= large for small, large in pairs)
    assert (PAPER.samples, PAPER.forest_trees) == (500, 505)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return import_aiwc2018(shared_data("aiwc2018"))


@pytest.fixture(scope="module")
def runs_published_real(dataset: Dataset) -> Runs:
    return runs_of(dataset)


@pytest.fixture(scope="module")
def found(runs_published_real: Runs) -> Headline:
    return headline(runs_published_real, 100, seed=0)


def test_the_features_are_the_papers(runs_published_real: Runs) -> None:
    assert len(runs_published_real) == 64060
    assert runs_published_real.rows().features.shape == (1560, 32)


def test_the_relative_error_of_the_logarithm_is_the_papers(found: Headline) -> None:
    assert found.forest.relative_log_cells == pytest.approx(RELATIVE_LOG, abs=0.003)


def test_the_mean_absolute_error_and_the_explained_variance_are_the_papers(found: Headline) -> None:
    assert found.forest.mae_log == pytest.approx(MAE_LOG, abs=0.02)
    assert round(found.oob_r2, 2) == R2


def test_the_kernel_predicted_worst_is_the_papers(found: Headline) -> None:
    assert found.worst_kernel == WORST_KERNEL


def test_in_real_time_the_lookup_table_is_better_and_both_err_more(found: Headline) -> None:
    assert found.lookup.relative_log_cells < found.forest.relative_log_cells
    assert found.lookup.mape_cells < found.forest.mape_cells
    assert found.forest.mape_cells > 4 * found.forest.relative_log_cells


def test_errors_out_of_the_bag_are_those_of_ranger(runs_published_real: Runs) -> None:
    # ranger 0.14.1 on these rows, 40 trees, min.node.size 9, respect.unordered.factors = "order".
    ranger = {32: 0.0411, 30: 0.0461, 10: 0.325}
    surface = Surface(runs_published_real.rows(), 40, (9,), seed=0)
    for tried, error in ranger.items():
        assert surface.error(40, tried, 9) == pytest.approx(error, rel=0.1)


def test_a_kernel_left_out_errs_much_more_than_table_three_says(runs_published_real: Runs) -> None:
    row = omit(runs_published_real, "csr", 15, 4, seed=0)
    paper = paper_omitted("csr")
    assert paper is not None
    assert 100 * row.oob_error == pytest.approx(paper.error_percent, abs=0.6)
    assert row.median_ape > 0.4


def test_figure_three_falls_as_published_and_not_corrected(runs_published_real: Runs) -> None:
    few, many = (learn(runs_published_real, count, 4, 6, seed=0) for count in (10, 30))
    for row in (few, many):
        assert row.mae_published == pytest.approx(FIGURE_3_MAE[row.kernels], abs=0.15)
    assert many.mae_corrected is not None
    assert many.mae_corrected > many.mae_published + 0.2


def test_energy_is_known_where_the_cell_is_and_not_elsewhere(
    dataset: Dataset, runs_published_real: Runs
) -> None:
    row = energy(dataset, runs_published_real, 60, seed=0)
    assert row is not None
    assert (row.applications, row.devices) == (7, 2)
    assert row.r2 > 0.99
    assert row.held_out_median_ape > 10 * row.mape
