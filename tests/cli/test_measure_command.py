"""The command measure, on a real device."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crosscast
from crosscast.cli import main
from crosscast.data.schema import RECORDS, SESSIONS, Schema
from crosscast.data.table import Table, check, table_of
from crosscast.measure.opencl import devices
from support.commands import Output
from support.processes import NOTE, noted
from support.refusals import refusal

Folder = Callable[..., Path]
QUICK = ["--min-runs", "3", "--min-time", "0.02"]
SOURCE = """
kernel void fill(global float *a, float b) { a[get_global_id(0)] = b; }
kernel void wild(global float *a, float b) { a[(long)1 << 40] = b; }
"""
LAUNCH = """
source = "k.cl"
kernel = "fill"
global = 64
[[arg]]
type = "float"
length = 64
[[arg]]
type = "float"
value = 2
"""


@pytest.fixture
def launch(tmp_path: Path) -> Callable[[str], str]:
    """Maker of launch files of a kernel."""
    (tmp_path / "k.cl").write_text(SOURCE)

    def make(kernel: str) -> str:
        path = tmp_path / f"{kernel}.toml"
        path.write_text(LAUNCH.replace("fill", kernel))
        return str(path)

    return make


def measured(capsys: Output, *words: object) -> tuple[dict[str, Any], str]:
    assert main(["measure", *map(str, words), *QUICK, "--device", devices()[-1].id, "--json"]) == 0
    output = capsys.readouterr()
    return json.loads(output.out), output.err


def encoded(schema: Schema, rows: list[dict[str, Any]]) -> Table:
    """Rows of the object that is printed, as the table that they belong to."""
    texts = {column.name for column in schema.columns if column.type == "json"}
    return table_of(
        schema,
        [
            {
                name: json.dumps(cell) if name in texts and cell is not None else cell
                for name, cell in row.items()
            }
            for row in rows
        ],
    )


def test_json_holds_each_time_of_a_launch_and_forecast(launch: Callable[[str], str], capsys: Output) -> None:
    found, _ = measured(capsys, launch("fill"), "--against-forecast", "titanx")
    device = devices()[-1]
    assert found["device"] == {"id": device.id, "key": device.key, "name": device.name}
    assert 0 < found["transfer_median_s"] < found["host_median_s"]
    (kernel,), (session,) = found["kernels"], found["sessions"]
    check(RECORDS, encoded(RECORDS, found["records"]), "records")
    check(SESSIONS, encoded(SESSIONS, found["sessions"]), "sessions")
    assert session["kernels"] == ["fill"]
    assert (session["application"], session["size"]) == ("fill", "given")
    assert kernel["kernel"] == "fill"
    assert kernel["runs"] == kernel["invocations"] == session["runs"] == len(found["records"]) >= 3
    times = [time for record in found["records"] for time in record["time_s"]]
    assert 0 < min(times) == kernel["min_s"] <= kernel["median_s"] <= kernel["max_s"] == max(times)
    assert any("less than 2 s" in warning for warning in found["warnings"])
    beside = found["against_forecast"]
    assert (beside["device"], beside["kernel"]) == ("titanx", ["fill"])
    assert beside["measured_s"] == [kernel["median_s"]]
    (ratio,) = beside["forecast_over_measured"]
    assert ratio == pytest.approx(beside["forecast_s"][0] / beside["measured_s"][0])
    assert beside["inside"] == [beside["low_s"][0] <= beside["measured_s"][0] <= beside["high_s"][0]]


@pytest.mark.system
def test_repeats_are_distinct_processes(make_application: Folder, capsys: Output) -> None:
    folder = make_application(init=NOTE)
    found, _ = measured(capsys, folder, "--size", "tiny", "--repeats", 2)
    assert [session["repeat"] for session in found["sessions"]] == [0, 1]
    assert {record["repeat"] for record in found["records"]} == {0, 1}
    assert len(noted(folder)) == 2
    (kernel,) = found["kernels"]
    assert kernel["runs"] == sum(session["runs"] for session in found["sessions"])


def test_people_get_a_summary(capsys: Output) -> None:
    words = ["measure", "crc", "--size", "tiny", *QUICK]
    assert main(words) == 0
    output = capsys.readouterr()
    first = devices()[0]
    assert output.out.startswith(f"crc on {first.id} ({first.name})\nkernel ")
    assert "\ncrc32_slice8 " in output.out
    assert "energy" in output.out
    assert "less than 2 s" in output.out


def test_devices_are_listed_and_people_see_why_sensors_do_not_work(capsys: Output) -> None:
    assert main(["devices", "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert [entry["id"] for entry in found] == [device.id for device in devices()]
    assert all({"id", "name", "type", "compute_units", "sensors"} <= entry.keys() for entry in found)
    assert output.err == ""
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("id ")
    assert all(device.id in shown for device in devices())
    sensors = [sensor for entry in found for sensor in entry["sensors"]]
    assert all(sensor["reason"] in shown for sensor in sensors if not sensor["works"])


@pytest.mark.system
def test_measuring_in_python_is_what_the_command_does(launch: Callable[[str], str]) -> None:
    found = crosscast.measure_times(launch("fill"), devices()[-1].id, min_runs=3, min_time=0.02)
    assert found.to_pandas()["kernel"].tolist() == ["fill"]
    assert len(found.records) == found.kernels[0].runs >= 3
    assert "expected at least 1, found 0" in refusal(crosscast.measure_times, launch("fill"), repeats=0)


def test_one_launch_of_those_in_host_code_is_measured(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "app.cu"
    launches = "k<<<1, N>>>(); k<<<2, N>>>(); l<<<1, N>>>();"
    path.write_text(f"__global__ void k() {{}} __global__ void l() {{}} int main() {{ {launches} }}")
    for words, sentence in (
        ((), "--kernel is missing, expected one launch in {}, found 3, of k, l"),
        (("--kernel", "k"), "--grid and --block are missing, expected one launch in {}, found 2, of k"),
    ):
        assert main(["measure", str(path), "-D", "N=16", *words]) == 2
        assert sentence.format(path) in capsys.readouterr().err
