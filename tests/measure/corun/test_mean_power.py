"""Mean power in the window, from what a sensor saw before, in and after it."""

import pytest

from crosscast.measure.corun.session import Span, powers
from crosscast.measure.energy import Reading

STEPS = Reading("package-0", 4, (0.0, 1.0, 2.0, 3.0), (0.0, 10.0, 40.0, 50.0), "J")
"""10 W for a second, 30 W for one, and 10 W for one."""


@pytest.mark.parametrize(
    ("time", "watts"),
    [
        (Span(100.0, 103.0), 50 / 3),
        (Span(101.0, 102.0), 30.0),
        (Span(100.5, 101.5), 20.0),
        (Span(90.0, 101.0), 10.0),
        (Span(102.5, 200.0), 10.0),
    ],
)
def test_power_is_energy_in_the_window_by_time(time: Span, watts: float) -> None:
    assert powers([STEPS], 100.0, time) == {"package-0": pytest.approx(watts)}


def test_power_that_is_read_as_power_is_averaged() -> None:
    ramp = Reading("gpu", 3, (0.0, 1.0, 2.0), (0.0, 100.0, 200.0), "W")
    found = powers([STEPS, ramp], 0.0, Span(0.0, 2.0))
    assert found == {"package-0": pytest.approx(20.0), "gpu": pytest.approx(100.0)}


def test_what_was_not_watched_has_no_power() -> None:
    assert powers([STEPS], 100.0, Span(0.0, 1.0)) == {}
    assert powers([], 0.0, Span(0.0, 1.0)) == {}
