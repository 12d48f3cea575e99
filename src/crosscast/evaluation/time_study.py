"""How far scores and their differences would move with other applications: a bootstrap over applications."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.evaluation.confidence import (
    DRAWS,
    SHARE,
    Confidence,
    Difference,
    Interval,
    difference_of,
    interval_of,
)
from crosscast.evaluation.processes import Progress
from crosscast.evaluation.time import DEFAULT, Evaluation, Result, application_names, evaluate, grid_digest
from crosscast.evaluation.time_scores import HIGHER_IS_BETTER, LOWER_IS_BETTER, Outcome, Scores, score_values
from crosscast.predict.time import models as registry
from crosscast.predict.time.artefact import Card, Effect, metric_ranges
from crosscast.predict.time.data import Grid, Toolchain, metric, toolchain_of
from crosscast.predict.time.gaussian import GaussianPredictor, Model, PointPredictor
from crosscast.predict.time.models import model_named
from crosscast.predict.time.observed import grid_of
from crosscast.tables.arrow import Table, notes_of
from crosscast.tables.bundled import bundled_dataset
from crosscast.tables.cells import CELL, KERNEL_AT_A_SIZE, run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import distinct
from crosscast.tables.samples import Samples, samples_of

BASELINES = ("device-mean", "nearest")
"""Names of the models that anything else must beat."""


def bootstrap(
    evaluation: Evaluation, *, baselines: Sequence[str] = BASELINES, draws: int = DRAWS
) -> tuple[Confidence, ...]:
    """Draw the applications again and again, with replacement, and score each draw.

    All results see the same draws, so differences between them are of pairs. Draws without any value of a
    score do not count for it. Kernels and cells of an application stay together: they resemble each other,
    and intervals that took them for independent would be too narrow.
    """
    if draws < 1:
        raise InputError(f"draws: expected at least 1, found {draws}")
    count = len(application_names(evaluation.grid))
    rng = np.random.default_rng(evaluation.seed)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)
    drawn = [score_values(result.tallies, weights) for result in evaluation.results]
    answers = []
    for result, values in zip(evaluation.results, drawn, strict=True):
        rivals = [
            (other, of_other)
            for other, of_other in zip(evaluation.results, drawn, strict=True)
            if other.model in baselines and other.probes == result.probes
        ]
        known = result.model not in baselines and rivals
        answers.append(Confidence(_intervals(values), _differences(result, values, rivals) if known else {}))
    return tuple(answers)


def _intervals(values: Mapping[str, Reals]) -> dict[str, Interval]:
    return {name: found for name, drawn in values.items() if (found := interval_of(drawn)) is not None}


def _differences(
    result: Result, drawn: Mapping[str, Reals], rivals: Sequence[tuple[Result, Mapping[str, Reals]]]
) -> dict[str, Difference]:
    found = {}
    for name in sorted(LOWER_IS_BETTER | HIGHER_IS_BETTER):
        own = getattr(result.scores, name)
        there = [(score, each) for each in rivals if (score := getattr(each[0].scores, name)) is not None]
        if own is None or not there:
            continue
        sign = 1 if name in HIGHER_IS_BETTER else -1
        score, (baseline, of_baseline) = max(there, key=lambda pair: sign * pair[0])
        both = np.isfinite(drawn[name]) & np.isfinite(of_baseline[name])
        difference = difference_of(
            baseline.model, own - score, drawn[name][both] - of_baseline[name][both], sign
        )
        if difference is not None:
            found[name] = difference
    return found


NOISE = "noise-floor"
"""Name of the noise floor in tables."""

ALWAYS = "always-the-same"
"""Name of the choice of always the same device in tables."""

_RUNS = 25
"""Runs that are drawn from each cell."""


def noise_floor(dataset: Dataset, grid: Grid, seed: int, level: float = 0.9) -> Result:
    """How a look at one run of each cell does as a forecast of the cell's median.

    In logarithms, a single run is as far from the median as the forecast of a perfect model of the medians
    is from a single run. From each cell runs are drawn, with replacement. The interval around a run is as
    wide as that of the cell's runs, between the quantiles that leave the same share out on both sides.
    """
    records = sound(dataset.records, dataset.sessions)
    cells, numbers = distinct(records, CELL)
    samples = samples_of(numbers, np.log(run_means(records)))
    rows, columns, kept = _places(grid, cells)

    def spread(values: Reals) -> Reals:
        array = np.full(grid.log_time.shape, np.nan)
        array[rows, columns] = values[kept]
        return array

    below = grid.log_time - spread(samples.quantile((1 - level) / 2))
    above = spread(samples.quantile((1 + level) / 2)) - grid.log_time
    runs = [spread(run) for run in _drawn(samples, np.random.default_rng(seed))]
    every = np.ones(grid.log_time.shape, dtype=np.bool_)
    outcomes = tuple(_outcome(grid, run, run - above, run + below, every) for run in runs)
    return Result(NOISE, "one run of each cell", 0, level, application_names(grid), outcomes)


def _places(grid: Grid, cells: Table) -> tuple[Integers, Integers, Integers]:
    """Row and column of each cell in the grid, and the numbers of the cells that are in it."""
    row_of = {kernel: row for row, kernel in enumerate(grid.profiles.names)}
    column_of = {device.key: column for column, device in enumerate(grid.devices)}
    found = [
        (row_of[kernel], column_of[cell["device"]], number)
        for number, cell in enumerate(cells.to_pylist())
        if (kernel := (cell["application"], cell["kernel"], cell["size"])) in row_of
    ]
    rows, columns, kept = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return rows, columns, kept


def _drawn(samples: Samples, rng: np.random.Generator) -> Reals:
    """Runs drawn from each cell, of shape ``(runs, cells)``."""
    starts = np.cumsum(samples.counts) - samples.counts
    places = (rng.random((_RUNS, len(starts))) * samples.counts).astype(np.int64)
    drawn: Reals = samples.values[starts + places]
    return drawn


def _outcome(grid: Grid, centre: Reals, low: Reals, high: Reals, scored: Flags) -> Outcome:
    rows = np.arange(len(grid.profiles), dtype=np.int64)
    none = np.zeros(centre.shape, dtype=np.bool_)
    return Outcome(grid.profiles.application, grid.log_time, centre, low, high, scored, none, rows)


@dataclass(frozen=True)
class AlwaysTheSame:
    """The one device that would have been the best to take for all kernels."""

    device: str  # Its key
    result: Result  # How its choice did; without errors, as it forecasts nothing


def always_the_same(grid: Grid, level: float = 0.9) -> AlwaysTheSame | None:
    """Find the device with the least mean slowdown over all kernels; ``None`` if there is no choice.

    It is found with the measured times of all kernels, so it is the best that any choice without a look at
    the kernel can do.
    """
    candidates = []
    for place, device in enumerate(grid.devices):
        if np.isfinite(grid.log_time[:, place]).all():
            result = Result(
                ALWAYS, "in hindsight", 0, level, application_names(grid), (_always(grid, place),)
            )
            slowdown = result.scores.slowdown_mean
            if slowdown is not None:
                candidates.append((slowdown, AlwaysTheSame(device.key, result)))
    return min(candidates, key=lambda pair: pair[0])[1] if candidates else None


def _always(grid: Grid, device: int) -> Outcome:
    """Forecasts that make one device the fastest, and of which no error is scored."""
    shape = grid.log_time.shape
    centre = np.ones(shape)
    centre[:, device] = 0.0
    nothing = np.full(shape, np.nan)
    return _outcome(grid, centre, nothing, nothing, np.zeros(shape, dtype=np.bool_))


def with_baselines(names: Sequence[str]) -> list[Model]:
    """Models by name, each once, and the baselines after them."""
    baselines = [name for name in BASELINES if name in registry.MODELS]
    return [registry.model_named(name) for name in dict.fromkeys([*names, *baselines])]


@dataclass(frozen=True)
class Study:
    """How models did on a dataset."""

    label: str  # Which dataset
    evaluation: Evaluation  # What they forecast
    confidences: tuple[Confidence, ...]  # How sure the scores of each result are
    noise: Result  # The noise floor: one run of a cell as the forecast of its median
    always: AlwaysTheSame | None  # What taking always the same device costs; `None` where there is no choice

    @property
    def counts(self) -> dict[str, int]:
        """How many cells, kernels at a size, kernels, applications and devices there are."""
        grid = self.evaluation.grid
        return {
            "cells": int((grid.runs > 0).sum()),
            "kernels_at_a_size": len(grid.profiles),
            "kernels": len(set(grid.profiles.groups("kernel").tolist())),
            "applications": len(set(grid.profiles.application)),
            "devices": len(grid.devices),
        }

    def best(self, probes: int) -> Result | None:
        """The model with the least RMSE at a number of probes; a baseline only if there is no other."""
        ranked = [
            (result.model in BASELINES, score, result)
            for result in self.evaluation.results
            if result.probes == probes and (score := result.scores.rmse_log) is not None
        ]
        return min(ranked, key=lambda each: each[:2])[2] if ranked else None

    def to_dict(self) -> dict[str, Any]:
        """Everything but the forecasts, as the object that ``--json`` prints: what is not known is null."""
        evaluation = self.evaluation
        present = {result.model for result in evaluation.results}
        return {
            "protocol": evaluation.split,
            "dataset": self.label,
            **self.counts,
            "seed": evaluation.seed,
            "level": evaluation.level,
            "baselines": [name for name in BASELINES if name in present],
            "bootstrap": {"over": "applications", "draws": DRAWS, "share": SHARE},
            "results": [
                _listed(result, evaluation.grid.devices) | confidence.to_dict()
                for result, confidence in zip(evaluation.results, self.confidences, strict=True)
            ],
            "noise_floor": _listed(self.noise, evaluation.grid.devices),
            "always_the_same": None
            if self.always is None
            else {"device": self.always.device, **_listed(self.always.result, ())},
        }


def _listed(result: Result, devices: Sequence[Device]) -> dict[str, Any]:
    return {
        "model": result.model,
        "split": result.split,
        "probes": result.probes,
        "sets_of_probes": len(result.outcomes),
        **asdict(result.scores),
        "slowdown_mean_without": {name: each.slowdown_mean for name, each in result.without.items()},
        "applications": {name: asdict(each) for name, each in result.applications.items()},
        "devices": {device.key: _of_cells(result.on(place).scores) for place, device in enumerate(devices)},
    }


_OF_CHOICES = ("top1", "slowdown", "within", "kendall")


def _of_cells(scores: Scores) -> dict[str, float | None]:
    """Scores that a device alone has: those of cells, and none of choices."""
    return {name: value for name, value in asdict(scores).items() if not name.startswith(_OF_CHOICES)}


def study(
    dataset: Dataset,
    models: Sequence[Model],
    split: str = DEFAULT,
    *,
    probes: Sequence[int] = (0,),
    seed: int = 0,
    level: float = 0.9,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Study:
    """Evaluate models on a dataset, with the noise floor and the bootstrap.

    Arguments and errors are those of `crosscast.evaluation.time.evaluate`, with the dataset in place of
    its grid.
    """
    grid = grid_of(dataset)
    evaluation = evaluate(
        grid,
        models,
        split,
        probes=probes,
        seed=seed,
        level=level,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    return Study(
        dataset.label,
        evaluation,
        bootstrap(evaluation),
        noise_floor(dataset, grid, seed, level),
        always_the_same(grid, level),
    )


_LIKE = 2.0
_OUTER = 0.1


def effect_of(point: PointPredictor, grid: Grid, others: Grid, toolchain: Toolchain) -> Effect | None:
    """Compare predictions from two profiles of the same launches.

    Launches are taken for the same if application, kernel, size and work-items are, and the instructions
    within a factor of 2: the sizes of a suite have been set anew now and then.
    """
    pairs = _pairs(grid, others)
    if not pairs:
        return None
    ours, theirs = (np.array(places, dtype=np.int64) for places in zip(*pairs, strict=True))
    known = grid.profiles.take(ours)
    # How often a kernel was launched is the run's affair, not the compiler's.
    foreign = replace(others.profiles.take(theirs), invocations=known.invocations)
    apart = point.log_time(foreign) - point.log_time(known)
    low, middle, high = np.exp(np.quantile(apart, (_OUTER, 0.5, 1 - _OUTER))).tolist()
    return Effect(toolchain, len(pairs), middle, low, high)


def _pairs(grid: Grid, others: Grid) -> list[tuple[int, int]]:
    """Numbers of the same launches in both."""
    there = {key: place for place, key in enumerate(_keys(others))}
    found = [(place, there[key]) for place, key in enumerate(_keys(grid)) if key in there]
    instructions, other = (metric(each.profiles, "total_instruction_count") for each in (grid, others))
    return [(a, b) for a, b in found if 1 / _LIKE <= other[b] / instructions[a] <= _LIKE]


def _keys(grid: Grid) -> list[tuple[Any, ...]]:
    profiles = grid.profiles
    items = metric(profiles, "work_items").tolist()
    return list(zip(profiles.application, profiles.kernel, profiles.size, items, strict=True))


LEAST_APPLICATIONS = 4
"""Fewer leave too few when one is held out, and one more to tell how sure the rest is."""

_MOST_PROBES = 2
_ERRORS = ("protocol", "seed", "level", "baselines", "bootstrap", "results", "noise_floor", "always_the_same")
_IN_PARTS = ("applications", "devices", "slowdown_mean_without", "against_baseline")


@dataclass(frozen=True)
class Trained:
    """A fitted model and what belongs to it."""

    predictor: GaussianPredictor  # The model, fitted to all of the dataset
    card: Card  # Its card
    study: Study  # How it did, and the baselines, on applications that were left out


def train(
    dataset: Dataset,
    name: str,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Trained:
    """Fit a model to a dataset, and measure it with each application left out in turn."""
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
