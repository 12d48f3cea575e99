"""The question of times: seconds of kernels on each device."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack, get_args

import numpy as np

from crosscast.data.dataset import Dataset, bundled_dataset
from crosscast.data.table import distinct, notes_of
from crosscast.data.times import LaunchTables
from crosscast.data.views import KERNEL_AT_A_SIZE
from crosscast.errors import InputError
from crosscast.evaluation import Question, with_baselines
from crosscast.evaluation.keep import digest
from crosscast.evaluation.loop import RunArguments
from crosscast.evaluation.time import TimeEvaluationOptions, TimeFolds, TimeTrainingOptions
from crosscast.evaluation.time.evaluation import LEAST_APPLICATIONS, evaluate_time
from crosscast.evaluation.time.launch_times import LaunchEvaluation, evaluate_launch_times, train_launch_times
from crosscast.evaluation.time.scores import Result, TimeEvaluation
from crosscast.prediction.time import Grid, Toolchain
from crosscast.prediction.time.artefact import TrainedTimeModel, metric_ranges
from crosscast.prediction.time.card import Effect, Range, TimeCard
from crosscast.prediction.time.datasets import check_seconds, grid_of, launch_tables_of
from crosscast.prediction.time.forecast import PointPredictor
from crosscast.prediction.time.gaussian import Gaussian, GaussianPredictor
from crosscast.prediction.time.launch_model import MODEL, TrainedLaunchTimes
from crosscast.prediction.time.models import BASELINES, DEFAULT_MODEL, MODELS, model_named

_MOST_RATIO = 2.0
_OUTER = 0.1


def effect_of(point: PointPredictor, grid: Grid, others: Grid, toolchain: Toolchain) -> Effect | None:
    """Compare predictions from two profiles of the same launches: those of equal names and work-items.

    Their instructions are within a factor of 2: a suite may redefine its sizes.
    """
    grid_rows, other_rows = (
        {key: row for row, key in enumerate(zip(each.names, each.metric("work_items").tolist(), strict=True))}
        for each in (grid.profiles, others.profiles)
    )
    shared = [key for key in grid_rows if key in other_rows]
    profiles, other_profiles = (
        each.profiles.take(np.array([rows[key] for key in shared], dtype=np.int64))
        for each, rows in ((grid, grid_rows), (others, other_rows))
    )
    ratio = other_profiles.metric("total_instruction_count") / profiles.metric("total_instruction_count")
    same = (ratio >= 1 / _MOST_RATIO) & (ratio <= _MOST_RATIO)
    if not same.any():
        return None
    profiles = profiles.take(same)
    # The number of launches depends on the run, not on the compiler.
    other_profiles = replace(other_profiles.take(same), invocations=profiles.invocations)
    log_ratio = point.log_time(other_profiles) - point.log_time(profiles)
    low, middle, high = np.exp(np.quantile(log_ratio, (_OUTER, 0.5, 1 - _OUTER))).tolist()
    return Effect(toolchain.compiler, toolchain.options, len(profiles), middle, low, high)


_MOST_PROBES = 2
_ERRORS = ("folds", "seed", "level", "baselines", "bootstrap", "results", "noise_floor", "always_the_same")
_IN_PARTS = ("applications", "devices", "slowdown_mean_without", "against_baseline")


def train_time(
    dataset: Dataset,
    model: str = DEFAULT_MODEL,
    *,
    level: float = 0.9,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> TrainedTimeModel:
    """Fit a model, and evaluate it with each application held out in turn."""
    chosen, *baselines = (model_named(name) for name in dict.fromkeys([model, *BASELINES]))
    grid = grid_of(dataset)
    check_seconds(dataset)
    applications = len(grid.applications)
    if applications < LEAST_APPLICATIONS:
        needed = "applications with profiles and records to train and test a model"
        expected = f"at least {LEAST_APPLICATIONS} {needed}"
        raise InputError.of(where=dataset.label, expected=expected, found=applications)
    probes = range(min(_MOST_PROBES, len(grid.devices) - 1) + 1)
    evaluation = evaluate_time(dataset, [chosen, *baselines], probes=probes, level=level, seed=seed, **run)
    predictor = _fitted(chosen, grid, seed, evaluation.results[0])
    toolchains = tuple(sorted(set(_toolchains(dataset, grid))))
    # The effect of the bundled dataset's toolchain, if it is a different one.
    bundled = bundled_dataset()
    others = grid_of(bundled)
    other_toolchains = set(_toolchains(bundled, others))
    is_other = len(other_toolchains) == 1 and not other_toolchains <= set(toolchains)
    effect = effect_of(predictor.point, grid, others, other_toolchains.pop()) if is_other else None
    times = np.exp(grid.log_time[np.isfinite(grid.log_time)])
    card = TimeCard(
        model=model,
        seed=seed,
        training={
            "dataset": Path(dataset.label).name,
            "origin": notes_of(dataset.profiles).get("origin"),
            **evaluation.counts,
            "names": list(grid.applications),
            "records": dataset.records.num_rows,
            "sha256": digest(grid),
        },
        toolchains=toolchains,
        other_toolchains=(effect,) if effect else (),
        devices=grid.devices,
        metrics=metric_ranges(predictor.point, grid.profiles),
        time_s=Range(float(times.min()), float(times.max())),
        errors=_errors(evaluation, model),
    )
    return TrainedTimeModel(card, predictor)


def _fitted(model: Gaussian, grid: Grid, seed: int, result: Result) -> GaussianPredictor:
    """Fit the model to all, with the residuals of its evaluation without probes."""
    if model.refit is not None or len(result.outcomes) != 1:
        return model.fit(grid, seed)
    (outcome,) = result.outcomes
    errors = np.full(grid.log_time.shape, np.nan)
    errors[outcome.rows] = outcome.measured - outcome.centre
    return model.fit(grid, seed, errors)


def _errors(evaluation: TimeEvaluation, model: str) -> dict[str, object]:
    """The evaluation for the card; by application and device of the model alone, to stay small."""

    def without_parts(result: Mapping[str, object]) -> dict[str, object]:
        return {name: value for name, value in result.items() if name not in _IN_PARTS}

    facts = {name: value for name, value in evaluation.to_dict().items() if name in _ERRORS}
    results = [each if each["model"] == model else without_parts(each) for each in evaluation.scored]
    return {**facts, "results": results, "noise_floor": without_parts(evaluation.noise_scores)}


def _toolchains(dataset: Dataset, grid: Grid) -> Iterator[Toolchain]:
    """Toolchains of the profiles of the grid's kernels."""
    kernels = set(grid.profiles.names)
    rows, _ = distinct(dataset.profiles, (*KERNEL_AT_A_SIZE, "program"))
    for row in rows.to_pylist():
        if tuple(row[name] for name in KERNEL_AT_A_SIZE) in kernels:
            yield Toolchain.of(json.loads(row["program"] or "{}"))


