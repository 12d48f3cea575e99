"""All models of relative performance: laws that they share, and what each is by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import xgboost
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.relative.data import Observations, RelativeModel, relative_to_slowest
from crosscast.prediction.relative.features import fit_features
from crosscast.prediction.relative.models import (
    BASELINES,
    DEFAULT_MODEL,
    MODELS,
    BlendPredictor,
    ByTimesPredictor,
    CombinedRelative,
    IntensityTrees,
    are_profiles,
    models_named,
)
from crosscast.prediction.relative.nichols2024 import (
    LogMean,
    PublishedLinear,
    PublishedMean,
    PublishedVectorForest,
    PublishedXGBoost,
)
from crosscast.prediction.time.combined import Combined as TimeModel
from crosscast.prediction.trees import both_sides, trees_of_booster
from support.grids import noisy_grid
from support.vectors import made_profile_vectors, made_vectors, runs_with

VECTORS = made_vectors(applications=6)
COUNTED_MODELS = (
    PublishedMean(),
    LogMean(),
    PublishedLinear(),
    PublishedVectorForest(trees=10),
    PublishedXGBoost(rounds=10),
    PublishedXGBoost(rounds=10, selected=2),
    IntensityTrees(trees=20),
)
each_model = pytest.mark.parametrize("model", COUNTED_MODELS, ids=lambda model: model.name)


@each_model
def test_a_run_is_predicted_alone_as_among_others(model: RelativeModel) -> None:
    fitted = model.fit(VECTORS, 0)
    whole = fitted.predict(VECTORS.observations)
    alone = fitted.predict(VECTORS.observations.rows(np.array([5])))
    np.testing.assert_array_equal(alone[0], whole[5])


@pytest.mark.parametrize("model", [*COUNTED_MODELS, CombinedRelative()], ids=lambda model: model.name)
def test_nothing_can_be_learned_from_nothing(model: RelativeModel) -> None:
    with pytest.raises(InputError, match=f"^{model.name}: expected a run to learn from, found none"):
        model.fit(VECTORS.rows(np.array([], dtype=np.int64)), 0)


def test_the_registry_names_its_models() -> None:
    for name, make in MODELS.items():
        assert make().name == name
    assert {DEFAULT_MODEL, *BASELINES} <= set(MODELS)
    names = [model.name for model in models_named(["log-mean", "published-mean", "log-mean"])]
    assert names == ["log-mean", "published-mean"]
    with pytest.raises(InputError, match=r"^models: expected one of published-mean, .*, found 'oracle'$"):
        models_named(["oracle"])


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (PublishedLinear(), LinearRegression()),
        (PublishedVectorForest(trees=10), RandomForestRegressor(10, random_state=3)),
    ],
)
def test_it_is_that_of_scikit_learn(model: RelativeModel, published: Any) -> None:
    rows = fit_features(VECTORS.observations, fill=True).transform(VECTORS.observations)
    reference = np.maximum(published.fit(rows, VECTORS.vector).predict(rows), VECTORS.vector.min())
    np.testing.assert_allclose(model.fit(VECTORS, 3).predict(VECTORS.observations), reference, rtol=1e-9)


def boosted(rows: Reals, vector: Reals, rounds: int = 25) -> xgboost.Booster:
    settings = {"objective": "reg:absoluteerror", "max_depth": 6, "eta": 0.1, "nthread": 1, "seed": 2}
    settings["tree_method"] = "hist"
    data = xgboost.DMatrix(rows.astype(np.float32), label=vector, nthread=1)
    return xgboost.train(settings, data, num_boost_round=rounds)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_boosted_trees_as_arrays_predict_as_xgboost_does(share: float) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 5))
    rows[rng.random(rows.shape) < share] = np.nan
    vector = np.exp(np.nan_to_num(rows[:, :3]) - np.isnan(rows[:, 1:4]))
    booster = boosted(rows, vector)
    queries = rng.normal(size=(400, 5))
    queries[rng.random(queries.shape) < 0.3] = np.nan
    # Numbers on which splits are, too.
    queries[:300] = np.where(rng.random(rows.shape) < 0.5, rows, queries[:300])
    reference = booster.predict(xgboost.DMatrix(queries.astype(np.float32), nthread=1))
    predicted = trees_of_booster(booster, 3).sum(both_sides(queries))
    np.testing.assert_allclose(predicted, reference, rtol=2e-5, atol=2e-5)


def test_nothing_is_predicted_below_what_was_learned_from() -> None:
    """Far from the training, a line goes below 0, where no ratio of times is."""
    seen = VECTORS.observations
    far = replace(seen, counters=seen.counters * np.array([1, 1e-3, 1e3, 1e3]))
    assert PublishedLinear().fit(VECTORS).predict(far).min() == VECTORS.vector.min()


GRID, PROFILES = noisy_grid(), made_profile_vectors()
LAUNCHED = replace(GRID.profiles, invocations=np.arange(1, len(GRID.profiles) + 1))
KEYS, SEEN = PROFILES.devices, PROFILES.observations


@cache
def by_times() -> ByTimesPredictor:
    fitted = CombinedRelative().fit(PROFILES, 0)
    assert isinstance(fitted, ByTimesPredictor)
    return fitted


def without(seen: Observations, name: str) -> Observations:
    index = seen.names.index(name)
    names = tuple(each for each in seen.names if each != name)
    return replace(seen, names=names, counters=np.delete(seen.counters, index, axis=1))


def test_vectors_are_those_of_the_mean_of_the_corrected_times_and_the_uncorrected() -> None:
    times = TimeModel().fit(replace(GRID, profiles=LAUNCHED), 0)
    log = (times.log_time(LAUNCHED) + times.physical.log_time(LAUNCHED)) / 2
    forecast = by_times().predict(SEEN)
    np.testing.assert_allclose(forecast, relative_to_slowest(np.exp(log)), rtol=1e-6)
    assert (forecast.max(axis=1) == 1).all()
    assert not np.allclose(forecast, relative_to_slowest(np.exp(times.log_time(LAUNCHED))), rtol=1e-3)


def test_counters_of_a_device_are_no_profiles() -> None:
    assert are_profiles(SEEN)
    assert not are_profiles(VECTORS.observations)
    assert not are_profiles(replace(SEEN, source=("cpu", *SEEN.source[1:])))
    assert not are_profiles(replace(SEEN, names=("odd", *SEEN.names[1:])))
    with pytest.raises(InputError, match=r"^profile: expected architecture-independent profiles"):
        by_times().predict(runs_with({"PAPI_TOT_INS": 1.0}))


def test_a_profile_without_a_metric_that_times_need_is_refused() -> None:
    lacking = without(SEEN, "total_instruction_count")
    for ask in (
        by_times().predict,
        lambda seen: CombinedRelative().fit(replace(PROFILES, observations=seen), 0),
    ):
        with pytest.raises(InputError, match="total_instruction_count") as caught:
            ask(lacking)
        assert "\n" not in str(caught.value)


def test_the_default_takes_times_for_profiles_and_the_blend_for_counters() -> None:
    assert isinstance(MODELS[DEFAULT_MODEL](), CombinedRelative)
    assert isinstance(by_times(), ByTimesPredictor)
    assert isinstance(CombinedRelative().fit(made_vectors(applications=2), 0), BlendPredictor)
