"""The commands corun profile and corun campaign, on PoCL's CPU, and what they refuse."""

import json
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.corun import co_runs, read_profile
from crosscast.data.dataset import read_dataset
from crosscast.data.fields import TableRow
from crosscast.measure import inventory as describe
from crosscast.measure.campaign import CampaignOutcome
from crosscast.measure.corun import campaign as corun_campaign
from crosscast.measure.opencl import OpenCLDevice, devices
from support.commands import Output

CPU = devices()[0]
QUICK = ["--round-time", "0.01", "--jobs", "1", "--sensor", "none"]


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say that the device has little memory, so that images are small and no test waits for them."""
    known = describe.static_facts

    def static_facts(device: OpenCLDevice) -> TableRow:
        return TableRow({**known(device), "memory_bytes": 100 << 20})

    monkeypatch.setattr(describe, "static_facts", static_facts)
    monkeypatch.setattr(corun_campaign, "static_facts", static_facts)


@pytest.mark.system
@pytest.mark.usefixtures("little_memory")
def test_a_profile_is_shown_and_written(tmp_path: Path, capfd: Output) -> None:
    out = tmp_path / "gem.json"
    words = ["corun", "profile", "gem", "--size", "tiny", "--device", CPU.id, "--out", str(out), *QUICK]
    assert main(words) == 0
    output = capfd.readouterr()
    lines = output.out.splitlines()
    assert lines[0] == f"gem tiny on {CPU.id} ({CPU.name})"
    assert any(line.startswith("instructions: integers 28.1 %, memory 16 %") for line in lines)
    assert [line.split()[0] for line in lines if line.startswith(("low", "medium", "high"))] == [
        "low",
        "medium",
        "high",
    ]
    assert f"stressors on {CPU.id}: low " in output.out
    assert f"wrote {out}" in output.err
    isolated_run = read_profile(out).isolated_run
    assert (isolated_run.name, isolated_run.device) == ("gem tiny", CPU.key)
    assert {"fairness_low", "fairness_medium", "fairness_high", "mix_fp"} <= set(isolated_run.features)


@pytest.mark.system
@pytest.mark.usefixtures("little_memory")
def test_a_campaign_fills_a_dataset_and_goes_on_where_it_was(tmp_path: Path, capfd: Output) -> None:
    words = f"corun campaign --suite gem --sizes tiny --device {CPU.id} --no-instruction-mix".split()
    words += ["--out", str(tmp_path / "set"), *QUICK]
    assert main(words) == 0
    output = capfd.readouterr()
    assert "crosscast: applications at sizes: 1; mixes of 2: 1; 3 tasks, roughly 15 s\n" in output.err
    assert f"crosscast: note: stressors on {CPU.id}: low " in output.err
    assert output.out == f"{tmp_path / 'set'}: 3 done now, 0 there before, 0 failed\n"
    assert main([*words, "--mixes", "2,3", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["done"], found["kept"], found["failed"]) == (1, 3, [])
    mixes = co_runs(read_dataset(tmp_path / "set")).mixes
    assert len(mixes) == 2
    assert all(member.slowdown for mix in mixes for member in mix.members)


@pytest.mark.parametrize(("most", "hinted"), [([], True), (["--most-mixes", "500"], False)])
def test_of_very_many_mixes_people_are_told_how_to_measure_fewer(
    most: list[str], hinted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    monkeypatch.setattr(
        corun_campaign, "run_corun_campaign", lambda plan, out, status, confirm: CampaignOutcome()
    )
    words = ["corun", "campaign", "--out", str(tmp_path), "--sizes", "tiny", "--mixes", "2,3", *most]
    assert main(words) == 0
    errors = capfd.readouterr().err.splitlines()
    assert errors[0].startswith("crosscast: applications at sizes: 14; mixes of 2: 105; mixes of 3: 5")
    assert (
        errors[1:]
        == ["crosscast: --most-mixes 100 measures a random sample of so many of each size"] * hinted
    )
