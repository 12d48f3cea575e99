"""A device of this machine joins the bundled model: what is measured, what is fitted, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import calibration
from crosscast.cli import main
from crosscast.errors import EnvironmentFault, InputError
from crosscast.forecasting import models_for
from crosscast.measure import campaign
from crosscast.prediction.named_models import named_models
from crosscast.prediction.time.data import Grid, grid_of
from crosscast.prediction.time.gaussian import Gaussian, held_out_on
from crosscast.prediction.time.models import DeviceMean, model_named

EXAMPLE = Path(__file__).parents[1] / "examples" / "vecadd.toml"
TRIVIAL = Gaussian(DeviceMean())
DEVICE: Any = SimpleNamespace(id="fake:0", key="fake")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "crosscast"


@pytest.fixture(scope="module")
def measured() -> Grid:
    """What was measured on two cores of a server CPU, as if it had been measured here."""
    grid = grid_of(crosscast.bundled_dataset()).on([1])
    small = grid.take(np.array([size == "small" for size in grid.profiles.size]))
    return replace(small, devices=(replace(small.devices[0], key="mine"),))


def test_any_beginning_of_the_order_has_as_many_applications_as_it_can() -> None:
    order = calibration.order()
    assert len(set(order)) == len(order) == 42
    for start in (0, 14, 28):
        assert len({name for name, _ in order[start : start + 14]}) == 14
    assert [size for _, size in order[::14]] == list(calibration.SIZES)


def test_a_device_joins_the_devices_of_the_model(measured: Grid) -> None:
    trained, held_out = calibration.fit(measured, model_named("combined"))
    base = crosscast.load_model(calibration.BASE)
    assert [device.key for device in trained.devices] == [*(each.key for each in base.devices), "mine"]
    assert trained.card.training["calibrated"]["kernels_at_a_size"] == len(measured.profiles)
    assert trained.card.training["licence"] == "MIT"
    # Better than a factor of two on applications that the model did not see, as the price of 44 times.
    assert held_out.median_error < 1
    assert held_out.coverage > 0.7
    before, after = (each.predict(crosscast.characterize(launch())).centre for each in (base, trained))
    assert np.allclose(before[0], after[0, :-1], rtol=0.5)


def launch() -> crosscast.Launch:
    return crosscast.read_launches(EXAMPLE)[0]


def test_held_out_errors_are_those_of_the_device_alone(measured: Grid) -> None:
    both = calibration.joined(measured, measured)
    errors = np.where(
        np.isfinite(both.log_time), np.random.default_rng(3).normal(size=both.log_time.shape), np.nan
    )
    found = held_out_on(errors, both, 1, 0.9)
    own = errors[len(measured.profiles) :, 1]
    assert found.rmse_log == pytest.approx(np.sqrt(np.mean(own**2)))
    assert found.median_error == pytest.approx(np.median(np.abs(np.exp(-own) - 1)))
    assert found.coverage_worst <= found.coverage <= 1
    # Ten times the errors on one application are outside of what the others make of them.
    errors[len(measured.profiles) :, 1][measured.profiles.groups("application") == 0] = 30.0
    assert held_out_on(errors, both, 1, 0.9).coverage_worst == 0


def test_joined_grids_share_no_time(measured: Grid) -> None:
    both = calibration.joined(measured, measured)
    n = len(measured.profiles)
    assert both.log_time.shape == (2 * n, 2)
    assert np.isnan(both.log_time[:n, 1]).all()
    assert np.isnan(both.log_time[n:, 0]).all()


def test_the_training_data_are_those_of_the_bundled_model() -> None:
    grid, card = calibration._training(), crosscast.load_model(calibration.BASE).card
    assert int(np.isfinite(grid.log_time).sum()) == card.training["cells"]
    assert grid.applications == tuple(card.training["names"])
    assert np.exp(np.nanmin(grid.log_time)) == pytest.approx(card.time_s.low)


@pytest.mark.parametrize("name", ["", "a b", "../x", "é", "gtx1080", "opencl-15-devices"])
def test_names_that_cannot_be_a_devices(name: str) -> None:
    with pytest.raises(InputError, match="name: expected"):
        calibration.check_name(name)


def test_a_model_that_was_not_calibrated_is_not_replaced(home: Path, measured: Grid) -> None:
    calibration.fit(measured, TRIVIAL)[0].save(home / "models" / "mine")
    with pytest.raises(InputError, match="not taken"):
        calibration.check_name("mine")


def test_a_calibration_answers_only_where_it_or_its_device_is_named(home: Path, measured: Grid) -> None:
    calibration.fit(measured, TRIVIAL)[0].save(home / "models" / "mine")

    def names(*devices: str) -> list[str]:
        return [named.name for named, _ in models_for(None, "time", devices) if named]

    assert names()[0] == names("gtx1080")[0] == "launch-times"
    assert "mine" not in names("gtx1080")
    assert names("gtx1080", "mine")[:2] == ["mine", "launch-times"]
    assert [named for named, _ in models_for("mine", "time")] == [None]


def test_a_device_that_is_gone_ends_the_calibration(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> campaign.Outcome:
        task = campaign.Task("measure", "measure bfs small on fake:0", 1.0, False, lambda say: ())
        return campaign.Outcome(failures=[campaign.Failure(task, "the device is lost")])

    monkeypatch.setattr(campaign, "run", gone)
    with pytest.raises(EnvironmentFault, match=r"fake:0: 3 measurements failed .* the device is lost"):
        calibration.calibrate(DEVICE, "mine", seconds=60)
    assert not (home / "models").exists()


def test_too_little_time_is_said(home: Path) -> None:
    with pytest.raises(InputError, match="minutes: expected time for 6 applications"):
        calibration.calibrate(DEVICE, "mine", seconds=1e-9)
    assert not (home / "models").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "nothing:7"], "nothing:7"),
        (["--device", "pocl:0", "--minutes", "0"], "--minutes"),
        (["--device", "pocl:0", "--minutes", "nan"], "--minutes"),
        (["--device", "pocl:0", "--name", "gtx1080"], "name: expected"),
    ],
)
def test_wrong_words_are_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_data_folder_that_cannot_be_written_is_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    assert main(["calibrate", "--device", "pocl:0"]) == 2
    assert "cannot write into the folder" in capsys.readouterr().err


def test_this_machine_joins_and_is_predicted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six applications at tiny, by the command, as a person would."""
    names = ("bfs", "csr", "gem", "kmeans", "lud", "nw")
    monkeypatch.setattr(calibration, "order", lambda: tuple((name, "tiny") for name in names))
    assert main(["calibrate", "--device", "pocl:0", "--minutes", "3", "--name", "here"]) == 0
    said = capsys.readouterr()
    assert "on held-out applications median error" in said.out
    assert "for 180 s" in said.err
    (own,) = [each for each in named_models("time") if each.own]
    assert (own.name, own.licence) == ("here", "MIT")
    forecast = crosscast.predict(EXAMPLE, devices=["here", "gtx1080", "rtx4090"])
    assert forecast.devices == ("here", "gtx1080", "rtx4090")
    # A second calibration keeps what was measured.
    assert main(["calibrate", "--device", "pocl:0", "--minutes", "3", "--name", "here", "--json"]) == 0
