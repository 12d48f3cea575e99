"""Forecasts and cards of all models of made-up data are as they were; `make golden` keeps them anew."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.evaluation.configuration.question import train_configuration
from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.evaluation.corun.question import train_corun
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.data import ConfigurationModel, Surfaces
from crosscast.prediction.configuration.models import NearestKernels
from crosscast.prediction.configuration.process import ProcessModel
from crosscast.prediction.corun.forecast import CoRunModel
from crosscast.prediction.corun.models import Mean, Sum, models_named
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.process import Process
from crosscast.prediction.corun.translation import shared_times, train_translation, translated_forecasts
from crosscast.prediction.relative.data import Vectors
from crosscast.prediction.relative.models import CombinedRelative, Effort, IntensityTrees, fit_blend
from crosscast.prediction.relative.nichols2024 import (
    LogMean,
    PublishedLinear,
    PublishedMean,
    PublishedVectorForest,
    PublishedXGBoost,
)
from support import published_mixes
from support.golden import assert_kept
from support.grids import linear_samples, linear_surfaces
from support.mixes import NAMES, counted_co_runs, made_co_runs, make_isolated_run
from support.surfaces import made_surfaces
from support.vectors import made_profile_vectors, made_vectors, trained
from support.work import made_work

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
    for fitted, vectors in pairs:
        yield fitted.predict(vectors.observations)[:4]
    forecast = trained().predict(made.observations.rows(np.arange(4)), relative_to="gpu", level=0.8)
    yield [forecast[row].to_dict() for row in range(4)]
    yield {name: each for name, each in trained().card.errors.items() if name != "sha256"}


@pytest.mark.parametrize(
    "forecasts", [co_runs, trained_co_runs, configurations, trained_configurations, relatives]
)
def test_what_is_forecast_is_as_it_was(forecasts: Callable[[], Iterator[object]]) -> None:
    path = Path(__file__).with_name("golden") / f"{forecasts.__name__}.json"
    assert_kept(list(forecasts()), path)
