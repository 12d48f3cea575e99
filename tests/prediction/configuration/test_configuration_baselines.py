"""A forecast without intervals says what was measured."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.data import ConfigurationModel, Surfaces, plain_forecast
from crosscast.prediction.configuration.features import TrainingRuns
from crosscast.prediction.configuration.models import NearestKernels
from crosscast.prediction.configuration.process import ProcessModel
from support.grids import linear_samples, linear_surfaces
from support.surfaces import made_surfaces


def test_measured_values_stand_and_nothing_else_is_sure() -> None:
    surfaces = made_surfaces(2)
    predicted = np.full(12, 3.0)
    forecast = plain_forecast(predicted, 2 * predicted, surfaces.observed(1, [4, 7]))
    assert np.flatnonzero(forecast.measured).tolist() == [4, 7]
    np.testing.assert_array_equal(forecast.time.centre[[4, 7]], surfaces.time_s[1, [4, 7]])
    np.testing.assert_array_equal(forecast.power.centre[[4, 7]], surfaces.power_w[1, [4, 7]])
    np.testing.assert_array_equal(np.isnan(forecast.power.spread), ~forecast.measured)
    assert (np.delete(forecast.power.centre, [4, 7]) == 6.0).all()
    assert (predicted == 3.0).all()


MODELS: list[ConfigurationModel] = [
    NearestKernels(),
    PublishedModel(),
    ProcessModel(),
]


class Changes(NamedTuple):
    """Targets of baselines: logarithms over those at the sample of the same device."""

    points: Reals
    time: Reals
    power: Reals

    @classmethod
    def of(cls, surfaces: Surfaces, samples: tuple[int, ...]) -> Changes:
        known = TrainingRuns.of(surfaces, samples)
        time_s, power_w = known.surfaces.time_s, known.surfaces.power_w
        relative = [np.log(each / each[:, known.scaled_from]) for each in (time_s, power_w)]
        return cls(known.features.standardized(known.values), *relative)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_sample_that_is_missing_is_named(model: ConfigurationModel) -> None:
    surfaces = made_surfaces(3)
    fitted = model.fit(surfaces, (11, 0))
    with pytest.raises(InputError, match="expected a run at node: cpu cap 100 W, gpu cap 250 W, found none"):
        fitted.forecast(surfaces.observed(0, (0, 4)))


SAMPLES = (11, 0)


def test_it_predicts_what_scikit_learn_does() -> None:
    surfaces = made_surfaces(7, noise=0.05)
    out = surfaces.rows_of(["app2"])
    known = Changes.of(surfaces.take(~out), SAMPLES)
    other = KNeighborsRegressor(3, weights="distance")
    fitted = NearestKernels().fit(surfaces.take(~out), SAMPLES)
    for row in np.flatnonzero(out).tolist():
        observed = surfaces.observed(row, SAMPLES)
        point = fitted.features.standardized(fitted.features.values(observed, [0, 1]))[None]
        forecast = fitted.forecast(observed)
        rest = ~forecast.measured
        time = observed.time_s[0] * np.exp(other.fit(known.points, known.time).predict(point)[0])
        power = observed.power_w[0] * np.exp(other.fit(known.points, known.power).predict(point)[0])
        np.testing.assert_allclose(forecast.time.centre[rest], time[rest])
        np.testing.assert_allclose(forecast.power.centre[rest], power[rest])


def test_each_device_is_scaled_from_its_own_sample() -> None:
    surfaces = linear_surfaces(6)
    samples = linear_samples(surfaces.space)
    slow_gpu = dataclasses.replace(
        surfaces, time_s=surfaces.time_s * np.where(surfaces.space.device_numbers == 1, 5.0, 1.0)
    )
    forecast = NearestKernels().fit(surfaces, samples).forecast(slow_gpu.observed(1, samples))
    np.testing.assert_allclose(forecast.time.centre, slow_gpu.time_s[1])


def test_what_the_nearest_lack_comes_from_all_others_and_from_none_is_unknown() -> None:
    surfaces = made_surfaces(3).take(np.arange(4))
    alone = NearestKernels().fit(surfaces.take(np.array([3])), SAMPLES)
    expected = alone.forecast(surfaces.observed(0, SAMPLES)).time.centre
    # The three others are nearer, the kernel itself among them.
    surfaces.time_s[:3, 5] = surfaces.power_w[:3, 5] = np.nan
    surfaces.time_s[:, 6] = surfaces.power_w[:, 6] = np.nan
    forecast = NearestKernels().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isnan([forecast.time.centre[6], forecast.power.centre[6]]).all()
    assert np.isfinite(np.delete(forecast.time.centre, 6)).all()
    assert forecast.time.centre[5] == pytest.approx(expected[5])


def test_one_application_is_enough() -> None:
    surfaces = made_surfaces(1)
    forecast = NearestKernels().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isfinite([forecast.time.centre, forecast.power.centre]).all()
