"""Features as training rows fix them, and what is done with rows that are unlike them.

Profiles are observations of no device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import InputError
from crosscast.prediction.relative.data import Observations, kernel_weights
from crosscast.prediction.relative.features import (
    AS_IS,
    LOGARITHM,
    ROOT,
    FittedFeatures,
    fit_features,
    scale_for,
)
from support.vectors import made_vectors, runs_with


def training() -> Observations:
    return runs_with(
        {"PAPI_TOT_INS": 1e3, "PAPI_BR_INS": 1e2, "PAPI_L1_LDM": 5.0, "ipc": 0.5, "heat": -3.0, "same": 7.0},
        {"PAPI_TOT_INS": 1e6, "PAPI_BR_INS": 9e5, "PAPI_L1_LDM": 5e4, "ipc": 0.25, "heat": 40.0, "same": 7.0},
        {"PAPI_TOT_INS": 5e5, "PAPI_BR_INS": 3e4, "heat": 12.0, "same": 7.0},
        sources=["quartz", "ruby", "ruby"],
        settings=[{"nodes": 1.0, "clock": 2e9}, {"nodes": 2.0, "clock": 3e9}, {"nodes": 1.0, "clock": 2e9}],
    )


def column(fitted: FittedFeatures, rows: Observations, name: str) -> list[float]:
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
    assert fit_features(training(), own=own).names == names


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.0, 0.5, 1.0], AS_IS),
        ([0.0, 62.5, 100.0], AS_IS),
        ([0.0, 62.0, 100.0], LOGARITHM),
        ([0.5, 2e9, np.nan], LOGARITHM),
        ([-0.1, 5.0], ROOT),
    ],
)
def test_scales_are_chosen_by_values(values: list[float], scale: int) -> None:
    assert scale_for(np.array(values)) == scale


def test_counted_columns_have_mean_0_and_deviation_1_and_devices_stay_0_or_1() -> None:
    fitted = fit_features(training())
    rows = fitted.transform(training())
    counted = [index for index, name in enumerate(fitted.names) if not name.startswith("source")]
    np.testing.assert_allclose(np.nanmean(rows[:, counted], axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(rows[:, counted], axis=0), 1)
    assert column(fitted, training(), "source ruby") == [0, 1, 1]


def test_gaps_stay_or_are_filled_and_told_if_training_had_them() -> None:
    assert np.isnan(column(fit_features(training()), training(), "ipc")[2])
    filled = fit_features(training(), fill=True)
    assert np.isfinite(filled.transform(training())).all()
    assert column(filled, training(), "ipc")[2] == 0
    assert column(filled, training(), "ipc is missing") == [0, 0, 1]
    assert "heat is missing" not in filled.names
    filled = fit_features(training(), fill=True)
    assert column(filled, runs_with({"ipc": 0.3}), "heat") == [0.0]


def test_counters_of_another_tool_serve_and_unknown_ones_change_nothing() -> None:
    fitted = fit_features(training())
    papi = runs_with({"PAPI_TOT_INS": 10.0, "PAPI_BR_INS": 4.0})
    perf = runs_with({"instructions:u": 10.0, "branches:u": 4.0, "page-faults": 3.0})
    assert column(fitted, perf, "branch intensity") == column(fitted, papi, "branch intensity")
    assert set(fitted.unknown_counters(perf)) == {"instructions:u", "page-faults"}
    assert fitted.unknown_counters(papi) == ()
    fitted = fit_features(training())
    plain = {"PAPI_TOT_INS": 10.0, "PAPI_BR_INS": 4.0}
    np.testing.assert_array_equal(
        fitted.transform(runs_with(plain)), fitted.transform(runs_with({"strange": 9.0, **plain}))
    )


def test_a_profile_whose_counters_the_model_does_not_know_is_refused() -> None:
    fitted = fit_features(training())
    rows = runs_with({"PAPI_TOT_INS": 5.0}, {"strange": 1.0, "odd": 2.0})
    with pytest.raises(InputError, match=r"^app1 default: expected .+ PAPI_TOT_INS, .+, found strange, odd$"):
        fitted.transform(rows)


def test_what_does_not_differ_but_in_its_last_digit_is_no_feature() -> None:
    with pytest.raises(InputError, match="expected some that differ between 2 runs, found none among a"):
        fit_features(runs_with({"a": 1.0}, {"a": 1.0}))
    rows = runs_with({"a": 0.1 + 0.2, "b": 1.0}, {"a": 0.3, "b": 2.0})
    assert fit_features(rows).names == ("b",)


@given(
    values=st.lists(st.floats(min_value=0, max_value=1e15), min_size=2, max_size=20),
    order=st.randoms(use_true_random=False),
)
def test_training_rows_have_mean_0_in_any_order_of_counters(values: list[float], order: Any) -> None:
    rows = [{"a": value, "b": float(number), "c": value - 5.0} for number, value in enumerate(values)]
    names = ["a", "b", "c"]
    order.shuffle(names)
    one = fit_features(runs_with(*rows))
    other = fit_features(runs_with(*({name: row[name] for name in names} for row in rows)))
    # Of values that hardly differ, their size rounds away what their deviation is divided by.
    rounding = 1e-15 * np.abs(one.means / one.deviations)
    assert (np.abs(one.transform(runs_with(*rows)).mean(axis=0)) <= 1e-9 + rounding).all()
    for name in one.names:
        assert column(one, runs_with(*rows), name) == column(other, runs_with(*rows), name)


def observations() -> Observations:
    none = np.empty((4, 0))
    return Observations(
        application=("a", "a", "a", "b"),
        kernel=("k", "k", "l", "k"),
        size=("1", "2", "1", "1"),
        scale=("one", "one", "two", "one"),
        source=("x", "y", "x", "x"),
        names=(),
        counters=none,
        configuration=(),
        settings=none,
        time_s=np.ones(4),
    )


def test_kernels_of_one_name_in_two_applications_are_two() -> None:
    assert observations().counts == {"applications": 2, "kernels": 3, "kernels_at_a_size": 4}
    assert observations().rows(np.array([0, 1])).counts == {
        "applications": 1,
        "kernels": 1,
        "kernels_at_a_size": 2,
    }
    seen = made_vectors(applications=2, kernels=1, sizes=1).observations
    assert kernel_weights(seen).sum() == 2
    assert observations().works == [
        ("a", "k", "1", "one"),
        ("a", "k", "2", "one"),
        ("a", "l", "1", "two"),
        ("b", "k", "1", "one"),
    ]
