"""Errors on what was left out, and how far intervals reach by them.

Who shares a device is no faster than alone.
"""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.corun.forecast import CoRunPrediction, CoRunResiduals, longest_alone, physical
from crosscast.prediction.corun.slowdowns import even_slowdown, mix_times, with_fewer
from support.examples import examples
from support.mix_times import mix_time

GROUPS = tuple("abcdefgh")


def made(seed: int = 0, *, slope: float = 0.0, values: bool = True) -> CoRunResiduals:
    """Errors of eight groups, 60 each, whose spread rises with the logarithm of what is predicted."""
    random = np.random.default_rng(seed)
    log_value = random.uniform(-0.2, 1.0, 480)
    spread = 0.05 + slope * np.maximum(log_value, 0)
    return CoRunResiduals(
        random.normal(0, spread),
        np.repeat(np.arange(8), 60),
        GROUPS,
        np.arange(480) // 2,
        log_value if values else None,
    )


@given(st.integers(0, 200), st.floats(0.05, 0.9), st.floats(0.0, 0.5))
@examples(30)
def test_the_surer_an_interval_the_further_it_reaches(seed: int, level: float, slope: float) -> None:
    errors = made(seed, slope=slope)
    near, far = errors.half_width(level, 0.5), errors.half_width(level + 0.09, 0.5)
    assert 0 < near <= far


def test_intervals_hold_as_often_as_they_say_or_somewhat_more_by_caution() -> None:
    shares: dict[float, list[float]] = {0.5: [], 0.9: []}
    for seed in range(12):
        errors, new = made(seed, slope=0.2), made(seed + 100, slope=0.2)
        assert new.log_value is not None
        for level, result in shares.items():
            held = np.abs(new.log_error) <= errors.half_width(level, new.log_value)
            result.append(float(held.mean()))
    for level, result in shares.items():
        assert level <= np.mean(result) <= level + 0.06


TIMES = st.lists(st.floats(0.01, 100), min_size=2, max_size=5)


def by_number(each: dict[int, float]) -> Callable[[tuple[int, ...]], list[float]]:
    """Slowdowns that depend on how many run."""
    return lambda running: [each[len(running)]] * len(running)


def test_the_one_that_ends_first_is_told_by_its_slowdown_not_by_its_time_alone() -> None:
    """The short one is slowed down so much that the long one ends first, after 3 s; 0.7 s are left."""
    calls = []

    def slowdowns(running: tuple[int, ...]) -> list[float]:
        calls.append(running)
        return [10.0, 1.5]

    assert mix_time([1.0, 2.0], slowdowns) == pytest.approx(3 + 0.7)
    assert calls == [(0, 1)]


@given(TIMES, st.data())
def test_times_lie_between_the_longest_and_the_sum(times: list[float], data: st.DataObject) -> None:
    """If nobody is faster in company, nor slower than if they took turns."""
    each = {n: data.draw(st.floats(1, n)) for n in range(2, len(times) + 1)}
    time = mix_time(times, by_number(each))
    assert max(times) * (1 - 1e-9) <= time <= sum(times) * (1 + 1e-9)


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(1, 5)), min_size=2, max_size=5), st.randoms())
def test_the_order_of_the_members_does_not_matter(members: list[tuple[float, float]], random: Random) -> None:
    shuffled = random.sample(members, len(members))

    def took(mix: list[tuple[float, float]]) -> float:
        return mix_time([time for time, _ in mix], lambda running: [mix[index][1] for index in running])

    assert took(shuffled) == pytest.approx(took(members))


@given(st.lists(TIMES.filter(lambda times: len(times) >= 3).map(lambda times: times[:3]), min_size=1))
def test_many_mixes_take_what_each_takes_by_itself(mixes: list[list[float]]) -> None:
    slowed = np.array([2.0, 1.5, 1.2])

    def left(rows: Integers, columns: Integers) -> Reals:
        return np.tile(slowed[columns] - 0.1, (len(rows), 1))

    together = mix_times(np.array(mixes), np.tile(slowed, (len(mixes), 1)), left)
    for index, times in enumerate(mixes):
        alone = mix_time(
            times, lambda running: [slowed[each] - (0.1 if len(running) < 3 else 0.0) for each in running]
        )
        assert alone == pytest.approx(together[index])


@pytest.mark.parametrize(("times", "slowed"), [([np.nan, 1.0], [2.0, 2.0]), ([1.0, 1.0], [2.0, np.nan])])
def test_what_is_not_known_makes_a_time_unknown(times: list[float], slowed: list[float]) -> None:
    assert np.isnan(mix_time(times, lambda running: slowed))


@pytest.mark.parametrize(
    ("times", "slowed", "name"), [([0.0, 1.0], 2.0, "isolated times"), ([1.0, 2.0], -1.0, "slowdowns")]
)
def test_times_and_slowdowns_are_above_0(times: list[float], slowed: float, name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected numbers above 0, found"):
        mix_time(times, lambda running: [slowed] * len(running))


@given(TIMES, st.floats(1, 5))
def test_an_even_slowdown_is_found_again_from_the_time(times: list[float], slowdown: float) -> None:
    members = len(times)
    time = mix_time(
        times, lambda running: with_fewer(np.full(len(running), slowdown), members, len(running)).tolist()
    )
    result = even_slowdown(np.array([times]), np.array([time]))
    assert result == pytest.approx([slowdown], rel=1e-6, abs=1e-6)


values = st.floats(0.2, 5.0)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=4), values)
def test_no_slowdown_is_below_1_nor_a_mix_too_short(runs: list[tuple[float, float]], time_s: float) -> None:
    mix = tuple(IsolatedRun(f"{place}", "small", "cpu", alone) for place, (alone, _) in enumerate(runs))
    slowdown = np.array([each for _, each in runs])
    nothing = np.array([np.nan])
    result = CoRunPrediction((slowdown,), np.array([time_s]), nothing, nothing)
    bounded = physical(result, [mix])
    assert (bounded.slowdown[0] == np.maximum(slowdown, 1.0)).all()
    assert bounded.time_s[0] == max(time_s, longest_alone(mix))
