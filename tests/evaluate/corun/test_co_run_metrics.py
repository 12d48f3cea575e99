"""Scores of predictions of co-running."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_percentage_error, roc_auc_score

from crosscast.errors import InputError
from crosscast.evaluate.corun_scores import Scored, area_under_curve, mean_error, worst_coverage

VALUES = st.floats(0.1, 10)


def scored(true: Any, centre: Any, low: Any = None, high: Any = None, group: Any = None) -> Scored:
    nothing = np.full(len(true), np.nan)
    return Scored(
        np.array(true),
        np.array(centre),
        nothing if low is None else np.array(low),
        nothing if high is None else np.array(high),
        np.zeros(len(true), np.int64) if group is None else np.array(group),
        np.full(len(true), 2),
    )


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20))
def test_errors_in_per_cent_are_those_of_scikit_learn(pairs: Any) -> None:
    true, centre = map(np.array, zip(*pairs, strict=True))
    assert mean_error(scored(true, centre))[0] == pytest.approx(
        100 * mean_absolute_percentage_error(true, centre)
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=30))
def test_the_area_under_the_curve_is_that_of_scikit_learn(pairs: Any) -> None:
    true, probability = (np.array(each, dtype=np.float64) for each in zip(*pairs, strict=True))
    found = area_under_curve(true, probability)
    if len(set(true)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(true, probability))


def test_the_area_is_of_zeros_and_ones() -> None:
    with pytest.raises(InputError, match="true: expected 0 and 1"):
        area_under_curve(np.array([0.0, 0.5]), np.array([0.1, 0.2]))


def test_the_group_that_is_held_least_is_named() -> None:
    found = scored([1, 1, 1, 1], [1, 1, 1, 1], [0.9, 0.9, 1.1, 0.9], [1.1, 1.1, 1.2, 1.1], [0, 0, 1, 1])
    assert worst_coverage(found) == (1, 0.5)


def test_without_limits_nothing_is_held() -> None:
    assert np.isnan(scored([1.0], [1.0]).held).all()
