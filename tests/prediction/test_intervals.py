"""Conformal quantiles over groups hold as often as they say, and no group counts more than another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Integers
from crosscast.prediction.intervals import group_quantile, group_reach, group_weights, most_level

GROUPED = st.lists(st.integers(0, 5), min_size=1, max_size=40).map(
    lambda found: np.unique(found, return_inverse=True)[1].astype(np.int64)
)


@given(GROUPED)
def test_each_group_weighs_the_same(group: Integers) -> None:
    weights = group_weights(group)
    assert np.bincount(group, weights=weights) == pytest.approx(1 / (group.max() + 1))


@given(GROUPED, st.floats(0.05, 0.95), st.integers(0, 100))
def test_errors_up_to_the_reach_have_the_mass_asked_for(group: Integers, level: float, seed: int) -> None:
    errors = np.random.default_rng(seed).uniform(size=len(group))
    reach = group_reach(errors[:, None], group, level)[0]
    mass = group_weights(group)[errors <= reach].sum() * most_level(group.max() + 1)
    assert mass >= level - 1e-6 or reach == errors.max()
    below = group_weights(group)[errors < reach].sum() * most_level(group.max() + 1)
    assert below < level


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
        inside.append(np.mean(errors[~known] <= group_reach(errors[known, None], group[known], level)))
    share = float(np.mean(inside))
    # Between what conformal intervals promise and one group more, with three standard errors.
    slack = 3 * float(np.std(inside)) / np.sqrt(len(inside))
    assert level - slack <= share <= level + 1 / (groups + 1) + slack


def test_few_groups_have_the_largest_error_and_one_has_the_quantile_of_its_errors() -> None:
    assert group_reach(np.array([[0.1], [0.2], [0.3]]), np.arange(3), 0.99).tolist() == [0.3]
    errors = np.arange(1.0, 11.0)
    assert group_quantile(errors, np.zeros(10, np.int64), 0.9) == 9.0


@given(GROUPED, st.floats(0.05, 0.95), st.integers(0, 100))
def test_quantiles_hold_the_share_of_the_errors_where_each_group_weighs_the_same(
    group: Integers, level: float, seed: int
) -> None:
    errors = np.random.default_rng(seed).uniform(size=len(group))
    found = group_quantile(errors, group, level)
    assert found in errors
    assert group_weights(group)[errors <= found].sum() >= level - 1e-6


def test_quantiles_hold_of_new_groups_about_as_often_as_they_say() -> None:
    random = np.random.default_rng(1)
    held = []
    for _ in range(400):
        scale = random.lognormal(size=8)
        errors = np.abs(random.normal(size=(8, 30))) * scale[:, None]
        found = group_quantile(errors[1:].ravel(), np.repeat(np.arange(7), 30), 0.8)
        held.append((errors[0] <= found).mean())
    assert 0.77 < np.mean(held) < 0.85
