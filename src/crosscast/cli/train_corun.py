"""``crosscast train --target corun``: a model of applications that share a device."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.fits import FitStatus, processors
from crosscast.cli.option_names import option_names
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["train_corun_model"]


def train_corun_model(
    dataset: Dataset,
    out: Path,
    *,
    model: str | None,
    devices: str | None,
    seed: int,
    cache: Path | None,
    jobs: int | None,
    json: bool,
) -> None:
    """Train a model, keep it, and print its card or what people want to know of it.

    Parameters
    ----------
    dataset
        Solo runs and bags.
    out, model, devices, seed, cache, jobs, json
        As `crosscast.cli.train.train` has them.

    Raises
    ------
    InputError
        If something of the options or the dataset is not as expected, or the model cannot be written.
    """
    from crosscast.cli.evaluate_corun import corun_device
    from crosscast.evaluation.corun import of_one_device, train_corun
    from crosscast.predict.corun.artefact import save_corun_model
    from crosscast.predict.corun.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
    from crosscast.report.corun_training import print_corun_training
    from crosscast.tables.corun.mixes import has_mixes
    from crosscast.tables.corun.view import co_runs

    name = DEFAULT_MODEL if model is None else model
    if name not in MODELS:
        raise InputError(f"--model: expected one of {', '.join(MODELS)}, found {name!r}")
    if has_mixes(dataset.bags):
        raise InputError(
            f"--target: expected bags with slowdowns, found mixes on parts of a GPU in {dataset.label}, "
            "whose times are relative to others: crosscast evaluate tells what is learned of them"
        )
    with FitStatus() as status, option_names():
        found = of_one_device(co_runs(dataset), corun_device(devices))
        trained = train_corun(
            found,
            models_named([name])[0],
            baselines=models_named(BASELINES),
            memory_bytes=_memory(dataset, found.bags[0].device),
            seed=seed,
            progress=status,
            cache=cache,
            jobs=processors() if jobs is None else jobs,
        )
    save_corun_model(trained.predictor, trained.errors, out, trained.card)
    if json:
        print(json_format.dumps(trained.card.to_dict(), allow_nan=False))
    else:
        print_corun_training(trained.card, out, sys.stdout)


def _memory(dataset: Dataset, device: str) -> int | None:
    """Memory of a device, where the table of devices says it."""
    for row in dataset.devices.to_pylist():
        if row["device"] == device and row["memory_bytes"] is not None:
            return int(row["memory_bytes"])
    return None
