"""A small fitted model of configurations and its card, for tests of what is kept, read and asked."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from made_surfaces import made_surfaces

from crosscast.predict.configuration.artefact import (
    ConfigurationCard,
    TrainedConfigurationModel,
    load_configuration_model,
)
from crosscast.predict.configuration.artefact import save_configuration_model as save
from crosscast.predict.configuration.bailey2014 import PublishedModel, PublishedPredictor
from crosscast.predict.configuration.data import power_totals


@cache
def fitted_chooser() -> tuple[PublishedPredictor, ConfigurationCard]:
    """The published model of made-up kernels; samples are the highest configuration and the lowest."""
    surfaces = made_surfaces()
    samples = (len(surfaces.space) - 1, 0)
    card = ConfigurationCard(
        model="published-2",
        seed=0,
        space=surfaces.space,
        samples=samples,
        power_domain=None,
        totals=power_totals(surfaces),
        domains=tuple(surfaces.domains),
        counters=tuple(surfaces.counters),
        training={"dataset": "made up", "kernels_at_a_size": 12, "applications": 6, "cells": 144},
        errors={"level": 0.9, "programs": 6, "rmse_log_time": 0.2, "rmse_log_power": 0.1},
    )
    return PublishedModel(clusters=2).fit(surfaces, samples), card


def kept_chooser(folder: Path, **changed: Any) -> Path:
    """The model in a folder, with a card that says other things if asked to."""
    predictor, card = fitted_chooser()
    save(predictor, folder, replace(card, **changed))
    return folder


def loaded_chooser(folder: Path) -> TrainedConfigurationModel:
    return load_configuration_model(kept_chooser(folder))
