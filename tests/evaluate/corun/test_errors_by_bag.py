"""Errors of members know their bag, also when they come back from a file."""

from dataclasses import replace

import numpy as np
import pytest
from made_co_runs import made_co_runs

from crosscast.errors import InputError
from crosscast.evaluate.corun import left_out_errors
from crosscast.predict.corun.baselines import Mean
from crosscast.predict.corun.forecast import LeftOut


def test_each_bag_that_is_left_out_has_a_number_and_all_its_members() -> None:
    runs = made_co_runs(bags=(2, 3))
    errors = left_out_errors(runs, Mean(), "leave-benchmark-out", 0)
    slowdown = errors["slowdown"].bag
    assert slowdown is not None
    numbers, counts = np.unique(slowdown, return_counts=True)
    # A bag is left out with each of its applications.
    times = [len(bag.applications) for bag in runs.bags]
    assert len(numbers) == sum(times)
    assert sorted(counts.tolist()) == sorted(
        len(bag.members) for bag, count in zip(runs.bags, times, strict=True) for _ in range(count)
    )
    time = errors["time"].bag
    assert time is not None and sorted(time.tolist()) == numbers.tolist()


def test_members_of_bags_of_which_one_is_not_known_stay_with_their_bag() -> None:
    runs = made_co_runs()
    first, *rest = runs.bags
    half = replace(first, members=(replace(first.members[0], slowdown=None), first.members[1]))
    errors = left_out_errors(replace(runs, bags=(half, *rest)), Mean(), "leave-bag-out", 0)["slowdown"]
    assert errors.bag is not None
    counts = np.unique(errors.bag, return_counts=True)[1].tolist()
    assert sorted(counts) == [1] + [2] * len(rest)


def test_numbers_of_bags_are_kept_and_checked() -> None:
    errors = LeftOut(np.array([0.1, 0.2]), np.array([0, 0]), ("a",), np.array([7, 7]))
    found = LeftOut.from_state(errors.state()).bag
    assert found is not None and found.tolist() == [7, 7]
    bare = LeftOut(errors.log_error, errors.group, errors.groups)
    assert LeftOut.from_state(bare.state()).bag is None
    with pytest.raises(InputError, match="model: bag: expected one for each error, found others"):
        LeftOut.from_state({**errors.state(), "bag": np.array([7])})
