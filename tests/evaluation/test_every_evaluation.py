"""Laws of the evaluations of all questions: how work is spread, what is kept of it, what is refused."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.data.configuration import Configuration
from crosscast.decide.policies import FeedbackCapping, Fixed, Oracle
from crosscast.errors import InputError
from crosscast.evaluation.configuration.evaluation import evaluate_configuration
from crosscast.evaluation.corun.evaluation import evaluate_corun
from crosscast.evaluation.loop import State
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.prediction.configuration import Surfaces
from crosscast.prediction.corun.models import Mean
from crosscast.prediction.relative.nichols2024 import (
    LogMean,
    PublishedLinear,
    PublishedMean,
    PublishedVectorForest,
    PublishedXGBoost,
)
from support.choices import Wanderer, limited
from support.examples import one_in
from support.golden import assert_kept
from support.mixes import NAMES, made_co_runs
from support.models import MeanModel, random_grid
from support.schemas import assert_valid
from support.surfaces import made_surfaces
from support.vectors import made_vectors

Changes = Mapping[str, Callable[[Any], Any]]
SURFACES, VECTORS = made_surfaces(3, noise=0.01), made_vectors(applications=4, kernels=2, sizes=1)
CO_RUNS = made_co_runs(NAMES[:4])


def other_samples(surfaces: Surfaces, seed: int) -> tuple[int, ...]:
    return (5, 0)


def on_machines(data: Any, models: Any, **words: Any) -> Any:
    return evaluate_configuration([data], lambda space: models, **words)


def slower(data: Any) -> Any:
    """The mixes, with one slowed down more."""
    first = data.mixes[0]
    members = tuple(replace(each, slowdown=5.0) for each in first.members)
    return replace(data, mixes=(replace(first, members=members), *data.mixes[1:]))


def with_more_of(name: str, data: Any) -> Any:
    return replace(data, **{name: 2 * getattr(data, name)})


def with_more_counted(data: Any) -> Any:
    return replace(data, observations=with_more_of("counters", data.observations))


@dataclass(frozen=True)
class Case:
    """An evaluation that takes little time."""

    evaluate: Callable[..., Any]
    data: Any
    models: Any
    entries: int
    """How many answers it keeps."""
    depends: list[dict[str, Any]]
    """Words on which all of these depend, as they do on data and models."""
    others: list[Callable[[Any], Any]]
    """Changes of the data."""
    wrong: list[tuple[dict[str, Any], str]]
    damages: Changes = field(default_factory=dict)
    """Changes of each kept array that the evaluation can see to be none of its answers."""


OF_RUN = [
    ({"jobs": 0}, "^jobs: expected at least 1, found 0"),
    ({"seed": -1}, "^seed: expected a number from 0 to"),
    ({"models": []}, "^(models|methods): expected at least one, and each once, found none"),
]
OF_LEVEL = [({"level": 1.0}, "^level: expected a probability between 0 and 1, found 1")]
CASES = {
    "time": Case(
        partial(evaluate_time, probes=(0, 2)),
        random_grid(),
        [MeanModel()],
        8,
        [{"seed": 1}, {"level": 0.5}, {"folds": "leave-kernel-out"}, {"models": [MeanModel(shift=1.0)]}],
        [partial(with_more_of, "log_time")],
        [
            ({"probes": (4,)}, "probes: expected 0 to 3 of 4 devices, found 4"),
            ({"probes": (-1,)}, "probes: expected 0 to 3 of 4 devices, found -1"),
            ({"folds": "leave-device-and-application-out", "probes": (1,)}, "probes: expected 0 with"),
            ({"seed": 1 << 32}, "seed: expected"),
            ({"models": [MeanModel()] * 2}, "^models: expected at least one, and each once, found"),
            ({"folds": "rows"}, "folds: expected one of leave-application-out, .*found 'rows'"),
            *OF_LEVEL,
        ],
        {"nan": lambda array: array * np.nan},
    ),
    "corun": Case(
        evaluate_corun,
        CO_RUNS,
        [Mean()],
        4,
        [{"seed": 1}, {"level": 0.5}, {"split": "leave-mix-out"}],
        [slower],
        [
            ({"probes": (-1,)}, "^probes: expected 0, or with leave-benchmark-out at least 0"),
            ({"split": "random-80-20", "probes": (0, 2)}, "^probes: expected 0, or"),
            *OF_LEVEL,
        ],
    ),
    "relative": Case(
        partial(evaluate_relative, folds="leave-application-out"),
        VECTORS,
        [PublishedXGBoost(rounds=2, depth=2), PublishedLinear()],
        8,
        [{"seed": 1}, {"models": [PublishedMean(), LogMean(), PublishedVectorForest(trees=2)]}],
        [partial(with_more_of, "times_s"), with_more_counted],
        [
            ({"weighting": "none"}, "^weights: expected one of rows, kernels, applications, found 'none'"),
            ({"folds": "leave-town"}, "^folds: expected one of published, .*, found 'leave-town'"),
            (
                {"data": replace(VECTORS, times_s=VECTORS.times_s * np.nan)},
                "^vectors: expected numbers above 0",
            ),
        ],
        {"negative": lambda array: -array},
    ),
    "configuration": Case(
        on_machines,
        SURFACES,
        [Wanderer(1), FeedbackCapping(), limited(Fixed(), ups=True), Oracle()],
        12,
        [
            {"seed": 1},
            {"budget": 3},
            {"samples": other_samples},
            {"samples": SURFACES.space.configurations[:1]},
            {"models": [Wanderer(2)]},
        ],
        [partial(with_more_of, "time_s")],
        [
            ({"budget": -1}, "max_retunes: expected at least 0, found -1"),
            ({"samples": []}, "samples: expected at least one configuration, and each once, found none"),
            (
                {"samples": [Configuration("node", {"cpu_cap_w": 61})]},
                "configuration: expected one of the 12",
            ),
        ],
        {"range": lambda array: array + 12, "kind": lambda array: array.astype(np.float32)},
    ),
}
each_question = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def evaluated(case: Case, **words: Any) -> str:
    """All that an evaluation says, as JSON."""
    data, models = words.pop("data", case.data), words.pop("models", case.models)
    return json.dumps(case.evaluate(data, models, **words).to_dict())


def counted(states: list[State]) -> list[tuple[int, int]]:
    return [(state.done, state.total) for state in states]


@pytest.mark.parametrize("name", CASES)
def test_what_an_evaluation_says_is_as_it_was(name: str) -> None:
    answer = json.loads(evaluated(CASES[name]))
    assert_kept(answer, Path(__file__).with_name("golden") / f"{name}.json")
    assert_valid(answer)


@pytest.mark.parametrize("name", one_in(4, ["corun", "time", "configuration", "relative"]))
def test_several_processes_say_the_same(name: str, tmp_path: Path) -> None:
    case, states = CASES[name], list[State]()
    one, two = tmp_path / "one", tmp_path / "two"
    plain = evaluated(case, cache=one)
    assert evaluated(case, jobs=2, cache=two, progress=states.append) == plain
    assert counted(states) == [(done, len(states)) for done in range(1, len(states) + 1)]
    assert {path.name: path.read_bytes() for path in two.iterdir()} == {
        path.name: path.read_bytes() for path in one.iterdir()
    }


@each_question
def test_what_was_kept_says_the_same(case: Case, tmp_path: Path) -> None:
    first, again = list[State](), list[State]()
    plain = evaluated(case)
    assert evaluated(case, cache=tmp_path, progress=first.append) == plain
    assert counted(first) == [(done, len(first)) for done in range(1, len(first) + 1)]
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(kept) == case.entries
    assert evaluated(case, cache=tmp_path, progress=again.append) == plain
    assert not again
    other = tmp_path / "other"
    evaluated(case, cache=other)
    assert {path.name: path.read_bytes() for path in other.iterdir()} == kept


@each_question
def test_kept_answers_that_cannot_be_ones_are_worked_out_again(case: Case, tmp_path: Path) -> None:
    states = list[State]()
    plain = evaluated(case, cache=tmp_path, progress=states.append)
    damages: dict[str, Any] = {"shape": lambda array: array[..., :-1], "half": np.array, "name": np.array}
    for damage, change in {**damages, **case.damages}.items():
        for path in tmp_path.iterdir():
            arrays = dict(np.load(path))
            if damage == "name":
                del arrays[next(iter(arrays))]
            np.savez(path, **{name: change(array) for name, array in arrays.items()})
            if damage == "half":
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        again = list[State]()
        assert evaluated(case, cache=tmp_path, progress=again.append) == plain
        assert counted(again) == counted(states), damage


@each_question
def test_what_answers_depend_on_is_in_their_names(case: Case, tmp_path: Path) -> None:
    evaluated(case, cache=tmp_path)
    for words in (*case.depends, *({"data": change(case.data)} for change in case.others)):
        kept = len(list(tmp_path.iterdir()))
        evaluated(case, cache=tmp_path, **words)
        assert len(list(tmp_path.iterdir())) > kept, words


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [(name, *each) for name, case in CASES.items() for each in (*case.wrong, *OF_RUN)],
)
def test_wrong_arguments_are_refused(name: str, words: dict[str, Any], sentence: str) -> None:
    case = CASES[name]
    with pytest.raises(InputError, match=sentence):
        evaluated(case, **words)
