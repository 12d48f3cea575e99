"""One bootstrap over groups: what it draws, compares and says."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crosscast.arrays import Reals
from crosscast.evaluation.resampling import Confidence, Grouped, Scored, average, confidences, least
from support.refusals import refusal

BETTER = {"error": -1, "share": 1}


def scored(
    name: str, errors: Reals, *, baseline: bool = False, compared: object = None, share: float | None = None
) -> Scored:
    """A result whose score is the mean of one error a group."""

    def drawn(weights: Reals) -> Mapping[str, Reals]:
        return {"error": average(errors, weights), "share": np.full(len(weights), np.nan)}

    return Scored(name, baseline, {"error": float(errors.mean()), "share": share}, drawn, compared)


def test_intervals_are_those_of_scipy() -> None:
    errors = np.random.default_rng(3).random(8)
    reference = stats.bootstrap(
        (errors,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    (results,) = confidences([scored("mean", errors)], 8, BETTER, seed=0, draws=20_000)
    assert results.intervals["error"].low == pytest.approx(reference.low, rel=0.01)
    assert results.intervals["error"].high == pytest.approx(reference.high, rel=0.01)
    assert set(results.intervals) == {"error"}


def test_draws_are_of_pairs_and_of_the_best_baseline() -> None:
    errors = np.random.default_rng(0).random(6)
    results = [
        scored("worst", errors + 9, baseline=True),
        scored("mean", errors, baseline=True),
        scored("other", errors - 0.5),
    ]
    worst, mean, other = confidences(results, 6, BETTER, seed=0)
    assert not worst.differences
    assert not mean.differences
    difference = other.differences["error"]
    assert difference.baseline == "mean"
    assert difference.better
    assert (difference.value, difference.interval.low, difference.interval.high) == pytest.approx((-0.5,) * 3)
    assert set(other.differences) == {"error"}


def test_too_few_groups_or_draws_say_nothing_and_groups_without_a_value_do_not_count() -> None:
    assert confidences([scored("mean", np.ones(1))], 1, BETTER, 0, fewest=2) == (Confidence({}),)
    assert "draws: expected at least 1, found 0" in refusal(confidences, [], 3, BETTER, 0, draws=0)
    of_groups = np.array([np.nan, 4.0, 2.0])
    weights = np.array([[5.0, 1.0, 1.0], [5.0, 1.0, 0.0], [1.0, 0, 0]])
    assert average(of_groups, weights).tolist()[:2] == [3.0, 4.0]
    assert least(of_groups, weights).tolist()[:2] == [2.0, 4.0]
    assert np.isnan([average(of_groups, weights)[2], least(of_groups, weights)[2]]).all()


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 3)), max_size=12), st.integers(0, 99))
def test_weighting_groups_is_repeating_their_values(pairs: list[tuple[float, int]], seed: int) -> None:
    values = np.array([value for value, _ in pairs], dtype=np.float64)
    groups = np.array([group for _, group in pairs], dtype=np.int64)
    weights = np.random.default_rng(seed).integers(0, 3, (1, 4)).astype(np.float64)
    repeated = np.repeat(values, weights[0][groups].astype(int))
    grouped = Grouped(values, groups, 4)
    if repeated.size:
        assert grouped.mean(weights)[0] == pytest.approx(repeated.mean(), abs=1e-9)
        assert grouped.median(weights)[0] == pytest.approx(np.median(repeated))
    else:
        assert np.isnan(grouped.mean(weights)[0])
        assert np.isnan(grouped.median(weights)[0])
