"""``crosscast dataset describe``: the page and the JSON of a small dataset with gaps."""

import json
from pathlib import Path
from typing import Any

import pytest

from crosscast.cli import main
from crosscast.data.dataset import Dataset, write_dataset
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS
from crosscast.data.table import table_of
from support import tables as rows
from support.commands import Output


def record(kernel: str, size: str, device: str, run: int, time_s: float) -> dict[str, Any]:
    place = {"application": "lud", "kernel": kernel, "size": size, "device": device}
    return {**place, "configuration": "{}", "repeat": 0, "run": run, "time_s": [time_s]}


def session(size: str, device: str, failure: str | None = None) -> dict[str, Any]:
    return {
        "application": "lud",
        "size": size,
        "device": device,
        "configuration": "{}",
        "repeat": 0,
        "kernels": ["diagonal", "internal"],
        "failure": failure,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two kernels, two sizes and two devices: one session failed, one cell is noisy, one has no records."""
    records = [
        *(record("internal", "tiny", "cpu:0", run, 1e-3) for run in range(60)),
        *(record("diagonal", "tiny", "cpu:0", run, 1e-3 * (1 + run % 2)) for run in range(60)),
        *(record("internal", "small", "cpu:0", run, 2e-3) for run in range(60)),
    ]
    devices = [{"device": f"cpu:{n}", "name": "a CPU", "type": "cpu", "sources": {}} for n in range(2)]
    sessions = [
        session("tiny", "cpu:0"),
        session("small", "cpu:0"),
        session("tiny", "cpu:1", "it caught fire"),
    ]
    dataset = Dataset(
        "test",
        devices=table_of(DEVICES, devices),
        records=table_of(RECORDS, records, {"weather": "It rained [all day]."}),
        sessions=table_of(SESSIONS, sessions),
    )
    write_dataset(dataset, tmp_path / "mine")
    return tmp_path / "mine"


def page(folder: Path, capsys: Output) -> str:
    assert main(["dataset", "describe", str(folder)]) == 0
    return capsys.readouterr().out


def test_the_page_starts_with_what_is_in_it(folder: Path, capsys: Output) -> None:
    lines = page(folder, capsys).splitlines()
    assert lines[0] == "1 application, 2 kernels, 2 sizes, 2 devices"
    assert lines[1] == "3 measurement points, 180 records, 0 profiles, 3 sessions, 1 failed"


def test_the_grid_shows_what_is_missing_in_the_order_of_the_sizes(folder: Path, capsys: Output) -> None:
    lines = page(folder, capsys).splitlines()
    (heading,) = (line for line in lines if line.startswith("application"))
    assert heading.split() == ["application", "kernels", "tiny", "small"]
    (row,) = (line for line in lines if line.startswith("lud "))
    assert row.split() == ["lud", "2", "2/4", "1/4"]
    assert "in brackets" not in "\n".join(lines)
    assert "5 measurement points and 4 profiles are missing" in "\n".join(lines)


def test_noise_names_the_worst_cell_of_a_device(folder: Path, capsys: Output) -> None:
    text = page(folder, capsys)
    (quiet,) = (line for line in text.splitlines() if line.startswith("cpu:1"))
    assert quiet.split() == ["cpu:1", "0", "—", "—"]
    (noisy,) = (line for line in text.splitlines() if line.startswith("cpu:0"))
    assert noisy.rstrip().endswith("lud diagonal tiny")
    assert "33.6%" in noisy


def test_failures_warnings_and_notes_are_spelled_out(folder: Path, capsys: Output) -> None:
    text = page(folder, capsys)
    assert "lud tiny on cpu:1: it caught fire" in text
    assert "1 warning by the rule spread" in text
    assert "lud diagonal tiny on cpu:0: the times of its 60 runs spread by" in text
    assert "note on records: weather\nIt rained [all day].\n" in text


def test_the_process_is_named_where_there_are_several(tmp_path: Path, capsys: Output) -> None:
    sessions = [
        {**session("tiny", "cpu:0"), "repeat": 1, "runs": 1},
        {**session("small", "cpu:0", "it caught fire"), "repeat": 2},
    ]
    devices = [{"device": "cpu:0", "name": "a CPU", "type": "cpu", "sources": {}}]
    dataset = Dataset("test", devices=table_of(DEVICES, devices), sessions=table_of(SESSIONS, sessions))
    write_dataset(dataset, tmp_path / "mine")
    text = page(tmp_path / "mine", capsys)
    assert "lud tiny on cpu:0, process 1: its session has 1 run, fewer than 50\n" in text
    assert "lud small on cpu:0, process 2: it caught fire\n" in text


def test_settings_are_named_with_their_device(tmp_path: Path, capsys: Output) -> None:
    settings = '{"cores": 4.0}'
    sessions = [
        {**session("tiny", "cpu:0"), "configuration": settings, "loop_s": 0.5},
        {**session("small", "cpu:0", "it caught fire"), "configuration": settings},
    ]
    devices = [{"device": "cpu:0", "name": "a CPU", "type": "cpu", "sources": {}}]
    dataset = Dataset("test", devices=table_of(DEVICES, devices), sessions=table_of(SESSIONS, sessions))
    write_dataset(dataset, tmp_path / "mine")
    text = page(tmp_path / "mine", capsys)
    assert 'lud tiny on cpu:0 {"cores": 4.0}: its runs took 500 ms, less than 2 s\n' in text
    assert 'lud small on cpu:0 {"cores": 4.0}: it caught fire\n' in text


def test_sizes_that_are_too_many_for_columns_share_one(tmp_path: Path, capsys: Output) -> None:
    records = [record("internal", f"size {number}", "cpu:0", 0, 1e-3) for number in range(9)]
    devices = [{"device": f"cpu:{n}", "name": "a CPU", "type": "cpu", "sources": {}} for n in range(2)]
    dataset = Dataset("test", devices=table_of(DEVICES, devices), records=table_of(RECORDS, records))
    write_dataset(dataset, tmp_path / "mine")
    lines = page(tmp_path / "mine", capsys).splitlines()
    (heading,) = (line for line in lines if line.startswith("application"))
    assert heading.split() == ["application", "kernels", "all", "9", "sizes"]
    (row,) = (line for line in lines if line.startswith("lud "))
    assert row.split() == ["lud", "1", "9/18"]


def test_a_kernel_counts_at_its_own_sizes(tmp_path: Path, capsys: Output) -> None:
    records = [record("internal", "4096x4", "cpu:0", 0, 1e-3), record("diagonal", "64x64", "cpu:0", 0, 1e-3)]
    devices = [{"device": f"cpu:{n}", "name": "a CPU", "type": "cpu", "sources": {}} for n in range(2)]
    dataset = Dataset("test", devices=table_of(DEVICES, devices), records=table_of(RECORDS, records))
    write_dataset(dataset, tmp_path / "mine")
    text = page(tmp_path / "mine", capsys)
    (row,) = (line for line in text.splitlines() if line.startswith("lud "))
    assert row.split() == ["lud", "2", "1/2", "1/2"]
    assert "2 measurement points and 2 profiles are missing" in text


def test_profiles_are_in_brackets_where_there_are_some(tmp_path: Path, capsys: Output) -> None:
    records = [record("internal", "tiny", "cpu:0", 0, 1e-3), record("diagonal", "small", "cpu:0", 0, 1e-3)]
    profile = {"application": "lud", "size": "tiny", "kernel": "internal", "invocation": 0}
    dataset = Dataset(
        "test",
        devices=table_of(DEVICES, [{"device": "cpu:0", "name": "a CPU", "type": "cpu", "sources": {}}]),
        records=table_of(RECORDS, records),
        profiles=table_of(PROFILES, [profile]),
    )
    write_dataset(dataset, tmp_path / "mine")
    text = page(tmp_path / "mine", capsys)
    (row,) = (line for line in text.splitlines() if line.startswith("lud "))
    assert row.split() == ["lud", "2", "1/2", "(1/2)", "1/2", "(—)"]
    assert "; kernels profiled, of all, in brackets; 2 measurement points and 3 profiles are missing" in text


def test_each_device_says_on_one_line_what_it_was_set_to(tmp_path: Path, capsys: Output) -> None:
    settings = [
        {"cpu_cap_w": cap, "mode": mode, "note": note}
        for cap, mode, note in ((65.0, "fast", "a"), (120.0, "slow", "b"), (90.0, "fast", "a"))
    ]
    records = [
        {**record("internal", "tiny", "cpu:0", 0, 1e-3), "configuration": each} for each in settings
    ] + [record("internal", "tiny", "cpu:1", 0, 1e-3)]
    watched = {"sensor": "rapl", "energy_j": 2.0, "duration_s": 0.1, "runs": 1, "repeat": 0}
    place = {"application": "lud", "size": "tiny", "device": "cpu:0", "configuration": settings[0]}
    dataset = Dataset(
        "test",
        devices=table_of(
            DEVICES,
            [{"device": f"cpu:{n}", "name": "a CPU", "type": "cpu", "sources": {}} for n in range(2)],
        ),
        records=table_of(RECORDS, records),
        energy=table_of(ENERGY, [{**watched, **place, "domain": name} for name in ("psys", "package-0")]),
    )
    write_dataset(dataset, tmp_path / "mine")
    lines = page(tmp_path / "mine", capsys).splitlines()
    assert lines[2] == (
        "cpu:0: 3 configurations: cpu cap 65 to 120 W, mode fast or slow, note a or b; "
        "power of package-0, psys"
    )
    # Nothing was set on the other one, and one run spreads by nothing.
    assert not any(line.startswith("cpu:1:") for line in lines)
    (heading,) = (line for line in lines if line.startswith("device"))
    assert heading.split() == ["device", "points"]
    assert "spread" not in "\n".join(lines)


def test_json_says_the_same(folder: Path, capsys: Output) -> None:
    assert main(["dataset", "describe", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["applications"] == ["lud"]
    assert found["kernels"] == ["lud/diagonal", "lud/internal"]
    assert found["sizes"] == ["tiny", "small"]
    assert found["kernel_sizes"] == {"lud/diagonal": ["tiny", "small"], "lud/internal": ["tiny", "small"]}
    assert found["devices"] == ["cpu:0", "cpu:1"]
    assert (found["cells"], found["records"]) == (3, 180)
    assert [failure["reason"] for failure in found["failed"]] == ["it caught fire"]
    assert [warning["rule"] for warning in found["warnings"]] == ["spread"]
    assert found["notes"] == {"records": {"weather": "It rained [all day]."}}


def test_a_dataset_of_co_running_alone_says_what_bags_it_has_and_what_failed(
    tmp_path: Path, capsys: Output
) -> None:
    bag = rows.bag(1.2, None, fits=1, name="pair")
    bag[1] |= {"application": "lud", "failure": "out of memory"}
    write_dataset(rows.dataset(solos=[rows.solo(), rows.solo("lud")], bags=bag), tmp_path / "corun")
    assert main(["dataset", "describe", str(tmp_path / "corun")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "2 applications, 1 size, 1 device",
        "",
        "cpu: 2 isolated runs",
        "cpu: 1 mix of 2, of which 1 failed",
        "",
        "1 application failed",
        "  lud tiny on cpu, in the mix pair: out of memory",
    ]
    assert main(["dataset", "describe", str(tmp_path / "corun"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["corun"]
    assert found["solos"] == [{"device": "cpu", "solos": 2, "failed": 0}]
    assert found["bags"] == [
        {"device": "cpu", "members": 2, "bags": 1, "configurations": 1, "not_fitting": 0, "failed": 1}
    ]
    assert [failure["configuration"] for failure in found["failed"]] == [{}]


def test_solo_runs_and_bags_are_beside_what_was_measured(tmp_path: Path, capsys: Output) -> None:
    dataset = rows.dataset(records=[rows.record()], sessions=[rows.session()], solos=[rows.solo()])
    write_dataset(dataset, tmp_path / "both")
    assert main(["dataset", "describe", str(tmp_path / "both")]) == 0
    text = capsys.readouterr().out
    assert "1 application, 1 kernel, 1 size, 1 device" in text
    assert "cpu: 1 isolated run\n" in text
    assert "1 measurement point, 1 record" in text


def test_more_warnings_than_fit_are_counted(tmp_path: Path, capsys: Output) -> None:
    names = [f"k{number}" for number in range(5)]
    records = [record(name, "tiny", "cpu:0", run, 1e-3 * (1 + run)) for name in names for run in range(60)]
    devices = [{"device": "cpu:0", "name": "a CPU", "type": "cpu", "sources": {}}]
    dataset = Dataset("test", devices=table_of(DEVICES, devices), records=table_of(RECORDS, records))
    write_dataset(dataset, tmp_path / "mine")
    text = page(tmp_path / "mine", capsys)
    assert "5 warnings by the rule spread" in text
    assert "  and 2 more (--json names them)" in text
