"""``crosscast train --target relative``: a model of times on devices relative to each other."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.fits import FitStatus, processors
from crosscast.cli.option_names import option_names
from crosscast.cli.relative_vectors import relative_vectors
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["train_relative_model"]


def train_relative_model(
    dataset: Dataset,
    out: Path,
    *,
    model: str | None,
    devices: str | None,
    sources: str | None,
    seed: int,
    cache: Path | None,
    jobs: int | None,
    json: bool,
) -> None:
    """Train a model, keep it, and print its card or what people want to know of it.

    Parameters
    ----------
    dataset
        Runs with counters, or profiles, and times of the same work on several devices.
    out, model, devices, sources, seed, cache, jobs, json
        As `crosscast.cli.train.train` has them.

    Raises
    ------
    InputError
        If something of the options or the dataset is not as expected, or the model cannot be written.
    """
    from crosscast.evaluation.relative import train_relative
    from crosscast.predict.relative.artefact import save_relative_model
    from crosscast.predict.relative.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
    from crosscast.report.relative_training import print_relative_training

    name = DEFAULT_MODEL if model is None else model
    if name not in MODELS:
        raise InputError(f"--model: expected one of {', '.join(MODELS)}, found {name!r}")
    with FitStatus() as status, option_names():
        vectors = relative_vectors(dataset, devices, sources)
        trained = train_relative(
            vectors,
            models_named([name])[0],
            baselines=models_named(BASELINES),
            label=Path(dataset.label).name,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=processors() if jobs is None else jobs,
        )
    save_relative_model(trained.predictor, trained.held_out, out, trained.card)
    if json:
        print(json_format.dumps(trained.card.to_dict(), allow_nan=False))
    else:
        print_relative_training(trained.card, out, sys.stdout)
