"""Cards and arrays of kept models, changed as damage or another program might."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.data.schema import json_text
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.evaluation.time import question
from crosscast.prediction.configuration import power_totals
from crosscast.prediction.configuration.artefact import (
    ConfigurationCard,
    PowerCard,
    TrainedConfigurationModel,
    entries,
)
from crosscast.prediction.configuration.bailey2014 import PublishedModel, PublishedPredictor
from crosscast.prediction.named_models import load_model
from crosscast.prediction.store import CARD
from crosscast.prediction.time import Grid, ProfileBatch, Toolchain, models
from crosscast.prediction.time.artefact import TrainedTimeModel, metric_ranges
from crosscast.prediction.time.card import Range, TimeCard
from crosscast.prediction.time.forecast import Model, TimeForecast
from crosscast.prediction.time.gaussian import GaussianPredictor
from crosscast.prediction.time.physical import Physical
from crosscast.prediction.time.unseen import fit_unseen
from crosscast.profile import METRICS
from support.grids import DEVICES, lawful_grid
from support.surfaces import made_surfaces


def rewrite_card(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the card and give it the checksum that it would have had."""
    path = folder / CARD
    card = json.loads(path.read_text())
    del card["sha256"]
    change(card)
    card["sha256"] = hashlib.sha256(json_text(card).encode()).hexdigest()
    path.write_text(json.dumps(card))


def changed(path: str, value: Any) -> Callable[[Any], None]:
    """A change of what is at a path: to a value, or as the words ``absent`` and ``the first again`` say."""

    def change(card: Any) -> None:
        *way, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        for part in way:
            card = card[part]
        if value == "absent":
            del card[last]
        else:
            card[last] = [*card[last], card[last][0]] if value == "the first again" else value

    return change


def model_refusal(folder: Path) -> str:
    """The one sentence with which a model is refused, when it is loaded or first used."""
    with pytest.raises(InputError) as caught:
        _ = load_model(folder).predictor
    text = str(caught.value)
    assert "\n" not in text
    assert str(folder) in text
    return text


TOOLCHAIN = Toolchain("clang 22")


@cache
def fitted() -> tuple[Grid, GaussianPredictor, TimeCard]:
    """A physical model with errors that devices share, and its card."""
    known = lawful_grid()
    point = Physical().fit(known, 0)
    covariance = 0.16 * np.ones((4, 4)) + 0.04 * np.eye(4)
    quantiles = np.linspace(0, 3, 201) * np.ones((3, 1))
    predictor = GaussianPredictor(DEVICES, point, covariance, quantiles, fit_unseen(known, 0))
    times = np.exp(known.log_time)
    card = TimeCard(
        model="physical",
        seed=0,
        devices=DEVICES,
        metrics=metric_ranges(point, known.profiles),
        time_s=Range(float(times.min()), float(times.max())),
        toolchains=(TOOLCHAIN,),
        training={"dataset": "made up", "cells": 192}
        | {"kernels_at_a_size": 48, "kernels": 48, "applications": 6},
        errors={"level": 0.9, "results": [_result(0, 0.31), _result(1, 0.12)]},
    )
    return known, predictor, card


def _result(probes: int, error: float) -> dict[str, Any]:
    return {
        "model": "physical",
        "probes": probes,
        "median_ape": error,
        "slowdown_mean": 1.07,
        "coverage": 0.93,
        "coverage_worst_application": 0.8,
        "intervals": {"median_ape": [error - 0.05, error + 0.05]},
    }


def kept(folder: Path, **changed: Any) -> Path:
    """The model in a folder, with a card that says other things if asked to."""
    _, predictor, card = fitted()
    TrainedTimeModel(msgspec.structs.replace(card, **changed), predictor).save(folder)
    return folder


@cache
def chooser_card() -> ConfigurationCard:
    """Card of the published model of made-up kernels, sampled at the highest configuration and the lowest."""
    surfaces = made_surfaces()
    samples = (len(surfaces.space) - 1, 0)
    return ConfigurationCard(
        model="published-2",
        kind="published",
        seed=0,
        configurations=entries(surfaces.space.configurations),
        samples=entries([surfaces.space.configurations[number] for number in samples]),
        power=PowerCard(None, dict(power_totals(surfaces))),
        domains=tuple(surfaces.domains),
        counters=tuple(surfaces.counters),
        training={"dataset": "made up", "kernels_at_a_size": 12, "applications": 6, "cells": 144},
        errors={"level": 0.9, "programs": 6, "rmse_log_time": 0.2, "rmse_log_power": 0.1},
    )


