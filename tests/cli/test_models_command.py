"""Models that have a name: listed, described, and taken where none is named."""

import json
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.prediction.named_models import load_model, recipes
from support.commands import Command, Output

ROOT = Path(__file__).parents[2]
VECADD = ["--global", "1024", *["--arg", "float:1024"] * 3, "--arg", "int=1024"]


models = Command.of("models")


def test_every_model_is_listed_with_its_licence(capsys: Output) -> None:
    table, listed = models.text(capsys), models.answer(capsys)["models"]
    assert [each["name"] for each in listed] == list(recipes())
    for each in listed:
        assert each["name"] in table and each["about"] in table and each["licence"] in table


@pytest.mark.parametrize("name", recipes())
def test_a_model_is_described_with_its_errors_and_what_to_cite(capsys: Output, name: str) -> None:
    text = models.text(capsys, name)
    assert "held-out" in text and recipes()[name].citation in text
    card = json.loads(json.dumps(load_model(name).card.to_dict()))
    assert models.answer(capsys, name)["card"] == card


def test_a_model_is_described_by_its_folder_too(capsys: Output) -> None:
    folder = load_model("xeon-to-v100").folder
    text = models.text(capsys, str(folder))
    # What no counter is needed for is beside it: here the means are better.
    assert "mean absolute error 0.017 of the time on the slowest device (by means alone 0.012)" in text
    assert models.answer(capsys, str(folder))["folder"] == str(folder)
    assert main(["models", "nothing"]) == 2
    assert "model: expected a folder, or one of launch-times" in capsys.readouterr().err


def test_a_kernel_is_predicted_without_a_model_or_a_launch_file(capsys: Output) -> None:
    source = str(ROOT / "examples" / "vecadd.cl")
    assert main(["predict", source, *VECADD, "--json"]) == 0
    captured = capsys.readouterr()
    assert "crosscast: model launch-times: " in captured.err
    found = json.loads(captured.out)
    assert len(found["kernels"][0]["devices"]) == 35
    assert main(["predict", "time", source, *VECADD, "--model", "launch-times", "--json"]) == 0
    captured = capsys.readouterr()
    assert "crosscast: model" not in captured.err
    assert json.loads(captured.out) == found


def test_relative_times_come_from_the_model_that_knows_the_counters(capsys: Output, tmp_path: Path) -> None:
    assert main(["predict", "relative", str(ROOT / "examples" / "vecadd.toml")]) == 0
    assert "model opencl-15-devices-relative: " in capsys.readouterr().err
    assert main(["predict", "relative", str(tmp_path / "run.cali")]) == 2
    assert "expected a file or the folder of a dataset, found none" in capsys.readouterr().err


def test_runs_at_clocks_of_a_gpu_find_the_model_that_knows_them(capsys: Output, tmp_path: Path) -> None:
    runs = tmp_path / "runs.csv"
    assert main(["choose", "sample", "--model", "gpu-clocks", "--template", str(runs)]) == 0
    capsys.readouterr()
    heads, *rows = runs.read_text().splitlines()
    assert heads.endswith(",time_s,power_w")
    times = (("0.02", "200"), ("0.05", "60"))
    made = [
        row.removesuffix(",,") + f",{time},{power}" for row, (time, power) in zip(rows, times, strict=True)
    ]
    runs.write_text("\n".join([heads, *made]))
    assert main(["choose", "configuration", str(runs), "--power-cap", "100"]) == 0
    captured = capsys.readouterr()
    assert "model gpu-clocks: " in captured.err
    assert "titanx" in captured.out
