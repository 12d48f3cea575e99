"""A forecast without intervals says what was measured."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from crosscast.arrays import Reals
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.data import (
    ConfigurationModel,
    ConfigurationSpace,
    KernelAt,
    Surfaces,
    plain_forecast,
)
from crosscast.prediction.configuration.features import TrainingRuns, design_of
from crosscast.prediction.configuration.models import (
    GaussianProcess,
    GlobalRegression,
    NearestKernels,
    _principal,
)
from crosscast.prediction.configuration.process import ProcessModel
from support.grids import linear_samples, linear_surfaces
from support.refusals import refusal
from support.surfaces import made_space, made_surfaces


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


MODELS: list[ConfigurationModel] = [NearestKernels(), GlobalRegression(), GaussianProcess()]
every_baseline = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
every_model = pytest.mark.parametrize(
    "model",
    [*MODELS, PublishedModel(), PublishedModel(logarithms=True), ProcessModel()],
    ids=lambda model: model.name,
)


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


@every_model
def test_a_sample_that_is_missing_is_named(model: ConfigurationModel) -> None:
    surfaces = made_surfaces(3)
    fitted = model.fit(surfaces, (11, 0))
    with pytest.raises(InputError, match="expected a run at node: cpu cap 100 W, gpu cap 250 W, found none"):
        fitted.forecast(surfaces.observed(0, (0, 4)))


SAMPLES = (11, 0)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_it_predicts_what_scikit_learn_does(count: int) -> None:
    surfaces = made_surfaces(7, noise=0.05)
    out = surfaces.rows_of(["app2"])
    known = Changes.of(surfaces.take(~out), SAMPLES)
    other = KNeighborsRegressor(count, weights="distance")
    fitted = NearestKernels(count).fit(surfaces.take(~out), SAMPLES)
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
    forecast = NearestKernels(1).fit(surfaces, samples).forecast(slow_gpu.observed(1, samples))
    np.testing.assert_allclose(forecast.time.centre, slow_gpu.time_s[1])


def test_what_the_nearest_lack_comes_from_all_others_and_from_none_is_unknown() -> None:
    surfaces = made_surfaces(6)
    whole = NearestKernels(len(surfaces.kernels)).fit(surfaces, SAMPLES)
    expected = whole.forecast(surfaces.observed(0, SAMPLES)).time.centre
    surfaces.time_s[0, 5] = surfaces.power_w[0, 5] = np.nan
    surfaces.time_s[:, 6] = surfaces.power_w[:, 6] = np.nan
    forecast = NearestKernels(1).fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isnan(forecast.time.centre[6])
    assert np.isnan(forecast.power.centre[6])
    assert np.isfinite(np.delete(forecast.time.centre, 6)).all()
    # The kernel itself, which is infinitely near, decided there before; now the others do.
    assert forecast.time.centre[5] == pytest.approx(expected[5], rel=0.3)
    assert forecast.time.centre[5] != pytest.approx(expected[5], rel=1e-6)


@every_baseline
def test_one_application_is_enough(model: ConfigurationModel) -> None:
    surfaces = made_surfaces(1)
    forecast = model.fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isfinite(forecast.time.centre).all()
    assert np.isfinite(forecast.power.centre).all()


def test_names_say_how_many_kernels_of_at_least_one() -> None:
    assert [NearestKernels(count).name for count in (3, 1)] == ["nearest", "nearest-1"]
    assert "nearest: expected at least 1 kernel, found 0" in refusal(NearestKernels, 0)


@pytest.fixture(scope="module")
def surfaces() -> Surfaces:
    return made_surfaces(6, noise=0.02)


def test_the_gaussian_process_is_that_of_scikit(monkeypatch: pytest.MonkeyPatch, surfaces: Surfaces) -> None:
    covariance = ConstantKernel(0.2) * RBF(np.array([1.0, 2, 3, 2, 1, 0.5, 0.7])) + WhiteKernel(0.01)
    real = GaussianProcessRegressor.fit

    def fit(self: Any, rows: Reals, values: Reals) -> Any:
        """With this covariance, whatever the likelihood says."""
        self.optimizer, self.kernel = None, covariance
        return real(self, rows, values)

    monkeypatch.setattr(GaussianProcessRegressor, "fit", fit)
    fitted = GaussianProcess().fit(surfaces, SAMPLES)
    known = Changes.of(surfaces, SAMPLES)
    directions = _principal(known.points)
    settings = surfaces.space.matrix
    settings = (settings - settings.mean(axis=0)) / settings.std(axis=0)

    def rows(points: Reals) -> Reals:
        at = points @ directions
        return np.hstack([np.repeat(at, 12, axis=0), np.tile(settings, (len(points), 1))])

    mean = known.time.mean(axis=0)
    other = GaussianProcessRegressor(covariance, alpha=1e-9, optimizer=None)
    other.fit(rows(known.points), (known.time - mean).ravel())
    point = known.points[4] + 0.1
    np.testing.assert_allclose(
        fitted.time(point), mean + other.predict(rows(point[None])), rtol=1e-6, atol=1e-9
    )


def test_one_kernel_or_one_configuration_is_enough() -> None:
    alone = made_surfaces(1).take(np.array([0]))
    forecast = GaussianProcess().fit(alone, SAMPLES).forecast(alone.observed(0, SAMPLES))
    np.testing.assert_allclose(forecast.time.centre, alone.time_s[0])
    single = Surfaces(
        "single",
        (KernelAt("a", "a", "only"), KernelAt("b", "b", "only")),
        ConfigurationSpace((Configuration("d", {}),)),
        np.array([[1.0], [2.0]]),
        np.array([[50.0], [50.0]]),
    )
    assert GaussianProcess().fit(single, (0,)).forecast(single.observed(1, (0,))).time.centre.tolist() == [2]


def log_linear(kernels: int = 12) -> Surfaces:
    """Logarithms of time and power that are linear in the settings times a feature of the samples."""
    space = made_space()
    variables = design_of(space).matrix
    steep = np.linspace(0.5, 2, kernels)[:, None]
    fall = variables @ np.array([0.2, 0.5, 0.1])
    return Surfaces(
        "log-linear",
        tuple(KernelAt(f"app{number}", f"app{number}", "only") for number in range(kernels)),
        space,
        np.exp(-steep * fall),
        100 * np.exp(steep * fall),
    )


def test_it_is_ridge_regression_with_one_of_its_penalties() -> None:
    surfaces = made_surfaces(5, noise=0.1)
    known = Changes.of(surfaces, SAMPLES)
    observed = surfaces.observed(3, SAMPLES)
    fitted = GlobalRegression().fit(surfaces, SAMPLES)
    terms = np.hstack([np.ones((len(known.points), 1)), known.points])
    settings = design_of(surfaces.space).with_constants
    rows = np.einsum("nf,cp->ncfp", terms, settings).reshape(known.time.size, -1)
    predicted = np.log(fitted.forecast(observed).time.centre / observed.time_s[0])
    ridges = [
        Ridge(penalty, fit_intercept=False).fit(rows, known.time.ravel()).predict(rows)
        for penalty in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    ]
    rest = np.setdiff1d(np.arange(12), SAMPLES)
    assert any(np.allclose(each.reshape(-1, 12)[3, rest], predicted[rest], rtol=1e-4) for each in ridges)


def test_cells_that_did_not_run_do_not_count_and_columns_that_never_ran_are_unknown() -> None:
    surfaces = log_linear()
    surfaces.time_s[2, 3] = surfaces.power_w[2, 3] = np.nan
    surfaces.time_s[:, 6] = surfaces.power_w[:, 6] = np.nan
    forecast = GlobalRegression().fit(surfaces, SAMPLES).forecast(surfaces.observed(2, SAMPLES))
    assert np.isnan(forecast.time.centre[6])
    assert forecast.time.centre[3] == np.delete(forecast.time.centre, 6)[3]
    expected = log_linear().time_s[2]
    np.testing.assert_allclose(np.delete(forecast.time.centre, 6), np.delete(expected, 6), rtol=0.01)
