"""Errors of a model on programs that it has not seen, counted another way."""

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.decide.training import LeftOutErrors, errors_left_out
from crosscast.predict.configuration.baselines import NearestKernels
from crosscast.predict.configuration.data import Observed, Space, Surfaces
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast

SAMPLES = (11, 0)


def test_each_program_is_predicted_by_a_model_of_the_others() -> None:
    surfaces = made_surfaces(noise=0.01)
    found = errors_left_out(surfaces, NearestKernels(), samples=SAMPLES)
    assert list(found.time) == list(surfaces.applications)
    for name in surfaces.applications:
        rows = surfaces.rows_of([name])
        fitted = NearestKernels().fit(surfaces.take(~rows), SAMPLES)
        expected = []
        for row in np.flatnonzero(rows).tolist():
            forecast = fitted.forecast(surfaces.observed(row, SAMPLES))
            elsewhere = [number for number in range(12) if number not in SAMPLES]
            expected += np.log(forecast.power.centre[elsewhere] / surfaces.power_w[row, elsewhere]).tolist()
        np.testing.assert_allclose(found.power[name], expected)
    assert found.power_inside == {}
    assert found.to_dict()["coverage_power"] is None


class Off:
    """Predicts what is true, but a tenth too much, and is sure to a fifth."""

    name = "off"
    samples = SAMPLES

    def __init__(self, surfaces: Surfaces) -> None:
        self.surfaces = surfaces

    @property
    def space(self) -> Space:
        return self.surfaces.space

    def fit(self, surfaces: Surfaces, samples: object, seed: int = 0) -> "Off":
        return self

    def forecast(self, observed: Observed) -> SurfaceForecast:
        (row,) = np.flatnonzero(self.surfaces.time_s[:, 11] == observed.time_s[observed.place(11) or 0])
        measured = np.isin(np.arange(12), observed.numbers)
        errors = np.linspace(-1, 1, 101)
        time, power = (
            Quantity(
                np.where(measured, values[row], values[row] * 1.1), np.where(measured, 0, spread), errors
            )
            for values, spread in ((self.surfaces.time_s, 0.2), (self.surfaces.power_w, 0.05))
        )
        return SurfaceForecast(time, power, measured)


def test_scores_are_those_of_known_errors() -> None:
    surfaces = made_surfaces(noise=0.01)
    found = errors_left_out(surfaces, Off(surfaces), samples=lambda *_: SAMPLES).to_dict()
    assert found["rmse_log_time"] == pytest.approx(np.log(1.1))
    assert found["median_ape_power"] == pytest.approx(0.1)
    assert (found["coverage_time"], found["coverage_power"]) == (1, 0)
    assert (found["programs"], found["cells"]) == (6, 6 * 2 * 10)


def test_programs_weigh_the_same() -> None:
    errors = {"a": np.array([0.1] * 9), "b": np.array([0.3])}
    found = LeftOutErrors(0.9, errors, errors, {}, {}).to_dict()
    assert found["rmse_log_time"] == pytest.approx(np.sqrt((0.01 + 0.09) / 2))
    assert found["by_program"]["b"]["rmse_log_time"] == pytest.approx(0.3)


def test_a_program_that_did_not_run_at_the_samples_is_passed_over() -> None:
    surfaces = made_surfaces()
    surfaces.time_s[0:2, 0] = surfaces.power_w[0:2, 0] = np.nan
    found = errors_left_out(surfaces, NearestKernels(), samples=SAMPLES)
    assert list(found.time) == ["app1", "app2", "app3", "app4", "app5"]


def test_several_processes_find_the_same() -> None:
    surfaces = made_surfaces(3)
    one, two = (
        errors_left_out(surfaces, NearestKernels(), samples=SAMPLES, jobs=jobs).to_dict() for jobs in (1, 2)
    )
    assert one == two
