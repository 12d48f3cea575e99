"""The question of configurations: the best one under a power cap, from a few sample runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Unpack, get_args

import numpy as np

from crosscast.arrays import AnyArray, Arrays
from crosscast.data.configuration import Configuration, parse_configurations
from crosscast.data.dataset import Dataset
from crosscast.data.views import configured
from crosscast.decide.policies import (
    CONFIDENCE,
    check_method_names,
    method_names,
    methods_of,
)
from crosscast.decide.samples import Sampler, two_samples
from crosscast.errors import InputError
from crosscast.evaluation import Question, names_of
from crosscast.evaluation.configuration import (
    ConfigurationEvaluationOptions,
    ConfigurationFolds,
    ConfigurationTrainingOptions,
)
from crosscast.evaluation.configuration.evaluation import (
    SOURCES,
    ConfigurationEvaluation,
    Programs,
    evaluate_configuration,
    evaluate_machine,
    sampler_of,
)
from crosscast.evaluation.configuration.scores import METRICS
from crosscast.evaluation.keep import digest, fingerprint, library_versions
from crosscast.evaluation.loop import FoldTask, RunArguments, SeededRun, check_seed, rounds_of, run_tasks
from crosscast.prediction.configuration import ConfigurationModel, Surfaces, machines_of, power_totals
from crosscast.prediction.configuration.artefact import (
    DEFAULT_MODEL,
    MODELS,
    ConfigurationCard,
    PowerCard,
    TrainedConfigurationModel,
    entries,
    model_named,
)
from crosscast.prediction.intervals import check_level
from crosscast.prediction.trained import format_names

_LEAST_PROGRAMS = 3
"""Fewer leave too few to train on when one is held out."""

_MOST_NAMED = 20

_CARD_METRICS = ("method", "folds", *METRICS, "confidence", "programs_above", "intervals")


@dataclass(frozen=True)
class ErrorTask(FoldTask[ConfigurationModel, Programs, Surfaces]):
    """A model fitted without one application, and its errors on the kernels of that one."""

    samples: tuple[int, ...]
    level: float  # Probability that the intervals are to hold

    @property
    def cache_keys(self) -> list[object]:
        """Key of the errors."""
        facts = [self.fold.held_out, list(self.samples), self.level, self.seed]
        return [["errors", fingerprint(self.model), *facts]]

    def run(self, data: Surfaces, queries: Sequence[int]) -> list[Arrays]:
        """Errors of log predictions at unmeasured configurations, and whether intervals held."""
        rows = data.rows_of(self.fold.names)
        fitted = self.model.fit(data.take(~rows), self.samples, self.seed)
        parts: dict[str, list[AnyArray]] = {name: [np.empty(0)] for name in ("time", "power")}
        parts |= {f"{name}_inside": [np.empty(0, np.bool_)] for name in parts}
        for row in np.flatnonzero(rows & data.known[:, list(self.samples)].all(axis=1)).tolist():
            forecast = fitted.forecast(data.observed(row, self.samples))
            tested = data.known[row] & ~forecast.measured & np.isfinite(forecast.time.centre)
            for name, quantity, values in (
                ("time", forecast.time, data.time_s[row]),
                ("power", forecast.power, data.power_w[row]),
            ):
                true = values[tested]
                parts[name].append(np.log(quantity.centre[tested] / true))
                if quantity.errors.size:
                    low, high = (limit[tested] for limit in quantity.limits(self.level))
                    parts[f"{name}_inside"].append((low <= true) & (true <= high))
        return [{name: np.concatenate(each) for name, each in parts.items()}]

    def is_valid(self, data: Surfaces, query: int, arrays: Arrays) -> bool:
        """Whether arrays have the names of the errors."""
        return set(arrays) == {"time", "power", "time_inside", "power_inside"}


def held_out_errors(
    surfaces: Surfaces,
    model: ConfigurationModel,
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    held_out: Sequence[str] | None = None,
    level: float = 0.9,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> dict[str, object]:
    """Errors on held-out applications, as a JSON object; unknown values are null.

    Root mean squares of logarithms, medians of absolute errors over true values, and shares within intervals,
    with equal weights of applications. `held_out` are held out in turn, by default all.
    """
    sampler = sampler_of(surfaces, samples)
    tasks = [
        ErrorTask(
            model, Programs((name,)), seed, sampler(surfaces.take(~surfaces.rows_of([name])), seed), level
        )
        for name in held_out or surfaces.applications
    ]
    done = run_tasks(tasks, surfaces, sources=SOURCES, **run)
    by_application = {
        task.fold.held_out: {name: np.asarray(values, np.float64) for name, values in each.items()}
        for task, (each,) in zip(tasks, done, strict=True)
        if len(each["time"])
    }

    def mean(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if values else None

    by_program: dict[str, dict[str, float]] = {program: {} for program in by_application}
    errors: dict[str, object] = {
        "folds": "leave-application-out",
        "level": level,
        "programs": len(by_application),
        "cells": sum(len(each["time"]) for each in by_application.values()),
    }
    for name in ("time", "power"):
        squares = {program: float(np.mean(each[name] ** 2)) for program, each in by_application.items()}
        for program, square in squares.items():
            by_program[program][f"rmse_log_{name}"] = float(np.sqrt(square))
        absolute = [float(np.median(np.abs(np.expm1(each[name])))) for each in by_application.values()]
        inside = [each[f"{name}_inside"] for each in by_application.values()]
        mean_square = mean(list(squares.values()))
        errors[f"rmse_log_{name}"] = None if mean_square is None else float(np.sqrt(mean_square))
        errors[f"median_ape_{name}"] = mean(absolute)
        errors[f"coverage_{name}"] = mean([float(np.mean(each)) for each in inside if each.size])
    return {**errors, "by_program": by_program}


def machine_of(
    dataset: Dataset, *, devices: Sequence[str] | None = None, power_domain: str | None = None
) -> Surfaces:
    """The times and powers of the one machine in a dataset, or a part of it."""
    label = Path(dataset.label).name
    machines = machines_of(configured(dataset, domain=power_domain), label, devices)
    if len(machines) > 1:
        listed = f"{len(machines)} machines without a kernel in common ({_devices_of(machines)})"
        expected, found = "those of one machine", f"{listed}: name the devices of one"
        raise InputError.of(field="device", expected=expected, found=found)
    if len(machines[0].space) < 2:
        raise InputError.of(where=label, expected="at least 2 configurations to choose from", found=1)
    return machines[0]


def train_configuration(
    surfaces: Surfaces,
    model: str = DEFAULT_MODEL,
    *,
    samples: Sequence[Configuration] | None = None,
    held_out: Sequence[str] | None = None,
    power_domain: str | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> TrainedConfigurationModel:
    """Fit a model to a machine's kernels; evaluate it with applications held out in turn, by default all."""
    check_seed(seed)
    chosen = model_named(model)
    if held_out is not None:
        chosen = chosen.tested_on(held_out)
    programs, space = surfaces.applications, surfaces.space
    for name in held_out or ():
        if name not in programs:
            known = format_names(programs, _MOST_NAMED)
            raise InputError.of(where="held_out", expected=f"some of {known}", found=repr(name))
    tested = programs if held_out is None else tuple(held_out)
    if len(programs) < _LEAST_PROGRAMS:
        expected = f"at least {_LEAST_PROGRAMS} applications to train and test a model"
        raise InputError.of(where=surfaces.label, expected=expected, found=", ".join(programs))
    sampler_or_samples = two_samples if samples is None else samples
    numbers = sampler_of(surfaces, sampler_or_samples)(surfaces, seed)
    # First the model itself, so that unsuitable data fails at once.
    predictor = chosen.fit(surfaces, numbers, seed)
    names = [name for name in (model, f"{model}-strict", f"{model}+fl") if name in method_names(space)]
    first, second = rounds_of(run, (len(tested), len(tested) if names else 0))
    errors = held_out_errors(
        surfaces, chosen, samples=sampler_or_samples, held_out=tested, seed=seed, **first
    )
    choices: list[dict[str, object]] = []
    if names:
        methods = methods_of(space, names)
        if held_out is not None:
            methods = tuple(each.tested_on(held_out) for each in methods)
        scored = evaluate_machine(
            surfaces,
            methods,
            samples=sampler_or_samples,
            held_out=tested,
            duplicates_too=False,
            seed=seed,
            **second,
        )
        choices = [{key: each.to_dict()[key] for key in _CARD_METRICS} for each in scored.results]
    card = ConfigurationCard(
        model=model,
        kind=predictor.kind,
        seed=seed,
        training={
            "dataset": surfaces.label,
            "cells": int(surfaces.known.sum()),
            "kernels_at_a_size": len(surfaces.kernels),
            "kernels": len({(each.application, each.kernel) for each in surfaces.kernels}),
            "applications": len(programs),
            "configurations": len(space),
            "names": list(programs),
            "sha256": digest(surfaces),
            "libraries": library_versions(),
        },
        samples=entries([space.configurations[number] for number in numbers]),
        power=PowerCard(power_domain, dict(power_totals(surfaces))),
        domains=tuple(sorted(surfaces.domains)),
        counters=tuple(sorted(surfaces.counters)),
        errors={**errors, "choices": choices},
        configurations=entries(space.configurations),
    )
    return TrainedConfigurationModel(card, predictor)


