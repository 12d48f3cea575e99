"""A limit of the slowdown is over a baseline, and kept with a probability; least power is an objective."""

from __future__ import annotations

import numpy as np
import pytest

from crosscast.data.configuration import Configuration
from crosscast.prediction.configuration.choice import NO_CAP, choice_of, within_slowdown
from crosscast.prediction.configuration.data import ConfigurationSpace, Quantity, SurfaceForecast
from support.refusals import refusal

SPACE = ConfigurationSpace(
    tuple(Configuration("gpu", {"core_clock_hz": 1e9 * (4 - place)}) for place in range(4))
)
ERRORS = np.linspace(-1.0, 1.0, 201)


def forecast(spread: float = 0.0, measured: tuple[int, ...] = (0,)) -> SurfaceForecast:
    known = np.isin(np.arange(4), measured)
    apart = np.where(known, 0.0, spread)
    time = Quantity(np.array([1.0, 1.03, 1.1, 2.0]), apart, ERRORS)
    return SurfaceForecast(time, Quantity(np.array([100.0, 80.0, 60.0, 50.0]), apart, ERRORS), known)


@pytest.mark.parametrize(
    ("most", "allowed"),
    [
        (None, [1, 1, 1, 1]),
        (0.0, [1, 0, 0, 0]),
        (0.05, [1, 1, 0, 0]),
        (0.1, [1, 1, 1, 0]),
        (2.0, [1, 1, 1, 1]),
    ],
)
def test_only_what_is_slower_by_at_most_a_share_is_allowed(most: float | None, allowed: list[int]) -> None:
    assert within_slowdown(forecast(), most, 0).tolist() == [bool(each) for each in allowed]


def test_what_may_be_too_slow_is_not_allowed_but_the_baseline_always_is() -> None:
    unsure = forecast(spread=0.1)
    assert within_slowdown(unsure, 0.05, 0).tolist() == [True, False, False, False]
    assert within_slowdown(unsure, 0.2, 0).tolist() == [True, True, False, False]
    assert within_slowdown(forecast(spread=0.1, measured=()), 0.0, 2)[2]


@pytest.mark.parametrize(
    ("objective", "most", "place"),
    [
        ("power", None, 3),
        ("power", 0.1, 2),
        ("energy", None, 2),
        ("energy", 0.05, 1),
        ("performance", 0.1, 0),
    ],
)
def test_the_best_within_the_limit_is_chosen(objective: str, most: float | None, place: int) -> None:
    choice = choice_of(forecast(), SPACE, NO_CAP, objective=objective, max_slowdown=most)  # type: ignore[arg-type]
    assert choice.recommended is not None
    assert choice.recommended.configuration == SPACE.configurations[place]
    document = choice.to_dict()
    assert document["power_cap_w"] is None
    assert document["max_slowdown"] == most
    assert (document["baseline"] is None) == (most is None)


def test_a_cap_and_a_limit_are_both_kept() -> None:
    choice = choice_of(forecast(), SPACE, 90.0, objective="performance", max_slowdown=0.05)
    assert choice.recommended is not None
    assert choice.recommended.configuration == SPACE.configurations[1]
    assert choice_of(forecast(), SPACE, 70.0, max_slowdown=0.05).recommended is None


@pytest.mark.parametrize("most", [-0.1, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(most: float) -> None:
    assert "max slowdown: expected a share such as" in refusal(within_slowdown, forecast(), most, 0)
