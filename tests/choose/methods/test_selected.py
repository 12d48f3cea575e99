"""Any model of configurations chooses by its forecast, and takes what is least bad where nothing fits."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_surfaces import made_surfaces

from crosscast.arrays import Flags, Reals
from crosscast.decide.policies import SelectedModel, least_bad
from crosscast.predict.configuration.data import Observed, Space, Surfaces
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast, plain_forecast

SURFACES = made_surfaces(2)
SAMPLES = (11, 0)
ROW = 2
ALL: Flags = np.ones(12, np.bool_)


@dataclass
class Knowing:
    """Knows the surface of one kernel; its powers are `above` too high, within `spread`."""

    above: float = 1.0
    spread: float = 0.0
    name: str = "knowing"
    asked: list[Observed] = field(default_factory=list)
    space: Space = SURFACES.space
    samples: tuple[int, ...] = SAMPLES

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> "Knowing":
        assert tuple(samples) == self.samples
        return self

    def forecast(self, observed: Observed) -> SurfaceForecast:
        self.asked.append(observed)
        plain = plain_forecast(SURFACES.time_s[ROW], self.above * SURFACES.power_w[ROW], observed)
        if not self.spread:
            return plain
        spread = np.where(plain.measured, 0.0, self.spread)
        errors = np.linspace(-1, 1, 101)
        return SurfaceForecast(plain.time, Quantity(plain.power.centre, spread, errors), plain.measured)


def first(method: SelectedModel, power_cap: float, available: Flags = ALL) -> int:
    observed = SURFACES.observed(ROW, SAMPLES)
    return next(method.fit(SURFACES, SAMPLES).walk(observed, power_cap, available, 5))


def fastest_within(power: Reals, power_cap: float) -> int:
    return int(np.argmin(np.where(power <= power_cap, SURFACES.time_s[ROW], np.inf)))


@given(power_cap=st.floats(float(SURFACES.power_w[ROW].min()), 500))
def test_with_a_true_forecast_it_takes_the_fastest_within_the_cap(power_cap: float) -> None:
    chosen = first(SelectedModel(Knowing(), "m"), power_cap)
    assert SURFACES.power_w[ROW, chosen] <= power_cap * (1 + 1e-9)
    assert (
        SURFACES.time_s[ROW, chosen] == SURFACES.time_s[ROW, fastest_within(SURFACES.power_w[ROW], power_cap)]
    )


def test_a_predicted_power_may_be_above_the_cap_only_by_the_tolerance() -> None:
    power = 1.01 * SURFACES.power_w[ROW]
    power[list(SAMPLES)] /= 1.01
    cap = float(np.sort(SURFACES.power_w[ROW])[6])
    assert power[first(SelectedModel(Knowing(1.01), "m"), cap)] <= cap
    tolerant = first(SelectedModel(Knowing(1.01), "m", tolerance=0.02), cap)
    assert cap < power[tolerant] <= 1.02 * cap


def test_a_confidence_keeps_away_from_the_cap() -> None:
    model = Knowing(spread=0.1)
    caps = np.unique(SURFACES.power_w[ROW]) * 1.01
    sure = [first(SelectedModel(model, "m", confidence=0.95), cap) for cap in caps.tolist()]
    likely = [first(SelectedModel(model, "m", confidence=0.5), cap) for cap in caps.tolist()]
    power = SURFACES.power_w[ROW]
    assert (power[sure] <= power[likely]).all()
    assert (power[sure] < power[likely]).any()
    unmeasured = ~np.isin(sure, SAMPLES)
    assert (power[sure] * np.exp(0.09) < caps)[unmeasured].all()
    assert unmeasured.any()


def test_under_a_cap_below_everything_it_takes_what_needs_the_least_power() -> None:
    least = int(SURFACES.power_w[ROW].argmin())
    assert first(SelectedModel(Knowing(), "m"), 1.0) == least
    assert first(SelectedModel(Knowing(spread=0.1), "m", confidence=0.9), 1.0) == least
    without = ALL.copy()
    without[least] = False
    others = np.where(without, SURFACES.power_w[ROW], np.inf)
    assert first(SelectedModel(Knowing(), "m"), 1.0, without) == int(others.argmin())


def test_what_is_least_bad_is_most_likely_to_keep_to_the_cap() -> None:
    spread = np.array([0.5, 0.01, 0.01])
    power = Quantity(np.array([120.0, 110.0, np.nan]), spread, np.linspace(-1, 1, 101))
    time = Quantity(np.ones(3), spread, np.empty(0))
    forecast = SurfaceForecast(time, power, np.zeros(3, np.bool_))
    assert least_bad(forecast, 100.0, np.ones(3, np.bool_)) == 0
    assert least_bad(forecast, 10.0, np.ones(3, np.bool_)) == 1
    assert least_bad(forecast, 100.0, np.array([False, False, True])) == 2


def test_a_new_cap_needs_no_new_forecast() -> None:
    model = Knowing()
    chooser = SelectedModel(model, "m").fit(SURFACES, SAMPLES)
    one, other = (SURFACES.observed(row, SAMPLES) for row in (0, ROW))
    for observed in (one, one, other, other, one):
        next(chooser.walk(observed, 200.0, ALL, 0))
    assert [each is one for each in model.asked] == [True, False, True]


def test_it_chooses_once() -> None:
    walk = SelectedModel(Knowing(), "m").fit(SURFACES, SAMPLES)
    steps = walk.walk(SURFACES.observed(ROW, SAMPLES), 200.0, ALL, 5)
    number = next(steps)
    with pytest.raises(StopIteration):
        steps.send(SURFACES.observed(ROW, (number,)))
