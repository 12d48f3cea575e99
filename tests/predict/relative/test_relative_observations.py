from __future__ import annotations

import numpy as np

from crosscast.predict.relative.data import Observations


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


def test_what_rows_did_is_told_without_the_device_that_counted() -> None:
    assert observations().works == [
        ("a", "k", "1", "one"),
        ("a", "k", "2", "one"),
        ("a", "l", "1", "two"),
        ("b", "k", "1", "one"),
    ]


def test_kernels_of_one_name_in_two_applications_are_two() -> None:
    assert observations().counts == {"applications": 2, "kernels": 3, "kernels_at_a_size": 4}
    assert observations().rows(np.array([0, 1])).counts == {
        "applications": 1,
        "kernels": 1,
        "kernels_at_a_size": 2,
    }
