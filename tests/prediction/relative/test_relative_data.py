"""Profiles are observations of no device."""

from __future__ import annotations

import numpy as np

from crosscast.prediction.relative.data import Observations, kernel_weights
from support.vectors import made_vectors


def observations() -> Observations:
    none = np.empty((4, 0))
    return Observations(
        application=("a", "a", "a", "b"),
        kernel=("k", "k", "l", "k"),
        size=("1", "2", "1", "1"),
        scale=("one", "one", "two", "one"),
        source=("x", "y", "x", "x"),
        names=(),
        counters=none,
        configuration=(),
        settings=none,
        time_s=np.ones(4),
    )


def test_kernels_of_one_name_in_two_applications_are_two() -> None:
    assert observations().counts == {"applications": 2, "kernels": 3, "kernels_at_a_size": 4}
    assert observations().rows(np.array([0, 1])).counts == {
        "applications": 1,
        "kernels": 1,
        "kernels_at_a_size": 2,
    }
    seen = made_vectors(applications=2, kernels=1, sizes=1).observations
    assert kernel_weights(seen).sum() == 2
    assert observations().works == [
        ("a", "k", "1", "one"),
        ("a", "k", "2", "one"),
        ("a", "l", "1", "two"),
        ("b", "k", "1", "one"),
    ]
