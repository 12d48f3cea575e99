"""``crosscast dataset import hpctoolkit | caliper | perf | ncu``: profiles in, a dataset out."""

import json
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.dataset import read_dataset

Output = pytest.CaptureFixture[str]


def event(name: str, value: str, unit: str = "") -> str:
    return json.dumps({"counter-value": value, "unit": unit, "event": name}) + "\n"


@pytest.fixture
def perf_files(tmp_path: Path) -> list[str]:
    """Two runs of a program."""
    paths = []
    for number in (1, 2):
        path = tmp_path / f"sort{number}.json"
        path.write_text(
            event("instructions", f"{number}000") + event("duration_time", f"{number}0", "ns"),
            encoding="utf-8",
        )
        paths.append(str(path))
    return paths


def test_profiles_become_repeats_of_a_run(tmp_path: Path, perf_files: list[str], capsys: Output) -> None:
    words = ["--out", str(tmp_path / "out"), "--device", "xeon", "--application", "sort", "--size", "big"]
    words += ["--kernel", "sorting", "--nodes", "2", "--cores", "72", "--gpu"]
    assert main(["dataset", "import", "perf", *perf_files, *words]) == 0
    assert capsys.readouterr().err == f"wrote {tmp_path / 'out'} (0 profiles, 2 records)\n"
    dataset = read_dataset(tmp_path / "out")
    first, second = dataset.records.to_pylist()
    assert (first["application"], first["kernel"], first["size"]) == ("sort", "sorting", "big")
    assert json.loads(first["configuration"]) == {"nodes": 2, "cores": 72, "uses_gpu": 1}
    assert (first["time_s"], second["time_s"]) == ([pytest.approx(1e-8)], [pytest.approx(2e-8)])
    counters = [json.loads(text) for text in dataset.sessions.column("counters").to_pylist()]
    assert counters == [{"instructions": 1000}, {"instructions": 2000}]


def test_a_time_may_be_given(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "p.json").write_text(event("cycles", "7"), encoding="utf-8")
    words = [
        "dataset",
        "import",
        "perf",
        str(tmp_path / "p.json"),
        "--out",
        str(tmp_path / "out"),
        "--device",
        "x",
    ]
    assert main(words) == 2
    assert "--time" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*words, "--time", "2.5"]) == 0
    assert read_dataset(tmp_path / "out").records.column("time_s").to_pylist() == [[2.5]]


def test_a_region_of_caliper_and_a_kernel_of_ncu_are_chosen(tmp_path: Path) -> None:
    table = {
        "data": [[0, 2.0, 5], [1, 3.0, 7]],
        "columns": ["path", "sum#time.duration", "sum#count"],
        "column_metadata": [{"is_value": False}, {"is_value": True}, {"is_value": True}],
        "nodes": [{"label": "main"}, {"label": "solve", "parent": 0}],
    }
    (tmp_path / "c.json").write_text(json.dumps(table), encoding="utf-8")
    launches = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n' + "".join(
        f'"{number}","{kernel}","{name}","{unit}","{value}"\n'
        for number, kernel in enumerate(("main", "solve"))
        for name, unit, value in (
            ("gpu__time_duration.sum", "second", "3"),
            ("inst.sum", "inst", f"{number + 6}"),
        )
    )
    (tmp_path / "n.csv").write_text(launches, encoding="utf-8")
    for tool, file in (("caliper", "c.json"), ("ncu", "n.csv")):
        out = tmp_path / tool
        words = ["--out", str(out), "--device", "v100", "--kernel", "solve"]
        assert main(["dataset", "import", tool, str(tmp_path / file), *words]) == 0
        dataset = read_dataset(out)
        assert dataset.records.column("kernel").to_pylist() == ["solve"]
        assert dataset.records.column("time_s").to_pylist() == [[3.0]]
        (text,) = dataset.sessions.column("counters").to_pylist()
        assert list(json.loads(text).values()) == [7]


@pytest.mark.parametrize("tool", ["hpctoolkit", "caliper", "perf", "ncu"])
def test_what_is_wrong_is_one_sentence_and_exit_2(tmp_path: Path, tool: str, capsys: Output) -> None:
    words = ["--out", str(tmp_path / "out"), "--device", "x"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("nothing of a tool\n", encoding="utf-8")
    for path in ([], [str(tmp_path / "none")], [str(tmp_path / "empty")], [str(tmp_path / "file")]):
        assert main(["dataset", "import", tool, *path, *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("crosscast: ")
        assert "expected" in line or "cannot read" in line
    assert not (tmp_path / "out").exists()
