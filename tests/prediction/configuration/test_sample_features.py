"""Powers and times become logarithms, events shares of the instructions, and what is not known NaN."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.prediction.configuration.data import Surfaces, Values
from crosscast.prediction.configuration.features import SampleColumns, SampleFeatures
from support.surfaces import made_surfaces

ONE = np.array([1.0])


def test_events_are_divided_and_rates_and_the_total_are_logarithms() -> None:
    sources = ("time", *(f"counter:{name}" for name in ("busy", "instructions", "misses", "read_throughput")))
    columns = SampleColumns(sources, frozenset({"instructions", "misses", "read_throughput"}), "instructions")
    counters = {
        "busy": np.array([0.5]),
        "instructions": np.array([1e6]),
        "misses": np.array([2e3]),
        "read_throughput": np.array([300.0]),
    }
    matrix = columns.matrix(Values(ONE, ONE, {}, counters))
    np.testing.assert_allclose(matrix[1:, 0], [0.5, np.log1p(1e6), 2e-3, np.log1p(300)])
    assert tuple(columns.kinds) == ("plain", "ratio", "count", "share", "count")


def test_without_instructions_in_a_run_its_events_are_not_known() -> None:
    columns = SampleColumns(
        ("time", "counter:misses", "counter:instructions"), frozenset({"misses"}), "instructions"
    )
    counters = {"misses": np.array([5e3])}
    matrix = columns.matrix(Values(ONE, ONE, {}, counters))
    assert np.isnan(matrix[1, 0])
    counters["instructions"] = np.array([0.0])
    assert np.isnan(columns.matrix(Values(ONE, ONE, {}, counters))[1, 0])


SAMPLES = (11, 0)


def with_counters(**counters: Reals) -> Surfaces:
    surfaces = made_surfaces(2)
    spread = {
        name: np.repeat(values[:, None], len(surfaces.space), axis=1) for name, values in counters.items()
    }
    return dataclasses.replace(surfaces, counters=spread)


def test_readable_features_are_in_watts_ratios_and_counts() -> None:
    instructions, misses = np.array([1e6, 2e6, 4e6, 8e6]), np.array([1e3, 5e3, 1e4, 2e3])
    surfaces = with_counters(instructions=instructions, misses=misses, busy=misses / 1e5)
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    result = dict(zip(features.readable_names, features.readable(values).T, strict=True))
    np.testing.assert_allclose(result["gpu_power_w at sample 1"], surfaces.domains["gpu"][:, 11])
    np.testing.assert_allclose(result["power_w at sample 2"], surfaces.power_w[:, 0])
    np.testing.assert_allclose(
        result["time_ratio at sample 2"], surfaces.time_s[:, 0] / surfaces.time_s[:, 11]
    )
    np.testing.assert_allclose(result["instructions at sample 1"], instructions)
    np.testing.assert_allclose(result["misses / instructions at sample 1"], misses / instructions)
    np.testing.assert_allclose(result["busy at sample 2"], misses / 1e5)


def test_what_is_missing_becomes_the_mean_of_the_training_kernels() -> None:
    surfaces = made_surfaces(4)
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    bare = dataclasses.replace(surfaces.observed(0, SAMPLES), domains={}, counters={})
    result = features.values(bare, [0, 1])
    for index, name in enumerate(features.names):
        known = name.startswith(("time", "power"))
        assert result[index] == pytest.approx(values[0, index] if known else features.centre[index])
