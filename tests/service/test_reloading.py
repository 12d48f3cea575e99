"""Models that are replaced are read again; what cannot be read leaves what was there."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

import uvicorn

from crosscast.errors import InputError
from crosscast.prediction.store import CARD
from crosscast.service import server
from crosscast.service.app import application
from crosscast.service.models import Served
from support.corun_models import constant
from support.csv_tables import write_csv
from support.service import InProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    constant(tmp_path / "mixes", 1.25)
    return tmp_path / "mixes"


def test_nothing_happens_while_nothing_changes(folder: Path) -> None:
    served = Served([str(folder)], [])
    state = served.state
    assert not served.refresh()
    assert served.state is state


def test_a_new_model_takes_the_place_of_the_old(folder: Path) -> None:
    served = Served([str(folder)], [])
    before = served.state.models["mixes"]
    constant(folder, 1.5)
    assert served.refresh()
    after = served.state.models["mixes"]
    assert after.trained.predictor.means[0, 0] == 1.5
    # Requests that have begun keep what they began with.
    assert before.trained.predictor.means[0, 0] == 1.25


@pytest.mark.parametrize("damage", ["card", "arrays", "gone", "question"])
def test_a_broken_model_leaves_the_old_one_and_health_says_why(folder: Path, damage: str) -> None:
    served = Served([str(folder)], [])
    service = InProcess(application(served, lambda: ()))
    if damage == "card":
        (folder / CARD).write_text("{")
    elif damage == "gone":
        (folder / CARD).unlink()
    elif damage == "question":
        from support.models import kept_chooser

        (folder / CARD).unlink()
        kept_chooser(folder)
    else:
        next(folder.glob("arrays-*.npz")).write_bytes(b"PK")
        (folder / CARD).touch()
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
    from crosscast.forecasting.kernels import read_profiles

    profiles, _ = read_profiles(Path("bundled"))
    own = [each for each in profiles if each.application == "crc" and each.size == "tiny"]
    path = tmp_path / "profiles.csv"
    write_csv(own, path)
    served = Served(["opencl-15-devices"], [str(path)])
    assert list(served.state.catalogue.profiles) == ["crc/tiny"]
    path.write_text("nonsense")
    served.refresh(everything=True)
    assert list(served.state.catalogue.profiles) == ["crc/tiny"]
    refused = InProcess(application(served, lambda: ())).ask("/health").json["refused"]
    assert "profiles.csv" in refused["profiles"]
    assert str(tmp_path) not in refused["profiles"]


def test_answers_after_a_reload_are_those_of_the_new_model(folder: Path) -> None:
    from dataclasses import replace

    from crosscast.data.corun import write_profile
    from support.corun_models import made_jobs

    files = folder.parent / "jobs"
    files.mkdir()
    for place, job in enumerate(made_jobs(2)):
        run = replace(job, application=f"app{place}", time_s=2.0)
        write_profile(run, {"device": "cpu", "type": "cpu"}, files / f"{place}.json")
    served = Served([str(folder)], [str(files)])
    service = InProcess(application(served, lambda: ()))
    names = [each["name"] for each in service.ask("/v1/profiles").json["isolated_runs"]]
    first = service.ask("/v1/colocate", {"jobs": names}).json
    constant(folder, 1.5)
    served.refresh()
    second = service.ask("/v1/colocate", {"jobs": names}).json
    assert first["shared"][0]["jobs"][0]["slowdown"]["value"] == 1.25
    assert second["shared"][0]["jobs"][0]["slowdown"]["value"] == 1.5


def test_what_cannot_be_served_is_said_at_the_start(folder: Path, tmp_path: Path) -> None:
    constant(tmp_path / "other" / "mixes", 1.25)
    for models, said in (
        ([], "expected at least one, found none"),
        ([str(folder), str(tmp_path / "other" / "mixes")], "two mixes"),
        ([str(tmp_path / "none")], "none"),
        (["opencl-15-devices-relative"], "expected a model of times, configurations or co-runs"),
    ):
        with pytest.raises(InputError, match=said):
            Served(models, [])
    runs = tmp_path / "runs.csv"
    with pytest.raises(InputError, match=r"runs.csv: cannot read the samples \(no such file\)"):
        Served([str(folder)], [], [str(runs)])
    runs.touch()
    with pytest.raises(InputError, match="--samples: expected a model that chooses configurations among"):
        Served([str(folder)], [], [str(runs)])


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
