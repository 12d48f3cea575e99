"""Models that are replaced are read again; what cannot be read leaves what was there."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

import uvicorn

from crosscast.data.corun import write_profile
from crosscast.forecasting import read_profiles
from crosscast.prediction.store import CARD
from crosscast.service import server
from crosscast.service.app import application
from crosscast.service.models import Served
from support.corun_models import constant, made_jobs
from support.csv_tables import write_csv
from support.models import kept_chooser
from support.refusals import refusal
from support.service import InProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    constant(tmp_path / "mixes", 1.25)
    return tmp_path / "mixes"


def test_a_new_model_takes_the_place_of_the_old_and_nothing_happens_while_nothing_changes(
    folder: Path,
) -> None:
    for job, name in zip(made_jobs(2), "ab", strict=True):
        path = folder.with_name(f"{name}.json")
        write_profile(replace(job, application=name, time_s=2.0), {"device": "cpu", "type": "cpu"}, path)
    served = Served([str(folder)], [str(folder.with_name("a.json")), str(folder.with_name("b.json"))])
    state, service = served.state, InProcess(application(served, lambda: ()))
    asked = {"jobs": [each["name"] for each in service.ask("/v1/profiles").json["isolated_runs"]]}
    assert not served.refresh()
    assert served.state is state
    for slowdown in (1.25, 1.5):
        constant(folder, slowdown)
        served.refresh()
        answer = service.ask("/v1/colocate", asked).json
        assert answer["shared"][0]["jobs"][0]["slowdown"]["value"] == slowdown
    # Requests that have begun keep what they began with.
    assert state.models["mixes"].trained.predictor.means[0, 0] == 1.25


@pytest.mark.parametrize("damage", ["card", "arrays", "gone", "question"])
def test_a_broken_model_leaves_the_old_one_and_health_says_why(folder: Path, damage: str) -> None:
    served = Served([str(folder)], [])
    service = InProcess(application(served, lambda: ()))
    if damage == "card":
        (folder / CARD).write_text("{")
    elif damage == "arrays":
        next(folder.glob("arrays-*.npz")).write_bytes(b"PK")
        (folder / CARD).touch()
    else:
        (folder / CARD).unlink()
    if damage == "question":
        kept_chooser(folder)
    assert served.refresh()
    assert served.state.models["mixes"].trained.predictor.means[0, 0] == 1.25
    health = service.ask("/health")
    assert health.code == 200
    assert health.json["models"] == {"mixes": "an earlier one"}
    assert "mixes" in health.json["refused"]["mixes"]
    assert str(folder.parent) not in health.body.decode()
    assert 'crosscast_model_refused{model="mixes"} 1.0' in service.ask("/metrics").body.decode()
    # It is not tried again before it changes again.
    assert not served.refresh()
    for path in folder.iterdir():
        path.unlink()
    constant(folder, 1.75)
    assert served.refresh()
    assert served.state.models["mixes"].trained.predictor.means[0, 0] == 1.75
    assert service.ask("/health").json["refused"] == {}


def test_profiles_that_cannot_be_read_again_leave_the_old_ones(tmp_path: Path) -> None:
    profiles, _ = read_profiles(Path("bundled"))
    path = tmp_path / "profiles.csv"
    write_csv([each for each in profiles if (each.application, each.size) == ("crc", "tiny")], path)
    served = Served(["opencl-15-devices"], [str(path)])
    assert list(served.state.catalogue.profiles) == ["crc/tiny"]
    path.write_text("nonsense")
    served.refresh(everything=True)
    assert list(served.state.catalogue.profiles) == ["crc/tiny"]
    refused = InProcess(application(served, lambda: ())).ask("/health").json["refused"]["profiles"]
    assert "profiles.csv" in refused
    assert str(tmp_path) not in refused


def test_what_cannot_be_served_is_said_at_the_start(folder: Path, tmp_path: Path) -> None:
    constant(tmp_path / "other" / "mixes", 1.25)
    own, runs = str(folder), tmp_path / "runs.csv"
    for models, samples, said in (
        ([], [], "expected at least one, found none"),
        ([own, str(tmp_path / "other" / "mixes")], [], "two mixes"),
        ([str(tmp_path / "none")], [], "none"),
        (["opencl-15-devices-relative"], [], "expected a model of times, configurations or co-runs"),
        ([own], [str(tmp_path / "none.csv")], "none.csv: cannot read the samples (no such file)"),
        ([own], [str(runs)], "--samples: expected a model that chooses configurations among"),
    ):
        runs.touch()
        assert said in refusal(Served, models, [], samples)


def test_an_error_that_nobody_expects_is_logged_and_files_are_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read_again = asyncio.Event()

    def refresh(_: bool) -> None:
        if not caplog.records:
            raise ZeroDivisionError("odd numbers")
        loop.call_soon_threadsafe(read_again.set)

    async def served() -> None:
        with server._Server(uvicorn.Config("none"), one, None).capture_signals():
            await asyncio.wait_for(read_again.wait(), 20)

    one = Served([str(folder)], [])
    monkeypatch.setattr(one, "refresh", refresh)
    monkeypatch.setattr(server, "_LOOKS_S", 0.01)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        runner.run(served())
    assert "odd numbers" in caplog.text
