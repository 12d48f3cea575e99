"""The sums made beforehand give what scikit-learn's regressor predicts."""

import numpy as np
import pytest
from made_surfaces import made_surfaces
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from crosscast.arrays import Reals
from crosscast.configuration import Configuration
from crosscast.predict.configuration.baselines import (
    FittedProcess,
    GaussianProcess,
    RelativePredictor,
    changes_of,
)
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces

SAMPLES = (11, 0)


@pytest.fixture(scope="module")
def surfaces() -> Surfaces:
    return made_surfaces(6, noise=0.02)


@pytest.fixture(scope="module")
def fitted(surfaces: Surfaces) -> RelativePredictor:
    return GaussianProcess().fit(surfaces.take(~surfaces.rows_of(["app3"])), SAMPLES)


def test_it_predicts_a_new_kernel_better_than_the_mean_kernel(
    surfaces: Surfaces, fitted: RelativePredictor
) -> None:
    known = changes_of(surfaces.take(~surfaces.rows_of(["app3"])), SAMPLES)
    for row in np.flatnonzero(surfaces.rows_of(["app3"])).tolist():
        found = fitted.forecast(surfaces.observed(row, SAMPLES))
        for centre, true, changes in (
            (found.time.centre, surfaces.time_s[row], known.time),
            (found.power.centre, surfaces.power_w[row], known.power),
        ):
            mean = true[SAMPLES[0]] * np.exp(changes.mean(axis=0))
            assert np.abs(np.log(centre / true)).mean() < 0.5 * np.abs(np.log(mean / true)).mean()


def test_it_predicts_what_scikit_learn_does(monkeypatch: pytest.MonkeyPatch, surfaces: Surfaces) -> None:
    covariance = ConstantKernel(0.2) * RBF(np.array([1.0, 2, 3, 2, 1, 0.5, 0.7])) + WhiteKernel(0.01)
    monkeypatch.setattr(
        "crosscast.predict.configuration.baselines._likeliest",
        lambda rows, wanted: covariance,
    )
    fitted = GaussianProcess().fit(surfaces, SAMPLES)
    learned = fitted.learned
    assert isinstance(learned, FittedProcess)
    known = changes_of(surfaces, SAMPLES)
    settings = surfaces.space.matrix
    settings = (settings - settings.mean(axis=0)) / settings.std(axis=0)

    def rows(points: Reals) -> Reals:
        at = points @ learned.directions
        return np.hstack([np.repeat(at, 12, axis=0), np.tile(settings, (len(points), 1))])

    mean = known.time.mean(axis=0)
    other = GaussianProcessRegressor(covariance, alpha=1e-9, optimizer=None)
    other.fit(rows(known.points), (known.time - mean).ravel())
    point = known.points[4] + 0.1
    np.testing.assert_allclose(
        learned.changes(point)[0], mean + other.predict(rows(point[None])), rtol=1e-6, atol=1e-9
    )


def test_the_same_seed_gives_the_same_bytes(surfaces: Surfaces) -> None:
    few = surfaces.take(np.arange(6))
    observed = surfaces.observed(7, SAMPLES)
    first, second = (GaussianProcess().fit(few, SAMPLES, 3).forecast(observed) for _ in range(2))
    assert first.time.centre.tobytes() == second.time.centre.tobytes()


def test_missing_cells_are_predicted_and_columns_that_never_ran_are_unknown(surfaces: Surfaces) -> None:
    few = surfaces.take(np.arange(6))
    few.time_s[2, 3] = few.power_w[2, 3] = np.nan
    few.time_s[:, 6] = few.power_w[:, 6] = np.nan
    found = GaussianProcess().fit(few, SAMPLES).forecast(few.observed(2, SAMPLES))
    assert np.isnan(found.time.centre).tolist() == [place == 6 for place in range(12)]


def test_one_kernel_or_one_configuration_is_enough() -> None:
    alone = made_surfaces(1).take(np.array([0]))
    found = GaussianProcess().fit(alone, SAMPLES).forecast(alone.observed(0, SAMPLES))
    np.testing.assert_allclose(found.time.centre, alone.time_s[0])
    single = Surfaces(
        "single",
        (KernelAt("a", "a", "only"), KernelAt("b", "b", "only")),
        Space((Configuration("d", {}),)),
        np.array([[1.0], [2.0]]),
        np.array([[50.0], [50.0]]),
    )
    assert GaussianProcess().fit(single, (0,)).forecast(single.observed(1, (0,))).time.centre.tolist() == [2]
