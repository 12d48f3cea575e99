"""``crosscast evaluate configuration``: tables, JSON, pictures and refusals."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.cli import main
from crosscast.tables.dataset import write_dataset
from support.choices import PROGRAMS, named_surfaces, other_machine
from support.surfaces import configured_dataset

Output = pytest.CaptureFixture[str]
ASKED = (
    "method under_limit_share under_performance under_power over_power over_performance score extra_runs "
    "confidence violations"
).split()
SAMPLES = "node:cpu_cap_w=60,gpu_cap_w=100;cpu_cap_w=100,gpu_cap_w=200"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dataset") / "one"
    write_dataset(configured_dataset(named_surfaces()), path)
    return str(path)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two machines, whose programs have other names, as they are otherwise one machine to choose from."""
    path = tmp_path_factory.mktemp("dataset") / "two"
    lonely = other_machine()
    kernels = tuple(each._replace(application=f"{each.application}.") for each in lonely.kernels)
    renamed = type(lonely)(lonely.label, kernels, lonely.space, lonely.time_s, lonely.power_w)
    write_dataset(configured_dataset(named_surfaces(), renamed), path)
    return str(path)


def run(*words: str) -> int:
    return main(["evaluate", "configuration", *words, "--jobs", "1"])


def found(capsys: Output, *words: str) -> Any:
    assert run(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys: Output, *words: str) -> str:
    assert main(["evaluate", "configuration", *words, "--jobs", "1"]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == 1
    return captured.err


def test_json_has_what_a_check_reads(capsys: Output, folder: str) -> None:
    answer = found(capsys, folder, "--methods", "fixed,limiter,published,published+fl,oracle")
    assert answer["protocol"] == "leave-benchmark-out"
    for row in answer["results"]:
        assert set(ASKED) <= set(row)
        assert row["machine"] == "node"
        assert 0 <= row["under_limit_share"] <= 1
        assert row["violations"] == pytest.approx(1 - row["under_limit_share"])
        assert row["score"] == pytest.approx(
            row["under_limit_share"] * (row["under_performance"] or 0), abs=1e-9
        )
    rows = {row["method"]: row for row in answer["results"] if row["protocol"] == "leave-benchmark-out"}
    assert list(rows) == ["fixed", "limiter", "published", "published+fl", "oracle"]
    assert rows["oracle"]["score"] == 1
    assert rows["published"]["extra_runs"] == 0
    assert rows["limiter"]["under_limit_share"] == 1
    (machine,) = answer["machines"]
    assert machine["programs"] == list(PROGRAMS)
    assert machine["published_model"]["note"]


def test_people_get_tables(capsys: Output, folder: str) -> None:
    assert run(folder, "--methods", "fixed,cpu+fl", "--programs") == 0
    text = capsys.readouterr().out
    for start in ("fixed ", "cpu+fl ", "by program", "near-duplicates left out together"):
        assert f"\n{start}" in text


def test_the_same_command_prints_the_same_from_its_cache(capsys: Output, folder: str, tmp_path: Path) -> None:
    words = [folder, "--methods", "fixed,nearest", "--json"]
    assert run(*words) == 0
    first = capsys.readouterr().out
    kept = list((tmp_path / "cache" / "crosscast" / "evaluate").iterdir())
    # Six programs, and two of them together.
    assert len(kept) == 2 * 7
    assert run(*words) == 0
    assert run(*words, "--no-cache") == 0
    assert capsys.readouterr().out == 2 * first


def test_options_reach_the_evaluation(capsys: Output, folder: str) -> None:
    words = ["--methods", "limiter,cpu+fl", "--max-retunes", "1", "--group", "bfs+km,lud+nw", "--seed", "3"]
    answer = found(capsys, folder, "--samples", SAMPLES, "--power-domain", "gpu", *words)
    assert answer["seed"] == 3
    (machine,) = answer["machines"]
    assert machine["left_out_together"] == [["bfs", "km"], ["cfd", "cfd_double"], ["lud", "nw"]]
    assert [each["settings"] for each in machine["samples"]["bfs"]] == [
        {"cpu_cap_w": 60.0, "gpu_cap_w": 100.0},
        {"cpu_cap_w": 100.0, "gpu_cap_w": 200.0},
    ]
    rows = {row["method"]: row for row in answer["results"]}
    assert all(row["budget"] == 1 and row["extra_runs"] <= 1 for row in rows.values())
    whole = found(capsys, folder, "--methods", "limiter")["machines"]
    assert whole[0]["cases"] != machine["cases"]


def test_machines_are_told_apart_and_can_be_named(capsys: Output, two: str) -> None:
    words = ["--methods", "fixed,clock+fl,cpu+fl"]
    rows = found(capsys, two, *words)["results"]
    assert [(row["machine"], row["method"]) for row in rows if row["protocol"] == "leave-benchmark-out"] == [
        ("lonely", "fixed"),
        ("lonely", "clock+fl"),
        ("node", "fixed"),
        ("node", "cpu+fl"),
    ]
    answer = found(capsys, two, "--methods", "clock+fl", "--devices", "lonely")
    (machine,) = answer["machines"]
    assert machine["published_model"]["nothing_to_cluster"]
    assert machine["published_model"]["clusters"] == []


def test_figures_are_written_where_they_are_wanted(capsys: Output, folder: str, tmp_path: Path) -> None:
    assert run(folder, "--methods", "fixed", "--figures", str(tmp_path / "new" / "figures")) == 0
    names = {path.name for path in (tmp_path / "new" / "figures").iterdir()}
    assert {"frontier.png", "frontier.csv", "curve.png", "tree.png"} <= names
    assert capsys.readouterr().err.count("wrote ") == len(names) == 12


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--methods", "fixed,magic"], "--methods: expected all or some of fixed, cpu+fl, gpu+fl, limiter,"),
        (["--methods", ""], "--methods: expected names separated by commas, found ''"),
        (["--samples", "cpu_cap_w=1"], "--samples: configuration: expected one of the 12 that are known"),
        (["--samples", "watts"], "--samples: expected each knob once, as KNOB=VALUE, found 'watts'"),
        (["--group", "bfs"], "--group: expected groups such as a+b,c+d of programs, found 'bfs'"),
        (["--group", "bfs+magic"], "--group: expected one of bfs, cfd, cfd_double, km, lud, nw"),
        (["--devices", "gpu9"], "expected one of node, found 'gpu9'"),
        (["--power-domain", "magic"], "--power-domain: expected one whose power"),
        (["--max-retunes", "-1"], "--max-retunes: expected at least 0, found -1"),
        (["--max-retunes", "1.5"], "--max-retunes: expected a whole number, found '1.5'"),
        (["--cap-probability", "90"], "--cap-probability: expected a probability between 0 and 1, found 90"),
        (["--seed", "-1"], "--seed: expected a number from 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    capsys: Output, folder: str, words: list[str], sentence: str
) -> None:
    assert sentence in refusal(capsys, folder, *words)


def test_samples_are_of_one_machine(capsys: Output, two: str) -> None:
    sentence = refusal(capsys, two, "--samples", "clock_hz=5e8")
    assert "--samples: expected one machine, found 2 (lonely; node): say which with --devices" in sentence


def test_a_dataset_without_power_is_refused(capsys: Output, tmp_path: Path) -> None:
    whole = configured_dataset(named_surfaces())
    write_dataset(replace(whole, energy=whole.energy.slice(0, 0)), tmp_path / "dark")
    sentence = refusal(capsys, str(tmp_path / "dark"))
    assert "expected runs with time and power, found none" in sentence
