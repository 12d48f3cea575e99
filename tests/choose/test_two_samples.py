"""The two sample configurations are where runs tell most, on one device or on several."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_machine import linear_surfaces
from made_surfaces import made_surfaces

from crosscast.arrays import Reals
from crosscast.configuration import Configuration
from crosscast.decide.samples import _RIDGE, _left_out, two_samples
from crosscast.errors import InputError
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces

ONE = made_surfaces(3)


def named(surfaces: Surfaces) -> list[str]:
    return [str(surfaces.space.configurations[each]) for each in two_samples(surfaces)]


def holes(surfaces: Surfaces, rows: list[int], columns: list[int]) -> Surfaces:
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[np.ix_(rows, columns)] = power_w[np.ix_(rows, columns)] = np.nan
    return replace(surfaces, time_s=time_s, power_w=power_w)


def several(seed: int = 0, devices: str = "abc") -> Surfaces:
    """Eight kernels: what they do on b and on c are two things, and on a they hardly differ."""
    rng = np.random.default_rng(seed)
    space = Space(
        tuple(Configuration(key, {"clock_hz": clock}) for key in devices for clock in (1e9, 2e9, 3e9))
    )
    clock = space.matrix[:, 0] / 1e9
    slope = np.hstack([np.zeros((8, 1)), rng.normal(size=(8, 2))])[:, space.device_numbers]
    noise = 0.05 * rng.normal(size=(8, 9))
    return Surfaces(
        "several",
        tuple(KernelAt(f"app{row}", f"app{row}", "only") for row in range(8)),
        space,
        np.exp(slope + noise) / clock,
        np.exp(4 + 0.3 * slope * clock + noise),
    )


def test_on_one_device_they_are_all_and_the_least() -> None:
    assert named(ONE) == ["node: cpu_cap_w 100, gpu_cap_w 250", "node: cpu_cap_w 60, gpu_cap_w 100"]


def test_a_corner_that_few_kernels_ran_at_is_no_sample() -> None:
    assert named(holes(ONE, [0, 1], [11]))[0] == "node: cpu_cap_w 100, gpu_cap_w 200"


def test_of_two_devices_one_is_taken_of_each() -> None:
    surfaces = linear_surfaces(6)
    found = two_samples(surfaces)
    assert sorted(surfaces.space.device_numbers[list(found)]) == [0, 1]


def test_of_several_devices_those_are_taken_that_tell_most() -> None:
    surfaces = several()
    assert [surfaces.space.configurations[each].device for each in two_samples(surfaces)] == ["b", "c"]


def test_pairs_at_which_few_kernels_ran_are_not_compared() -> None:
    # On c only two kernels ran, so that they would be told best by any of them.
    surfaces = holes(several(), [0, 1, 2, 3, 4, 5], [6, 7, 8])
    assert [surfaces.space.configurations[each].device for each in two_samples(surfaces)] == ["a", "b"]


def test_a_device_with_a_single_configuration_has_one_corner() -> None:
    surfaces = several()
    single = holes(surfaces, list(range(8)), [0, 1, 2, 3, 4, 6, 7])
    assert two_samples(single) == (5, 8)


@settings(max_examples=10)
@given(st.permutations(range(8)))
def test_the_order_of_the_kernels_does_not_matter(order: list[int]) -> None:
    surfaces = holes(several(3), [1, 4], [0, 7])
    assert two_samples(surfaces.take(np.array(order))) == two_samples(surfaces)


def test_one_kernel_is_enough_to_run_at_two_configurations() -> None:
    found = two_samples(several().take(np.array([0])))
    assert len(set(found)) == 2
    assert len(set(several().space.device_numbers[list(found)])) == 2


def test_two_configurations_are_needed() -> None:
    sentence = "several: expected two configurations at which kernels ran, found fewer"
    surfaces = several()
    with pytest.raises(InputError, match=sentence):
        two_samples(holes(surfaces, list(range(8)), list(range(8))))
    # No kernel ran on two devices.
    apart = holes(holes(surfaces, [0, 1, 2, 3], [3, 4, 5, 6, 7, 8]), [4, 5, 6, 7], [0, 1, 2, 6, 7, 8])
    with pytest.raises(InputError, match=sentence):
        two_samples(apart)


def refitted(inputs: Reals, values: Reals) -> Reals:
    """Squared errors of ridge regressions with an intercept, each fitted to all rows but one."""
    rows = len(inputs)
    spread = inputs.std(axis=0)
    design = np.column_stack([np.ones(rows), inputs / np.where(spread > 0, spread, 1)])
    penalty = _RIDGE * rows * np.diag([0.0, *np.ones(inputs.shape[1])])
    errors = np.empty(rows)
    for row in range(rows):
        others = np.arange(rows) != row
        inner = design[others].T @ design[others] + penalty
        errors[row] = values[row] - design[row] @ np.linalg.solve(inner, design[others].T @ values[others])
    return errors**2


def test_leaving_out_is_as_fitting_again() -> None:
    # So that centring by all rows makes no difference: the intercept takes it up.
    rng = np.random.default_rng(2)
    inputs, values = rng.normal(3, 2, size=(9, 4)), rng.normal(5, 1, size=(9, 3))
    inputs[:, 2] = 1.0
    values[[2, 5], 1] = np.nan
    values[1:, 2] = np.nan
    found = _left_out(inputs, values)
    np.testing.assert_allclose(found[:, 0], refitted(inputs, values[:, 0]), rtol=1e-8)
    there = np.isfinite(values[:, 1])
    np.testing.assert_allclose(found[there, 1], refitted(inputs[there], values[there, 1]), rtol=1e-8)
    assert np.isnan(found[~there, 1]).all()
    assert np.isnan(found[:, 2]).all()


def test_every_pair_is_considered() -> None:
    # The winner is that of a plain search over corners of two devices.
    surfaces = several(5)
    corners = [0, 2, 3, 5, 6, 8]
    numbers = surfaces.space.device_numbers

    def error(pair: tuple[int, int]) -> float:
        time, power = np.log(surfaces.time_s), np.log(surfaces.power_w)
        inputs = np.hstack([time[:, pair], power[:, pair]])
        columns = [*(time - time[:, [pair[0]]]).T, *power.T]
        return float(np.mean([refitted(inputs, column) for column in columns]))

    pairs = [pair for pair in combinations(corners, 2) if numbers[pair[0]] != numbers[pair[1]]]
    assert two_samples(surfaces) == min(pairs, key=error)
