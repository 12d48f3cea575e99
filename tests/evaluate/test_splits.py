"""Splits hold whole groups out, each once."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import InputError
from crosscast.evaluate.time import SPLITS, Split, split_named
from crosscast.predict.time.data import Grid
from stand_in_models import make_grid, random_grid


def grid_of(applications: list[str], kernels: list[str]) -> Grid:
    return make_grid(np.zeros((len(applications), 3)), applications, kernels)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=2, max_size=12))
def test_no_group_is_on_both_sides(pairs: list[tuple[str, str]]) -> None:
    grid = grid_of([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    keys: dict[str, Callable[[int], object]] = {
        "leave-application-out": lambda row: pairs[row][0],
        "leave-kernel-out": lambda row: pairs[row],
        "leave-device-and-application-out": lambda row: pairs[row][0],
    }
    for split, key in keys.items():
        if len({key(row) for row in range(len(pairs))}) < 2:
            continue
        for fold in SPLITS[split].folds(grid):
            learned = {key(row) for row in fold.train_rows.tolist()}
            assert learned.isdisjoint({key(row) for row in fold.test_rows.tolist()})


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_every_cell_is_held_out_exactly_once(split: Split) -> None:
    grid = random_grid()
    times = np.zeros(grid.log_time.shape, dtype=int)
    for fold in split.folds(grid):
        times[np.ix_(fold.test_rows, fold.test_devices)] += 1
    assert (times == 1).all()


def test_new_devices_are_in_no_fit() -> None:
    for split in SPLITS.values():
        for fold in split.folds(random_grid()):
            shared = set(fold.train_devices.tolist()) & set(fold.test_devices.tolist())
            assert bool(shared) != split.new_devices


def test_kernels_of_one_name_in_two_applications_are_two_kernels() -> None:
    grid = grid_of(["a", "b", "a"], ["x", "x", "x"])
    folds = SPLITS["leave-kernel-out"].folds(grid)
    assert [fold.held_out for fold in folds] == ["a/x", "b/x"]
    assert [fold.test_rows.tolist() for fold in folds] == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        ("leave-application-out", "expected at least 2 applications to split by, found 1"),
        ("leave-device-out", "expected at least 2 devices to split by, found 1"),
        ("leave-device-and-application-out", "expected at least 2 applications"),
    ],
)
def test_too_few_groups_are_refused(split: str, sentence: str) -> None:
    grid = make_grid(np.zeros((3, 1)), ["a", "a", "a"])
    with pytest.raises(InputError, match=sentence):
        SPLITS[split].folds(grid)


def test_an_unknown_split_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"split: expected one of leave-application-out, .*found 'rows'"):
        split_named("rows")
