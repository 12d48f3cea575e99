"""Every model of the registry keeps the protocol: the contract of a plug-in."""

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.time.data import Grid
from crosscast.predict.time.gaussian import Gaussian
from crosscast.predict.time.models import DEFAULT_MODEL, MODELS, model_named


@pytest.fixture(scope="module")
def small(noisy: Grid) -> Grid:
    return noisy.take(noisy.profiles.groups("application") < 4)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_answers_for_kernels_it_never_saw(name: str, noisy: Grid, small: Grid) -> None:
    model = model_named(name)
    assert model.name == name
    light = Gaussian(model.rehearsal or model.point)
    unseen = noisy.profiles.take(noisy.profiles.groups("application") == 5)
    found = light.fit(small, 0).predict(unseen)
    assert found.devices == tuple(device.key for device in noisy.devices)
    assert found.centre.shape == (len(unseen), len(noisy.devices))
    assert (found.low < found.centre).all()
    assert (found.centre < found.high).all()
    assert np.isfinite(found.high).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_bears_cells_that_were_not_measured(name: str, small: Grid) -> None:
    model = model_named(name)
    gaps = small.log_time.copy()
    gaps[::5, 1] = np.nan
    grid = Grid(small.profiles, small.devices, gaps, small.spread, small.runs)
    point = model.rehearsal or model.point
    assert np.isfinite(point.fit(grid, 0).log_time(small.profiles)).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_the_same_bytes_for_the_same_seed(name: str, small: Grid) -> None:
    point = model_named(name).rehearsal or model_named(name).point
    first, second = (point.fit(small, 4).log_time(small.profiles) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_the_default_is_one_of_them() -> None:
    assert model_named(DEFAULT_MODEL).name == DEFAULT_MODEL


def test_an_unknown_model_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match=r"model: expected one of device-mean, .*physical.*, found 'magic'"):
        model_named("magic")
