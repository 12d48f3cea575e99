"""Noise is estimated where there are no repeats, and choices are scored on others that it simulates."""

from dataclasses import replace

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.configuration import Configuration
from crosscast.decide.cases import cases_of
from crosscast.decide.scores import RepeatNoise, repeat_noise, simulated_repeats, split_half_oracle
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces
from made_walks import random_surfaces


def flat(time: float, power: float, *, slope: float = 0.0, kernels: int = 20, seed: int = 0) -> Surfaces:
    """Kernels whose log time and log power rise evenly with two knobs, and noise of these sizes."""
    rng = np.random.default_rng(seed)
    space = Space(
        tuple(Configuration("n", {"a": float(a**2), "b": float(b)}) for a in range(1, 10) for b in range(9))
    )
    rise = slope * space.matrix @ np.array([0.01, 0.1])
    shape = (kernels, len(space))
    return Surfaces(
        "flat",
        tuple(KernelAt(f"p{row}", "k", "big") for row in range(kernels)),
        space,
        np.exp(-rise + time * rng.standard_normal(shape)),
        100 * np.exp(rise + power * rng.standard_normal(shape)),
    )


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_noise_on_a_plane_is_found(slope: float) -> None:
    noise = repeat_noise(flat(0.02, 0.005, slope=slope))
    assert noise is not None
    # The lesser of two estimates is a little less than either.
    assert np.median(noise.time) == pytest.approx(0.02, rel=0.12)
    assert np.median(noise.power) == pytest.approx(0.005, rel=0.12)


def test_noise_is_that_of_single_cells() -> None:
    # The second knob bends the surface, so that the first alone tells of noise.
    surfaces = flat(0.02, 0.005, kernels=100)
    bend = np.exp(np.sin(7 * surfaces.space.matrix[:, 1]))
    noise = repeat_noise(replace(surfaces, time_s=surfaces.time_s * bend, power_w=surfaces.power_w * bend))
    assert noise is not None
    assert np.median(noise.time) == pytest.approx(0.02, rel=0.05)
    assert np.median(noise.power) == pytest.approx(0.005, rel=0.05)


def test_no_noise_is_found_where_a_knob_is_without_effect() -> None:
    surfaces = flat(0.0, 0.0)
    bent = np.sin(surfaces.space.matrix[:, 1] * 7) + surfaces.time_s
    noise = repeat_noise(replace(surfaces, time_s=bent))
    assert noise is not None
    assert noise.time == pytest.approx(0, abs=1e-12)


def test_a_kernel_with_few_runs_is_as_noisy_as_the_median() -> None:
    surfaces = flat(0.02, 0.005)
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[0, 5:] = power_w[0, 5:] = np.nan
    noise = repeat_noise(replace(surfaces, time_s=time_s, power_w=power_w))
    assert noise is not None
    assert noise.time[0] == np.median(noise.time[1:])


def test_without_three_settings_of_a_knob_nothing_is_known() -> None:
    assert repeat_noise(random_surfaces(0, knobs=(2, 2), missing=0)) is None


def test_the_split_half_oracle_fails_by_noise_alone() -> None:
    surfaces = made_surfaces(noise=0.02)
    cases = cases_of(surfaces, (11, 0))
    n = len(surfaces.kernels)
    noise = RepeatNoise(np.full(n, 0.005), np.full(n, 0.005))
    found = split_half_oracle(cases, simulated_repeats(surfaces, noise, 0))
    assert found.violations is not None
    assert 0.15 < found.violations < 0.5
    quiet = RepeatNoise(np.zeros(n), np.zeros(n))
    none = split_half_oracle(cases, simulated_repeats(surfaces, quiet, 0))
    assert none.violations == 0
    assert none.score == pytest.approx(1)


def test_the_guard_is_a_tolerance_of_1_percent() -> None:
    surfaces = made_surfaces()
    cases = cases_of(surfaces, (11, 0))
    n = len(surfaces.kernels)
    # What was measured has the noise of one repeat, and the repeat that of another.
    noise = RepeatNoise(np.zeros(n), np.full(n, 0.01 / 1.6449 / np.sqrt(2)))
    metrics = simulated_repeats(surfaces, noise, 3).scored(cases, cases.oracle)
    # One in twenty errors of a normal distribution is more than 1.6449 standard deviations up.
    assert metrics.under_limit_share_within_1pct == pytest.approx(0.95, abs=0.02)
    assert metrics.under_limit_share == pytest.approx(0.5, abs=0.05)


def test_repeats_differ_from_each_other_as_from_what_was_measured() -> None:
    surfaces = flat(0.0, 0.0)
    count = len(surfaces.kernels)
    repeats = simulated_repeats(surfaces, RepeatNoise(np.full(count, 0.02), np.full(count, 0.005)), 0)
    pairs = ((repeats.time_s, surfaces.time_s, 0.02), (repeats.power_w, surfaces.power_w, 0.005))
    for values, measured, noise in pairs:
        for one, other in ((values[0], measured), (values[1], measured), (values[0], values[1])):
            assert np.log(one / other).std() == pytest.approx(np.sqrt(2) * noise, rel=0.02)


def test_repeats_are_the_same_from_the_same_seed() -> None:
    surfaces = made_surfaces()
    noise = RepeatNoise(np.full(12, 0.01), np.full(12, 0.01))
    one, other = (simulated_repeats(surfaces, noise, seed) for seed in (4, 4))
    assert np.array_equal(one.power_w, other.power_w)
    assert not np.array_equal(one.power_w, simulated_repeats(surfaces, noise, 5).power_w)
    assert not np.array_equal(one.power_w[0], one.power_w[1])
