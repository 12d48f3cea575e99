"""``crosscast colocate``, from files to a plan."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.corun import write_profile
from support.commands import Output
from support.corun_models import constant, made_jobs


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three profiles of jobs, and a model in the same folder."""
    constant(tmp_path / "co", 1.25, error=0.05)
    found = []
    for place, job in enumerate(made_jobs(3)):
        path = tmp_path / f"{place}.json"
        write_profile(replace(job, time_s=float(place + 1)), {"device": "cpu", "type": "cpu"}, path)
        found.append(str(path))
    return found


def asked(files: list[str], *options: str) -> list[str]:
    return ["colocate", *files, "--model", str(Path(files[0]).parent / "co"), *options]


def test_the_two_longest_share_and_the_third_runs_alone(files: list[str], capsys: Output) -> None:
    assert main(asked(files)) == 0
    found = capsys.readouterr().out
    assert "together on cpu" in found and "alone on cpu" in found
    assert "All 3 jobs: " in found and "6 s one after another" in found


def test_json_names_files_and_has_everything(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(files, "--json", "--max-slowdown", "1.5", "--conservative")) == 0
    plan = json.loads(capsys.readouterr().out)
    (mix,) = plan["shared"]
    assert [each["job"] for each in mix["jobs"]] == files[1:]
    assert mix["together_s"] + mix["gain_s"]["value"] == pytest.approx(5.0)
    assert mix["jobs"][0]["slowdown"]["low"] < 1.25 < mix["jobs"][0]["slowdown"]["high"]
    assert plan["alone"][0]["job"] == files[0]
    assert plan["alone"][0]["no_partner"] == {"taken": 2}
    assert plan["time_s"]["value"] + plan["gain_s"]["value"] == pytest.approx(plan["one_after_another_s"])
    assert plan["model"]["name"] == "made"


def test_lengths_take_the_place_of_times_in_profiles(files: list[str], capsys: Output) -> None:
    assert main(asked(files, "--json", "--lengths", "9,1,9")) == 0
    (mix,) = json.loads(capsys.readouterr().out)["shared"]
    assert [each["job"] for each in mix["jobs"]] == [files[0], files[2]]


def test_the_same_file_twice_is_two_jobs(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked([files[0], files[0]])) == 0
    assert "#1" in (found := capsys.readouterr().out) and "#2" in found
