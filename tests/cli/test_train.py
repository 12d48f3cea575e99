"""``crosscast train``: what is kept, printed and refused, with models that are quick to fit."""

import json
from pathlib import Path

import numpy as np
import pytest

from crosscast.cli import main
from crosscast.data.dataset import read_dataset
from crosscast.evaluation.keep import digest
from crosscast.prediction.store import CARD, read
from crosscast.prediction.time.artefact import TrainedTimeModel, open_model
from crosscast.prediction.time.data import Grid
from crosscast.prediction.time.grids import grid_of
from support.commands import Command, Output, written
from support.johnston2018 import made_up

train = Command.of("train time", "--model device-mean --jobs 1")


@pytest.fixture(autouse=True)
def no_cache_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(made_up(), tmp_path_factory, "small")


def time_model(folder: Path) -> TrainedTimeModel:
    found = open_model(read(folder))
    assert isinstance(found, TrainedTimeModel)
    return found


def test_the_card_says_what_it_was_trained_on(dataset: Path, tmp_path: Path) -> None:
    assert train(dataset, "--out", tmp_path / "model", "--seed", "5") == 0
    card = time_model(tmp_path / "model").card
    grid = grid_of(read_dataset(dataset))
    assert (card.model, card.seed) == ("device-mean", 5)
    facts = dict(card.training)
    assert facts.pop("sha256") == digest(grid)
    assert facts == {
        "dataset": "small",
        "origin": None,
        "cells": 30,
        "kernels_at_a_size": 10,
        "kernels": 5,
        "applications": 4,
        "devices": 3,
        "names": ["crc", "kmeans", "lud", "sums"],
        "records": 720,
    }
    assert card.devices == grid.devices
    times = np.exp(grid.log_time)
    assert (card.time_s.low, card.time_s.high) == (times.min(), times.max())


def test_a_person_sees_the_training_and_how_good_it_is(dataset: Path, tmp_path: Path, capsys: Output) -> None:
    assert train(dataset, "--out", tmp_path / "model") == 0
    shown = capsys.readouterr().out
    assert "device-mean, trained on small: 30 times of 10 kernels at a size" in shown
    for part in ("nearest (baseline)", "noise floor", "coverage", "left out in turn"):
        assert part in shown
    # No cell is cut.
    assert "…" not in shown
    # What was forecast once is read from the cache.
    assert train(dataset, "--out", tmp_path / "model", "--json") == 0
    shown = capsys.readouterr().out
    kept = json.loads((tmp_path / "model" / CARD).read_text())
    assert json.loads(shown).items() <= kept.items()


@pytest.mark.system
def test_an_application_left_out_is_unknown_to_the_model_and_can_be_compared(
    tmp_path: Path, bundled: Grid, capsys: Output
) -> None:
    out = tmp_path / "model"
    assert train("bundled", "--out", out, "--without", "kmeans, crc") == 0
    names = sorted(set(bundled.profiles.application) - {"kmeans", "crc"})
    assert time_model(out).card.training["names"] == names
    capsys.readouterr()
    words = ["predict", "time", "bundled", "--application", "kmeans", "--model", str(out), "--json"]
    assert main(words) == 0
    found = {
        (kernel["kernel"], kernel["size"], each["device"]): each["recorded_s"]
        for kernel in json.loads(capsys.readouterr().out)["kernels"]
        for each in kernel["devices"]
    }
    rows = [row for row, name in enumerate(bundled.profiles.application) if name == "kmeans"]
    assert found == pytest.approx(
        {
            (bundled.profiles.kernel[row], bundled.profiles.size[row], device.key): float(np.exp(time))
            for row in rows
            for device, time in zip(bundled.devices, bundled.log_time[row], strict=True)
        }
    )
    assert main(words[:-1]) == 0
    assert "Of 12 recorded times" in capsys.readouterr().out
