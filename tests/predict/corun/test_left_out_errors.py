"""Errors on what was left out, and how far intervals reach by them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from crosscast.errors import InputError
from crosscast.predict.corun.forecast import LeftOut

GROUPS = tuple("abcdefgh")


def made(seed: int = 0, *, slope: float = 0.0, values: bool = True) -> LeftOut:
    """Errors of eight groups, 60 each, whose spread rises with the logarithm of what is predicted."""
    random = np.random.default_rng(seed)
    log_value = random.uniform(-0.2, 1.0, 480)
    spread = 0.05 + slope * np.maximum(log_value, 0)
    return LeftOut(
        random.normal(0, spread),
        np.repeat(np.arange(8), 60),
        GROUPS,
        np.arange(480) // 2,
        log_value if values else None,
    )


@given(st.integers(0, 200), st.floats(0.05, 0.9), st.floats(0.0, 0.5))
@settings(max_examples=30, deadline=None)
def test_the_more_often_an_interval_is_to_hold_the_further_it_reaches(
    seed: int, level: float, slope: float
) -> None:
    errors = made(seed, slope=slope)
    near, far = errors.reach(level, 0.5), errors.reach(level + 0.09, 0.5)
    assert 0 < near <= far


def test_intervals_hold_about_as_often_as_they_say() -> None:
    shares: dict[float, list[float]] = {0.5: [], 0.9: []}
    for seed in range(12):
        errors, new = made(seed, slope=0.2), made(seed + 100, slope=0.2)
        assert new.log_value is not None
        for level, found in shares.items():
            held = np.abs(new.log_error) <= errors.reach(level, new.log_value)
            found.append(float(held.mean()))
    for level, found in shares.items():
        assert np.mean(found) == pytest.approx(level, abs=0.03)


def test_intervals_are_wider_where_larger_values_are_less_sure() -> None:
    errors = made(slope=0.4)
    reach = errors.reach(0.9, np.array([-1.0, 0.0, 0.5, 1.0]))
    assert reach[0] == reach[1]
    assert reach[3] > reach[2] > 2 * reach[1]


@pytest.mark.parametrize("errors", [made(values=False), made(slope=-0.04)], ids=["untold", "surer"])
def test_intervals_are_never_narrower_for_larger_values(errors: LeftOut) -> None:
    reach = errors.reach(0.9, np.array([0.0, 2.0]))
    assert reach[0] == pytest.approx(reach[1])


def test_errors_that_are_all_0_reach_nowhere() -> None:
    errors = LeftOut(np.zeros(4), np.array([0, 0, 1, 1]), ("a", "b"), None, np.array([0.1, 0.2, 0.3, 0.4]))
    assert errors.reach(0.9, 0.3) == 0


def test_asking_again_gives_the_same() -> None:
    errors = made(slope=0.2)
    first = errors.reach(0.9, 0.4)
    errors.reach(0.5, 0.4)
    assert errors.reach(0.9, 0.4) == first
    assert made(slope=0.2).reach(0.9, 0.4) == first


def test_errors_come_back_from_their_arrays() -> None:
    for errors in (made(slope=0.2), made(values=False)):
        again = LeftOut.from_state(errors.state())
        assert again.groups == errors.groups
        assert_array_equal(again.log_error, errors.log_error)
        assert again.reach(0.9, 0.7) == errors.reach(0.9, 0.7)
        assert (again.log_value is None) == (errors.log_value is None)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"log_error": np.zeros(3)}, r"^model: "),
        ({"log_error": np.full(480, np.nan)}, r"^model: log_error: expected finite numbers"),
        ({"group": np.zeros(480, np.int64)}, r"^model: "),
        ({"group": np.full(480, 8)}, r"^model: group: expected integers from 0 to 7"),
        ({"groups": np.array([], np.str_)}, r"^model: "),
        ({"bag": np.zeros(3, np.int64)}, r"^model: "),
        ({"log_value": np.zeros(3)}, r"^model: "),
    ],
)
def test_damaged_errors_are_refused(damage: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LeftOut.from_state({**made().state(), **damage})


def test_absurd_errors_reach_as_far_as_there_are_numbers() -> None:
    errors = made(slope=0.3)
    absurd = LeftOut(1e6 * errors.log_error, errors.group, GROUPS, errors.bag, errors.log_value)
    assert_array_equal(absurd.reach(0.9, np.array([0.0, 200.0])), [100.0, 100.0])
