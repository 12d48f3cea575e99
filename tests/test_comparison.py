"""Comparing two of a kind: what differs, what only one has, and conditions that changes may not meet."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast.commands.compare import DIFFERS
from crosscast.comparison import Comparison, Condition, Contents, Difference, compare, contents_of
from crosscast.data.profiles import write_parquet
from crosscast.errors import InputError
from crosscast.profile import Profile
from crosscast.report.catalogues import comparison_report
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


@given(contents)
def test_nothing_differs_from_itself(one: Contents) -> None:
    comparison = compare(one, one, ["missing"])
    assert (comparison.differences, comparison.only, comparison.passes) == ((), ((), ()), True)


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


@given(contents, contents, st.floats(0, 100))
def test_a_condition_with_a_higher_limit_holds_for_less(one: Contents, other: Contents, limit: float) -> None:
    if any("a" in {**one.items[item], **other.items[item]} for item in one.items.keys() & other.items.keys()):
        low, high = f"a>{limit:.3f}%", f"a>{limit + 1:.3f}%"
        failed = compare(one, other, [low, high]).failed
        assert set(failed[high]) <= set(failed[low])


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


@pytest.mark.parametrize("text", ["", "m", "m>", "m>x", "m=5", ">5%", "m>5%%", "a b>5"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    assert "--fail-on: expected METRIC>" in refusal(Condition.parse, text)


@pytest.fixture
def files(make_profile: Maker, tmp_path: Path) -> tuple[Path, Path]:
    """Profiles of two kernels, before and after one of them was changed."""
    before = [make_profile("a", total_instruction_count=1000), make_profile("b")]
    after = [make_profile("a", total_instruction_count=1060), make_profile("c")]
    write_parquet(before, tmp_path / "before.parquet")
    write_csv(after, tmp_path / "after.csv")
    return tmp_path / "before.parquet", tmp_path / "after.csv"


def test_profiles_are_compared_whatever_file_they_are_in(capsys: Output, files: tuple[Path, Path]) -> None:
    answer = command.answer(capsys, *files)
    (changed,) = answer["differences"]
    assert changed == {
        "item": "a",
        "metric": "total_instruction_count",
        "first": 1000,
        "second": 1060,
        "change": 60,
        "relative": 0.06,
    }
    assert (answer["only_in_first"], answer["only_in_second"]) == (["b"], ["c"])
    text = command.text(capsys, *files)
    assert "+60      +6 %" in text
    assert f"Only in {files[0]}: b." in text


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("total_instruction_count>+5%", DIFFERS),
        ("total_instruction_count>+10%", 0),
        ("total_instruction_count>50", DIFFERS),
        ("total_instruction_count<-5%", 0),
        ("unique_reads>0", 0),
        ("missing", DIFFERS),
    ],
)
def test_a_condition_decides_the_exit_code(
    capsys: Output, files: tuple[Path, Path], condition: str, code: int
) -> None:
    assert command(*files, "--fail-on", condition) == code
    assert f"{'FAIL' if code else 'ok  '}  {condition}" in capsys.readouterr().out


def test_conditions_are_in_json_and_pages(capsys: Output, files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["--fail-on", "missing", "--fail-on", "work_items>0", "--json", "--html", page]
    assert command(*files, *words) == DIFFERS
    document = json.loads(capsys.readouterr().out)
    assert document["conditions"] == [
        {"condition": "missing", "holds_for": ["b", "c"]},
        {"condition": "work_items>0", "holds_for": []},
    ]
    assert not document["passes"]
    assert "FAIL  missing: b, c" in page.read_text()


def test_a_condition_on_what_none_has_is_refused(capsys: Output, make_profile: Maker, tmp_path: Path) -> None:
    for file, kernels in (("one.csv", "ab"), ("other.csv", "cd")):
        write_csv([make_profile(kernel) for kernel in kernels], tmp_path / file)
    words = (tmp_path / "one.csv", tmp_path / "other.csv", "--fail-on")
    assert "so that nothing would be compared" in command.refusal(capsys, *words, "work_items>0")
    assert command(*words, "missing") == DIFFERS


def test_numbers_of_only_one_side_are_not_counted_as_compared() -> None:
    one = Contents("model", "one", {"errors": {"a": 1.0, "b": 2.0, "c": 3.0}})
    other = Contents("model", "other", {"errors": {"a": 1.5, "b": 2.0, "d": 3.0}})
    text = comparison_report(compare(one, other)).to_text()
    assert "2 numbers compared, 1 differs; 2 numbers of only one of the two." in text


def test_a_single_kernel_is_compared_whatever_its_name(make_profile: Maker, tmp_path: Path) -> None:
    for file, kernel in (("one.csv", "plain"), ("other.csv", "tiled")):
        write_csv([make_profile(kernel)], tmp_path / file)
    comparison = compare(contents_of(tmp_path / "one.csv"), contents_of(tmp_path / "other.csv"))
    assert (comparison.only, comparison.differences) == (((), ()), ())
    assert comparison.compared > 40


def test_kernels_of_a_launch_file_are_those_of_its_stored_profiles(capsys: Output, tmp_path: Path) -> None:
    launches, stored = Path(__file__).parents[1] / "examples" / "matmul.toml", tmp_path / "before.json"
    stored.write_text(Command.of("characterize").text(capsys, str(launches), "--json"), encoding="utf-8")
    comparison = compare(stored, launches, ["total_instruction_count>0"])
    assert (comparison.only, comparison.passes) == (((), ()), True)
    assert comparison.compared > 400


def test_datasets_are_compared_by_their_times(capsys: Output) -> None:
    answer = command.answer(capsys, "bundled", "bundled")
    assert (answer["kind"], answer["differences"]) == ("dataset", [])
    names = contents_of("bundled").items
    assert names["the dataset"]["rows_of_profiles"]
    assert any(" on amd-epyc-" in name for name in names)


def test_models_are_compared_by_their_cards(capsys: Output) -> None:
    answer = command.answer(capsys, "xeon-to-v100", "seven-gpus")
    assert answer["kind"] == "model"
    metrics = {(each["item"], each["metric"]) for each in answer["differences"]}
    assert ("training", "kernels") in metrics
    assert ("results: compact, leave-application-out", "mae") in metrics
    assert any(each.startswith("application ") for each in answer["only_in_first"])


def schedule(path: Path, waits: list[int]) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["job", "submit", "start", "end", "machine", "procs"])
        rows.writerows(
            [job, 10 * job, 10 * job + wait, 10 * job + wait + 100, "m", 1] for job, wait in enumerate(waits)
        )
    return path


def test_schedules_are_compared_as_a_whole_and_by_job(tmp_path: Path) -> None:
    one, other = schedule(tmp_path / "a.csv", [0, 10, 20]), schedule(tmp_path / "b.csv", [0, 10, 50])
    comparison = compare(contents_of(one), contents_of(other), ["mean_wait_s>+10%"])
    assert not comparison.passes
    assert ("job 2", "wait_s", 20, 50) in {
        (each.item, each.metric, each.first, each.second) for each in comparison.differences
    }
    whole = contents_of(other).items["the schedule"]
    assert whole["mean_wait_s"] == 20
    assert whole["makespan_s"] == 170
    assert whole["average_bounded_slowdown"] == pytest.approx((1 + 1.1 + 1.5) / 3)
    items = [each.item for each in comparison.differences]
    assert items == ["the schedule"] * 4 + ["job 2"]


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


def test_two_kinds_or_questions_are_refused(capsys: Output, files: tuple[Path, Path]) -> None:
    said = command.refusal(capsys, files[0], "bundled")
    assert said == f"bundled: expected profiles as {files[0]} is, found a dataset"
    said = command.refusal(capsys, "seven-gpus", "gpu-clocks")
    assert "gpu-clocks: expected a model of relative as seven-gpus is, found one of configuration" in said


def test_what_is_not_there_is_refused(capsys: Output, files: tuple[Path, Path]) -> None:
    said = command.refusal(capsys, files[0], "nothing.json")
    assert "nothing.json: expected a file, a folder, or the name of a model or dataset, found none" in said


def test_an_unknown_metric_is_refused_with_those_near(capsys: Output, files: tuple[Path, Path]) -> None:
    said = command.refusal(capsys, *files, "--fail-on", "total_instructions>5%")
    assert "found 'total_instructions', near to which there are total_instruction_count" in said
    assert "--fail-on: expected METRIC>" in command.refusal(capsys, *files, "--fail-on", "more")


def test_a_comparison_is_a_table(make_profile: Maker) -> None:
    one = Contents("profiles", "a", {"k": {"m": 1.0}})
    comparison = compare(one, Contents("profiles", "b", {"k": {"m": 2.0}}))
    assert isinstance(comparison, Comparison)
    assert comparison.columns()["relative"] == [1.0]
    assert "<td>k</td>" in comparison._repr_html_()


def test_counts_of_launches_are_compared_by_their_columns(make_profile: Maker, tmp_path: Path) -> None:
    before = replace(make_profile(), launch=full_launch())
    after = replace(make_profile(), launch=full_launch())
    after.launch["geometry"]["registers"] = 42
    after.launch["sub_groups"]["32"]["sectors_32_read"] *= 2
    after.launch["instructions"]["fp32"]["native_exp"] += 1
    after.launch["host"]["time_s"] = 9.0
    for name, profile in (("before", before), ("after", after)):
        write_parquet([profile], tmp_path / f"{name}.parquet")
    both = [contents_of(tmp_path / f"{name}.parquet") for name in ("before", "after")]
    comparison = compare(both[0], both[1], ["sub_group_32_sectors_32_read>+5%"])
    assert {each.metric for each in comparison.differences} == {
        "geometry_registers",
        "sub_group_32_sectors_32_read",
        "instructions_fp32",
        "instructions_fp32_native_exp",
    }
    assert not comparison.passes


def test_files_and_profiles_are_compared_in_python_as_on_the_command_line() -> None:
    source = "kernel void f(global float *x) { x[get_global_id(0)] *= 2; }"
    more = source.replace("*= 2", "*= x[0]")
    first, second = (
        crosscast.characterize(
            crosscast.Kernel.from_source(each, "f"), global_size=64, args=[np.ones(64, "f4")]
        )
        for each in (source, more)
    )
    comparison = crosscast.compare(first, second, ["total_reads>+1%"])
    assert not comparison.passes
    assert crosscast.compare(first, first, ["total_reads>+1%"]).passes


@pytest.mark.parametrize("text", ["m>1e999", "m<-1e999%"])
def test_no_change_is_beyond_an_infinite_limit(text: str) -> None:
    with pytest.raises(InputError, match=r"--fail-on: expected a finite number, found -?1e999"):
        Condition.parse(text)
