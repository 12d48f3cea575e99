"""Training a model that is to be kept: fitted to all there is, with its honest errors on its card."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.errors import InputError
from crosscast.evaluate.cache import grid_digest
from crosscast.evaluate.compared import with_baselines
from crosscast.evaluate.effects import effect_of
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.splits import DEFAULT
from crosscast.evaluate.study import Study, study
from crosscast.predict.card import Card, Effect
from crosscast.predict.gaussian import GaussianPredictor
from crosscast.predict.grid import Grid
from crosscast.predict.observed import grid_of
from crosscast.predict.ranges import metric_ranges
from crosscast.predict.registry import model_named
from crosscast.predict.toolchain import Toolchain, toolchain_of
from crosscast.tables.arrow import notes_of
from crosscast.tables.bundled import bundled_dataset
from crosscast.tables.cells import KERNEL_AT_A_SIZE
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import distinct

__all__ = ["LEAST_APPLICATIONS", "Trained", "train"]

LEAST_APPLICATIONS = 4
"""Fewer leave too few when one is held out, and one more to tell how sure the rest is."""

_MOST_PROBES = 2
_ERRORS = ("protocol", "seed", "level", "baselines", "bootstrap", "results", "noise_floor", "always_the_same")
_IN_PARTS = ("applications", "devices", "slowdown_mean_without", "against_baseline")


@dataclass(frozen=True)
class Trained:
    """A fitted model and what belongs to it.

    Parameters
    ----------
    predictor
        The model, fitted to all of the dataset.
    card
        Its card.
    study
        How it did, and the baselines, on applications that were left out.
    """

    predictor: GaussianPredictor
    card: Card
    study: Study


def train(
    dataset: Dataset,
    name: str,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Trained:
    """Fit a model to a dataset, and measure it with each application left out in turn.

    Parameters
    ----------
    dataset
        The dataset.
    name
        Name of the model.
    seed
        Start of all random numbers.
    progress
        Called whenever a fold is done.
    cache
        Folder that keeps forecasts of finished folds.
    jobs
        Processes that work at the same time.

    Raises
    ------
    InputError
        If there is no such model, or the dataset has too few applications.
    """
    model = model_named(name)
    grid = grid_of(dataset)
    found = len(set(grid.profiles.application))
    if found < LEAST_APPLICATIONS:
        raise InputError(
            f"{dataset.label}: expected at least {LEAST_APPLICATIONS} applications with profiles and records "
            f"to train and test a model, found {found}"
        )
    study_of_all = study(
        dataset,
        with_baselines([name]),
        DEFAULT,
        probes=range(min(_MOST_PROBES, len(grid.devices) - 1) + 1),
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    predictor = model.fit(grid, seed)
    toolchains = tuple(sorted(set(_toolchains(dataset, grid))))
    times = np.exp(grid.log_time[np.isfinite(grid.log_time)])
    card = Card(
        model=name,
        seed=seed,
        devices=grid.devices,
        metrics=metric_ranges(predictor.point, grid.profiles),
        time_low_s=float(times.min()),
        time_high_s=float(times.max()),
        toolchains=toolchains,
        effects=tuple(_effects(predictor, grid, toolchains)),
        training=_training(dataset, grid, study_of_all),
        errors=_errors(study_of_all, name),
    )
    return Trained(predictor, card, study_of_all)


def _training(dataset: Dataset, grid: Grid, found: Study) -> dict[str, Any]:
    return {
        "dataset": Path(dataset.label).name,
        "origin": notes_of(dataset.profiles).get("origin"),
        **found.counts,
        "names": sorted(set(grid.profiles.application)),
        "records": dataset.records.num_rows,
        "sha256": grid_digest(grid),
    }


def _errors(found: Study, model: str) -> dict[str, Any]:
    kept = {name: value for name, value in found.to_dict().items() if name in _ERRORS}
    # By application and device, of the model alone: the card is to stay small.
    return {
        **kept,
        "results": [each if each["model"] == model else _whole(each) for each in kept["results"]],
        "noise_floor": _whole(kept["noise_floor"]),
    }


def _whole(result: Mapping[str, Any]) -> dict[str, Any]:
    """The scores over everything alone."""
    return {name: value for name, value in result.items() if name not in _IN_PARTS}


def _toolchains(dataset: Dataset, grid: Grid) -> Iterator[Toolchain]:
    """What the profiles of the grid's kernels were made with."""
    kernels = set(grid.profiles.names)
    rows, _ = distinct(dataset.profiles, (*KERNEL_AT_A_SIZE, "program"))
    made: dict[str, Toolchain] = {}
    for row in rows.to_pylist():
        if tuple(row[name] for name in KERNEL_AT_A_SIZE) in kernels:
            text = row["program"] or "{}"
            if text not in made:
                made[text] = toolchain_of(json.loads(text))
            yield made[text]


def _effects(predictor: GaussianPredictor, grid: Grid, toolchains: Sequence[Toolchain]) -> Iterator[Effect]:
    """What it changes to profile with the toolchain of the bundled dataset, where that is another one."""
    dataset = bundled_dataset()
    others = grid_of(dataset)
    made = set(_toolchains(dataset, others))
    if len(made) == 1 and not made <= set(toolchains):
        effect = effect_of(predictor.point, grid, others, made.pop())
        if effect is not None:
            yield effect
