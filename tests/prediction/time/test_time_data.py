"""A grid takes what fits together, and the grid of a dataset is what its records and profiles say."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES, to_row
from crosscast.data.schema import DEVICES, RECORDS
from crosscast.data.table import table_of
from crosscast.errors import InputError
from crosscast.prediction.time import Grid, ProfileBatch, Toolchain, impute
from crosscast.prediction.time.datasets import grid_of
from crosscast.profile import METRICS, Profile
from support.examples import examples
from support.grids import grid_of_times, small_grid, small_profiles
from support.refusals import refusal


def test_groups_number_applications_and_their_kernels() -> None:
    profiles = ProfileBatch(("b", "a", "b"), ("k", "k", "k"), ("s", "s", "t"), np.zeros((3, len(METRICS))))
    assert profiles.invocations.tolist() == [1, 1, 1]
    assert profiles.groups("application").tolist() == [1, 0, 1]
    assert profiles.groups("kernel").tolist() == [1, 0, 1]


def test_shapes_that_do_not_fit_are_refused(lawful: Grid) -> None:
    with pytest.raises(InputError, match="profiles: sizes: expected 1, one a profile, found 0"):
        ProfileBatch(("a",), ("k",), (), np.zeros((1, len(METRICS))))
    with pytest.raises(InputError, match="profiles: invocations: expected 1, one a profile, found 2"):
        ProfileBatch(("a",), ("k",), ("s",), np.zeros((1, len(METRICS))), np.array([1, 2]))
    with pytest.raises(InputError, match="grid: log_time: expected shape"):
        Grid(lawful.profiles, lawful.devices[:2], lawful.log_time, lawful.spread, lawful.runs)


@given(st.integers(0, 2**32), st.floats(0, 0.8))
@examples(50)
def test_sums_of_a_kernels_and_a_devices_effect_are_filled_exactly(seed: int, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(12, 1)) + rng.normal(size=5)
    log_time = np.where(rng.random(whole.shape) < gaps, np.nan, whole)
    # One kernel on all devices joins them; one device joins all kernels.
    log_time[0], log_time[:, 1] = whole[0], whole[:, 1]
    np.testing.assert_allclose(
        impute(grid_of_times(small_profiles(12, {}), log_time)).log_time, whole, atol=1e-9
    )


def test_a_device_without_times_is_refused_by_name() -> None:
    grid = small_grid(n=6)
    grid.log_time[:, 1] = np.nan
    assert refusal(impute, grid) == "grid: expected times on every device, found none on d1"


Maker = Callable[..., Profile]


def test_kernels_of_other_programs_sizes_and_applications_are_others(make_profile: Maker) -> None:
    one = make_profile("k")
    others = [
        replace(one, application="a"),
        replace(one, size="tiny"),
        replace(one, program={**one.program, "sha256": "cd" * 32}),
    ]
    assert len(ProfileBatch.of([one, *others, one])) == 4
    assert "expected at least one, found none" in refusal(ProfileBatch.of, [])
    assert ProfileBatch.of([make_profile()], invocations=9).invocations.tolist() == [9]
    with pytest.raises(InputError, match="invocations: expected at least 1, found 0"):
        ProfileBatch.of([make_profile()], invocations=0)


def test_it_agrees_with_the_grid_of_a_dataset(make_profile: Maker) -> None:
    cell = {"application": "sums", "size": "tiny"}
    profiles = [
        replace(make_profile("k", number, opcode=3 + number), application="sums", size="tiny")
        for number in range(3)
    ]
    run = {**cell, "kernel": "k", "device": "cpu", "configuration": "{}", "repeat": 0, "run": 0}
    dataset = Dataset(
        "small",
        devices=table_of(DEVICES, [{"device": "cpu", "name": "cpu", "type": "cpu", "sources": {}}]),
        profiles=table_of(PROFILES, map(to_row, profiles)),
        records=table_of(RECORDS, [{**run, "time_s": [1e-3] * 3, "invocations": 3}]),
    )
    grid, batch = grid_of(dataset), ProfileBatch.of(profiles)
    np.testing.assert_allclose(batch.metrics, grid.profiles.metrics)
    assert batch.invocations.tolist() == grid.profiles.invocations.tolist() == [3]


def test_a_toolchain_is_a_compiler_and_what_it_was_told_about_optimizing(make_profile: Maker) -> None:
    program = {"compiler": "clang 22", "options": ["-DN=3", "-D", "M", "-O0", "-Ix", "-cl-mad-enable"]}
    assert Toolchain.of(program) == Toolchain("clang 22", ("-O0", "-cl-mad-enable"))
    assert str(Toolchain.of(program)) == "clang 22 -O0 -cl-mad-enable"
    assert Toolchain.of({"tool": "AIWC 2018", "published": {}}) == Toolchain("AIWC 2018")
    assert str(Toolchain.of({})) == "an unknown compiler"
    assert ProfileBatch.of([replace(make_profile(), program=program)]).toolchains == (
        (Toolchain.of(program),),
    )
