"""The bootstrap draws whole programs, the same for all methods."""

import numpy as np
import pytest
from scipy import stats

from crosscast.arrays import Reals
from crosscast.decide.scores import Tallied, bootstrap_choices


def tallies(performance: list[float], extra: float = 1.0) -> Reals:
    """Programs that are always under the limit, with this performance."""
    made = np.zeros((len(performance), 9))
    made[:, 0] = made[:, 7] = 1
    made[:, 1] = made[:, 8] = performance
    made[:, 2] = 0.9
    made[:, 6] = extra
    return made


SCORES = [0.9, 0.7, 0.95, 0.5, 0.8, 0.85, 0.6, 0.99]


def test_intervals_are_those_of_scipy() -> None:
    (sure,) = bootstrap_choices([Tallied("one", False, tallies(SCORES))], 0, draws=20_000)
    reference = stats.bootstrap(
        (SCORES,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert sure.intervals["score"].low == pytest.approx(reference.low, rel=0.01)
    assert sure.intervals["score"].high == pytest.approx(reference.high, rel=0.01)
    assert "over_power" not in sure.intervals


def test_differences_are_of_pairs_from_the_best_baseline() -> None:
    lower = [score - 0.1 for score in SCORES]
    methods = [
        Tallied("low", True, tallies([score - 0.3 for score in SCORES], extra=0.0)),
        Tallied("high", True, tallies(lower)),
        Tallied("own", False, tallies(SCORES, extra=2.0)),
    ]
    low, high, own = bootstrap_choices(methods, 0)
    assert not low.differences
    assert not high.differences
    score = own.differences["score"]
    assert score.baseline == "high"
    assert (score.value, score.interval.low, score.interval.high) == pytest.approx((0.1, 0.1, 0.1))
    assert score.better
    runs = own.differences["extra_runs"]
    assert runs.baseline == "low"
    assert runs.value == pytest.approx(2)
    assert not runs.better
    assert "under_power" not in own.differences


def test_the_same_seed_draws_the_same() -> None:
    method = Tallied("one", False, tallies(SCORES))
    assert bootstrap_choices([method], 3) == bootstrap_choices([method], 3)
    assert bootstrap_choices([method], 3) != bootstrap_choices([method], 4)
