"""What is held out is not learned from: benchmarks, bags, and what bags have in common."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_co_runs import NAMES, made_bag, made_co_runs, made_solo

from crosscast.errors import InputError
from crosscast.evaluate.corun import SPLITS, folds_of
from crosscast.tables.corun.bag import Bag

BAGS = made_co_runs(bags=(2, 3)).bags


def names_of(bag: Bag) -> tuple[str, ...]:
    return tuple(sorted(solo.name for solo in bag.solos))


@given(st.sampled_from(SPLITS), st.integers(0, 1000))
def test_every_bag_is_on_one_side_of_a_fold(split: str, seed: int) -> None:
    for fold in folds_of(BAGS, split, seed):
        both = np.concatenate([fold.train, fold.test])
        assert sorted(both.tolist()) == list(range(len(BAGS)))


def test_no_bag_with_the_benchmark_that_is_left_out_is_learned_from() -> None:
    folds = folds_of(BAGS, "leave-benchmark-out", 0)
    assert [fold.held_out for fold in folds] == sorted(NAMES)
    for fold in folds:
        assert all(fold.held_out in BAGS[place].applications for place in fold.test)
        assert not any(fold.held_out in BAGS[place].applications for place in fold.train)


@pytest.mark.parametrize("split", ["leave-bag-out", "random-80-20"])
def test_repeats_and_reorderings_of_a_bag_are_held_out_together(split: str) -> None:
    twice = [
        *BAGS,
        *(made_bag(bag.solos[::-1], repeat=1) for bag in BAGS),
    ]
    for fold in folds_of(twice, split, 3):
        tested = {names_of(twice[place]) for place in fold.test}
        assert not tested & {names_of(twice[place]) for place in fold.train}


def test_each_bag_is_tested_once_where_bags_are_left_out() -> None:
    tested = np.concatenate([fold.test for fold in folds_of(BAGS, "leave-bag-out", 0)])
    assert sorted(tested.tolist()) == list(range(len(BAGS)))


def test_a_fifth_is_held_out_at_random() -> None:
    (fold,) = folds_of(BAGS, "random-80-20", 0)
    assert len(fold.test) == len(BAGS) // 5


@pytest.mark.parametrize(
    ("bags", "split", "message"),
    [
        (BAGS, "leave-nothing-out", "split: expected one of leave-benchmark-out"),
        (BAGS[:2], "random-80-20", "expected at least 5 different ones"),
        (made_co_runs(NAMES[:2]).bags, "leave-benchmark-out", "at least 3 to leave one out, found 2"),
        (
            [made_bag((made_solo("bfs"), made_solo(name))) for name in NAMES],
            "leave-benchmark-out",
            "bags without bfs to learn from",
        ),
    ],
)
def test_what_cannot_be_split_is_refused(bags: Sequence[Bag], split: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        folds_of(bags, split, 0)
