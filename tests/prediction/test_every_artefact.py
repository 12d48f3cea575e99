"""Laws of the artefacts of all questions: a card is known by its question, and says what belongs to it."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast import load_model
from crosscast.errors import InputError
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.relative.nichols2024 import PublishedXGBoost
from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.johnston2018 import PublishedForest
from crosscast.prediction.time.models import MODELS
from support.corun_models import constant
from support.models import changed, fitted, kept, kept_chooser, model_refusal, rewrite_card
from support.refusals import refusals
from support.vectors import kept_relative, made_vectors, trained, with_predictor

QUESTIONS: dict[str, tuple[Callable[[Path], object], type, str]] = {
    "time": (kept, TrainedTimeModel, "model seed devices time_s training errors arrays"),
    "configuration": (
        kept_chooser,
        TrainedConfigurationModel,
        "model seed configurations samples power training errors kind arrays",
    ),
    "relative": (
        kept_relative,
        TrainedRelativeModel,
        "model seed devices sources counters configuration training errors arrays",
    ),
    "corun": (
        lambda folder: constant(folder, 1.2),
        TrainedCoRunModel,
        "model seed device configuration sizes applications training errors arrays",
    ),
}
"""How a model is kept, what it is when it is loaded, and the fields that its card must have."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_model_is_known_by_its_card_and_takes_the_place_of_another(question: str, tmp_path: Path) -> None:
    folder, (keep, kind, _) = tmp_path / "model", QUESTIONS[question]
    for other, (keep_other, _, _) in QUESTIONS.items():
        keep_other(folder)
        if other != question:
            with pytest.raises(
                InputError, match=f"by 'crosscast train {question}', found one by '.* {other}'"
            ):
                load_model(folder, question)
    keep(folder)
    assert isinstance(load_model(folder, question), kind)
    assert isinstance(load_model(folder), kind)
    assert len(list(folder.iterdir())) == 2


@refusals("question path value sentence")
def test_a_wrong_card_is_refused(question: str, path: str, value: Any, sentence: str, tmp_path: Path) -> None:
    QUESTIONS[question][0](tmp_path / "model")
    rewrite_card(tmp_path / "model", changed(path, value))
    assert sentence in model_refusal(tmp_path / "model")


SCRIPT = """
import sys, numpy as np
from crosscast import load_model
from crosscast.prediction.configuration.data import Observed
from crosscast.prediction.relative.data import Observations
from crosscast.prediction.time.data import ProfileBatch
from crosscast.profile import METRICS

def time(model):
    profiles = ProfileBatch(('a',), ('k',), ('s',), np.full((1, len(METRICS)), 3.0))
    assert model.predict(profiles, probes={'big': 1e-3}).centre.shape == (1, 4)

def configuration(model):
    ones = np.array([1.0, 2.0])
    observed = Observed(np.array(model.predictor.samples), ones, 100 * ones)
    assert np.isfinite(model.predictor.forecast(observed).time.centre).all()

def relative(model):
    one, names, counted = ('x',), ('PAPI_TOT_INS', 'PAPI_BR_INS'), np.array([[1e9, 1e8]])
    runs = Observations(*[one] * 4, ('cpu',), names, counted, (), np.empty((1, 0)), np.array([1.0]))
    assert model.predict(runs, relative_to='gpu').centre.shape == (1, 3)

def corun(model):
    # Applications of a mix are those of tables, which Arrow reads.
    from crosscast.data.corun import IsolatedRun
    runs = (IsolatedRun('a', 's', 'cpu', 1.0), IsolatedRun('b', 's', 'cpu', 2.0))
    assert model.predict([runs])[0].time_s

for words in sys.argv[1:]:
    question, folder = words.split(':', 1)
    if question == 'corun':
        print(*{'pyarrow'} & set(sys.modules))
    globals()[question](load_model(folder))
print(*{'sklearn', 'scipy', 'xgboost', 'pandas', 'llvmlite', 'matplotlib'} & set(sys.modules))
"""


def models_of(question: str, folder: Path) -> Iterator[Path]:
    """Folders of models of a question: of those that are fitted by other packages, each kind."""
    QUESTIONS[question][0](folder / "model")
    yield folder / "model"
    if question == "time":
        known, predictor, card = fitted()
        for name, make in MODELS.items():
            point = PublishedForest(trees=5) if name == "published-forest" else make().point
            TrainedTimeModel(card, replace(predictor, point=point.fit(known, 0))).save(folder / name)
            yield folder / name
    if question == "relative":
        boosted = PublishedXGBoost(rounds=5).fit(made_vectors(), 0)
        with_predictor(trained(), boosted).save(folder / "xgboost")
        yield folder / "xgboost"


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_loaded_model_is_kept_as_the_same_bytes(question: str, tmp_path: Path) -> None:
    """Its card and its arrays come back as they were; `test_stored_parts` says so of each part."""
    for folder in models_of(question, tmp_path):
        model = load_model(folder)
        model.save(tmp_path / "again")
        first, again = (
            {file.name: file.read_bytes() for file in each.iterdir()} for each in (folder, tmp_path / "again")
        )
        assert first == again


def test_forecasting_needs_none_of_the_packages_that_fit(tmp_path: Path) -> None:
    asked = [f"{each}:{folder}" for each in QUESTIONS for folder in models_of(each, tmp_path / each)]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *asked], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
