"""Likeness falls with distance, whatever the features are measured in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.predict.time.features import Neighbours


def features(seed: int = 0) -> Reals:
    return np.random.default_rng(seed).normal(size=(20, 3))


def test_likeness_is_materns_covariance_of_standardized_features_as_in_scikit_learn() -> None:
    from sklearn.gaussian_process.kernels import Matern
    from sklearn.preprocessing import StandardScaler

    known, asked = features() * [1.0, 10.0, 100.0] + 5, features(1)[:5] * [1.0, 10.0, 100.0] + 5
    scaler = StandardScaler().fit(known)
    wanted = Matern(length_scale=np.sqrt(3), nu=1.5)(scaler.transform(asked), scaler.transform(known))
    np.testing.assert_allclose(Neighbours.of(known).alike(asked), wanted, atol=1e-6)


@given(st.floats(0.01, 100), st.floats(-100, 100))
def test_units_do_not_matter(factor: float, added: float) -> None:
    known = features()
    np.testing.assert_allclose(
        Neighbours.of(known * factor + added).alike(known[:3] * factor + added),
        Neighbours.of(known).alike(known[:3]),
        atol=1e-6,
    )


def test_a_kernel_is_most_like_itself() -> None:
    found = Neighbours.of(features()).alike(features())
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-6)
    assert (found.argmax(axis=1) == np.arange(20)).all()


def test_what_is_far_beyond_all_known_is_no_stranger_than_what_is_beyond() -> None:
    known = Neighbours.of(features())
    far, further = (known.alike(np.full((1, 3), value)) for value in (1e3, 1e9))
    np.testing.assert_array_equal(far, further)


def test_a_feature_that_all_known_kernels_share_makes_none_of_them_stranger() -> None:
    known = features()
    known[:, 2] = 7.0
    found = Neighbours.of(known).alike(known[:2])
    np.testing.assert_allclose(np.diag(found[:, :2]), 1, atol=1e-6)
