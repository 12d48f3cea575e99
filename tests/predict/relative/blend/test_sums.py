"""Sums of work: known prices are found, and what scales, permutes or lacks something does as it should."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_counters import runs_with
from made_work import DEVICES, NAMES, PRICES, changed, made_work, reordered

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.data import NO_SOURCE, Observations
from crosscast.predict.relative.sums import FittedSums, fit_sums, terms_of

WORK = made_work(kernels=24, sizes=6)
SEEN = WORK.observations


def fitted(observations: Observations = SEEN, times_s: Reals = WORK.times_s) -> FittedSums:
    found = fit_sums(observations, DEVICES, np.log(times_s), np.ones(len(observations)))
    assert found is not None
    return found


FITTED = fitted()


def centred(times_s: Reals) -> Reals:
    log = np.log(times_s)
    rest: Reals = log - log.mean(axis=1, keepdims=True)
    return rest


def test_terms_are_launches_bytes_operations_and_bytes_of_an_item_in_each_launch() -> None:
    whole = {"Kernels/Rep": 3.0, "Bytes/Rep": 80.0, "Flops/Rep": 5.0, "Iterations/Rep": 10.0}
    unsaid = {name: value for name, value in whole.items() if name != "Kernels/Rep"}
    no_items = whole | {"Iterations/Rep": 0.0}
    np.testing.assert_array_equal(
        terms_of(runs_with(whole, unsaid, no_items, {"odd": 1.0})),
        [[3, 80, 5, 24], [1, 80, 5, 8], [3, 80, 5, np.nan], [1, np.nan, np.nan, np.nan]],
    )


def test_known_prices_are_found() -> None:
    np.testing.assert_allclose(FITTED.prices, PRICES, rtol=0.1)
    np.testing.assert_allclose(FITTED.log_relative(SEEN, anchored=False), centred(WORK.times_s), atol=0.05)


def test_a_kernel_that_no_sum_tells_moves_prices_little() -> None:
    times_s = WORK.times_s.copy()
    times_s[:6, 1] *= 1000
    found = fitted(times_s=times_s).prices
    np.testing.assert_allclose(np.log(found / PRICES), 0, atol=0.4)
    assert (np.abs(np.log(found / PRICES)) < 0.1).sum() >= 7


def test_prices_that_nothing_tells_apart_make_the_same_share_of_the_time() -> None:
    """Bytes, operations and bytes of one item in fixed proportions: any split of the price would fit."""
    moved = SEEN.counters[:, 0]
    seen = changed(SEEN, flops=2 * moved, iterations=1e12, kernels=1.0)
    times_s = np.column_stack([1e-9 * moved, 1e-11 * moved])
    prices = fitted(seen, times_s).prices[1:] * np.array([[1], [2], [1e-12]])
    np.testing.assert_allclose(prices, np.tile([1e-9 / 3, 1e-11 / 3], (3, 1)), rtol=0.03)


@settings(max_examples=10, deadline=None)
@given(st.floats(-12, 12))
def test_times_in_another_unit_are_prices_in_that_unit(power: float) -> None:
    factor = 10.0**power
    np.testing.assert_allclose(
        fitted(times_s=factor * WORK.times_s).prices, factor * FITTED.prices, rtol=1e-3
    )


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(len(NAMES))))
def test_the_order_of_counters_does_not_matter_to_sums(order: list[int]) -> None:
    seen = reordered(SEEN, order)
    np.testing.assert_array_equal(fitted(seen).prices, FITTED.prices)
    np.testing.assert_array_equal(
        FITTED.log_relative(seen, anchored=True), FITTED.log_relative(SEEN, anchored=True)
    )


def test_the_order_of_rows_does_not_matter_to_sums() -> None:
    order = np.random.default_rng(0).permutation(len(SEEN))
    found = fitted(SEEN.rows(order), WORK.times_s[order])
    np.testing.assert_allclose(found.prices, FITTED.prices, rtol=1e-3)


def test_devices_in_another_order_have_the_same_prices() -> None:
    turned = fit_sums(SEEN, DEVICES[::-1], np.log(WORK.times_s[:, ::-1]), np.ones(len(SEEN)))
    assert turned is not None
    np.testing.assert_array_equal(turned.prices, FITTED.prices[:, ::-1])
    for anchored in (False, True):
        np.testing.assert_array_equal(
            turned.log_relative(SEEN, anchored=anchored),
            FITTED.log_relative(SEEN, anchored=anchored)[:, ::-1],
        )


def test_weights_matter_by_their_ratios_and_none_is_as_if_the_run_was_not_there() -> None:
    rng = np.random.default_rng(4)
    times_s = WORK.times_s * np.exp(rng.normal(0, 0.5, WORK.times_s.shape))
    halves: Reals = np.arange(len(SEEN), dtype=np.float64) % 2
    one = fit_sums(SEEN, DEVICES, np.log(times_s), halves)
    other = fit_sums(SEEN, DEVICES, np.log(times_s), 7 * halves)
    even = fit_sums(SEEN, DEVICES, np.log(times_s), np.ones(len(SEEN)))
    assert one is not None and other is not None and even is not None
    np.testing.assert_allclose(one.prices, other.prices, rtol=1e-6)
    assert (np.abs(np.log(one.prices / even.prices)) > 1e-3).any()


def test_anchored_takes_the_time_of_the_run_on_its_source_alone() -> None:
    seen = replace(SEEN.rows(np.arange(4)), source=("cpu", "gpu", NO_SOURCE, "cpu"))
    seen = replace(seen, time_s=np.array([3.0, 5.0, 7.0, np.nan]))
    sums = terms_of(seen) @ FITTED.prices
    expected = sums.copy()
    expected[0, 0], expected[1, 1] = 3, 5
    np.testing.assert_allclose(FITTED.log_relative(seen, anchored=True), centred(expected), rtol=1e-12)
    np.testing.assert_allclose(FITTED.log_relative(seen, anchored=False), centred(sums), rtol=1e-12)


def test_a_run_without_an_amount_is_not_a_number_and_others_are() -> None:
    moved = SEEN.counters[:, 0].copy()
    moved[2] = np.nan
    found = FITTED.log_relative(changed(SEEN, bytes=moved), anchored=True)
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [2]


def test_an_amount_that_a_training_run_lacks_has_no_price_and_is_not_asked_for() -> None:
    done = SEEN.counters[:, 1].copy()
    done[2] = np.nan
    found = fitted(changed(SEEN, flops=done))
    assert found.prices[2].tolist() == [0, 0]
    assert (found.prices[[0, 1, 3]] > 0).all()
    assert np.isfinite(found.log_relative(changed(SEEN, flops=np.nan), anchored=False)).all()


@pytest.mark.parametrize("gone", [np.nan, 0.0])
def test_counters_of_launches_alone_make_no_sums(gone: float) -> None:
    assert (
        fit_sums(changed(SEEN, bytes=gone, flops=gone), DEVICES, np.log(WORK.times_s), np.ones(len(SEEN)))
        is None
    )


def test_sums_come_back_from_their_arrays() -> None:
    again = FittedSums.from_state(FITTED.state())
    assert again.devices == DEVICES
    np.testing.assert_array_equal(again.prices, FITTED.prices)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("prices", np.ones((3, 2))),
        ("prices", np.ones((4, 3))),
        ("prices", -np.ones((4, 2))),
        ("prices", np.array([[1.0, 0.0]] * 4)),
        ("prices", np.full((4, 2), np.nan)),
        ("prices", np.ones(8)),
        ("priced_devices", np.array(["cpu"])),
        ("priced_devices", np.array([1, 2])),
    ],
)
def test_damaged_prices_are_refused(
    name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> None:
    with pytest.raises(InputError, match=rf"^model: (prices|{name}): expected [^\n]*, found [^\n]*$"):
        FittedSums.from_state({**FITTED.state(), name: array})
