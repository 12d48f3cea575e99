"""The commands measure, corun profile and corun campaign, on a real device."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crosscast
from crosscast.cli import main
from crosscast.data.corun import co_runs, read_profile
from crosscast.data.dataset import read_dataset
from crosscast.data.fields import TableRow
from crosscast.measure import inventory as describe
from crosscast.measure.campaign import CampaignOutcome
from crosscast.measure.corun import campaign as corun_campaign
from crosscast.measure.opencl import devices
from support.commands import Command, Output
from support.processes import NOTE, noted

Folder = Callable[..., Path]
QUICK = ["--min-runs", "3", "--min-time", "0.02"]


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    """A launch file."""
    source = "kernel void fill(global float *a, float b) { a[get_global_id(0)] = b; }\n"
    (tmp_path / "k.cl").write_text(source)
    buffer, value = ('[[arg]]\ntype = "float"\n' + rest for rest in ("length = 64\n", "value = 2\n"))
    path = tmp_path / "fill.toml"
    path.write_text(f'source = "k.cl"\nkernel = "fill"\nglobal = 64\n{buffer}{value}')
    return path


def measured(capsys: Output, *words: object) -> Any:
    assert main(["measure", *map(str, words), *QUICK, "--device", devices()[-1].id, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_holds_each_time_of_a_launch_and_forecast(launch: Path, capsys: Output) -> None:
    found = measured(capsys, launch, "--against-forecast", "titanx")
    device = devices()[-1]
    assert found["device"] == {"id": device.id, "key": device.key, "name": device.name}
    assert 0 < found["transfer_median_s"] < found["host_median_s"]
    (kernel,), (session,) = found["kernels"], found["sessions"]
    assert (session["application"], session["size"], session["kernels"]) == ("fill", "given", ["fill"])
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
def test_repeats_are_distinct_processes_and_python_does_the_same(
    make_application: Folder, launch: Path, capsys: Output
) -> None:
    folder = make_application(init=NOTE)
    found = measured(capsys, folder, "--size", "tiny", "--repeats", 2)
    assert [session["repeat"] for session in found["sessions"]] == [0, 1]
    assert {record["repeat"] for record in found["records"]} == {0, 1}
    assert len(noted(folder)) == 2
    same = crosscast.measure_times(launch, devices()[-1].id, min_runs=3, min_time=0.02)
    assert same.to_pandas()["kernel"].tolist() == ["fill"]
    assert len(same.records) == same.kernels[0].runs >= 3


def test_people_get_a_summary(capsys: Output) -> None:
    text = Command.of("measure").text(capsys, "crc", "--size", "tiny", *QUICK)
    first = devices()[0]
    assert text.startswith(f"crc on {first.id} ({first.name})\nkernel ")
    assert "\ncrc32_slice8 " in text


def test_devices_are_listed_and_people_see_why_sensors_do_not_work(capsys: Output) -> None:
    found, shown = Command.of("devices").answer(capsys), Command.of("devices").text(capsys)
    assert [entry["id"] for entry in found] == [device.id for device in devices()]
    assert shown.startswith("id ")
    for entry in found:
        assert {"name", "type", "compute_units"} <= entry.keys()
        assert entry["id"] in shown
        assert all(sensor["reason"] in shown for sensor in entry["sensors"] if not sensor["works"])


def test_one_launch_of_those_in_host_code_is_measured(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "app.cu"
    launches = "k<<<1, N>>>(); k<<<2, N>>>(); l<<<1, N>>>();"
    path.write_text(f"__global__ void k() {{}} __global__ void l() {{}} int main() {{ {launches} }}")
    for words, sentence in (
        ((), f"--kernel is missing, expected one launch in {path}, found 3, of k, l"),
        (("--kernel", "k"), f"--grid and --block are missing, expected one launch in {path}, found 2, of k"),
    ):
        assert sentence in Command.of("measure").refusal(capsys, path, "-D", "N=16", *words)


CORUN = Command.of("corun", "--round-time 0.01 --jobs 1 --sensor none")


@pytest.mark.system
def test_a_profile_is_written_and_a_campaign_fills_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    # The device has little memory, so that images are small and no test waits for them.
    known = describe.static_facts
    for module in (describe, corun_campaign):
        monkeypatch.setattr(
            module, "static_facts", lambda device: TableRow({**known(device), "memory_bytes": 100 << 20})
        )
    cpu, out = devices()[0], tmp_path / "gem.json"
    words = ["profile", "gem", "--size", "tiny", "--device", cpu.id, "--out", str(out)]
    lines = CORUN.text(capfd, *words).splitlines()
    assert lines[0] == f"gem tiny on {cpu.id} ({cpu.name})"
    assert any(line.startswith("instructions: integers 28.1 %, memory 16 %") for line in lines)
    levels = [line.split()[0] for line in lines if line.startswith(("low", "medium", "high"))]
    assert levels == ["low", "medium", "high"]
    isolated_run = read_profile(out).isolated_run
    assert (isolated_run.name, isolated_run.device) == ("gem tiny", cpu.key)
    assert {"fairness_low", "fairness_medium", "fairness_high", "mix_fp"} <= set(isolated_run.features)
    words = f"campaign --suite gem --sizes tiny --device {cpu.id} --no-instruction-mix --out".split()
    assert CORUN(*words, tmp_path / "set") == 0
    output = capfd.readouterr()
    assert "crosscast: applications at sizes: 1; mixes of 2: 1; 3 tasks, roughly 15 s\n" in output.err
    assert output.out == f"{tmp_path / 'set'}: 3 done now, 0 there before, 0 failed\n"
    found = CORUN.answer(capfd, *words, tmp_path / "set", "--mixes", "2,3")
    assert (found["done"], found["kept"], found["failed"]) == (1, 3, [])
    mixes = co_runs(read_dataset(tmp_path / "set")).mixes
    assert len(mixes) == 2
    assert all(member.slowdown for mix in mixes for member in mix.members)


def test_of_very_many_mixes_people_are_told_how_to_measure_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    outcome = CampaignOutcome()
    monkeypatch.setattr(corun_campaign, "run_corun_campaign", lambda plan, out, status, confirm: outcome)
    for most, hints in (((), 1), (("--most-mixes", "500"), 0)):
        assert CORUN("campaign", "--out", tmp_path, "--sizes", "tiny", "--mixes", "2,3", *most) == 0
        first, *rest = capfd.readouterr().err.splitlines()
        assert first.startswith("crosscast: applications at sizes: 14; mixes of 2: 105; mixes of 3: 5")
        told = "crosscast: --most-mixes 100 measures a random sample of so many of each size"
        assert rest == [told] * hints
