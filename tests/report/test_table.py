import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from crosscast.profile import CATEGORIES, METRICS, Profile
from crosscast.report.profiles import format_value, print_table

ProfileMaker = Callable[..., Profile]


def shown(*profiles: Profile) -> str:
    stream = io.StringIO()
    print_table(profiles, stream)
    return stream.getvalue()


def test_the_table_has_every_metric_in_its_category(make_profile: ProfileMaker) -> None:
    text = shown(make_profile())
    places = [text.index(f" {metric.name} ") for metric in METRICS]
    assert places == sorted(places)
    assert all(f"│{category} " in text for category in CATEGORIES)


def test_the_table_says_what_was_measured_and_how(make_profile: ProfileMaker) -> None:
    text = shown(make_profile())
    for fact in ("256 work-items in work-groups of 64", "in: float* 4 KiB", "reduce.cl", "clang 22 -DN=3"):
        assert fact in text
    assert "compile 11 ms, instrument 50 ms, run 1.5 s, CPU of the run 2.5 s, metrics 400 µs" in text


def test_arguments_are_told_by_type_name_and_size(make_profile: ProfileMaker) -> None:
    arguments = [
        {"name": "a", "type": "float*", "kind": "global", "nbytes": 4096, "shape": [1024]},
        {"name": "t", "type": "float*", "kind": "local", "nbytes": 64},
        {"name": "n", "type": "int", "kind": "value", "value": 5},
    ]
    profile = make_profile()
    text = shown(replace(profile, launch={**profile.launch, "arguments": arguments}))
    assert "float* a (4 KiB), float* t (local, 64 B), int n = 5" in text


def test_several_profiles_stand_side_by_side(make_profile: ProfileMaker) -> None:
    text = shown(make_profile(opcode=11), make_profile("scan", 1, opcode=12))
    row = next(line for line in text.splitlines() if " opcode " in line)
    assert row.index("11") < row.index("12")
    assert "scan 1" in text


def test_six_profiles_need_two_tables(make_profile: ProfileMaker) -> None:
    assert shown(*(make_profile(invocation=n) for n in range(6))).count("total_instruction_count") == 2


def test_brackets_in_paths_are_no_markup(make_profile: ProfileMaker) -> None:
    profile = make_profile()
    assert "[bold]k.cl" in shown(replace(profile, program={**profile.program, "path": "[bold]k.cl"}))


@pytest.mark.parametrize(
    ("value", "text"), [(None, "—"), (0, "0"), (1234567, "1,234,567"), (2.0, "2"), (1 / 3, "0.333333")]
)
def test_values_are_written_for_people(value: float | None, text: str) -> None:
    assert format_value(value) == text
