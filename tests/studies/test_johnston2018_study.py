"""The study of Johnston, Falzon and Milthorpe (2018), on made-up data and on the published data."""

import json
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.data.dataset import Dataset
from crosscast.data.schema import RECORDS
from crosscast.data.table import table_of
from crosscast.errors import InputError
from crosscast.prediction.time.johnston2018 import PublishedForest, Rows, draw_trees
from crosscast.studies import johnston2018
from crosscast.studies.johnston2018 import (
    FIGURE_3_MAE,
    MAE_LOG,
    NODE_SIZES,
    R2,
    RELATIVE_LOG,
    WORST_KERNEL,
    Headline,
    Johnston2018,
    counts_of,
    headline,
    learn,
    leave_application_out,
    leave_kernel_out,
    published_kernel,
    recycled,
    reproduce,
    table_3,
    tune,
)
from crosscast.studies.johnston2018_forests import (
    MOST_TREES,
    TREE_COUNTS,
    GrownForest,
    KernelRuns,
    Surface,
    anneal,
    grow,
    runs_of,
)
from support.johnston2018 import KERNELS, RUNS, SIZES, SMALL, SPEEDS, made_up
from support.refusals import refusal
from support.shared import published

CELLS = sum(map(len, KERNELS.values())) * len(SIZES) * len(SPEEDS)


@pytest.fixture(scope="module")
def exact() -> KernelRuns:
    return runs_of(made_up(noise=0.0))


@pytest.fixture(scope="module")
def runs() -> KernelRuns:
    return runs_of(made_up())


@pytest.fixture(scope="module")
def rows(runs: KernelRuns) -> Rows:
    return runs.rows()


def scaled(factor: float) -> KernelRuns:
    """The same with one kernel that takes so many times as long."""
    return runs_of(made_up(scale={"crc32": factor}))


def row_of(runs: KernelRuns, kernel: str, size: str) -> int:
    return list(zip(runs.grid.profiles.kernel, runs.grid.profiles.size, strict=True)).index((kernel, size))


def test_each_record_is_a_row_of_the_logarithm_of_microseconds_of_its_cell(exact: KernelRuns) -> None:
    assert len(exact) == CELLS * RUNS
    assert np.bincount(exact.cell).tolist() == [RUNS] * CELLS
    place = row_of(exact, "add", "large")
    device = [each.key for each in exact.grid.devices].index("gpu")
    own = exact.log_us[exact.cell == place * len(SPEEDS) + device]
    np.testing.assert_allclose(own, np.log(64 * 10_000 / 2e10 * 1e6))


def test_features_are_those_published_with_the_device_as_the_last(exact: KernelRuns) -> None:
    names = dict(zip(exact.columns, exact.features.T, strict=True))
    own = {"opcode", "total_instruction_count", "work_items", "granularity", "global_memory_address_entropy"}
    assert set(names) == {*own, "operand_sum"}
    place = row_of(exact, "add", "tiny")
    assert names["total_instruction_count"][place] == 10_000
    assert names["operand_sum"][place] == 20_000
    assert names["granularity"][place] == 0.5
    rows = exact.rows()
    assert rows.features.shape == (CELLS, len(exact.columns) + 1)
    keys = [device.key for device in exact.grid.devices]
    codes = dict(zip(keys, rows.features[: len(keys), -1].tolist(), strict=True))
    assert codes == {"gpu": 0, "phi": 1, "cpu": 2}


def test_one_kernel_is_too_few() -> None:
    whole = made_up()
    records = [row for row in whole.records.to_pylist() if row["kernel"] == "crc32"]
    one = Dataset("one", whole.devices, whole.profiles, table_of(RECORDS, records))
    assert "at least 2 kernels with profiles and records, found 1" in refusal(runs_of, one)


def test_an_error_is_that_of_the_first_trees(rows: Rows) -> None:
    surface = Surface(rows, 12, (1, 9), seed=0)
    for trees in (1, 5, 12):
        assert surface.error(trees, 4, 9) == pytest.approx(grow(rows, trees, 4, (9,), 0).errors[-1, 0])


