"""Which devices are measured first: all sets, or a sample that is the same for a seed."""

from math import comb

import pytest

from crosscast.errors import InputError
from crosscast.evaluate.time import MOST_SETS, probe_sets


def test_fifteen_devices_have_105_pairs() -> None:
    sets = probe_sets(15, 2, seed=0)
    assert len(sets) == len(set(sets)) == 105
    assert all(first < second for first, second in sets)


def test_no_probe_is_one_empty_set() -> None:
    assert probe_sets(4, 0, seed=0) == ((),)


def test_too_many_sets_are_sampled_by_the_seed() -> None:
    assert comb(30, 2) > MOST_SETS
    sets = probe_sets(30, 2, seed=1)
    assert len(set(sets)) == MOST_SETS
    assert sets == probe_sets(30, 2, seed=1) != probe_sets(30, 2, seed=2)


@pytest.mark.parametrize("probes", [-1, 3, 4])
def test_a_device_must_be_left_to_predict(probes: int) -> None:
    with pytest.raises(InputError, match=f"probes: expected 0 to 2 of 3 devices, found {probes}"):
        probe_sets(3, probes, seed=0)
