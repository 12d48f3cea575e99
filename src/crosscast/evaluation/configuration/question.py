"""The question of configurations: the best one under a power cap, from a few sample runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, get_args

from crosscast.data.configuration import Configuration, parse_configurations
from crosscast.data.dataset import Dataset
from crosscast.data.views import configured
from crosscast.decide.policies import CONFIDENCE, check_method_names, method_names
from crosscast.decide.samples import two_samples
from crosscast.errors import InputError
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation, evaluate_configuration
from crosscast.evaluation.configuration.options import (
    ConfigurationEvaluationOptions,
    ConfigurationFolds,
    ConfigurationTrainingOptions,
)
from crosscast.evaluation.configuration.training import machine_of, train_configuration
from crosscast.evaluation.loop import RunArguments
from crosscast.evaluation.question import Question, names_of
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.configuration.data import Surfaces, machines_of
from crosscast.prediction.configuration.models import DEFAULT_MODEL, MODELS


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
        *,
        seed: int,
        **run: Unpack[RunArguments],
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
        return evaluate_configuration(
            machines,
            names,
            label=data.label,
            samples=two_samples if samples is None else samples,
            confidence=CONFIDENCE if options.cap_probability is None else options.cap_probability,
            together=options.groups,
            budget=options.max_retunes,
            seed=seed,
            **run,
        )

    def train(
        self,
        data: Dataset,
        model: str,
        options: ConfigurationTrainingOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> TrainedConfigurationModel:
        """Train a model for one machine, with errors of applications that were held out."""
        domain = options.power_domain
        surfaces = machine_of(data, devices=names_of(options.devices), power_domain=domain)
        samples = _samples(options.samples, [surfaces])
        return train_configuration(
            surfaces,
            model,
            samples=samples,
            held_out=options.held_out,
            power_domain=domain,
            seed=seed,
            **run,
        )


QUESTION = ConfigurationQuestion()


def _samples(
    samples: Sequence[Configuration] | str | None, machines: Sequence[Surfaces]
) -> Sequence[Configuration] | None:
    """Sample configurations of the one machine; ``None`` for the default."""
    if samples is None:
        return None
    if len(machines) > 1:
        found = "; ".join(", ".join(machine.space.devices) for machine in machines)
        raise InputError.of(
            field="samples",
            expected="one machine",
            found=f"{len(machines)} ({found}): say which with --devices",
        )
    if isinstance(samples, str):
        return parse_configurations("samples", samples, machines[0].space.devices)
    return samples
