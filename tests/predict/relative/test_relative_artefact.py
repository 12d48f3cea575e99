"""Artefacts of models of relative vectors: what comes back, what is refused, and that bytes stay the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.errors import InputError
from crosscast.predict.artefact import CARD
from crosscast.predict.relative.artefact import (
    TrainedRelativeModel,
    load_relative_model,
    relative_kinds,
    relative_predictions_of,
    save_relative_model,
)
from crosscast.predict.relative.data import NO_SOURCE, Observations
from crosscast.predict.relative.intervals import HeldOut
from crosscast.predict.relative.models import MODELS, models_named
from crosscast.predict.relative.nichols2024 import FittedVector
from crosscast.predict.store import read
from support.models import arrays_path, rewrite_card
from support.vectors import COUNTERS, DEVICES, kept_relative, made_vectors, trained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept_relative(tmp_path / "rpv")


def runs() -> Observations:
    return made_vectors().observations


def refusal(folder: Path) -> str:
    """The one sentence with which a model is refused, when it is loaded or first used."""
    with pytest.raises(InputError) as caught:
        load_relative_model(folder).predict(runs())
    text = str(caught.value)
    assert "\n" not in text
    assert str(folder) in text
    return text


@pytest.mark.parametrize("name", MODELS)
def test_every_model_predicts_as_before_to_the_last_bit(name: str, tmp_path: Path) -> None:
    found = trained()
    predictor = models_named([name])[0].fit(made_vectors(), 0)
    save_relative_model(predictor, found.held_out, tmp_path / "rpv", found.card)
    model = load_relative_model(tmp_path / "rpv")
    np.testing.assert_array_equal(model.predict(runs()), predictor.predict(runs()))
    assert model.card == found.card
    assert model.devices == DEVICES
    np.testing.assert_array_equal(model.held_out.log_error, found.held_out.log_error)


def test_a_model_is_found_by_its_card(folder: Path, tmp_path: Path) -> None:
    assert isinstance(crosscast.load_model(folder), TrainedRelativeModel)
    with pytest.raises(InputError, match="expected a model trained by 'crosscast train time'"):
        read(folder, "time")


def test_the_card_says_the_direction_and_what_the_model_knows(folder: Path) -> None:
    card = json.loads((folder / CARD).read_text())
    assert (
        card["direction"] == "time on a device over the time on the slowest device, in (0, 1]: less is better"
    )
    assert (card["target"], card["devices"]) == ("relative", list(DEVICES))
    assert (card["sources"], card["counters"]) == (["cpu", "fast"], list(COUNTERS))
    assert card["training"]["applications"] == 12
    assert {"mae", "same_order", "regret"} <= set(card["errors"]["results"][0])


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = kept_relative(tmp_path / "one"), kept_relative(tmp_path / "other")
    assert (one / CARD).read_bytes() == (other / CARD).read_bytes()
    assert arrays_path(one).read_bytes() == arrays_path(other).read_bytes()


def test_forecasting_needs_neither_scikit_learn_nor_xgboost_nor_pyarrow(tmp_path: Path) -> None:
    predictor = models_named(["published-xgboost"])[0].fit(made_vectors(), 0)
    save_relative_model(predictor, trained().held_out, tmp_path / "rpv", trained().card)
    script = (
        "import sys, numpy as np\n"
        "import crosscast\n"
        "from crosscast.predict.relative.data import Observations\n"
        f"model = crosscast.load_model({str(tmp_path / 'rpv')!r})\n"
        "one = ('x',)\n"
        "runs = Observations(one, one, one, one, ('cpu',), ('PAPI_TOT_INS', 'PAPI_BR_INS'),\n"
        "    np.array([[1e9, 1e8]]), (), np.empty((1, 0)), np.array([1.0]))\n"
        "assert model.forecast(runs, relative_to='gpu').centre.shape == (1, 3)\n"
        "bad = {'sklearn', 'xgboost', 'pyarrow', 'pandas', 'matplotlib'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda card: card.pop("model"), "model is missing"),
        (lambda card: card.pop("direction"), "direction is missing"),
        (lambda card: card.update(direction="speed-up"), "direction: expected 'time on a device over"),
        (lambda card: card.update(devices=["cpu"]), "devices: expected at least 2, and each once, found cpu"),
        (lambda card: card.update(devices=["cpu", "cpu"]), "devices: expected at least 2, and each once"),
        (lambda card: card.update(devices=["cpu", ""]), "devices: expected at least 2, and each once"),
        (lambda card: card.update(devices=["cpu", 3]), "devices: expected a list of texts"),
        (lambda card: card.update(sources=[]), "sources: expected at least 1, and each once, found none"),
        (lambda card: card.pop("counters"), "counters: expected at least 1"),
        (lambda card: card.pop("errors"), "errors is missing"),
        (lambda card: card.pop("kind"), "kind is missing"),
        (lambda card: card.update(kind="magic"), "kind: expected one of"),
        (lambda card: card.update(kind="physical"), "kind: expected one of"),
        (lambda card: card.pop("arrays"), "arrays is missing"),
        (
            lambda card: card.update(devices=["cpu", "gpu"]),
            "expected errors on the 2 devices of its card, found 3",
        ),
        (lambda card: card["arrays"]["contents"].pop("held_out.log_error"), "expected an array 'log_error'"),
    ],
)
def test_a_card_that_is_no_card_of_it_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    rewrite_card(folder, change)
    assert reason in refusal(folder)


def test_a_card_cut_off_or_changed_is_refused(folder: Path) -> None:
    whole = (folder / CARD).read_bytes()
    for end in range(0, len(whole) - 2, 997):
        (folder / CARD).write_bytes(whole[:end])
        refusal(folder)
    (folder / CARD).write_bytes(whole.replace(b'"gpu"', b'"cpx"', 1))
    assert "its checksum does not match" in refusal(folder)


def test_arrays_cut_off_are_refused(folder: Path) -> None:
    path = arrays_path(folder)
    whole = path.read_bytes()
    for end in range(0, len(whole), 499):
        path.write_bytes(whole[:end])
        refusal(folder)


def test_a_model_of_other_devices_than_its_errors_is_refused(tmp_path: Path) -> None:
    found = trained()
    two = FittedVector(np.array([0.5, 1.0]))
    save_relative_model(two, found.held_out, tmp_path / "rpv", found.card)
    assert "expected a model of 3 devices as its card says, found one that predicts" in refusal(
        tmp_path / "rpv"
    )


def test_a_model_of_an_unknown_kind_is_not_kept(tmp_path: Path) -> None:
    class Own:
        def state(self) -> dict[str, Any]:
            return {}

        def predict(self, observations: Observations) -> Any:
            return None

    with pytest.raises(InputError, match=r"of a kind that can be kept, found .*Own"):
        save_relative_model(Own(), trained().held_out, tmp_path / "rpv", trained().card)
    assert not (tmp_path / "rpv").exists()


def test_kinds_are_those_of_relative_models() -> None:
    assert relative_kinds()
    assert "physical" not in relative_kinds()


def test_training_again_replaces_the_whole_model(folder: Path) -> None:
    old = arrays_path(folder)
    found = trained()
    wider = HeldOut(
        2 * found.held_out.log_error,
        found.held_out.group,
        found.held_out.source,
        found.held_out.groups,
        found.held_out.sources,
    )
    save_relative_model(found.predictor, wider, folder, replace(found.card, seed=7))
    assert not old.exists()
    model = load_relative_model(folder)
    assert model.card.seed == 7
    np.testing.assert_array_equal(model.held_out.log_error, wider.log_error)


def one_run(**changed: Any) -> Observations:
    return replace(runs().rows(np.array([0])), **changed)


def test_a_forecast_of_many_runs_is_that_of_each(folder: Path) -> None:
    model = load_relative_model(folder)
    many = model.forecast(runs(), relative_to="cpu")
    for row in (0, 5, 70):
        one = model.forecast(runs().rows(np.array([row])), relative_to="cpu")
        for name in ("centre", "low", "high", "fastest", "order"):
            np.testing.assert_allclose(getattr(one, name)[0], getattr(many, name)[row], rtol=1e-12)
    assert many.warnings == ((),) * len(runs())


def test_counters_that_are_passed_over_are_named(folder: Path) -> None:
    seen = one_run(names=(*COUNTERS, "MYSTERY"), counters=np.append(runs().counters[:1], [[3.0]], axis=1))
    model = load_relative_model(folder)
    found = model.forecast(seen)
    assert found.warnings == (("counters that the model does not know are passed over: MYSTERY",),)
    np.testing.assert_array_equal(found.centre, model.forecast(one_run()).centre)


def test_a_profile_of_unknown_counters_alone_is_refused(folder: Path) -> None:
    seen = one_run(names=("one", "two"), counters=np.array([[1.0, 2.0]]))
    with pytest.raises(InputError) as caught:
        load_relative_model(folder).forecast(seen)
    assert str(caught.value) == (
        "app00 kernel0 size0: expected counters that the model knows, such as PAPI_TOT_INS, PAPI_BR_INS, "
        "PAPI_LD_INS, PAPI_L2_LDM, found one, two"
    )


def test_a_source_that_was_not_in_the_training_is_a_warning(folder: Path) -> None:
    model = load_relative_model(folder)
    ((warning,),) = model.forecast(one_run(source=("gpu",))).warnings
    assert warning.startswith("counted on gpu, and the model was trained on what was counted on cpu, fast")
    ((warning,),) = model.forecast(one_run(source=(NO_SOURCE,))).warnings
    assert warning == "the profile does not say on which device it was counted"


@pytest.mark.parametrize("name", ["published-mean", "published-linear"])
def test_counters_of_another_tool_are_known_if_the_model_knows_what_they_mean(
    name: str, tmp_path: Path
) -> None:
    """perf has other names for branches than PAPI; features know both, and a mean has none."""
    found = trained()
    predictor = models_named([name])[0].fit(made_vectors(), 0)
    save_relative_model(predictor, found.held_out, tmp_path / "rpv", found.card)
    model = load_relative_model(tmp_path / "rpv")
    seen = one_run(names=("instructions", "branches"), counters=runs().counters[:1, :2])
    if name == "published-mean":
        with pytest.raises(InputError, match="expected counters that the model knows"):
            model.forecast(seen)
    else:
        assert "branches" not in str(model.forecast(seen).warnings)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedRelativeModel:
    return load_relative_model(kept_relative(tmp_path_factory.mktemp("kept") / "rpv"))


@pytest.fixture
def runs_relative_prediction() -> Observations:
    """One counted on the CPU, one on the fast one."""
    return made_vectors().observations.rows(np.array([0, 1]))


def test_ranks_follow_the_times_and_the_first_is_recommended(
    model: TrainedRelativeModel, runs_relative_prediction: Observations
) -> None:
    for found in relative_predictions_of(model, runs_relative_prediction):
        by_time = sorted(found.devices, key=lambda each: each.relative)
        assert [each.rank for each in by_time] == [1, 2, 3]
        assert found.order == tuple(by_time)
        answer = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert answer["recommended"] == answer["order"][0] == by_time[0].device
        assert [each["device"] for each in answer["devices"]] == list(DEVICES)
        assert answer["devices"][0]["speed_up"] == pytest.approx(1 / found.devices[0].relative)


def test_a_time_on_the_source_gives_seconds_on_each_device(
    model: TrainedRelativeModel, runs_relative_prediction: Observations
) -> None:
    for row, found in enumerate(relative_predictions_of(model, runs_relative_prediction, relative_to="gpu")):
        assert (found.timed_on, found.timed_s) == (DEVICES[row], runs_relative_prediction.time_s[row])
        assert (
            found.devices[row].time_s == found.devices[row].time_low_s == runs_relative_prediction.time_s[row]
        )
        ratios = [each.time_s / found.devices[2].time_s for each in found.devices]  # type: ignore[operator]
        np.testing.assert_allclose(ratios, [each.relative for each in found.devices])
        for each in found.devices:
            assert each.time_low_s is not None and each.time_high_s is not None
            assert 0 < each.time_low_s <= (each.time_s or 0) <= each.time_high_s


def test_a_time_that_is_told_takes_the_place_of_the_runs_own(
    model: TrainedRelativeModel, runs_relative_prediction: Observations
) -> None:
    one, _ = relative_predictions_of(model, runs_relative_prediction, timed_on="gpu", time_s=2.0)
    assert (one.timed_on, one.timed_s, one.devices[2].time_s) == ("gpu", 2.0, 2.0)


def test_without_a_time_there_are_no_seconds(
    model: TrainedRelativeModel, runs_relative_prediction: Observations
) -> None:
    unknown = replace(runs_relative_prediction, time_s=np.full(2, np.nan))
    for found in relative_predictions_of(model, unknown):
        assert found.timed_s is None
        assert found.to_dict()["time"] is None
        assert all(each.time_s is None and each.time_low_s is None for each in found.devices)


def test_a_run_of_no_device_has_no_seconds_of_its_own(
    model: TrainedRelativeModel, runs_relative_prediction: Observations
) -> None:
    nowhere = replace(runs_relative_prediction, source=(NO_SOURCE, "elsewhere"))
    for found in relative_predictions_of(model, nowhere):
        assert found.timed_on is None
    assert relative_predictions_of(model, nowhere)[0].source is None


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e12])
def test_what_is_no_time_is_refused(
    model: TrainedRelativeModel, runs_relative_prediction: Observations, seconds: float
) -> None:
    with pytest.raises(InputError, match="time: expected from 1e-09 to 1e"):
        relative_predictions_of(model, runs_relative_prediction, time_s=seconds)


def test_a_time_on_an_unknown_device_is_refused(
    model: TrainedRelativeModel, runs_relative_prediction: Observations
) -> None:
    with pytest.raises(InputError, match="source: expected one of cpu, fast, gpu, found 'lassen'"):
        relative_predictions_of(model, runs_relative_prediction, timed_on="lassen", time_s=1.0)
    nowhere = replace(runs_relative_prediction, source=(NO_SOURCE,) * 2)
    with pytest.raises(InputError, match=r"time: expected the device that it was measured on.*found none"):
        relative_predictions_of(model, nowhere, time_s=1.0)
