"""A forecast quantity says how sure it is, and contradicts itself nowhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.predict.configuration.forecast import Quantity

NONE = np.empty(0)
ERRORS = st.lists(st.integers(-400, 400).map(lambda each: each / 100), min_size=2, max_size=30).map(
    lambda found: np.sort(np.array(found))
)


def quantity(errors: Reals, centre: float = 100.0, spread: float = 0.1) -> Quantity:
    return Quantity(np.array([centre]), np.array([spread]), errors)


@given(ERRORS.filter(lambda errors: bool((np.diff(errors) > 0).all())), st.floats(0.001, 0.999))
def test_a_quantile_has_its_probability(errors: Reals, probability: float) -> None:
    found = quantity(errors)
    limit = float(found.quantile(probability)[0])
    assert found.probability_within(limit)[0] == pytest.approx(probability, abs=1e-6)


@given(ERRORS, st.floats(0.001, 0.999))
def test_where_errors_agree_a_quantile_has_at_least_its_probability(
    errors: Reals, probability: float
) -> None:
    found = quantity(errors)
    limit = float(found.quantile(probability)[0]) * (1 + 1e-9)
    assert found.probability_within(limit)[0] >= probability - 1e-6


@given(ERRORS, st.lists(st.floats(1.0, 1e4), min_size=2, max_size=20))
def test_a_higher_limit_is_as_likely_or_likelier_kept(errors: Reals, limits: list[float]) -> None:
    found = [float(quantity(errors).probability_within(limit)[0]) for limit in sorted(limits)]
    assert (np.diff(found) >= 0).all()
    assert min(found) >= 0
    assert max(found) <= 1


def test_all_is_certain_beyond_the_errors() -> None:
    found = quantity(np.array([-1.0, 0.0, 2.0]))
    at = [float(found.probability_within(100 * np.exp(0.1 * error))[0]) for error in (-1.01, -0.5, 1, 2.01)]
    assert at == pytest.approx([0, 0.25, 0.75, 1])


def test_what_was_measured_is_certain() -> None:
    found = quantity(np.array([-1.0, 0.0, 1.0]), spread=0.0)
    assert found.quantile(0.9)[0] == found.quantile(0.1)[0] == 100
    assert found.probability_within(100.0)[0] == 1
    assert found.probability_within(99.999)[0] == 0


def test_without_errors_the_centre_is_all_there_is() -> None:
    found = Quantity(np.array([100.0, 200.0]), np.array([np.nan, 0.0]), NONE)
    assert found.quantile(0.9).tolist() == [100, 200]
    assert found.probability_within(150.0).tolist() == [1, 0]


def test_one_error_is_a_step() -> None:
    found = quantity(np.array([0.5]))
    edge = 100 * np.exp(0.05)
    assert found.probability_within(edge * 0.999)[0] == 0
    assert found.probability_within(edge * 1.001)[0] == 1


@pytest.mark.parametrize("spread", [0.1, 0.0, np.nan])
def test_what_has_no_forecast_keeps_to_nothing(spread: float) -> None:
    assert quantity(np.array([-1.0, 1.0]), np.nan, spread).probability_within(1e9)[0] == 0
