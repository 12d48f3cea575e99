"""Training a model of relative vectors that is to be kept: fitted to all, with honest errors on its card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluate.fingerprint import library_versions
from crosscast.evaluate.processes import Progress, check_jobs, one_thread
from crosscast.evaluate.relative.metrics import metrics_of, row_scores
from crosscast.evaluate.relative.splits import RelativeSplit, split_named
from crosscast.evaluate.relative.task import FoldTask
from crosscast.evaluate.relative.vectors_digest import vectors_digest
from crosscast.evaluate.relative.weighting import row_weights
from crosscast.evaluate.relative.work import predict_folds
from crosscast.evaluate.seeds import check_seed
from crosscast.predict.relative.card import RelativeCard
from crosscast.predict.relative.forecast import check_level
from crosscast.predict.relative.held_out import HeldOut
from crosscast.predict.relative.model import RelativeModel, RelativePredictor
from crosscast.predict.relative.observations import Vectors, relative_to_slowest

__all__ = ["LEAST_GROUPS", "TrainedRelative", "held_out_errors", "left_out_split", "train_relative"]

LEAST_GROUPS = 3
"""Fewer leave too few when one is held out."""


@dataclass(frozen=True)
class TrainedRelative:
    """A fitted model, its errors on what was left out, and its card."""

    predictor: RelativePredictor
    held_out: HeldOut
    card: RelativeCard


def left_out_split(vectors: Vectors, label: str) -> RelativeSplit:
    """What is left out to tell how good a model is: applications, or kernels where these are too few.

    Parameters
    ----------
    vectors
        What there is to learn from.
    label
        Where they are from, for messages.

    Raises
    ------
    InputError
        If there are too few kernels, too.
    """
    found = []
    for split in map(split_named, ("leave-application-out", "leave-kernel-out")):
        count = len(set(split.group(vectors.observations)))
        if count >= LEAST_GROUPS:
            return split
        found.append(str(count))
    raise InputError(
        f"{label}: expected at least {LEAST_GROUPS} applications or kernels with counters, and times on the "
        f"devices, to train and test a model, found {' and '.join(found)}"
    )


def train_relative(
    vectors: Vectors,
    model: RelativeModel,
    *,
    baselines: Sequence[RelativeModel] = (),
    label: str = "dataset",
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> TrainedRelative:
    """Fit a model to vectors, and measure it with each application left out in turn.

    Parameters
    ----------
    vectors
        What to learn from.
    model
        The model.
    baselines
        Models whose scores are put beside its own.
    label
        Where the vectors are from, for the card and for messages.
    level
        Probability of the intervals whose coverage is put on the card.
    seed
        Start of all random numbers.
    progress
        Called whenever a fit is done.
    cache
        Folder that keeps what was predicted in finished folds, which `crosscast evaluate` knows too.
    jobs
        Processes that work at the same time; the result is the same.

    Raises
    ------
    InputError
        If there are too few applications and kernels, the model cannot be fitted to so little, or the cache
        cannot be written.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    check_seed(seed)
    check_jobs(jobs)
    check_level(level)
    split = left_out_split(vectors, label)
    with one_thread("training a model"):
        # First the model itself: what cannot be learned is said at once.
        predictor = model.fit(vectors, seed)
    models = [model, *(each for each in baselines if each.name != model.name)]
    predicted = _left_out(vectors, models, split, seed, progress, cache, jobs)
    held_out = held_out_errors(vectors, predicted[0], split.group(vectors.observations))
    results = [
        _scores(vectors, found, split.name, each.name) for each, found in zip(models, predicted, strict=True)
    ]
    results[0] |= {"coverage": _coverage(held_out, level)}
    observations = vectors.observations
    card = RelativeCard(
        model=model.name,
        seed=seed,
        devices=vectors.devices,
        sources=tuple(sorted(set(observations.source))),
        counters=observations.names,
        configuration=observations.configuration,
        training=_training(vectors, label),
        errors={
            "protocol": split.name,
            "level": level,
            "groups": len(held_out.groups),
            "vectors": len(held_out.log_error),
            "weights": "applications",
            "results": results,
        },
    )
    return TrainedRelative(predictor, held_out, card)


def _left_out(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: RelativeSplit,
    seed: int,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> list[Reals]:
    """For each model the vectors that it predicted of what it had not seen, of shape ``(r, d)``."""
    folds = split.folds_of(vectors.observations, seed)
    tasks = [FoldTask(model, fold, seed) for model in models for fold in folds]
    found = predict_folds(vectors, tasks, progress=progress, cache=cache, jobs=jobs)
    predicted = np.full((len(models), *vectors.times_s.shape), np.nan)
    for number, (task, rows) in enumerate(zip(tasks, found, strict=True)):
        predicted[number // len(folds), task.fold.test] = rows
    return list(predicted)


def held_out_errors(vectors: Vectors, predicted: Reals, groups: Sequence[str]) -> HeldOut:
    """Errors of vectors that were predicted without their group.

    Repeats of a kernel at a size and scale on a source count once, with the mean of their errors.

    Parameters
    ----------
    vectors
        What is true, ``r`` rows.
    predicted
        What was predicted, of shape ``(r, d)``, above 0.
    groups
        Name of the group of each row, of length ``r``.
    """
    errors = np.log(relative_to_slowest(predicted)) - np.log(vectors.vector)
    seen = vectors.observations
    keys = [
        (group, source, *work) for group, source, work in zip(groups, seen.source, seen.works, strict=True)
    ]
    cells = sorted(set(keys))
    places = {cell: place for place, cell in enumerate(cells)}
    number = np.array([places[key] for key in keys], dtype=np.int64)
    sums = np.zeros((len(cells), errors.shape[1]))
    np.add.at(sums, number, errors)
    of_groups, group = _numbered([cell[0] for cell in cells])
    of_sources, source = _numbered([cell[1] for cell in cells])
    return HeldOut(sums / np.bincount(number)[:, None], group, source, of_groups, of_sources)


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Integers]:
    known = sorted(set(names))
    return tuple(known), np.array([known.index(name) for name in names], dtype=np.int64)


def _scores(vectors: Vectors, predicted: Reals, split: str, model: str) -> dict[str, Any]:
    """Scores as `crosscast evaluate` has them, where applications weigh the same."""
    weights = row_weights(vectors.observations, "applications")
    found = metrics_of(row_scores(vectors.times_s, predicted), weights)
    return {"model": model, "split": split, **asdict(found)}


def _coverage(held_out: HeldOut, level: float) -> float | None:
    """Share of times relative to another device that are within intervals by the other groups' errors.

    Groups weigh the same.
    """
    d = held_out.log_error.shape[1]
    shares: dict[str, list[float]] = {}
    for errors in map(held_out.of_source, held_out.sources):
        for number, group in enumerate(errors.groups if len(errors.groups) > 1 else ()):
            others, own = errors.without(number), errors.group == number
            inside = [
                np.abs(errors.relative_errors(base)[own]) <= others.reach(level, base) for base in range(d)
            ]
            # Relative to itself, a device is always right.
            shares.setdefault(group, []).append((float(np.mean(inside)) * d - 1) / (d - 1))
    return float(np.mean([np.mean(each) for each in shares.values()])) if shares else None


def _training(vectors: Vectors, label: str) -> dict[str, Any]:
    seen = vectors.observations
    return {
        "dataset": label,
        "runs": len(vectors),
        **seen.counts,
        "names": sorted(set(seen.application)),
        "scales": len(set(seen.scale)),
        "sha256": vectors_digest(vectors),
        "libraries": library_versions(),
    }
