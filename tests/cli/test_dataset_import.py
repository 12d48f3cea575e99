"""``crosscast dataset import``: files in, a dataset out, and one sentence for what is wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.dataset import read_dataset
from crosscast.data.profiles import write_parquet
from crosscast.data.sources import IMPORTERS
from crosscast.profile import Profile
from support.commands import Command, Output

ProfileMaker = Callable[..., Profile]
IMPORT = Command.of("dataset import")


def test_a_folder_of_the_published_tool_becomes_a_dataset(tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "lud" / "tiny"
    folder.mkdir(parents=True)
    text = "metric,category,count\nOpcode,Compute,3\nTotal Instruction Count,Compute,12\n"
    (folder / "aiwc_k_0.csv").write_text(text, encoding="utf-8")
    words = ("--out", tmp_path / "out", "--application", "a", "--size", "s")
    assert IMPORT("aiwc", folder, *words) == 0
    (profile,) = read_dataset(tmp_path / "out").profiles.to_pylist()
    assert (profile["application"], profile["size"], profile["opcode"]) == ("a", "s", 3)
    assert capsys.readouterr().err == f"wrote {tmp_path / 'out'} (1 profiles, 0 records)\n"


def test_profiles_of_characterize_become_a_dataset(tmp_path: Path, make_profile: ProfileMaker) -> None:
    write_parquet([make_profile("reduce")], tmp_path / "p.parquet")
    words = ("--out", tmp_path / "out", "--application", "sums")
    assert IMPORT("crosscast", tmp_path / "p.parquet", *words) == 0
    (profile,) = read_dataset(tmp_path / "out").profiles.to_pylist()
    assert (profile["application"], profile["kernel"]) == ("sums", "reduce")


def test_each_importer_says_its_licence_its_origin_and_the_files_that_it_wants(capsys: Output) -> None:
    sources = Command.of("dataset sources")
    found = {each["name"]: each for each in sources.answer(capsys)}
    assert list(found) == list(IMPORTERS)
    text = sources.text(capsys)
    for name, each in found.items():
        assert all(each[fact] in text for fact in ("about", "licence", "origin"))
        assert all(" or ".join(file["names"]) in text for file in each["files"])
        if name not in ("aiwc", "crosscast", "tuning"):
            assert each["files"] and "github.com/" in each["origin"]
    assert found["gavel_pairs"]["files"][0]["names"] == ["gavel_standalone.csv"]
    needed = [file["required"] for file in found["aiwc2018"]["files"]]
    assert needed == [True, True, False]


OWN = "application,block,threads,time_s,power_w\nscan,8,1,4,30\nscan,16,1,5,30\nscan,8,2,2,\n"


def test_ones_own_runs_become_a_dataset_and_what_was_taken_is_told(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "my.csv").write_text(OWN, encoding="utf-8")
    command = ("runs", tmp_path / "my.csv", "--out", tmp_path / "out")
    assert IMPORT(*command, "--settings", "block, threads") == 0
    assert capsys.readouterr().err.splitlines() == [
        "my.csv: settings: block, threads",
        "my.csv: powers: power_w",
        "runs: 2, cells: 2, applications: 1, configurations: 2 (machine)",
        "runs left out: 1 (1 without power)",
        f"wrote {tmp_path / 'out'} (0 profiles, 2 records)",
    ]
    assert IMPORT(*command) == 2
    assert "expected no other dataset" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "out")
    assert IMPORT(*command) == 0
    found = read_dataset(tmp_path / "out").records.column("configuration").to_pylist()
    assert found == ['{"threads": 1.0}'] * 2


def test_runs_without_any_setting_are_taken_with_a_warning(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "my.csv"
    path.write_text("application,freq,time_s,power_w\nscan,800,1,4\nscan,1600,2,5\n", encoding="utf-8")
    command = ("runs", path, "--out", tmp_path / "out")
    assert IMPORT(*command) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "warning" in line)
    assert line == (
        f"crosscast: warning: {path}: no run has a setting, so that models can choose devices only; "
        "name the columns that are settings with --settings"
    )
    shutil.rmtree(tmp_path / "out")
    assert IMPORT(*command, "--settings", "freq") == 0
    assert "warning" not in capsys.readouterr().err


def test_runs_without_power_are_times_which_is_told(tmp_path: Path, capsys: Output) -> None:
    path, out = tmp_path / "my.csv", str(tmp_path / "out")
    path.write_text("application,device,time_s\nscan,k40c,1\n", encoding="utf-8")
    assert IMPORT("runs", path, "--out", out) == 0
    told = "no run has a power: the times are for models of times and of relative times"
    assert f"crosscast: note: {path}: {told}" in capsys.readouterr().err
    assert main(["train", "configuration", out, "--out", str(tmp_path / "model")]) == 2
    assert "expected runs with time and power, found none" in capsys.readouterr().err


def event(name: str, value: str, unit: str = "") -> str:
    return json.dumps({"counter-value": value, "unit": unit, "event": name}) + "\n"


def test_profiles_become_repeats_of_a_run(tmp_path: Path, capsys: Output) -> None:
    files = [tmp_path / f"sort{number}.json" for number in (1, 2)]
    for number, path in enumerate(files, 1):
        text = event("instructions", f"{number}000") + event("duration_time", f"{number}0", "ns")
        path.write_text(text, encoding="utf-8")
    words = ["--out", str(tmp_path / "out"), "--device", "xeon", "--application", "sort", "--size", "big"]
    words += ["--kernel", "sorting", "--nodes", "2", "--cores", "72", "--gpu"]
    assert IMPORT("counters", "perf", *files, *words) == 0
    assert capsys.readouterr().err == f"wrote {tmp_path / 'out'} (0 profiles, 2 records)\n"
    dataset = read_dataset(tmp_path / "out")
    first, second = dataset.records.to_pylist()
    assert (first["application"], first["kernel"], first["size"]) == ("sort", "sorting", "big")
    assert json.loads(first["configuration"]) == {"nodes": 2, "cores": 72, "uses_gpu": 1}
    assert (first["time_s"], second["time_s"]) == ([pytest.approx(1e-8)], [pytest.approx(2e-8)])
    counters = [json.loads(text) for text in dataset.sessions.column("counters").to_pylist()]
    assert counters == [{"instructions": 1000}, {"instructions": 2000}]
