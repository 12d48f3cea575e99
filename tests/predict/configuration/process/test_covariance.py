"""Covariances are those of Matérn, of points near and far."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_points import FEATURES, made_covariance, made_points
from scipy.optimize import check_grad
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern

from crosscast.predict.configuration.gaussian_process import matern, matern_slope, squares


def test_both_parts_are_those_of_scikit_learn() -> None:
    covariance = made_covariance()
    ones, others = made_points(seed=1)[0], made_points(seed=2)[0][:7]
    shared = covariance.variance * Matern(covariance.lengths, nu=2.5)(ones, others)
    np.testing.assert_allclose(covariance.shared(ones, others), shared, rtol=1e-10)
    one, other = ones[:, FEATURES:], others[:, FEATURES:]
    own = covariance.own_variance * Matern(covariance.own_lengths, nu=2.5)(one, other)
    np.testing.assert_allclose(covariance.own(one, other), own, rtol=1e-10)


def test_squares_are_those_of_distances_and_the_points_stay_as_they_are() -> None:
    ones, others = made_points(seed=1)[0], made_points(seed=2)[0]
    before = ones.copy(), others.copy()
    np.testing.assert_allclose(squares(ones, others), cdist(ones, others, "sqeuclidean"), atol=1e-12)
    np.testing.assert_array_equal(ones, before[0])
    np.testing.assert_array_equal(others, before[1])


def test_a_point_is_at_no_distance_from_itself() -> None:
    far = 1e3 * made_points()[0]
    found = squares(far, far)
    assert found.min() >= 0
    assert np.diag(matern(found)) == pytest.approx(1, abs=1e-8)


def test_without_coordinates_all_points_are_alike() -> None:
    assert matern(squares(np.empty((2, 0)), np.empty((3, 0)))).tolist() == [[1, 1, 1], [1, 1, 1]]


@given(st.floats(1e-3, 50))
def test_the_slope_is_that_of_the_correlation(squared: float) -> None:
    error = check_grad(
        lambda x: float(matern(x)[0]), lambda x: matern_slope(x), np.array([squared]), epsilon=1e-7
    )
    assert error < 1e-5


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=10, unique=True))
def test_what_is_farther_is_less_alike(distances: list[float]) -> None:
    found = matern(np.sort(np.array(distances)))
    assert (np.diff(found) <= 1e-15).all()
    assert (found >= 0).all()
