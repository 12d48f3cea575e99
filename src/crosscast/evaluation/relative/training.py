"""Train a model of relative performance: fit it to all, with errors on held-out groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Unpack

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluation.keep import digest, library_versions
from crosscast.evaluation.loop import RunArguments, check_jobs, check_seed, one_thread
from crosscast.evaluation.relative.evaluation import RelativeSplit, evaluate_relative, split_named
from crosscast.prediction.intervals import check_level
from crosscast.prediction.relative.artefact import (
    FittedRelative,
    RelativeCard,
    TrainedRelativeModel,
)
from crosscast.prediction.relative.data import RelativeModel, Vectors, relative_to_slowest
from crosscast.prediction.relative.residuals import RelativeResiduals

LEAST_GROUPS = 3  # Fewer leave too few when one is held out


def held_out_split(vectors: Vectors, label: str) -> RelativeSplit:
    """The split for errors on the card: by application, or by kernel where applications are too few."""
    counts = []
    for split in map(split_named, ("leave-application-out", "leave-kernel-out")):
        count = len(set(split.groups(vectors.observations)))
        if count >= LEAST_GROUPS:
            return split
        counts.append(str(count))
    groups = "applications or kernels with counters, and times on the devices, to train and test a model"
    expected = f"at least {LEAST_GROUPS} {groups}"
    raise InputError.of(where=label, expected=expected, found=" and ".join(counts))


def train_relative(
    vectors: Vectors,
    model: RelativeModel,
    *,
    baselines: Sequence[RelativeModel] = (),
    label: str = "dataset",
    level: float = 0.9,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> TrainedRelativeModel:
    """Fit a model to vectors, and evaluate it with each application held out in turn.

    `run` is as in `run_tasks`.
    """
    check_seed(seed)
    check_jobs(run.get("jobs"))
    check_level(level)
    split = held_out_split(vectors, label)
    with one_thread("training a model"):
        # First the model itself, so that unsuitable data fails at once.
        predictor = model.fit(vectors, seed)
    models = [model, *(each for each in baselines if each.name != model.name)]
    tested = evaluate_relative(vectors, models, split.name, baselines=(), seed=seed, **run).results
    observations = vectors.observations
    residuals = residuals_of(vectors, tested[0].predicted, split.groups(observations))
    results: list[dict[str, object]] = [
        {"model": each.model, "split": split.name, **asdict(each.by_weighting["applications"])}
        for each in tested
    ]
    results[0] |= {"coverage": _coverage(residuals, level)}
    card = RelativeCard(
        model=model.name,
        seed=seed,
        training={
            "dataset": label,
            "runs": len(vectors),
            **observations.counts,
            "names": sorted(set(observations.application)),
            "scales": len(set(observations.scale)),
            "sha256": digest(vectors),
            "libraries": library_versions(),
        },
        devices=vectors.devices,
        sources=tuple(sorted(set(observations.source))),
        counters=observations.names,
        configuration=observations.configuration,
        errors={
            "protocol": split.name,
            "level": level,
            "groups": len(residuals.groups),
            "vectors": len(residuals.log_error),
            "weights": "applications",
            "results": results,
        },
    )
    return TrainedRelativeModel(card, FittedRelative(predictor, residuals))


def residuals_of(vectors: Vectors, predicted: Reals, groups: Sequence[str]) -> RelativeResiduals:
    """Residuals of vectors that were predicted without their group.

    Repeats of a kernel at a size and scale on a source count once, with the mean of their errors.
    """
    errors = np.log(relative_to_slowest(predicted)) - np.log(vectors.vector)
    keys = list(zip(groups, vectors.observations.source, vectors.observations.works, strict=True))
    repeats = {key: index for index, key in enumerate(sorted(set(keys)))}
    number = np.array([repeats[key] for key in keys], dtype=np.int64)
    sums = np.zeros((len(repeats), errors.shape[1]))
    np.add.at(sums, number, errors)
    group, source, _ = zip(*repeats, strict=True)
    return RelativeResiduals.of(group, source, sums / np.bincount(number)[:, None])


def _coverage(residuals: RelativeResiduals, level: float) -> float | None:
    """Share of times relative to another device within intervals from the other groups' errors.

    Groups have equal weights.
    """
    d = residuals.log_error.shape[1]
    shares: dict[str, list[float]] = {}
    for errors in map(residuals.of_source, residuals.sources):
        for number, group in enumerate(errors.groups if len(errors.groups) > 1 else ()):
            tested, others = (errors.rows(mask) for mask in (errors.group == number, errors.group != number))
            inside = [
                np.abs(tested.relative_errors(base)) <= others.half_width(level, base) for base in range(d)
            ]
            # Relative to itself, a device has no error.
            shares.setdefault(group, []).append((float(np.mean(inside)) * d - 1) / (d - 1))
    return float(np.mean([np.mean(each) for each in shares.values()])) if shares else None
