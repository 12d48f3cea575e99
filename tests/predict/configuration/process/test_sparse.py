"""A process that remembers all points is the exact one; with fewer it remembers those that tell most."""

from typing import Any

import numpy as np
import pytest
from made_points import FEATURES, made_covariance, made_points

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.gaussian_process import Belief, SparseProcess, Weighed, pivots

COVARIANCE = made_covariance(own=0.0001)
POINTS, KERNELS = made_points(5, 6)
VALUES = np.sin(POINTS[:, 0] + 2 * POINTS[:, 2]) + 0.1 * np.random.default_rng(0).normal(size=30)
NEW = made_points(1, 8, seed=9)[0]


def exact(used: Flags, new: Reals = NEW) -> tuple[Reals, Reals]:
    """Mean and covariance, without own part and noise, by the formulas of a textbook."""
    points = POINTS[used]
    noise = COVARIANCE.noise + COVARIANCE.own_variance
    inner = COVARIANCE.shared(points, points) + noise * np.eye(len(points))
    near = COVARIANCE.shared(new, points)
    before = COVARIANCE.shared(new, new)
    return near @ np.linalg.solve(inner, VALUES[used]), before - near @ np.linalg.solve(inner, near.T)


def shared_of(belief: Belief) -> Reals:
    """All covariances, without the kernel's own part."""
    settings = belief.points[:, FEATURES:]
    return belief.rows(np.arange(len(belief.mean))) - COVARIANCE.own(settings, settings)


@pytest.mark.parametrize("used", [np.ones(30, np.bool_), KERNELS != 2])
def test_with_all_points_remembered_it_is_exact(used: Flags) -> None:
    weighed = Weighed.of(COVARIANCE, POINTS, np.arange(30))
    found = weighed.fitted(np.where(used, VALUES, np.nan), used).at(NEW, FEATURES)
    mean, covariance = exact(used)
    np.testing.assert_allclose(found.mean, mean, atol=1e-5)
    np.testing.assert_allclose(shared_of(found), covariance, atol=1e-5)


def test_what_was_left_out_is_not_remembered() -> None:
    remembered = pivots(COVARIANCE, POINTS, 20)
    used = KERNELS != 2
    found = Weighed.of(COVARIANCE, POINTS, remembered).fitted(VALUES, used)
    alone = Weighed.of(COVARIANCE, POINTS[used], np.flatnonzero(np.isin(np.flatnonzero(used), remembered)))
    expected = alone.fitted(VALUES[used], np.ones(used.sum(), np.bool_))
    # The order of those remembered is another one.
    ones, others = found.at(NEW, FEATURES), expected.at(NEW, FEATURES)
    np.testing.assert_allclose(ones.mean, others.mean, atol=1e-7)
    np.testing.assert_allclose(shared_of(ones), shared_of(others), atol=1e-7)
    assert len(found.points) < 20


def test_few_points_that_tell_much_come_near_to_all() -> None:
    used = np.ones(30, np.bool_)
    found = Weighed.of(COVARIANCE, POINTS, pivots(COVARIANCE, POINTS, 22)).fitted(VALUES, used)
    mean, _ = exact(used)
    assert np.abs(found.at(NEW, FEATURES).mean - mean).max() < 0.1 * np.abs(mean).max()


def test_training_never_makes_it_less_sure_and_variances_stay_positive() -> None:
    for count in (1, 5, 30):
        remembered = pivots(COVARIANCE, POINTS, count)
        found = Weighed.of(COVARIANCE, POINTS, remembered).fitted(VALUES, np.ones(30, np.bool_))
        variances = np.diag(shared_of(found.at(POINTS[:6], FEATURES)))
        assert (variances > -1e-9).all()
        assert (variances < COVARIANCE.variance + 1e-9).all()


def test_where_nothing_is_remembered_nothing_is_known() -> None:
    used = KERNELS == 1
    found = Weighed.of(COVARIANCE, POINTS, np.array([0, 1])).fitted(VALUES, used).at(NEW, FEATURES)
    assert found.mean.tolist() == [0] * 8
    np.testing.assert_allclose(shared_of(found), COVARIANCE.shared(NEW, NEW))


def greedy(points: Reals, most: int) -> list[int]:
    """Each time the point of which the variance is greatest, given those before, by dense conditioning."""
    chosen: list[int] = []
    every = COVARIANCE.shared(points, points)
    for _ in range(most):
        seen = every[:, chosen]
        left = np.diag(every - seen @ np.linalg.solve(every[np.ix_(chosen, chosen)], seen.T)).copy()
        left[chosen] = -1
        chosen.append(int(np.argmax(np.round(left, 9))))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_pivots_are_those_of_a_greedy_search(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(15, 4))
    assert pivots(COVARIANCE, points, 8).tolist() == greedy(points, 8)


def test_a_point_that_is_there_twice_is_remembered_once() -> None:
    twice = np.concatenate([POINTS[:5], POINTS[:5]])
    found = pivots(COVARIANCE, twice, 10)
    assert len(found) == 5
    assert sorted(found % 5) == [0, 1, 2, 3, 4]
    assert pivots(COVARIANCE, np.zeros((7, 4)), 5).tolist() == [0]
    assert pivots(COVARIANCE, POINTS[:3], 10).size == 3


def state() -> dict[str, Any]:
    used = np.ones(30, np.bool_)
    fitted = Weighed.of(COVARIANCE, POINTS, pivots(COVARIANCE, POINTS, 9)).fitted(VALUES, used)
    return {name: array.copy() for name, array in fitted.state().items()}


def test_it_comes_back_from_its_arrays() -> None:
    found = SparseProcess.from_state(state())
    assert {name: array.tolist() for name, array in found.state().items()} == {
        name: array.tolist() for name, array in state().items()
    }


@pytest.mark.parametrize("name", ["lengths", "own_lengths", "variances", "points", "weights", "known"])
@pytest.mark.parametrize("damage", ["missing", "nan", "short", "axis", "text"])
def test_a_damaged_array_is_refused(name: str, damage: str) -> None:
    damaged = state()
    array = damaged.pop(name)
    if damage == "short" and name == "own_lengths":
        array = np.tile(array, 3)
    changed = {
        "nan": np.full_like(array, np.nan),
        "short": array if name == "own_lengths" else array[1:],
        "axis": array[None],
        "text": array.astype(np.str_),
    }
    if damage != "missing":
        damaged[name] = changed[damage]
    with pytest.raises(InputError, match="model: "):
        SparseProcess.from_state(damaged)


@pytest.mark.parametrize("name", ["lengths", "own_lengths", "variances"])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_lengths_and_variances_must_be_above_zero(name: str, value: float) -> None:
    damaged = state()
    damaged[name][-1] = value
    with pytest.raises(InputError, match="model: lengths: expected lengths and variances above 0"):
        SparseProcess.from_state(damaged)
