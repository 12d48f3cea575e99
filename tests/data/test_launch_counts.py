"""Counts of a launch and their columns: named by the way to them, and empty where they were not counted."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import Kernel, Local
from crosscast.characterization.embedding.payload import profile_of
from crosscast.characterization.engine.counts import COUNTED, WIDTHS
from crosscast.data.launch_counts import COUNTS, counts_of, kinds_of, work_of
from crosscast.profile import Profile
from support.full_launch import full_launch

ProfileMaker = Callable[..., Profile]


def test_names_tell_the_way_and_occur_once() -> None:
    found = counts_of(full_launch())
    assert len(found) == len(COUNTS)
    assert found["sub_group_32_sectors_32_read"] == 131_072
    assert found["sub_group_64_sub_group_instructions_without_phi"] == 256_000
    assert found["access_patterns_stride_bytes"] == 102_400_000
    assert found["access_patterns_vectorized"] == 1
    assert found["distinct_bytes_global_written"] == 131_072
    assert found["geometry_local_bytes_static"] == 2048
    assert found["reuse_bytes_128_16_32768"] == 1 << 29
    assert found["reuse_bytes_64_256_first"] == 1_179_648
    assert found["path_loads_local"] == 32
    assert found["host_time_s"] == 0.00125


def test_all_that_is_counted_by_sub_groups_has_a_column() -> None:
    names = [count.path[2] for count in COUNTS if count.part == "sub_groups"]
    assert names == [*COUNTED] * len(WIDTHS)


def test_a_class_of_instructions_is_the_sum_of_its_kinds() -> None:
    found = counts_of(full_launch())
    assert found["instructions_fp32"] == 2_097_152 + 32_768
    assert found["instructions_fp32_fused"] == 2_097_152
    assert found["instructions_loads_local"] == 1_015_808
    assert found["instructions_atomics"] == 32_768


def test_what_the_engine_counts_has_its_columns() -> None:
    source = (
        "kernel void k(global int *a, local int *l) { l[0] = 1; barrier(1); a[get_global_id(0)] += l[0]; }"
    )
    args: list[Any] = [np.zeros(256, np.int32), Local(4)]
    kernel = Kernel.from_source(source, "k")
    launch = crosscast.characterize(kernel, global_size=256, local_size=64, args=args).launch
    found = counts_of(launch)
    known = {count.column.name for count in COUNTS if count.part in launch}
    unknown = {name for name in known if found[name] is None}
    assert known, "sub-groups at the least"
    assert unknown <= {"access_patterns_vectorized", "reuse_error"}


@pytest.mark.parametrize("odd", [None, 3, "text", [1], {"32": 4}, {"bytes": {"128": []}}])
def test_other_shapes_are_absent(odd: object) -> None:
    assert set(counts_of(dict.fromkeys(("sub_groups", "reuse", "host"), odd)).values()) == {None}
    assert kinds_of({"instructions": odd}) == {} or isinstance(odd, dict)


def test_kinds_and_work_are_named_by_the_way_to_them() -> None:
    kinds = kinds_of(full_launch())
    assert kinds["instructions_fp32_native_exp"] == 32_768
    assert kinds["instructions_loads_global_4"] == 524_288
    assert work_of(full_launch())["instructions.mem"] == 2_000_000


def test_json_gives_the_profile_back(make_profile: ProfileMaker) -> None:
    alone = replace(make_profile(), launch=full_launch(), timing_s={})  # which are not read
    assert profile_of(json.loads(json.dumps(alone.to_dict())), 0) == alone