@cache
def fitted_chooser() -> tuple[PublishedPredictor, ConfigurationCard]:
    """The published model of made-up kernels, and its card."""
    card = chooser_card()
    return PublishedModel(clusters=2).fit(made_surfaces(), card.numbers), card


def kept_chooser(folder: Path, **changed: Any) -> Path:
    """The model in a folder, with a card that says other things if asked to."""
    predictor, card = fitted_chooser()
    TrainedConfigurationModel(msgspec.structs.replace(card, **changed), predictor).save(folder)
    return folder


Fit = Callable[[Grid, int], None]


def make_grid(log_time: Reals, application: Sequence[str]) -> Grid:
    """A grid of these times; the first metric is the number of the kernel."""
    n, d = log_time.shape
    metrics = np.ones((n, len(METRICS)))
    metrics[:, 0] = np.arange(n)
    kernels = tuple(f"k{row}" for row in range(n))
    profiles = ProfileBatch(tuple(application), kernels, ("tiny",) * n, metrics)
    devices = tuple(Device(f"d{place}", type="gpu" if place else "cpu") for place in range(d))
    runs = np.where(np.isnan(log_time), 0, 5)
    return Grid(profiles, devices, log_time, np.full((n, d), 0.1), runs)


def random_grid(d: int = 4) -> Grid:
    """Three kernels of each of four applications, with random times around a millisecond."""
    rng = np.random.default_rng(0)
    names = [f"a{row % 4}" for row in range(12)]
    return make_grid(rng.normal(-7, 1, (12, 1)) + rng.normal(0, 1, (12, d)), names)


def keys_of(devices: Sequence[Device] | None, known: Sequence[Device]) -> tuple[str, ...]:
    return tuple(device.key for device in (known if devices is None else devices))


@dataclass(frozen=True)
class MeanPredictor:
    """The mean of each device; of all devices for one that is not known."""

    devices: tuple[Device, ...]
    means: Reals

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        known = {device.key: mean for device, mean in zip(self.devices, self.means, strict=True)}
        keys = keys_of(devices, self.devices)
        row = np.array([known.get(key, self.means.mean()) for key in keys])
        centre = np.tile(row, (len(profiles), 1))
        if probes is not None:
            # Kernels of which nothing is known stay where they are.
            errors = np.nan_to_num(np.log(probes) - self.means)
            centre += (errors.sum(axis=1) / np.maximum(np.isfinite(probes).sum(axis=1), 1))[:, None]
        return TimeForecast(profiles, keys, np.exp(centre), np.exp(centre - 2), np.exp(centre + 2), level)


@dataclass(frozen=True)
class MeanModel(Model):
    """Fits `MeanPredictor`; `when_fitted` is told each grid that it sees."""

    name: str = "device-mean"
    shift: float = 0.0
    when_fitted: Fit | None = field(default=None, repr=False, compare=False)

    def fit(
        self, grid: Grid, seed: int, residuals: Reals | None = None, *, others: bool = True
    ) -> MeanPredictor:
        if self.when_fitted is not None:
            self.when_fitted(grid, seed)
        return MeanPredictor(grid.devices, np.nanmean(grid.log_time, axis=0) + self.shift)


@dataclass(frozen=True)
class Oracle(Model):
    """Answers with the times of a grid that it was given beforehand, as no honest model can.

    It finds a kernel by its first metric.
    """

    grid: Grid
    name: str = "oracle"
    devices: tuple[Device, ...] = ()

    def fit(self, grid: Grid, seed: int, residuals: Reals | None = None, *, others: bool = True) -> Oracle:
        return replace(self, devices=grid.devices)

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        keys = keys_of(devices, self.devices)
        columns = [[device.key for device in self.grid.devices].index(key) for key in keys]
        rows = profiles.metrics[:, 0].astype(int)
        centre = np.exp(self.grid.log_time[rows][:, columns])
        return TimeForecast(profiles, keys, centre, centre / 1.01, centre * 1.01, level)


def only_models(
    monkeypatch: pytest.MonkeyPatch, known: Mapping[str, Callable[[], Any]], default: str
) -> None:
    """Let the question of times know these models alone, of which ``device-mean`` is the baseline."""
    for module in (models, question):
        monkeypatch.setattr(module, "MODELS", MappingProxyType(dict(known)))
        monkeypatch.setattr(module, "DEFAULT_MODEL", default)
    monkeypatch.setattr(question, "BASELINES", ("device-mean",))
