"""Comparing two of a kind: what differs, what only one has, and conditions that changes may not meet."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast.commands.catalogues import DIFFERS
from crosscast.comparison import Condition, Contents, Difference, compare, contents_of
from crosscast.data.profiles import write_parquet
from crosscast.errors import InputError
from crosscast.profile import Profile
from crosscast.report.cards import comparison_report
from support.commands import Command, Output
from support.csv_tables import write_csv
from support.full_launch import full_launch
from support.refusals import refusal, refusals

command = Command.of("compare")

Maker = Callable[..., Profile]

name = st.sampled_from("abcdef")
number = st.none() | st.floats(-1e9, 1e9)
contents = st.builds(
    Contents,
    kind=st.just("schedule"),
    label=st.just("it"),
    items=st.dictionaries(name, st.dictionaries(name, number, max_size=4), max_size=4),
)


@given(contents, contents)
def test_the_other_way_round_is_the_same_with_other_signs(one: Contents, other: Contents) -> None:
    forward, back = compare(one, other), compare(other, one)
    assert forward.only == back.only[::-1]
    assert forward.compared == back.compared
    key = {(each.item, each.metric): each for each in back.differences}
    assert len(key) == len(forward.differences)
    for each in forward.differences:
        mirrored = key[each.item, each.metric]
        assert (each.first, each.second) == (mirrored.second, mirrored.first)
        assert each.change is None or mirrored.change == -each.change
    itself = compare(one, one, ["missing"])
    assert (itself.differences, itself.only, itself.passes) == ((), ((), ()), True)


@pytest.mark.parametrize(
    ("text", "first", "second", "holds"),
    [
        ("m>+5%", 100, 105, False),
        ("m>+5%", 100, 106, True),
        ("m>5%", 100, 106, True),
        ("m<-5%", 100, 94, True),
        ("m<-5%", 100, 106, False),
        ("m>10", 100, 111, True),
        ("m>10", 100, 110, False),
        ("m > 1e1 %", -100, -80, True),
        ("m>5%", 0, 1, True),
        ("m>5%", 0, 0, False),
        ("m>5%", None, None, False),
        ("m>5%", None, 1, True),
        ("n>5%", 100, 200, False),
    ],
)
def test_conditions(text: str, first: float | None, second: float | None, holds: bool) -> None:
    assert Condition.parse(text).holds(Difference("k", "m", first, second)) is holds


@pytest.mark.parametrize(
    "text", ["", "m", "m>", "m>x", "m=5", ">5%", "m>5%%", "a b>5", "m>1e999", "m<-1e999%"]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    assert "--fail-on: expected " in refusal(Condition.parse, text)


def test_profiles_are_compared_whatever_file_they_are_in(
    capsys: Output, make_profile: Maker, tmp_path: Path
) -> None:
    first, second, page = (tmp_path / name for name in ("before.parquet", "after.csv", "page.html"))
    write_parquet([make_profile("a", total_instruction_count=1000), make_profile("b")], first)
    write_csv([make_profile("a", total_instruction_count=1060), make_profile("c")], second)
    conditions = ("--fail-on", "missing", "--fail-on", "work_items>0")
    assert command(first, second, *conditions, "--json", "--html", page) == DIFFERS
    answer = json.loads(capsys.readouterr().out)
    (changed,) = answer["differences"]
    assert list(changed.values()) == ["a", "total_instruction_count", 1000, 1060, 60, 0.06]
    assert (answer["only_in_first"], answer["only_in_second"], answer["passes"]) == (["b"], ["c"], False)
    assert answer["conditions"] == [
        {"condition": "missing", "holds_for": ["b", "c"]},
        {"condition": "work_items>0", "holds_for": []},
    ]
    assert "FAIL  missing: b, c" in page.read_text()
    text = command.text(capsys, first, second, "--fail-on", "total_instruction_count>+10%")
    for part in ("+60      +6 %", f"Only in {first}: b.", "ok    total_instruction_count>+10%"):
        assert part in text


ONE = Contents("model", "one", {"errors": {"a": 1.0, "b": 2.0, "c": 3.0}}, "time")


@pytest.mark.parametrize(
    ("changed", "conditions", "said"),
    [
        ({"kind": "dataset"}, [], "other: expected a model as one is, found a dataset"),
        ({"question": "corun"}, [], "other: expected a model of time as one is, found one of corun"),
        ({"items": {"others": {"a": 1.0}}}, ["a>0"], "so that nothing would be compared"),
        ({}, ["bb>5%"], "found 'bb', near to which there are b"),
    ],
)
def test_what_cannot_be_compared_is_refused(changed: Any, conditions: list[str], said: str) -> None:
    assert said in refusal(compare, ONE, replace(ONE, label="other", **changed), conditions)
    assert "nothing.json: expected a file, a folder, or the name of" in refusal(contents_of, "nothing.json")


def test_numbers_of_only_one_side_are_not_counted_as_compared() -> None:
    comparison = compare(ONE, replace(ONE, items={"errors": {"a": 1.5, "b": 2.0, "d": 3.0}}))
    text = comparison_report(comparison).to_text()
    assert "2 numbers compared, 1 differs; 2 numbers of only one of the two." in text
    assert comparison.columns()["metric"] == ["c", "d", "a"]


def test_a_single_kernel_is_compared_whatever_its_name(make_profile: Maker) -> None:
    first, second = make_profile("plain"), make_profile("tiled", total_reads=8)
    comparison = crosscast.compare(first, second, ["total_reads>+1%"])
    assert (comparison.only, len(comparison.differences), comparison.passes) == (((), ()), 1, False)
    assert comparison.compared > 40
    assert crosscast.compare(first, first, ["total_reads>+1%"]).passes


def test_kernels_of_a_launch_file_are_those_of_its_stored_profiles(capsys: Output, tmp_path: Path) -> None:
    launches, stored = Path(__file__).parents[1] / "examples" / "matmul.toml", tmp_path / "before.json"
    stored.write_text(Command.of("characterize").text(capsys, str(launches), "--json"), encoding="utf-8")
    comparison = compare(stored, launches, ["total_instruction_count>0"])
    assert (comparison.only, comparison.passes) == (((), ()), True)
    assert comparison.compared > 400


def test_datasets_and_models_are_compared_by_their_times_and_cards() -> None:
    contents = contents_of("bundled")
    assert compare(contents, contents).to_dict()["kind"] == "dataset"
    assert contents.items["the dataset"]["rows_of_profiles"]
    assert any(" on amd-epyc-" in name for name in contents.items)
    comparison = compare("xeon-to-v100", "seven-gpus")
    assert comparison.kind == "model"
    metrics = {(each.item, each.metric) for each in comparison.differences}
    assert {("training", "kernels"), ("results: compact, leave-application-out", "mae")} <= metrics
    assert any(each.startswith("application ") for each in comparison.only[0])


def schedule(path: Path, waits: list[int]) -> Path:
    starts = [10 * job + wait for job, wait in enumerate(waits)]
    rows = [f"{job},{10 * job},{start},{start + 100},m,1" for job, start in enumerate(starts)]
    path.write_text("\n".join(["job,submit,start,end,machine,procs", *rows]) + "\n")
    return path


def test_schedules_are_compared_as_a_whole_and_by_job(tmp_path: Path) -> None:
    one, other = schedule(tmp_path / "a.csv", [0, 10, 20]), schedule(tmp_path / "b.csv", [0, 10, 50])
    comparison = compare(contents_of(one), contents_of(other), ["mean_wait_s>+10%"])
    assert not comparison.passes
    last = comparison.differences[-1]
    assert (last.item, last.metric, last.first, last.second) == ("job 2", "wait_s", 20, 50)
    whole = contents_of(other).items["the schedule"]
    assert (whole["mean_wait_s"], whole["makespan_s"]) == (20, 170)
    assert whole["average_bounded_slowdown"] == pytest.approx((1 + 1.1 + 1.5) / 3)
    assert [each.item for each in comparison.differences[:-1]] == ["the schedule"] * 4


def test_slowdowns_of_schedules_are_over_the_shorter_of_both_run_times(tmp_path: Path) -> None:
    one, other = schedule(tmp_path / "a.csv", [0, 10]), tmp_path / "b.csv"
    other.write_text(one.read_text().replace("0,0,0,100", "0,0,0,300"))
    for comparison, sign in ((compare(one, other), 1), (compare(other, one), -1)):
        changes = {each.metric: each.change for each in comparison.differences if each.item == "the schedule"}
        assert changes["average_bounded_slowdown"] == pytest.approx(sign * (3 - 1) / 2)


def test_a_trace_is_a_schedule_too(tmp_path: Path) -> None:
    lines = [f"{job} {10 * job} 5 100 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1" for job in (1, 2)]
    lines.append("3 40 -1 -1 1 -1 -1 1 -1 -1 5 -1 -1 -1 -1 -1 -1 -1")
    (tmp_path / "a.swf").write_text("\n".join(lines) + "\n")
    contents = contents_of(tmp_path / "a.swf")
    assert list(contents.items) == ["the schedule", "job 1", "job 2"], "the third never ran"
    assert contents.items["the schedule"]["mean_wait_s"] == 5


@refusals("row said")
def test_a_damaged_schedule_is_refused(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"job,submit,start,end,machine,procs\n{row}\n")
    with pytest.raises(InputError, match=said):
        contents_of(path)


def test_counts_of_launches_are_compared_by_their_columns(make_profile: Maker, tmp_path: Path) -> None:
    before = replace(make_profile(), launch=full_launch())
    after = replace(make_profile(), launch=full_launch())
    after.launch["geometry"]["registers"] = 42
    after.launch["sub_groups"]["32"]["sectors_32_read"] *= 2
    after.launch["instructions"]["fp32"]["native_exp"] += 1
    after.launch["host"]["time_s"] = 9.0
    paths = tmp_path / "before.parquet", tmp_path / "after.parquet"
    for profile, path in zip((before, after), paths, strict=True):
        write_parquet([profile], path)
    comparison = compare(*paths, ["sub_group_32_sectors_32_read>+5%"])
    metrics = "geometry_registers sub_group_32_sectors_32_read instructions_fp32 instructions_fp32_native_exp"
    assert {each.metric for each in comparison.differences} == set(metrics.split())
    assert not comparison.passes
