"""Held-out errors: how far intervals reach, groups weigh the same, and what is kept comes back."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.intervals import HeldOut


def held_out(
    errors: Reals, groups: list[int] | None = None, sources: list[int] | None = None, devices: int = 1
) -> HeldOut:
    """Errors of one device, or of several, in groups of one each unless told otherwise."""
    matrix = np.asarray(errors, dtype=np.float64).reshape(-1, devices)
    n = len(matrix)
    group = np.array(range(n) if groups is None else groups, dtype=np.int64)
    source = np.array([0] * n if sources is None else sources, dtype=np.int64)
    return HeldOut(
        matrix,
        group,
        source,
        tuple(f"g{number}" for number in range(group.max() + 1)),
        tuple(f"s{number}" for number in range(source.max() + 1)),
    )


def test_of_nine_groups_a_90_percent_interval_reaches_to_the_largest_error() -> None:
    found = held_out(np.array([0.1, -0.9, 0.3, 0.2, -0.5, 0.4, 0.8, -0.7, 0.6]))
    assert found.most_level == 0.9
    assert found.reach(0.9, None).tolist() == [0.9]
    # Nine errors and the one to come: half of the ten is the fifth.
    assert found.reach(0.5, None).tolist() == [0.5]
    assert found.reach(0.8, None).tolist() == [0.8]


def test_beyond_what_groups_allow_the_largest_error_is_all_there_is() -> None:
    assert held_out(np.array([0.1, -0.2, 0.3])).reach(0.99, None).tolist() == [0.3]


def test_a_group_weighs_the_same_however_many_runs_it_has() -> None:
    few = held_out(np.array([0.1, 0.2, 0.3, 5.0]))
    many = held_out(np.array([0.1, 0.2, 0.3, *[5.0] * 50]), [0, 1, 2, *[3] * 50])
    for level in (0.2, 0.4, 0.6, 0.8):
        assert few.reach(level, None).tolist() == many.reach(level, None).tolist()
    assert many.weights.sum() == pytest.approx(1)
    assert many.weights[-50:].sum() == pytest.approx(0.25)


def test_errors_of_ratios_are_differences() -> None:
    found = held_out(np.array([[0.1, 0.3], [0.2, 0.2], [-0.4, 0.4]]), devices=2)
    np.testing.assert_allclose(found.reach(0.75, 0), [0, 0.8])
    np.testing.assert_allclose(found.reach(0.5, 1), [0.2, 0])


def test_errors_of_a_source_are_those_of_its_runs_alone() -> None:
    found = held_out(np.array([1.0, 2.0, 3.0, 4.0]), [0, 0, 1, 2], [0, 1, 1, 0])
    own = found.of_source("s1")
    assert own.log_error[:, 0].tolist() == [2, 3]
    assert (own.groups, own.group.tolist(), own.sources) == (("g0", "g1"), [0, 1], ("s1",))
    assert found.of_source("another") is found


def test_without_a_group_the_others_are_left() -> None:
    found = held_out(np.array([1.0, 2.0, 3.0, 4.0]), [0, 0, 1, 2]).without(1)
    assert (found.log_error[:, 0].tolist(), found.group.tolist()) == ([1, 2, 4], [0, 0, 1])
    assert found.groups == ("g0", "g2")


@pytest.mark.parametrize(("level", "groups"), [(0.8, 9), (0.9, 19), (0.5, 4), (0.9, 40)])
def test_intervals_hold_a_new_group_as_often_as_they_say(level: float, groups: int) -> None:
    """Groups that are exchangeable, with errors that hang together within each, and sizes that differ."""
    rng = np.random.default_rng(7)
    inside = []
    for _ in range(1500):
        sizes = rng.integers(1, 5, groups + 1)
        shared = rng.standard_t(3, groups + 1)
        group = np.repeat(np.arange(groups + 1), sizes)
        errors = shared[group] + rng.normal(0, 0.3, len(group))
        known = group < groups
        found = held_out(errors[known], group[known].tolist())
        inside.append(np.mean(np.abs(errors[~known]) <= found.reach(level, None)))
    share = float(np.mean(inside))
    # Between what conformal intervals promise and one group more, with three standard errors.
    slack = 3 * float(np.std(inside)) / np.sqrt(len(inside))
    assert level - slack <= share <= level + 1 / (groups + 1) + slack


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.floats(0.05, 0.95),
    st.floats(0.05, 0.95),
)
def test_a_higher_level_never_reaches_less(errors: list[float], one: float, other: float) -> None:
    found = held_out(np.array(errors))
    low, high = sorted((one, other))
    assert 0 <= found.reach(low, None)[0] <= found.reach(high, None)[0]


def test_what_is_kept_comes_back() -> None:
    before = held_out(np.arange(8.0), [0, 0, 1, 2], [1, 0, 1, 1], devices=2)
    after = HeldOut.from_state(before.state())
    for name in ("log_error", "group", "source"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert (after.groups, after.sources) == (before.groups, before.sources)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"log_error": np.full((4, 2), np.nan)}, "log_error: expected finite numbers"),
        ({"log_error": np.empty((0, 2))}, "expected a group and a source for each"),
        ({"group": np.array([0, 1])}, "found 4 errors, 2 groups and 4 sources"),
        ({"group": np.array([0, 1, 2, 9])}, "group: expected integers from 0 to 2"),
        ({"group": np.array([0, 1, 1, 0])}, "group: expected errors of each of 3 groups"),
        ({"sources": np.array(["s0", "s1", "s2"])}, "source: expected errors of each of 3 sources"),
        ({"groups": np.array([1.0])}, "groups: expected texts"),
    ],
)
def test_damaged_errors_are_refused(changed: dict[str, Any], reason: str) -> None:
    state = held_out(np.arange(8.0), [0, 0, 1, 2], [1, 0, 1, 1], devices=2).state()
    with pytest.raises(InputError) as caught:
        HeldOut.from_state({**state, **changed})
    assert reason in str(caught.value)
