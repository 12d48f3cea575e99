from __future__ import annotations

import json

import numpy as np
import pytest

from crosscast.evaluate.confidence import Confidence, Difference, Interval, difference_of, interval_of


def test_an_interval_leaves_a_fortieth_on_either_side_and_what_is_not_finite() -> None:
    drawn = np.concatenate([np.arange(401.0), [np.nan, np.inf, -np.inf]])
    found = interval_of(drawn)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((10.0, 390.0))


@pytest.mark.parametrize(
    ("shift", "sign", "better"),
    [(1.0, 1, True), (1.0, -1, False), (-1.0, -1, True), (0.0, 1, False), (0.0, -1, False)],
)
def test_a_difference_is_better_where_its_interval_is_on_the_good_side_of_0(
    shift: float, sign: int, better: bool
) -> None:
    found = difference_of("mean", shift, np.linspace(-0.5, 0.5, 101) + shift, sign)
    assert found is not None
    assert (found.baseline, found.value, found.better) == ("mean", shift, better)


def test_nothing_is_said_of_differences_that_are_not_finite() -> None:
    assert difference_of("mean", np.nan, np.zeros(3), 1) is None
    assert difference_of("mean", 0.0, np.full(3, np.nan), 1) is None


def test_it_is_written_by_names() -> None:
    sure = Confidence(
        {"mae": Interval(1.0, 2.0)}, {"mae": Difference("mean", -3.0, Interval(-4.0, -2.0), True)}
    )
    assert json.loads(json.dumps(sure.to_dict())) == {
        "intervals": {"mae": [1.0, 2.0]},
        "against_baseline": {
            "mae": {"baseline": "mean", "difference": -3.0, "low": -4.0, "high": -2.0, "better": True}
        },
    }