def test_an_error_out_of_the_bag_leaves_out_the_trees_that_drew_the_row(rows: Rows) -> None:
    trees = list(draw_trees(rows, 4, tried=7, seed=0))
    errors = []
    for row, response in enumerate(rows.response):
        out = [each.predictions([1])[0][rows.cell[row]] for each in trees if each.times[row] == 0]
        if out:
            errors.append((np.mean(out) - response) ** 2)
    assert grow(rows, 4, 7, (1,), seed=0).errors[-1, 0] == pytest.approx(np.mean(errors))


def test_more_trees_than_were_grown_err_less_along_one_over_trees() -> None:
    trees = np.array([5, 10, 20, 40])
    grown = GrownForest(trees, (0.2 + 3 / trees)[:, None], np.empty((1, 0)))
    for more in (15, 80, 10_000):
        assert grown.error(more, 0) == pytest.approx(0.2 + 3 / more)
    # Noise does not make more trees worse.
    grown = GrownForest(np.array([10, 20, 40]), np.array([[0.1], [0.2], [0.3]]), np.empty((1, 0)))
    assert grown.error(1000, 0) == pytest.approx(0.3)


def test_a_node_size_that_was_not_prepared_is_refused(rows: Rows) -> None:
    with pytest.raises(InputError, match="node_size: expected one of 9 of this surface, found 10"):
        Surface(rows, 2, (9,), seed=0).error(10, 2, 10)


def test_annealing_begins_at_its_start_and_keeps_within_the_parameters(rows: Rows) -> None:
    surface = Surface(rows, 4, (1, 9, 40), seed=0)
    search = anneal(surface, 40, seed=1)
    steps = list(zip(search.trees, search.tried, search.node_size, strict=True))
    assert steps[0] == (510, surface.features, 9)
    assert len(search.error) >= 20
    assert set(search.trees) <= set(TREE_COUNTS)
    assert max(TREE_COUNTS) <= MOST_TREES
    assert 1 <= min(search.tried) <= max(search.tried) <= surface.features
    assert set(search.node_size) == {1, 9, 40}
    assert search.error[search.best] == min(search.error)
    assert search.error == [surface.error(*step) for step in steps]


def test_real_time_and_logarithm_tell_the_same_errors(runs: KernelRuns) -> None:
    found = headline(runs, trees=30, seed=0)
    # The lookup table is as good as the noise.
    assert found.trained_rows == round(0.2 * len(runs))
    assert 0.03 < found.lookup.mae_log < 0.3
    assert found.oob_r2 > 0.9
    assert list(found.misprediction_s) == list(SIZES)
    predicted, measured = np.array(found.predicted), np.array(found.measured)
    assert predicted.shape == measured.shape == (10, 3)
    ape = np.abs(np.exp(predicted - measured) - 1)
    assert found.forest.mape_cells == pytest.approx(np.nanmean(ape))
    assert found.forest.median_ape_cells == pytest.approx(np.nanmedian(ape))
    relative = np.abs(predicted - measured) / np.abs(measured)
    assert found.forest.relative_log_cells == pytest.approx(np.nanmean(relative))
    # One and the same error in other units.
    assert found.relative_log_by_unit["us"] == pytest.approx(found.forest.relative_log_cells)
    assert found.relative_log_by_unit["ns"] < found.relative_log_by_unit["us"]
    assert found.top1 == np.mean(predicted.argmin(axis=1) == measured.argmin(axis=1))
    kernels = np.array(runs.grid.profiles.kernel)
    assert found.worst_error == pytest.approx(np.nanmean(relative[kernels == found.worst_kernel]))


