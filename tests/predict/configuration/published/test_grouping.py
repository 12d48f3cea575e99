"""Groups are those of average linkage, one within the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from crosscast.arrays import Reals
from crosscast.predict.configuration.bailey2014 import groupings, nothing_to_group


def random_matrix(seed: int, n: int) -> Reals:
    apart = np.random.default_rng(seed).random((n, n))
    apart = (apart + apart.T) / 2
    np.fill_diagonal(apart, 0)
    return apart


@given(st.integers(0, 1000), st.integers(2, 12))
def test_they_are_those_of_another_implementation(seed: int, n: int) -> None:
    apart = random_matrix(seed, n)
    for count, labels in enumerate(groupings(apart, 6), 1):
        other = AgglomerativeClustering(count, metric="precomputed", linkage="average").fit(apart)
        assert adjusted_rand_score(labels, other.labels_) == pytest.approx(1)


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 9))
def test_there_is_one_for_each_number_up_to_the_most_or_the_kernels(seed: int, n: int, most: int) -> None:
    found = groupings(random_matrix(seed, n), most)
    assert [len(set(labels.tolist())) for labels in found] == list(range(1, min(n, most) + 1))
    for labels in found:
        first = [labels.tolist().index(group) for group in range(labels.max() + 1)]
        assert first == sorted(first)


def test_groups_of_equal_dissimilarities_are_as_many_as_asked() -> None:
    apart = 0.5 * (1 - np.eye(5))
    assert [len(set(labels.tolist())) for labels in groupings(apart, 9)] == [1, 2, 3, 4, 5]


def test_kernels_that_are_all_the_same_are_one_group() -> None:
    assert nothing_to_group(np.zeros((4, 4)))
    assert [labels.tolist() for labels in groupings(np.zeros((4, 4)), 5)] == [[0, 0, 0, 0]]
