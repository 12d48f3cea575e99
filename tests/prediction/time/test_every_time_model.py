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


def test_an_unknown_model_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match=r"model: expected one of device-mean, .*physical.*, found 'magic'"):
        model_named("magic")


POINT_MODELS: list[Any] = [DeviceMean(), Nearest(), ExtraTrees(trees=30), Boosting(rounds=40)]
LOOKING = POINT_MODELS[1:]
"""Those that look at profiles."""

by_name = pytest.mark.parametrize("model", POINT_MODELS, ids=lambda model: model.name)
by_looking_name = pytest.mark.parametrize("model", LOOKING, ids=lambda model: model.name)


@by_name
def test_a_kernel_without_times_changes_nothing(model: Any) -> None:
    grid = small_grid(n=20)
    grid.log_time[7] = np.nan
    rest = grid.take(np.flatnonzero(np.arange(20) != 7))
    predicted, wanted = (model.fit(each, 0).log_time(grid.profiles) for each in (grid, rest))
    np.testing.assert_array_equal(predicted, wanted)


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
def test_a_profile_that_lacks_a_metric_is_refused_by_name(model: Any) -> None:
    grid = small_grid()
    metrics = grid.profiles.metrics.copy()
    metrics[4, [each.name for each in METRICS].index("work_items")] = np.nan
    predictor = model.fit(grid, 0)
    with pytest.raises(InputError, match=r"^profile of app0/k4/tiny: work_items: expected a number"):
        predictor.log_time(replace(grid.profiles, metrics=metrics))


@pytest.mark.parametrize("model", POINT_MODELS[2:], ids=lambda model: model.name)
def test_fitting_without_scikit_learn_names_the_extra(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "crosscast.prediction.scikit", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"'crosscast\[train\]'$"):
        model.fit(small_grid(), 0)
