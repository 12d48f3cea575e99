"""Counters of a session are those of a run, and of each of its kernels."""

import numpy as np
import pytest
from made_runs_seen import dataset_of_runs, run

from crosscast.errors import InputError
from crosscast.predict.relative.observed import counted_runs, has_counters


def test_counters_over_all_runs_are_divided_by_them() -> None:
    seen = counted_runs(dataset_of_runs([run("cpu", 1.0, runs=4, counters={"loads": 20, "stores": 2})]))
    assert (seen.names, seen.counters.tolist()) == (("loads", "stores"), [[5, 0.5]])


def test_kernels_of_a_session_share_its_counters() -> None:
    seen = counted_runs(dataset_of_runs([run("cpu", 1.0, kernels=["sum", "scan"], counters={"loads": 2})]))
    assert (seen.kernel, seen.counters.tolist()) == (("sum", "scan"), [[2], [2]])
    np.testing.assert_array_equal(seen.time_s, [1, np.nan])


def test_settings_that_are_numbers_are_the_configuration() -> None:
    runs = [
        run("cpu", 1.0, settings={"compiler": "gcc", "cores": 4.0, "uses_gpu": 0.0}, counters={"loads": 1}),
        run("gpu", 1.0, settings={"uses_gpu": 1.0, "scale": 2.0}, counters={"loads": 1}),
    ]
    seen = counted_runs(dataset_of_runs(runs))
    assert seen.configuration == ("cores", "uses_gpu")
    np.testing.assert_array_equal(seen.settings, [[4, 0], [np.nan, 1]])
    assert seen.scale == ("4 cores", "2")


def test_an_empty_counter_is_missing() -> None:
    runs = [run("a", 1.0, counters={"loads": None, "ipc": 1}), run("b", 1.0, counters={"loads": 3})]
    np.testing.assert_array_equal(counted_runs(dataset_of_runs(runs)).counters, [[1, np.nan], [np.nan, 3]])


def test_a_failed_session_has_no_counters() -> None:
    dataset = dataset_of_runs([run("cpu", 1.0, failure="wrong", counters={"loads": 1})])
    assert not has_counters(dataset)
    with pytest.raises(InputError, match="made up: expected sessions with counters, found none"):
        counted_runs(dataset)


def test_counters_that_are_no_numbers_are_refused() -> None:
    dataset = dataset_of_runs([run("cpu", 1.0, counters={"loads": "many"})])
    with pytest.raises(
        InputError, match=r"sessions: column 'counters' of sums, big, cpu, .* expected an object of numbers"
    ):
        counted_runs(dataset)


def test_settings_that_are_no_settings_are_refused() -> None:
    dataset = dataset_of_runs([run("cpu", 1.0, settings={"cores": [1]}, counters={"loads": 1})])  # type: ignore[dict-item]
    with pytest.raises(InputError, match="configuration: cores: expected a finite number or a word"):
        counted_runs(dataset)
