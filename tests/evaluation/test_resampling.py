"""One bootstrap over groups: what it draws, compares and says."""

import json
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluation.resampling import (
    Confidence,
    Grouped,
    Interval,
    Scored,
    ScoreDifference,
    average,
    confidences,
    difference_of,
    interval_of,
    least,
)

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


def test_a_baseline_without_a_score_or_with_other_probes_is_not_compared_with() -> None:
    errors = np.arange(4.0)
    results = [
        scored("none", np.full(4, np.nan), baseline=True),
        scored("mean", errors, baseline=True),
        scored("other", errors),
        scored("probed", errors, compared=3),
    ]
    result = confidences(results, 4, BETTER, seed=0)
    assert result[2].differences["error"].baseline == "mean"
    assert not result[0].intervals
    assert not result[3].differences


def test_a_seed_says_the_draws() -> None:
    result = [scored("mean", np.random.default_rng(0).random(9))]
    assert confidences(result, 9, BETTER, 1, draws=50) == confidences(result, 9, BETTER, 1, draws=50)
    assert confidences(result, 9, BETTER, 1, draws=50) != confidences(result, 9, BETTER, 2, draws=50)


def test_too_few_groups_or_draws_say_nothing_and_groups_without_a_value_do_not_count() -> None:
    assert confidences([scored("mean", np.ones(1))], 1, BETTER, 0, fewest=2) == (Confidence({}),)
    with pytest.raises(InputError, match="draws: expected at least 1, found 0"):
        confidences([], 3, BETTER, 0, draws=0)
    of_groups = np.array([np.nan, 4.0, 2.0])
    weights = np.array([[5.0, 1.0, 1.0], [5.0, 1.0, 0.0], [1.0, 0, 0]])
    assert average(of_groups, weights).tolist()[:2] == [3.0, 4.0]
    assert least(of_groups, weights).tolist()[:2] == [2.0, 4.0]
    assert np.isnan([average(of_groups, weights)[2], least(of_groups, weights)[2]]).all()


def test_an_interval_leaves_a_fortieth_on_either_side_and_what_is_not_finite() -> None:
    interval = interval_of(np.concatenate([np.arange(401.0), [np.nan, np.inf, -np.inf]]))
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((10.0, 390.0))


@pytest.mark.parametrize(
    ("shift", "sign", "better"),
    [(1.0, 1, True), (1.0, -1, False), (-1.0, -1, True), (0.0, 1, False), (0.0, -1, False)],
)
def test_a_difference_is_better_where_its_interval_is_on_the_good_side_of_0(
    shift: float, sign: int, better: bool
) -> None:
    difference = difference_of("mean", shift, np.linspace(-0.5, 0.5, 101) + shift, sign)
    assert difference is not None
    assert (difference.baseline, difference.value, difference.better) == ("mean", shift, better)


def test_it_is_written_by_names() -> None:
    sure = Confidence(
        {"mae": Interval(1.0, 2.0)}, {"mae": ScoreDifference("mean", -3.0, Interval(-4.0, -2.0), True)}
    )
    assert json.loads(json.dumps(sure.to_dict())) == {
        "intervals": {"mae": [1.0, 2.0]},
        "against_baseline": {
            "mae": {"baseline": "mean", "difference": -3.0, "low": -4.0, "high": -2.0, "better": True}
        },
    }


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