def test_a_kernel_that_is_left_out_has_no_part_in_the_error_out_of_the_bag() -> None:
    plain, slower = (
        leave_kernel_out(scaled(factor), kernel="crc32", grown=6, steps=5, seed=0) for factor in (1.0, 1000.0)
    )
    assert slower.oob_error == pytest.approx(plain.oob_error)
    assert (slower.trees, slower.tried) == (plain.trees, plain.tried)
    assert slower.rmse_log > plain.rmse_log + 3
    assert plain.r2 > 0.8


def test_large_nodes_err_more_and_few_features_tried_as_well(runs: KernelRuns) -> None:
    found = tune(runs, grown=8, steps=10, seed=0)
    assert len(found.node_size_errors) == len(NODE_SIZES) == 50
    assert found.node_size_errors[-1] > 2 * found.node_size_errors[0]
    assert found.tried == list(range(1, 8))
    heat = np.array(found.heat)
    assert heat.shape == (len(found.trees), 7)
    assert (heat[:, 0] > heat[:, -1]).all()
    assert found.rows == 10 * CELLS


def test_rows_are_picked_as_r_repeats_the_kernels_along_them() -> None:
    kernel = np.array([0, 0, 0, 1, 1, 1, 2])
    assert recycled(kernel, np.array([1])).tolist() == (kernel == 1).tolist()
    assert recycled(kernel, np.array([2, 0, 1])).tolist() == [False, True, False, False, False, True, True]


def test_the_published_way_tests_on_known_cells_and_the_corrected_on_none(runs: KernelRuns) -> None:
    one, all_ = (learn(runs, kernels=count, samples=2, trees=4, seed=0) for count in (1, 5))
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


def test_an_application_that_is_held_out_is_not_learned_from(runs: KernelRuns) -> None:
    plain, slower = (leave_application_out(scaled(factor), trees=5, seed=0) for factor in (1.0, 1000.0))
    assert plain and slower
    own = [place for place, name in enumerate(runs.grid.profiles.application) if name == "crc"]
    np.testing.assert_array_equal(np.array(plain.predicted)[own], np.array(slower.predicted)[own])
    assert plain.rmse_log and slower.rmse_log and slower.rmse_log > plain.rmse_log


def test_its_predictions_are_those_of_the_point_model(runs: KernelRuns) -> None:
    grid = runs.grid
    held_out = np.array([name == "lud" for name in grid.profiles.application])
    fitted = PublishedForest(trees=5).fit(grid.take(~held_out), 3)
    found = leave_application_out(runs, trees=5, seed=3)
    assert found is not None
    expected = fitted.log_time(grid.profiles.take(held_out))
    np.testing.assert_array_equal(np.array(found.predicted)[held_out], expected)


def test_table_three_is_whole_and_found_by_the_names_of_the_data() -> None:
    rows = table_3().values()
    assert len(rows) == 37
    assert np.median([row.trees for row in rows]) == 507
    assert np.median([row.tried for row in rows]) == 30
    row = published_kernel("calc_potential_single_step_dev")
    assert row is not None
    assert row.tried == 24
    assert published_kernel("acc_b_dev") == table_3()["acc_b_dev"]
    assert published_kernel("other") is None


@pytest.fixture(scope="module")
def study() -> Johnston2018:
    return reproduce(made_up(), preset=SMALL)


def test_it_has_all_parts_and_its_object_is_json(study: Johnston2018) -> None:
    assert [row.kernel for row in study.omitted] == list(study.runs.kernel_names)
    assert [row.kernels for row in study.learning] == [1, 4, 5]
    trees, tried = study.median_parameters()
    assert trees in {row.trees for row in study.omitted}
    assert tried in {row.tried for row in study.omitted}
    found = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert found["headline"]["forest"]["r2"] == study.headline.forest.r2
    assert len(found["omitted"]["rows"]) == 5
    assert tuple(found["amount"].values()) == astuple(SMALL)
    assert found["learning"][-1]["mae_corrected"] is None
    assert found["honest"] is not None


def refusing(name: str) -> Callable[..., None]:
    """What stands for a function by whose name parts are kept."""

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("made although it was kept")

    refuse.__name__ = name
    return refuse


