"""A choice that is corrected by what is measured: down, sideways at the bottom, up, and back to the best."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_surfaces import made_surfaces

from crosscast.decide.policies import Fixed, Limited, limited
from crosscast.decide.power_cap import Method, within_cap
from crosscast.predict.configuration.data import Surfaces
from made_walks import Wanderer, random_surfaces


def path(
    method: Method,
    surfaces: Surfaces,
    cap: float,
    row: int = 0,
    budget: int = 99,
    samples: tuple[int, ...] = (0,),
) -> list[int]:
    """All configurations that a walk takes with a budget."""
    walk = method.fit(surfaces, samples).walk(
        surfaces.observed(row, samples), cap, surfaces.known[row], budget
    )
    numbers = [next(walk)]
    while len(numbers) <= budget:
        try:
            numbers.append(walk.send(surfaces.observed(row, (numbers[-1],))))
        except StopIteration:
            break
    return numbers


def machine(time_s: list[float], power_w: list[float]) -> Surfaces:
    """One kernel on a 2 by 3 machine: a_w 0 and then 1, b_hz 0 to 2 each."""
    one = random_surfaces(0, programs=1, knobs=(2, 3), missing=0)
    return replace(one, kernels=one.kernels[:1], time_s=np.array([time_s]), power_w=np.array([power_w]))


EVEN = machine([9, 7, 5, 8, 4, 2], [10, 20, 30, 15, 40, 50])


def test_names_say_what_was_added() -> None:
    assert limited(Fixed()).name == "fixed+fl"
    assert limited(Fixed(), ups=True).name == "fixed+steps"
    assert limited(Fixed()).baseline
    assert limited(Wanderer(confidence=0.9)).confidence == 0.9


def test_with_one_change_left_it_returns_to_what_it_knows_where_that_is_wanted() -> None:
    returns = Limited(Wanderer(5), ups=False, name="returns", returns=True)
    assert path(returns, EVEN, 15, budget=0) == [5]
    assert path(returns, EVEN, 15, budget=1) == [5, 0]
    assert path(returns, EVEN, 15, budget=2)[-1] == 0
    assert path(limited(Wanderer(5)), EVEN, 15, budget=1) == [5, 2]
    # With changes enough it is the same.
    assert path(returns, EVEN, 45) == path(limited(Wanderer(5)), EVEN, 45)


def test_it_steps_down_while_over_and_returns_to_the_best_measured() -> None:
    fl = limited(Wanderer(5))
    assert path(fl, EVEN, 50) == [5]
    assert path(fl, EVEN, 45) == [5, 2]
    assert path(fl, EVEN, 25) == [5, 2, 1]
    assert path(fl, EVEN, 5) == [5, 2, 1, 0]
    # The sample at 4 keeps to the cap too and is faster than 2, where the steps end.
    assert path(fl, EVEN, 45, samples=(4, 0)) == [5, 2, 4]


def test_without_ups_it_stays_under_the_cap_once_there() -> None:
    assert path(limited(Wanderer(0)), EVEN, 100) == [0]


def test_with_ups_it_climbs_while_that_helps_and_goes_back() -> None:
    steps = limited(Wanderer(0), ups=True)
    assert path(steps, EVEN, 100) == [0, 3, 4, 5]
    # 3 is in reach, 4 is over the cap: back to 3.
    assert path(steps, EVEN, 35) == [0, 3, 4, 3]
    # Raising the first knob is of no use: the second is raised from where it started.
    useless = machine([9, 7, 5, 9, 7, 5], [10, 20, 30, 11, 21, 31])
    assert path(steps, useless, 100) == [0, 3, 1, 2]


def test_no_step_up_is_taken_that_cannot_be_taken_back() -> None:
    steps = limited(Wanderer(0), ups=True)
    assert path(steps, EVEN, 35, budget=0) == [0]
    assert path(steps, EVEN, 35, budget=1) == [0]
    assert path(steps, EVEN, 35, budget=2) == [0, 3]
    assert path(steps, EVEN, 35, budget=3) == [0, 3, 4, 3]


def test_at_the_bottom_it_looks_for_less_power_where_that_is_noise() -> None:
    # The second knob changes nothing at the first one's minimum.
    noisy = machine([5.0, 5.1, 4.9, 3, 3, 3], [10.05, 10.06, 9.98, 20, 20, 20])
    steps = limited(Wanderer(0), ups=True)
    assert path(steps, noisy, 10.0) == [0, 1, 2]
    assert path(limited(Wanderer(0)), noisy, 10.0) == [0]
    # Where it costs power, one step shows that; then the other knob, which costs power too.
    assert path(steps, EVEN, 9.0) == [0, 1, 3]


@given(seed=st.integers(0, 10_000), ups=st.booleans(), budget=st.integers(0, 12), start=st.integers(0, 8))
@settings(max_examples=80, deadline=None)
def test_with_changes_left_it_ends_at_the_fastest_that_it_measured_within_the_cap(
    seed: int, ups: bool, budget: int, start: int
) -> None:
    surfaces = random_surfaces(seed)
    row = seed % len(surfaces.kernels)
    cap = float(np.nanquantile(surfaces.power_w[row], 0.5))
    numbers = path(limited(Wanderer(start), ups), surfaces, cap, row, budget, (8, 0))
    assert len(numbers) <= budget + 1
    assert surfaces.known[row, numbers].all()
    assert all(one != other for one, other in pairwise(numbers))
    seen = [n for n in {*numbers, 0, 8} if within_cap(float(surfaces.power_w[row, n]), cap)]
    over = not within_cap(float(surfaces.power_w[row, numbers[0]]), cap)
    if seen and (len(numbers) <= budget or (ups and not over and budget > 1)):
        assert surfaces.time_s[row, numbers[-1]] == min(surfaces.time_s[row, n] for n in seen)


@pytest.mark.parametrize("row", range(4))
def test_more_changes_are_never_worse_with_ups(row: int) -> None:
    surfaces = made_surfaces(2, noise=0.01)
    steps = limited(Fixed(), ups=True)
    for cap in surfaces.power_w[row]:
        ends = [path(steps, surfaces, cap, row, budget, (11, 0))[-1] for budget in range(9)]
        gains = [
            within_cap(float(surfaces.power_w[row, end]), cap) / surfaces.time_s[row, end] for end in ends
        ]
        assert gains == sorted(gains)
