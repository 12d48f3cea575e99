"""Models of format 1 forecast as they did, also once they are written again.

The models and their forecasts were written by commit a80dc47; see `tests/data/format1`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast import load_model
from crosscast.data.corun import Solo
from crosscast.errors import InputError
from crosscast.prediction.configuration.artefact import KINDS
from crosscast.prediction.configuration.data import Observed
from crosscast.prediction.corun.translation import read_translation, translated_forecasts
from crosscast.prediction.format1 import FORMAT_1
from crosscast.prediction.relative.data import Observations
from crosscast.prediction.store import read
from crosscast.prediction.time.data import ProfileBatch
from crosscast.profile import METRICS
from support.golden import assert_close

FOLDER = Path(__file__).parents[1] / "data" / "format1"
MODELS = sorted(path.parent.name for path in FOLDER.glob("*/card.json"))


def forecast_times(model: Any, asked: Any, outputs: Any) -> Any:
    metrics = np.array([asked["metrics"][each.name] for each in METRICS], dtype=np.float64).T
    names: dict[str, Any] = {name: tuple(asked[name]) for name in ("application", "kernel", "size")}
    batch = ProfileBatch(**names, metrics=metrics)
    probes = [each["probes"] for each in outputs]
    told = [None if each is None else np.array(each, dtype=np.float64) for each in probes]
    found = [model.predictor.predict(batch, probes=each, level=asked["level"]) for each in told]
    return [
        {"probes": probe, **{name: getattr(each, name) for name in ("devices", "centre", "low", "high")}}
        for probe, each in zip(probes, found, strict=True)
    ]


def forecast_configurations(model: Any, asked: Any, _: Any) -> Any:
    runs: dict[str, Any] = {name: np.array(asked[name]) for name in ("numbers", "time_s", "power_w")}
    for name in ("domains", "counters"):
        runs[name] = {of: np.array(each) for of, each in asked[name].items()}
    found = model.predictor.forecast(Observed(**runs))
    quantities = {
        name: {"centre": each.centre, "spread": each.spread, "errors": each.errors[::20]}
        for name, each in (("time", found.time), ("power", found.power))
    }
    return {**quantities, "measured": found.measured}


def mixes(asked: Any) -> list[tuple[Solo, ...]]:
    return [tuple(Solo(**run) for run in mix) for mix in asked["mixes"]]


def forecast_mixes(model: Any, asked: Any, _: Any) -> Any:
    return [found.to_dict() for found in model.predict(mixes(asked), level=asked["level"])]


def forecast_relative(model: Any, asked: Any, outputs: Any) -> Any:
    arrays = ("counters", "settings", "time_s")
    fields: dict[str, Any] = {
        name: tuple(each) for name, each in asked.items() if name not in (*arrays, "level")
    }
    fields |= {name: np.array(asked[name], dtype=np.float64) for name in arrays}
    seen = Observations(**fields)
    found = model.predict(seen, level=asked["level"])
    return {name: model.vectors(seen) if name == "vectors" else getattr(found, name) for name in outputs}


FORECASTS = {
    "time": forecast_times,
    "configuration": forecast_configurations,
    "corun": forecast_mixes,
    "relative": forecast_relative,
}


def listed(found: Any) -> Any:
    """The same with lists for tuples and arrays, as in JSON."""
    if isinstance(found, dict):
        return {name: listed(each) for name, each in found.items()}
    return [listed(each) for each in found] if isinstance(found, list | tuple | np.ndarray) else found


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_format_1_forecasts_as_it_did_and_can_be_written_again(name: str, tmp_path: Path) -> None:
    told = json.loads((FOLDER / name / "expected.json").read_text())
    old = load_model(FOLDER / name)
    old.save(tmp_path / "new")
    assert read(tmp_path / "new").protocol == 2
    for model in (old, load_model(tmp_path / "new")):
        found = FORECASTS[told["question"]](model, told["inputs"], told["outputs"])
        assert_close(listed(found), told["outputs"])


def test_a_translation_card_of_format_1_forecasts_as_it_did() -> None:
    told = json.loads((FOLDER / "translation" / "expected.json").read_text())
    card, asked = read_translation(FOLDER / "translation" / "translation.json"), told["inputs"]
    model = load_model(FOLDER / asked["model"], "corun")
    found = translated_forecasts(model, card, mixes(asked), level=asked["level"])
    assert_close(listed([each.to_dict() for each in found]), told["outputs"])


@pytest.mark.parametrize("name", ["configuration-model", "configuration-published"])
def test_a_damaged_model_of_format_1_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    translation = FORMAT_1["configuration"]
    monkeypatch.delitem(FORMAT_1, "configuration")
    stored = read(FOLDER / name)
    for lacking in stored.arrays:
        if lacking.removeprefix("plain:") in ("configuration_device", "configuration_settings", "samples"):
            continue
        rest = {each: values for each, values in stored.arrays.items() if each != lacking}
        with pytest.raises(InputError, match="model: "):
            card, found = translation(stored.card, rest)
            KINDS[card["kind"]][0].from_state(found)
            pytest.fail(lacking)
