"""Every model of the registry keeps the protocol: the contract of a plug-in."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crosscast.errors import InputError, MissingExtraError
from crosscast.prediction.time.data import Grid
from crosscast.prediction.time.gaussian import Gaussian
from crosscast.prediction.time.johnston2018 import PublishedForest
from crosscast.prediction.time.models import MODELS, Boosting, DeviceMean, ExtraTrees, Nearest, model_named
from crosscast.profile import METRICS
from support.examples import one_in
from support.grids import grid_of_times, rms, small_grid, small_profiles


@pytest.fixture(scope="module")
def small(noisy: Grid) -> Grid:
    return noisy.take(noisy.profiles.groups("application") < 4)


def light(name: str) -> Any:
    """The point model of a model, with few trees where it grows many."""
    model = model_named(name)
    point = model.refit or model.point
    return replace(point, trees=20) if isinstance(point, PublishedForest) else point


@pytest.mark.parametrize("name", one_in(4, MODELS))
def test_a_model_answers_for_kernels_it_never_saw(name: str, noisy: Grid, small: Grid) -> None:
    model = model_named(name)
    assert model.name == name
    unseen = noisy.profiles.take(noisy.profiles.groups("application") == 5)
    predicted = Gaussian(light(name)).fit(small, 0).predict(unseen)
    assert predicted.devices == tuple(device.key for device in noisy.devices)
    assert predicted.centre.shape == (len(unseen), len(noisy.devices))
    assert (predicted.low < predicted.centre).all()
    assert (predicted.centre < predicted.high).all()
    assert np.isfinite(predicted.high).all()


@pytest.mark.parametrize("name", [*MODELS, "intervals"])
def test_a_model_gives_the_same_bytes_for_the_same_seed(name: str, small: Grid) -> None:
    # Intervals are made in the same way for all models.
    model = Gaussian(DeviceMean()) if name == "intervals" else light(name)
    fits: list[Any] = [model.fit(small, 4) for _ in range(2)]
    first, second = (bytes_of(each.state()) for each in fits)
    assert first == second


def test_an_unknown_model_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match=r"model: expected one of device-mean, .*physical.*, found 'magic'"):
        model_named("magic")


POINT_MODELS: list[Any] = [DeviceMean(), Nearest(), ExtraTrees(trees=30), Boosting(rounds=40)]
LOOKING = POINT_MODELS[1:]
"""Those that look at profiles."""

by_name = pytest.mark.parametrize("model", POINT_MODELS, ids=lambda model: model.name)
by_looking_name = pytest.mark.parametrize("model", LOOKING, ids=lambda model: model.name)


def bytes_of(state: dict[str, Any]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in state.items()}


@pytest.mark.parametrize(
    "model", [ExtraTrees(trees=5), PublishedForest(trees=5)], ids=lambda model: model.name
)
def test_another_seed_gives_other_forests(model: Any, small: Grid) -> None:
    one, other = (model.fit(small, seed).state() for seed in (0, 1))
    assert bytes_of(one) != bytes_of(other)


@by_name
def test_gaps_in_the_grid_cost_little(model: Any) -> None:
    # The devices' times are nearly parallel here, so little is lost with a cell.
    grid = small_grid(n=60)
    times = grid.log_time.mean(axis=1, keepdims=True) + np.array([0.0, 1.0, 2.0])
    whole = grid_of_times(grid.profiles, times)
    holes = np.where(np.random.default_rng(0).random(times.shape) < 0.2, np.nan, times)
    gappy = grid_of_times(grid.profiles, np.where(np.isnan(holes).all(axis=1, keepdims=True), times, holes))
    wanted, predicted = (model.fit(each, 0).log_time(grid.profiles) for each in (whole, gappy))
    np.testing.assert_allclose(predicted, wanted, atol=1e-6)


@by_name
def test_a_kernel_without_times_changes_nothing(model: Any) -> None:
    grid = small_grid(n=20)
    grid.log_time[7] = np.nan
    rest = grid.take(np.flatnonzero(np.arange(20) != 7))
    predicted, wanted = (model.fit(each, 0).log_time(grid.profiles) for each in (grid, rest))
    np.testing.assert_array_equal(predicted, wanted)


@by_name
def test_one_device_and_one_kernel_are_enough_to_fit(model: Any) -> None:
    grid = small_grid(n=1, devices=1)
    np.testing.assert_allclose(model.fit(grid, 0).log_time(grid.profiles), grid.log_time, atol=1e-12)


@by_name
def test_a_grid_without_times_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match=r"^grid: expected kernels with times, found none$"):
        model.fit(grid_of_times(small_profiles(2, {}), np.full((2, 2), np.nan)), 0)


@by_looking_name
def test_they_learn_more_than_the_mean_of_a_device(model: Any) -> None:
    grid, held_out = small_grid(n=80), small_grid(n=40, seed=1)
    errors, of_mean = (
        each.fit(grid, 0).log_time(held_out.profiles) - held_out.log_time for each in (model, DeviceMean())
    )
    assert rms(errors) < 0.5 * rms(of_mean)


@by_looking_name
def test_they_do_not_need_metrics_that_no_training_kernel_has(model: Any) -> None:
    grid = small_grid()
    lacking = [index for index, each in enumerate(METRICS) if each.name in ("total_reads", "work_groups")]
    metrics = grid.profiles.metrics.copy()
    metrics[:, lacking] = np.nan
    profiles = replace(grid.profiles, metrics=metrics)
    assert np.isfinite(model.fit(replace(grid, profiles=profiles), 0).log_time(profiles)).all()


@by_looking_name
def test_a_profile_that_lacks_a_metric_is_refused_by_name(model: Any) -> None:
    grid = small_grid()
    metrics = grid.profiles.metrics.copy()
    metrics[4, [each.name for each in METRICS].index("work_items")] = np.nan
    predictor = model.fit(grid, 0)
    with pytest.raises(InputError, match=r"^profile of app0/k4/tiny: work_items: expected a number"):
        predictor.log_time(replace(grid.profiles, metrics=metrics))


def test_the_order_of_the_training_kernels_does_not_matter_to_the_baselines() -> None:
    grid = small_grid()
    turned = grid.take(np.arange(len(grid.profiles))[::-1])
    for model in (DeviceMean(), Nearest()):
        predicted, wanted = (model.fit(each, 0).log_time(grid.profiles) for each in (turned, grid))
        np.testing.assert_allclose(predicted, wanted, atol=1e-12)


@pytest.mark.parametrize("model", POINT_MODELS[2:], ids=lambda model: model.name)
def test_fitting_without_scikit_learn_names_the_extra(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "crosscast.prediction.scikit", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"'crosscast\[train\]'$"):
        model.fit(small_grid(), 0)
