"""Counters of tools: features of Table III, amounts of work, prices, and columns that models learn from."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.relative import NO_SOURCE, Observations, centred, kernel_weights, nichols2024
from crosscast.prediction.relative.counters import (
    BYTES,
    INSTRUCTIONS,
    ITEMS,
    LAUNCHES,
    OPERATIONS,
    TABLE_3,
    Base,
    amounts_of,
    base_of,
    intensities_of,
    plain_name,
    table3_features,
)
from crosscast.prediction.relative.models import WorkPrices, fit_prices, terms_of
from support.vectors import made_vectors, runs_with
from support.work import DEVICES, PRICES, changed, made_work


def features(counters: Mapping[str, float]) -> dict[str, float]:
    """The features that a run has."""
    (values,) = table3_features(runs_with(counters))[0]
    return {name: value for name, value in zip(TABLE_3, values.tolist(), strict=True) if not np.isnan(value)}


def counted(text: str) -> dict[str, float]:
    """Names and values of a text such as ``loads 3, stores 2``."""
    return {name: float(value) for name, value in (each.rsplit(" ", 1) for each in text.split(", "))}


PAPI = (
    "PAPI_TOT_INS 1000, PAPI_BR_INS 200, PAPI_SR_INS 100, PAPI_LD_INS 250, PAPI_SP_OPS 50, PAPI_DP_OPS 400, "
    "bdw_ep::ARITH 10, PAPI_L1_LDM 7, PAPI_L1_STM 6, PAPI_L2_LDM 5, PAPI_L2_STM 4, PAPI_MEM_SCY 3, "
    "IO Bytes Written 2, IO Bytes Read 1, EPT 8"
)


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        (
            PAPI,
            "branch intensity 0.2, store intensity 0.1, load intensity 0.25, single fp intensity 0.05, "
            "double fp intensity 0.4, arithmetic intensity 0.01, l1 load misses 7, l1 store misses 6, "
            "l2 load misses 5, l2 store misses 4, io bytes written 2, io bytes read 1, "
            "extended page table 8, memory stalls 3",
        ),
        # Misses are requests that do not hit.
        (
            "local_load_requests 200, local_store_requests 50, local_hit_rate 75",
            "l1 load misses 50, l1 store misses 12.5",
        ),
        ("local_load_requests 200, local_hit_rate 101", "l1 load misses 0"),
        # Counters of AMD serve two features, as in the table.
        (
            "VALUInsts 60, SALUInsts 20, LDSInsts 15, GDSInsts 5, TCC_MISS_sum 40, TCC_EA_RDREQ 30, "
            "TCC_EA_WRREQ 10, MemUnitStalled 12",
            "store intensity 0.2, load intensity 0.2, single fp intensity 0.8, double fp intensity 0.8, "
            "l2 load misses 30, l2 store misses 10, memory stalls 12",
        ),
    ],
)
def test_features_of_the_table_come_from_counters_of_each_tool(counters: str, expected: str) -> None:
    assert features(counted(counters)) == pytest.approx(counted(expected))


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("perf::BRANCHES", "branches"),
        ("branches:u", "branches"),
        ("cpu_core/branches/u", "branches"),
        ("bdw_ep::ARITH", "bdw_ep::arith"),
        ("GINS: STL_ANY", "gins:stl_any"),
    ],
)
def test_names_are_told_apart_from_what_tools_put_around_them(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_each_run_has_the_total_of_the_cores_that_it_was_counted_on() -> None:
    rows = runs_with(
        {"cpu_core/instructions/": 50, "branches": 5}, {"cpu_atom/instructions/": 20, "branches": 5}
    )
    assert table3_features(rows)[0][:, 0].tolist() == [0.1, 0.25]


SASS = "smsp__sass_thread_inst_executed_op_"


@pytest.mark.parametrize(
    ("counters", "amount", "expected"),
    [
        ({"Kernels/Rep": 3.0}, LAUNCHES, 3),
        ({"grid.x": 2.0, "grid.y": 3.0, "block.x": 4.0, "block.y": 5.0}, ITEMS, 120),
        ({"launch__thread_count": 256.0}, ITEMS, 256),
        ({"instructions:u": 8.0}, INSTRUCTIONS, 8),
        ({"device_memory_read_transactions": 2.0, "l2_write_transactions": 1.0}, BYTES, 96),
        ({"dram_read_transactions": 2.0, "dram_write_transactions": 2.0}, BYTES, 128),
        ({"dram__bytes.sum": 77.0}, BYTES, 77),
        ({"flop_count_sp": 2.0, "flop_count_dp": 3.0, "inst_integer": 10.0}, OPERATIONS, 15),
        ({f"{SASS}fadd_pred_on.sum": 1.0, f"{SASS}ffma_pred_on.sum": 2.0}, OPERATIONS, 3),
        ({"cpu_core/instructions/": 100.0, "cpu_atom/instructions/": 7.0}, INSTRUCTIONS, 107),
    ],
)
def test_an_amount_is_that_of_the_tool(counters: dict[str, float], amount: str, expected: float) -> None:
    amounts = amounts_of(runs_with(counters))
    assert amounts[amount].tolist() == [expected]
    assert all(np.isnan(values).all() for name, values in amounts.items() if name != amount)


def columns(observations: Observations, base: Base) -> dict[str, Reals]:
    intensities = intensities_of(observations, base)
    return dict(zip(intensities.names, intensities.counters.T, strict=True))


def test_totals_are_divided_by_what_most_runs_tell() -> None:
    instructions, items = {"inst_executed": 10.0}, {"launch__thread_count": 5.0}
    assert base_of(runs_with(instructions, instructions | items)) == INSTRUCTIONS
    assert base_of(runs_with(items, items, instructions)) == ITEMS
    assert base_of(runs_with({"loads": 3.0})) == ""


def test_without_a_base_there_are_no_shares_or_totals_stay() -> None:
    result = columns(
        runs_with({"inst_executed": 10.0, "loads": 5.0}, {"Iterations/Rep": 5.0, "loads": 5.0}), INSTRUCTIONS
    )
    np.testing.assert_array_equal(result["loads a unit"], [0.5, np.nan])
    seen = runs_with({"loads": 20.0, "ipc": 3.0})
    result = columns(seen, base_of(seen))
    assert [name for name in result if "time" not in name] == ["ipc", "loads"]
    assert result["loads"].tolist() == [20]
    nothing = replace(runs_with({}), time_s=np.array([np.nan]))
    assert intensities_of(nothing, ITEMS).counters.shape == (1, 0)
    result = columns(runs_with({"inst_executed": 0.0, "loads": 5.0}), INSTRUCTIONS)
    assert np.isnan(result["loads a unit"]).all()
    assert result["log instructions"].tolist() == [0]


MANY = made_work(kernels=24, sizes=6)
SEEN = MANY.observations


def fitted(observations: Observations = SEEN, times_s: Reals = MANY.times_s) -> WorkPrices:
    prices = fit_prices(observations, DEVICES, np.log(times_s), np.ones(len(observations)))
    assert prices is not None
    return prices


FITTED = fitted()


def test_known_prices_are_found_in_any_unit() -> None:
    np.testing.assert_allclose(FITTED.prices, PRICES, rtol=0.1)
    relative = FITTED.log_relative(SEEN, anchored=False)
    np.testing.assert_allclose(relative, centred(np.log(MANY.times_s)), atol=0.05)
    for factor in (1e-11, 1e-3, 1e9):
        prices = fitted(times_s=factor * MANY.times_s).prices
        np.testing.assert_allclose(prices, factor * FITTED.prices, rtol=1e-3)


def test_anchored_takes_the_time_of_the_run_on_its_source_alone() -> None:
    seen = replace(SEEN.rows(np.arange(4)), source=("cpu", "gpu", NO_SOURCE, "cpu"))
    seen = replace(seen, time_s=np.array([3.0, 5.0, 7.0, np.nan]))
    sums = terms_of(seen) @ FITTED.prices
    expected = sums.copy()
    expected[0, 0], expected[1, 1] = 3, 5
    np.testing.assert_allclose(
        FITTED.log_relative(seen, anchored=True), centred(np.log(expected)), rtol=1e-12
    )
    np.testing.assert_allclose(FITTED.log_relative(seen, anchored=False), centred(np.log(sums)), rtol=1e-12)


def test_an_amount_that_a_run_lacks_is_no_number_or_has_no_price_and_is_not_asked_for() -> None:
    moved, done = SEEN.counters[:, :2].T.copy()
    moved[2] = done[2] = np.nan
    predicted = FITTED.log_relative(changed(SEEN, bytes=moved), anchored=True)
    assert np.flatnonzero(np.isnan(predicted).any(axis=1)).tolist() == [2]
    result = fitted(changed(SEEN, flops=done))
    assert result.prices[2].tolist() == [0, 0]
    assert (result.prices[[0, 1, 3]] > 0).all()
    assert np.isfinite(result.log_relative(changed(SEEN, flops=np.nan), anchored=False)).all()


def training() -> Observations:
    return runs_with(
        {"PAPI_TOT_INS": 1e3, "PAPI_BR_INS": 1e2, "PAPI_L1_LDM": 5.0, "ipc": 0.5, "heat": -3.0, "same": 7.0},
        {"PAPI_TOT_INS": 1e6, "PAPI_BR_INS": 9e5, "PAPI_L1_LDM": 5e4, "ipc": 0.25, "heat": 40.0, "same": 7.0},
        {"PAPI_TOT_INS": 5e5, "PAPI_BR_INS": 3e4, "heat": 12.0, "same": 7.0},
        sources=["quartz", "ruby", "ruby"],
        settings=[{"nodes": 1.0, "clock": 2e9}, {"nodes": 2.0, "clock": 3e9}, {"nodes": 1.0, "clock": 2e9}],
    )


def column(fitted: nichols2024.FittedFeatures, rows: Observations, name: str) -> list[float]:
    values: list[float] = fitted.transform(rows)[:, fitted.names.index(name)].tolist()
    return values


OTHERS = ("ipc", "heat", "setting clock", "source quartz", "source ruby")


@pytest.mark.parametrize(
    ("own", "names"),
    [
        (False, ("branch intensity", "l1 load misses", "nodes", "PAPI_TOT_INS", *OTHERS)),
        (True, ("nodes", "PAPI_TOT_INS", "PAPI_BR_INS", "PAPI_L1_LDM", *OTHERS)),
    ],
)
def test_features_are_chosen_by_training_rows_and_not_constant(own: bool, names: tuple[str, ...]) -> None:
    assert nichols2024.fit_features(training(), own=own).names == names


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.0, 0.5, 1.0], nichols2024.AS_IS),
        ([0.0, 62.5, 100.0], nichols2024.AS_IS),
        ([0.0, 62.0, 100.0], nichols2024.LOGARITHM),
        ([0.5, 2e9, np.nan], nichols2024.LOGARITHM),
        ([-0.1, 5.0], nichols2024.ROOT),
    ],
)
def test_scales_are_chosen_by_values(values: list[float], scale: int) -> None:
    assert nichols2024.scale_for(np.array(values)) == scale
    negative, positive = (nichols2024.on_scale(sign * np.array(values), scale) for sign in (-1, 1))
    np.testing.assert_array_equal(negative, -positive)


def test_counted_columns_have_mean_0_and_deviation_1_and_devices_stay_0_or_1() -> None:
    fitted = nichols2024.fit_features(training())
    rows = fitted.transform(training())
    counted = [index for index, name in enumerate(fitted.names) if not name.startswith("source")]
    np.testing.assert_allclose(np.nanmean(rows[:, counted], axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(rows[:, counted], axis=0), 1)
    assert column(fitted, training(), "source ruby") == [0, 1, 1]

    # Gaps stay, or are filled, and told if training had them.
    assert np.isnan(column(nichols2024.fit_features(training()), training(), "ipc")[2])
    filled = nichols2024.fit_features(training(), fill=True)
    assert np.isfinite(filled.transform(training())).all()
    assert column(filled, training(), "ipc")[2] == 0
    assert column(filled, training(), "ipc is missing") == [0, 0, 1]
    assert "heat is missing" not in filled.names
    assert column(filled, runs_with({"ipc": 0.3}), "heat") == [0.0]


def test_counters_of_another_tool_serve_and_unknown_ones_change_nothing() -> None:
    fitted = nichols2024.fit_features(training())
    papi = runs_with({"PAPI_TOT_INS": 10.0, "PAPI_BR_INS": 4.0})
    perf = runs_with({"instructions:u": 10.0, "branches:u": 4.0, "page-faults": 3.0})
    assert column(fitted, perf, "branch intensity") == column(fitted, papi, "branch intensity")
    assert set(fitted.unknown_counters(perf)) == {"instructions:u", "page-faults"}
    assert fitted.unknown_counters(papi) == ()
    plain = {"PAPI_TOT_INS": 10.0, "PAPI_BR_INS": 4.0}
    np.testing.assert_array_equal(
        fitted.transform(runs_with(plain)), fitted.transform(runs_with({"strange": 9.0, **plain}))
    )


def test_what_tells_nothing_is_refused() -> None:
    rows = runs_with({"PAPI_TOT_INS": 5.0}, {"strange": 1.0, "odd": 2.0})
    with pytest.raises(InputError, match=r"^app1 default: expected .+ PAPI_TOT_INS, .+, found strange, odd$"):
        nichols2024.fit_features(training()).transform(rows)
    with pytest.raises(InputError, match="expected some that differ between 2 runs, found none among a"):
        nichols2024.fit_features(runs_with({"a": 1.0}, {"a": 1.0}))
    # Nor does what differs in its last digit alone.
    assert nichols2024.fit_features(runs_with({"a": 0.1 + 0.2, "b": 1.0}, {"a": 0.3, "b": 2.0})).names == (
        "b",
    )


def test_kernels_of_one_name_in_two_applications_are_two() -> None:
    made = made_vectors(applications=2, kernels=1, sizes=1).observations
    assert kernel_weights(made).sum() == 2
    size = ("1", "2", "1", "1")
    seen = replace(made, application=("a", "a", "a", "b"), kernel=("k", "k", "l", "k"), size=size, scale=size)
    assert seen.counts == {"applications": 2, "kernels": 3, "kernels_at_a_size": 4}
    assert seen.rows(np.array([0, 1])).counts == {"applications": 1, "kernels": 1, "kernels_at_a_size": 2}
    assert seen.works == [(*each, each[2]) for each in ("ak1", "ak2", "al1", "bk1")]
