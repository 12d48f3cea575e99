"""The service answers what the commands print, and refuses what is wrong with a code and a sentence.

So it does without a token, and beyond limits on the size, time and number of requests. Models that are
replaced are read again; what cannot be read leaves the earlier one.
"""

import asyncio
import csv
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

import uvicorn

from crosscast.cli import main
from crosscast.data.corun import write_profile
from crosscast.errors import EnvironmentFault
from crosscast.forecasting import read_profiles
from crosscast.prediction.store import CARD
from crosscast.service import app as app_module
from crosscast.service import server
from crosscast.service.app import Limits, application
from crosscast.service.models import Served
from crosscast.service.questions import Endpoint
from support.corun_models import constant, made_jobs
from support.csv_tables import write_csv
from support.examples import examples
from support.models import chooser_card, kept_chooser
from support.refusals import refusal, refusals
from support.service import OVER_TCP, InProcess
from support.surfaces import made_surfaces

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, profiles and runs."""
    home = tmp_path_factory.mktemp("site")
    kept_chooser(home / "caps")
    constant(home / "mixes", 1.25, error=0.05)
    (home / "jobs").mkdir()
    for place, job in enumerate(made_jobs(3)):
        run = replace(job, size=f"size{place}", time_s=float(place + 1))
        write_profile(run, {"device": "cpu", "type": "cpu"}, home / "jobs" / f"{place}.json")
    made = made_surfaces(noise=0.01)
    columns = {"time_s": made.time_s, "stalls": made.counters["stalls"]}
    columns |= {"cpu_w": made.domains["cpu"], "gpu_w": made.domains["gpu"]}
    rows = [
        {"application": "app1", **made.space.configurations[number].settings}
        | {name: table[3, number] for name, table in columns.items()}
        for number in chooser_card().numbers
    ]
    text = "\n".join(",".join(map(str, row)) for row in (rows[0], *(each.values() for each in rows)))
    (home / "runs.csv").write_text(text)
    return home


@pytest.fixture(scope="module")
def service(folder: Path) -> InProcess:
    models = ["opencl-15-devices", str(folder / "mixes"), str(folder / "caps")]
    served = Served(models, ["bundled", str(folder / "jobs")], [str(folder / "runs.csv")])
    return InProcess(application(served, lambda: ()))


def printed(capsys: Output, *words: object) -> Any:
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0
    return capsys.readouterr().out


def bytes_of(answer: Any) -> str:
    """The answer without what is said of the model, and of applications; numbers as they are written."""
    left_out = ("model", "applications")
    return json.dumps({name: value for name, value in answer.items() if name not in left_out})


def test_forecasts_are_those_of_the_command(capsys: Output, service: InProcess, tmp_path: Path) -> None:
    words = ("predict", "bundled", "--application", "srad", "--model", "opencl-15-devices")
    told = json.loads(printed(capsys, *words, "--level", "0.8"))["kernels"]
    found = service.ask("/v1/predict", {"profile": "srad/small", "level": 0.8}).json
    assert json.dumps(found["kernels"]) == json.dumps([each for each in told if each["size"] == "small"])
    path = tmp_path / "profile.json"
    path.write_text(printed(capsys, "characterize", "examples/vecadd.toml"))
    words = ("--model", "opencl-15-devices", "--probe", "gtx1080=0.0001", "--devices", "rtx4090,knl")
    told = printed(capsys, "predict", path, *words)
    asked = {"probes": {"gtx1080": 0.0001}, "devices": ["rtx4090", "knl"]}
    found = service.ask("/v1/predict", {"profiles": [json.loads(path.read_text())], **asked})
    assert bytes_of(found.json) == bytes_of(json.loads(told))


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ("--power-cap 250", {"power_cap_w": 250}),
        (
            "--power-cap 250 --objective power --max-slowdown 5%",
            {"power_cap_w": 250, "objective": "power", "max_slowdown": 0.05},
        ),
    ],
)
def test_choices_are_those_of_the_command(
    capsys: Output, service: InProcess, folder: Path, options: str, limits: dict[str, object]
) -> None:
    words = ("choose", "configuration", folder / "runs.csv", "--model", folder / "caps")
    told = json.loads(printed(capsys, *words, *options.split()))
    assert told["recommended" if "recommended" in told else "configuration"]
    with (folder / "runs.csv").open() as file:
        runs = [dict(row) for row in csv.DictReader(file)]
    for asked in ({"runs": runs}, {"profile": "app1"}):
        found = service.ask("/v1/choose", {**limits, **asked}).json
        assert bytes_of(found) == bytes_of(told)


def test_plans_are_those_of_the_command(capsys: Output, service: InProcess, folder: Path) -> None:
    files = sorted((folder / "jobs").iterdir())
    words = ("--model", folder / "mixes", "--max-slowdown", 1.5)
    told = json.loads(printed(capsys, "colocate", *files, *words))
    runs = [json.loads(file.read_text()) for file in files]
    for jobs in (runs, [f"{each['application']}/{each['size']}" for each in runs]):
        found = service.ask("/v1/colocate", {"jobs": jobs, "max_slowdown": 1.5}).json
        for plan in (found, told):
            for group in (*plan["shared"], {"jobs": plan["alone"]}):
                for each in group["jobs"]:
                    each.pop("job", None)
        assert bytes_of(found) == bytes_of(told)


def test_a_job_is_all_its_kernels_as_often_as_they_run(service: InProcess) -> None:
    asked = {"profile": "srad/small", "devices": ["gtx1080", "knl"]}
    kernels = service.ask("/v1/predict", asked).json["kernels"]
    job = service.ask("/v1/predict", {**asked, "repeat": 1000}).json["job"]
    for place, device in enumerate(job["devices"]):
        time_s, low_s, high_s = (
            sum(1000 * each["invocations"] * each["devices"][place][name] for each in kernels)
            for name in ("time_s", "low_s", "high_s")
        )
        assert device["time_s"] == pytest.approx(time_s)
        # Errors of the kernels hang together in part, so that the limits do not add up.
        assert low_s < device["low_s"] < device["time_s"] < device["high_s"] < high_s
    assert job["recommended"] == "gtx1080"


def test_names_are_listed(service: InProcess) -> None:
    found = service.ask("/v1/profiles").json
    assert "srad/small" in {each["name"] for each in found["profiles"]}
    assert len(found["isolated_runs"]) == 3
    assert {each["name"] for each in found["samples"]} == {"app1"}
    models = service.ask("/v1/models").json["models"]
    assert {each["question"] for each in models} == {"time", "configuration", "corun"}


@refusals("path asked code said")
def test_wrong_requests_get_a_code_and_a_sentence(
    service: InProcess, path: str, asked: object, code: int, said: str
) -> None:
    found = service.ask(path, asked)
    assert (found.code, said in found.error) == (code, True), found.body


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=8), each, max_size=3),
    max_leaves=8,
)
FIELDS = "profile profiles model devices probes level repeat power_cap_w runs jobs".split()


@given(st.dictionaries(st.sampled_from(FIELDS), values), st.sampled_from(["predict", "choose", "colocate"]))
@examples(150)
def test_no_request_is_an_error_of_the_service_or_tells_of_the_host(
    service: InProcess, folder: Path, asked: dict[str, Any], name: str
) -> None:
    found = service.ask(f"/v1/{name}", asked)
    assert found.code in (200, 400, 404, 422)
    assert str(folder).encode() not in found.body


def test_answers_tell_nothing_of_the_host(service: InProcess, folder: Path) -> None:
    for asked in ({"profile": "app1", "power_cap_w": 250}, "/v1/models", "/health", "/openapi.json"):
        found = service.ask(asked) if isinstance(asked, str) else service.ask("/v1/choose", asked)
        assert found.code == 200
        assert str(folder.parent).encode() not in found.body
        assert b"libraries" not in found.body
        assert "server" not in found.headers


def test_the_documentation_has_an_example_of_each_question_that_works(service: InProcess) -> None:
    api = service.ask("/openapi.json").json
    bundled = Served(["opencl-15-devices", "opencl-mixes", "multicore-boards"], ["bundled"])
    asked = InProcess(application(bundled, lambda: ()))
    for path in ("/v1/predict", "/v1/choose", "/v1/colocate"):
        told = api["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert told["example"].keys() <= told["schema"]["properties"].keys()
        assert asked.ask(path, told["example"]).code == 200


def test_metrics_count_requests_and_tell_the_errors_of_models(service: InProcess) -> None:
    service.ask("/v1/predict", {"profile": "bfs/tiny"})
    service.ask("/v1/elsewhere/" + "x" * 50, {})
    told = service.ask("/metrics").body.decode()
    assert 'crosscast_requests_total{code="200",path="/v1/predict"}' in told
    assert 'crosscast_model_error{model="opencl-15-devices",score="median_ape"}' in told
    assert 'path="other"' in told
    assert "xxx" not in told


def test_no_search_for_groups_takes_the_time_of_others(service: InProcess) -> None:
    found = service.ask("/v1/colocate", {"jobs": ["a/b"] * 101, "group_size": 3})
    assert found.code == 422
    assert "group_size: expected 2 for more than 100 jobs" in found.error


TOKEN = "0123456789abcdef"
ASKED = {"profile": "bfs/tiny"}


@pytest.fixture(scope="module")
def served() -> Served:
    return Served(["opencl-15-devices"], ["bundled"])


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}"]
)
@pytest.mark.parametrize("server", [OVER_TCP, None])
def test_without_a_good_token_a_server_that_is_no_file_refuses(
    served: Served, header: str | None, server: Any
) -> None:
    headers = {} if header is None else {"authorization": header}
    service = InProcess(application(served, lambda: (b"another token, too", TOKEN.encode())), server)
    for path in ("/v1/predict", "/v1/models", "/metrics", "/openapi.json", "/nothing"):
        found = service.ask(path, ASKED, headers=headers)
        assert (found.code, found.headers["www-authenticate"]) == (401, "Bearer")
    # A stranger learns only that it is ready.
    assert service.ask("/health").json == {"ready": True}


@pytest.mark.parametrize("declared", ["100000000", "9" * 30, "-1", "x"])
def test_a_large_request_is_refused_before_it_is_read(served: Served, declared: str) -> None:
    found = InProcess(application(served, lambda: ())).ask(
        "/v1/predict", parts=[b"{"], headers={"content-length": declared}
    )
    assert (found.code, found.headers["connection"]) == (413, "close")
    assert "at most 1,048,576 bytes" in found.error


def test_a_large_request_of_undeclared_size_and_one_that_drips_are_refused(served: Served) -> None:
    service = InProcess(application(served, lambda: (), Limits(body_bytes=1000, body_s=0.05)))
    assert service.ask("/v1/predict", parts=[b"x" * 400] * 3).code == 413
    found = service.ask("/v1/predict", parts=[b"{"] * 10, gap_s=0.02)
    assert (found.code, found.headers["connection"]) == (408, "close")


def test_answers_that_take_too_long_are_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slow(*_: object) -> tuple[int, bytes]:
        go_on.wait(20)
        return 200, b"{}"

    monkeypatch.setattr(app_module, "_answered", slow)
    service = InProcess(application(served, lambda: (), Limits(answer_s=0.05, requests=2)))
    try:
        assert [service.ask("/v1/predict", {"level": n}).code for n in range(3)] == [504, 504, 503]
        assert 'crosscast_refusals_total{why="time"} 2.0' in service.ask("/metrics").body.decode()
    finally:
        go_on.set()


def test_a_request_too_many_is_to_come_again(served: Served) -> None:
    found = InProcess(application(served, lambda: (), Limits(requests=0))).ask("/v1/predict", ASKED)
    assert (found.code, found.headers["retry-after"]) == (503, "1")


def test_an_error_of_ours_does_not_show_its_text(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> object:
        raise EnvironmentFault("no space in /var/secret")

    monkeypatch.setattr(Endpoint, "answered", fails)
    found = InProcess(application(served, lambda: ())).ask("/v1/predict", ASKED)
    assert found.code == 500
    assert "secret" not in found.error


@pytest.fixture
def mixes(tmp_path: Path) -> Path:
    constant(tmp_path / "mixes", 1.25)
    return tmp_path / "mixes"


def test_a_new_model_takes_the_place_of_the_old_and_nothing_happens_while_nothing_changes(
    mixes: Path,
) -> None:
    for job, name in zip(made_jobs(2), "ab", strict=True):
        path = mixes.with_name(f"{name}.json")
        write_profile(replace(job, application=name, time_s=2.0), {"device": "cpu", "type": "cpu"}, path)
    served = Served([str(mixes)], [str(mixes.with_name("a.json")), str(mixes.with_name("b.json"))])
    state, service = served.state, InProcess(application(served, lambda: ()))
    asked = {"jobs": [each["name"] for each in service.ask("/v1/profiles").json["isolated_runs"]]}
    assert not served.refresh()
    assert served.state is state
    for slowdown in (1.25, 1.5):
        constant(mixes, slowdown)
        served.refresh()
        answer = service.ask("/v1/colocate", asked).json
        assert answer["shared"][0]["jobs"][0]["slowdown"]["value"] == slowdown
    # Requests that have begun keep what they began with.
    assert state.models["mixes"].trained.predictor.means[0, 0] == 1.25


@pytest.mark.parametrize("damage", ["card", "arrays", "gone", "question"])
def test_a_broken_model_leaves_the_old_one_and_health_says_why(mixes: Path, damage: str) -> None:
    served = Served([str(mixes)], [])
    service = InProcess(application(served, lambda: ()))
    if damage == "card":
        (mixes / CARD).write_text("{")
    elif damage == "arrays":
        next(mixes.glob("arrays-*.npz")).write_bytes(b"PK")
        (mixes / CARD).touch()
    else:
        (mixes / CARD).unlink()
    if damage == "question":
        kept_chooser(mixes)
    assert served.refresh()
    assert served.state.models["mixes"].trained.predictor.means[0, 0] == 1.25
    health = service.ask("/health")
    assert health.code == 200
    assert health.json["models"] == {"mixes": "an earlier one"}
    assert "mixes" in health.json["refused"]["mixes"]
    assert str(mixes.parent) not in health.body.decode()
    assert 'crosscast_model_refused{model="mixes"} 1.0' in service.ask("/metrics").body.decode()
    # It is not tried again before it changes again.
    assert not served.refresh()
    for path in mixes.iterdir():
        path.unlink()
    constant(mixes, 1.75)
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


def test_what_cannot_be_served_is_said_at_the_start(mixes: Path, tmp_path: Path) -> None:
    constant(tmp_path / "other" / "mixes", 1.25)
    own, runs = str(mixes), tmp_path / "runs.csv"
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
    mixes: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read_again = asyncio.Event()

    def refresh(_: bool) -> None:
        if not caplog.records:
            raise ZeroDivisionError("odd numbers")
        loop.call_soon_threadsafe(read_again.set)

    async def watched() -> None:
        with server._Server(uvicorn.Config("none"), one, None).capture_signals():
            await asyncio.wait_for(read_again.wait(), 20)

    one = Served([str(mixes)], [])
    monkeypatch.setattr(one, "refresh", refresh)
    monkeypatch.setattr(server, "_LOOKS_S", 0.01)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        runner.run(watched())
    assert "odd numbers" in caplog.text
