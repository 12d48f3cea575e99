"""Models of format 1 forecast what they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import crosscast
from crosscast.data.corun import Solo
from crosscast.predict.corun.artefact import TrainedCoRunModel

FOLDER = Path(__file__).parents[2] / "data" / "format1"


def assert_close(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert_close(found[name], value)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6)
    else:
        assert found == expected


@pytest.mark.parametrize("kind", ["mean", "sum", "process", "published-linear"])
def test_a_model_of_format_1_forecasts_what_it_did(kind: str) -> None:
    folder = FOLDER / f"corun-{kind}"
    known = json.loads((folder / "expected.json").read_text())
    mixes = [tuple(Solo(**run) for run in mix) for mix in known["inputs"]["mixes"]]
    model = crosscast.load_model(folder)
    assert isinstance(model, TrainedCoRunModel)
    forecast = model.predict(mixes, level=known["inputs"]["level"])
    for found, expected in zip(forecast, known["outputs"], strict=True):
        assert_close(found.to_dict(), expected)
