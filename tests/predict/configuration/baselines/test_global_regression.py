"""One regression over kernels and configurations."""

import dataclasses

import numpy as np
from made_surfaces import made_space, made_surfaces
from sklearn.linear_model import Ridge

from crosscast.predict.configuration.bailey2014 import design_of
from crosscast.predict.configuration.baselines import GlobalRegression, changes_of
from crosscast.predict.configuration.data import KernelAt, Surfaces

SAMPLES = (11, 0)


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


def test_it_tells_what_is_linear_in_settings_times_features() -> None:
    surfaces = log_linear()
    out = surfaces.rows_of(["app5"])
    found = GlobalRegression().fit(surfaces.take(~out), SAMPLES).forecast(surfaces.observed(5, SAMPLES))
    np.testing.assert_allclose(found.time.centre, surfaces.time_s[5], rtol=0.005)
    np.testing.assert_allclose(found.power.centre, surfaces.power_w[5], rtol=0.005)


def test_it_is_ridge_regression_with_one_of_its_penalties() -> None:
    surfaces = made_surfaces(5, noise=0.1)
    known = changes_of(surfaces, SAMPLES)
    observed = surfaces.observed(3, SAMPLES)
    fitted = GlobalRegression().fit(surfaces, SAMPLES)
    terms = np.hstack([np.ones((len(known.points), 1)), known.points])
    settings = design_of(surfaces.space).with_constants
    rows = np.einsum("nf,cp->ncfp", terms, settings).reshape(known.time.size, -1)
    found = np.log(fitted.forecast(observed).time.centre / observed.time_s[0])
    ridges = [
        Ridge(penalty, fit_intercept=False).fit(rows, known.time.ravel()).predict(rows)
        for penalty in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    ]
    rest = np.setdiff1d(np.arange(12), SAMPLES)
    assert any(np.allclose(each.reshape(-1, 12)[3, rest], found[rest], rtol=1e-4) for each in ridges)


def test_cells_that_did_not_run_do_not_count_and_columns_that_never_ran_are_unknown() -> None:
    surfaces = log_linear()
    surfaces.time_s[2, 3] = surfaces.power_w[2, 3] = np.nan
    surfaces.time_s[:, 6] = surfaces.power_w[:, 6] = np.nan
    found = GlobalRegression().fit(surfaces, SAMPLES).forecast(surfaces.observed(2, SAMPLES))
    assert np.isnan(found.time.centre[6])
    assert found.time.centre[3] == np.delete(found.time.centre, 6)[3]
    expected = log_linear().time_s[2]
    np.testing.assert_allclose(np.delete(found.time.centre, 6), np.delete(expected, 6), rtol=0.01)


def test_one_application_is_enough() -> None:
    surfaces = made_surfaces(1)
    found = GlobalRegression().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isfinite(found.power.centre).all()


def test_it_does_not_read_what_is_asked_of_it_from_other_kernels() -> None:
    surfaces = made_surfaces(4)
    bare = dataclasses.replace(surfaces, domains={}, counters={})
    fitted = GlobalRegression().fit(bare, SAMPLES)
    one = fitted.forecast(surfaces.observed(2, SAMPLES))
    other = fitted.forecast(bare.observed(2, SAMPLES))
    np.testing.assert_array_equal(one.time.centre, other.time.centre)
