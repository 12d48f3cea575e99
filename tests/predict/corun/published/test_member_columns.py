"""Columns of members: scaled, without gaps, and the same in whatever order a bag is given."""

from itertools import permutations

import numpy as np
import pytest
from published_bags import made_co_runs, without
from sklearn.preprocessing import MinMaxScaler

from crosscast.errors import InputError
from crosscast.predict.corun.moolchandani2022 import (
    CONCURRENT,
    FAIRNESS,
    INDIVIDUAL,
    MemberColumns,
    other_features,
    own_first,
    unknown_features,
    value_of,
)
from crosscast.tables.corun.solo import Solo

NAMES = ("CPU_time", "GPU_time", "LLC_miss", FAIRNESS)
BAGS = [bag.solos for bag in made_co_runs((3,), applications=6).bags]


def test_features_scale_as_scikit_learn_scales_them() -> None:
    columns = MemberColumns.fit(NAMES, BAGS)
    values, _ = columns.of(BAGS)
    fairness = columns.choice.fairness(BAGS)
    raw = np.array(
        [
            [*(value_of(solo, name) for name in NAMES[:3]), fair]
            for bag, fairs in zip(BAGS, fairness, strict=True)
            for solo, fair in zip(bag, fairs, strict=True)
        ]
    )
    expected = MinMaxScaler().fit_transform(raw)
    found = np.concatenate(
        [each[np.argsort(order)] for each, order in zip(values, columns.of(BAGS)[1], strict=True)]
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_longest_alone_comes_first() -> None:
    _, order = MemberColumns.fit(NAMES, BAGS).of(BAGS)
    for bag, places in zip(BAGS, order, strict=True):
        times = [bag[place].time_s or 0.0 for place in places]
        assert times == sorted(times, reverse=True)


def test_members_of_one_length_come_in_an_order_that_is_not_that_of_the_bag() -> None:
    alike = tuple(Solo(f"a{n}", "s", "d", 1.0, features={"llc_miss": n / 7, "ipc": 1.0}) for n in (3, 1, 2))
    columns = MemberColumns.fit(("LLC_miss", "IPC"), [alike])
    seen = [columns.of([bag])[0] for bag in permutations(alike)]
    assert all((each == seen[0]).all() for each in seen)


def test_members_without_a_time_come_last() -> None:
    bag = (Solo("a", "s", "d", None, features={"ipc": 2.0}), Solo("b", "s", "d", 0.5, features={"ipc": 1.0}))
    assert MemberColumns.fit(("IPC",), [bag]).of([bag])[1].tolist() == [[1, 0]]


def test_what_no_member_has_is_dropped_and_named() -> None:
    bags = [tuple(without(solo, "llc_miss", "ipc") for solo in bag) for bag in BAGS]
    columns = MemberColumns.fit(("CPU_time", "IPC", "LLC_miss"), bags)
    assert (columns.names, columns.dropped) == (("CPU_time",), ("IPC", "LLC_miss"))


def test_what_some_lack_is_filled_with_the_median_and_flagged() -> None:
    solos = [Solo(f"a{n}", "s", "d", 1.0 + n, features={"ipc": float(n), "llc_miss": 0.0}) for n in range(3)]
    lacks = Solo("lacks", "s", "d", 9.0, features={"llc_miss": 0.0})
    columns = MemberColumns.fit(("IPC", "LLC_miss"), [(solos[0], solos[1]), (solos[2], lacks)])
    assert columns.titles == ("IPC", "LLC_miss", "IPC missing")
    values, _ = columns.of([(lacks, solos[2])])
    # Misses that are 0 are as measured: they are not missing, and have no flag.
    assert values[0].tolist() == [[0.5, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert columns.places(["IPC"]).tolist() == [0, 2]
    assert columns.places(["LLC_miss"]).tolist() == [1]


def test_what_only_a_new_member_lacks_is_filled_too() -> None:
    columns = MemberColumns.fit(("GPU_time", "IPC"), BAGS)
    bag = (without(BAGS[0][0], "ipc"), *BAGS[0][1:])
    values, order = columns.of([bag])
    usual = (columns.usual - columns.low) / columns.span
    assert values[0, order[0].tolist().index(0), 1] == pytest.approx(usual[1])
    assert columns.titles == ("GPU_time", "IPC")


def test_bags_of_which_nothing_is_known_are_refused() -> None:
    nothing = Solo("a", "s", "d", None)
    with pytest.raises(InputError, match=r"^features: expected at least one of IPC, fairness, found none"):
        MemberColumns.fit(("IPC", FAIRNESS), [(nothing, nothing)])


def test_each_member_comes_first_once() -> None:
    assert own_first(3).tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1]]


def test_damaged_columns_are_refused() -> None:
    state = MemberColumns.fit(NAMES, BAGS).state()
    for name, array in (
        ("span", np.zeros(4)),
        ("usual", np.zeros(2)),
        ("flagged", np.array([9])),
        ("columns", np.array([], dtype=np.str_)),
    ):
        with pytest.raises(InputError, match=r"^model: "):
            MemberColumns.from_state({**state, name: array})


def test_counters_of_the_bag_are_never_known_and_the_rest_is_where_a_member_has_it() -> None:
    every = (*INDIVIDUAL, *CONCURRENT, FAIRNESS)
    assert unknown_features(every, BAGS) == CONCURRENT
    poor = [tuple(Solo(solo.application, "s", "d", solo.time_s) for solo in bag) for bag in BAGS]
    assert set(unknown_features(every, poor)) == set(every) - {"GPU_time"}


def test_other_features_are_those_that_the_paper_does_not_have() -> None:
    bag = (Solo("a", "s", "d", 1.0, features={"batch_size": 8.0, "ipc": 1.0, "amp": 0.0}),)
    assert other_features([bag]) == ("amp", "batch_size")
    assert value_of(bag[0], "batch_size") == 8.0
