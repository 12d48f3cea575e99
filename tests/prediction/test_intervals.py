"""Conformal quantiles hold as often as they say; trees as arrays predict what scikit-learn does."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.corun import CoRunResiduals
from crosscast.prediction.intervals import (
    cautious_quantiles,
    conformal_quantiles,
    correlation_within,
    group_weights,
    most_level,
    summed,
)
from crosscast.prediction.trees import Trees, constant, joined, trees_of_forest
from support.examples import examples

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


def sample(seed: int, n: int = 60, f: int = 4, o: int = 3) -> tuple[Reals, Reals]:
    """Rows of few distinct features, as sizes have them, and outputs."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 12, (n, f)) / 7 + rng.choice([0.0, 1e-9], (n, f))
    return rows, rng.normal(size=(n, o)) + rows[:, :1]


def grown(seed: int = 0, trees: int = 7, o: int = 3) -> Trees:
    rows, wanted = sample(seed, o=o)
    return trees_of_forest(ExtraTreesRegressor(trees, random_state=seed).fit(rows, wanted))


def test_a_sum_is_that_of_the_trees_one_by_one() -> None:
    trees, rows = grown(), sample(1, n=9000)[0]
    alone = [replace(trees, root=trees.root[index : index + 1]).sum(rows) for index in range(7)]
    np.testing.assert_allclose(np.sum(alone, axis=0), trees.sum(rows), atol=1e-12)


@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestRegressor])
@given(st.integers(0, 2**31), st.sampled_from([1, 3, 20]), st.sampled_from([2, 5]))
@settings(max_examples=12, deadline=None)
def test_a_forest_predicts_what_scikit_learn_does(kind: Any, seed: int, leaf: int, outputs: int) -> None:
    rows, wanted = sample(seed, o=outputs)
    forest = kind(11, min_samples_leaf=leaf, random_state=seed).fit(rows, wanted)
    others = np.concatenate([rows, rows + 1e-9, np.nextafter(rows, np.inf), sample(seed + 1)[0]])
    np.testing.assert_allclose(
        trees_of_forest(forest).sum(others), forest.predict(others), rtol=0, atol=1e-12
    )


def test_rows_at_thresholds_go_where_scikit_learn_sends_them() -> None:
    rows, wanted = sample(3)
    forest = ExtraTreesRegressor(5, random_state=3).fit(rows, wanted)
    thresholds = np.unique(np.concatenate([each.tree_.threshold for each in forest.estimators_]))
    near = np.concatenate([np.nextafter(thresholds, end) for end in (-np.inf, np.inf)] + [thresholds])
    on = np.repeat(near[:, None], 4, axis=1)
    np.testing.assert_allclose(trees_of_forest(forest).sum(on), forest.predict(on), rtol=0, atol=1e-12)


def test_joined_trees_add_up_and_projected_ones_sum_to_projected_sums() -> None:
    one, other, rows = grown(0), grown(1), sample(2)[0]
    middle = np.array([1.0, 2.0, 3.0])
    both = joined([one, constant(middle), other])
    np.testing.assert_allclose(both.sum(rows), one.sum(rows) + middle + other.sum(rows), atol=1e-12)
    trees, rows = grown(), sample(2)[0]
    directions = np.random.default_rng(0).normal(size=(3, 5))
    np.testing.assert_allclose(trees.project(directions).sum(rows), trees.sum(rows) @ directions, atol=1e-12)


@given(st.data())
@examples(80)
def test_a_state_with_any_one_node_changed_is_refused_or_still_trees(data: st.DataObject) -> None:
    state = grown(trees=2).state()
    name = data.draw(st.sampled_from(["split_left", "split_right", "root", "split_feature"]))
    array = state[name].copy()
    array[data.draw(st.integers(0, len(array) - 1))] = data.draw(st.integers(-200, 200))
    try:
        trees = Trees.from_state({**state, name: array})
        trees.check_width(4)
    except InputError:
        return
    assert np.isfinite(trees.sum(sample(2)[0])).all()
