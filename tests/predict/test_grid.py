"""A grid takes what fits together, and the grid of a dataset is what its records and profiles say."""

import numpy as np
import pytest

import crosscast
from crosscast.errors import InputError
from crosscast.predict.time.data import Grid, Profiles, metric
from crosscast.profile import METRICS


def test_some_rows_of_a_grid_are_these_rows(lawful: Grid) -> None:
    rows = np.array([5, 1])
    taken = lawful.take(rows)
    assert taken.profiles.kernel == (lawful.profiles.kernel[5], lawful.profiles.kernel[1])
    np.testing.assert_array_equal(taken.log_time, lawful.log_time[[5, 1]])


def test_some_devices_of_a_grid_are_these_devices(lawful: Grid) -> None:
    taken = lawful.on([3, 0])
    assert [device.key for device in taken.devices] == ["host", "big"]
    np.testing.assert_array_equal(taken.log_time, lawful.log_time[:, [3, 0]])


def test_groups_number_applications_and_their_kernels() -> None:
    profiles = Profiles(("b", "a", "b"), ("k", "k", "k"), ("s", "s", "t"), np.zeros((3, len(METRICS))))
    assert profiles.groups("application").tolist() == [1, 0, 1]
    assert profiles.groups("kernel").tolist() == [1, 0, 1]


def test_kernels_are_launched_once_unless_said() -> None:
    assert Profiles(("a",), ("k",), ("s",), np.zeros((1, len(METRICS)))).invocations.tolist() == [1]


def test_shapes_that_do_not_fit_are_refused(lawful: Grid) -> None:
    with pytest.raises(InputError, match="profiles: expected names of one length"):
        Profiles(("a",), ("k",), (), np.zeros((1, len(METRICS))))
    with pytest.raises(InputError, match="profiles: expected invocations of shape"):
        Profiles(("a",), ("k",), ("s",), np.zeros((1, len(METRICS))), np.array([1, 2]))
    with pytest.raises(InputError, match="grid: expected times, spreads and runs of shape"):
        Grid(lawful.profiles, lawful.devices[:2], lawful.log_time, lawful.spread, lawful.runs)


def test_the_bundled_grid_is_the_joined_view(bundled: Grid) -> None:
    joined = crosscast.join(crosscast.bundled_dataset()).to_pylist()
    profiles, keys = bundled.profiles, [device.key for device in bundled.devices]
    places = {
        key: row
        for row, key in enumerate(zip(profiles.application, profiles.kernel, profiles.size, strict=True))
    }
    assert len(joined) == np.isfinite(bundled.log_time).sum()
    for row in joined[::17]:
        place = places[row["application"], row["kernel"], row["size"]]
        column = keys.index(row["device"])
        assert np.exp(bundled.log_time[place, column]) == pytest.approx(row["time_median_s"])
        assert metric(profiles, "work_items")[place] == row["work_items"]
        assert bundled.runs[place, column] == row["runs"]
