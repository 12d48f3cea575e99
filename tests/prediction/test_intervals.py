"""Intervals hold as often as they say, for a new group and for sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Integers
from crosscast.prediction.corun import CoRunResiduals
from crosscast.prediction.intervals import (
    cautious_quantiles,
    conformal_quantiles,
    correlation_within,
    group_weights,
    most_level,
    summed,
)

GROUPED = st.lists(st.integers(0, 5), min_size=1, max_size=40).map(
    lambda found: np.unique(found, return_inverse=True)[1].astype(np.int64)
)


@given(GROUPED, st.floats(0.05, 0.95), st.integers(0, 100))
def test_errors_up_to_the_reach_have_the_mass_asked_for(group: Integers, level: float, seed: int) -> None:
    errors = np.random.default_rng(seed).uniform(size=len(group))
    reach = conformal_quantiles(errors, group, np.array([level]))[0]
    mass = group_weights(group)[errors <= reach].sum() * most_level(group.max() + 1)
    assert mass >= level - 1e-6 or reach == errors.max()
    below = group_weights(group)[errors < reach].sum() * most_level(group.max() + 1)
    assert below < level
    # Cautious quantiles hold that share of the errors, and each group weighs the same.
    (quantile,) = cautious_quantiles(errors, group, np.array([level]))
    assert quantile in errors
    assert group_weights(group)[errors <= quantile].sum() >= level - 1e-6 or quantile == errors.max()
    assert np.bincount(group, weights=group_weights(group)) == pytest.approx(1 / (group.max() + 1))


@pytest.mark.parametrize(("level", "groups"), [(0.8, 9), (0.9, 19), (0.5, 4), (0.9, 40)])
def test_intervals_hold_a_new_group_as_often_as_they_say(level: float, groups: int) -> None:
    """Groups that are exchangeable, with errors that hang together within each, and sizes that differ."""
    rng = np.random.default_rng(7)
    inside = []
    for _ in range(1500):
        sizes = rng.integers(1, 5, groups + 1)
        shared = rng.standard_t(3, groups + 1)
        group = np.repeat(np.arange(groups + 1), sizes)
        errors = np.abs(shared[group] + rng.normal(0, 0.3, len(group)))
        known = group < groups
        inside.append(
            np.mean(errors[~known] <= conformal_quantiles(errors[known], group[known], np.array([level])))
        )
    share = float(np.mean(inside))
    # Between what conformal intervals promise and one group more, with three standard errors.
    slack = 3 * float(np.std(inside)) / np.sqrt(len(inside))
    assert level - slack <= share <= level + 1 / (groups + 1) + slack


def test_few_groups_have_the_largest_error_and_one_has_the_quantile_of_its_errors() -> None:
    assert conformal_quantiles(np.array([[0.1], [0.2], [0.3]]), np.arange(3), np.array([0.99])).tolist() == [
        [0.3]
    ]
    assert cautious_quantiles(np.arange(1.0, 11.0), np.zeros(10, np.int64), np.array([0.9])).tolist() == [9.0]


def test_no_limit_is_below_the_least_measured_value_or_above_the_prediction() -> None:
    true, value = np.array([1.0, 1.1, 1.5, 3.0]), np.array([1.4, 1.2, 1.3, 2.0])
    residuals = CoRunResiduals(np.log(value / true), np.arange(4), ("a", "b", "c", "d"), None, np.log(value))
    queries = np.array([0.8, 1.1, 4.0])
    low, high = residuals.limits(0.9, queries)
    assert low[0] == 0.8
    assert low[1] == pytest.approx(1.0)
    assert 1.0 < low[2] < 4.0
    assert high == pytest.approx(queries * np.exp(residuals.half_width(0.9, np.log(queries))))


def test_limits_of_a_sum_by_hand() -> None:
    # Shares are 3/4 and 1/4; each interval reaches by a factor of e.
    weights, centre = np.array([3.0, 1.0]), np.zeros((2, 1))
    reach = {
        within: float(summed(weights, centre, centre - 1, centre + 2, within)[2][0]) for within in (0, 1)
    }
    assert reach[1] == pytest.approx(np.log(4) + 2)
    assert reach[0] == pytest.approx(np.log(4) + 2 * np.sqrt(0.75**2 + 0.25**2))
    total, low, _ = summed(weights, centre, centre - 1, centre + 2, 0.5)
    assert total[0] == pytest.approx(np.log(4))
    assert low[0] == pytest.approx(np.log(4) - np.sqrt((1 + 0.75**2 + 0.25**2) / 2))


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_sums_are_within_their_limits_as_often_as_kernels_are(correlation: float) -> None:
    rng = np.random.default_rng(3)
    groups, kernels, sd = 4000, 6, 0.4
    shared, single = rng.normal(0, sd, groups), rng.normal(0, sd, (kernels, groups))
    errors = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * single
    centre = np.broadcast_to(rng.normal(0, 1, (kernels, 1)), errors.shape)
    weights = np.arange(1.0, kernels + 1)
    _, low, high = summed(weights, centre, centre - 1.645 * sd, centre + 1.645 * sd, correlation)
    truth = np.log(weights @ np.exp(centre + errors))
    assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(0.9, abs=0.015)
    # A group a column: each has kernels of its own.
    of_groups = errors.T.reshape(-1, 1)
    result = correlation_within(of_groups, np.repeat(np.arange(groups), kernels))
    assert result == pytest.approx(correlation, abs=0.03)
    # Errors that tell nothing of each other are taken to be correlated.
    assert correlation_within(np.array([[0.3], [np.nan], [-0.2]]), np.array([0, 0, 1])) == 1.0
