"""The methods of Bailey et al. 2014: model, frequency limiting, limiters of single knobs, and oracle."""

from __future__ import annotations

from typing import Unpack

from crosscast.data.dataset import Dataset
from crosscast.data.views import configured
from crosscast.decide.policies import knob_methods
from crosscast.evaluation.configuration import ConfigurationEvaluationOptions
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation
from crosscast.evaluation.configuration.question import QUESTION
from crosscast.evaluation.loop import RunArguments
from crosscast.prediction.configuration.data import machines_of


def reproduce(dataset: Dataset, *, seed: int = 0, **run: Unpack[RunArguments]) -> ConfigurationEvaluation:
    """Evaluate the methods and the oracle with each benchmark held out.

    Clusters and tree are fitted to all programs.
    """
    machines = machines_of(configured(dataset), dataset.label)
    limiters = [method.name for machine in machines for method in knob_methods(machine.space)]
    names = [*limiters, "published", "published+fl", "oracle"]
    options = ConfigurationEvaluationOptions()
    return QUESTION.evaluate(dataset, names, QUESTION.folds[0], options, seed=seed, **run)
