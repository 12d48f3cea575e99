"""The published models: means as by hand, trees as their libraries have them, and all of them kept whole."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import part_of, stored_name
from crosscast.predict.relative.data import Observations, RelativeModel, Vectors
from crosscast.predict.relative.features import FeatureScale
from crosscast.predict.relative.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.predict.relative.nichols2024 import (
    LogMean,
    PublishedForest,
    PublishedLinear,
    PublishedMean,
    PublishedXGBoost,
    average_gain,
    low_and_high,
    trees_of_booster,
)
from support.vectors import made_vectors

VECTORS = made_vectors(applications=6)
MODELS_HERE = (
    PublishedMean(),
    LogMean(),
    PublishedLinear(),
    PublishedForest(trees=10),
    PublishedXGBoost(rounds=10),
    PublishedXGBoost(rounds=10, selected=2),
)


def with_gaps(share: float = 0.3) -> Vectors:
    """Some counters are missing."""
    rows = VECTORS.observations
    counters = rows.counters.copy()
    counters[np.random.default_rng(0).random(counters.shape) < share] = np.nan
    counters[:, 0] = rows.counters[:, 0]
    changed = Observations(**{**vars(rows), "counters": counters})
    return Vectors(changed, VECTORS.devices, VECTORS.times_s)


def three(times: list[list[float]]) -> Vectors:
    count = len(times)
    return Vectors(VECTORS.observations.rows(np.arange(count)), ("a", "b"), np.array(times))


def test_the_mean_is_that_of_the_vectors() -> None:
    vectors = three([[1.0, 2.0], [3.0, 3.0], [4.0, 1.0]])
    predicted = PublishedMean().fit(vectors).predict(vectors.observations)
    assert predicted.tolist() == [[2.5 / 3, 2.25 / 3]] * 3


def test_the_mean_of_logarithms_is_the_same_whichever_device_is_divided_by() -> None:
    vectors = three([[1.0, 2.0], [1.0, 8.0]])
    assert LogMean().fit(vectors).vector.tolist() == pytest.approx([0.25, 1])
    turned = three([[2.0, 1.0], [8.0, 1.0]])
    assert LogMean().fit(turned).vector.tolist() == pytest.approx([1, 0.25])


@pytest.mark.parametrize("model", MODELS_HERE, ids=lambda model: model.name)
@pytest.mark.parametrize("vectors", [VECTORS, with_gaps()], ids=["whole", "gaps"])
def test_a_fitted_model_is_the_same_after_it_was_kept(model: RelativeModel, vectors: Vectors) -> None:
    fitted = model.fit(vectors, 1)
    state = fitted.state()
    assert all(array.dtype.kind in "fiuU" for array in state.values())
    again = part_of(stored_name(fitted), state)
    before, after = (each.predict(vectors.observations) for each in (fitted, again))
    assert np.array_equal(before, after)
    assert before.shape == vectors.times_s.shape
    assert (before > 0).all()


@pytest.mark.parametrize("model", MODELS_HERE, ids=lambda model: model.name)
def test_the_same_rows_and_seed_give_the_same_model(model: RelativeModel) -> None:
    one, other = (model.fit(VECTORS, 4).state() for _ in range(2))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("model", MODELS_HERE, ids=lambda model: model.name)
def test_a_run_is_predicted_alone_as_among_others(model: RelativeModel) -> None:
    fitted = model.fit(VECTORS, 0)
    whole = fitted.predict(VECTORS.observations)
    alone = fitted.predict(VECTORS.observations.rows(np.array([5])))
    np.testing.assert_array_equal(alone[0], whole[5])


@pytest.mark.parametrize("model", MODELS_HERE, ids=lambda model: model.name)
def test_nothing_can_be_learned_from_nothing(model: RelativeModel) -> None:
    with pytest.raises(InputError, match=f"^{model.name}: expected a run to learn from, found none"):
        model.fit(VECTORS.rows(np.array([], dtype=np.int64)), 0)


def test_linear_regression_is_that_of_scikit_learn() -> None:
    features = FeatureScale(fill=True).fit(VECTORS.observations)
    rows = features.transform(VECTORS.observations)
    reference = LinearRegression().fit(rows, VECTORS.vector).predict(rows)
    predicted = PublishedLinear().fit(VECTORS).predict(VECTORS.observations)
    np.testing.assert_allclose(predicted, np.maximum(reference, VECTORS.vector.min()), rtol=1e-9)


def test_the_forest_is_that_of_scikit_learn() -> None:
    features = FeatureScale(fill=True).fit(VECTORS.observations)
    rows = features.transform(VECTORS.observations)
    reference = RandomForestRegressor(10, random_state=3).fit(rows, VECTORS.vector).predict(rows)
    predicted = PublishedForest(trees=10).fit(VECTORS, 3).predict(VECTORS.observations)
    np.testing.assert_allclose(predicted, reference, rtol=1e-12)


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
    asked = rng.normal(size=(400, 5))
    asked[rng.random(asked.shape) < 0.3] = np.nan
    # Numbers on which splits are, too.
    asked[:300] = np.where(rng.random(rows.shape) < 0.5, rows, asked[:300])
    reference = booster.predict(xgboost.DMatrix(asked.astype(np.float32), nthread=1))
    found = trees_of_booster(booster, 3).sum(low_and_high(asked))
    np.testing.assert_allclose(found, reference, rtol=2e-5, atol=2e-5)


def test_xgboost_is_asked_for_what_the_paper_says() -> None:
    features = FeatureScale().fit(VECTORS.observations)
    rows = features.transform(VECTORS.observations)
    reference = boosted(rows, VECTORS.vector).predict(xgboost.DMatrix(rows.astype(np.float32), nthread=1))
    model = PublishedXGBoost(rounds=25).fit(VECTORS, 2)
    predicted = model.predict(VECTORS.observations)
    np.testing.assert_allclose(predicted, np.maximum(reference, VECTORS.vector.min()), rtol=1e-4, atol=1e-5)
    assert model.gain.shape == (len(features.names),)


def test_gain_is_of_what_matters() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 4))
    gain = average_gain(boosted(rows, rows[:, [2, 2]] * 3), 4)
    assert gain.argmax() == 2
    assert (gain >= 0).all()


def test_a_selection_looks_at_no_more_features() -> None:
    whole = PublishedXGBoost(rounds=10).fit(VECTORS, 0)
    model = PublishedXGBoost(rounds=10, selected=2)
    assert model.name == "published-xgboost-2"
    few = model.fit(VECTORS, 0)
    chosen = set(np.argsort(-whole.gain, kind="stable")[:2].tolist())
    assert set((few.trees.split_feature % len(few.features.names)).tolist()) <= chosen
    assert set(np.flatnonzero(few.gain).tolist()) <= chosen


def test_low_and_high_are_finite_and_in_single_precision() -> None:
    rows = low_and_high(np.array([[1.0, np.nan, 1e300]]))
    largest = float(np.finfo(np.float32).max)
    assert rows.tolist() == [[1.0, -largest, largest, 1.0, largest, largest]]


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (PublishedMean(), {"vector": np.array([0.5, -1.0])}),
        (PublishedMean(), {"vector": np.array([1.0])}),
        (PublishedLinear(), {"least": np.array([0.0])}),
        (PublishedLinear(), {"least": np.array([0.1, 0.2])}),
        (PublishedLinear(), {"slopes": np.zeros((1, 3))}),
        (PublishedXGBoost(rounds=3), {"gain": np.array([1.0])}),
        (PublishedXGBoost(rounds=3), {"split_feature": None}),
        (PublishedForest(trees=3), {"leaf_value": np.zeros((1, 3))}),
    ],
)
def test_damaged_arrays_are_refused(
    model: RelativeModel, changes: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None]
) -> None:
    fitted = model.fit(VECTORS, 0)
    state = {**fitted.state(), **{name: each for name, each in changes.items() if each is not None}}
    state = {name: each for name, each in state.items() if changes.get(name, each) is not None}
    with pytest.raises(InputError, match=r"^model: "):
        part_of(stored_name(fitted), state)


def test_the_registry_names_its_models() -> None:
    for name, make in MODELS.items():
        assert make().name == name
    assert {DEFAULT_MODEL, *BASELINES} <= set(MODELS)
    assert [model.name for model in models_named(["log-mean", "published-mean", "log-mean"])] == [
        "log-mean",
        "published-mean",
    ]


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"^models: expected one of published-mean, .*, found 'oracle'$"):
        models_named(["oracle"])
