"""`crosscast.train`, `evaluate` and `load_model`: one way for all questions, and for one of your own."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import joblib
import numpy as np
import pytest

import crosscast
from crosscast.api import QUESTIONS
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError
from crosscast.evaluation.loop import processors, worker_processes
from crosscast.prediction import named_models
from crosscast.prediction.named_models import QuestionName
from support.datasets import made_dataset
from support.johnston2018 import made_up
from support.mixes import measured_mixes
from support.refusals import refusal, refusals
from support.surfaces import configured_dataset, made_surfaces
from support.tables import dataset, record
from support.vectors import made_counted_dataset

MODELS = {
    "time": "device-mean",
    "relative": "published-linear",
    "configuration": "published",
    "corun": "published-linear",
}


@pytest.fixture(scope="module")
def datasets() -> dict[str, Dataset]:
    return {
        "time": made_up(),
        "relative": made_counted_dataset(),
        "configuration": configured_dataset(made_surfaces(4, noise=0.01)),
        "corun": measured_mixes(),
    }


def test_there_is_an_entry_for_each_question() -> None:
    assert tuple(QUESTIONS) == get_args(QuestionName)
    for name, question in QUESTIONS.items():
        assert question.name == name
        for options in (question.evaluation_options, question.training_options):
            assert fields(options)
            assert options() == options()
        assert question.folds


@pytest.mark.parametrize("question", MODELS)
def test_a_model_is_trained_saved_and_loaded(
    datasets: dict[str, Dataset], question: QuestionName, tmp_path: Path
) -> None:
    for name in ("model", "twice"):
        trained = crosscast.train(datasets[question], question, MODELS[question], seed=3, jobs=1)
        trained.save(tmp_path / name)
    loaded = crosscast.load_model(tmp_path / "model")
    assert type(loaded) is type(trained)
    assert loaded.folder == tmp_path / "model"
    assert loaded.card.model == MODELS[question]
    loaded.save(tmp_path / "again")
    model, again, twice = (
        {each.name: each.read_bytes() for each in (tmp_path / name).iterdir()}
        for name in ("model", "again", "twice")
    )
    assert model == again == twice


@pytest.mark.parametrize("question", MODELS)
def test_an_evaluation_is_a_table_and_an_object(
    datasets: dict[str, Dataset], question: QuestionName, tmp_path: Path
) -> None:
    asked: Any = (datasets[question], question, [MODELS[question]])
    done: list[Any] = []
    found = crosscast.evaluate(*asked, cache=tmp_path, progress=done.append, jobs=1)
    told: dict[str, Any] = found.to_dict()
    assert (told["question"], told["folds"] in QUESTIONS[question].folds) == (question, True)
    assert MODELS[question] in {each.get("model", each.get("method")) for each in told["results"]}
    assert done[-1].done == done[-1].total
    assert len({len(column) for column in found.columns().values()}) == 1
    assert "<table>" in found._repr_html_()
    assert crosscast.evaluate(*asked, cache=str(tmp_path)).to_dict() == told


@refusals("arguments sentence")
def test_what_cannot_be_evaluated_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    assert refusal(crosscast.evaluate, made_dataset(), **arguments).startswith(sentence)


@refusals("arguments sentence")
def test_what_cannot_be_trained_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    assert refusal(crosscast.train, made_dataset(), **arguments).startswith(sentence)


@pytest.mark.parametrize("ask", [crosscast.evaluate, crosscast.train])
def test_a_folder_in_place_of_a_dataset_is_refused(ask: Callable[..., object]) -> None:
    expected = "dataset: expected a dataset, as crosscast.read_dataset(folder) gives it, found str"
    assert refusal(ask, "mine/", "relative") == expected


@pytest.mark.parametrize(
    ("ask", "given", "sentence"),
    [
        (crosscast.load_model, {"model": 3}, "model: expected a model's name or folder, found int"),
        (
            crosscast.predict,
            {"kernels": "bundled", "probes": 3},
            "probes: expected seconds by device, such as {'gtx1080': 0.01}, found int",
        ),
        (
            crosscast.evaluate,
            {"dataset": made_dataset(), "cache": 3},
            "cache: expected a folder, found int",
        ),
        (crosscast.train, {"dataset": made_dataset(), "cache": 3}, "cache: expected a folder, found int"),
    ],
)
def test_a_number_in_place_of_a_name_a_folder_or_times_is_refused(
    ask: Callable[..., object], given: dict[str, Any], sentence: str
) -> None:
    assert refusal(ask, **given) == sentence


def test_joblib_says_how_many_processes_unless_the_caller_does() -> None:
    with joblib.parallel_config(n_jobs=3):
        assert worker_processes(None) is None
        assert worker_processes(2) == 2
        assert worker_processes(99_999) == 4 * processors()
    assert worker_processes(None) == processors()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_misspelt_option_is_one_sentence(datasets: dict[str, Dataset], question: QuestionName) -> None:
    dataset = datasets[question]
    with pytest.raises(InputError, match=f"options: expected some of .* question {question}, found 'probez'"):
        crosscast.evaluate(dataset, question, probez=[0])  # type: ignore[call-overload]
    with pytest.raises(InputError, match=f"for the question {question}, found 'levle'"):
        crosscast.train(dataset, question, levle=0.9)  # type: ignore[call-overload]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Times of three applications that scatter by 0, 10 and 20 %, with the question in the registry."""
    monkeypatch.setitem(named_models.HOMES, "scatter", named_models.Home("none", "support.scatter_question"))
    return dataset(
        records=[
            record(application=f"app{n}", kernel="k", time_s=[1.0 - n / 10, 1.0 + n / 10]) for n in range(3)
        ]
    )


def test_a_question_of_its_own_is_evaluated_and_trained_as_the_others(data: Dataset, tmp_path: Path) -> None:
    evaluate: Any = crosscast.evaluate
    found = evaluate(data, "scatter", jobs=1, cache=tmp_path)
    # Without one of 0, 10 and 20 %, the middle of the others is 15, 10 and 5 %.
    assert found.error["middle"] == pytest.approx(np.mean([0.15, 0.0, 0.15]))
    assert evaluate(data, "scatter", jobs=1, cache=tmp_path) == found
    assert crosscast.train(data, "scatter", quantile=1.0) == pytest.approx(0.2)  # type: ignore[call-overload]


def test_what_it_does_not_have_is_refused_as_elsewhere(data: Dataset) -> None:
    evaluate: Any = crosscast.evaluate
    with pytest.raises(InputError, match="expected some of quantile for the question scatter"):
        evaluate(data, "scatter", level=0.9)
    with pytest.raises(InputError, match="folds: expected one of leave-application-out"):
        evaluate(data, "scatter", folds="published")
    assert "expected kernels that were run several times" in refusal(evaluate, dataset(), "scatter")
