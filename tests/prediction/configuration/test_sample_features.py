"""Powers and times become logarithms, events shares of the instructions, and what is not known NaN."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.prediction.configuration.data import Surfaces, Values
from crosscast.prediction.configuration.features import SampleColumns, SampleFeatures, counts_in
from support.surfaces import made_surfaces

NONE = frozenset[str]()
ONE = np.array([1.0])


def test_sources_are_told_in_their_order() -> None:
    columns = SampleColumns(("time", "power", "domain:cpu"), NONE, "")
    matrix = columns.matrix(
        Values(np.array([2.0, 6.0]), np.array([80.0, 40.0]), {"cpu": np.array([30.0, 0.0])}, {})
    )
    np.testing.assert_allclose(
        matrix, [[0, np.log(3)], [np.log(80), np.log(40)], [np.log(30), np.nan]], rtol=1e-14
    )


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


def test_many_kernels_are_told_as_one_is() -> None:
    columns = SampleColumns(("time", "power", "counter:a"), frozenset({"a"}), "")
    rng = np.random.default_rng(0)
    time, power, counter = rng.random((3, 5, 2)) + 1
    together = columns.matrix(Values(time, power, {}, {"a": counter}))
    alone = [columns.matrix(Values(time[row], power[row], {}, {"a": counter[row]})) for row in range(5)]
    np.testing.assert_allclose(together, alone, rtol=1e-14)


def test_counters_that_reach_above_a_hundred_are_counts() -> None:
    counters = {
        "share": np.array([0.1, np.nan]),
        "percent": np.array([3.0, 100.0]),
        "events": np.array([np.nan, 1e5]),
        "change": np.array([-1e5, 1e5]),
        "unknown": np.array([np.nan, np.nan]),
    }
    assert counts_in(counters) == {"events"}


SAMPLES = (11, 0)


def with_counters(**counters: Reals) -> Surfaces:
    surfaces = made_surfaces(2)
    spread = {
        name: np.repeat(values[:, None], len(surfaces.space), axis=1) for name, values in counters.items()
    }
    return dataclasses.replace(surfaces, counters=spread)


def column(surfaces: Surfaces, name: str) -> Reals:
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    return values[:, features.names.index(name)]


def test_a_kernel_has_the_features_that_it_had_in_training() -> None:
    surfaces = made_surfaces(4, noise=0.1)
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    for row in range(len(surfaces.kernels)):
        observed = surfaces.observed(row, (5, *SAMPLES))
        np.testing.assert_allclose(features.values(observed, [1, 2]), values[row], rtol=1e-14)


def test_powers_and_times_are_logarithms_and_times_are_relative_to_the_first_sample() -> None:
    surfaces = made_surfaces(2)
    np.testing.assert_allclose(column(surfaces, "domain:gpu@1"), np.log(surfaces.domains["gpu"][:, 0]))
    np.testing.assert_allclose(
        column(surfaces, "time@1"), np.log(surfaces.time_s[:, 0] / surfaces.time_s[:, 11])
    )
    assert "time@0" not in SampleFeatures.of(surfaces, SAMPLES)[0].names


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


def test_a_domain_that_some_kernels_lack_is_filled_in_training() -> None:
    surfaces = made_surfaces(4)
    surfaces.domains["gpu"][2] = np.nan
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    assert np.isfinite(values).all()
    assert values[2, features.names.index("domain:gpu@0")] == pytest.approx(
        np.log(np.delete(surfaces.domains["gpu"][:, 11], 2)).mean()
    )


def test_the_domain_that_is_the_whole_is_not_told_twice() -> None:
    surfaces = made_surfaces(4)
    twice = dataclasses.replace(surfaces, domains={**surfaces.domains, "node": surfaces.power_w})
    assert SampleFeatures.of(twice, SAMPLES)[0].names == SampleFeatures.of(surfaces, SAMPLES)[0].names


def test_many_counters_weigh_as_much_as_all_else() -> None:
    rng = np.random.default_rng(0)
    surfaces = with_counters(**{f"c{index}": rng.random(4) for index in range(20)})
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    squares = features.standardized(values) ** 2
    counters = np.array([name.startswith("counter") for name in features.names])
    assert squares[:, counters].sum() == pytest.approx(squares[:, ~counters].sum())


def test_nothing_is_stranger_than_three_deviations() -> None:
    features, values = SampleFeatures.of(made_surfaces(4), SAMPLES)
    far = features.standardized(values + 1e6)
    assert np.abs(far).max() <= 3 * 3
