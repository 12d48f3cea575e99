"""What is said of clusters, and damaged states of it."""

from typing import Any

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import Clusters, clusters_of
from crosscast.predict.configuration.data import KernelAt

KERNELS = tuple(KernelAt(name, name, "big") for name in "abcd")
CORRELATIONS = np.array([[1, 0.5, -1, 1], [0.5, 1, np.nan, 1], [-1, np.nan, 1, 1], [1, 1, 1, 1.0]])


def found(asked: int | None = None) -> Clusters:
    return clusters_of(KERNELS, np.array([0, 1, 0, 2]), CORRELATIONS, asked)


def test_members_and_the_range_of_correlations_are_told() -> None:
    clusters = found()
    assert clusters.members == ((KERNELS[0], KERNELS[2]), (KERNELS[1],), (KERNELS[3],))
    assert (clusters.least_correlation, clusters.most_correlation, clusters.undefined) == (-1, 1, 1)
    assert not clusters.nothing_to_cluster
    assert clusters.note == "3 clusters of 2, 1, 1 kernels, as many as predict best inside the training data"
    assert found(3).note == "3 clusters of 2, 1, 1 kernels, as many as asked for"


def test_pairs_without_an_order_are_something_to_cluster() -> None:
    correlations = np.ones((2, 2))
    correlations[0, 1] = correlations[1, 0] = np.nan
    assert not clusters_of(KERNELS[:2], np.array([0, 0]), correlations, None).nothing_to_cluster
    assert clusters_of(KERNELS[:2], np.array([0, 0]), np.ones((2, 2)), None).nothing_to_cluster


@pytest.mark.parametrize(
    "clusters", [found(), found(5), clusters_of(KERNELS[:1], np.array([0]), np.eye(1), 2)]
)
def test_they_come_back_from_their_state(clusters: Clusters) -> None:
    assert Clusters.from_state(clusters.state()) == clusters


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("cluster_sizes", lambda a: a + 1, "cluster_sizes: expected those of 4 kernels, found a sum of 7"),
        ("cluster_sizes", lambda a: a - 1, "cluster_sizes: expected integers from 1"),
        ("member_kernel", lambda a: a[1:], "cluster_sizes: expected those of 4 kernels"),
        ("correlation_range", lambda a: a[1:], "correlation_range: expected two numbers or none, found 1"),
        ("correlations_undefined", lambda a: a - 2, "correlations_undefined: expected integers from 0"),
    ],
)
def test_a_damaged_state_is_refused(name: str, change: Any, sentence: str) -> None:
    state = found().state()
    with pytest.raises(InputError, match=sentence):
        Clusters.from_state({**state, name: change(state[name])})
