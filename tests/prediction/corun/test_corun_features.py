"""Traits of applications: their origin, and replacements of missing ones."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crosscast.data.corun import IsolatedRun
from crosscast.prediction.corun.features import CoRunnerRows, Traits, applications_of
from crosscast.prediction.corun.slowdowns import LINKS, KernelSizes, Scale, SlowdownCovariance
from crosscast.prediction.corun.training import weights_of
from support.mixes import NAMES, make_isolated_run

THREE = [make_isolated_run(name) for name in ("bfs", "cfd", "crc")]


def bare(name: str, **features: float) -> IsolatedRun:
    return IsolatedRun(name, "s", "d", 1.0, features=features)


def test_traits_are_what_more_than_half_of_the_applications_have() -> None:
    isolated_runs = [
        bare("a", utilisation=0.5, slowdown_low=1.1),
        bare("b", utilisation=0.7),
        bare("c", slowdown_low=1.0),
        bare("d", ipc=2.0),
        bare("e", utilisation=0.9),
    ]
    traits = Traits.of(isolated_runs)
    assert traits.names == ("utilisation",)
    assert_array_equal(traits.matrix(isolated_runs).near[:, 0], [0.5, 0.7, 0.7, 0.7, 0.9])


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_slowdown_with_a_microbenchmark_that_cannot_be_is_not_known(value: float) -> None:
    isolated_runs = [bare("a", slowdown_low=1.5), bare("b", slowdown_low=3.0), bare("c", slowdown_low=value)]
    near = Traits.of(isolated_runs).matrix(isolated_runs).near[:, 0]
    assert_allclose(near, np.log([1.5, 3.0, np.sqrt(4.5)]))


def test_without_traits_the_load_is_the_lowest_rate_or_else_the_time_alone() -> None:
    isolated_runs = [bare("a", k80_steps_per_s=1.0, v100_steps_per_s=2.0), bare("b", k80_steps_per_s=2.0)]
    both = [replace(each, features={"v100_steps_per_s": 4.0, **each.features}) for each in isolated_runs]
    assert Traits.of(both).load == "k80_steps_per_s"
    # Slower is more load.
    load = Traits.of(both).matrix(both).load
    assert load[0] > load[1]
    isolated_runs = [bare("a"), replace(bare("b"), time_s=math.e**2), replace(bare("c"), time_s=None)]
    traits = Traits.of(isolated_runs)
    assert traits.load == "time_s"
    assert_allclose(traits.matrix(isolated_runs).load[2], 0.0, atol=1e-12)
    unknown = [replace(each, time_s=None) for each in isolated_runs]
    assert_array_equal(Traits.of(unknown).matrix(unknown).load, np.zeros(3))


def test_a_load_that_is_not_known_is_the_mean_of_the_training_whoever_else_is_asked_about() -> None:
    known = [bare("a", k80_steps_per_s=1.0), bare("b", k80_steps_per_s=9.0)]
    traits, new = Traits.of(known), bare("c")
    for inputs in ([new], [new, known[0]], [new, known[1]]):
        assert_allclose(traits.matrix(inputs).load[0], 0.0, atol=1e-12)


def test_rows_count_who_is_beside_whom() -> None:
    mixes = [(THREE[0], THREE[2]), (THREE[1], THREE[1], THREE[0])]
    isolated_runs, indices = applications_of(mixes)
    rows = CoRunnerRows.of(indices, len(isolated_runs))
    assert [each.application for each in isolated_runs] == ["bfs", "cfd", "crc"]
    assert rows.own.tolist() == [0, 2, 1, 1, 0]
    assert rows.beside.tolist() == [[0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 2, 0]]
    assert rows.mix.tolist() == [0, 0, 1, 1, 1]
    assert rows.members.tolist() == [2, 2, 3, 3, 3]


WITH = [make_isolated_run(name, size) for name in NAMES for size in ("small", "tiny")]
WITHOUT = [replace(each, features={}) for each in WITH]


def training(mixes: list[tuple[IsolatedRun, ...]]) -> SlowdownCovariance:
    isolated_runs, indices = applications_of(mixes)
    return SlowdownCovariance(
        Traits.of(isolated_runs).matrix(isolated_runs), CoRunnerRows.of(indices, len(isolated_runs))
    )


def mixes_of(isolated_runs: list[IsolatedRun], seed: int, count: int = 12) -> list[tuple[IsolatedRun, ...]]:
    random = np.random.default_rng(seed)
    return [
        tuple(isolated_runs[index] for index in random.choice(len(isolated_runs), size=random.integers(2, 5)))
        for _ in range(count)
    ]


def moved(covariance: SlowdownCovariance, seed: int) -> KernelSizes:
    sizes = KernelSizes.unfitted(covariance.features.near.shape[1])
    return sizes.from_vector(sizes.vector + np.random.default_rng(seed).normal(0, 0.7, len(sizes.vector)))


@pytest.mark.parametrize("isolated_runs", [WITH, WITHOUT], ids=["traits", "no traits"])
@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_it_is_symmetric_and_never_negative(isolated_runs: list[IsolatedRun], seed: int) -> None:
    mixes = training(mixes_of(isolated_runs, seed))
    covariance = mixes.matrix(moved(mixes, seed))
    assert_allclose(covariance, covariance.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.trace(covariance)


@pytest.mark.parametrize("isolated_runs", [WITH, WITHOUT], ids=["traits", "no traits"])
def test_its_slope_is_that_of_finite_differences(isolated_runs: list[IsolatedRun]) -> None:
    mixes = training(mixes_of(isolated_runs, 3))
    sizes = moved(mixes, 3)
    half = np.random.default_rng(3).normal(size=(len(mixes.rows.own), len(mixes.rows.own)))
    weights = half + half.T
    slope = mixes.slope(sizes, weights)
    assert len(slope) == len(sizes.vector) - 1
    for index, result in enumerate(slope):
        step = np.zeros(len(sizes.vector))
        step[index] = 1e-5
        up, down = (
            (weights * mixes.matrix(sizes.from_vector(sizes.vector + way * step))).sum() for way in (1, -1)
        )
        assert result == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("isolated_runs", [WITH, WITHOUT], ids=["traits", "no traits"])
@pytest.mark.parametrize("count", [12, 400], ids=["fewer rows than pairs", "more"])
def test_weights_are_those_of_the_whole_covariance(isolated_runs: list[IsolatedRun], count: int) -> None:
    mixes = training(mixes_of(isolated_runs, 4, count))
    sizes, rows = moved(mixes, 4), mixes.rows
    values = np.random.default_rng(4).normal(size=len(rows.own))
    weights = np.linalg.solve(mixes.matrix(sizes) + sizes.noise * np.eye(len(values)), values)
    alone, beside = weights_of(mixes, sizes, values)
    chosen = np.eye(len(alone))[rows.own]
    # Weights differ where applications are alike, but not what they say.
    pairs = mixes.of_pairs(sizes)
    expected = np.column_stack([(chosen.T * weights) @ rows.beside, chosen.T @ weights])
    result = np.column_stack([beside, alone])
    assert_allclose(pairs @ result.ravel(), pairs @ expected.ravel(), rtol=1e-6, atol=1e-6)


@given(st.sampled_from(sorted(LINKS)), st.floats(0.05, 49), st.integers(2, 9), st.floats(-0.5, 0.5))
def test_slowdowns_come_back(link: str, slowdown: float, members: int, slope: float) -> None:
    scale = Scale(link, -0.3, slope, 0.2)
    values, count = np.array([slowdown]), np.array([float(members)])
    assert scale.back(scale.to(values, count), count)[0] == pytest.approx(slowdown, rel=1e-9)


@given(st.sampled_from(sorted(LINKS)), st.floats(-1e6, 1e6))
def test_whatever_the_number_the_slowdown_is_one(link: str, number: float) -> None:
    slowdown = LINKS[link].back(np.array([number]))[0]
    assert 0 <= slowdown <= 50 + 1e-9
    assert np.isfinite(slowdown)


@given(st.sampled_from(sorted(LINKS)), st.floats(0.1, 40), st.floats(0.01, 5))
def test_larger_numbers_are_larger_slowdowns(link: str, slowdown: float, more: float) -> None:
    first, second = LINKS[link].to(np.array([slowdown, slowdown + more]))
    assert first < second
