"""Conformal quantiles over groups hold as often as they say, and no group counts more than another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Integers
from crosscast.predict.intervals import group_quantile, group_reach, group_weights, most_level

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


def test_a_group_that_is_drawn_like_the_others_is_held_as_often_as_asked() -> None:
    random = np.random.default_rng(0)
    held = []
    for _ in range(400):
        scale = random.lognormal(size=20)
        errors = np.abs(random.normal(size=(20, 5))) * scale[:, None]
        reach = group_reach(errors[1:].reshape(-1, 1), np.repeat(np.arange(19), 5), 0.8)[0]
        held.append((errors[0] <= reach).mean())
    assert 0.77 < np.mean(held) < 0.88


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


def test_the_quantile_of_one_group_is_that_of_its_errors() -> None:
    errors = np.arange(1.0, 11.0)
    assert group_quantile(errors, np.zeros(10, np.int64), 0.9) == 9.0
