"""Linear models of clusters are least squares, exact where the data is linear."""

from typing import Any

import numpy as np
import pytest
from linear_machine import linear_samples, linear_surfaces

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import ClusterModels, design_of, fit_cluster_models
from crosscast.predict.configuration.data import references

SURFACES = linear_surfaces()
DESIGN = design_of(SURFACES.space)
KINDS = np.arange(6) % 2


def relative() -> Reals:
    samples = linear_samples(SURFACES.space)
    at = np.array(samples)[references(SURFACES.space, samples)]
    return np.asarray(SURFACES.time_s[:, at] / SURFACES.time_s)


def fitted(
    performance: Reals, power: Reals, kinds: Integers = KINDS, *, logarithms: bool = False
) -> ClusterModels:
    return fit_cluster_models(DESIGN, performance, power, kinds, logarithms=logarithms)


def noisy() -> tuple[Reals, Reals]:
    wobble = np.exp(0.1 * np.random.default_rng(0).normal(size=(2, *SURFACES.time_s.shape)))
    return relative() * wobble[0], SURFACES.power_w * wobble[1]


def test_linear_performance_and_power_are_told_exactly() -> None:
    found = fitted(relative(), SURFACES.power_w)
    np.testing.assert_allclose(found.relative_performance[KINDS], relative(), rtol=1e-10)
    np.testing.assert_allclose(found.power_w[KINDS], SURFACES.power_w, rtol=1e-10)


@pytest.mark.parametrize("logarithms", [False, True])
def test_coefficients_solve_the_normal_equations_of_each_device(logarithms: bool) -> None:
    performance, power = noisy()
    found = fitted(performance, power, logarithms=logarithms)
    change = np.log if logarithms else np.asarray
    both = DESIGN.with_constants
    for kind in (0, 1):
        rows = np.tile(both, (3, 1))
        wanted = change(power[kind == KINDS]).ravel()
        np.testing.assert_allclose(
            found.power[kind], np.linalg.solve(rows.T @ rows, rows.T @ wanted), rtol=1e-8
        )
        rows = np.tile(both if logarithms else DESIGN.matrix, (3, 1))
        wanted = change(performance[kind == KINDS]).ravel()
        np.testing.assert_allclose(
            found.performance[kind], np.linalg.solve(rows.T @ rows, rows.T @ wanted), rtol=1e-8
        )


def test_performance_has_no_intercept_and_power_one_for_each_device() -> None:
    found = fitted(relative(), SURFACES.power_w)
    assert found.performance.shape == (2, 4)
    assert found.power.shape == (2, 6)
    assert fitted(relative(), SURFACES.power_w, logarithms=True).performance.shape == (2, 6)


def test_cells_that_did_not_run_do_not_count() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    for row, column in ((0, 3), (3, 11), (5, 0)):
        performance[row, column] = power[row, column] = np.nan
    found = fitted(performance, power)
    np.testing.assert_allclose(found.relative_performance[KINDS], relative(), rtol=1e-10)


def test_a_cluster_that_never_ran_on_a_device_takes_the_model_of_all() -> None:
    performance, power = noisy()
    performance[np.ix_(KINDS == 0, DESIGN.on_device[:, 1] > 0)] = np.nan
    found = fitted(performance, power)
    gpu = DESIGN.on_device[:, 1] > 0
    np.testing.assert_allclose(found.relative_performance[0, gpu], found.relative_performance[1, gpu])


def test_a_device_on_which_nothing_ran_is_unknown_and_the_others_are_not() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    gpu = DESIGN.on_device[:, 1] > 0
    performance[:, gpu] = power[:, gpu] = np.nan
    found = fitted(performance, power)
    assert np.isnan(found.relative_performance[:, gpu]).all()
    assert np.isnan(found.power_w[:, gpu]).all()
    np.testing.assert_allclose(found.power_w[KINDS][:, ~gpu], SURFACES.power_w[:, ~gpu], rtol=1e-10)
    assert np.isnan(ClusterModels.from_state(found.state(), DESIGN).power_w[:, gpu]).all()


def test_a_line_that_runs_below_what_was_seen_is_cut() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    performance[:, :9] = np.where(DESIGN.matrix[:9, 0] > 0.99, 1.0, 0.01)
    found = fitted(performance, power)
    uncut = DESIGN.matrix @ found.performance[0]
    assert uncut.min() < 0
    assert found.relative_performance[:, :9].min() == 0.01


def test_more_variables_than_runs_still_fit() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    performance[:, 2:11] = power[:, 2:11] = np.nan
    found = fitted(performance, power)
    known = np.isfinite(performance[0])
    np.testing.assert_allclose(found.relative_performance[KINDS][:, known], performance[:, known])


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("logarithms", lambda a: a + 2, "logarithms: expected integers from 0 to 1"),
        ("logarithms", lambda a: a[:0], "logarithms: expected one number, found 0"),
        ("logarithms", lambda a: a + 1, "performance_coefficients: expected numbers of shape"),
        ("power_coefficients", lambda a: a[:, 1:], "power_coefficients: expected numbers of shape"),
        ("power_coefficients", lambda a: a * np.inf, "power_coefficients: expected finite numbers"),
        ("least_power", lambda a: a[1:], "expected models of as many clusters throughout"),
        ("least_performance", lambda a: a.astype(str), "least_performance: expected numbers of shape"),
    ],
)
def test_a_damaged_state_is_refused(name: str, change: Any, sentence: str) -> None:
    state = fitted(relative(), SURFACES.power_w).state()
    with pytest.raises(InputError, match=sentence):
        ClusterModels.from_state({**state, name: change(state[name])}, DESIGN)
