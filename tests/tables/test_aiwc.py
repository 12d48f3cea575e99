from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crosscast.data.profiles import render_aiwc, write_aiwc
from crosscast.errors import InputError
from crosscast.profile import Profile

PUBLISHED = (
    ("Total Instruction Count", "Compute", 123456789),
    ("Granularity", "Parallelism", 1 / 1024),
    ("Mean SIMD Width", "Parallelism", 1.0),
    ("Unique Writes", "Memory", 1000000),
    ("Unique Read/Write Ratio", "Memory", 2.0),
    ("Rereads", "Memory", 1532 / 1088),
    ("Average Linear Branch Entropy", "Memory", 0.010204),
)

ProfileMaker = Callable[..., Profile]


def test_numbers_look_as_the_tool_writes_them(make_profile: ProfileMaker) -> None:
    assert render_aiwc(replace(make_profile(), published=PUBLISHED)) == (
        "metric,category,count\n"
        "Total Instruction Count,Compute,123456789\n"
        "Granularity,Parallelism,0.000976562\n"
        "Mean SIMD Width,Parallelism,1\n"
        "Unique Writes,Memory,1000000\n"
        "Unique Read/Write Ratio,Memory,2\n"
        "Rereads,Memory,1.408\n"
        "Average Linear Branch Entropy,Memory,0.0102\n"
    )


def test_each_invocation_takes_the_first_free_number(tmp_path: Path, make_profile: ProfileMaker) -> None:
    names = [write_aiwc(make_profile(), tmp_path).name for _ in range(3)]
    assert names == ["aiwc_reduce_0.csv", "aiwc_reduce_1.csv", "aiwc_reduce_2.csv"]
    (tmp_path / names[1]).unlink()
    assert write_aiwc(make_profile(), tmp_path).name == names[1]


def test_a_folder_that_is_none_is_refused(tmp_path: Path, make_profile: ProfileMaker) -> None:
    with pytest.raises(InputError, match="cannot write"):
        write_aiwc(make_profile(), tmp_path / "missing")
