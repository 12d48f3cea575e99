"""Held-out errors: how far intervals reach, groups weigh the same, and what is kept comes back."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.relative import Observations, RelativeResiduals
from crosscast.prediction.relative.artefact import RelativeForecast, forecast_of
from support.refusals import refusal


def residuals(
    errors: Reals, groups: list[int] | None = None, sources: list[int] | None = None, devices: int = 1
) -> RelativeResiduals:
    """Errors of one device, or of several, in groups of one each unless told otherwise."""
    matrix = np.asarray(errors, dtype=np.float64).reshape(-1, devices)
    numbers = groups or range(len(matrix))
    from_ = sources or [0] * len(matrix)
    return RelativeResiduals.of([f"g{each}" for each in numbers], [f"s{each}" for each in from_], matrix)


def test_an_interval_reaches_to_quantiles_of_errors_or_of_their_differences() -> None:
    result = residuals(np.array([0.1, -0.9, 0.3, 0.2, -0.5, 0.4, 0.8, -0.7, 0.6]))
    # Nine errors and the one to come: half of the ten is the fifth.
    assert [result.half_width(level, None).tolist() for level in (0.9, 0.8, 0.5)] == [[0.9], [0.8], [0.5]]
    result = residuals(np.array([[0.1, 0.3], [0.2, 0.2], [-0.4, 0.4]]), devices=2)
    np.testing.assert_allclose(result.half_width(0.75, 0), [0, 0.8])
    np.testing.assert_allclose(result.half_width(0.5, 1), [0.2, 0])


def test_errors_may_be_of_one_source_or_without_a_group() -> None:
    result = residuals(np.array([1.0, 2.0, 3.0, 4.0]), [0, 0, 1, 2], [0, 1, 1, 0])
    of_source = result.of_source("s1")
    assert of_source.log_error[:, 0].tolist() == [2, 3]
    assert (of_source.groups, of_source.group.tolist(), of_source.sources) == (("g0", "g1"), [0, 1], ("s1",))
    assert result.of_source("another") is result
    rows = result.rows(result.group != 1)
    assert (rows.log_error[:, 0].tolist(), rows.group.tolist()) == ([1, 2, 4], [0, 0, 1])
    assert rows.groups == ("g0", "g2")


DEVICES = ("a", "b", "c", "d")


def forecast(
    devices: tuple[str, ...],
    predicted: Reals,
    sources: tuple[str, ...],
    errors: RelativeResiduals,
    relative_to: str | None,
    level: float,
) -> RelativeForecast:
    """That of runs without names."""
    none, empty = ("",) * len(sources), np.empty((len(sources), 0))
    time_s = np.full(len(sources), np.nan)
    runs = Observations(none, none, none, none, sources, (), empty, (), empty, time_s)
    return forecast_of(runs, devices, predicted, errors, relative_to=relative_to, level=level)


@dataclass(frozen=True, eq=False)
class Case:
    """Predicted vectors, and errors that were made before."""

    predicted: Reals
    errors: RelativeResiduals
    sources: tuple[str, ...]

    def forecast(self, relative_to: str | None = None, level: float = 0.9) -> RelativeForecast:
        return forecast(DEVICES, self.predicted, self.sources, self.errors, relative_to, level)


def errors_of(log_error: Reals, groups: int, sources: tuple[str, ...] = ("x",)) -> RelativeResiduals:
    """Errors in groups and of sources, dealt in turn."""
    numbers = range(len(log_error))
    names = [f"g{number % groups}" for number in numbers]
    return RelativeResiduals.of(names, [sources[number % len(sources)] for number in numbers], log_error)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    runs, errors = draw(st.integers(1, 3)), draw(st.integers(2, 9))
    logs = st.floats(-3, 3, width=32)
    # Distinct values, as devices that tie are in the order of their names.
    rows = [draw(st.lists(st.integers(-300, 300), min_size=4, max_size=4, unique=True)) for _ in range(runs)]
    log_error = draw(arrays(np.float64, (errors, 4), elements=logs))
    source = st.sampled_from(("x", "y", "another"))
    return Case(
        np.exp(np.array(rows) / 100),
        errors_of(log_error, draw(st.integers(1, errors // 2)), ("x", "y")),
        tuple(draw(source) for _ in range(runs)),
    )


anything = st.sampled_from((None, *DEVICES))
levels = st.floats(0.05, 0.99)


@given(cases(), anything, levels)
def test_an_interval_holds_its_centre_and_what_times_are_relative_to_is_1(
    case: Case, relative_to: str | None, level: float
) -> None:
    forecast = case.forecast(relative_to, level)
    assert (forecast.low > 0).all()
    assert (forecast.low <= forecast.centre).all()
    assert (forecast.centre <= forecast.high).all()
    if relative_to is None:
        assert (forecast.centre.max(axis=1) == 1).all()
        assert (forecast.high <= 1).all()
    else:
        for values in (forecast.low, forecast.centre, forecast.high):
            assert (values[:, DEVICES.index(relative_to)] == 1).all()


@given(cases(), levels, st.sampled_from(DEVICES), st.sampled_from(DEVICES))
def test_ratios_are_the_same_relative_to_any_device(case: Case, level: float, one: str, other: str) -> None:
    to_one, to_other = case.forecast(one, level), case.forecast(other, level)
    first, second = DEVICES.index(one), DEVICES.index(other)
    np.testing.assert_allclose(to_one.centre, to_other.centre / to_other.centre[:, [first]], rtol=1e-12)
    # One over the other and the other over the one: each interval is the other one's inverse.
    np.testing.assert_allclose(to_one.low[:, second], 1 / to_other.high[:, first], rtol=1e-12)
    np.testing.assert_allclose(to_one.high[:, second], 1 / to_other.low[:, first], rtol=1e-12)
    slowest = case.forecast(None, level).centre
    np.testing.assert_allclose(slowest / slowest[:, [first]], to_one.centre, rtol=1e-12)
    # What the predicted vector was relative to does not matter.
    scaled = Case(case.predicted * 7.5, case.errors, case.sources).forecast(one, level)
    np.testing.assert_allclose([scaled.centre, scaled.high], [to_one.centre, to_one.high], rtol=1e-12)
    assert (scaled.order == to_one.order).all()


@given(cases(), st.permutations(range(4)), levels)
def test_the_order_of_devices_does_not_matter(case: Case, order: list[int], level: float) -> None:
    moved = replace(case.errors, log_error=case.errors.log_error[:, order])
    devices = tuple(DEVICES[index] for index in order)
    one = case.forecast(None, level)
    other = forecast(devices, case.predicted[:, order], case.sources, moved, None, level)
    for name in ("centre", "low", "high", "fastest"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name)[:, order], rtol=1e-9, atol=1e-12)
    for row in range(len(one)):
        assert other.in_order(row) == one.in_order(row)


@given(cases())
def test_probabilities_are_shares(case: Case) -> None:
    forecast = case.forecast()
    np.testing.assert_allclose(forecast.fastest.sum(axis=1), 1)
    assert ((forecast.fastest >= 0) & (forecast.fastest <= 1)).all()
    for row, share in enumerate(forecast.same_order):
        # Where the whole order is right, so is the first.
        assert 0 <= share <= forecast.fastest[row, forecast.order[row, 0]] + 1e-9 or _ties(case)


def _ties(case: Case) -> bool:
    """Whether devices may tie as the fastest, which then share the probability."""
    truths = np.log(case.predicted)[:, None] - case.errors.log_error
    return bool((np.diff(np.sort(truths, axis=2), axis=2)[:, :, 0] < 1e-9).any())


def test_without_errors_all_is_sure_and_a_tie_is_shared() -> None:
    case = Case(np.array([[0.4, 0.1, 0.2, 0.3]]), errors_of(np.zeros((9, 4)), 9), ("x",))
    forecast = case.forecast("a")
    assert forecast.in_order(0) == ("b", "c", "d", "a")
    np.testing.assert_allclose(forecast.centre, [[1, 0.25, 0.5, 0.75]])
    np.testing.assert_array_equal(forecast.low, forecast.high)
    assert (forecast.fastest.tolist(), forecast.same_order.tolist()) == ([[0, 1, 0, 0]], [1])
    case = Case(np.array([[0.5, 0.5, 1.0, 1.0]]), errors_of(np.zeros((4, 4)), 4), ("x",))
    assert case.forecast().fastest.tolist() == [[0.5, 0.5, 0, 0]]


def test_a_probability_is_the_share_of_errors_that_make_a_device_the_fastest() -> None:
    """Errors of three groups: one of two runs swaps the first two devices, which is a sixth in all."""
    swap = [np.log(3.0), 0.0, 0.0, 0.0]
    log_error = np.array([swap, [0.0] * 4, [0.0] * 4, [0.0] * 4])
    errors = RelativeResiduals.of(["one", "one", "two", "three"], ["x"] * 4, log_error)
    # True over predicted is one over the error: device a was a third of what was predicted.
    case = Case(np.array([[0.2, 0.1, 0.5, 1.0]]), errors, ("x",))
    forecast = case.forecast()
    np.testing.assert_allclose(forecast.fastest, [[1 / 6, 5 / 6, 0, 0]])
    np.testing.assert_allclose(forecast.same_order, [5 / 6])


def test_what_is_no_forecast_is_refused() -> None:
    case = Case(np.ones((1, 4)), errors_of(np.ones((4, 4)), 4), ("x",))
    assert "relative_to: expected one of a, b, c, d, found 'lassen'" in refusal(case.forecast, "lassen")
    for level in (0.0, 1.0, -1.0, float("nan")):
        assert "level: expected a probability between 0 and 1" in refusal(case.forecast, level=level)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="model: expected numbers above 0"):
            Case(np.full((1, 4), wrong), case.errors, ("x",)).forecast()
