"""``crosscast train --target configuration``: a model by which configurations are chosen."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.configuration_text import configurations_named
from crosscast.cli.fits import FitStatus, processors
from crosscast.cli.option_names import option_names
from crosscast.cli.words import words_of

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["train_configuration"]


def train_configuration(
    dataset: Dataset,
    out: Path,
    *,
    model: str | None,
    samples: str | None,
    devices: str | None,
    power_domain: str | None,
    seed: int,
    cache: Path | None,
    jobs: int | None,
    json: bool,
) -> None:
    """Train a model, keep it, and print its card or what people want to know of it.

    Parameters
    ----------
    dataset
        Runs on several configurations.
    out, model, samples, devices, power_domain, seed, cache, jobs, json
        As `crosscast.cli.train.train` has them.

    Raises
    ------
    InputError
        If something of the options or the dataset is not as expected, or the model cannot be written.
    """
    from crosscast.decide.training import machine_of, train_chooser
    from crosscast.predict.configuration.artefact import save_configuration_model
    from crosscast.predict.configuration.bailey2014 import PublishedPredictor
    from crosscast.predict.configuration.models import DEFAULT_CONFIGURATION_MODEL
    from crosscast.report.chooser_training import print_chooser_training

    with FitStatus() as status, option_names():
        keys = None if devices is None else words_of("--devices", devices)
        surfaces = machine_of(dataset, devices=keys, power_domain=power_domain)
        named = (
            None if samples is None else configurations_named("--samples", samples, surfaces.space.devices)
        )
        trained = train_chooser(
            surfaces,
            DEFAULT_CONFIGURATION_MODEL if model is None else model,
            samples=named,
            power_domain=power_domain,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=processors() if jobs is None else jobs,
        )
    save_configuration_model(trained.predictor, out, trained.card)
    if json:
        print(json_format.dumps(trained.card.to_dict(), allow_nan=False))
        return
    found = trained.predictor
    tree = (found.clusters.note, found.tree.text()) if isinstance(found, PublishedPredictor) else None
    print_chooser_training(trained.card, out, sys.stdout, tree)