class ConfigurationQuestion(
    Question[
        Dataset,
        ConfigurationEvaluationOptions,
        ConfigurationTrainingOptions,
        ConfigurationEvaluation,
        TrainedConfigurationModel,
    ]
):
    """Time and power at each configuration; evaluation is of methods that choose by them."""

    name = "configuration"
    folds = get_args(ConfigurationFolds)
    evaluation_options = ConfigurationEvaluationOptions
    training_options = ConfigurationTrainingOptions
    all_models = tuple(MODELS)
    best_model = DEFAULT_MODEL

    def evaluate(
        self,
        data: Dataset,
        models: Sequence[str] | None,
        folds: str,
        options: ConfigurationEvaluationOptions,
        **run: Unpack[SeededRun],
    ) -> ConfigurationEvaluation:
        """Evaluate methods, by default the main ones, on each machine of a dataset."""
        domain, devices = options.power_domain, names_of(options.devices)
        machines = machines_of(configured(data, domain=domain), data.label, devices)
        spaces = [machine.space for machine in machines]
        names = None if models is None else list(dict.fromkeys(models))
        if names == ["all"]:
            names = list(dict.fromkeys(name for space in spaces for name in method_names(space)))
        if names is not None:
            check_method_names(names, spaces)
        samples = _samples(options.samples, machines)
        confidence = CONFIDENCE if options.cap_probability is None else options.cap_probability
        check_level(confidence, "cap_probability")
        return evaluate_configuration(
            machines,
            partial(methods_of, names=names, confidence=confidence),
            label=data.label,
            samples=two_samples if samples is None else samples,
            together=options.groups,
            budget=options.max_retunes,
            **run,
        )

    def train(
        self,
        data: Dataset,
        model: str,
        options: ConfigurationTrainingOptions,
        **run: Unpack[SeededRun],
    ) -> TrainedConfigurationModel:
        """Train a model for one machine, with errors of applications that were held out."""
        domain = options.power_domain
        surfaces = machine_of(data, devices=names_of(options.devices), power_domain=domain)
        samples = _samples(options.samples, [surfaces])
        held_out = names_of(options.held_out)
        return train_configuration(
            surfaces, model, samples=samples, held_out=held_out, power_domain=domain, **run
        )


QUESTION = ConfigurationQuestion()


def _devices_of(machines: Sequence[Surfaces]) -> str:
    return "; ".join(", ".join(machine.space.devices) for machine in machines)


def _samples(
    samples: Sequence[Configuration] | str | None, machines: Sequence[Surfaces]
) -> Sequence[Configuration] | None:
    """Sample configurations of the one machine; ``None`` for the default."""
    if samples is None:
        return None
    if len(machines) > 1:
        found = f"{len(machines)} ({_devices_of(machines)}): say which with --devices"
        raise InputError.of(field="samples", expected="one machine", found=found)
    if isinstance(samples, str):
        return parse_configurations("samples", samples, machines[0].space.devices)
    return samples