def test_parts_are_kept_and_known_by_data_and_seed(
    tmp_path: Path, study: Johnston2018, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reproduce(made_up(), preset=SMALL, cache=tmp_path)
    kept = sorted(tmp_path.iterdir())
    parts = ("headline", "tune", "leave_application_out", "leave_kernel_out", "learn")
    for name in parts:
        monkeypatch.setattr(johnston2018, name, refusing(name))
    again = reproduce(made_up(), preset=SMALL, cache=tmp_path)
    assert again.to_dict() == first.to_dict() == study.to_dict()
    for changed, seed in ((made_up(), 1), (made_up(noise=0.06), 0)):
        with pytest.raises(AssertionError, match="although it was kept"):
            reproduce(changed, preset=SMALL, cache=tmp_path, seed=seed)
    monkeypatch.undo()
    # A damaged part is made again.
    for number, path in enumerate(kept):
        path.write_text(["", "{", "[]", '{"kernel": 1}'][number % 4])
    assert reproduce(made_up(), preset=SMALL, cache=tmp_path).to_dict() == study.to_dict()


def test_a_seed_below_zero_is_refused_before_the_work() -> None:
    assert "seed: expected a number from 0" in refusal(reproduce, made_up(), preset=SMALL, seed=-1)


@pytest.fixture(scope="module")
def published_runs() -> KernelRuns:
    return runs_of(published("aiwc2018", "aiwc2018"))


@pytest.fixture(scope="module")
def published_headline(published_runs: KernelRuns) -> Headline:
    return headline(published_runs, trees=100, seed=0)


@pytest.mark.system
def test_the_features_are_the_papers(published_runs: KernelRuns) -> None:
    assert len(published_runs) == 64060
    assert published_runs.rows().features.shape == (1560, 32)


@pytest.mark.system
def test_the_headline_is_the_papers(published_headline: Headline) -> None:
    found = published_headline
    assert found.forest.relative_log_cells == pytest.approx(RELATIVE_LOG, abs=0.003)
    assert found.forest.mae_log == pytest.approx(MAE_LOG, abs=0.02)
    assert round(found.oob_r2, 2) == R2
    assert found.worst_kernel == WORST_KERNEL


@pytest.mark.system
def test_in_real_time_the_lookup_table_is_better_and_both_err_more(published_headline: Headline) -> None:
    found = published_headline
    assert found.lookup.relative_log_cells < found.forest.relative_log_cells
    assert found.lookup.mape_cells < found.forest.mape_cells
    assert found.forest.mape_cells > 4 * found.forest.relative_log_cells


@pytest.mark.system
def test_errors_out_of_the_bag_are_those_of_ranger(published_runs: KernelRuns) -> None:
    # ranger 0.14.1 on these rows, 40 trees, min.node.size 9, respect.unordered.factors = "order".
    ranger = {32: 0.0411, 30: 0.0461, 10: 0.325}
    surface = Surface(published_runs.rows(), 40, (9,), seed=0)
    for tried, error in ranger.items():
        assert surface.error(40, tried, 9) == pytest.approx(error, rel=0.1)


@pytest.mark.system
def test_a_kernel_left_out_errs_much_more_than_table_three_says(published_runs: KernelRuns) -> None:
    row, paper = leave_kernel_out(published_runs, kernel="csr", grown=15, steps=4, seed=0), table_3()["csr"]
    assert 100 * row.oob_error == pytest.approx(paper.error_percent, abs=0.6)
    assert row.median_ape > 0.4


@pytest.mark.system
def test_figure_three_falls_as_published_and_not_corrected(published_runs: KernelRuns) -> None:
    for count in (10, 30):
        row = learn(published_runs, kernels=count, samples=4, trees=6, seed=0)
        assert row.mae_published == pytest.approx(FIGURE_3_MAE[count], abs=0.15)
    assert row.mae_corrected is not None
    assert row.mae_corrected > row.mae_published + 0.2
