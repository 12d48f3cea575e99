"""Bag times from slowdowns: as counted by hand, within bounds, and the same whoever comes first."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.forecast import bag_time, bag_times, even_slowdown, with_fewer

TIMES = st.lists(st.floats(0.01, 100), min_size=2, max_size=5)


def by_number(each: dict[int, float]) -> Callable[[tuple[int, ...]], list[float]]:
    """Slowdowns that depend on how many run."""
    return lambda running: [each[len(running)]] * len(running)


def test_three_that_end_one_by_one() -> None:
    """Of 1, 2 and 4 s: 3 s until the first ends; then 1 s of work at 2; then 2 s alone."""
    time, overlap = bag_time([1.0, 2.0, 4.0], by_number({3: 3.0, 2: 2.0}))
    assert (time, overlap) == pytest.approx((3 + 2 + 2, 3 / 7))


def test_the_one_that_ends_first_is_told_by_its_slowdown_not_by_its_time_alone() -> None:
    """The short one is slowed down so much that the long one ends first, after 3 s; 0.7 s are left."""
    asked = []

    def slowdowns(running: tuple[int, ...]) -> list[float]:
        asked.append(running)
        return [10.0, 1.5]

    assert bag_time([1.0, 2.0], slowdowns) == pytest.approx((3 + 0.7, 3 / 3.7))
    assert asked == [(0, 1)]


def test_those_that_are_left_are_named_by_their_places() -> None:
    asked = []

    def slowdowns(running: tuple[int, ...]) -> list[float]:
        asked.append(running)
        return [1.0] * len(running)

    assert bag_time([3.0, 1.0, 2.0], slowdowns)[0] == pytest.approx(3.0)
    assert asked == [(0, 1, 2), (0, 2)]


def test_one_alone_takes_its_time() -> None:
    assert bag_time([2.5], by_number({})) == (2.5, 1.0)


def test_equal_members_end_together() -> None:
    assert bag_time([0.1, 0.1, 0.1], by_number({3: 2.7})) == pytest.approx((0.27, 1.0))


@given(TIMES, st.data())
def test_times_lie_between_the_longest_and_the_sum(times: list[float], data: st.DataObject) -> None:
    """If nobody is faster in company, nor slower than if they took turns."""
    each = {n: data.draw(st.floats(1, n)) for n in range(2, len(times) + 1)}
    time, overlap = bag_time(times, by_number(each))
    assert max(times) * (1 - 1e-9) <= time <= sum(times) * (1 + 1e-9)
    assert 0 < overlap <= 1


@given(TIMES)
def test_undisturbed_members_take_as_long_as_the_longest(times: list[float]) -> None:
    assert bag_time(times, lambda running: [1.0] * len(running))[0] == pytest.approx(max(times))


@given(TIMES)
def test_members_that_take_turns_take_the_sum(times: list[float]) -> None:
    assert bag_time(times, lambda running: [float(len(running))] * len(running))[0] == pytest.approx(
        sum(times)
    )


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(1, 5)), min_size=2, max_size=5), st.randoms())
def test_the_order_of_the_members_does_not_matter(members: list[tuple[float, float]], random: Random) -> None:
    shuffled = random.sample(members, len(members))

    def took(bag: list[tuple[float, float]]) -> tuple[float, float]:
        return bag_time([time for time, _ in bag], lambda running: [bag[place][1] for place in running])

    assert took(shuffled) == pytest.approx(took(members))


@given(TIMES, st.floats(0.1, 10))
def test_twice_the_times_are_twice_the_time(times: list[float], factor: float) -> None:
    slowed = by_number({2: 1.4, 3: 2.2, 4: 2.5, 5: 4.0})
    time, overlap = bag_time(times, slowed)
    longer, same = bag_time([factor * each for each in times], slowed)
    assert (longer, same) == pytest.approx((factor * time, overlap))


@given(st.lists(TIMES.filter(lambda times: len(times) >= 3).map(lambda times: times[:3]), min_size=1))
def test_many_bags_take_what_each_takes_by_itself(bags: list[list[float]]) -> None:
    slowed = np.array([2.0, 1.5, 1.2])

    def left(running: Flags) -> Reals:
        return np.broadcast_to(slowed - 0.1, running.shape)

    together = bag_times(np.array(bags), np.tile(slowed, (len(bags), 1)), left)
    for place, times in enumerate(bags):
        alone = bag_time(
            times, lambda running: [slowed[each] - (0.1 if len(running) < 3 else 0.0) for each in running]
        )
        assert alone == pytest.approx((together.time_s[place], together.overlap[place]))


@pytest.mark.parametrize(("times", "slowed"), [([np.nan, 1.0], [2.0, 2.0]), ([1.0, 1.0], [2.0, np.nan])])
def test_what_is_not_known_makes_a_time_unknown(times: list[float], slowed: list[float]) -> None:
    assert np.isnan(bag_time(times, lambda running: slowed)).all()


@pytest.mark.parametrize(
    ("times", "slowed", "name"), [([0.0, 1.0], 2.0, "solo times"), ([1.0, 2.0], -1.0, "slowdowns")]
)
def test_times_and_slowdowns_are_above_0(times: list[float], slowed: float, name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected numbers above 0, found"):
        bag_time(times, lambda running: [slowed] * len(running))


@given(TIMES, st.floats(1, 5))
def test_an_even_slowdown_is_found_again_from_the_time(times: list[float], slowdown: float) -> None:
    members = len(times)
    time, _ = bag_time(
        times,
        lambda running: with_fewer(np.full(len(running), slowdown), members, np.array(len(running))).tolist(),
    )
    found = even_slowdown(np.array([times]), np.array([time]))
    assert found == pytest.approx([slowdown], rel=1e-6, abs=1e-6)


def test_a_bag_that_takes_no_longer_than_its_longest_slows_nobody_down() -> None:
    assert even_slowdown(np.array([[1.0, 2.0]]), np.array([1.9])).tolist() == [1.0]


def test_a_slowdown_with_fewer_ends_at_1() -> None:
    assert with_fewer(np.array(2.0), 3, np.array([1, 2, 3])).tolist() == [1.0, 1.5, 2.0]
