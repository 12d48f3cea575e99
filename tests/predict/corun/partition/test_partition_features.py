"""Features of members of mixes: counted by hand, and the laws that they keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.corun.partition_learners import feature_count, features_of, own_and_mean

SHARED = hnp.arrays(np.float64, (2, 4, 3), elements=st.floats(0.01, 1.0))
ALL = np.ones((2, 4), dtype=np.bool_)


def test_features_of_two_members_are_as_counted_by_hand() -> None:
    shared = np.exp([[[-1.0, 0.0], [-3.0, 0.0], [-2.0, 0.0]]])
    judged = np.array([[True, True, False]])
    found = features_of(shared, judged)
    #       own          mean           max           min          deviation   judged
    first = [-0.5, 0.5, -1.25, 1.25, -1.0, 1.5, -1.5, 1.0, 0.25, 0.25, 2 / 3]
    second = [-1.5, 1.5, -0.75, 0.75, -0.5, 1.0, -1.0, 0.5, 0.25, 0.25, 2 / 3]
    np.testing.assert_allclose(found, [first, second], atol=1e-12)
    assert found.shape[1] == feature_count(2)
    np.testing.assert_allclose(found[0, own_and_mean(2)], first[:4], atol=1e-12)


@given(SHARED, st.permutations([1, 2, 3]))
@settings(max_examples=30, deadline=None)
def test_the_order_of_the_others_does_not_matter(shared: Reals, order: list[int]) -> None:
    first = np.zeros_like(ALL)
    first[:, 0] = True
    turned = shared[:, [0, *order]]
    np.testing.assert_array_equal(features_of(turned, first), features_of(shared, first))


@given(SHARED, hnp.arrays(np.float64, (2, 4, 1), elements=st.floats(0.1, 10)))
@settings(max_examples=30, deadline=None)
def test_times_matter_relative_to_each_other_alone(shared: Reals, factor: Reals) -> None:
    np.testing.assert_allclose(features_of(shared * factor, ALL), features_of(shared, ALL), atol=1e-9)


def test_what_is_no_mix_is_refused() -> None:
    shared = np.full((2, 4, 3), 0.5)
    for wrong, judged in ((shared, ALL[:, :3]), (shared[:, :1], ALL[:, :1]), (shared[0], ALL)):
        with pytest.raises(InputError, match=r"expected the shape \(n, k, l\)"):
            features_of(wrong, judged)
    for value in (0.0, -1.0, np.nan, np.inf):
        shared[1, 2, 0] = value
        with pytest.raises(InputError, match="expected times above 0"):
            features_of(shared, ALL)
