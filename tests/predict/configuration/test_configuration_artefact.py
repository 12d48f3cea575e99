"""Artefacts of models of configurations: what comes back, and what is refused."""

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
from crosscast.predict.configuration.artefact import (
    CONFIGURATION_KINDS,
    TrainedConfigurationModel,
    load_configuration_model,
    save_configuration_model,
)
from crosscast.predict.configuration.baselines import NearestKernels
from crosscast.predict.configuration.models import CONFIGURATION_MODELS, configuration_model_named
from crosscast.predict.time import artefact as times
from support.models import fitted_chooser, kept, kept_chooser, rewrite_card
from support.surfaces import made_surfaces


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept_chooser(tmp_path / "capmodel")


def refusal(folder: Path) -> str:
    """The one sentence with which a model is refused, when it is loaded or first used."""
    with pytest.raises(InputError) as caught:
        _ = load_configuration_model(folder).predictor
    text = str(caught.value)
    assert "\n" not in text
    assert str(folder) in text
    return text


def test_it_forecasts_as_before_to_the_last_bit(folder: Path) -> None:
    predictor, card = fitted_chooser()
    model = load_configuration_model(folder)
    assert model.card == card
    assert (model.space, model.samples) == (predictor.space, predictor.samples)
    surfaces = made_surfaces()
    for row in range(len(surfaces.kernels)):
        observed = surfaces.observed(row, predictor.samples)
        before, after = predictor.forecast(observed), model.forecast(observed)
        np.testing.assert_array_equal(after.time.centre, before.time.centre)
        np.testing.assert_array_equal(after.power.centre, before.power.centre)


def test_the_card_says_configurations_samples_and_power_in_words(folder: Path) -> None:
    card = json.loads((folder / CARD).read_text())
    assert card["target"] == "configuration"
    assert card["samples"] == [
        {"device": "node", "settings": {"cpu_cap_w": 100.0, "gpu_cap_w": 250.0}},
        {"device": "node", "settings": {"cpu_cap_w": 60.0, "gpu_cap_w": 100.0}},
    ]
    assert len(card["configurations"]) == 12
    assert card["power"] == {"domain": None, "totals": {"node": [["cpu", "gpu"]]}}
    assert card["kind"] in CONFIGURATION_KINDS


def test_the_same_model_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    other = kept_chooser(tmp_path / "other")
    for one, two in zip(sorted(folder.iterdir()), sorted(other.iterdir()), strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_each_kind_of_artefact_is_loaded_as_what_it_is(folder: Path, tmp_path: Path) -> None:
    of_times = kept(tmp_path / "times")
    assert isinstance(crosscast.load_model(folder), TrainedConfigurationModel)
    assert isinstance(crosscast.load_model(of_times), times.TrainedModel)
    with pytest.raises(InputError, match=r"found one with --target time, which is for crosscast predict$"):
        load_configuration_model(of_times)
    with pytest.raises(InputError, match=r"--target configuration, which is for crosscast choose$"):
        times.load_model(folder)


def test_an_unknown_target_is_refused(folder: Path) -> None:
    rewrite_card(folder, lambda card: card.update(target="energy"))
    assert "target: expected one of time, configuration, relative, corun, found 'energy'" in refusal(folder)


def test_a_model_takes_the_place_of_one_of_another_kind(tmp_path: Path) -> None:
    kept_chooser(kept(tmp_path / "model"))
    assert isinstance(crosscast.load_model(tmp_path / "model"), TrainedConfigurationModel)
    assert len(list((tmp_path / "model").iterdir())) == 2


def test_forecasting_needs_neither_scikit_learn_nor_arrow(folder: Path) -> None:
    script = (
        "import sys, numpy as np\n"
        "from crosscast import load_model\n"
        "from crosscast.predict.configuration.data import Observed\n"
        f"model = load_model({str(folder)!r})\n"
        "ones = np.array([1.0, 2.0])\n"
        "observed = Observed(np.array(model.samples), ones, 100 * ones)\n"
        "assert np.isfinite(model.forecast(observed).time.centre).all()\n"
        "bad = {'sklearn', 'scipy', 'pandas', 'pyarrow', 'llvmlite'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "name",
    ["model", "seed", "configurations", "samples", "power", "training", "errors", "kind", "arrays"],
)
def test_a_card_without_a_field_names_it(folder: Path, name: str) -> None:
    rewrite_card(folder, lambda card: card.pop(name))
    assert name in refusal(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda card: card["samples"][0]["settings"].update(gpu_cap_w=1), "samples[0]: configuration:"),
        (lambda card: card["samples"].append(card["samples"][0]), "and each once, found 3"),
        (lambda card: card["configurations"].append(card["samples"][0]), "expected each once, found node"),
        (lambda card: card["configurations"][0]["settings"].update(x=[1]), "configurations[0]: "),
        (lambda card: card["configurations"][3]["settings"].update(x=1), "found others"),
        (lambda card: card["samples"].pop(), "configurations and samples of its card, found others"),
        (lambda card: card["power"]["totals"].update(node="cpu"), "node: expected lists of names"),
        (lambda card: card["power"]["totals"].update(node=[[]]), "node: expected lists of names"),
        (lambda card: card.update(kind="forest"), "kind: expected one of"),
        (lambda card: card.update(kind="magic"), "kind: expected one of"),
    ],
)
def test_wrong_contents_with_a_sound_checksum_are_refused(
    folder: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    rewrite_card(folder, change)
    assert reason in refusal(folder)


def test_a_damaged_card_or_array_is_refused(folder: Path) -> None:
    (path,) = folder.glob("arrays-*.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refusal(folder)
    path.write_bytes(whole)
    card = folder / CARD
    card.write_text(card.read_text().replace('"node"', '"nose"', 1))
    assert "its checksum does not match" in refusal(folder)


def test_a_model_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    _, card = fitted_chooser()
    nearest = NearestKernels().fit(made_surfaces(), card.samples)
    with pytest.raises(InputError, match=r"expected one that can be kept \(.*\), found nearest"):
        save_configuration_model(nearest, tmp_path / "model", replace(card, model="nearest"))
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", CONFIGURATION_MODELS)
def test_every_model_has_its_name_and_can_be_kept(name: str, tmp_path: Path) -> None:
    surfaces = made_surfaces(4, noise=0.01)
    model = configuration_model_named(name)
    assert model.name == name
    fitted = model.fit(surfaces, (11, 0))
    save_configuration_model(fitted, tmp_path / "model", fitted_chooser()[1])
    observed = surfaces.observed(0, (11, 0))
    before, after = (
        each.forecast(observed) for each in (fitted, load_configuration_model(tmp_path / "model"))
    )
    np.testing.assert_array_equal(after.power.centre, before.power.centre)
    np.testing.assert_array_equal(after.time.quantile(0.95), before.time.quantile(0.95))


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"model: expected one of model, published, .*, found 'magic'"):
        configuration_model_named("magic")
