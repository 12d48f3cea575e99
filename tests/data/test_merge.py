"""Datasets of several machines in one: devices once, hosts side by side, and no two truths."""

import json
from pathlib import Path
from typing import Any

import pytest

from crosscast.cli import main
from crosscast.data.dataset import Dataset, read_dataset, write_dataset
from crosscast.data.merge import hosts_of, merged
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, ISOLATED_RUNS, RECORDS, SESSIONS, Schema
from crosscast.data.table import table_of
from crosscast.errors import InputError

Row = dict[str, Any]
WHERE = {"application": "crc", "size": "tiny", "device": "cpu-2cu", "configuration": "{}"}


def built(host: str | None, repeats: int = 1, time_s: float = 1e-3, **cells: Row) -> Dataset:
    """What a build on a host gives; `cells` change rows of a table."""
    rows: dict[str, list[Row]] = {"records": [], "energy": [], "sessions": []}
    for repeat in range(repeats):
        facts = {} if host is None else {"host": host}
        whole = {**WHERE, "repeat": repeat, **cells.get("all", {})}
        rows["sessions"].append({**whole, "kernels": '["k"]', "environment": json.dumps(facts)})
        rows["records"].append({**whole, "kernel": "k", "run": 0, "invocations": 1, "time_s": [time_s]})
        energy = {"sensor": "rapl", "domain": "package-0", "energy_j": 1.0, "runs": 1}
        rows["energy"].append({**whole, **energy})
    device = {"device": "cpu-2cu", "name": "CPU", "type": "cpu", "driver": "3.0", "sources": "{}"}
    profile = {"application": "crc", "size": "tiny", "kernel": "k", "invocation": 0, "opcode": 7}
    profile |= {"run_s": time_s, "environment": json.dumps({"host": host})}
    tables: dict[Schema, list[Row]] = {
        DEVICES: [device | {"launch_overhead_s": time_s} | cells.get("devices", {})],
        PROFILES: [profile | cells.get("profiles", {})],
        RECORDS: rows["records"],
        ENERGY: rows["energy"],
        SESSIONS: rows["sessions"],
        ISOLATED_RUNS: [{**WHERE, "features": "{}", **cells["isolated_runs"]}]
        if "isolated_runs" in cells
        else [],
    }
    return Dataset(
        f"of {host}", **{schema.table: table_of(schema, found) for schema, found in tables.items()}
    )


def test_equal_devices_of_two_hosts_are_one_device_with_two_hosts() -> None:
    found = merged([built("a", 2, 1e-3), built("b", 2, 2e-3)], "both")
    (device,) = found.devices.to_pylist()
    assert device["launch_overhead_s"] == 1e-3
    assert hosts_of(found.sessions.to_pylist()) == {"cpu-2cu": ["a", "b"]}
    times = {row["repeat"]: row["time_s"] for row in found.records.to_pylist()}
    assert times == {0: [1e-3], 1: [1e-3], 2: [2e-3], 3: [2e-3]}
    assert sorted(row["repeat"] for row in found.energy.to_pylist()) == [0, 1, 2, 3]
    assert found.profiles.num_rows == 1


def test_measurements_without_a_session_are_kept() -> None:
    bare = built(None)
    bare = Dataset("bare", devices=bare.devices, records=bare.records)
    assert merged([bare, bare, built("a", 1, 5e-3)], "both").records.num_rows == 2


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (built("b", devices={"driver": "4.0"}), "of b: devices: cpu-2cu: expected the driver of of a .3.0.,"),
        (built("b", profiles={"opcode": 8}), r"^of b: profiles: crc k tiny 0: expected the opcode of of a"),
        (built("a", 1, 2e-3), r"^of a: records: crc tiny cpu-2cu 0: expected the time_s of of a"),
        (built("b", isolated_runs={"time_s": 2.0}), "isolated_runs: crc tiny cpu-2cu: expected the time_s"),
    ],
)
def test_what_differs_is_refused_by_name(other: Dataset, message: str) -> None:
    with pytest.raises(InputError, match=message):
        merged([built("a", isolated_runs={"time_s": 1.0}), other], "both")


def test_the_command_joins_folders_into_a_new_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for host in "ab":
        write_dataset(built(host), tmp_path / host)
    words = ["dataset", "merge", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "c")]
    assert main([*words, "--json"]) == 0
    output = capfd.readouterr()
    assert "crosscast: note: cpu-2cu was measured on a, b" in output.err
    assert json.loads(output.out)["hosts"] == {"cpu-2cu": ["a", "b"]}
    assert main(["dataset", "describe", str(tmp_path / "c")]) == 0
    assert "cpu-2cu was measured on a, b" in capfd.readouterr().out
    assert read_dataset(tmp_path / "c").sessions.num_rows == 2
    assert main(words) == 2
    assert "--out: expected a new or empty folder" in capfd.readouterr().err
    assert main([*words[:3], str(tmp_path / "none"), "--out", str(tmp_path / "d")]) == 2
    assert not (tmp_path / "d").exists()
