"""The methods of Bailey et al. 2014: its model, alone and with frequency limiting, limiters, the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from crosscast.data.dataset import Dataset
from crosscast.data.views import configured
from crosscast.decide.policies import knob_methods
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation
from crosscast.evaluation.configuration.options import ConfigurationEvaluationOptions
from crosscast.evaluation.configuration.question import QUESTION
from crosscast.evaluation.loop import RunArguments
from crosscast.prediction.configuration.data import machines_of


def reproduce(
    dataset: Dataset,
    *,
    devices: Sequence[str] | None = None,
    power_domain: str | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> ConfigurationEvaluation:
    """Evaluate the methods and the oracle with each benchmark held out.

    Clusters and tree are fitted to all programs.
    """
    machines = machines_of(configured(dataset, domain=power_domain), dataset.label, devices)
    limiters = [method.name for machine in machines for method in knob_methods(machine.space)]
    names = [*limiters, "published", "published+fl", "oracle"]
    options = ConfigurationEvaluationOptions(devices=devices, power_domain=power_domain)
    return QUESTION.evaluate(dataset, names, QUESTION.folds[0], options, seed=seed, **run)