class TimeQuestion(
    Question[
        Dataset | LaunchTables,
        TimeEvaluationOptions,
        TimeTrainingOptions,
        TimeEvaluation | LaunchEvaluation,
        TrainedTimeModel | TrainedLaunchTimes,
    ]
):
    """Times in seconds, learned from profiles with records, or from times of launches."""

    name = "time"
    folds = get_args(TimeFolds)
    evaluation_options = TimeEvaluationOptions
    training_options = TimeTrainingOptions

    def models(self, data: Dataset | LaunchTables) -> Sequence[str]:
        """Names of the models: `terms` alone for times of launches, and all for profiles with records."""
        return (MODEL,) if isinstance(data, LaunchTables) else (*MODELS, MODEL)

    def default_model(self, data: Dataset | LaunchTables) -> str:
        """The best model of both kinds of data."""
        return MODEL if isinstance(data, LaunchTables) else DEFAULT_MODEL

    def evaluate(
        self,
        data: Dataset | LaunchTables,
        models: Sequence[str] | None,
        folds: str,
        options: TimeEvaluationOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> TimeEvaluation | LaunchEvaluation:
        """Evaluate models; with probes, kernels are measured on some devices before."""
        if isinstance(data, LaunchTables) or (models is not None and MODEL in models):
            for name in models or ():
                if name not in (MODEL, "all"):
                    expected = f"{MODEL} alone for times of launches"
                    raise InputError.of(where="models", expected=expected, found=repr(name))
            if isinstance(data, Dataset):
                data = launch_tables_of(data)
            if list(options.probes) != [0]:
                problem = f"{data.label} has times of launches, which are forecast without any"
                raise InputError.of(field="probes", problem=problem)
            return evaluate_launch_times(data, folds, level=options.level, **run)
        if folds == "leave-source-out":
            expected, found = "tables of times with sources (docs/evaluation.md)", "a dataset of one source"
            raise InputError.of(where="folds", field=data.label, expected=expected, found=found)
        names = with_baselines(models, tuple(MODELS), DEFAULT_MODEL, BASELINES)
        chosen = [model_named(name) for name in names]
        return evaluate_time(
            data, chosen, folds, probes=options.probes, level=options.level, seed=seed, **run
        )

    def train(
        self,
        data: Dataset | LaunchTables,
        model: str,
        options: TimeTrainingOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> TrainedTimeModel | TrainedLaunchTimes:
        """Train a model, with errors of applications that were held out."""
        if isinstance(data, LaunchTables) or model == MODEL:
            tables = data if isinstance(data, LaunchTables) else launch_tables_of(data)
            return train_launch_times(tables, level=options.level, **run)
        count = len(data.records.column("configuration").unique())
        if not data.profiles.num_rows and count > 1:
            raise InputError.of(
                where=data.label,
                expected="profiles and records",
                found=(
                    f"runs on {count} configurations and no profiles: crosscast train "
                    "configuration is for these"
                ),
            )
        return train_time(data, model, level=options.level, seed=seed, **run)


QUESTION = TimeQuestion()
