"""The summary of a profile: what each line says, and that what was not counted has none."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import Kernel
from crosscast.data.launch_counts import REUSE_CACHES
from crosscast.profile import Profile
from crosscast.report.profile_summary import summary_of
from crosscast.report.profiles import profiles_report
from crosscast.units import format_bytes
from support.full_launch import full_launch
from support.golden import assert_printed

ProfileMaker = Callable[..., Profile]


@pytest.fixture
def full(make_profile: ProfileMaker) -> Profile:
    profile = make_profile(
        total_instruction_count=13_107_200,
        work_items=32_768,
        min_ipt=380,
        max_ipt=440,
        median_ipt=400.0,
        local_accesses=1_015_808,
    )
    return replace(profile, launch=full_launch())


def lines(profile: Profile) -> dict[str, str]:
    return dict(summary_of(profile))


def changed(profile: Profile, part: str, value: Any) -> Profile:
    launch = {name: each for name, each in profile.launch.items() if name != part}
    return replace(profile, launch=launch if value is None else {**launch, part: value})


def characterized(body: str, items: int = 256, local: int = 64) -> Profile:
    source = f"kernel void k(global float *a, global int *b) {{ size_t i = get_global_id(0); {body} }}"
    return crosscast.characterize(
        Kernel.from_source(source, "k"),
        global_size=items,
        local_size=local,
        args=[np.zeros(64 * items, np.float32), np.zeros(64 * items, np.int32)],
    )


def test_lines_of_a_full_profile_are_as_they_were(full: Profile) -> None:
    text = "".join(f"{name:<13}{text}\n" for name, text in summary_of(full))
    assert_printed(text, Path(__file__).with_name("golden") / "profile-summary.txt")


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("sub_groups", {"coalescing", "SIMD", "atomics"}),
        ("access_patterns", {"neighbours"}),
        ("reuse", {"reuse"}),
        ("geometry", {"occupancy"}),
        ("path", {"path"}),
        ("host", {"host"}),
        ("work", {"bytes", "local memory"}),
    ],
)
def test_what_was_not_counted_has_no_line(full: Profile, part: str, names: set[str]) -> None:
    assert set(lines(full)) - set(lines(changed(full, part, None))) == names


def test_distinct_bytes_are_told_where_they_are_known(full: Profile) -> None:
    assert lines(changed(full, "distinct_bytes", None))["bytes"] == "2.49 MB, 76 B a work-item"


def test_a_profile_of_an_older_version_has_what_its_metrics_tell(make_profile: ProfileMaker) -> None:
    assert set(lines(make_profile())) == {"work", "divergence"}
    text = profiles_report([make_profile()]).to_text()
    assert "Coalescing" not in text
    assert "Reuse" not in text


def test_an_imported_profile_without_metrics_has_no_lines(make_profile: ProfileMaker) -> None:
    profile = make_profile()
    assert summary_of(replace(profile, metrics=dict.fromkeys(profile.metrics), launch={})) == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a[i] = i;", "100 %; 4 sectors a write; 1 line of 128 B"),
        ("a[32 * i] = i;", "12.5 %; 32 sectors a write; 32 lines of 128 B"),
        ("a[i] = b[0];", "100 %; 1 sector a read, 4 a write; 1 line of 128 B"),
        ("a[i] = b[8 * i];", "22.2 %; 32 sectors a read, 4 a write; 4.5 lines of 128 B"),
    ],
)
def test_coalescing_is_bytes_over_those_of_sectors(body: str, text: str) -> None:
    assert lines(characterized(body))["coalescing"] == text


def test_all_adds_each_count_and_a_table_of_reuse(full: Profile) -> None:
    text = profiles_report([full], everything=True).to_text()
    names = "flops_single lines_128_write global_read irregular registers fp32_native_exp loads_local threads"
    for name in names.split():
        assert f"\n  {name} " in text, name
    for heading in ("sub-groups of 64 (sub_group_64_)", "dependence path (path_)", "host (host_)"):
        assert f"\n{heading}\n" in text
    assert "\n  int64 " not in text, "a kind that was not executed"
    assert [line for line in text.splitlines() if len(line) > 120] == []
    for cache in REUSE_CACHES:
        assert f"\n{format_bytes(cache)} " in text
    assert "\nendless " in text


def test_a_profile_without_counts_has_no_rows_of_them(full: Profile, make_profile: ProfileMaker) -> None:
    alone = profiles_report([make_profile()], everything=True).to_text()
    assert "sub-groups" not in alone
    assert "geometry" not in alone
    assert "Bytes from memory" not in alone
    both = profiles_report([make_profile(), full], everything=True).to_text()
    (row,) = (line for line in both.splitlines() if line.startswith("  registers "))
    assert row.split()[1:3] == ["—", "21"]
