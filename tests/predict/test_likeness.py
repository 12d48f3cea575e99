"""Weights by likeness are positive, add up to one, and are heaviest on what is most alike."""

import numpy as np
import pytest
from kin_devices import kin_devices, kin_grid, kin_times

from crosscast.predict.time.features import Descriptors, Likeness, fit_likeness


def test_weights_are_a_mean() -> None:
    grid = kin_grid()
    pairs = Descriptors.of(grid.devices).pairs(len(grid.devices))
    likeness = fit_likeness(pairs, grid.log_time, np.ones(len(grid.profiles)), 0)
    weights, _ = likeness.weights(pairs)
    assert weights.shape == (len(grid.devices) - 1,)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    own = [device.vendor == grid.devices[-1].vendor for device in grid.devices[:-1]]
    assert weights[own].sum() > 0.9


def test_a_way_says_how_light_devices_are() -> None:
    devices = kin_devices(2)
    pairs = Descriptors.of(devices).pairs(len(devices))
    # Lighter by e for another type; else alike. Two of the five others are of another type.
    weights, added = Likeness(np.array([[1.0, 0, 0, 0, 0, 0]])).weights(pairs)
    share = 1 / (1 + 4 * np.exp(-1))
    assert weights == pytest.approx([share * np.exp(-1)] * 4 + [share])
    assert added == 0


def test_times_are_brought_to_the_rate_of_the_new_device() -> None:
    devices = kin_devices(2)
    pairs = Descriptors.of(devices).pairs(len(devices))
    weights, added = Likeness(np.array([[0.0, 0, 0, 0, 0, 0.5]])).weights(pairs)
    assert weights == pytest.approx(np.full(5, 0.2))
    assert added == pytest.approx(0.5 * (pairs.trend[-1] - pairs.trend[:-1].mean()))


def test_ways_that_predict_the_known_devices_are_chosen() -> None:
    devices = kin_devices()
    pairs, times = Descriptors.of(devices).pairs(len(devices)), kin_times(devices, 30)
    likeness = fit_likeness(pairs, times, np.ones(30), 0)
    # Times follow the maker and the rate, whose power is 0.8; drawn at 0.4 on average.
    assert likeness.ways[:, 5].mean() > 0.5
    assert np.array_equal(likeness.ways, fit_likeness(pairs, times, np.ones(30), 0).ways)
    assert not np.array_equal(likeness.ways, fit_likeness(pairs, times, np.ones(30), 1).ways)
