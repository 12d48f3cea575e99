"""Artefacts and forecasts of all models: known by their cards, and as they were."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast import load_model
from crosscast.errors import InputError
from crosscast.evaluation.configuration.question import train_configuration
from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.evaluation.corun.question import train_corun
from crosscast.prediction.configuration import ConfigurationModel, Surfaces
from crosscast.prediction.configuration.artefact import NearestKernels, TrainedConfigurationModel
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.process import ProcessModel
from crosscast.prediction.corun import CoRunModel
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.models import Mean, Process, Sum, models_named
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.translation import shared_times, train_translation, translated_forecasts
from crosscast.prediction.relative import Vectors
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.relative.models import CombinedRelative, Effort, IntensityTrees, fit_blend
from crosscast.prediction.relative.nichols2024 import (
    LogMean,
    PublishedLinear,
    PublishedMean,
    PublishedVectorForest,
    PublishedXGBoost,
)
from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.models import MODELS, PublishedForest
from support import published_mixes
from support.corun_models import constant
from support.golden import assert_kept
from support.grids import linear_samples, linear_surfaces
from support.mixes import NAMES, counted_co_runs, made_co_runs, make_isolated_run
from support.models import changed, fitted, kept, kept_chooser, model_refusal, rewrite_card
from support.refusals import refusals
from support.surfaces import made_surfaces
from support.vectors import kept_relative, made_profile_vectors, made_vectors, trained, with_predictor
from support.work import made_work

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
from crosscast.prediction.configuration import Observed
from crosscast.prediction.relative import Observations
from crosscast.prediction.time import ProfileBatch
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


def test_forecasting_needs_none_of_the_packages_that_fit(tmp_path: Path) -> None:
    asked = [f"{each}:{folder}" for each in QUESTIONS for folder in models_of(each, tmp_path / each)]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *asked], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


BOTH = made_co_runs(NAMES[:5], mixes=(2, 3))
A, B, C, *_ = BOTH.isolated_runs
NEW = make_isolated_run("gem")
ASKED = [(A, B), (A, NEW), (NEW, NEW), (A, B, C), (C, A, NEW)]


def co_runs() -> Iterator[object]:
    """What each model says of new and of known applications, in pairs and threes."""
    published = published_mixes.made_co_runs((2, 3), applications=6)
    new = [mix.isolated_runs for mix in published_mixes.made_co_runs((2, 3), seed=9, applications=4).mixes]
    kinds = ("linear", "decision-tree", "boosting")
    models: list[CoRunModel] = [
        Mean(),
        Sum(),
        Process(),
        Process(trees=False),
        Published("forest", others=True),
    ]
    pairs: list[tuple[CoRunModel, Any, Any]] = [(model, BOTH, ASKED) for model in models]
    pairs += [(Published(kind), published, new[::3]) for kind in kinds]
    for model, data, asked in pairs:
        yield vars(model.fit(data, 0).predict(asked))


def trained_co_runs() -> Iterator[object]:
    """A card, forecasts of a trained model with probes and without, and what it would have measured."""
    data = made_co_runs(NAMES[:4])
    model = train_corun(data, Process(trees=False), baselines=[Mean()], memory_bytes=3 << 20)
    told = model.with_probes([((A, NEW), (1.4, 1.9)), ((A, B, C), (2, 2.5, 3))])
    for each in (model, told):
        yield each.predict(ASKED, level=0.8).to_dict()
        yield each.suggest_probes(2, ASKED[:3], among=[(A, NEW), (B, NEW), (C, NEW), (A, B)]).to_dict()
    yield model.card.errors
    card = train_translation(shared_times(counted_co_runs(), "cpu", "other"))
    (linear,) = models_named(["published-linear"])
    here = train_corun(of_one_device(counted_co_runs((2,)), "cpu"), linear)
    mixes = [mix.isolated_runs for mix in counted_co_runs((2,)).mixes[:3]]
    yield [each.to_dict() for each in translated_forecasts(here, card, mixes)]


def configurations() -> Iterator[object]:
    """Forecasts of a kernel that was left out, with their intervals, and what is chosen by them."""
    machines: list[tuple[Surfaces, tuple[int, ...]]] = [(made_surfaces(6, noise=0.01), (11, 0))]
    machines.append((linear_surfaces(), linear_samples(linear_surfaces().space)))
    models: tuple[ConfigurationModel, ...] = (NearestKernels(), PublishedModel(), ProcessModel())
    for surfaces, samples in machines:
        for model in models:
            fitted = model.fit(surfaces.take(~surfaces.rows_of(["app1"])), samples)
            (row, *_) = np.flatnonzero(surfaces.rows_of(["app1"])).tolist()
            forecast = fitted.forecast(surfaces.observed(row, samples))
            for each in (forecast.time, forecast.power):
                yield each.centre, each.spread, each.limits(0.8) if each.programs else None
            yield choice_of(forecast, surfaces.space, float(np.median(surfaces.power_w[row]))).to_dict()


def trained_configurations() -> Iterator[object]:
    yield train_configuration(made_surfaces(4, noise=0.02), "published").card.errors


def relatives() -> Iterator[object]:
    """Vectors of each model, and a trained one's forecasts and card."""
    made, work, few = (
        made_vectors(applications=4),
        made_work(kernels=6, sizes=2, noise=0.1),
        Effort(5, 10, 0.25),
    )
    profiles = made_profile_vectors()
    counted = (PublishedMean(), LogMean(), PublishedLinear(), PublishedVectorForest(trees=5))
    for model in (*counted, PublishedXGBoost(rounds=5), IntensityTrees(trees=5)):
        yield model.fit(made, 0).predict(made.observations)[:4]
    pairs: list[tuple[Any, Vectors]] = [(CombinedRelative().fit(profiles, 0), profiles)]
    pairs += [(fit_blend(work, 0, few, few), work), (fit_blend(made, 0, few, few), made)]
    for predictor, vectors in pairs:
        yield predictor.predict(vectors.observations)[:4]
    forecast = trained().predict(made.observations.rows(np.arange(4)), relative_to="gpu", level=0.8)
    yield [forecast[row].to_dict() for row in range(4)]
    yield {name: each for name, each in trained().card.errors.items() if name != "sha256"}


@pytest.mark.parametrize(
    "forecasts", [co_runs, trained_co_runs, configurations, trained_configurations, relatives]
)
def test_what_is_forecast_is_as_it_was(forecasts: Callable[[], Iterator[object]]) -> None:
    path = Path(__file__).with_name("golden") / f"{forecasts.__name__}.json"
    assert_kept(list(forecasts()), path)
