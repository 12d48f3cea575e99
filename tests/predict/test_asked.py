"""From profiles of launches to kernels: groups, means, counts and toolchains."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.time.data import Toolchain, kernels_of, metric, toolchain_of
from crosscast.predict.time.observed import grid_of
from crosscast.profile import Profile
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.profiles import PROFILES, to_row
from crosscast.tables.records import RECORDS

Maker = Callable[..., Profile]


def test_launches_of_a_kernel_are_averaged_and_counted(make_profile: Maker) -> None:
    launches = [make_profile("k", number, opcode=4 + 2 * number) for number in range(2)]
    asked = kernels_of([*launches, make_profile("l")])
    assert asked.profiles.kernel == ("k", "l")
    assert asked.profiles.invocations.tolist() == [2, 1]
    assert metric(asked.profiles, "opcode").tolist() == [5, 7]


def test_what_is_not_defined_in_a_launch_does_not_count_there(make_profile: Maker) -> None:
    launches = [make_profile("k", 0, reread_ratio=None), make_profile("k", 1, reread_ratio=0.25)]
    asked = kernels_of([replace(each, metrics=dict(each.metrics) | {"opcode": None}) for each in launches])
    assert metric(asked.profiles, "reread_ratio").tolist() == [0.25]
    assert np.isnan(metric(asked.profiles, "opcode")).all()


def test_kernels_of_other_programs_sizes_and_applications_are_others(make_profile: Maker) -> None:
    one = make_profile("k")
    others = [
        replace(one, application="a"),
        replace(one, size="tiny"),
        replace(one, program={**one.program, "sha256": "cd" * 32}),
    ]
    assert len(kernels_of([one, *others, one]).profiles) == 4


def test_a_number_of_invocations_replaces_the_count(make_profile: Maker) -> None:
    assert kernels_of([make_profile()], invocations=9).profiles.invocations.tolist() == [9]
    with pytest.raises(InputError, match="invocations: expected at least 1, found 0"):
        kernels_of([make_profile()], invocations=0)


def test_no_profile_is_refused() -> None:
    with pytest.raises(InputError, match="expected at least one, found none"):
        kernels_of([])


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
    grid, asked = grid_of(dataset), kernels_of(profiles)
    np.testing.assert_allclose(asked.profiles.metrics, grid.profiles.metrics)
    assert asked.profiles.invocations.tolist() == grid.profiles.invocations.tolist() == [3]


def test_a_toolchain_is_a_compiler_and_what_it_was_told_about_optimizing(make_profile: Maker) -> None:
    program = {"compiler": "clang 22", "options": ["-DN=3", "-D", "M", "-O0", "-Ix", "-cl-mad-enable"]}
    assert toolchain_of(program) == Toolchain("clang 22", ("-O0", "-cl-mad-enable"))
    assert str(toolchain_of(program)) == "clang 22 -O0 -cl-mad-enable"
    assert kernels_of([replace(make_profile(), program=program)]).toolchains == ((toolchain_of(program),),)


def test_a_published_tool_is_a_toolchain_and_nothing_an_unknown_one() -> None:
    assert toolchain_of({"tool": "AIWC 2018", "published": {}}) == Toolchain("AIWC 2018")
    assert str(toolchain_of({})) == "an unknown compiler"
