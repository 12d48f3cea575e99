"""A device of this machine joins the bundled model: what is measured, what is fitted, and what goes wrong."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import crosscast
from crosscast.cli import main
from crosscast.data.dataset import Dataset, write_dataset
from crosscast.device import Device
from crosscast.errors import EnvironmentFault, InputError
from crosscast.measure import calibration, campaign
from crosscast.prediction.named_models import models_for, named_models
from crosscast.prediction.time.training_times import with_device
from crosscast.tuning.ranking import model_for
from support.commands import Command, Output
from support.refusals import refusal, refusals
from support.streams import times_of_streams

EXAMPLE = Path(__file__).parents[2] / "examples" / "vecadd.toml"
SIX = ("bfs", "csr", "gem", "kmeans", "lud", "nw")
DEVICE: Any = SimpleNamespace(id="fake:0", key="fake")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "crosscast"


def test_any_beginning_of_the_order_has_as_many_applications_as_it_can() -> None:
    order = calibration.order()
    assert len(set(order)) == len(order) == 42
    assert all(len({name for name, _ in order[start : start + 14]}) == 14 for start in (0, 14, 28))
    assert [size for _, size in order[::14]] == list(calibration.SIZES)


def test_a_model_that_was_not_calibrated_is_not_replaced(home: Path) -> None:
    calibration.check_name("my.gpu")  # As crosscast calibrate --minutes 0 stores it
    crosscast.load_model("launch-times").save(home / "models" / "mine")
    assert "not taken" in refusal(calibration.check_name, "mine")


def test_a_calibration_answers_only_where_it_or_its_device_is_named(home: Path) -> None:
    base = crosscast.load_model("launch-times")
    device = Device("mine", "A CPU", type="cpu")
    with_device(base, times_of_streams(base, device, 1.0))[0].save(home / "models" / "mine")

    def names(*devices: str) -> list[str]:
        return [named.name for named, _ in models_for(None, "time", devices) if named]

    assert names()[0] == names("gtx1080")[0] == "launch-times"
    assert "mine" not in names("gtx1080")
    assert names("gtx1080", "mine")[:2] == ["mine", "launch-times"]
    assert [named for named, _ in models_for("mine", "time")] == [None]

    def known(*devices: str) -> set[str]:
        """Devices of the model that ranks variants."""
        model: Any = model_for(None, devices)[0]
        return {each.key for each in model.devices}

    assert {"mine", "gtx1080"} <= known("gtx1080", "mine")
    assert "mine" not in known("gtx1080")
    assert [each.name for each in model_for(None, ["mine"])[1]] == ["A CPU"]


def test_a_device_that_is_gone_ends_the_calibration(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> campaign.CampaignOutcome:
        task = campaign.CampaignTask("measure", "measure bfs small on fake:0", 1.0, False, lambda say: ())
        return campaign.CampaignOutcome(failures=[campaign.TaskFailure(task, "the device is lost")])

    monkeypatch.setattr(campaign, "run", gone)
    with pytest.raises(EnvironmentFault, match=r"fake:0: 3 measurements failed .* the device is lost"):
        calibration.calibrate(DEVICE, "mine", seconds=60)
    assert not (home / "models").exists()


def test_too_little_time_is_said(home: Path) -> None:
    with pytest.raises(InputError, match="minutes: expected time for 6 applications"):
        calibration.calibrate(DEVICE, "mine", seconds=1e-9)
    assert not (home / "models").exists()


@refusals("words said")
def test_wrong_words_are_one_sentence(words: list[str], said: str, capsys: Output) -> None:
    assert said in Command.of("calibrate").refusal(capsys, *words)


def test_a_folder_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    assert "cannot write into the folder" in Command.of("calibrate").refusal(capsys, "--device", "pocl:0")


def test_what_was_measured_is_fitted_kept_and_predicted_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of streaming kernels stand for those of this machine."""
    base = crosscast.load_model("launch-times")

    def run(_: object, folder: Path) -> campaign.CampaignOutcome:
        write_dataset(Dataset("new"), folder)
        return campaign.CampaignOutcome(done=1, notes=["noted"])

    monkeypatch.setattr(campaign, "run", run)
    monkeypatch.setattr(calibration, "order", lambda: tuple((name, "tiny") for name in SIX))
    monkeypatch.setattr(
        calibration, "launch_tables_of", lambda _, described: times_of_streams(base, described, 1.0)
    )
    found = calibration.calibrate(DEVICE, "here", described=Device("", "A CPU", type="cpu"), seconds=60)
    assert found.notes == ("noted",) * 6
    (own,) = [each for each in named_models("time") if each.own]
    assert own.name == "here"
    assert own.licence.startswith("MIT AND ")
    forecast = crosscast.predict(EXAMPLE, devices=["here", "gtx1080", "rtx4090"])
    assert forecast.devices == ("here", "gtx1080", "rtx4090")


@pytest.mark.system
def test_this_machine_joins_and_is_predicted(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    """Six applications at tiny, by the command, as a person would."""
    monkeypatch.setattr(calibration, "order", lambda: tuple((name, "tiny") for name in SIX))
    assert main(["calibrate", "--minutes", "3", "--name", "here"]) == 0
    said = capsys.readouterr()
    assert "on held-out applications median error" in said.out
    assert "for 180 s" in said.err
    # A second calibration keeps what was measured.
    assert main(["calibrate", "--device", "pocl:0", "--minutes", "3", "--name", "here", "--json"]) == 0
