"""Artefacts of models of configurations: what comes back, and what is refused."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.prediction.configuration.artefact import KINDS, TrainedConfigurationModel
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.models import MODELS, NearestKernels, model_named
from crosscast.prediction.named_models import load_model
from crosscast.prediction.store import CARD
from support.models import chooser_card, kept_chooser
from support.surfaces import made_surfaces


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept_chooser(tmp_path / "capmodel")


def test_the_card_says_configurations_samples_and_power_in_words(folder: Path) -> None:
    card = json.loads((folder / CARD).read_text())
    assert card["question"] == "configuration"
    assert card["samples"] == [
        {"device": "node", "settings": {"cpu_cap_w": 100.0, "gpu_cap_w": 250.0}},
        {"device": "node", "settings": {"cpu_cap_w": 60.0, "gpu_cap_w": 100.0}},
    ]
    assert len(card["configurations"]) == 12
    assert card["power"] == {"domain": None, "totals": {"node": [["cpu", "gpu"]]}}
    assert card["kind"] in KINDS


def test_a_model_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    card = chooser_card()
    nearest = NearestKernels().fit(made_surfaces(), card.numbers)
    with pytest.raises(InputError, match=r"expected one that can be kept \(.*\), found nearest"):
        card = msgspec.structs.replace(card, model="nearest")
        TrainedConfigurationModel(card, nearest).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_its_name_and_can_be_kept(name: str, tmp_path: Path) -> None:
    surfaces = made_surfaces(4, noise=0.01)
    model = model_named(name)
    assert model.name == name
    fitted = model.fit(surfaces, (11, 0))
    card = msgspec.structs.replace(chooser_card(), kind=getattr(fitted, "kind", ""))
    TrainedConfigurationModel(card, fitted).save(tmp_path / "model")
    observed = surfaces.observed(0, (11, 0))
    before, after = (each.forecast(observed) for each in (fitted, load_model(tmp_path / "model").predictor))
    np.testing.assert_array_equal(after.power.centre, before.power.centre)
    np.testing.assert_array_equal(after.time.quantile(0.95), before.time.quantile(0.95))


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"model: expected one of model, published, .*, found 'magic'"):
        model_named("magic")


def measured(number: int, row: int = 2) -> dict[str, float]:
    surfaces = made_surfaces()
    given = {"time_s": surfaces.time_s[row, number], "power_w": surfaces.power_w[row, number]}
    given |= {f"{name}_w": values[row, number] for name, values in surfaces.domains.items()}
    return given | {name: values[row, number] for name, values in surfaces.counters.items()}


def test_it_chooses_by_runs_that_are_named_by_their_configurations(folder: Path) -> None:
    model = load_model(folder)
    space = model.predictor.space
    runs = {space.configurations[number]: measured(number) for number in (0, 11)}
    forecast = model.predictor.forecast(made_surfaces().observed(2, (0, 11)))
    np.testing.assert_array_equal(model.predict(runs).time.centre, forecast.time.centre)
    choice = model.choose(runs, 250.0)
    assert choice == choice_of(forecast, space, 250.0)
    assert choice.recommended is not None
    assert len(choice.columns()["time_s"]) == len(choice.frontier)
    assert str(choice.recommended.configuration) in choice._repr_html_()
    assert model.choose(runs, 250.0, "energy").objective == "energy"
    assert model.choose(runs, 1.0).recommended is None


def test_runs_that_are_not_there_are_named(folder: Path) -> None:
    model = load_model(folder)
    highest = model.samples[0]
    with pytest.raises(InputError, match="expected a run at node: cpu cap 60 W, gpu cap 100 W, found none"):
        model.predict({highest: measured(11)})
    with pytest.raises(InputError, match=r"runs: node: .*: power_w: expected a number, found time_s"):
        model.predict({highest: {"time_s": 1.0}})
