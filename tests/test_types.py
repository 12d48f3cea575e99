"""What a type checker knows of the public functions: mypy checks `_typed`, and this that nothing drifted."""

import inspect
from dataclasses import fields
from typing import Any, assert_type, get_overloads

import pytest

from crosscast import api, evaluate, load_model, train
from crosscast.data.dataset import Dataset
from crosscast.data.times import LaunchTables
from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation
from crosscast.evaluation.corun.evaluation import CoRunEvaluation
from crosscast.evaluation.relative.evaluation import RelativeEvaluation
from crosscast.evaluation.time.launch_times import LaunchEvaluation
from crosscast.evaluation.time.results import TimeEvaluation
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.launch_model import TrainedLaunchTimes


def _typed(dataset: Dataset, tables: LaunchTables) -> None:
    """Not run: each line is an error of mypy if the type is another."""
    assert_type(train(dataset), TrainedTimeModel)
    assert_type(train(dataset, "time", level=0.8), TrainedTimeModel)
    assert_type(train(tables, "time"), TrainedLaunchTimes)
    assert_type(train(dataset, model="terms"), TrainedLaunchTimes)
    assert_type(train(dataset, "relative", devices=["cpu"]), TrainedRelativeModel)
    assert_type(train(dataset, "configuration", power_domain="gpu"), TrainedConfigurationModel)
    assert_type(train(dataset, "corun", device="gpu"), TrainedCoRunModel)
    assert_type(evaluate(dataset), TimeEvaluation)
    assert_type(evaluate(dataset, "time", ["combined"], "leave-kernel-out", probes=[1]), TimeEvaluation)
    assert_type(evaluate(tables, folds="leave-source-out"), LaunchEvaluation)
    assert_type(evaluate(dataset, models=["terms"]), LaunchEvaluation)
    assert_type(evaluate(dataset, "relative", weights="rows"), RelativeEvaluation)
    assert_type(evaluate(dataset, "configuration", max_retunes=2), ConfigurationEvaluation)
    assert_type(evaluate(dataset, "corun", probes=[0, 3]), CoRunEvaluation)
    assert_type(load_model("model", "relative"), TrainedRelativeModel)
    assert_type(load_model("model", "configuration"), TrainedConfigurationModel)
    assert_type(load_model("model", "corun"), TrainedCoRunModel)


@pytest.mark.parametrize("name", api.QUESTIONS)
@pytest.mark.parametrize("function", [api.train, api.evaluate])
def test_keywords_that_a_type_checker_knows_are_the_options_of_the_question(function: Any, name: str) -> None:
    question = api.QUESTIONS[name]
    options = question.training_options if function is api.train else question.evaluation_options
    known = {each.name: each.default for each in fields(options)}
    found: dict[str, Any] = {}
    for overload in get_overloads(function):
        signature = inspect.signature(overload)
        if signature.parameters["question"].annotation == f"Literal['{name}']":
            keywords = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
            found |= {p.name: p.default for p in keywords if p.name not in ("model", "models", "folds")}
    assert found == known
