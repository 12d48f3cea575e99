"""The devices of the largest full table."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from crosscast.arrays import Flags
from crosscast.predict.relative.observed import full_devices

KNOWN = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6), elements=st.booleans())


def times(known: Flags, devices: list[int]) -> int:
    return len(devices) * int(known[:, devices].all(axis=1).sum())


def nested(rows: list[int], devices: int) -> Flags:
    """Work that the first so many of the devices have, row by row."""
    return np.array([np.arange(devices) < row for row in rows])


@given(KNOWN)
def test_the_chosen_share_work_and_no_other_device_has_more_of_it(known: Flags) -> None:
    chosen = full_devices(known)
    counts = known.sum(axis=0)
    if not chosen:
        fullest = np.argsort(-counts, kind="stable")[:2].tolist()
        assert len(fullest) < 2 or times(known, fullest) == 0
        return
    others = [device for device in range(known.shape[1]) if device not in chosen]
    assert len(chosen) >= 2
    assert times(known, chosen) > 0
    assert all(counts[device] <= counts[chosen].min() for device in others)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9), st.permutations(range(5)))
def test_of_nested_gaps_no_other_devices_make_a_larger_table(rows: list[int], order: list[int]) -> None:
    known = nested(rows, 5)[:, order]
    chosen = full_devices(known)
    best = max(times(known, list(each)) for k in range(2, 6) for each in combinations(range(5), k))
    assert times(known, chosen) == best if chosen else best == 0


def test_of_equal_tables_that_of_more_devices_is_taken() -> None:
    assert full_devices(nested([3, 3, 2], 3)) == [0, 1, 2]


def test_one_device_is_nothing_to_compare() -> None:
    assert full_devices(np.ones((3, 1), dtype=np.bool_)) == []
    assert full_devices(np.zeros((0, 3), dtype=np.bool_)) == []
