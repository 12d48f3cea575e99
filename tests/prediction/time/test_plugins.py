"""Models of times that other packages bring, as the example does."""

import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast.errors import InputError
from support.commands import Command, Output
from support.refusals import refusals

EXAMPLE = Path(__file__).parents[3] / "examples" / "time_model"
VECADD = EXAMPLE.parent / "vecadd.toml"
PREDICT = Command.of("predict")


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, code: str) -> None:
    """Files of an installed package with one module."""
    info = tmp_path / "some_times-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-times\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[crosscast.time_models]\n{entry}\n")
    name = entry.partition("=")[2].strip().partition(":")[0]
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    ((name, value),) = points["crosscast.time_models"].items()
    code = (EXAMPLE / f"{value.partition(':')[0]}.py").read_text()
    installed(tmp_path, monkeypatch, f"{name} = {value}", code)


@pytest.mark.usefixtures("example")
def test_the_example_predicts_as_a_model_of_crosscast_does(capsys: Output) -> None:
    forecast = crosscast.predict(VECADD, "roofline", devices=["titanx", "rtx4090"])
    assert forecast.devices == ("titanx", "rtx4090")
    # 12 MiB over 336.5 GB/s, and a launch.
    moved = forecast.profiles.launches[0][0].metrics["total_memory_footprint"]
    assert moved is not None
    assert forecast.centre[0, 0] > 5e-6
    np.testing.assert_allclose(forecast.high, 9 * forecast.low)
    with pytest.raises(
        InputError, match=r"^devices: expected a device that the model knows .* found 'none'$"
    ):
        crosscast.load_model("roofline", "time").predict(forecast.profiles, ["none"])
    shown = json.loads(PREDICT.text(capsys, VECADD, "--model", "roofline", "--json"))
    assert [each["device"] for each in shown["kernels"][0]["devices"]] == ["gtx1080", "titanx", "k40c"]
    text = PREDICT.text(capsys, VECADD, "--model", "roofline")
    assert "roofline, of the package some-times: time of a launch by bandwidth" in text


@pytest.mark.usefixtures("example")
def test_it_is_listed_and_is_no_default(capsys: Output) -> None:
    assert "roofline: a model of times of the package some-times" in Command.of("models").text(capsys)
    assert crosscast.predict(VECADD, devices="titanx").terms is not None
    with pytest.raises(InputError, match="probe: the model roofline takes no measured times"):
        crosscast.predict(VECADD, "roofline", probes={"titanx": 1e-3})
    with pytest.raises(InputError, match=r"one of launch-times, .*, roofline, found 'nothing'"):
        crosscast.load_model("nothing", "time")


@refusals("code sentence")
def test_a_model_that_is_none_is_one_sentence(
    code: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "strange = some_times:Model", code)
    with pytest.raises(InputError, match=sentence):
        crosscast.predict(VECADD, "strange")
