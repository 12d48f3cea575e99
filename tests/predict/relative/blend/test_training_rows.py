"""Rows to learn from: kernels weigh the same, and none has more than so many."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from made_work import made_work

from crosscast.predict.relative.blend import TrainingRows, training_rows
from crosscast.predict.relative.data import Vectors

MOST = 120


def with_counts(counts: list[int]) -> Vectors:
    """So many runs of each kernel."""
    vectors = made_work(kernels=1, sizes=sum(counts))
    names = tuple(f"kernel{place}" for place, count in enumerate(counts) for _ in range(count))
    return replace(vectors, observations=replace(vectors.observations, kernel=names))


def weights_by_kernel(rows: TrainingRows) -> dict[str, float]:
    found: Counter[str] = Counter()
    for kernel, weight in zip(rows.vectors.observations.kernel, rows.weights.tolist(), strict=True):
        found[kernel] += weight
    return dict(found)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=4))
def test_kernels_weigh_the_same_and_have_no_more_than_so_many_rows(counts: list[int]) -> None:
    rows = training_rows(with_counts(counts))
    weights = weights_by_kernel(rows)
    np.testing.assert_allclose([weights[f"kernel{place}"] for place in range(len(counts))], 1)
    taken = Counter(rows.vectors.observations.kernel)
    assert [taken[f"kernel{place}"] for place in range(len(counts))] == [min(count, MOST) for count in counts]
    # None is taken twice.
    assert len({tuple(row) for row in rows.vectors.observations.counters.tolist()}) == len(rows.weights)


@given(count=st.integers(MOST + 1, 1500))
def test_rows_are_spread_evenly_from_the_shortest_to_the_longest(count: int) -> None:
    vectors = with_counts([count])
    length = np.log(vectors.times_s).mean(axis=1)
    rows = training_rows(vectors)
    ranks = np.sort(np.searchsorted(np.sort(length), rows.log_time.mean(axis=1)))
    assert (len(ranks), ranks[0], ranks[-1]) == (MOST, 0, count - 1)
    steps = np.diff(ranks)
    assert steps.max() - steps.min() <= 1


def test_kernels_of_one_name_in_two_applications_are_two() -> None:
    vectors = with_counts([6])
    names = ("one",) * 2 + ("two",) * 4
    rows = training_rows(replace(vectors, observations=replace(vectors.observations, application=names)))
    np.testing.assert_allclose(rows.weights, [1 / 2] * 2 + [1 / 4] * 4)


def test_times_and_some_of_the_rows_go_together() -> None:
    vectors = made_work(kernels=3, sizes=2)
    rows = training_rows(vectors)
    np.testing.assert_array_equal(rows.log_time, np.log(rows.vectors.times_s))
    np.testing.assert_allclose(rows.log_relative.sum(axis=1), 0, atol=1e-12)
    some = rows.rows(np.array([3, 1]))
    assert some.vectors.observations.kernel == ("kernel1", "kernel0")
    np.testing.assert_array_equal(some.log_time, rows.log_time[[3, 1]])
    np.testing.assert_array_equal(some.weights, rows.weights[[3, 1]])
