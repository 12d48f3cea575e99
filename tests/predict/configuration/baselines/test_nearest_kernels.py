"""The nearest kernels, weighted by how near they are."""

import dataclasses

import numpy as np
import pytest
from linear_machine import linear_samples, linear_surfaces
from made_surfaces import made_surfaces
from sklearn.neighbors import KNeighborsRegressor

from crosscast.errors import InputError
from crosscast.predict.configuration.baselines import NearestKernels, changes_of

SAMPLES = (11, 0)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_it_predicts_what_scikit_learn_does(count: int) -> None:
    surfaces = made_surfaces(7, noise=0.05)
    out = surfaces.rows_of(["app2"])
    known = changes_of(surfaces.take(~out), SAMPLES)
    other = KNeighborsRegressor(count, weights="distance")
    fitted = NearestKernels(count).fit(surfaces.take(~out), SAMPLES)
    for row in np.flatnonzero(out).tolist():
        observed = surfaces.observed(row, SAMPLES)
        point = known.features.standardized(known.features.values(observed, [0, 1]))[None]
        found = fitted.forecast(observed)
        rest = ~found.measured
        time = observed.time_s[0] * np.exp(other.fit(known.points, known.time).predict(point)[0])
        power = observed.power_w[0] * np.exp(other.fit(known.points, known.power).predict(point)[0])
        np.testing.assert_allclose(found.time.centre[rest], time[rest])
        np.testing.assert_allclose(found.power.centre[rest], power[rest])


def test_a_kernel_that_it_knows_is_told_as_it_was() -> None:
    surfaces = made_surfaces(6)
    found = NearestKernels(1).fit(surfaces, SAMPLES).forecast(surfaces.observed(4, SAMPLES))
    np.testing.assert_allclose(found.time.centre, surfaces.time_s[4])
    np.testing.assert_allclose(found.power.centre, surfaces.power_w[4])


def test_each_device_is_scaled_from_its_own_sample() -> None:
    surfaces = linear_surfaces(6)
    samples = linear_samples(surfaces.space)
    slow_gpu = dataclasses.replace(
        surfaces, time_s=surfaces.time_s * np.where(surfaces.space.device_numbers == 1, 5.0, 1.0)
    )
    found = NearestKernels(1).fit(surfaces, samples).forecast(slow_gpu.observed(1, samples))
    np.testing.assert_allclose(found.time.centre, slow_gpu.time_s[1])


def test_what_the_nearest_lack_comes_from_all_others_and_from_none_is_unknown() -> None:
    surfaces = made_surfaces(6)
    whole = NearestKernels(len(surfaces.kernels)).fit(surfaces, SAMPLES)
    expected = whole.forecast(surfaces.observed(0, SAMPLES)).time.centre
    surfaces.time_s[0, 5] = surfaces.power_w[0, 5] = np.nan
    surfaces.time_s[:, 6] = surfaces.power_w[:, 6] = np.nan
    found = NearestKernels(1).fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isnan(found.time.centre[6])
    assert np.isnan(found.power.centre[6])
    assert np.isfinite(np.delete(found.time.centre, 6)).all()
    # The kernel itself, which is infinitely near, decided there before; now the others do.
    assert found.time.centre[5] == pytest.approx(expected[5], rel=0.3)
    assert found.time.centre[5] != pytest.approx(expected[5], rel=1e-6)


def test_fewer_kernels_than_asked_for_are_all_taken() -> None:
    surfaces = made_surfaces(1)
    found = NearestKernels(3).fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isfinite(found.time.centre).all()


def test_names_say_how_many() -> None:
    assert [NearestKernels(count).name for count in (3, 1)] == ["nearest", "nearest-1"]


def test_none_are_refused() -> None:
    with pytest.raises(InputError, match="nearest: expected at least 1 kernel, found 0"):
        NearestKernels(0)
