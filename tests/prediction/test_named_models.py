"""Models that come with Crosscast, the user's own, and those of other packages, by name."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast.errors import InputError
from crosscast.prediction.named_models import (
    BUNDLED,
    first_fit,
    load_model,
    models_home,
    named_models,
    recipes,
)
from crosscast.prediction.store import CARD
from crosscast.prediction.trained import UnsuitedError
from support.commands import Command, Output
from support.refusals import refusals

NAMES = [each.name for each in named_models()]
FREE = {"MIT", "BSD-3-Clause", "CC-BY-4.0", "Apache-2.0", "LicenseRef-BabelStream"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return models_home()


@pytest.mark.parametrize("name", recipes())
def test_a_bundled_model_is_small_free_and_says_how_good_it_is(name: str) -> None:
    recipe, model = recipes()[name], load_model(name)
    assert set(recipe.licence.split(" AND ")) <= FREE
    assert recipe.citation and recipe.origin
    assert sum(file.stat().st_size for file in (BUNDLED / name).iterdir()) < 1_000_000
    assert model.card.errors
    assert load_model(name, recipe.question).card == model.card
    text = repr(model)
    assert text.count("\n") < 10 and max(map(len, text.splitlines())) <= 110 and "trained on" in text


def test_the_users_own_models_come_first(home: Path) -> None:
    load_model("opencl-15-devices").save(home / "mine")
    first, *others = named_models("time")
    assert (first.name, first.own, first.question) == ("mine", True, "time")
    assert not any(each.own for each in others)
    assert load_model("mine").card.model == load_model("opencl-15-devices").card.model


def test_a_damaged_model_of_the_user_is_passed_over_unless_it_is_named(
    home: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "mine").mkdir(parents=True)
    (home / "mine" / CARD).write_text("{")
    damaged = f"{home}/mine/card.json: the card is damaged"
    for words in (["models", "mine"], ["compare", "mine", "mine"], ["predict", "bundled", "--model", "mine"]):
        assert Command().refusal(capsys, *words).startswith(damaged)
    assert not caplog.messages
    for _ in range(2):
        assert [each.name for each in named_models()] == NAMES
    (warning,) = caplog.messages
    assert warning.startswith(damaged) and warning.endswith("; this model is passed over")
    words = [sys.executable, "-m", "crosscast", "models"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ran.stderr == f"crosscast: warning: {warning}\n"


def refusal_of(*errors: InputError) -> str:
    """The refusal of models of which each raises another error, in turn."""
    models = [(model, load_model(model.folder)) for model in named_models("relative")[: len(errors)]]
    left = iter(errors)

    def use(_: object) -> None:
        raise next(left)

    with pytest.raises(InputError) as caught:
        first_fit(models, use)
    return str(caught.value)


def test_what_a_suited_model_refuses_is_said_alone() -> None:
    suited = InputError.of(where="--kernel", expected="one of a", found="'b'")
    unsuited = UnsuitedError.of(where="a.csv", expected="a column x", found="y")
    assert refusal_of(unsuited, suited, unsuited) == "--kernel: expected one of a, found 'b'"
    assert refusal_of(unsuited, unsuited) == "a.csv: expected a column x, found y"
    assert "--model: none of the models" in refusal_of(unsuited, UnsuitedError("a.csv: another"))


def test_of_what_models_know_each_is_named() -> None:
    errors = [InputError.of(where="--source", expected=f"one of {name}", found="'c'") for name in "ab"]
    one, other = (each.name for each in named_models("relative")[:2])
    expected = f"expected one of a (model {one}), or one of b (model {other}), found 'c'"
    assert refusal_of(*errors) == f"--source: {expected}"


def test_it_is_said_why_a_model_before_is_not_taken() -> None:
    models = [(model, load_model(model.folder)) for model in named_models("relative")[:3]]
    errors = iter([InputError("arrays.npz: it is damaged"), UnsuitedError("a.csv: of another kind")])
    said: list[str] = []

    def use(trained: object) -> object:
        if error := next(errors, None):
            raise error
        return trained

    model, result = first_fit(models, use, said.append)
    assert model is result
    refused, _, taken = (each.name for each, _ in models)
    assert said[0] == f"crosscast: model {refused} does not fit: arrays.npz: it is damaged"
    assert said[1].startswith(f"crosscast: model {taken}: ")
    assert len(said) == 2


EXAMPLE = Path(__file__).parents[2] / "examples" / "time_model"
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
